//! `latscope noise`: time stolen from a busy loop, and whether that is too much.

use super::live;
use super::output::Output;
use super::{Exit, criteria, family, measure, outliers};
use anyhow::Result;
use clap::{ArgMatches, Command};
use latscope_core::plan::{Plan, Step};
use latscope_core::units::format_time;
use latscope_judge::verdict;
use latscope_probes::Family;
use latscope_probes::noise::Duty;

/// Adds to the command of the family what is asked of a result.
pub fn command(family: &'static Family) -> Command {
    family::command(family)
        .args(outliers::arguments("A gap longer than this is an outlier: traced, explained, acted upon"))
        .args(criteria::arguments().into_iter().filter(|argument| argument.get_id() != "missed"))
        .args(live::arguments())
        .mut_arg("count", |arg| arg.help("Gaps on each CPU, after which it ends"))
        .mut_arg("duration", |arg| arg.help("Time of the run [default: 3s]"))
}

/// Measures, shows and judges.
///
/// # Errors
/// Options that cannot be, a file that cannot be written, nothing measured.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let output = Output::from(matches)?;
    let job = family::job("noise", matches)?;
    let environment = measure::Environment::named(matches)?;
    let mut plan = measure::plan(&job, matches, &environment.machine)?;
    look_for_outliers(&mut plan, matches)?;
    note_rests(&mut plan);
    let criteria = criteria::given(matches, outliers::threshold(matches))?;
    if matches.get_flag("dry-run") {
        return output.plan(&plan);
    }
    output.check_files(&plan)?;
    let mut watcher = live::watcher(matches, output.quiet)?;
    let mut report = measure::carry_out(plan, environment, &output, Some(watcher.as_mut()))?;
    verdict::judge_report(&mut report, &criteria);
    measure::show(&report, &output, job.in_full)?;
    Ok(criteria::exit(&report))
}

/// A real-time loop does not watch all of the time.
fn note_rests(plan: &mut Plan) {
    let real_time = |step: &Step| step.points.iter().any(|point| point.params.contains_key("priority"));
    let duty = Duty::here().filter(|_| plan.steps.iter().any(real_time));
    plan.notes.extend(duty.map(|duty| {
        let rest = format_time(duty.rest.as_nanos() as f64);
        format!(
            "real-time loops rest for {rest} of every 100 ms, in --duration and outside of the time watched"
        )
    }));
}

fn look_for_outliers(plan: &mut Plan, matches: &ArgMatches) -> Result<()> {
    plan.on_threshold = outliers::on_threshold(matches)?;
    for rules in plan.steps.iter_mut().filter_map(|step| step.periodic.as_mut()) {
        rules.threshold = outliers::threshold(matches);
        rules.stop_at_threshold = outliers::stops(matches);
    }
    Ok(())
}
