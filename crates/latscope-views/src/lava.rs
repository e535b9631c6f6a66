//! A report as the signals of a test shell of LAVA, which reads them on the console of the board.

use latscope_core::param;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{BEYOND, Measurement, Report, Sampling, VerdictStatus};
use latscope_judge::verdict::is_cut_short;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Returns a line for each figure: the median, the 99th percentile and, of single events, the largest sample, in ns,
/// and of periodic ones the number of missed activations. A figure with a criterion has the result of the criterion.
/// Any other figure of a point that is not to be trusted in full is `unknown`; a point that was not measured is `skip`.
/// The criteria of a point are a test case of their own. Nothing of a run that ended early is `pass`.
pub fn format_report(report: &Report) -> String {
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    let cut_short = is_cut_short(report);
    for m in &report.measurements {
        let id = id(m);
        if seen.insert(id.clone()) {
            signals(&mut text, &id, m, cut_short || m.incomplete);
        }
    }
    text
}

/// Adds the signals of a measurement; `early` is true if it, or its run, ended early.
fn signals(text: &mut String, id: &str, m: &Measurement, early: bool) {
    let result = match m.quality.level {
        QualityLevel::Ok => "pass",
        QualityLevel::Unstable | QualityLevel::Degraded => "unknown",
        QualityLevel::Unsupported => "skip",
    };
    let mut add = |part: &str, result: &str, more: &str| {
        let result = if early && result == "pass" { "unknown" } else { result };
        writeln!(text, "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={id}.{part} RESULT={result}{more}>")
            .expect("memory can be written to");
    };
    let longest = if m.sampling == Sampling::Event { m.summary.max } else { None };
    for (part, value) in [("p50", m.summary.p50), ("p99", m.summary.p99), ("max", longest)] {
        match value {
            Some(ns) => {
                let result = criterion_result(m, part).unwrap_or(result);
                add(part, result, &format!(" MEASUREMENT={ns} UNITS=ns"));
            }
            None if part == "p50" && m.is_timed() => {
                add(part, criterion_result(m, part).unwrap_or("unknown"), "")
            }
            None if part == "p50" => add(part, "skip", ""),
            None => {}
        }
    }
    if m.sampling == Sampling::Event && m.summary.count > 0 && m.params.contains_key(param::INTERVAL) {
        let missed = format!(" MEASUREMENT={} UNITS=count", m.summary.missed);
        add("missed", criterion_result(m, "missed").unwrap_or(result), &missed);
    }
    if let Some(beyond) = m.values.get(BEYOND) {
        add(BEYOND, result, &format!(" MEASUREMENT={} UNITS=count", beyond.value));
    }
    if let Some(verdict) = &m.verdict {
        add("criteria", status_word(verdict.status), "");
    }
}

/// Returns the result of the criteria on a figure; `None` without any.
fn criterion_result(m: &Measurement, part: &str) -> Option<&'static str> {
    let checks = m.verdict.iter().flat_map(|verdict| &verdict.checks);
    let of_part = checks.filter(|check| check.metric == part || part == "max" && check.metric == "threshold");
    of_part.map(|check| check.status).max().map(status_word)
}

fn status_word(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::Pass => "pass",
        VerdictStatus::Inconclusive => "unknown",
        VerdictStatus::Exceeded => "fail",
    }
}

