//! From steps to a report: the part that touches the machine.

use super::words::Common;
use crate::names::{self, Measured};
use crate::rt::environment;
use anyhow::{Context, Result, bail};
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::plan::{OnThreshold, Plan, Step};
use latscope_core::quality::Level;
use latscope_core::report::{Measurement, Report};
use latscope_engine::observers::Observer;
use latscope_engine::planner::{self, Request};
use latscope_engine::saver;
use latscope_exchange::transaction::Transport;
use latscope_host::eprintln;
use latscope_judge::transactions::number;
use latscope_probes::PlanInput;
use latscope_probes::ipc;

/// What a run stands on.
pub struct Environment {
    name: &'static str,
    pub machine: Machine,
    timebase: Timebase,
}

/// The transport that was asked for, or else the usual one.
///
/// # Errors
/// There is none of this name.
pub fn transport(common: &Common, usual: &str) -> Result<&'static Transport> {
    let name = common.transport.as_deref().unwrap_or(usual);
    ipc::transport(name).with_context(|| {
        let names: Vec<&str> = ipc::transports().map(|transport| transport.name).collect();
        format!("--transport {name} is not known: choose one of {}", names.join(", "))
    })
}

/// Says on stderr what the figures do not.
pub fn note(name: &str, text: &str) {
    eprintln!("latscope: {name}: note: {text}");
}

impl Environment {
    /// This machine.
    pub fn survey(name: &'static str) -> Environment {
        let (machine, timebase) = environment::here();
        Environment { name, machine, timebase }
    }

    /// The plan of these steps.
    pub fn plan(&self, steps: Vec<Step>, on_threshold: Option<OnThreshold>) -> Plan {
        let request = Request { on_threshold, ..Request::new(self.name, PlanInput::default()) };
        planner::of_steps(steps, &request, &self.machine)
    }

    /// Carries out a plan, says what is doubtful of it, and saves the result where that is asked for.
    ///
    /// # Errors
    /// Nothing could be measured: the reason, and what mends it.
    pub(crate) fn carry_out(
        &self,
        plan: Plan,
        observer: Option<&mut dyn Observer>,
        common: &Common,
    ) -> Result<Report> {
        let Environment { machine, timebase, .. } = self;
        let warnings = ipc::warnings(&plan.steps, machine);
        warnings.iter().for_each(|warning| note(self.name, &warning.text));
        let (observers, result) = (observer.into_iter().collect(), common.result.as_deref());
        let Measured { mut report, saved } =
            names::measure(plan, machine.clone(), *timebase, observers, result)?;
        report.warnings.extend(warnings);
        saved.and_then(|()| result.map_or(Ok(()), |path| saver::save(path, &report)))?;
        if report.measurements.iter().all(|m| m.quality.level == Level::Unsupported) {
            bail!(nothing(&report));
        }
        if let Some(transport) = &common.transport {
            note(self.name, &format!("measured over {transport}, whatever the names of rows say"));
        }
        environment::doubts(&report.measurements).iter().for_each(|doubt| note(self.name, doubt));
        Ok(report)
    }
}

fn nothing(report: &Report) -> String {
    let Some(m) = report.measurements.first() else { return "nothing was measured".to_owned() };
    let reason = m.reason.as_deref().unwrap_or("nothing was measured");
    let remedies = m.remedy.iter().map(String::as_str).filter(|remedy| !remedy.is_empty());
    let remedies: Vec<&str> =
        remedies.chain(["another means of transport: --transport unix-stream"]).collect();
    format!("{reason} (remedy: {})", remedies.join("; or "))
}

/// A value of a measurement; 0 where there is none.
pub fn value(m: &Measurement, name: &str) -> f64 {
    m.values.get(name).map_or(0.0, |value| value.value)
}

/// Calls that failed, or whose reply was another one's.
pub fn lost(m: &Measurement) -> u64 {
    (value(m, "failures") + value(m, "mismatches")) as u64
}

/// The measurements of single pairs: not those that sum them up.
pub(crate) fn of_pairs(report: &Report) -> impl Iterator<Item = &Measurement> {
    report.measurements.iter().filter(|m| number(m, "pair").is_some())
}
