//! A judged budget as text, Markdown, a JUnit file and annotations of GitHub, and the file of a learnt budget.

mod github;
mod junit;
mod learnt;
#[cfg(test)]
mod tests;

pub use github::annotations;
pub use junit::junit;
pub use learnt::{budget, few_runs, learnt_summary, one_day};

use crate::DisplayOptions;
use crate::column::{ColumnBuilder, MARKDOWN, TERMINAL};
use crate::comparison::difference;
use crate::document::{DocumentBlock, DocumentTable, NOTE, ViewDocument};
use crate::style::BOLD;
use crate::styled::Text;
use crate::verdicts::{status_mark, status_word};
use latscope_core::report::VerdictStatus;
use latscope_core::units::{count_with_noun, format_count, format_percent, format_value};
use latscope_judge::gate::{GateCheck, GateResult};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Number of checks that a terminal shows, unless all are asked for or more do not pass.
const MOST: usize = 30;

/// Returns the verdict, a table of the worst checks, and the reason of each that does not pass; with `all` the table
/// and the reason of every check.
pub fn format_text(gate: &GateResult, all: bool, options: &DisplayOptions) -> String {
    build_document(gate, all).to_text(options)
}

/// Returns the verdict and the table of all checks as Markdown, for the summary of a step.
pub fn format_markdown(gate: &GateResult) -> String {
    build_document(gate, true).to_markdown()
}

fn build_document(gate: &GateResult, all: bool) -> ViewDocument {
    let rows = limit_rows(gate);
    let failed = rows.iter().filter(|row| has_failed(row.check)).count();
    let most = if all { usize::MAX } else { failed.max(MOST) };
    let mut document = ViewDocument::default();
    document.add_heading(1, format!("latscope gate: {}", status_word(gate.status)));
    document.add_block(DocumentBlock::Text(BOLD, format_verdict(gate)));
    document.items(NOTE, notes(gate));
    document.items(NOTE, effects(gate).into_iter().chain(unjudged(gate)));
    document.add_in_forms(TERMINAL, DocumentBlock::Gap);
    document.add_table(build_table(&rows, most));
    document.add_in_forms(TERMINAL, DocumentBlock::Gap);
    for row in rows.iter().take(most).filter(|row| all || has_failed(row.check)) {
        for check in row.explained_checks(all) {
            let file = file_of_check(gate, check).map(|file| format!("{file}: ")).unwrap_or_default();
            document.add_in_forms(
                TERMINAL,
                DocumentBlock::Item(status_mark(check.status), format!("{file}{}", check.sentence())),
            );
        }
    }
    document
}

/// A limit of a point, with its check in each run.
struct GateLimitRow<'a> {
    /// The check that decides: the worst, or of a limit for most results the middle one.
    check: &'a GateCheck,
    checks: Vec<&'a GateCheck>,
}

impl<'a> GateLimitRow<'a> {
    fn from_checks(mut checks: Vec<&'a GateCheck>) -> GateLimitRow<'a> {
        checks.sort_by(|a, b| a.share_of_limit().total_cmp(&b.share_of_limit()));
        let worst = checks.iter().rev().max_by_key(|check| check.status).copied().unwrap_or(checks[0]);
        // Of an even number the lower one: it is within the limit if half of the runs are.
        let middle = checks[(checks.len() - 1) / 2];
        let is_of_most = worst.is_of_most && !worst.is_about_every_event() && middle.status == worst.status;
        GateLimitRow { check: if is_of_most { middle } else { worst }, checks }
    }

    /// The ratio of the figure to its limit, in words.
    fn format_ratio(&self) -> String {
        let ratio = self.check.share_of_limit();
        if ratio > 0.0 && ratio.is_finite() { format!("{ratio:.2}") } else { String::new() }
    }

    /// The figure that the limit was learnt from.
    fn learnt(&self) -> String {
        self.check.learnt.map_or_else(String::new, |figure| format_value(figure, &self.check.unit))
    }

    /// Number of runs that hold the limit, of all: `4 of 5`.
    fn format_passing_runs(&self) -> String {
        let held = self.checks.iter().filter(|check| check.value.is_none() || check.share_of_limit() <= 1.0);
        let held = held.filter(|check| check.is_of_most || check.status == VerdictStatus::Pass).count();
        if self.checks.len() > 1 { format!("{held} of {}", self.checks.len()) } else { String::new() }
    }

    /// The checks whose reasons are shown: each one that did not pass, with `all` every one.
    fn explained_checks(&self, all: bool) -> Vec<&'a GateCheck> {
        let failed = |check: &&&GateCheck| all || has_failed(check);
        if self.check.is_of_most && !all {
            vec![self.check]
        } else {
            self.checks.iter().filter(failed).copied().collect()
        }
    }
}

/// The limits of all points, the worst first, and of one status those that are nearest to their limit.
fn limit_rows(gate: &GateResult) -> Vec<GateLimitRow<'_>> {
    let mut by_limit: BTreeMap<(usize, &str), Vec<&GateCheck>> = BTreeMap::new();
    for check in &gate.checks {
        by_limit.entry((check.limit, &check.id)).or_default().push(check);
    }
    let mut rows: Vec<GateLimitRow> = by_limit.into_values().map(GateLimitRow::from_checks).collect();
    rows.sort_by(|a, b| compare_checks(a.check, b.check));
    rows
}

