//! Conclusions from outputs of other programs: the time that they watched, and the values of a bin.

use super::read_report;
use crate::verdict::{MetricCriterion, judge_measurement};
use latscope_core::report::{BEYOND, CriterionCheck, Measurement, Report, VerdictStatus};
use serde_json::json;

fn read(text: &str) -> Report {
    read_report(text.as_bytes()).unwrap()
}

fn check(m: &Measurement, metric: &str, limit: f64) -> CriterionCheck {
    judge_measurement(m, &[MetricCriterion::new(metric, limit).unwrap()]).checks.remove(0)
}

/// The time that the first point was watched, ns.
fn watched(report: &Report) -> Option<u64> {
    report.measurements[0].tested.map(|tested| tested.time_ns)
}

/// The output of rtla for one CPU: its heading, the line with the duration, the rows and the five lines below.
fn rtla(heading: &str, duration: &str, rows: &str, below: [&str; 5]) -> String {
    let (_, column) = heading.split_once(' ').unwrap();
    let names = ["over", "count", "min", "avg", "max"];
    let below: String = names.iter().zip(below).map(|(name, value)| format!("{name}: {value}\n")).collect();
    let program = heading.split(' ').next().unwrap();
    format!(
        "# RTLA {program} histogram\n# Time unit is microseconds (us)\n{duration}Index {column}\n{rows}{below}"
    )
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn the_time_watched_is_read_or_not_known() {
    let osnoise =
        |duration: &str| rtla("osnoise CPU-003", duration, "2 400\n3 100\n", ["0", "500", "2", "2.20", "3"]);
    for (duration, seconds) in [
        ("# Duration:   0 00:01:00\n", Some(60)),
        ("# Duration:   1 02:00:20\n", Some(93_620)),
        ("# Duration:   0 00:00:00\n", None),
        ("", None),
    ] {
        let report = read(&osnoise(duration));
        assert_eq!(watched(&report), seconds.map(|seconds| seconds * SECOND), "{duration}");
        let text = check(&report.measurements[0], "max", 10_000.0).text;
        let unknown = "none of 500 was above 10.0 µs; observation time unknown, so no bound on how often it is exceeded";
        assert_eq!(text == unknown, seconds.is_none(), "{text}");
    }
    let refused = read_report(osnoise("# Duration:   soon\n").as_bytes()).unwrap_err();
    assert!(refused.to_string().contains("line 3: \"soon\" is no duration"), "{refused}");
    // Latencies of operations that overlap do not add up to a time.
    let fio = |mut direction: serde_json::Value, options: serde_json::Value| {
        direction["clat_ns"] = json!({ "min": 49_900_000, "max": 50_200_000, "mean": 50e6, "N": 400_000,
            "bins": { "50069504": 400_000 } });
        let job = json!({ "jobname": "a", "job_runtime": 9_000, "job options": options, "read": direction });
        read(&json!({ "fio version": "fio-3.33", "jobs": [job] }).to_string())
    };
    assert_eq!(watched(&fio(json!({ "runtime": 5_000 }), json!({ "iodepth": "64" }))), Some(5 * SECOND));
    assert_eq!(watched(&fio(json!({}), json!({}))), Some(9 * SECOND));
    assert_eq!(watched(&fio(json!({}), json!({ "group_reporting": "1" }))), None, "a sum over jobs");
    let files = [
        (include_str!("../../tests/imports/fio.json"), Some(26_000_000)),
        (include_str!("../../tests/imports/cyclictest.json"), Some(2 * SECOND)),
        (include_str!("../../tests/imports/cyclictest-h100.txt"), None),
        (include_str!("../../tests/imports/jitterdebugger.json"), None),
        (include_str!("../../tests/imports/hyperfine.json"), None),
        (include_str!("../../tests/imports/rtla-timerlat.txt"), Some(3 * SECOND)),
    ];
    for (text, expected) in files {
        assert_eq!(watched(&read(text)), expected, "{}", &text[..60]);
    }
}

#[test]
fn extremes_of_osnoise_are_bins_and_those_of_timerlat_are_exact() {
    let rows = "0 700\n20 299\n40 1\n";
    let of = |heading: &str, max: &str| {
        let report = read(&rtla(heading, "", rows, ["0", "1000", "0", "6.02", max]));
        move |limit: f64| check(&report.measurements[0], "max", limit).status
    };
    let osnoise = of("osnoise CPU-000", "40");
    assert_eq!(
        [39_000.0, 50_000.0, 60_000.0].map(osnoise),
        [VerdictStatus::Exceeded, VerdictStatus::Inconclusive, VerdictStatus::Pass]
    );
    let timerlat = of("timerlat Thr-000", "47");
    // Cut to a whole µs.
    let limits = [46_000.0, 47_000.0, 48_000.0].map(timerlat);
    assert_eq!(limits, [VerdictStatus::Exceeded, VerdictStatus::Inconclusive, VerdictStatus::Pass]);
    // Where all is in the first bin, nothing says how wide it is.
    let first = read(&rtla("osnoise CPU-000", "", "0 9\n", ["0", "9", "0", "0.00", "0"]));
    assert_eq!(check(&first.measurements[0], "max", 50_000.0).status, VerdictStatus::Inconclusive);
}

#[test]
fn values_beyond_the_last_bin_are_a_figure_of_the_row() {
    let rows = rtla("timerlat Thr-000", "", "14 1\n15 1\n", ["5998", "6000", "14", "80", "240"]);
    let report = read(&rows);
    let m = &report.measurements[0];
    assert_eq!((m.values[BEYOND].value, m.values[BEYOND].unit.as_str()), (5_998.0, "count"));
    let check = check(m, "p99", 50_000.0);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(check.text.ends_with("a longer histogram would (-E 51)"), "{check:?}");
    let whole = read(include_str!("../../tests/imports/fio.json"));
    assert!(!whole.measurements[0].values.contains_key(BEYOND));
}

/// Output of rtla for a CPU with ten thousand events and `at` more, of which `over` are beyond the last bin, 101 µs.
fn events(at: u64, over: u64) -> String {
    let count = 10_000 + at;
    let half = (count - over) * 3 / 5;
    let rest = count - over - half;
    let rows = format!("50 {half}\n101 {rest}\n");
    let mean = (half * 50 + rest * 101 + over * 500) / count;
    let max = if over > 0 { "900" } else { "101" };
    rtla("timerlat Thr-000", "", &rows, [&over.to_string(), &count.to_string(), "50", &mean.to_string(), max])
}

#[test]
fn a_night_with_its_median_beyond_the_last_bin_counts_in_that_of_all() {
    let night = |at: u64| read(&events(at, if at < 3 { 0 } else { 9_000 }));
    let whole = crate::merge::merge((0..7).map(|at| (at.to_string(), night(at))).collect()).unwrap();
    let m = &whole.measurements[0];
    assert_eq!((m.summary.p50, m.interval), (None, None));
    for (limit, status) in [
        (40_000.0, VerdictStatus::Exceeded),
        (900_000.0, VerdictStatus::Inconclusive),
        (901_000.0, VerdictStatus::Pass),
    ] {
        let check = check(m, "p50", limit);
        assert_eq!(check.status, status, "{check:?}");
        assert!(check.text.contains("of 70,021"), "{check:?}");
    }
}

/// Comparison of two sides of six runs each, with so many events of a run beyond the last bin.
fn compared(over: [u64; 2]) -> crate::compare::ComparisonResult {
    let side = |over: u64| -> Vec<crate::runs::RunResult> {
        (0..6).map(|at| crate::runs::RunResult::from_report(read(&events(at, over)))).collect()
    };
    let sides = over.map(side);
    let [a, b] = [0, 1].map(|at| sides[at].iter().collect::<Vec<_>>());
    crate::compare::compare_runs(&a, &b, &crate::compare::ComparisonOptions::default())
}

#[test]
fn a_median_beyond_the_last_bin_is_slower_than_one_below_it() {
    use crate::compare::ComparisonVerdict;
    for (over, verdict, status, figures) in [
        ([0, 9_000], ComparisonVerdict::Slower, VerdictStatus::Exceeded, [50_000.0, 101_000.0]),
        ([9_000, 0], ComparisonVerdict::Faster, VerdictStatus::Pass, [101_000.0, 50_000.0]),
        ([9_000, 9_000], ComparisonVerdict::CannotTell, VerdictStatus::Inconclusive, [101_000.0, 101_000.0]),
    ] {
        let compared = compared(over);
        assert!(compared.only_a.is_empty() && compared.only_b.is_empty());
        let [point] = &compared.points[..] else { panic!("{:?}", compared.points) };
        assert_eq!((point.verdict, &point.p50, &point.p99), (verdict, &None, &None), "{point:?}");
        let beyond = point.beyond.as_ref().unwrap();
        assert_eq!((beyond.figures, beyond.longer), (figures, over.map(|over| over > 0)));
        assert_eq!(compared.none_slower(false).0, status, "{over:?}");
    }
    let why = compared([9_000, 9_000]).none_slower(false).1;
    assert!(why.ends_with("CPU 0 cannot be decided, with a median beyond the last bin"), "{why}");
    assert!(compared([0, 0]).points[0].beyond.is_none());
}

#[test]
fn values_beyond_a_stated_end_are_longer_than_that() {
    let thread =
        json!({ "histogram": { "5": 60 }, "cycles": 100, "min": 5, "max": 900, "avg": 100.0, "cpu": 0 });
    let of = |options: &str| {
        let file = json!({ "file_version": 1, "cmdline": format!("cyclictest {options}"),
            "rt_test_version:": "2.40", "num_threads": 1, "resolution_in_ns": 0, "thread": { "0": thread } });
        read(&file.to_string()).measurements.remove(0)
    };
    let long = of("-h 200 -q");
    assert_eq!((long.histogram.overflow_from(), long.median_beyond()), (Some(200_000.0), None));
    assert_eq!(check(&long, "p90", 150_000.0).status, VerdictStatus::Exceeded);
    // Without the option nothing but their number is known.
    assert_eq!(of("-q").histogram.overflow_from(), Some(6_000.0));
    assert_eq!(check(&of("-q"), "p90", 150_000.0).status, VerdictStatus::Inconclusive);
    let fio = json!({ "fio version": "fio-3.33", "jobs": [{ "jobname": "a", "read": { "clat_ns": {
        "min": 49_900_000u64, "max": 20_000_000_000u64, "mean": 12e9, "N": 100,
        "bins": { "50069504": 40, "17112760320": 60 } } } }] });
    let m = read(&fio.to_string()).measurements.remove(0);
    assert_eq!(m.histogram.overflow_from(), Some(17_045_651_456.0));
    assert_eq!(check(&m, "p90", 10e9).status, VerdictStatus::Exceeded);
}

#[test]
fn the_number_beyond_the_last_bin_can_be_limited() {
    let [none, some] = [0, 9_000].map(|over| read(&events(0, over)).measurements.remove(0));
    assert_eq!(check(&none, BEYOND, 0.0).status, VerdictStatus::Pass);
    assert_eq!(
        (check(&some, BEYOND, 0.0).status, check(&some, BEYOND, 9e3).status),
        (VerdictStatus::Exceeded, VerdictStatus::Pass)
    );
    // Without bins of another program no value is beyond one.
    let ours = latscope_core::fixture::wake();
    assert_eq!(check(&ours.measurements[0], BEYOND, 0.0).status, VerdictStatus::Inconclusive);
}