/// Returns the name of a point, of characters that LAVA takes in the name of a test case.
fn id(m: &Measurement) -> String {
    let mut name = m.probe.clone();
    for (parameter, value) in &m.params {
        name += &format!("-{parameter}-{value}");
    }
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::report::{CriterionCheck, Verdict};

    /// Returns the pairs of a signal.
    fn pairs(line: &str) -> Vec<(&str, &str)> {
        let inside = line.strip_prefix("<LAVA_SIGNAL_TESTCASE ").unwrap().strip_suffix('>').unwrap();
        inside.split(' ').map(|pair| pair.split_once('=').unwrap()).collect()
    }

    #[test]
    fn every_measured_point_has_a_median_in_ns() {
        let report = fixture::report();
        let text = format_report(&report);
        let medians = text.lines().map(pairs).filter(|pairs| pairs[0].1.ends_with(".p50"));
        for (m, pairs) in report.measurements.iter().zip(medians) {
            assert!(pairs[0].1.starts_with(&m.probe), "{pairs:?}");
            match m.summary.p50 {
                Some(ns) => {
                    assert_eq!(&pairs[2..], [("MEASUREMENT", ns.to_string().as_str()), ("UNITS", "ns")])
                }
                None => assert_eq!(pairs[1..], [("RESULT", "skip")]),
            }
        }
    }

    #[test]
    fn results_say_how_far_a_figure_is_to_be_trusted() {
        let mut report = fixture::wake();
        report.measurements.truncate(1);
        for (level, status, result, criteria) in [
            (QualityLevel::Ok, VerdictStatus::Pass, "pass", "pass"),
            (QualityLevel::Unstable, VerdictStatus::Inconclusive, "unknown", "unknown"),
            (QualityLevel::Degraded, VerdictStatus::Exceeded, "unknown", "fail"),
        ] {
            let m = &mut report.measurements[0];
            m.quality.level = level;
            m.verdict = Some(Verdict { status, checks: Vec::new() });
            let text = format_report(&report);
            let results: Vec<&str> = text.lines().map(|line| pairs(line)[1].1).collect();
            let (last, figures) = results.split_last().unwrap();
            assert_eq!(*last, criteria);
            assert!(figures.len() >= 2 && figures.iter().all(|one| *one == result), "{text}");
        }
    }

    #[test]
    fn a_figure_with_a_criterion_has_its_result() {
        let check = |metric: &str, status| CriterionCheck {
            metric: metric.to_owned(),
            limit: 20_000.0,
            value: None,
            above: None,
            of: None,
            status,
            text: String::new(),
        };
        let mut report = fixture::wake();
        report.measurements.truncate(1);
        let mut results = |checks| {
            let verdict = Verdict { status: VerdictStatus::Exceeded, checks };
            report.measurements[0].verdict = Some(verdict);
            let text = format_report(&report);
            let mut figures = text.lines().map(pairs);
            let mut result = |part| figures.find(|pairs| pairs[0].1.ends_with(part)).unwrap()[1].1.to_owned();
            [result(".p50"), result(".p99"), result(".max")]
        };
        let [exceeded, unsure] = [VerdictStatus::Exceeded, VerdictStatus::Inconclusive];
        assert_eq!(results(vec![check("max", exceeded), check("p99", unsure)]), ["pass", "unknown", "fail"]);
        assert_eq!(results(vec![check("threshold", exceeded)]), ["pass", "pass", "fail"]);
        assert_eq!(
            results(vec![check("max", VerdictStatus::Pass), check("p99", exceeded)]),
            ["pass", "fail", "pass"]
        );
    }

    #[test]
    fn nothing_of_a_run_that_ended_early_passes() {
        let fails = |m: &Measurement| {
            m.verdict
                .iter()
                .flat_map(|v| &v.checks)
                .filter(|check| check.status == VerdictStatus::Exceeded)
                .count()
        };
        let cuts: [fn(&mut Report); 2] =
            [|report| report.finished = None, |report| report.measurements[0].incomplete = true];
        for cut in cuts {
            let mut report = fixture::wake();
            cut(&mut report);
            let exceeded: usize = report.measurements.iter().map(fails).sum();
            let text = format_report(&report);
            assert!(text.contains("RESULT=unknown") && !text.contains("RESULT=pass"), "{text}");
            assert_eq!(text.contains("RESULT=fail"), exceeded > 0, "what was exceeded stays so: {text}");
        }
        // If points are measured one after the other, only the one whose worker ended early is in doubt.
        let mut report = fixture::report();
        let [first, second] = [0, 1].map(|at| format!("{}.p50 RESULT=", id(&report.measurements[at])));
        report.measurements[0].incomplete = true;
        let text = format_report(&report);
        assert!(text.contains(&(first + "unknown")) && text.contains(&(second + "pass")), "{text}");
    }

    #[test]
    fn names_have_no_character_that_ends_a_signal() {
        let mut report = fixture::wake();
        report.measurements[0].probe = "a b=c>\n<LAVA_SIGNAL_ENDRUN\u{1b}".to_owned();
        let text = format_report(&report);
        let line = text.lines().next().unwrap();
        assert_eq!(pairs(line)[0].0, "TEST_CASE_ID");
        assert!(line.contains("TEST_CASE_ID=a_b_c___LAVA_SIGNAL_ENDRUN_"), "{line}");
        assert!(text.lines().all(|line| line.starts_with("<LAVA_SIGNAL_TESTCASE ")));
    }
}