fn build_table(rows: &[GateLimitRow], most: usize) -> DocumentTable {
    let rows = ColumnBuilder(rows);
    let verdict = |row: &GateLimitRow| {
        let mark = status_mark(row.check.status);
        Text::in_style(mark.style, format!("{}{}", mark.word, status_word(row.check.status)))
    };
    let columns = vec![
        rows.left_aligned("point", |row| &row.check.title),
        rows.right("seen", |row| row.check.format_measured()).rank(1),
        rows.left_aligned("limit", |row| row.check.format_requirement()).rank(2),
        rows.right("ratio", GateLimitRow::format_ratio).rank(3),
        rows.right("learnt", GateLimitRow::learnt).rank(5),
        rows.right("runs hold", GateLimitRow::format_passing_runs).rank(4),
        rows.left_aligned("verdict", verdict),
        rows.left_aligned("why", |row| &row.check.text).for_forms(MARKDOWN),
    ];
    DocumentTable { most, ..DocumentTable::new(columns) }
}

/// The checks, the worst first.
fn worst_first(gate: &GateResult) -> Vec<&GateCheck> {
    let mut checks: Vec<&GateCheck> = gate.checks.iter().collect();
    checks.sort_by(|a, b| compare_checks(a, b));
    checks
}

/// Order of two checks: by status, then what is about no point, then by how near the figure is to its limit.
fn compare_checks(a: &GateCheck, b: &GateCheck) -> Ordering {
    let status = b.status.cmp(&a.status).then(a.is_of_point().cmp(&b.is_of_point()));
    status.then(b.share_of_limit().total_cmp(&a.share_of_limit()))
}

/// Returns the verdict: `Gate: exceeded. 3 limits checked in 1 run: 1 exceeded, 0 inconclusive, 2 pass.`
fn format_verdict(gate: &GateResult) -> String {
    let counts = &gate.counts;
    // What is noted of two sides calls them A and B.
    let baseline = match gate.baseline.len() {
        0 => String::new(),
        runs => format!(" (B), against {} of the baseline (A)", count_with_noun(runs as u64, "run")),
    };
    format!(
        "Gate: {}. {} in {}{baseline}: {} exceeded, {} inconclusive, {} pass.",
        status_word(gate.status),
        count_with_noun(gate.checks.len() as u64, "check"),
        count_with_noun(gate.runs.len() as u64, "run"),
        format_count(counts.exceeded as u64),
        format_count(counts.inconclusive as u64),
        format_count(counts.pass as u64)
    )
}

/// Slowdowns, as ratios, of which the verdict says in how many figures they would be found.
const EFFECTS: [f64; 3] = [1.1, 1.3, 2.0];

/// Returns which slowdowns the runs would show, of checks against a baseline without a budget.
fn effects(gate: &GateResult) -> Option<String> {
    let least: Vec<f64> =
        gate.checks.iter().filter(|check| check.is_alone).map(|check| check.allowed).collect();
    let counts = EFFECTS.map(|effect| {
        let found = least.iter().filter(|least| **least < effect).count() as u64;
        format!("{} in {}", format_percent((effect - 1.0) * 100.0), format_count(found))
    });
    let all = format_count(least.len() as u64);
    (!least.is_empty())
        .then(|| format!("these runs would show a slowdown of {} of {all} figures", counts.join(", of ")))
}

/// Maximum number of points without a check that are named for one reason.
const NAMED: usize = 3;

/// Returns the points that no check judges, a line for each reason.
fn unjudged(gate: &GateResult) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for point in &gate.unjudged {
        by_reason.entry(&point.why).or_default().push(&point.title);
    }
    let line = |(why, titles): (&str, Vec<&str>)| {
        let more = titles.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!(
            "not judged, {why}: {}{more}",
            titles[..titles.len() - titles.len().saturating_sub(NAMED)].join("; ")
        )
    };
    by_reason.into_iter().map(line).collect()
}

/// Returns the file of a check, if there are several files.
fn file_of_check<'a>(gate: &'a GateResult, check: &GateCheck) -> Option<&'a str> {
    let run = check.run.filter(|_| gate.runs.len() > 1)?;
    gate.runs.get(run).map(|run| run.file.as_str())
}

/// Returns the ends of the file names, as long as necessary to distinguish the files.
fn endings(gate: &GateResult) -> Vec<String> {
    let all: Vec<Vec<&str>> = gate.runs.iter().map(|run| run.file.rsplit('/').collect()).collect();
    let ending = |at: usize| {
        let own = &all[at];
        let alike = |parts: usize| {
            all.iter()
                .enumerate()
                .any(|(i, other)| i != at && other.iter().take(parts).eq(own.iter().take(parts)))
        };
        let parts = (1..own.len()).find(|parts| !alike(*parts)).unwrap_or(own.len());
        own[..parts].iter().rev().copied().collect::<Vec<&str>>().join("/")
    };
    (0..all.len()).map(ending).collect()
}

/// Returns further differences and the facts that weaken the verdicts, a line each.
fn notes(gate: &GateResult) -> Vec<String> {
    let differs = gate.differences.iter().map(|one| format!("differs: {}", difference(one)));
    gate.warnings.iter().cloned().chain(differs).chain(gate.remarks.iter().cloned()).collect()
}

/// Returns the outcome of a check with its reason: `exceeded: 3 of 60,000 were above 50.0 µs; …`.
fn outcome(check: &GateCheck) -> String {
    format!("{}: {}", status_word(check.status), check.text)
}

fn has_failed(check: &GateCheck) -> bool {
    check.status != VerdictStatus::Pass
}
