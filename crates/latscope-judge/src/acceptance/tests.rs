use super::*;
use crate::verdict::{MetricCriterion, judge_report};
use latscope_core::fixture;
use latscope_core::histogram::Histogram;
use latscope_core::report::{Outlier, Summary};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn run(criteria: &[(&str, f64)]) -> Report {
    let mut report = fixture::wake();
    report.machine.command_line = Some("quiet isolcpus=1".to_owned());
    judge(&mut report, criteria);
    report
}

fn judge(report: &mut Report, criteria: &[(&str, f64)]) {
    let criteria: Vec<MetricCriterion> =
        criteria.iter().map(|(metric, limit)| MetricCriterion::new(metric, *limit).unwrap()).collect();
    judge_report(report, &criteria);
}

fn input(report: &Report) -> AcceptanceRun<'_> {
    let file = HashedFile { name: "001-as-is-osadl-cpu.json".to_owned(), sha256: "0a".repeat(32) };
    AcceptanceRun { measurement: "osadl", load: "cpu", arm: "as-is", report, file }
}

fn record(limits: &[f64]) -> Acceptance {
    let reports: Vec<Report> = limits.iter().map(|limit| run(&[("max", *limit)])).collect();
    let inputs: Vec<AcceptanceRun> = reports.iter().map(input).collect();
    let binary = HashedFile { name: "latscope".to_owned(), sha256: "0b".repeat(32) };
    let scope =
        AcceptanceScope { skipped: vec!["load disk: no disk".to_owned()], ..AcceptanceScope::default() };
    acceptance(&inputs, &scope, Some(&binary)).unwrap()
}

#[test]
fn one_sentence_says_in_how_many_runs_what_was_asked_is_exceeded() {
    let record = record(&[50_000.0, 1e9, 50_000.0]);
    assert_eq!(record.sentence, "A criterion is exceeded in 2 of 3 runs.");
    assert_eq!((record.exceeded, record.of, record.status), (2, 3, Some(VerdictStatus::Exceeded)));
    assert_eq!(record.not_tested[0], "skipped: load disk: no disk");
}

#[test]
fn a_pass_says_what_was_tested_and_what_not() {
    let record = record(&[1e9]);
    assert_eq!(
        record.sentence,
        "Every criterion holds in 1 of 1 run (at least 30 s each: what recurs at random more often than once in 10 s \
         was tested)."
    );
    assert!(record.not_tested[1].contains("more rarely than once in 10 s"), "{record:#?}");
    assert_eq!(record.cells[0].stalls, [""; 0]);
}

#[test]
fn figures_share_and_verdict_are_those_with_the_missed_activations() {
    let record = record(&[50_000.0]);
    let [cell] = &record.cells[..] else { panic!("{record:#?}") };
    assert_eq!((cell.events, cell.missed, cell.above), (60_003, 3, Some((5, 60_003))));
    assert_eq!((cell.limit_ns, cell.time_ns), (Some(50_000.0), Some(30_003_000_000)));
    assert!(cell.causes[0].starts_with("thread stress-ng-cpu"), "{cell:#?}");
    let said = &cell.checks[0];
    assert!(
        said.starts_with("max: 5 of 60,003 were above 50.0 µs (with the 3 missed activations)"),
        "{said}"
    );
}

#[test]
fn a_row_says_when_how_and_in_which_file_it_was_measured() {
    let record = record(&[50_000.0]);
    let cell = &record.cells[0];
    assert_eq!(
        (cell.started.as_str(), cell.finished.as_deref()),
        ("2026-11-21T10:00:00Z", Some("2026-11-21T10:00:30.2Z"))
    );
    assert_eq!(
        (cell.interval_ns, cell.policy.as_str(), cell.cpus.as_str()),
        (Some(1_000_000), "SCHED_FIFO 95", "0-1")
    );
    assert_eq!((&cell.limits[..], cell.file.sha256.len()), (&["max 50.0 µs".to_owned()][..], 64));
    let machine = record.machine.join("\n");
    for fact in [
        "preemption: PREEMPT",
        "kernel command line: quiet isolcpus=1",
        "latscope ",
        "SHA-256 of the program latscope: 0b0b",
    ] {
        assert!(machine.contains(fact), "{fact} is not in\n{machine}");
    }
}

