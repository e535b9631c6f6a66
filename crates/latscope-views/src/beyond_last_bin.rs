//! Tests of every view of rows with values beyond the last bin of another program.

use super::*;
use latscope_core::histogram::{Histogram, HistogramBinning, Totals};
use latscope_core::plan::params;
use latscope_core::report::{BEYOND, Better, MeasuredQuantity, Report, Sampling};
use latscope_judge::compare::{ComparisonOptions as Settings, compare_runs};
use latscope_judge::runs::RunResult;

/// A result of one row, with bins of 10 µs and so many of 10,000 values beyond the last, 30 µs.
fn binned_report(beyond: u64) -> Report {
    let mut report = latscope_core::fixture::wake();
    report.measurements.truncate(1);
    report.run_id = format!("run-{beyond}");
    let m = &mut report.measurements[0];
    m.row = true;
    m.probe = latscope_core::catalogue::ids::WAKE_TIMERLAT.to_owned();
    m.params = params([("context", "thread".into()), ("cpu", 0u64.into())]);
    m.title = "timer latency, thread, CPU 0".to_owned();
    let totals = Totals { overflow: beyond, min: 21, max: 900, sum: 10_000 * 30 };
    let half = (10_000 - beyond) / 2;
    let counts = [(20, half), (30, 10_000 - beyond - half)];
    m.histogram = Histogram::from_counts(1_000_000, counts, totals).in_bins(HistogramBinning::of_width(10));
    m.sampling = Sampling::Event;
    (m.corrected, m.tested, m.account, m.rounds) = (None, None, None, Vec::new());
    let value = MeasuredQuantity { value: beyond as f64, unit: "count".to_owned(), better: Better::Less };
    m.values = [(BEYOND.to_owned(), value)].into();
    m.outliers.clear();
    m.quality.retain(|_| false);
    m.derive_results();
    report
}

#[test]
fn every_table_shows_a_median_beyond_the_last_bin() {
    let (whole, report) = (binned_report(10), binned_report(9_000));
    let narrow = DisplayOptions { width: 60, ..DisplayOptions::default() };
    for (name, text) in [
        ("every point", text::every_point(&report, "wake", &narrow)),
        ("groups", groups::tables(&report).to_text(&narrow)),
        ("markdown", markdown::format_report(&report, &[], true, &narrow)),
        ("page", html::report_page(&report, &[], narrow.catalogue)),
    ] {
        assert!(text.contains("> 30.0 µs") || text.contains("&gt; 30.0 µs"), "{name}: {text}");
    }
    let narrow = [text::every_point(&report, "wake", &narrow), groups::tables(&report).to_text(&narrow)];
    assert!(narrow.iter().all(|text| text.contains(BEYOND) && text.contains("9,000")), "{narrow:?}");
    for (ours, theirs, note) in [
        (&whole, &report, "its median is beyond the last bin, and longer than that"),
        (&report, &whole, "the median here is beyond the last bin, and longer than that"),
    ] {
        let rows = rows::sorted_rows(ours, &[theirs], &DisplayOptions::default());
        assert_eq!((rows.len(), rows[0].longer), (1, ours.run_id == report.run_id));
        let beside = rows[0].references.last().unwrap().as_ref().unwrap();
        assert_eq!((beside.same, beside.note.as_deref()), (false, Some(note)));
    }
}

#[test]
fn every_other_form_says_that_values_are_beyond_the_last_bin() {
    let report = binned_report(9_000);
    let groups = latscope_core::events::event_groups(&report);
    let figure = figure::percentile_figure(&report, &groups[0]).unwrap();
    assert!(
        figure.notes.iter().any(|note| note.starts_with("9,000 beyond the last bin")),
        "{:?}",
        figure.notes
    );
    let lava = lava::format_report(&report);
    assert!(
        lava.contains(".p50 RESULT=unknown>") && lava.contains(".beyond RESULT=pass MEASUREMENT=9000"),
        "{lava}"
    );
    let metrics = openmetrics::openmetrics(&report);
    let buckets: Vec<u64> = metrics
        .lines()
        .filter(|line| line.contains("latency_seconds_bucket"))
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    // A bucket that ends above the longest value has all.
    assert!(
        buckets.is_sorted() && buckets.iter().filter(|count| **count == 10_000).count() > 2,
        "{buckets:?}"
    );
    assert!(buckets.contains(&1_000), "{buckets:?}");
}

#[test]
fn wide_bins_are_a_condition_of_the_rows() {
    let heading = |report: &Report| groups::tables(report).to_markdown();
    assert!(heading(&binned_report(10)).contains("bins of 10.0 µs"), "{}", heading(&binned_report(10)));
    let mut fine = binned_report(10);
    let m = &mut fine.measurements[0];
    m.histogram = Histogram::from_counts(
        1_000,
        [(latscope_core::histogram::bucket_of(30_000).unwrap(), 9)],
        Totals { overflow: 0, min: 30_000, max: 30_000, sum: 270_000 },
    );
    m.histogram = m.histogram.clone().in_bins(HistogramBinning::of_width(100));
    m.derive_results();
    assert!(!heading(&fine).contains("bins of"), "of 100 ns at 30 µs: {}", heading(&fine));
}

#[test]
fn a_comparison_names_the_last_bin() {
    let runs =
        |beyond: u64| (0..6).map(|at| RunResult::from_report(binned_report(beyond + at))).collect::<Vec<_>>();
    let (a, b) = (runs(10), runs(9_000));
    let compared =
        compare_runs(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &Settings::default());
    let text = comparison::format_text(
        &compared,
        false,
        &DisplayOptions { width: 120, ..DisplayOptions::default() },
    );
    assert!(text.contains("> 30.0 µs"), "{text}");
    let undecided =
        compare_runs(&b.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &Settings::default());
    let text = comparison::format_text(
        &undecided,
        false,
        &DisplayOptions { width: 120, ..DisplayOptions::default() },
    );
    assert!(text.contains("a median beyond the last bin") && text.contains("> 30.0 µs"), "{text}");
}
