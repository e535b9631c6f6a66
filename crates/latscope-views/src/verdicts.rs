//! Criteria of the user and their outcomes, for every view of a judged report.

use super::document::{DocumentBlock, ListMarker, ViewDocument};
use super::style::{ALARM, GOOD, WARNING};
use latscope_core::events::{ProbeEventGroup, event_groups};
use latscope_core::report::{CriterionCheck, Measurement, Report, VerdictStatus};
use latscope_judge::verdict::{in_words, judged_measurements, report_status};

/// Returns the heading and an item for each check; empty without a check.
pub(super) fn verdicts_document(report: &Report) -> ViewDocument {
    let mut document = ViewDocument::default();
    if let Some(status) = report_status(report) {
        document.add_heading(2, format!("Verdict: {}", status_word(status)));
    }
    for (check, text) in criterion_lines(report) {
        document.add_block(DocumentBlock::Item(status_mark(check.status), text));
    }
    document
}

/// Returns each check with its line: `CPU 1: max ≤ 50.0 µs exceeded: …`.
pub(super) fn criterion_lines(report: &Report) -> Vec<(&CriterionCheck, String)> {
    let groups = event_groups(report);
    let judged: Vec<_> = judged_measurements(report).collect();
    let several = judged.len() > 1;
    let line = |m: &Measurement, check: &CriterionCheck| {
        let whose = if several { format!("{}: ", distinct_name(&groups, m)) } else { String::new() };
        format!(
            "{whose}{} {}: {}",
            in_words(&check.metric, check.limit, check.value),
            status_word(check.status),
            check.text
        )
    };
    judged
        .iter()
        .flat_map(|(m, verdict)| verdict.checks.iter().map(move |check| (*m, check)))
        .map(|(m, check)| (check, line(m, check)))
        .collect()
}

/// Returns the lines of the checks that have the worst status, if not all pass.
pub fn unmet(report: &Report) -> Vec<String> {
    let lines = criterion_lines(report);
    let worst =
        lines.iter().map(|(check, _)| check.status).max().filter(|status| *status != VerdictStatus::Pass);
    lines.into_iter().filter(|(check, _)| Some(check.status) == worst).map(|(_, line)| line).collect()
}

/// Returns a name that distinguishes a measurement from those of all probes.
fn distinct_name(groups: &[ProbeEventGroup], m: &Measurement) -> String {
    let found = groups.iter().find_map(|group| {
        let row = group.singles.iter().chain(&group.merged).find(|row| std::ptr::eq(row.m, m))?;
        Some(row_name(groups, group, &row.label))
    });
    found.unwrap_or_else(|| if m.title.is_empty() { m.probe.clone() } else { m.title.clone() })
}

/// Returns a name that distinguishes a row from those of all probes.
pub(super) fn row_name(groups: &[ProbeEventGroup], group: &ProbeEventGroup, label: &str) -> String {
    if groups.len() > 1 { format!("{}, {label}", group.probe) } else { label.to_owned() }
}

/// The word for a status.
pub(super) fn status_word(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::Pass => "pass",
        VerdictStatus::Inconclusive => "inconclusive",
        VerdictStatus::Exceeded => "exceeded",
    }
}

/// The mark of a status.
pub(super) fn status_mark(status: VerdictStatus) -> ListMarker {
    let (sign, style) = match status {
        VerdictStatus::Pass => ("  ✔ ", GOOD),
        VerdictStatus::Inconclusive => ("  ? ", WARNING),
        VerdictStatus::Exceeded => ("  ✘ ", ALARM),
    };
    ListMarker { sign, word: sign.trim_start(), style }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DisplayOptions, groups, markdown, survey, text};
    use latscope_core::fixture;
    use latscope_core::merged::{is_merged, is_part_of};
    use latscope_core::report::{Interrupted, ProgressAmount};
    use latscope_judge::verdict::{MetricCriterion, judge_report};

    #[test]
    fn a_limit_is_told_apart_from_the_figure_that_exceeds_it() {
        let mut report = alone();
        judge_report(&mut report, &[MetricCriterion::new("max", 3_411_999.0).unwrap()]);
        let line = &unmet(&report)[0];
        for part in ["max ≤ 3.411999 ms", "above 3.411999 ms", "took 3.412000 ms"] {
            assert!(line.contains(part), "{line}");
        }
    }

    /// Judges a report by a limit that nothing exceeds.
    fn passed(mut report: Report) -> Report {
        judge_report(&mut report, &[MetricCriterion::new("max", 1e12).unwrap()]);
        report
    }

    /// Returns a report with one thread, whose sum is that thread again.
    fn alone() -> Report {
        let mut report = fixture::wake();
        let all = report.measurements.iter().find(|m| is_merged(m)).unwrap().clone();
        let first = report.measurements.iter().find(|m| is_part_of(m, &all)).unwrap().clone();
        report.measurements = vec![first, all];
        report
    }

    #[test]
    fn every_view_has_the_verdict_once_with_one_row_and_with_several() {
        let options = DisplayOptions { width: 200, ..DisplayOptions::default() };
        for report in [passed(fixture::wake()), passed(alone())] {
            let views = [
                groups::format_events(&report, &options),
                survey::survey(&report, &[], &options),
                text::format_families(&report, &options),
                markdown::format_report(&report, &[], true, &options),
            ];
            for view in views {
                assert_eq!(view.matches("Verdict: pass").count(), 1, "{view}");
                assert_eq!(view.matches("max ≤ 1000 s pass: ").count(), 1, "{view}");
            }
        }
    }

    #[test]
    fn what_has_no_sample_is_judged_too() {
        let mut report = alone();
        for m in &mut report.measurements {
            m.summary.count = 0;
            m.histogram = latscope_core::histogram::Histogram::new(1000);
        }
        let text = verdicts_document(&passed(report)).to_text(&DisplayOptions::default());
        assert!(text.contains("Verdict: inconclusive") && text.contains("nothing was measured"), "{text}");
    }

    #[test]
    fn a_run_that_was_cut_short_has_not_passed() {
        let progress = ProgressAmount { done: 1, of: Some(2) };
        let mut report = passed(alone());
        report.finished = None;
        report.interrupted =
            Some(Interrupted { by: "SIGINT".to_owned(), points: progress, events: None, time: None });
        let text = verdicts_document(&report).to_text(&DisplayOptions::default());
        assert!(text.contains("Verdict: inconclusive"), "{text}");
    }
}
