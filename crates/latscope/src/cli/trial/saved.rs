//! A directory of results of `latscope trial` or `run`, shown again: also one that was killed, of which it says what is
//! complete and what not.

use super::super::results::{self, TRIAL, as_kept};
use super::super::{CommandExit, input};
use super::hashes::hash_file;
use super::outcome::{SCHEMA, Skipped, TrialCellRuns, TrialOutcome, TrialRunRecord, comparisons, table};
use super::shared::TrialOutputOptions;
use super::show::{self, TrialViewKind};
use anyhow::{Context, Result, bail, ensure};
use latscope_core::report::Report;
use latscope_judge::acceptance::{Acceptance, AcceptanceRun, AcceptanceScope, HashedFile, acceptance};
use latscope_judge::compare::ComparisonOptions;
use latscope_judge::runs::RunResult;
use latscope_judge::trial::TrialArmCell;
use std::path::{Component, Path};

/// Returns true if a directory holds the results of a trial.
pub fn is_trial(directory: &Path) -> bool {
    as_kept(directory.join(TRIAL)).is_file()
}

/// Shows the results of a directory, with what is missing of them, and writes files of them; returns the exit code of
/// their verdict.
///
/// # Errors
/// The file of the trial cannot be read or is no such file, or stdout or a file cannot be written.
pub fn show_saved(directory: &Path, to: TrialOutputOptions) -> Result<CommandExit> {
    let file = as_kept(directory.join(TRIAL));
    let read = input::read_text(&file)?;
    let saved: TrialOutcome =
        serde_json::from_str(&read).with_context(|| format!("{} is no file of a trial", file.display()))?;
    let (mut shown, counted) = outcome(saved, directory)?;
    shown.rename();
    let why = |place| shown.why_skipped(place).or_else(|| Some("no run of it is complete".to_owned()));
    shown.table = table(&shown.plan, &counted, &why);
    shown.comparisons = comparisons(
        &shown.plan,
        &counted,
        &ComparisonOptions { same: shown.same, accept_busy: true, ..ComparisonOptions::default() },
    );
    let plan = &shown.plan;
    let two = plan.measurements.len() == 1 && plan.arms.len() == 2 && plan.loads.is_empty();
    let view = if two { TrialViewKind::Comparison } else { TrialViewKind::Table };
    shown.redact();
    shown.acceptance = acceptance_record(&shown, view, directory, shown.exit_of_verdict(&counted));
    shown.rename_files();
    show::show_outcome(&shown, view, to)?;
    Ok(CommandExit::of_code(shown.exit_of_verdict(&counted), || show::failure_reason(&shown)))
}

/// Checks that a name is of a file of the directory itself, not of one elsewhere.
fn check_file_name(name: &str) -> Result<()> {
    let mut parts = Path::new(name).components();
    let own = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    ensure!(own, "{TRIAL} names {name:?}, which is no file of its directory");
    Ok(())
}

/// Returns the outcome of a trial, with the runs that its file does not contain, and the results that count.
fn outcome(saved: TrialOutcome, directory: &Path) -> Result<(TrialOutcome, TrialCellRuns)> {
    let plan = saved.plan.checked()?;
    let mut outcome = TrialOutcome { schema: SCHEMA, plan, ..saved };
    let made = outcome.runs.iter().map(|run| &run.planned);
    outcome.order.iter().chain(made).try_for_each(|run| check_file_name(&run.file))?;
    for planned in &outcome.order {
        let known = outcome.runs.iter().any(|run| run.planned.file == planned.file);
        let file = as_kept(directory.join(&planned.file));
        if !known && file.exists() {
            let why = complete(&file).err();
            let counted = why.is_none();
            outcome.runs.push(TrialRunRecord {
                planned: planned.clone(),
                counted,
                why,
                ..TrialRunRecord::default()
            });
        }
    }
    let mut found = TrialCellRuns::new();
    for run in outcome.runs.iter_mut().filter(|run| run.counted) {
        let Some(place) = run.planned.cell_index(&outcome.plan) else {
            bail!("{TRIAL} has a run of {}, which its plan does not have", run.planned.measurement)
        };
        match complete(&as_kept(directory.join(&run.planned.file))) {
            Ok(result) => found.entry(place).or_default().push(result),
            Err(why) => (run.counted, run.why) = (false, Some(why)),
        }
    }
    Ok((outcome, found))
}

/// The record of the runs that count, where criteria were asked of them and they are not compared.
/// `exit` is the exit code of the command.
pub fn acceptance_record(
    outcome: &TrialOutcome,
    view: TrialViewKind,
    directory: &Path,
    exit: u8,
) -> Option<Acceptance> {
    if view == TrialViewKind::Comparison {
        return None;
    }
    // Of each run once more with its outliers, which the table leaves out. One that cannot be read was said to be so.
    let counted = outcome.runs.iter().filter(|run| run.counted);
    let read: Vec<(&TrialRunRecord, Report, HashedFile)> = counted
        .filter_map(|run| {
            let file = as_kept(directory.join(&run.planned.file));
            Some((run, results::load_one(&file).ok()?, hash_file(&file)))
        })
        .collect();
    let inputs: Vec<AcceptanceRun> =
        read.iter().map(|(run, report, file)| acceptance_run(run, report, file)).collect();
    acceptance(&inputs, &scope(outcome, exit), outcome.binary.as_ref())
}

fn scope(outcome: &TrialOutcome, exit: u8) -> AcceptanceScope {
    let asked: Vec<&TrialArmCell> = outcome.cells_with_criteria().collect();
    let (left_out, unmeasured): (Vec<&TrialArmCell>, Vec<&TrialArmCell>) =
        asked.iter().copied().filter(|cell| cell.runs == 0).partition(|cell| outcome.is_skipped(cell));
    AcceptanceScope {
        skipped: outcome.skipped.iter().map(Skipped::describe_skip).collect(),
        asked: asked.len(),
        left_out: left_out.len(),
        unmeasured: unmeasured.len(),
        exit,
    }
}

fn acceptance_run<'a>(
    TrialRunRecord { planned, .. }: &'a TrialRunRecord,
    report: &'a Report,
    file: &HashedFile,
) -> AcceptanceRun<'a> {
    let load = planned.load.as_deref().unwrap_or_default();
    AcceptanceRun { measurement: &planned.measurement, load, arm: &planned.arm, report, file: file.clone() }
}

/// Returns the result of a run that ended by itself.
///
/// # Errors
/// There is no such result; the text has the reason.
pub fn complete(file: &Path) -> Result<RunResult, String> {
    let read = results::load_results(&[file.to_path_buf()]).map_err(|error| format!("{error:#}"))?;
    let (_, run) = read.runs.into_iter().next().ok_or("it left no result")?;
    match &run.report.interrupted {
        Some(by) => Err(format!("it was interrupted by {}", by.by)),
        None if run.report.finished.is_none() => Err("it did not end by itself".to_owned()),
        None => Ok(run),
    }
}
