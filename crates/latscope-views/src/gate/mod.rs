//! A judged budget as text, Markdown, a JUnit file and annotations of GitHub, and the file of a learnt budget.

mod github;
mod junit;
mod learnt;
#[cfg(test)]
mod tests;

pub use github::annotations;
pub use junit::junit;
pub use learnt::{budget, few_runs};

use crate::Options;
use crate::column::{MARKDOWN, Rows, TERMINAL};
use crate::comparison::difference;
use crate::document::{Block, Document, NOTE, Table};
use crate::style::BOLD;
use crate::styled::Text;
use crate::verdicts::{mark, word};
use latscope_core::report::Status;
use latscope_core::units::{counted, format_count};
use latscope_judge::gate::{Check, Gate};

/// Number of checks that a terminal shows, unless all are asked for or more do not pass.
const MOST: usize = 30;

/// Returns the verdict, a table of the worst checks, and the reason of each that does not pass; with `all` the table
/// and the reason of every check.
pub fn text(gate: &Gate, all: bool, options: &Options) -> String {
    document(gate, all).written(options)
}

/// Returns the verdict and the table of all checks as Markdown, for the summary of a step.
pub fn markdown(gate: &Gate) -> String {
    document(gate, true).markdown()
}

fn document(gate: &Gate, all: bool) -> Document {
    let checks = worst_first(gate);
    let failed = checks.iter().filter(|check| has_failed(check)).count();
    let most = if all { usize::MAX } else { failed.max(MOST) };
    let mut document = Document::default();
    document.heading(1, format!("latscope gate: {}", word(gate.status)));
    document.add(Block::Text(BOLD, verdict(gate)));
    document.items(NOTE, notes(gate));
    document.on(TERMINAL, Block::Gap);
    document.table(table(gate, &checks, most));
    document.on(TERMINAL, Block::Gap);
    for check in checks.into_iter().take(most).filter(|check| all || has_failed(check)) {
        let file = file(gate, check).map(|file| format!("{file}: ")).unwrap_or_default();
        let text = format!("{file}{}", check.sentence());
        document.on(TERMINAL, Block::Item(mark(check.status), text));
    }
    document
}

fn table(gate: &Gate, checks: &[&Check], most: usize) -> Table {
    let rows = Rows(checks);
    let files = endings(gate);
    let run = |check: &Check| {
        let run = check.run.filter(|_| gate.runs.len() > 1);
        run.map_or("", |run| files[run].as_str())
    };
    let verdict = |check: &Check| {
        let mark = mark(check.status);
        Text::styled(mark.style, format!("{}{}", mark.word, word(check.status)))
    };
    let columns = vec![
        rows.left("point", |check| &check.title),
        rows.left("run", |check| run(check)).rank(3),
        rows.left("limit", |check| check.wanted()).rank(2),
        rows.right("seen", |check| check.seen()).rank(1),
        rows.left("verdict", |check| verdict(check)),
        rows.left("why", |check| &check.text).on(MARKDOWN),
    ];
    Table { most, ..Table::new(columns) }
}

/// The checks, the worst first.
fn worst_first(gate: &Gate) -> Vec<&Check> {
    let mut checks: Vec<&Check> = gate.checks.iter().collect();
    checks.sort_by_key(|check| std::cmp::Reverse(check.status));
    checks
}

/// Returns the verdict: `Gate: exceeded. 3 limits checked in 1 run: 1 exceeded, 0 inconclusive, 2 pass.`
fn verdict(gate: &Gate) -> String {
    let counts = &gate.counts;
    // What is noted of two sides calls them A and B.
    let baseline = match gate.baseline.len() {
        0 => String::new(),
        runs => format!(" (B), against {} of the baseline (A)", counted(runs as u64, "run")),
    };
    format!(
        "Gate: {}. {} in {}{baseline}: {} exceeded, {} inconclusive, {} pass.",
        word(gate.status),
        counted(gate.checks.len() as u64, "check"),
        counted(gate.runs.len() as u64, "run"),
        format_count(counts.exceeded as u64),
        format_count(counts.inconclusive as u64),
        format_count(counts.pass as u64)
    )
}

/// Returns the file of a check, if there are several files.
fn file<'a>(gate: &'a Gate, check: &Check) -> Option<&'a str> {
    let run = check.run.filter(|_| gate.runs.len() > 1)?;
    gate.runs.get(run).map(|run| run.file.as_str())
}

/// Returns the ends of the file names, as long as necessary to distinguish the files.
fn endings(gate: &Gate) -> Vec<String> {
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
fn notes(gate: &Gate) -> Vec<String> {
    let differs = gate.differences.iter().map(|one| format!("differs: {}", difference(one)));
    gate.warnings.iter().cloned().chain(differs).chain(gate.remarks.iter().cloned()).collect()
}

/// Returns the outcome of a check with its reason: `exceeded: 3 of 60,000 were above 50.0 µs; …`.
fn outcome(check: &Check) -> String {
    format!("{}: {}", word(check.status), check.text)
}

fn has_failed(check: &Check) -> bool {
    check.status != Status::Pass
}
