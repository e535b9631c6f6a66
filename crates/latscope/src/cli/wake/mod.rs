//! `latscope wake`: periodic wake-up latency, and why.

mod arguments;
mod profile;
mod request;

pub use arguments::command;

use super::live;
use super::measure::{self, Environment};
use super::output::Output;
use super::{Exit, criteria, outliers};
use anyhow::Result;
use clap::ArgMatches;
use latscope_core::machine::{Check, CheckState, Machine};
use latscope_core::plan::Plan;
use latscope_core::report::Warning;
use latscope_core::units::CpuList;
use latscope_engine::observers::Event;
use latscope_judge::extremes;
use latscope_judge::verdict::{self, Criterion};
use latscope_probes::wake::timer::TIMER;
use latscope_probes::wake::timerlat;
use std::path::PathBuf;

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
    let plan = measure::in_rounds(plan(matches, &environment.machine)?, matches)?;
    let criteria = wanted(matches, &plan)?;
    if matches.get_flag("dry-run") {
        return output.plan(&plan);
    }
    output.check_files(&plan)?;
    let warnings = warnings(matches, &plan, &environment.machine);
    let mut watcher = live::watcher(matches, output.quiet)?;
    warnings.iter().for_each(|warning| watcher.observe(&Event::Warning(warning)));
    let mut report = measure::carry_out(plan, environment, &output, Some(watcher.as_mut()))?;
    report.warnings.extend(warnings);
    verdict::judge_report(&mut report, &criteria);
    if let Some(activations) = matches.get_one::<u64>("extrapolate") {
        report.findings.extend(extremes::findings(&report, *activations, report.plan.steps[0].seed));
    }
    measure::show(&report, &output, false)?;
    Ok(criteria::exit(&report))
}

fn plan(matches: &ArgMatches, machine: &Machine) -> Result<Plan> {
    let setup = request::setup(matches, machine)?;
    let notes =
        request::profile(matches).map(|profile| format!("profile {}: {}", profile.name, profile.source));
    Ok(Plan {
        rounds: 1,
        job: "wake".to_owned(),
        steps: vec![match matches.get_one::<String>("probe").map(String::as_str) {
            Some("timerlat") => timerlat::step(&setup),
            _ => setup.step(),
        }],
        load: measure::load(matches)?,
        timeline: matches.get_one::<PathBuf>("timeline").cloned(),
        on_threshold: outliers::on_threshold(matches)?,
        cpus: machine.allowed.clone(),
        notes: notes.into_iter().collect(),
    })
}

fn wanted(matches: &ArgMatches, plan: &Plan) -> Result<Vec<Criterion>> {
    let threshold = plan.steps[0].periodic.as_ref().and_then(|periodic| periodic.threshold);
    let mut criteria = criteria::given(matches, threshold)?;
    let max = request::profile(matches).and_then(|profile| profile.max);
    if let Some(max) = max.filter(|_| !matches.contains_id("max")) {
        criteria.push(Criterion::new("max", max as f64)?);
    }
    Ok(criteria)
}

/// What a reader must know before the first number.
fn warnings(matches: &ArgMatches, plan: &Plan, machine: &Machine) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |id: &str, text: String, remedy: Option<&str>| {
        warnings.push(Warning { id: id.to_owned(), text, remedy: remedy.map(str::to_owned) });
    };
    if let Some(text) = request::left_out(machine).filter(|_| !matches.contains_id("cpus")) {
        warn("cpus-left-out", text, None);
    }
    if machine.clock.source == "monotonic-raw" {
        let text =
            format!("the clock is not the processor's own: {}; each stamp costs more", machine.clock.reason);
        warn("clock", text, Some("see clocksource in `latscope doctor`"));
    }
    let threads = plan.steps[0].points.iter().filter(|point| point.probe == TIMER.id);
    let busy: f64 = threads.map(|point| share_of_work(&point.params)).sum();
    let cpus = plan.steps[0].cpus.len().max(1) as f64;
    let throttling = |check: &&Check| check.id == "real-time-throttling" && check.state != CheckState::Good;
    if let Some(check) = machine.checks.iter().find(throttling).filter(|_| busy / cpus > 0.9) {
        let remedy = check.remedy.iter().map(|remedy| format!(", or {remedy}")).collect::<String>();
        warn("rt-throttling", check.found.clone(), Some(&format!("less --work{remedy}")));
    }
    warnings
}

fn share_of_work(params: &latscope_core::plan::Params) -> f64 {
    let number = |name: &str| params.get(name).and_then(|value| value.to_string().parse::<f64>().ok());
    number("work").unwrap_or(0.0) / number("interval").unwrap_or(f64::MAX)
}