#[test]
fn each_stall_stands_with_its_causes_and_the_rest_is_counted() {
    let stalls = &record(&[50_000.0]).cells[0].stalls;
    assert_eq!(
        stalls[..],
        [
            "3.41 ms on CPU 1, 20 s after the start: thread stress-ng-cpu (pid 4211) 83 %, irq virtio0-input.0 12 %, \
             unknown 5 %",
            "85.3 µs on CPU 0, 7 s after the start: not traced",
            "and 3 more above the limit, the missed ones included",
        ]
    );
    let mut report = run(&[("max", 50_000.0)]);
    report.measurements.iter_mut().for_each(|m| m.outliers.clear());
    let untraced = acceptance(&[input(&report)], &AcceptanceScope::default(), None).unwrap();
    assert_eq!(
        untraced.cells[0].stalls,
        ["5 events above the limit, none of them traced: the cause is unknown"]
    );
    let many = Outlier { value: 90_000, ..Outlier::default() };
    report.measurements.iter_mut().for_each(|m| m.outliers = vec![many.clone(); 30]);
    assert_eq!(
        acceptance(&[input(&report)], &AcceptanceScope::default(), None).unwrap().cells[0].stalls.len(),
        10
    );
}

#[test]
fn the_limit_from_which_a_plan_traces_is_no_second_criterion() {
    let report = run(&[("max", 50_000.0), ("threshold", 50_000.0)]);
    let record = acceptance(&[input(&report)], &AcceptanceScope::default(), None).unwrap();
    assert_eq!((record.cells[0].limits.len(), record.cells[0].checks.len()), (1, 1));
    let report = run(&[("max", 50_000.0), ("threshold", 60_000.0)]);
    assert_eq!(
        acceptance(&[input(&report)], &AcceptanceScope::default(), None).unwrap().cells[0].limits.len(),
        2
    );
}

#[test]
fn missed_activations_without_a_time_are_a_doubt() {
    let mut report = run(&[("max", 1e9)]);
    report.measurements.iter_mut().for_each(|m| m.corrected = None);
    let cell = acceptance(&[input(&report)], &AcceptanceScope::default(), None).unwrap().cells.remove(0);
    assert_eq!((cell.events, cell.missed), (60_000, 0));
    assert_eq!(
        cell.doubts,
        ["3 missed activations are in no figure of this row: it is unknown how late they would have been"]
    );
}

#[test]
fn one_missed_activation_is_singular() {
    let mut report = run(&[("max", 1e9)]);
    report.measurements.iter_mut().for_each(|m| (m.corrected, m.summary.missed) = (None, 1));
    let cell = acceptance(&[input(&report)], &AcceptanceScope::default(), None).unwrap().cells.remove(0);
    assert!(cell.doubts[0].starts_with("1 missed activation is in no figure of this row"), "{cell:#?}");
}

/// The record of calls over two transports with a limit that none may exceed, and with this change.
fn of_calls(change: fn(&mut Report)) -> Acceptance {
    let mut report = fixture::ipc::latency();
    change(&mut report);
    judge(&mut report, &[("max", 1e9), ("missed", 0.0)]);
    acceptance(&[input(&report)], &AcceptanceScope::default(), None).unwrap()
}

#[test]
fn rows_of_calls_are_told_apart_and_have_the_policy_of_their_caller() {
    let record = of_calls(|report| {
        // Payload alone tells one of them from its twin.
        let mut twin = report.measurements[0].clone();
        twin.params.insert("payload".to_owned(), 4096u64.into());
        report.measurements.push(twin);
    });
    let titles: BTreeSet<&str> = record.cells.iter().map(|cell| cell.title.as_str()).collect();
    assert_eq!(titles.len(), record.cells.len(), "{titles:#?}");
    assert!(titles.iter().any(|title| title.contains("payload")), "{titles:#?}");
    for cell in &record.cells {
        let is_fifo = cell.title.contains("fifo caller");
        assert_eq!(cell.policy, if is_fifo { "SCHED_FIFO 95" } else { "SCHED_OTHER" }, "{}", cell.title);
    }
}

#[test]
fn calls_over_their_deadline_are_events_of_their_row() {
    let record = of_calls(|_| ());
    assert!(
        !record.rule.contains("activations") && record.rule.contains("they are events"),
        "{}",
        record.rule
    );
    for cell in &record.cells {
        assert!(cell.missed > 0 && cell.checks[1].contains(&format!("missed {}", cell.missed)), "{cell:#?}");
        assert!(cell.doubts.iter().all(|doubt| !doubt.contains("no figure")), "{cell:#?}");
    }
    let wake = self::record(&[1e9]);
    assert!(wake.rule.contains("all activations") && !wake.rule.contains("calls"), "{}", wake.rule);
}

