//! A history on a terminal.

use super::words;
use crate::Options;
use crate::comparison::figures::{interval, quantity, ratio};
use crate::grid::{Column, Side, Text, grid, wrap};
use crate::style::{ALARM, BOLD, DIM, GOOD, HEADING, PLAIN, WARNING};
use latscope_core::statistics::median;
use latscope_core::units::format_time;
use latscope_judge::history::{Change, History, Machine, Moved, Point};

/// Maximum number of lines of a list, unless all are asked for.
const MOST: usize = 8;

/// Each machine with its changes; with `all` every figure of them, with `lines` the time line of each point.
pub fn text(history: &History, all: bool, lines: bool, options: &Options) -> String {
    let mut out = String::new();
    out += &list("!  ", &history.remarks, all, options);
    for machine in &history.machines {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &prose("", &words::machine(machine), BOLD, options);
        words::changes(history, machine).iter().for_each(|line| out += &prose("", line, PLAIN, options));
        for change in &machine.changes {
            out += &format!("\n{}", one(machine, change, all, options));
        }
        out += &drifts(machine, all, options);
        out += &odd(machine, all, options);
        if lines && !machine.points.is_empty() {
            out += &format!("\n{}", time_lines(machine, history.margin, options));
        }
    }
    out
}

fn prose(first: &str, text: &str, style: anstyle::Style, options: &Options) -> String {
    wrap(&Text::plain(first), text, style, options.width, options.color)
}

/// Returns the lines of a list of facts, at most [`MOST`] unless `all`.
fn list(first: &str, texts: &[String], all: bool, options: &Options) -> String {
    let kept = if all { texts.len() } else { texts.len().min(MOST) };
    let mut out: String = texts[..kept].iter().map(|text| prose(first, text, WARNING, options)).collect();
    if kept < texts.len() {
        out += &prose(first, &format!("… and {} more: --all shows them", texts.len() - kept), DIM, options);
    }
    out
}

fn one(machine: &Machine, change: &Change, all: bool, options: &Options) -> String {
    let Options { width, color, .. } = *options;
    let heading = Text::styled(BOLD, format!("change {}  ", change.id));
    let mut out = wrap(&heading, &words::place(machine, change), PLAIN, width, color);
    let with = words::with(change);
    let with = if with.is_empty() { vec![words::NOTHING_KNOWN.to_owned()] } else { with };
    with.iter().for_each(|line| out += &prose("≠  ", line, WARNING, options));
    let kept = if all { change.moved.len() } else { change.moved.len().min(MOST) };
    let moved = &change.moved[..kept];
    let each = |cell: &dyn Fn(&Moved) -> Text| moved.iter().map(cell).collect::<Vec<Text>>();
    let column = |heading: &str, side, cells| Column::new(Text::styled(HEADING, heading), side, cells);
    let figure = |moved: &Moved, value: f64| Text::plain(quantity(Some(value), words::unit(moved.figure)));
    let columns = [
        column("changed", Side::Left, each(&|one| Text::plain(&one.title).shortened((width / 3).max(34)))),
        column("figure", Side::Left, each(&|one| Text::plain(words::figure(one)))),
        column("before", Side::Right, each(&|one| figure(one, one.size.a))),
        column("after", Side::Right, each(&|one| figure(one, one.size.b))),
        column("ratio", Side::Right, each(&|one| size(one))),
        column("95 %", Side::Left, each(&|one| Text::plain(interval(Some(&one.size))))),
    ];
    out += &grid(&columns, 2, width, color);
    if kept < change.moved.len() {
        out +=
            &prose("", &format!("… and {} more: --all shows them", change.moved.len() - kept), DIM, options);
    }
    out
}

fn size(moved: &Moved) -> Text {
    Text::styled(if moved.size.ratio > 1.0 { ALARM } else { GOOD }, ratio(Some(&moved.size)))
}

fn drifts(machine: &Machine, all: bool, options: &Options) -> String {
    let texts: Vec<String> =
        words::drifts(machine).into_iter().map(|text| format!("drifts: {text}")).collect();
    if texts.is_empty() { String::new() } else { format!("\n{}", list("~  ", &texts, all, options)) }
}

fn odd(machine: &Machine, all: bool, options: &Options) -> String {
    let texts: Vec<String> = words::odd(machine).into_iter().map(|text| format!("odd: {text}")).collect();
    if texts.is_empty() { String::new() } else { format!("\n{}", list("·  ", &texts, all, options)) }
}

/// Returns a line for each point: its name, its medians over time, and their range.
fn time_lines(machine: &Machine, margin: f64, options: &Options) -> String {
    let Options { width, color, .. } = *options;
    let name = (width / 3).max(24);
    let room = width.saturating_sub(name + 24).max(10);
    let each = |cell: &dyn Fn(&Point) -> Text| machine.points.iter().map(cell).collect::<Vec<Text>>();
    let range = |point: &Point| {
        let ends = ends(point);
        let text = ends.map(|(low, high)| format!("{}-{}", format_time(low), format_time(high)));
        Text::plain(text.unwrap_or_default())
    };
    let columns = [
        Column::new(
            Text::styled(HEADING, "p50 over the runs"),
            Side::Left,
            each(&|point| Text::plain(&point.title).shortened(name)),
        ),
        Column::new(
            Text::default(),
            Side::Left,
            each(&|point| Text::plain(spark(point, machine.runs.len(), room, margin))),
        ),
        Column::new(Text::styled(HEADING, "from-to"), Side::Left, each(&range)),
    ];
    let mut out = grid(&columns, 2, width, color);
    out += &wrap(&Text::default(), "│ changed · not measured, or not judged", DIM, width, color);
    out
}

/// Returns the medians that can be trusted.
fn trusted(point: &Point) -> impl Iterator<Item = (usize, f64)> {
    let all = point.runs.iter().zip(&point.p50).zip(&point.trusted);
    all.filter(|((_, ns), trusted)| **trusted && **ns > 0.0).map(|((run, ns), _)| (*run, f64::from(*ns)))
}

fn ends(point: &Point) -> Option<(f64, f64)> {
    let medians = || trusted(point).map(|(_, ns)| ns);
    Some((medians().reduce(f64::min)?, medians().reduce(f64::max)?))
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns medians as bars on a log scale that is at least as high as the margin; several runs share a bar if
/// there are more runs than `room`.
pub(super) fn spark(point: &Point, runs: usize, room: usize, margin: f64) -> String {
    let Some((low, high)) = ends(point) else { return "·".repeat(runs.min(room)) };
    let cells = runs.min(room.saturating_sub(point.changes.len()).max(1)).max(1);
    let cell_of = |run: usize| run * cells / runs.max(1);
    let mut bars: Vec<Vec<f64>> = vec![Vec::new(); cells];
    trusted(point).for_each(|(run, ns)| bars[cell_of(run)].push(ns));
    // The middle of what hardly moves is in the middle.
    let (middle, half) = ((low * high).sqrt(), ((high / low).ln() / 2.0).max(margin.ln_1p()));
    let level = |ns: f64| (((ns / middle).ln() / half + 1.0) / 2.0 * 7.0).round().clamp(0.0, 7.0) as usize;
    let mut out = String::new();
    for (cell, bar) in bars.iter().enumerate() {
        if point.changes.iter().any(|run| cell_of(*run) == cell) {
            out.push('│');
        }
        out.push(median(bar).map_or('·', |ns| LEVELS[level(ns)]));
    }
    out
}
