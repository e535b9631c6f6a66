//! Points without a row in a table because of what the machine refused: no point is left out without notice.

use super::document::{FACT, ListMarker, ViewDocument};
use super::head::with_remedy;
use super::rows::family;
use latscope_core::merged::{is_merged, is_part_of};
use latscope_core::ordered::group_by_key;
use latscope_core::plan::Params;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report};
use latscope_core::units::{fold_cpus, without_cpu};
use std::collections::BTreeSet;

/// Heading of the points without a number.
pub(super) const MISSING: &str = "Not measured";

/// Heading of the doubtful points that no table has a row for.
pub(super) const ASIDE: &str = "Degraded or unstable points without a row";

const ITEM: ListMarker = ListMarker { sign: "  - ", ..FACT };

const NO_REASON: &str = "no reason is given";

/// Points without a figure, or doubtful, for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnmeasuredGroup {
    /// Names of the points, a few of them by title.
    pub what: String,
    /// Reason and, after an arrow, its remedy.
    pub why: String,
}

/// Returns the planned points that a run which ended early did not reach.
fn not_begun(report: &Report, wanted: impl Fn(&str) -> bool) -> Option<UnmeasuredGroup> {
    if !report.is_unfinished() {
        return None;
    }
    let begun: BTreeSet<(&str, &Params)> =
        report.measurements.iter().map(|m| (m.probe.as_str(), &m.params)).collect();
    let planned = report.plan.steps.iter().flat_map(|step| &step.points);
    let planned: BTreeSet<(&str, &Params)> = planned
        .map(|point| (point.probe.as_str(), &point.params))
        .filter(|(probe, _)| wanted(probe))
        .collect();
    let what = by_probe(planned.difference(&begun).map(|(probe, _)| *probe));
    (!what.is_empty())
        .then(|| UnmeasuredGroup { what, why: "the run ended before it came to them".to_owned() })
}

/// Returns the reason for which a point has no number, for points that give no reason themselves; `None` if no
/// number is missing.
fn absence_reason(m: &Measurement) -> Option<&'static str> {
    match m.quality.level {
        QualityLevel::Unsupported => Some(NO_REASON),
        _ if m.is_timed() => None,
        // Nothing happened, which is a result: a finding tells it.
        QualityLevel::Ok if m.joined_reasons().is_some() => None,
        _ if m.incomplete => Some("the run ended before it was measured"),
        _ => Some("no clean sample was taken: something else ran all the time"),
    }
}

/// Groups the points for which `select` returns a reason. That reason is used for points without a reason of
/// their own. A sum is represented by its members.
fn group_by_reason(
    report: &Report,
    select: impl Fn(&Measurement) -> Option<&'static str>,
) -> Vec<UnmeasuredGroup> {
    let is_told = |sum: &Measurement| {
        let mut members = report.measurements.iter().filter(|m| is_part_of(m, sum));
        is_merged(sum) && members.any(|m| select(m).is_some())
    };
    let reasons = report.measurements.iter().filter_map(|m| {
        let usual = select(m).filter(|_| !is_told(m))?;
        Some((with_remedy(m.joined_reasons().as_deref().unwrap_or(usual), m.joined_remedies().as_deref()), m))
    });
    fold_cpu_groups(group_by_key(reasons))
        .into_iter()
        .map(|(why, points)| UnmeasuredGroup { what: format_titles(&points), why })
        .collect()
}

/// Joins groups whose reasons differ in the CPU alone.
fn fold_cpu_groups(reasons: Vec<(String, Vec<&Measurement>)>) -> Vec<(String, Vec<&Measurement>)> {
    let same = group_by_key(reasons.into_iter().map(|(why, points)| (without_cpu(&why), (why, points))));
    let joined = same.into_iter().map(|(_, all)| {
        let (reasons, points): (Vec<String>, Vec<Vec<&Measurement>>) = all.into_iter().unzip();
        (fold_cpus(reasons).remove(0), points.concat())
    });
    joined.collect()
}

/// Titles of up to three points; of more, how many points each probe has.
fn format_titles(points: &[&Measurement]) -> String {
    let title = |m: &Measurement| match m.title.is_empty() {
        true => m.probe.clone(),
        false => format!("{} ({})", m.title, family(&m.probe)),
    };
    if points.len() <= 3 {
        return points.iter().map(|m| title(m)).collect::<Vec<_>>().join("; ");
    }
    by_probe(points.iter().map(|m| m.probe.as_str()))
}

/// Probes, each with how many points it has.
pub(super) fn by_probe<'a>(points: impl Iterator<Item = &'a str>) -> String {
    let counted = |(probe, points): (&str, Vec<()>)| match points.len() {
        1 => probe.to_owned(),
        count => format!("{probe} ({count} points)"),
    };
    group_by_key(points.map(|point| (point, ()))).into_iter().map(counted).collect::<Vec<_>>().join(", ")
}

