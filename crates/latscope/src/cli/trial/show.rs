//! Output of a plan and its outcome: on screen and in files.

use super::super::exit;
use super::super::output::{check_distinct, is_stdout};
use super::outcome::{Compared, Ordered, Skipped, TrialOutcome, TrialRunRecord};
use super::plan_file::{Arm, PlanFile, Planned, Requirement, TrialRunOrder};
use super::shared::{SharedArguments, TrialOutputOptions};
use anyhow::{Result, ensure};
use latscope_core::units::count_with_noun;
use latscope_engine::remaining::format_approximate;
use latscope_engine::saver;
use latscope_process::stdout;
use latscope_views::{DisplayOptions, comparison, trial as views};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Part of an outcome that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialViewKind {
    /// The comparison of the arms.
    Comparison,
    /// The table of measurements under loads, then the arms compared.
    Table,
}

/// Checks that no file that is written replaces the plan.
///
/// # Errors
/// A file would replace the plan.
pub fn check_plan(to: &SharedArguments, plan: &Path) -> Result<()> {
    check_distinct(&to.files.named_files(), [plan])
}

/// Checks that all files can be written, before anything is run.
///
/// # Errors
/// A file cannot be written, or two files are the same.
pub fn check_files(to: &SharedArguments) -> Result<()> {
    let files = to.files.named_files();
    check_distinct(&files, [])?;
    ensure!(files.is_empty() || !to.dry_run, "--dry-run measures nothing that --{} could hold", files[0].0);
    files.iter().filter(|(_, path)| !is_stdout(path)).try_for_each(|(_, path)| saver::check_writable(path))
}

/// Shows the runs of a plan in their order.
///
/// # Errors
/// Stdout is closed.
pub fn dry_run(
    plan: &PlanFile,
    skipped: &[Skipped],
    directory: &Path,
    order: &[Planned],
    time: Option<Duration>,
) -> Result<()> {
    let time = time.map(|time| format!(", {}", format_approximate(time))).unwrap_or_default();
    let mut out =
        format!("{}{time}, into {}/\n", count_with_noun(order.len() as u64, "run"), directory.display());
    out += &views::arms(&arms(plan), &DisplayOptions { width: 1000, ..DisplayOptions::default() });
    if let Some(restore) = plan.restore() {
        out += &format!("at the end: {restore}\n");
    }
    skipped.iter().for_each(|one| out += &format!("skipped: {}\n", one.describe_skip()));
    for Requirement { kind, name, command, .. } in plan.needs() {
        out += &format!("{kind} {name}, if this succeeds: {command}\n");
    }
    for (at, run) in order.iter().enumerate() {
        let arm = &plan.arms[run.cell.arm];
        let prefix = if arm.prefix.0.is_empty() { String::new() } else { format!("{} ", arm.prefix) };
        out += &format!(
            "{:>4}  {}  {prefix}latscope {}\n",
            at + 1,
            plan.name(run.cell),
            plan.command_words(run.cell).join(" ")
        );
    }
    Ok(stdout::write_text(&out)?)
}

/// Name of each arm, and what it changes; none of a single arm.
fn arms(plan: &PlanFile) -> Vec<(String, String)> {
    let several = plan.arms.iter().filter(|_| plan.arms.len() > 1);
    several.map(|arm| (arm.name.clone(), arm.describe_changes())).collect()
}

/// Shows an outcome and writes its files; every file is tried.
///
/// # Errors
/// The first one that failed.
pub fn show_outcome(outcome: &TrialOutcome, view: TrialViewKind, to: TrialOutputOptions) -> Result<()> {
    let page = build_page(outcome, view);
    let text = |options: &DisplayOptions| views::format_text(&page, to.all, options);
    let csv = || match (view, &outcome.comparisons[..]) {
        (TrialViewKind::Comparison, [compared]) => comparison::format_csv(&compared.comparison),
        _ => views::format_csv(&outcome.table),
    };
    let markdown = || views::format_markdown(&page, to.all);
    to.files.show_and_write(to.quiet, outcome, text, csv, markdown, || views::html(&page))
}

fn build_page(outcome: &TrialOutcome, view: TrialViewKind) -> views::TrialPage<'_> {
    let plan = &outcome.plan;
    let minute = |time: &str| time.replace('T', " ").chars().take(16).collect::<String>();
    let from = minute(&outcome.started);
    let when = match &outcome.finished {
        Some(finished) => format!("{from} to {}", minute(finished)),
        None => format!("begun {from}, not finished"),
    };
    let runs = count_with_noun(outcome.runs.len() as u64, "run");
    let order = match plan.order {
        TrialRunOrder::Random => format!("in random order (seed {})", plan.seed),
        TrialRunOrder::Given => "in the order of the plan".to_owned(),
    };
    views::TrialPage {
        title: &plan.title,
        facts: format!("{runs} {order}, {when}"),
        arms: arms(plan),
        against: against(outcome, view).collect(),
        skipped: outcome.skipped.iter().map(|one| format!("skipped: {}", one.describe_skip())).collect(),
        commands: plan.measurements.iter().map(|one| format!("latscope {}", one.run)).collect(),
        record: outcome.acceptance.as_ref(),
        cells: &outcome.table,
        is_table: view == TrialViewKind::Table || outcome.comparisons.is_empty(),
        parts: outcome.comparisons.iter().map(|compared| comparison_part(outcome, compared)).collect(),
    }
}

