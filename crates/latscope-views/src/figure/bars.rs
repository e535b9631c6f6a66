//! Points as rows: medians of a family as bars, with the interval in which the next run's is expected; transactions
//! against their deadline, with a dot for median, p99 and maximum of each.

use super::about::of_points;
use super::{
    Axis, AxisMark, BarChart, BarChartPart, BarChartRow, Drawing, FigureAxisScale, FigureAxisUnit, MarkAxis,
    NamedDrawing, PartKind, is_doubtful,
};
use crate::rows::family as family_of;
use latscope_core::catalogue::figures::Bars;
use latscope_core::catalogue::{ProbeCatalogue, families};
use latscope_core::merged::{MERGED, is_merged, without_pairs};
use latscope_core::ordered::index_or_push;
use latscope_core::param;
use latscope_core::report::{Measurement, Report};
use latscope_core::units::{format_size, format_time};
use latscope_judge::transactions::mode;
use std::collections::BTreeSet;

/// Maximum number of rows of a picture.
const MOST_ROWS: usize = 40;

/// Maximum length of an interval, in multiples of the longest bar; a longer interval ends at the edge.
const REACH: f64 = 1.6;

/// Returns the bars of a family; a single point has none.
pub(super) fn bar_figures(report: &Report, family: &str, catalogue: &ProbeCatalogue) -> Vec<NamedDrawing> {
    let named = |bars: &Bars| {
        let points = ordered_points(report, family, bars);
        let drawn = (2..=MOST_ROWS).contains(&points.len()).then(|| rows(report, bars, &points))?;
        Some(NamedDrawing::new(family, bars.id, Drawing::Rows(drawn)))
    };
    catalogue.family(family).into_iter().flat_map(|facts| facts.bars).filter_map(named).collect()
}

/// Returns the points in the order of the probes, and within a probe as measured.
fn ordered_points<'a>(report: &'a Report, family: &str, bars: &Bars) -> Vec<&'a Measurement> {
    // Payloads and rates have curves; where there are single ones only, they are here.
    let wanted = |m: &Measurement| {
        let summed = !MERGED.iter().any(|name| m.params.contains_key(*name)) || is_merged(m);
        let throughput = m.has_param_value(param::MODE, "throughput");
        summed && !throughput && m.typical().is_some()
    };
    let ours = |m: &&Measurement| family_of(&m.probe) == family && wanted(m);
    if bars.probes.is_empty() {
        return report.measurements.iter().filter(ours).collect();
    }
    bars.probes.iter().flat_map(|facts| report.of_probe(facts.id).filter(ours)).collect()
}

fn rows(report: &Report, bars: &Bars, points: &[&Measurement]) -> BarChart {
    let mut keys: Vec<String> = Vec::new();
    let labels = row_labels(points);
    let rows =
        points.iter().zip(labels).map(|(m, label)| bar_row(m, label, key_index(&mut keys, m, bars.key)));
    let rows = rows.collect();
    let longest = points.iter().filter_map(|m| m.typical()).fold(0.0, f64::max);
    let intervals = || points.iter().filter_map(|m| m.next_run()).map(|next| next.high);
    let end = intervals().fold(longest, f64::max).min(longest * REACH);
    let mut notes = of_points(report, points, "line with ends");
    if intervals().any(|high| high > end) {
        notes.push("lines that end at the right edge reach beyond it".to_owned());
    }
    BarChart {
        title: bars.title.to_owned(),
        notes,
        x: Axis::new(bars.label, FigureAxisScale::Linear, FigureAxisUnit::Nanoseconds)
            .with_ends((0.0, end * 1.02)),
        keys,
        rows,
        marks: Vec::new(),
    }
}

/// Returns the index of the key of a point, which is added if it is new.
fn key_index(keys: &mut Vec<String>, m: &Measurement, name: &str) -> usize {
    let key = m.params.get(name).map_or_else(|| format!("no {name}"), ToString::to_string);
    index_or_push(keys, key)
}

/// Returns the labels for the rows of these points: their titles, with the payload if several titles are equal.
/// Pairs are not named, since all points are of all pairs.
fn row_labels(points: &[&Measurement]) -> Vec<String> {
    let title = |m: &&Measurement| {
        let title = if m.title.is_empty() { &m.probe } else { &m.title };
        without_pairs(title).to_owned()
    };
    let titles: Vec<String> = points.iter().map(title).collect();
    let mut labels = titles.clone();
    for (m, label) in points.iter().zip(&mut labels) {
        let is_ambiguous = titles.iter().filter(|other| *other == label).count() > 1;
        if let Some(bytes) = m.numeric_param(param::PAYLOAD).filter(|_| is_ambiguous) {
            *label += &format!(", {}", format_size(bytes));
        }
    }
    labels
}

