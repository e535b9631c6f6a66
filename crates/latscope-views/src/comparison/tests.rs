use super::{format_csv, format_markdown, format_text, html};
use crate::DisplayOptions;
use latscope_core::fixture;
use latscope_core::histogram::Histogram;
use latscope_core::report::Report;
use latscope_judge::compare::{ComparisonResult, ComparisonVerdict, compare_runs};
use latscope_judge::runs::RunResult;
use unicode_width::UnicodeWidthStr;

/// Returns runs of a report, each with a small factor of its own on the times. The times of `sync` probes are also
/// longer by `factor`.
fn side(report: &Report, factor: f64, runs: usize) -> Vec<RunResult> {
    let run = |at: usize| {
        let mut report = report.clone();
        report.run_id = format!("{factor}-{at}");
        for m in &mut report.measurements {
            let noise = 1.0 + 0.001 * ((at * 7) % 5) as f64;
            let by = if m.probe.starts_with("sync.") { factor * noise } else { noise };
            let ns = m.summary.p50.unwrap_or(1.0) * by;
            m.rounds = (0..4)
                .map(|_| latscope_core::rounds::RoundSummary {
                    count: 9,
                    p50: Some(ns),
                    ..Default::default()
                })
                .collect();
            m.derive_results();
        }
        RunResult::from_report(report)
    };
    (0..runs).map(run).collect()
}

fn compared(report: &Report, factor: f64, runs: usize) -> ComparisonResult {
    let (a, b) = (side(report, 1.0, runs), side(report, factor, runs));
    compare_runs(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &Default::default())
}

#[test]
fn what_differs_is_named_in_every_view_within_its_width() {
    let found = compared(&fixture::report(), 1.5, 9);
    for width in [80, 120] {
        for all in [false, true] {
            let shown = format_text(&found, all, &DisplayOptions { width, ..DisplayOptions::default() });
            assert!(shown.lines().all(|line| line.width() <= width), "{shown}");
            assert!(shown.contains("slower") && shown.contains("expected to be false"), "{shown}");
            assert_eq!(shown.contains("  same\n"), all, "{shown}");
        }
    }
    let page = format_markdown(&found, false);
    assert!(page.contains("| p50 |") && page.contains("slower") && !page.contains("| same |"), "{page}");
    let table = String::from_utf8(format_csv(&found)).unwrap();
    let mut lines = ::csv::Reader::from_reader(table.as_bytes());
    let verdicts: Vec<String> = lines.records().map(|line| line.unwrap()[11].to_owned()).collect();
    assert!(verdicts.contains(&"slower".to_owned()) && verdicts.contains(&"same".to_owned()), "{table}");
}

#[test]
fn two_runs_differ_and_no_more_and_what_would_tell_is_said() {
    let shown = format_text(&compared(&fixture::report(), 1.5, 1), false, &DisplayOptions::default());
    assert!(shown.contains("differs, up") && shown.contains("by chance"), "{shown}");
    assert!(!shown.contains("slower\n"), "{shown}");
}

#[test]
fn the_number_of_runs_that_would_decide_is_that_of_a_trial() {
    let mut told = 0;
    for (factor, runs) in [(1.5, 1), (1.5, 2), (1.5, 3), (1.05, 3), (1.05, 9)] {
        let found = compared(&fixture::report(), factor, runs);
        let judged = latscope_judge::trial::judge_effect(&found);
        let Some(most) = judged.runs.filter(|_| !judged.told_is_of_tails()) else { continue };
        told += 1;
        let shown = format_text(&found, false, &DisplayOptions { width: 400, ..DisplayOptions::default() });
        let line = shown.lines().find(|line| line.contains("would decide")).unwrap();
        let numbers: Vec<usize> =
            line.split("with ").skip(1).filter_map(|rest| rest.split_once(" runs")?.0.parse().ok()).collect();
        assert_eq!(numbers.iter().max(), Some(&most), "{line}");
        let points: usize = line
            .split(": ")
            .nth(1)
            .unwrap()
            .split(", ")
            .filter(|part| part.contains(" runs a side"))
            .map(|part| part.split(' ').next().unwrap().parse::<usize>().unwrap())
            .sum();
        assert_eq!(points, judged.told_by_runs, "{line}");
    }
    assert!(told >= 2, "{told}");
}

#[test]
fn nothing_is_the_same_beside_other_loads() {
    let beside = |others: f64, factor: f64| {
        let mut runs = side(&fixture::report(), factor, 9);
        for run in &mut runs {
            let account = latscope_core::report::Account { others, ..Default::default() };
            run.report.activity =
                Some(latscope_core::report::Account { cpus: 2, wall_ns: 1_000_000_000, ..account });
        }
        runs
    };
    let (a, b) = (beside(0.02, 1.0), beside(0.6, 1.5));
    let [a, b] = [&a, &b].map(|runs| runs.iter().collect::<Vec<_>>());
    let found = compare_runs(&a, &b, &latscope_judge::compare::ComparisonOptions::default());
    assert!(found.unlike.is_some() && found.counts.verdicts[&ComparisonVerdict::CannotTell] > 0);
    assert_eq!(found.counts.verdicts.get(&ComparisonVerdict::Same), None);
    let shown = format_text(&found, false, &DisplayOptions { width: 400, ..DisplayOptions::default() });
    assert!(
        !shown.contains("by chance") && shown.contains("Undecided, because of what other processes"),
        "{shown}"
    );
}

