//! `latscope ipc`: transactions between processes.

mod arguments;
mod request;

pub use arguments::command;

use super::live::{self, Wanted};
use super::measure::{self, Ground};
use super::output::Output;
use super::{Exit, criteria};
use crate::engine::observers::Event;
use crate::engine::saver;
use anyhow::{Context, Result};
use clap::ArgMatches;
use latscope_core::figure::{self, Picture};
use latscope_core::machine::Machine;
use latscope_core::plan::{Plan, Step};
use latscope_core::report::Report;
use latscope_core::units::CpuList;
use latscope_core::verdict;
use std::path::PathBuf;

/// Measures, shows and judges.
///
/// # Errors
/// Options that cannot be, a file that cannot be written, nothing measured.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let output = Output::from(matches)?;
    let ground = Ground::survey();
    if let Some(list) = matches.get_one::<CpuList>("cpus") {
        measure::check_cpus(&list.0, &ground.machine)?;
    }
    let (steps, notes) = steps(matches, &ground.machine)?;
    let criteria = criteria::given(matches, None)?;
    let warnings = request::warnings(&steps, &ground.machine);
    let plan = Plan {
        job: "ipc".to_owned(),
        steps,
        load: measure::load(matches),
        timeline: None,
        on_threshold: request::on_threshold(matches),
        cpus: ground.machine.allowed.clone(),
        notes,
    };
    if matches.get_flag("dry-run") {
        return output.plan(&plan);
    }
    output.check_files()?;
    matches.get_one::<PathBuf>("svg").map_or(Ok(()), |path| saver::check(path))?;
    let mut watcher = live::observer(if output.quiet { Wanted::Nothing } else { Wanted::Lines })?;
    warnings.iter().for_each(|warning| watcher.observe(&Event::Warning(warning)));
    let mut report = measure::carry_out(plan, ground, &output, Some(watcher.as_mut()))?;
    report.warnings.extend(warnings);
    verdict::judge_report(&mut report, &criteria);
    let shown = measure::show(&report, &output, false);
    draw(matches, &report)?;
    shown?;
    let whole = report.finished.is_some() && !report.measurements.iter().any(|m| m.incomplete);
    Ok(if whole { criteria::exit(&report) } else { Exit::Error })
}

/// What is measured, and what is left out of what is usual.
fn steps(matches: &ArgMatches, machine: &Machine) -> Result<(Vec<Step>, Vec<String>)> {
    if matches.get_flag("inversion") {
        return Ok((request::inversion(matches, machine)?, Vec::new()));
    }
    let chosen = request::chosen(matches)?;
    Ok((request::steps(matches, &chosen, machine)?, chosen.notes))
}

fn draw(matches: &ArgMatches, report: &Report) -> Result<()> {
    let Some(path) = matches.get_one::<PathBuf>("svg") else { return Ok(()) };
    let svg = match figure::throughput_figure(report) {
        Some(figure) => Some(figure::svg(&[figure])),
        None => figure::event_pictures(report, &[Picture::Distribution]),
    };
    saver::replace(path, svg.context("there is nothing to draw")?.as_bytes())
}
