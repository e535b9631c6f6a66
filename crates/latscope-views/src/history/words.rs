//! Texts that all forms of a history share.

use crate::comparison::figures::quantity;
use latscope_core::redact::{is_redacted_machine, not_known};
use latscope_core::units::{count_with_noun, format_share, format_time};
use latscope_judge::history::{
    Change, ChangedFact, FALSE_CHANGES, History, HistoryFigureKind, MachineHistory, Moved, Odd, SHORTEST,
    runs_for_one,
};
use std::collections::{BTreeMap, BTreeSet};

/// A time to the minute: `2026-11-22 14:38`. Results of other programs may have none.
pub(super) fn minute(started: &str) -> String {
    if started.is_empty() {
        return "at an unknown time".to_owned();
    }
    started.replace('T', " ").chars().take(16).collect()
}

/// The machine and its runs.
pub(super) fn describe_machine(machine: &MachineHistory) -> String {
    let hosts = machine.hosts.join(", ");
    let named = match machine.id.strip_prefix("host ") {
        Some("") => "that results do not name".to_owned(),
        Some(name) if is_redacted_machine(name) => not_known(name),
        Some(name) => name.to_owned(),
        None => format!("{} ({hosts})", machine.id),
    };
    let mut dates = machine.runs.iter().map(|run| &run.started).filter(|started| !started.is_empty());
    let first = dates.next();
    let when = match (first, dates.next_back().or(first)) {
        (Some(first), Some(last)) if minute(first) == minute(last) => minute(first),
        (Some(first), Some(last)) => format!("{} to {}", minute(first), minute(last)),
        _ => minute(""),
    };
    format!(
        "machine {named}: {} of {}, {when}",
        count_with_noun(machine.runs.len() as u64, "run"),
        count_with_noun(machine.points.len() as u64, "point")
    )
}

/// Returns the number of changes and how reliable they are.
pub(super) fn changes(history: &History, machine: &MachineHistory, all: bool) -> Vec<String> {
    let mut lines = vec![format_change_counts(history, machine)];
    let needed = runs_for_one(machine.tests);
    if machine.judged > 0 && machine.runs.len() < needed {
        lines.push(format!(
            "The change of a single figure can be found from about {needed} runs on; with fewer, changes of many."
        ));
    }
    let mut more = |number: usize, thing: &str, said: &str| {
        if number > 0 {
            lines.push(format!("{} {said}", count_with_noun(number as u64, thing)));
        }
    };
    let listed = if all { "listed below." } else { "not shown (--all lists them)." };
    more(machine.small, "smaller change", &format!("or of unsure direction: {listed}"));
    more(machine.too_few, "figure", &format!("not judged: fewer than {SHORTEST} trusted runs."));
    more(machine.marked, "row", "degraded, unstable or cut short: shown in time lines, and not judged.");
    let early = machine.runs.iter().filter(|run| !run.complete).count();
    more(early, "run", "ended early: the rows measured in full count.");
    let undated = machine.runs.iter().filter(|run| run.started.is_empty()).count();
    more(
        undated,
        "run",
        "of another program without a date: before the others, in the order of their files' names.",
    );
    lines
}

/// Returns the number of changes, and of the figures among which they were found: figures are those of points, and each
/// is tested as a whole and, where it changed, in parts.
fn format_change_counts(history: &History, machine: &MachineHistory) -> String {
    if machine.judged == 0 {
        return "Nothing was judged.".to_owned();
    }
    format!(
        "{} found among {} of {}. A change is of at least {} ({} of how often tails are reached); of the changes at \
         most {} are expected to be false (Benjamini-Hochberg over {} of these figures and their parts).",
        count_with_noun(machine.changes.len() as u64, "change"),
        count_with_noun(machine.judged as u64, "judged figure"),
        count_with_noun(machine.judged_points as u64, "point"),
        format_share(history.margin),
        format_share(history.tail_margin),
        format_share(FALSE_CHANGES),
        count_with_noun(machine.tests as u64, "test")
    )
}

/// Returns the points that runs measured in several revisions of their probe, a line each: `addition, revision 1 in
/// runs 1 to 12, revision 2 in runs 13 to 24`. Each revision has a history of its own.
pub(super) fn revisions(machine: &MachineHistory) -> Vec<String> {
    let mut points: BTreeMap<&str, BTreeMap<u32, [usize; 2]>> = BTreeMap::new();
    let mut titles = BTreeMap::new();
    for point in &machine.points {
        let (Some(first), Some(last)) = (point.runs.first(), point.runs.last()) else { continue };
        let revisions = points.entry(&point.id).or_default();
        let runs = revisions.entry(point.revision).or_insert([*first, *last]);
        *runs = [runs[0].min(*first), runs[1].max(*last)];
        titles.insert(&*point.id, &*point.title);
    }
    let mut lines = Vec::new();
    for (id, revisions) in points.into_iter().filter(|(_, revisions)| revisions.len() > 1) {
        let title = titles[id];
        let mut line = if title.is_empty() { id.to_owned() } else { title.to_owned() };
        for (revision, [first, last]) in revisions {
            line += &format!(", revision {revision} in runs {} to {}", first + 1, last + 1);
        }
        lines.push(line);
    }
    lines
}

