//! Distortions of the figures of a result, for a run that shows no table.

use super::head::{warning_lines, with_remedy};
use super::unmeasured::by_probe;
use latscope_core::merged::is_merged;
use latscope_core::ordered::{group_by_key, unique_items};
use latscope_core::quality::{CUT_SHORT, QualityLevel, Reason};
use latscope_core::report::{Measurement, Report};
use latscope_core::units::fold_cpus;
use std::collections::HashSet;

/// Returns the warnings, then a line for each kind of reason by which figures are degraded, with the points that have
/// it. What ended early is not distorted by that.
pub fn distortion_lines(report: &Report) -> Vec<String> {
    let warned: HashSet<&str> = report.warnings.iter().map(|warning| warning.id.as_str()).collect();
    let timed = report.measurements.iter().filter(|m| m.is_timed() && !is_merged(m));
    let kinds = group_by_key(timed.flat_map(|m| {
        let reasons = m.quality.reasons.iter().filter(|reason| distorts(reason, &warned));
        unique_items(reasons.map(|reason| reason.id.as_str())).into_iter().map(move |id| (id, m))
    }));
    let degraded = kinds.iter().map(|(id, points)| format_degraded(id, points));
    warning_lines(report).into_iter().chain(degraded).collect()
}

/// Returns true if a reason degrades a figure, and no warning of the report says so.
fn distorts(reason: &Reason, warned: &HashSet<&str>) -> bool {
    reason.level == QualityLevel::Degraded && reason.id != CUT_SHORT && !warned.contains(reason.id.as_str())
}

/// `degraded: wake.timer (2 points): SCHED_FIFO was refused → run as root`. Of several texts it has the first.
fn format_degraded(id: &str, points: &[&Measurement]) -> String {
    let reasons = points.iter().flat_map(|m| m.quality.reasons.iter().filter(|reason| reason.id == id));
    let texts = reasons.map(|reason| with_remedy(&reason.text, reason.remedy.as_deref()));
    let mut texts = fold_cpus(texts);
    let more = if texts.len() > 1 { "such as: " } else { "" };
    let what = by_probe(points.iter().map(|m| m.probe.as_str()));
    format!("degraded: {what}: {more}{}", texts.swap_remove(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::quality::{LOAD_ENDED, POLICY_REFUSED};
    use latscope_core::report::Warning;

    #[test]
    fn a_refused_policy_and_a_load_that_ended_are_named_once() {
        let mut report = fixture::wake();
        assert_eq!(distortion_lines(&report), [""; 0]);
        for (cpu, m) in report.measurements.iter_mut().filter(|m| !is_merged(m)).enumerate() {
            let text = format!("SCHED_FIFO was refused on CPU {cpu}");
            m.lower(Reason::new(QualityLevel::Degraded, POLICY_REFUSED, text, "run as root"));
            m.lower(Reason::new(QualityLevel::Degraded, LOAD_ENDED, "the load ended", ""));
            m.lower(Reason::new(QualityLevel::Degraded, CUT_SHORT, "the run ended", ""));
            m.lower(Reason::new(QualityLevel::Unstable, "rounds-drift", "it drifted", ""));
        }
        let text = "the load ended (code 1)".to_owned();
        report.warnings.push(Warning { id: LOAD_ENDED.to_owned(), text, remedy: None });
        let lines = distortion_lines(&report);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0], "the load ended (code 1)");
        assert!(lines[1].starts_with("degraded: wake.timer ("), "{lines:?}");
        assert!(lines[1].contains("SCHED_FIFO was refused on CPUs 0"), "{lines:?}");
        assert!(lines[1].ends_with(" → run as root"), "{lines:?}");
    }

    #[test]
    fn of_several_texts_the_first_is_an_example() {
        let mut report = fixture::wake();
        for (at, m) in report.measurements.iter_mut().filter(|m| !is_merged(m)).enumerate() {
            let text = if at == 0 { "waited 3 % of the time" } else { "waited 4 % of the time" };
            m.lower(Reason::new(QualityLevel::Degraded, "waited-for-a-cpu", text, ""));
        }
        let lines = distortion_lines(&report);
        assert!(lines[0].ends_with(" points): such as: waited 3 % of the time"), "{lines:?}");
    }
}