fn bar_row(m: &Measurement, label: String, key: usize) -> BarChartRow {
    let median = m.typical().unwrap_or_default();
    let part = |kind, from, to, label: &str| BarChartPart { kind, key, from, to, label: label.to_owned() };
    let next = m.next_run().map(|next| part(PartKind::Interval, next.low, next.high, "next run"));
    let bar = part(PartKind::Bar, 0.0, median, "median");
    BarChartRow {
        label,
        parts: [Some(bar), next].into_iter().flatten().collect(),
        value: format_time(median),
        doubtful: is_doubtful(m),
    }
}

/// Figures of a transaction, each with a dot.
const KEYS: [&str; 3] = ["median", "p99", "maximum"];

/// Returns the picture of the transactions of the family `ipc` that were timed one by one; `None` without any.
pub(super) fn deadlines(report: &Report, family: &str) -> Option<NamedDrawing> {
    // Only transactions have a mode.
    let timed = |m: &&Measurement| mode(m) == Some("latency") && is_merged(m) && m.typical().is_some();
    let points: Vec<&Measurement> =
        report.measurements.iter().filter(|_| family == families::IPC).filter(timed).collect();
    if points.is_empty() || points.len() > MOST_ROWS {
        return None;
    }
    let limits: BTreeSet<u64> =
        points.iter().filter_map(|m| m.numeric_param(param::DEADLINE)).filter(|ns| *ns > 0).collect();
    let label = |ns: u64| format!("deadline {}", format_time(ns as f64));
    let rows = BarChart {
        title: "Transactions against their deadline".to_owned(),
        notes: of_points(report, &points, ""),
        x: Axis::new("round trip", FigureAxisScale::Log10, FigureAxisUnit::Nanoseconds),
        keys: KEYS.map(str::to_owned).to_vec(),
        rows: points.iter().zip(row_labels(&points)).map(|(m, label)| dot_row(m, label)).collect(),
        marks: limits.into_iter().map(|ns| AxisMark::new(MarkAxis::X, ns as f64, label(ns))).collect(),
    };
    Some(NamedDrawing::new(family, "ipc-deadline", Drawing::Rows(rows)))
}

fn dot_row(m: &Measurement, label: String) -> BarChartRow {
    let values = [m.typical(), m.summary.p99, m.summary.max];
    let dot = |(key, value): (usize, Option<f64>)| {
        let at = value.filter(|value| *value > 0.0)?;
        Some(BarChartPart { kind: PartKind::Dot, key, from: at, to: at, label: String::new() })
    };
    BarChartRow {
        label,
        parts: values.into_iter().enumerate().filter_map(dot).collect(),
        value: m.summary.max.map(|max| format!("max {}", format_time(max))).unwrap_or_default(),
        doubtful: is_doubtful(m),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::catalogue;
    use latscope_core::fixture::{self, ipc};

    fn of(family: &str) -> BarChart {
        match bar_figures(&fixture::report(), family, catalogue()).remove(0).drawing {
            Drawing::Rows(rows) => rows,
            _ => panic!("no rows"),
        }
    }

    #[test]
    fn hand_offs_and_steps_of_threads_have_a_bar_each() {
        for family in ["sync", "thread"] {
            let rows = of(family);
            assert!(rows.rows.len() > 1, "{family}");
            let bars = |row: &BarChartRow| row.parts.iter().filter(|part| part.kind == PartKind::Bar).count();
            assert!(rows.rows.iter().all(|row| bars(row) == 1 && !row.value.is_empty()));
            let end = rows.x.ends.unwrap().1;
            assert!(
                rows.rows
                    .iter()
                    .flat_map(|row| &row.parts)
                    .all(|p| p.kind == PartKind::Interval || p.to <= end)
            );
        }
    }

    #[test]
    fn a_family_without_ways_beside_each_other_has_no_bars() {
        assert!(bar_figures(&fixture::report(), "memory", catalogue()).is_empty());
    }

    #[test]
    fn every_transport_has_its_figures_and_the_run_its_deadline() {
        let report = ipc::latency();
        let Some(Drawing::Rows(rows)) = deadlines(&report, "ipc").map(|named| named.drawing) else {
            panic!("no rows")
        };
        assert!(rows.rows.iter().all(|row| row.parts.last().is_some_and(|part| part.key == 2)));
        assert!(rows.marks.iter().all(|mark| mark.label.starts_with("deadline ")));
        assert_eq!(deadlines(&report, "remote"), None);
        assert_eq!(deadlines(&ipc::throughput(), "ipc"), None);
    }
}