#[test]
fn what_was_not_judged_is_in_the_answer() {
    let report = run(&[("max", 1e9)]);
    let of = |scope: AcceptanceScope| acceptance(&[input(&report)], &scope, None).unwrap();
    let skipped = of(AcceptanceScope { asked: 2, left_out: 1, exit: 3, ..AcceptanceScope::default() });
    assert_eq!(skipped.status, Some(VerdictStatus::Inconclusive));
    assert!(
        skipped.sentence.starts_with(
            "1 of 2 measurements was skipped: not judged. Every criterion of the other holds in 1 of 1 run ("
        ) && skipped.sentence.ends_with(" Exit code 3."),
        "{}",
        skipped.sentence
    );
    let two =
        of(AcceptanceScope { asked: 5, left_out: 1, unmeasured: 2, exit: 1, ..AcceptanceScope::default() });
    assert!(
        two.sentence.starts_with(
            "1 of 5 measurements was skipped and 2 of 5 measurements were not measured: not judged. Every criterion of \
             the other 2 holds"
        ),
        "{}",
        two.sentence
    );
}

#[test]
fn without_criteria_there_is_no_record() {
    let report = fixture::wake();
    assert_eq!(acceptance(&[input(&report)], &AcceptanceScope::default(), None), None);
}

/// A run of activations every millisecond with these latencies, ns, and those that its stalls swallowed.
fn synthetic(latencies: &[u64]) -> Report {
    const INTERVAL: u64 = 1_000_000;
    let mut report = fixture::wake();
    let mut m = report.measurements.remove(0);
    let (mut histogram, mut corrected) = (Histogram::new(1000), Histogram::new(1000));
    for latency in latencies {
        histogram.record(*latency);
        let felt = (0..).map(|missed| latency.saturating_sub(missed * INTERVAL)).take_while(|left| *left > 0);
        felt.for_each(|value| corrected.record(value));
    }
    let missed = corrected.count() - histogram.count();
    m.summary = Summary::from_histogram(&histogram, &Summary { missed, ..Summary::default() });
    (m.histogram, m.corrected, m.blocks) = (histogram, Some(corrected), Vec::new());
    report.measurements = vec![m];
    report
}

proptest! {
    /// The figures of a row never contradict each other, however many activations were missed.
    #[test]
    fn quantiles_share_and_verdict_of_a_row_agree(
        usual in prop::collection::vec(1_000u64..60_000, 1_500..4_000),
        stalls in prop::collection::vec(1_000_000u64..2_000_000_000, 0..6),
        limit in 20_000u64..3_000_000,
    ) {
        let latencies: Vec<u64> = usual.into_iter().chain(stalls).collect();
        let limit = limit as f64;
        let mut report = synthetic(&latencies);
        judge(&mut report, &[("max", limit), ("p99", limit)]);
        let m = &report.measurements[0];
        let record = acceptance(&[input(&report)], &AcceptanceScope::default(), None).unwrap();
        let row = &record.cells[0];
        let (above, of) = row.above.unwrap();
        prop_assert_eq!((row.events, of), (m.summary.count + m.summary.missed, row.events));
        prop_assert_eq!(above > 0, row.max > Some(limit));
        let share = above as f64 / of as f64;
        for (quantile, rest) in row.quantiles.into_iter().zip([0.5, 0.01, 0.001, 0.0001]) {
            prop_assert!(quantile <= Some(limit) || share >= rest, "{quantile:?}, but {share} are above {limit}");
        }
        let checks = &m.verdict.as_ref().unwrap().checks;
        prop_assert!(checks.iter().all(|check| (check.above, check.of) == (Some(above), Some(of))));
        prop_assert_eq!(checks[0].status, if above > 0 { VerdictStatus::Exceeded } else { VerdictStatus::Pass });
        match checks[1].status {
            VerdictStatus::Pass => prop_assert!(row.quantiles[1] <= Some(limit) && share <= 0.01),
            VerdictStatus::Exceeded => prop_assert!(row.quantiles[1] > Some(limit) && share > 0.01),
            VerdictStatus::Inconclusive => {}
        }
    }
}