fn comparison_part<'a>(outcome: &TrialOutcome, compared: &'a Compared) -> views::TrialComparison<'a> {
    let (name, margin) = (format!("B ({})", compared.b), compared.comparison.margin);
    views::TrialComparison {
        heading: heading(outcome, compared),
        answer: compared.answer.answer,
        words: views::answer(&compared.answer, &name, outcome.plan.is_same(), margin),
        comparison: &compared.comparison,
    }
}

/// Remarks that come before the tables.
fn against(outcome: &TrialOutcome, view: TrialViewKind) -> impl Iterator<Item = String> {
    let missing = outcome.finished.is_none().then(|| missing(outcome));
    let interrupted = outcome
        .interrupted
        .iter()
        .map(|signal| format!("interrupted by {signal}: these are the runs until then"));
    let said = missing.into_iter().chain(interrupted).chain(summarize_lost(outcome));
    said.chain(criteria(outcome, view)).chain(warnings(outcome))
}

/// Heading of a comparison, where there are several.
fn heading(outcome: &TrialOutcome, compared: &Compared) -> Option<String> {
    let load = compared.load.as_ref().map(|load| format!(", load {load}")).unwrap_or_default();
    let text = || format!("{}{load}: A is {}, B is {}", compared.measurement, compared.a, compared.b);
    (outcome.comparisons.len() > 1).then(text)
}

/// Summary of the runs of a trial that did not end.
fn missing(outcome: &TrialOutcome) -> String {
    let complete = outcome.runs.iter().filter(|run| run.counted).count();
    let cut: Vec<&str> =
        outcome.runs.iter().filter(|run| !run.counted).map(|run| run.planned.file.as_str()).collect();
    let begun = |one: &&Ordered| outcome.runs.iter().any(|run| run.planned.file == one.file);
    let not_begun: Vec<&str> =
        outcome.order.iter().filter(|one| !begun(one)).map(|one| one.file.as_str()).collect();
    let mut text = format!(
        "the trial has not ended, or was killed: of {} {complete} {} complete",
        count_with_noun(outcome.order.len() as u64, "run"),
        if complete == 1 { "is" } else { "are" }
    );
    if !cut.is_empty() {
        text += &format!("; not complete: {}", cut.join(", "));
    }
    match not_begun[..] {
        [] => {}
        [only] => text += &format!("; not begun: {only}"),
        [first, ..] => text += &format!("; not begun: {}, from {first} on", not_begun.len()),
    }
    text
}

/// Summary of the runs that do not count.
fn summarize_lost(outcome: &TrialOutcome) -> Option<String> {
    let lost: Vec<_> = outcome.runs.iter().filter(|run| !run.counted).collect();
    let why = lost.last().and_then(|run| run.why.as_deref()).unwrap_or_default();
    let text = || {
        let verb = if lost.len() == 1 { "does" } else { "do" };
        format!(
            "{} of {} {verb} not count: {why}",
            count_with_noun(lost.len() as u64, "run"),
            outcome.runs.len()
        )
    };
    (!lost.is_empty()).then(text)
}

/// In how many runs what was asked of them is exceeded, or cannot be judged: it decides the exit code. The table has
/// that in its rows.
fn criteria(outcome: &TrialOutcome, view: TrialViewKind) -> Vec<String> {
    let of = |exit: i32, verb: &str| -> Option<String> {
        let met = |run: &&TrialRunRecord| run.counted && run.exit == Some(exit);
        let command = &outcome.runs.iter().find(met)?.planned.measurement;
        let arm = |(at, arm): (usize, &Arm)| {
            let runs = || outcome.runs.iter().filter(|run| run.counted && run.planned.arm == arm.name);
            let letter = char::from(b'A'.saturating_add(at as u8));
            format!(
                "{letter}: {} of {}",
                runs().filter(met).count(),
                count_with_noun(runs().count() as u64, "run")
            )
        };
        let arms: Vec<String> = outcome.plan.arms.iter().enumerate().map(arm).collect();
        Some(format!("{verb} of {command}: {} (exit code {exit})", arms.join("; ")))
    };
    if view == TrialViewKind::Table {
        return Vec::new();
    }
    [(2, "exceeded a criterion"), (3, "cannot be judged by a criterion")]
        .into_iter()
        .filter_map(|(exit, verb)| of(exit, verb))
        .collect()
}

/// Reason why an outcome has not passed.
pub fn failure_reason(outcome: &TrialOutcome) -> String {
    let early = outcome.interrupted.iter().map(|signal| format!("ended by {signal}"));
    let missing = outcome.finished.is_none().then(|| missing(outcome));
    let skipped = outcome.skipped.iter().map(|one| format!("skipped: {}", one.describe_skip()));
    let reasons: Vec<String> = criteria(outcome, TrialViewKind::Comparison)
        .into_iter()
        .chain(early)
        .chain(missing)
        .chain(skipped)
        .collect();
    exit::first_of(&reasons)
}

/// Warnings of the runs' results, each once with the number of runs that have it.
fn warnings(outcome: &TrialOutcome) -> Vec<String> {
    let mut found: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for warning in outcome.runs.iter().flat_map(|run| &run.warnings) {
        found.entry(&warning.id).or_insert((0, &warning.text)).0 += 1;
    }
    let runs = |number: usize| format!("{number} of {}", count_with_noun(outcome.runs.len() as u64, "run"));
    found.values().map(|(number, text)| format!("{}: {text}", runs(*number))).collect()
}
