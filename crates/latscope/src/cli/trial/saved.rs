//! A directory of results of `latscope trial` or `run`, shown again: also one that was killed, of which it says what is
//! complete and what not.

use super::super::results::{self, TRIAL, as_kept};
use super::super::{Exit, input};
use super::outcome::{Counted, Done, Ordered, Outcome, Skipped, comparisons, table};
use super::plan_file::PlanFile;
use super::shared::Shown;
use super::show::{self, View};
use anyhow::{Context, Result, ensure};
use latscope_core::report::Report;
use latscope_judge::acceptance::{Acceptance, Input, acceptance};
use latscope_judge::compare::Options;
use latscope_judge::runs::Run;
use serde::Deserialize;
use std::path::{Component, Path};

/// Contents of the file of a trial that the results do not have.
#[derive(Deserialize)]
struct Saved {
    plan: PlanFile,
    same: f64,
    started: String,
    finished: Option<String>,
    interrupted: Option<String>,
    failed: Option<String>,
    restored: Option<bool>,
    skipped: Vec<Skipped>,
    runs: Vec<Done>,
    order: Vec<Ordered>,
}

/// Returns true if a directory holds the results of a trial.
pub fn is_trial(directory: &Path) -> bool {
    as_kept(directory.join(TRIAL)).is_file()
}

/// Shows the results of a directory, with what is missing of them, and writes files of them; returns the exit code of
/// their verdict.
///
/// # Errors
/// The file of the trial cannot be read or is no such file, or stdout or a file cannot be written.
pub fn show(directory: &Path, to: Shown) -> Result<Exit> {
    let file = as_kept(directory.join(TRIAL));
    let read = input::text(&file)?;
    let saved: Saved =
        serde_json::from_str(&read).with_context(|| format!("{} is no file of a trial", file.display()))?;
    let (mut shown, counted) = outcome(saved, directory)?;
    shown.rename();
    let why = |_| Some("no run of it is complete".to_owned());
    shown.table = table(&shown.plan, &counted, &why);
    shown.comparisons = comparisons(
        &shown.plan,
        &counted,
        &Options { same: shown.same, accept_busy: true, ..Options::default() },
    );
    let plan = &shown.plan;
    let two = plan.measurements.len() == 1 && plan.arms.len() == 2 && plan.loads.is_empty();
    let view = if two { View::Comparison } else { View::Table };
    shown.acceptance = record(&shown, view, directory);
    shown.rename_files();
    shown.redact();
    show::show(&shown, view, to)?;
    Ok(Exit::of_code(shown.exit_of_verdict(&counted), || show::reason(&shown)))
}

/// Checks that a name is of a file of the directory itself, not of one elsewhere.
fn within(name: &str) -> Result<()> {
    let mut parts = Path::new(name).components();
    let own = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    ensure!(own, "{TRIAL} names {name:?}, which is no file of its directory");
    Ok(())
}

/// Returns the outcome of a trial, with the runs that its file does not contain, and the results that count.
fn outcome(saved: Saved, directory: &Path) -> Result<(Outcome, Counted)> {
    let Saved { plan, same, started, finished, interrupted, failed, restored, skipped, mut runs, order } =
        saved;
    let plan = plan.checked()?;
    let mut named = order.iter().map(|one| &one.file).chain(runs.iter().map(|run| &run.file));
    named.try_for_each(|name| within(name))?;
    for one in &order {
        let known = runs.iter().any(|run| run.file == one.file);
        let file = as_kept(directory.join(&one.file));
        if !known && file.exists() {
            let why = complete(&file).err();
            runs.push(Done { counted: why.is_none(), why, ..Done::unknown(one) });
        }
    }
    let mut found = Counted::new();
    for run in runs.iter_mut().filter(|run| run.counted) {
        let place = run.ordered().place(&plan);
        ensure!(place.is_some(), "{} has a run of {}, which its plan does not have", TRIAL, run.measurement);
        match complete(&as_kept(directory.join(&run.file))) {
            Ok(result) => found.entry(place.expect("it was looked at")).or_default().push(result),
            Err(why) => (run.counted, run.why) = (false, Some(why)),
        }
    }
    let begun = Outcome::begun(plan, same, started, skipped, order);
    Ok((Outcome { finished, interrupted, failed, restored, runs, ..begun }, found))
}

/// The record of the runs that count, where criteria were asked of them and they are not compared.
pub fn record(outcome: &Outcome, view: View, directory: &Path) -> Option<Acceptance> {
    if view == View::Comparison {
        return None;
    }
    // Of each run once more with its outliers, which the table leaves out. One that cannot be read was said to be so.
    let counted = outcome.runs.iter().filter(|run| run.counted);
    let read: Vec<(&Done, Report)> = counted
        .filter_map(|run| Some((run, results::load_one(&as_kept(directory.join(&run.file))).ok()?)))
        .collect();
    let inputs: Vec<Input> = read.iter().map(|(run, report)| input(run, report)).collect();
    let skipped: Vec<String> = outcome.skipped.iter().map(Skipped::words).collect();
    acceptance(&inputs, &skipped)
}

fn input<'a>(run: &'a Done, report: &'a Report) -> Input<'a> {
    let load = run.load.as_deref().unwrap_or_default();
    Input { measurement: &run.measurement, load, arm: &run.arm, report }
}

/// Returns the result of a run that ended by itself.
///
/// # Errors
/// There is no such result; the text has the reason.
pub fn complete(file: &Path) -> Result<Run, String> {
    let read = results::load(&[file.to_path_buf()]).map_err(|error| format!("{error:#}"))?;
    let (_, run) = read.runs.into_iter().next().ok_or("it left no result")?;
    match &run.report.interrupted {
        Some(by) => Err(format!("it was interrupted by {}", by.by)),
        None if run.report.finished.is_none() => Err("it did not end by itself".to_owned()),
        None => Ok(run),
    }
}
