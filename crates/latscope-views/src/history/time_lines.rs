//! Medians over the runs, a line for each point.

use crate::column::ColumnBuilder;
use crate::document::DocumentTable;
use latscope_core::statistics::median;
use latscope_core::units::format_time;
use latscope_judge::history::{MachineHistory, PointHistory};

/// Returns a row for each point: its name, its medians over time, and their range; as wide as a terminal of `width`
/// columns.
pub(super) fn build_table(machine: &MachineHistory, margin: f64, width: usize) -> DocumentTable {
    let room = width.saturating_sub((width / 3).max(24) + 24).max(10);
    let rows = ColumnBuilder(&machine.points);
    let range = |point: &PointHistory| {
        median_range(point)
            .map(|(low, high)| format!("{}-{}", format_time(low), format_time(high)))
            .unwrap_or_default()
    };
    let notes = vec!["│ changed · not measured, or not judged".to_owned()];
    let columns = vec![
        rows.left_aligned("p50 over the runs", |point| &point.title),
        rows.left_aligned("", |point| spark(point, machine.runs.len(), room, margin)),
        rows.left_aligned("from-to", range),
    ];
    DocumentTable { notes, ..DocumentTable::new(columns) }
}

/// Returns the medians that can be trusted.
fn trusted(point: &PointHistory) -> impl Iterator<Item = (usize, f64)> {
    let all = point.runs.iter().zip(&point.p50).zip(&point.trusted);
    all.filter(|((_, ns), trusted)| **trusted && **ns > 0.0).map(|((run, ns), _)| (*run, f64::from(*ns)))
}

fn median_range(point: &PointHistory) -> Option<(f64, f64)> {
    let medians = || trusted(point).map(|(_, ns)| ns);
    Some((medians().reduce(f64::min)?, medians().reduce(f64::max)?))
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns medians as bars on a log scale that is at least as high as the margin; several runs share a bar if
/// there are more runs than `room`.
pub(super) fn spark(point: &PointHistory, runs: usize, room: usize, margin: f64) -> String {
    let Some((low, high)) = median_range(point) else { return "·".repeat(runs.min(room)) };
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