/// Returns both lists; empty if both are empty.
pub(super) fn lists(report: &Report) -> ViewDocument {
    let [missing, doubtful] = missing_and_doubtful(report, |_| true, |m| !m.row);
    list_groups([(MISSING, missing), (ASIDE, doubtful)])
}

/// The points of a family that are missing or degraded.
pub(super) fn family_lists(report: &Report, name: &str) -> ViewDocument {
    let [missing, doubtful] = of_family(report, name, |_| true);
    list_groups([(MISSING, missing), ("! Degraded or unstable", doubtful)])
}

/// The points of a family that are missing, and those that are doubtful, as far as they are wanted.
pub(super) fn of_family(
    report: &Report,
    name: &str,
    wanted: impl Fn(&Measurement) -> bool,
) -> [Vec<UnmeasuredGroup>; 2] {
    missing_and_doubtful(report, |probe| family(probe) == name, wanted)
}

/// The points of some probes without a number, by reason, in the order measured, those that were not begun last; and
/// the doubtful points that are wanted.
pub(super) fn missing_and_doubtful(
    report: &Report,
    probes: impl Fn(&str) -> bool,
    wanted: impl Fn(&Measurement) -> bool,
) -> [Vec<UnmeasuredGroup>; 2] {
    let missing = group_by_reason(report, |m| absence_reason(m).filter(|_| probes(&m.probe)));
    let missing = missing.into_iter().chain(not_begun(report, &probes)).collect();
    let doubtful = group_by_reason(report, |m| {
        let is_doubtful = m.quality.level.is_doubtful() && m.is_timed();
        (probes(&m.probe) && is_doubtful && wanted(m)).then_some(NO_REASON)
    });
    [missing, doubtful]
}

/// Returns a heading and an item for each group, for lists that have any.
pub(super) fn list_groups(lists: [(&str, Vec<UnmeasuredGroup>); 2]) -> ViewDocument {
    let mut document = ViewDocument::default();
    for (heading, groups) in lists.into_iter().filter(|(_, groups)| !groups.is_empty()) {
        document.add_heading(2, heading);
        document.items(ITEM, groups.into_iter().map(|group| format!("{}: {}", group.what, group.why)));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DisplayOptions;
    use latscope_core::fixture;
    use latscope_core::plan::{MeasurementPoint, params};
    use latscope_core::quality::Reason;

    #[test]
    fn points_with_the_same_reason_share_a_line() {
        let report = fixture::report();
        let [missing, _] = missing_and_doubtful(&report, |_| true, |_| true);
        assert_eq!(missing.len(), 2, "{missing:?}");
        assert!(missing[0].what.contains("memory.tlb (4 points)"), "{missing:?}");
        assert!(missing[0].why.contains("→"));
    }

    #[test]
    fn points_that_a_run_did_not_come_to_are_named() {
        let mut report = fixture::wake();
        let never = |cpu: u64| MeasurementPoint {
            probe: "wake.never".to_owned(),
            revision: 1,
            params: params([("cpu", cpu.into())]),
            title: String::new(),
            row: true,
        };
        report.plan.steps[0].points.extend((0..3).map(never));
        assert!(
            missing_and_doubtful(&report, |_| true, |_| true)[0]
                .iter()
                .all(|group| !group.what.contains("wake.never")),
            "it ended by itself"
        );
        report.finished = None;
        let text = family_lists(&report, "wake")
            .to_text(&DisplayOptions { width: 200, ..DisplayOptions::default() });
        assert!(text.contains("wake.never (3 points): the run ended before it came to them"), "{text}");
    }

    #[test]
    fn reasons_of_many_cpus_share_a_line() {
        let mut report = fixture::wake();
        for (cpu, m) in report.measurements.iter_mut().enumerate() {
            let reason = format!("not kept on CPU {cpu}: refused");
            m.lower(Reason::new(QualityLevel::Degraded, "not-as-asked", reason, ""));
        }
        let text = family_lists(&report, "wake")
            .to_text(&DisplayOptions { width: 200, ..DisplayOptions::default() });
        assert_eq!(text.matches("not kept on").count(), 1, "{text}");
        assert!(text.contains("not kept on CPUs 0-"), "{text}");
    }

    #[test]
    fn no_sample_is_a_reason() {
        let mut report = fixture::report();
        let first = &mut report.measurements[0];
        first.summary = Default::default();
        assert!(
            super::missing_and_doubtful(&report, |_| true, |_| true)[0]
                .iter()
                .any(|group| group.why.contains("no clean sample"))
        );
    }
}
