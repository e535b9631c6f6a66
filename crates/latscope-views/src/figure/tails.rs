//! Transactions against their deadline: median, p99 and maximum of each on a logarithmic axis.

use super::about::of_points;
use super::bars::labels;
use super::{Axis, Drawing, Mark, MarkAxis, Named, Part, PartKind, Row, Rows, Scale, Unit, is_doubtful};
use latscope_core::merged::is_merged;
use latscope_core::param;
use latscope_core::report::{Measurement, Report};
use latscope_core::units::format_time;
use latscope_judge::transactions::mode;
use std::collections::BTreeSet;

/// Maximum number of rows of a picture.
const MOST_ROWS: usize = 40;

const KEYS: [&str; 3] = ["median", "p99", "maximum"];

/// Returns the picture of the transactions of the family `ipc` that were timed one by one; `None` without any.
pub(super) fn figure(report: &Report, family: &str) -> Option<Named> {
    let timed = |m: &&Measurement| {
        m.probe.starts_with("ipc.") && mode(m) == Some("latency") && is_merged(m) && m.typical().is_some()
    };
    let points: Vec<&Measurement> =
        report.measurements.iter().filter(|_| family == "ipc").filter(timed).collect();
    if points.is_empty() || points.len() > MOST_ROWS {
        return None;
    }
    let deadlines: BTreeSet<u64> =
        points.iter().filter_map(|m| m.number(param::DEADLINE)).filter(|ns| *ns > 0).collect();
    let label = |ns: u64| format!("deadline {}", format_time(ns as f64));
    let rows = Rows {
        title: "Transactions against their deadline".to_owned(),
        notes: of_points(report, &points, ""),
        x: Axis::new("round trip", Scale::Log10, Unit::Nanoseconds),
        keys: KEYS.map(str::to_owned).to_vec(),
        rows: points.iter().zip(labels(&points)).map(|(m, label)| row(m, label)).collect(),
        marks: deadlines.into_iter().map(|ns| Mark::new(MarkAxis::X, ns as f64, label(ns))).collect(),
    };
    Some(Named::new(family, "ipc-deadline", Drawing::Rows(rows)))
}

fn row(m: &Measurement, label: String) -> Row {
    let values = [m.typical(), m.summary.p99, m.summary.max];
    let dot = |(key, value): (usize, Option<f64>)| {
        let at = value.filter(|value| *value > 0.0)?;
        Some(Part { kind: PartKind::Dot, key, from: at, to: at, label: String::new() })
    };
    Row {
        label,
        parts: values.into_iter().enumerate().filter_map(dot).collect(),
        value: m.summary.max.map(|max| format!("max {}", format_time(max))).unwrap_or_default(),
        doubtful: is_doubtful(m),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::ipc;

    #[test]
    fn every_transport_has_its_figures_and_the_run_its_deadline() {
        let report = ipc::latency();
        let Some(Drawing::Rows(rows)) = figure(&report, "ipc").map(|named| named.drawing) else {
            panic!("no rows")
        };
        assert!(rows.rows.iter().all(|row| row.parts.last().is_some_and(|part| part.key == 2)));
        assert!(rows.marks.iter().all(|mark| mark.label.starts_with("deadline ")));
        assert_eq!(figure(&report, "remote"), None);
        assert_eq!(figure(&ipc::throughput(), "ipc"), None);
    }
}
