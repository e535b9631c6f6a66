//! Execution of steps up to the report: the part that touches the machine.

use super::words::BinderCommonOptions;
use crate::context::{PersonalityContext, ReportSaveOutcome};
use crate::environment;
use anyhow::{Context as _, Result, bail};
use latscope_bench::timebase::Timebase;
use latscope_core::machine::Machine;
use latscope_core::ordered::entry;
use latscope_core::param;
use latscope_core::plan::{OnThreshold, Plan, PlanStep};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report};
use latscope_core::units::count_with_noun;
use latscope_engine::observers::Observer;
use latscope_engine::planner::{self, RunRequest};
use latscope_engine::saver;
use latscope_exchange::transaction::IpcTransport;
use latscope_probes::{PlanInput, ipc};
use std::slice;

/// Machine and clock of a run.
pub(super) struct BinderRunEnvironment<'a> {
    context: &'a PersonalityContext,
    pub machine: Machine,
    timebase: Timebase,
}

/// Returns the transport that `--transport` names, or else the usual one.
///
/// # Errors
/// No transport has this name.
pub fn transport(common: &BinderCommonOptions, usual: &str) -> Result<&'static IpcTransport> {
    let name = common.transport.as_deref().unwrap_or(usual);
    ipc::transport(name).with_context(|| {
        let names: Vec<&str> = ipc::transports().map(|transport| transport.name).collect();
        format!("--transport {name} is not known: choose one of {}", names.join(", "))
    })
}

impl BinderRunEnvironment<'_> {
    /// Returns the environment of a run on this machine.
    pub fn of_this_machine(context: &PersonalityContext) -> BinderRunEnvironment<'_> {
        let (machine, timebase) = environment::snapshot_machine();
        BinderRunEnvironment { context, machine, timebase }
    }

    /// Returns the plan of these steps.
    pub fn plan(&self, steps: Vec<PlanStep>, on_threshold: Option<OnThreshold>) -> Plan {
        let request = RunRequest { on_threshold, ..RunRequest::new(self.context.name, PlanInput::default()) };
        planner::of_steps(steps, &request, &self.machine)
    }

    /// Carries out a plan, prints what is doubtful about it, and saves the result if `--result` asks for it.
    ///
    /// # Errors
    /// Nothing could be measured. The error has the reason and a remedy.
    pub(crate) fn carry_out(
        &self,
        plan: Plan,
        observer: Option<&mut dyn Observer>,
        common: &BinderCommonOptions,
    ) -> Result<Report> {
        let BinderRunEnvironment { context, machine, timebase } = self;
        let warnings = ipc::warnings(&plan.steps, machine);
        warnings.iter().for_each(|warning| context.print_note(&warning.text));
        let (observers, result) = (observer.into_iter().collect(), common.result.as_deref());
        let ReportSaveOutcome { mut report, saved } =
            context.measure_plan(plan, machine.clone(), *timebase, observers, result)?;
        report.warnings.extend(warnings);
        saved.and_then(|()| result.map_or(Ok(()), |path| saver::save_report(path, &report)))?;
        if report.measurements.iter().all(|m| m.quality.level == QualityLevel::Unsupported) {
            bail!(no_result_reason(&report));
        }
        if let Some(transport) = &common.transport {
            context.print_note(&format!("measured over {transport}, whatever the names of rows say"));
        }
        doubts_with_rows(&report.measurements).iter().for_each(|doubt| context.print_note(doubt));
        Ok(report)
    }
}

/// Texts about doubtful rows, each with the titles of its rows. A text that applies to several rows appears once.
fn doubts_with_rows(measurements: &[Measurement]) -> Vec<String> {
    let mut doubts: Vec<(String, Vec<&str>)> = Vec::new();
    for m in measurements {
        for doubt in environment::describe_doubts(slice::from_ref(m)) {
            entry(&mut doubts, doubt).push(&m.title);
        }
    }
    let text = |(doubt, rows): (String, Vec<&str>)| match &rows[..] {
        [row] => format!("{row}: {doubt}"),
        rows => format!("{} and {}: {doubt}", rows[0], count_with_noun(rows.len() as u64 - 1, "other row")),
    };
    doubts.into_iter().map(text).collect()
}

fn no_result_reason(report: &Report) -> String {
    let Some(m) = report.measurements.first() else { return "nothing was measured".to_owned() };
    let reason = m.joined_reasons().unwrap_or_else(|| "nothing was measured".to_owned());
    let remedy = m.joined_remedies();
    let remedies = remedy.iter().map(String::as_str).filter(|remedy| !remedy.is_empty());
    // A run that was ended is none that another transport would have carried.
    let impossible = m.quality.reasons.iter().any(|reason| reason.id == "not-possible-here");
    let other = impossible.then_some("another means of transport: --transport unix-stream");
    let remedies: Vec<&str> = remedies.chain(other).collect();
    if remedies.is_empty() { reason } else { format!("{reason} (remedy: {})", remedies.join("; or ")) }
}

/// Value of a measurement by name; 0 if there is none.
pub fn value_or_zero(m: &Measurement, name: &str) -> f64 {
    m.values.get(name).map_or(0.0, |value| value.value)
}

/// Number of calls that failed, or that got the reply of another call.
pub fn failed_calls(m: &Measurement) -> u64 {
    (value_or_zero(m, "failures") + value_or_zero(m, "mismatches")) as u64
}

/// Measurements of single pairs, without those that sum them up.
pub(crate) fn of_pairs(report: &Report) -> impl Iterator<Item = &Measurement> {
    report.measurements.iter().filter(|m| m.numeric_param(param::PAIR).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::histogram::Histogram;
    use latscope_core::plan::{MeasurementPoint, Params};
    use latscope_core::quality::Reason;
    use latscope_core::report::{Sampling, Semantics};

    fn row(title: &str, reason: &str) -> Measurement {
        let probe = "ipc.binder".to_owned();
        let point = MeasurementPoint {
            probe,
            revision: 2,
            params: Params::new(),
            title: title.to_owned(),
            row: true,
        };
        let mut row =
            Measurement::from_samples(point, Sampling::Event, Semantics::RoundTrip, Histogram::new(1));
        row.lower(Reason::new(QualityLevel::Degraded, "calls-failed", reason, ""));
        row
    }

    #[test]
    fn a_note_names_its_row_and_equal_ones_are_one() {
        let rows = [
            row("first", "two calls failed"),
            row("second", "two calls failed"),
            row("third", "a call failed"),
        ];
        let notes = doubts_with_rows(&rows);
        let expected =
            ["first and 1 other row: degraded: two calls failed", "third: degraded: a call failed"];
        assert_eq!(notes, expected);
    }
}
