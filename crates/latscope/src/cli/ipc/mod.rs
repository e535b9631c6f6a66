//! `latscope ipc`: transactions between processes.

mod arguments;
mod request;

pub use arguments::command;

use super::live::{self, Wanted};
use super::measure::{self, Environment};
use super::output::Output;
use super::{Exit, criteria};
use anyhow::Result;
use clap::ArgMatches;
use latscope_core::machine::Machine;
use latscope_core::plan::{Plan, Step};
use latscope_core::units::CpuList;
use latscope_engine::observers::Event;
use latscope_judge::verdict;
use latscope_probes::ipc;

/// Measures, shows and judges.
///
/// # Errors
/// Options that cannot be, a file that cannot be written, nothing measured.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let output = Output::from(matches)?;
    let environment = Environment::named(matches)?;
    if let Some(list) = matches.get_one::<CpuList>("cpus") {
        measure::check_cpus(&list.0, &environment.machine)?;
    }
    let (steps, notes, absent) = steps(matches, &environment.machine)?;
    let threshold = steps[0].periodic.as_ref().and_then(|rules| rules.threshold);
    let mut criteria = criteria::given(matches, threshold)?;
    criteria.extend(criteria::given_of_calls(matches)?);
    let warnings = ipc::warnings(&steps, &environment.machine);
    let plan = Plan {
        rounds: 1,
        job: "ipc".to_owned(),
        steps,
        load: measure::load(matches)?,
        timeline: None,
        on_threshold: request::on_threshold(matches),
        cpus: environment.machine.allowed.clone(),
        notes,
    };
    let plan = measure::in_rounds(plan, matches)?;
    if matches.get_flag("dry-run") {
        return output.plan(&plan);
    }
    output.check_files(&plan)?;
    let mut watcher = live::observer(if output.quiet { Wanted::Nothing } else { Wanted::Lines })?;
    warnings.iter().for_each(|warning| watcher.observe(&Event::Warning(warning)));
    let mut report = measure::carry_out(plan, environment, &output, Some(watcher.as_mut()))?;
    report.warnings.extend(warnings);
    verdict::judge_report(&mut report, &criteria);
    for m in &mut report.measurements {
        let of = |name: &&str| m.params.get("transport") == Some(&(*name).into());
        if absent.iter().any(of) {
            m.verdict = None;
        }
    }
    measure::show(&report, &output, false)?;
    Ok(criteria::exit(&report))
}

/// What is measured, what is left out of what is usual, and the transports that are not judged.
fn steps(matches: &ArgMatches, machine: &Machine) -> Result<(Vec<Step>, Vec<String>, Vec<&'static str>)> {
    if matches.get_flag("inversion") {
        return Ok((request::inversion(matches, machine)?, Vec::new(), Vec::new()));
    }
    let chosen = request::chosen(matches)?;
    Ok((request::steps(matches, &chosen, machine)?, chosen.notes, chosen.absent))
}
