use super::{csv, html, markdown, text};
use crate::Options;
use latscope_core::fixture;
use latscope_core::report::Report;
use latscope_judge::compare::{Comparison, Verdict, compare};
use latscope_judge::runs::Run;
use unicode_width::UnicodeWidthStr;

/// Runs of a report whose times are longer by a factor of their own, of which the last are also longer by `factor`.
fn side(report: &Report, factor: f64, runs: usize) -> Vec<Run> {
    let run = |at: usize| {
        let mut report = report.clone();
        report.run_id = format!("{factor}-{at}");
        for m in &mut report.measurements {
            let noise = 1.0 + 0.001 * ((at * 7) % 5) as f64;
            let by = if m.probe.starts_with("sync.") { factor * noise } else { noise };
            let ns = m.summary.p50.unwrap_or(1.0) * by;
            m.rounds = (0..4)
                .map(|_| latscope_core::rounds::Round { count: 9, p50: Some(ns), ..Default::default() })
                .collect();
            m.settle();
        }
        Run::of(report)
    };
    (0..runs).map(run).collect()
}

fn compared(report: &Report, factor: f64, runs: usize) -> Comparison {
    let (a, b) = (side(report, 1.0, runs), side(report, factor, runs));
    compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &Default::default())
}

#[test]
fn what_differs_is_named_in_every_view_within_its_width() {
    let found = compared(&fixture::report(), 1.5, 9);
    for width in [80, 120] {
        for all in [false, true] {
            let shown = text(&found, all, &Options { width, ..Options::default() });
            assert!(shown.lines().all(|line| line.width() <= width), "{shown}");
            assert!(shown.contains("slower") && shown.contains("expected to be false"), "{shown}");
            assert_eq!(shown.contains("  same\n"), all, "{shown}");
        }
    }
    let page = markdown(&found, false);
    assert!(page.contains("| p50 |") && page.contains("slower") && !page.contains("| same |"), "{page}");
    let table = String::from_utf8(csv(&found)).unwrap();
    let mut lines = ::csv::Reader::from_reader(table.as_bytes());
    let verdicts: Vec<String> = lines.records().map(|line| line.unwrap()[11].to_owned()).collect();
    assert!(verdicts.contains(&"slower".to_owned()) && verdicts.contains(&"same".to_owned()), "{table}");
}

#[test]
fn two_runs_differ_and_no_more_and_what_would_tell_is_said() {
    let shown = text(&compared(&fixture::report(), 1.5, 1), false, &Options::default());
    assert!(shown.contains("differs, up") && shown.contains("by chance"), "{shown}");
    assert!(!shown.contains("slower\n"), "{shown}");
}

#[test]
fn tails_and_what_a_family_is_about_are_beside_the_medians() {
    for report in [fixture::wake(), fixture::ipc::latency()] {
        let shown = text(&compared(&report, 1.0, 2), true, &Options::default());
        assert!(shown.contains("max") && shown.contains("not tested"), "{shown}");
    }
}

#[test]
fn the_page_has_what_differs_before_every_point() {
    let page = html(&compared(&fixture::report(), 1.5, 9));
    let (before, every) = page.split_once("Every point").unwrap();
    assert!(before.contains(">slower<") && !before.contains(">same<"), "{before}");
    assert!(every.contains(">same<"));
}

#[test]
fn nothing_of_a_result_is_markup_in_the_page() {
    let mut report = fixture::report();
    report.machine.name = "<script>alert(1)</script>".to_owned();
    report.measurements.iter_mut().for_each(|m| m.title = "<b>\"'&".to_owned());
    let page = html(&compared(&report, 1.5, 2));
    assert!(
        page.contains("&lt;b&gt;&quot;&#39;&amp;") && !page.contains("<script>") && !page.contains("<b>\"")
    );
}

#[test]
fn a_narrow_terminal_keeps_the_verdict() {
    let report = fixture::report();
    let found = compared(&report, 1.5, 9);
    let whole = text(&found, true, &Options { width: 200, ..Options::default() });
    let verdicts = |text: &str| {
        ["  slower", "  same", " (degraded)"].map(|word| text.lines().filter(|l| l.ends_with(word)).count())
    };
    for width in [40, 44, 50, 60, 70, 80] {
        let shown = text(&found, true, &Options { width, ..Options::default() });
        assert!(shown.lines().all(|line| line.width() <= width), "{width}:\n{shown}");
        assert_eq!(verdicts(&shown), verdicts(&whole), "{width}:\n{shown}");
    }
    assert!(verdicts(&whole)[0] > 0, "{whole}");
}

#[test]
fn small_numbers_keep_two_digits_and_one_is_singular() {
    let mut found = compared(&fixture::report(), 1.5, 9);
    found.counts.expected_false = 0.05;
    assert!(text(&found, false, &Options::default()).contains("at most 0.05 is expected"));
    found.points.truncate(1);
    (found.points[0].verdict, found.points[0].would_tell) = (Verdict::CannotTell, None);
    let shown = text(&found, false, &Options { width: 200, ..Options::default() });
    assert!(shown.contains("what would: 1 is too near"), "{shown}");
}
