//! What to know about the run as a whole: the clock, the neighbours, the
//! scale.

use super::memory::level_rows;
use super::select::{is, is_measured, listed, listed_with, many, measured, typical};
use super::{FRAME_NS, finding};
use crate::report::{Finding, Measurement, Report};
use crate::statistics::{median, quantile};
use crate::units::{format_time, three_digits};
use std::collections::BTreeMap;

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    [clock_drift, busy_machine, frame].iter().filter_map(|conclusion| conclusion(report)).collect()
}

/// Whether cycles and nanoseconds disagree across the run: then the core clock
/// changed, and rows measured at different moments compare only in cycles.
fn clock_drift(report: &Report) -> Option<Finding> {
    let gigahertz: Vec<f64> = report
        .measurements
        .iter()
        .filter(|m| is_measured(m))
        .filter_map(|m| Some(m.summary.cycles.filter(|c| *c > 0.0)? / typical(m)))
        .collect();
    if gigahertz.len() < 5 {
        return None;
    }
    let (low, high) = (quantile(&gigahertz, 0.05)?, quantile(&gigahertz, 0.95)?);
    (high > 1.05 * low).then(|| {
        let text = format!(
            "The core clock varied between {} and {} GHz during the run (core cycles for each nanosecond of {} \
             points, the middle 90 %): compare rows measured at different moments in cycles.",
            three_digits(low),
            three_digits(high),
            gigahertz.len()
        );
        finding("clock-drift", text, &[("low_ghz", low), ("high_ghz", high)])
    })
}

/// Whether other work took part in the run.
fn busy_machine(report: &Report) -> Option<Finding> {
    let mut shares: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for m in report.measurements.iter().filter(|m| m.summary.count + m.summary.rejected > 0) {
        let all = m.summary.count + m.summary.rejected;
        shares.entry(&m.probe).or_default().push(100.0 * m.summary.rejected as f64 / all as f64);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let points: Vec<f64> = shares.values().flatten().copied().collect();
    if points.is_empty() || mean(&points) < 10.0 {
        return None;
    }
    let mut worst: Vec<(&str, f64)> = shares.iter().map(|(probe, of)| (*probe, mean(of))).collect();
    worst.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named: Vec<String> =
        worst.iter().take(3).map(|(probe, share)| format!("{probe} {share:.0} %")).collect();
    let text = format!(
        "The machine was busy: of the samples of a point {:.0} % on average were disturbed and rejected (most: {}). \
         What remains is undisturbed; rows that block or do I/O cannot be guarded so, and may contain the disturbance.",
        mean(&points),
        listed(&named)
    );
    Some(finding("busy-machine", text, &[("rejected_percent", mean(&points))]))
}

/// The rows beside the time a person notices: a frame of the screen.
fn frame(report: &Report) -> Option<Finding> {
    let rows: Vec<&Measurement> = report.measurements.iter().filter(|m| m.row && is_measured(m)).collect();
    if rows.len() < 5 {
        return None;
    }
    let figures: Vec<f64> = rows.iter().map(|m| typical(m)).collect();
    let middle = median(&figures)?;
    let thousand = figures.iter().filter(|ns| **ns * 1000.0 <= FRAME_NS).count();
    let mut text = format!(
        "A frame of a 60 fps screen lasts {}, about what a person begins to notice (15 ms). {thousand} of {} rows fit \
         in a thousand times or more",
        format_time(FRAME_NS),
        rows.len()
    );
    let mut values =
        vec![("frame_ns", FRAME_NS), ("median_row_ns", middle), ("rows_fitting_1000_times", thousand as f64)];
    let fitting = fitting(report);
    if !fitting.is_empty() {
        let counts: Vec<String> =
            fitting.iter().map(|(_, name, ns)| format!("{} {name}", many(FRAME_NS / ns))).collect();
        text += &format!("; it has room for {}", listed_with(&counts, "or"));
        values.extend(fitting.iter().map(|(key, _, ns)| (*key, *ns)));
    }
    text += ".";
    let slow: Vec<String> = rows
        .iter()
        .filter(|m| typical(m) > FRAME_NS / 10.0)
        .map(|m| format!("{} ({})", m.title, format_time(typical(m))))
        .collect();
    if !slow.is_empty() {
        let mut named = slow[..slow.len().min(3)].to_vec();
        named.extend((slow.len() > 3).then(|| format!("{} more", slow.len() - 3)));
        text += &format!(" What takes a tenth of it or more: {}.", listed(&named));
    }
    Some(finding("frame", text, &values))
}

/// Familiar operations of which the report has a number: key, plural, ns.
fn fitting(report: &Report) -> Vec<(&'static str, &'static str, f64)> {
    let level = |name: &str| level_rows(report).into_iter().find(|row| row.name == name).map(|row| row.ns);
    let first = |probe: &str| measured(report, probe).find(|m| !is(m, "mode", "cold")).map(typical);
    [
        ("l1_ns", "L1 loads", level("L1")),
        ("memory_ns", "loads from memory", level("memory")),
        ("syscall_ns", "system calls", first("syscall.getppid")),
        ("thread_total_ns", "threads created and joined", first("thread.total")),
        ("fsync_ns", "fsync calls", first("file.fsync")),
    ]
    .into_iter()
    .filter_map(|(key, name, ns)| Some((key, name, ns.filter(|ns| *ns < FRAME_NS)?)))
    .collect()
}