/// Returns the changes that are not reported, a line each: `addition p50, 1.03 at run 21 (2026-11-22 14:38)`.
pub(super) fn unreported_changes(machine: &MachineHistory) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &machine.smaller {
        let when = minute(&machine.runs[one.run].started);
        lines.push(format!(
            "{} {}, ratio {:.3} at run {} ({when})",
            one.title,
            figure_kind_name(one.figure),
            one.ratio,
            one.run + 1
        ));
    }
    lines
}

/// Returns the place of a change: `at 2026-11-22 14:38, run 21 of 40: 9 figures of 7 points`.
pub(super) fn describe_place(machine: &MachineHistory, change: &Change) -> String {
    let points: BTreeSet<&str> = change.moved.iter().map(|moved| moved.id.as_str()).collect();
    format!(
        "{}, run {} of {}: {} of {}",
        minute(&change.first.started),
        change.run + 1,
        machine.runs.len(),
        count_with_noun(change.moved.len() as u64, "figure"),
        count_with_noun(points.len() as u64, "point")
    )
}

/// Returns the facts that changed with the figures, a line each, or that there are none.
pub(super) fn changed_facts(change: &Change) -> Vec<String> {
    let unlike = change.unlike.iter().map(|why| format!("inconclusive: {why}"));
    let known: Vec<String> = change.with.iter().map(|fact| format_fact(change, fact)).chain(unlike).collect();
    if known.is_empty() { vec!["nothing that results record changed with it".to_owned()] } else { known }
}

/// A fact that changed, and where, if that is not the run from which on the figures differ.
fn format_fact(change: &Change, fact: &ChangedFact) -> String {
    let value = |values: &[String]| if values.is_empty() { "–".to_owned() } else { values.join(", ") };
    let difference = &fact.difference;
    let text = format!("{}: {} → {}", difference.what, value(&difference.a), value(&difference.b));
    if fact.run == change.run {
        return text;
    }
    let [run, first, last] = [fact.run, change.within[0], change.within[1]].map(|run| run + 1);
    format!("{text} at run {run}; the change may be at any of the runs {first} to {last}")
}

/// Returns the name of the kind of a figure.
pub(super) fn figure_kind_name(figure: HistoryFigureKind) -> &'static str {
    match figure {
        HistoryFigureKind::P50 => "p50",
        HistoryFigureKind::P99 => "p99",
        HistoryFigureKind::Tail => "tail",
    }
}

/// Returns the name of a figure: `p50`, `beyond 63.0 µs`.
pub(super) fn figure_name(moved: &Moved) -> String {
    match moved.beyond {
        Some(ns) if moved.figure == HistoryFigureKind::Tail => format!("beyond {}", format_time(ns)),
        _ => figure_kind_name(moved.figure).to_owned(),
    }
}

/// The unit of a figure, as `comparison` knows it.
pub(super) fn unit(figure: HistoryFigureKind) -> &'static str {
    if figure == HistoryFigureKind::Tail { "share" } else { "ns" }
}

/// The figures that move slowly, a line each: `timer wake-up p50, 4.10 µs to 4.90 µs from 2026-11-22 14:38 to …`.
pub(super) fn drifts(machine: &MachineHistory) -> Vec<String> {
    let mut lines = Vec::new();
    for drift in &machine.drifts {
        let [from, to] = [drift.from, drift.to].map(|value| quantity(Some(value), unit(drift.figure)));
        let [first, last] = drift.runs.map(|run| minute(&machine.runs[run].started));
        let name = figure_kind_name(drift.figure);
        lines.push(format!("{} {name}, {from} to {to} from {first} to {last}", drift.title));
    }
    lines
}

/// Number of medians of an odd run that are named, unless all are asked for.
const NAMED: usize = 3;

/// The odd runs, a line each: `7.json (2026-11-22 14:38), 12 of 139 medians: addition, …`.
pub(super) fn unusual_runs(machine: &MachineHistory, all: bool) -> Vec<String> {
    let titles: BTreeMap<&str, &str> =
        machine.points.iter().map(|point| (point.id.as_str(), point.title.as_str())).collect();
    let line = |odd: &Odd| odd_run(machine, odd, &titles, if all { usize::MAX } else { NAMED });
    machine.odd.iter().map(line).collect()
}

/// An odd run with the titles of at most so many points.
fn odd_run(machine: &MachineHistory, odd: &Odd, titles: &BTreeMap<&str, &str>, most: usize) -> String {
    let run = &machine.runs[odd.run];
    let named: Vec<&str> =
        odd.points.iter().take(most).map(|id| titles.get(&**id).map_or(&**id, |t| t)).collect();
    format!(
        "{} ({}), {} of {}: {}{}",
        run.name,
        minute(&run.started),
        odd.points.len(),
        count_with_noun(odd.of as u64, "median"),
        named.join(", "),
        if odd.points.len() > named.len() { ", …" } else { "" }
    )
}
