//! What all forms of a history say.

use latscope_core::units::{counted, format_share, format_time};
use latscope_judge::compare::environment::Difference;
use latscope_judge::history::{Change, FALSE_CHANGES, Figure, History, LEAST, Machine, Moved};
use std::collections::BTreeSet;

/// A time to the minute: `2026-11-22 14:38`.
pub(super) fn minute(started: &str) -> String {
    started.replace('T', " ").chars().take(16).collect()
}

/// The machine and its runs.
pub(super) fn machine(machine: &Machine) -> String {
    let hosts = machine.hosts.join(", ");
    let named = if machine.id.starts_with("host ") {
        machine.id.clone()
    } else {
        format!("{} ({hosts})", machine.id)
    };
    let time = |run: Option<&latscope_judge::history::Shown>| {
        run.map(|run| minute(&run.started)).unwrap_or_default()
    };
    format!(
        "machine {named}: {} of {}, {} to {}",
        counted(machine.runs.len() as u64, "run"),
        counted(machine.points.len() as u64, "point"),
        time(machine.runs.first()),
        time(machine.runs.last())
    )
}

/// How many changes there are, and what that is worth.
pub(super) fn changes(history: &History, machine: &Machine) -> Vec<String> {
    let mut lines = vec![format!(
        "{} in {} judged. A change is of at least {} ({} of how often tails are reached); of those found at most {} \
         are expected to be false (Benjamini-Hochberg over {}).",
        counted(machine.changes.len() as u64, "change"),
        counted(machine.judged as u64, "figure"),
        format_share(history.margin),
        format_share(history.tail_margin),
        format_share(FALSE_CHANGES),
        counted(machine.tests as u64, "test")
    )];
    let mut more = |number: usize, thing: &str, said: &str| {
        if number > 0 {
            lines.push(format!("{} {said}", counted(number as u64, thing)));
        }
    };
    more(machine.small, "smaller change", "or of unsure direction: not shown.");
    more(machine.too_few, "figure", &format!("not judged: fewer than {} trusted runs.", 2 * LEAST));
    more(machine.marked, "row", "degraded, unstable or cut short: shown in time lines, and not judged.");
    let early = machine.runs.iter().filter(|run| !run.complete).count();
    more(early, "run", "ended early: the rows measured in full count.");
    lines
}

/// Where a change is: `at 2026-11-22 14:38, run 21 of 40: 9 figures of 7 points`.
pub(super) fn place(machine: &Machine, change: &Change) -> String {
    let points: BTreeSet<&str> = change.moved.iter().map(|moved| moved.id.as_str()).collect();
    format!(
        "{}, run {} of {}: {} of {}",
        minute(&change.first.started),
        change.run + 1,
        machine.runs.len(),
        counted(change.moved.len() as u64, "figure"),
        counted(points.len() as u64, "point")
    )
}

/// What changed with it, a line each.
pub(super) fn with(change: &Change) -> Vec<String> {
    let line = |one: &Difference| {
        let value = |values: &[String]| if values.is_empty() { "–".to_owned() } else { values.join(", ") };
        format!("{}: {} → {}", one.what, value(&one.a), value(&one.b))
    };
    change.with.iter().map(line).collect()
}

/// Said where no known fact changed with the figures.
pub(super) const NOTHING_KNOWN: &str = "nothing that results record changed with it";

/// Which figure: `p50`, `beyond 63.0 µs`.
pub(super) fn figure(moved: &Moved) -> String {
    match (moved.figure, moved.beyond) {
        (Figure::P50, _) => "p50".to_owned(),
        (Figure::P99, _) => "p99".to_owned(),
        (Figure::Tail, None) => "tail".to_owned(),
        (Figure::Tail, Some(ns)) => format!("beyond {}", format_time(ns)),
    }
}

/// The unit of a figure, as `comparison` knows it.
pub(super) fn unit(figure: Figure) -> &'static str {
    if figure == Figure::Tail { "share" } else { "ns" }
}
