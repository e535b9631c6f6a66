//! Causes of the longest events: a bar for each event, its parts by cause.

use super::about::subtitle_lines;
use super::{
    Axis, BarChart, BarChartPart, BarChartRow, FigureAxisScale, FigureAxisUnit, PartKind, is_doubtful,
};
use crate::blame;
use latscope_core::events::ProbeEventGroup;
use latscope_core::ordered::entry;
use latscope_core::report::{Cause, Outlier, Report};
use latscope_core::units::format_time;

/// Number of the longest events that are drawn.
const MOST: usize = 20;

/// Label of the time that no cause accounts for.
const REST: &str = "not accounted for";

/// The longest traced events of a probe; `None` without any.
pub(super) fn spike_figure(report: &Report, group: &ProbeEventGroup) -> Option<BarChart> {
    let mut traced: Vec<&Outlier> = group.whole_probe_rows().iter().flat_map(|row| &row.m.outliers).collect();
    traced.retain(|outlier| outlier.is_traced() && outlier.value > 0);
    traced.sort_by_key(|outlier| (std::cmp::Reverse(outlier.value), outlier.at));
    let all = traced.len();
    traced.truncate(MOST);
    if traced.is_empty() {
        return None;
    }
    let keys = cause_kinds(&traced);
    let mut notes = subtitle_lines(report, group);
    if all > MOST {
        notes.push(format!("the {MOST} longest of {all} with a known cause"));
    }
    Some(BarChart {
        title: format!("{}: what took the time of the longest events", group.probe),
        notes,
        x: Axis::new("latency", FigureAxisScale::Linear, FigureAxisUnit::Nanoseconds),
        rows: traced
            .iter()
            .map(|outlier| outlier_row(outlier, &keys, is_of_doubtful(group, outlier)))
            .collect(),
        keys,
        marks: Vec::new(),
    })
}

/// Returns the kinds of causes, the kind with the most time first.
fn cause_kinds(traced: &[&Outlier]) -> Vec<String> {
    let mut kinds: Vec<(String, u64)> = Vec::new();
    for cause in traced.iter().flat_map(|outlier| &outlier.cause) {
        *entry(&mut kinds, cause.kind.clone()) += cause.ns;
    }
    kinds.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let rest = traced.iter().any(|outlier| unexplained_ns(outlier) > 0).then(|| REST.to_owned());
    kinds.into_iter().map(|(kind, _)| kind).chain(rest).collect()
}

fn unexplained_ns(outlier: &Outlier) -> u64 {
    outlier.value.saturating_sub(outlier.cause.iter().map(|cause| cause.ns).sum())
}

/// Returns true if the row of an event is degraded or unstable.
fn is_of_doubtful(group: &ProbeEventGroup, outlier: &Outlier) -> bool {
    group.singles.iter().any(|row| is_doubtful(row.m) && row.m.outliers.contains(outlier))
}

fn outlier_row(outlier: &Outlier, keys: &[String], doubtful: bool) -> BarChartRow {
    let mut at = 0.0;
    let mut part = |kind: &str, label: String, ns: u64| {
        let key = keys.iter().position(|key| key == kind).unwrap_or_default();
        let from = at;
        at += ns as f64;
        BarChartPart { kind: PartKind::Bar, key, from, to: at, label }
    };
    let mut causes: Vec<&Cause> = outlier.cause.iter().collect();
    causes.sort_by_key(|cause| keys.iter().position(|key| *key == cause.kind));
    let mut parts: Vec<BarChartPart> =
        causes.into_iter().map(|cause| part(&cause.kind, blame::describe_cause(cause), cause.ns)).collect();
    if unexplained_ns(outlier) > 0 {
        parts.push(part(REST, REST.to_owned(), unexplained_ns(outlier)));
    }
    BarChartRow {
        label: format!("CPU {}, {:.3} s after the start", outlier.cpu, outlier.at as f64 / 1e9),
        parts,
        value: format_time(outlier.value as f64),
        doubtful,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::event_groups;
    use latscope_core::fixture;
    use latscope_core::quality::{QualityLevel, Reason};

    #[test]
    fn the_parts_of_an_event_add_up_to_it() {
        let mut report = fixture::wake();
        for m in &mut report.measurements {
            m.outliers.iter_mut().for_each(|outlier| outlier.cause.truncate(2));
        }
        let rows = spike_figure(&report, &event_groups(&report)[0]).unwrap();
        assert_eq!(rows.keys, ["thread", "irq", REST]);
        assert_eq!(rows.rows.len(), 1);
        let ends: Vec<f64> = rows.rows[0].parts.iter().map(|part| part.to).collect();
        assert_eq!(ends, [2_832_000.0, 3_242_000.0, 3_412_000.0]);
        assert_eq!(rows.rows[0].label, "CPU 1, 20.006 s after the start");
    }

    #[test]
    fn without_a_trace_there_is_no_picture() {
        let mut report = fixture::wake();
        report
            .measurements
            .iter_mut()
            .flat_map(|m| &mut m.outliers)
            .for_each(|outlier| outlier.cause.clear());
        assert_eq!(spike_figure(&report, &event_groups(&report)[0]), None);
    }

    #[test]
    fn events_of_a_degraded_row_are_hollow() {
        let mut report = fixture::wake();
        report.measurements[1].lower(Reason::new(QualityLevel::Degraded, "few-samples", "a test", ""));
        assert!(spike_figure(&report, &event_groups(&report)[0]).unwrap().rows[0].doubtful);
    }
}