#[test]
fn sides_without_a_common_point_are_named_as_such() {
    let (a, b) = (side(&fixture::report(), 1.0, 1), side(&fixture::wake(), 1.0, 1));
    let found = compare_runs(&[&a[0]], &[&b[0]], &latscope_judge::compare::ComparisonOptions::default());
    let shown = format_text(&found, false, &DisplayOptions::default());
    assert!(shown.contains("the two sides have no point in common"), "{shown}");
}

#[test]
fn what_same_assumes_is_said_where_it_is_assumed_only() {
    let same = |runs, margin| {
        let options = latscope_judge::compare::ComparisonOptions { same: margin, ..Default::default() };
        let [a, b] = [side(&fixture::report(), 1.0, runs), side(&fixture::report(), 1.0, runs)];
        let found = compare_runs(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &options);
        format_text(&found, false, &DisplayOptions::default())
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let assumes =
        "'same' assumes that runs differ by 2 % more than their rounds show; that was not measured.";
    assert!(same(1, 0.1).contains(assumes), "{}", same(1, 0.1));
    // Within a narrower margin one run a side shows nothing to be the same, and of two the scatter is measured.
    for (runs, margin) in [(1, 0.05), (2, 0.1)] {
        assert!(!same(runs, margin).contains("assumes"), "{}", same(runs, margin));
    }
}

#[test]
fn tails_and_what_a_family_is_about_are_beside_the_medians() {
    for report in [fixture::wake(), fixture::ipc::latency()] {
        let shown = format_text(&compared(&report, 1.0, 2), true, &DisplayOptions::default());
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
        page.contains("&lt;b&gt;&quot;&#39;&amp;")
            && !page.contains("<script>alert")
            && !page.contains("<b>\"")
    );
}

#[test]
fn a_narrow_terminal_keeps_the_verdict() {
    let report = fixture::report();
    let found = compared(&report, 1.5, 9);
    let whole = format_text(&found, true, &DisplayOptions { width: 200, ..DisplayOptions::default() });
    let verdicts = |text: &str| {
        ["  slower", "  same", " (degraded)"].map(|word| text.lines().filter(|l| l.ends_with(word)).count())
    };
    for width in [40, 44, 50, 60, 70, 80] {
        let shown = format_text(&found, true, &DisplayOptions { width, ..DisplayOptions::default() });
        assert!(shown.lines().all(|line| line.width() <= width), "{width}:\n{shown}");
        assert_eq!(verdicts(&shown), verdicts(&whole), "{width}:\n{shown}");
    }
    assert!(verdicts(&whole)[0] > 0, "{whole}");
}

#[test]
fn small_numbers_keep_two_digits_and_one_is_singular() {
    let mut found = compared(&fixture::report(), 1.5, 9);
    found.counts.expected_false = 0.05;
    assert!(format_text(&found, false, &DisplayOptions::default()).contains("at most 0.05 is expected"));
    found.points.truncate(1);
    (found.points[0].verdict, found.points[0].would_tell) = (ComparisonVerdict::CannotTell, None);
    let shown = format_text(&found, false, &DisplayOptions { width: 200, ..DisplayOptions::default() });
    let one = ["what would decide it: 1 is too near", "what would decide it: 1 scatters too far"];
    assert!(one.iter().any(|text| shown.contains(text)), "{shown}");
}

/// Returns three runs a side of wake-ups that take `slower` times as long in B.
pub(crate) fn single_events(slower: u64) -> ComparisonResult {
    let side = |name: &str, slower: u64| -> Vec<RunResult> {
        let run = |at: u64| {
            let mut report = fixture::wake();
            report.run_id = format!("{name}-{at}");
            for m in &mut report.measurements {
                let mut histogram = Histogram::new(1000);
                (0..4000).for_each(|i| histogram.record((1000 + i + 10 * at) * slower));
                m.histogram = histogram;
                m.derive_results();
            }
            RunResult::from_report(report)
        };
        (0..3).map(run).collect()
    };
    let (a, b) = (side("a", 1), side("b", slower));
    compare_runs(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &Default::default())
}

#[test]
fn the_page_draws_single_events_of_both_sides_and_their_ratio() {
    let found = single_events(2);
    let [first] = &found.quantiles[..] else { panic!("points with the same samples are drawn once") };
    assert_eq!(first.samples, [12_000, 12_000]);
    // Ten of 4,000 samples lie beyond 99.75 %.
    assert_eq!(first.quantiles.last().unwrap().q, 0.995);
    assert!(first.quantiles.iter().all(|one| (one.contrast.ratio - 2.0).abs() < 0.02));
    let page = html(&found);
    assert_eq!(page.matches("<figure>").count(), 2);
    for part in ["Latency by percentile of ", "B/A by percentile of ", "the same: ±5 %", "A, 12,000 samples"]
    {
        assert!(page.contains(part), "{part:?}");
    }
}

#[test]
fn the_only_pair_of_endpoints_is_compared_once_and_its_misses_have_one_name() {
    let found = compared(&fixture::ipc::latency(), 1.0, 3);
    let of = |transport: &str| -> Vec<String> {
        let ours = found.points.iter().filter(|point| point.probe == format!("ipc.{transport}"));
        ours.map(|point| format!("{}: {}", point.params["pair"], point.title)).collect()
    };
    assert_eq!(of("binder").len(), 6);
    let alone = of("unix-stream");
    assert_eq!(alone.len(), 2, "{alone:?}");
    assert!(alone.iter().all(|point| point.starts_with("all: ") && !point.ends_with("pairs")), "{alone:?}");
    assert!(!html(&found).contains(">misses<"));
}
