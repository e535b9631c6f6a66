mod bins;
mod messages;

use super::*;
use latscope_core::fixture;
use latscope_core::histogram::Histogram;
use latscope_core::plan::params;
use latscope_core::quality::{CUT_SHORT, LOAD_ENDED, NOT_RUN, QualityLevel, Reason};
use latscope_core::report::{Better, MeasuredQuantity, Semantics, Summary, Tested};
use latscope_core::testing::{point, report};

/// `n` events of 10 µs and `above` of 80 µs.
fn events(n: u64, above: u64) -> Measurement {
    of(&[(n - above, 10_000), (above, 80_000)])
}

fn of(values: &[(u64, u64)]) -> Measurement {
    let m = point(
        "wake.timer",
        params([("cpu", "all".into()), ("interval", 1_000_000.into())]),
        Semantics::OneWay,
        1.0,
    );
    let mut histogram = Histogram::new(1000);
    for &(count, value) in values {
        (0..count).for_each(|_| histogram.record(value));
    }
    let summary = Summary::from_histogram(&histogram, &Summary::default());
    let tested = (summary.count > 0).then(|| Tested { time_ns: summary.count * 1_000_000, independent: 1.0 });
    latscope_core::testing::once(Measurement { sampling: Sampling::Event, histogram, summary, tested, ..m })
}

fn one(m: &Measurement, metric: &str, limit: f64) -> CriterionCheck {
    let verdict = judge_measurement(m, &[MetricCriterion::new(metric, limit).unwrap()]);
    assert_eq!(verdict.status, verdict.checks[0].status);
    verdict.checks[0].clone()
}

#[test]
fn a_maximum_holds_until_one_sample_is_above() {
    let check = one(&events(60_000, 0), "max", 50_000.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Pass, Some(10_000.0)));
    assert_eq!(
        check.text,
        "none of 60,000 in 60 s was above 50.0 µs: what recurs at random more often than once in 20 s would have been \
         seen (95 % confidence); rarer things were not tested"
    );
    let check = one(&events(60_000, 2), "threshold", 50_000.0);
    assert_eq!((check.metric.as_str(), check.status), ("threshold", VerdictStatus::Exceeded));
    assert_eq!(check.text, "2 of 60,000 were above 50.0 µs; the longest took 80.0 µs");
    let check = one(&events(60_000, 2), "max", 79_999.0);
    assert_eq!(check.text, "1 to 2 of 60,000 were above 79.999 µs; the longest took 80.000 µs");
    assert_eq!(
        one(&events(10, 1), "max", 80_000.0).status,
        VerdictStatus::Pass,
        "the limit itself is allowed"
    );
}

#[test]
fn a_quantile_is_judged_by_the_share_above() {
    let judged = |n, above| one(&events(n, above), "p99_9", 50_000.0);
    assert_eq!(judged(2_995, 0).status, VerdictStatus::Pass);
    assert_eq!(judged(2_994, 0).status, VerdictStatus::Inconclusive);
    assert_eq!(judged(60_000, 20).status, VerdictStatus::Pass);
    assert_eq!(judged(60_000, 60).status, VerdictStatus::Inconclusive);
    assert_eq!(judged(60_000, 80).status, VerdictStatus::Exceeded);
    assert_eq!(
        judged(60_000, 20).text,
        "20 of 60,000 were above 50.0 µs: at most 0.048 % are as long as it stays as in these 60 s, with 95 % \
         confidence, and 0.1 % may be"
    );
    assert_eq!(
        judged(60_000, 80).text,
        "80 of 60,000 were above 50.0 µs: at least 0.11 % are, with 95 % confidence, and 0.1 % may be"
    );
    assert_eq!(
        judged(2_000, 0).text,
        "0 of 2,000 were above 50.0 µs, where 0.1 % may be: too few to judge. It takes 995 more, none of them above"
    );
    assert_eq!(one(&events(100, 5), "p50", 50_000.0).status, VerdictStatus::Pass);
}

#[test]
fn a_bucket_around_the_limit_counts_against_both_verdicts() {
    // 50 000 ns lies in the bucket 49 920 to 50 175.
    let m = of(&[(99_000, 10_000), (990, 50_100), (10, 60_000)]);
    let check = one(&m, "p99_9", 50_000.0);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(check.text.starts_with("10 to 1,000 of 100,000 were above"), "{}", check.text);
    assert_eq!(one(&m, "p90", 50_000.0).status, VerdictStatus::Pass);
    assert_eq!(one(&m, "p99_9", 50_175.0).status, VerdictStatus::Pass, "a limit between buckets is exact");
    assert_eq!(
        one(&of(&[(10, 50_000)]), "max", 50_000.0).status,
        VerdictStatus::Pass,
        "and so is the maximum"
    );
    let check = one(&of(&[(10, 50_001)]), "max", 50_000.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Exceeded, Some(50_001.0)));
}

#[test]
fn values_beyond_the_histogram_are_above() {
    assert_eq!(one(&of(&[(10, 1 << 50)]), "max", 1e12).status, VerdictStatus::Exceeded);
    assert_eq!(one(&of(&[(5_000, 1), (5_000, 1 << 50)]), "p90", 1e12).status, VerdictStatus::Exceeded);
}

#[test]
fn what_a_stall_swallowed_counts_in_quantiles() {
    let mut m = events(60_000, 0);
    m.summary.missed = 1_000;
    assert_eq!(one(&m, "p99", 50_000.0).status, VerdictStatus::Pass);
    m.corrected = Some(events(61_000, 1_000).histogram);
    let check = one(&m, "p99", 50_000.0);
    assert_eq!(check.status, VerdictStatus::Exceeded);
    assert!(check.text.ends_with("(with the 1,000 missed activations)"), "{}", check.text);
}

#[test]
fn what_has_no_time_to_keep_misses_nothing_and_does_not_pass_for_that() {
    let mut m = events(1_000, 0);
    m.params.remove("interval");
    let check = one(&m, "missed", 0.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Inconclusive, None));
    assert_eq!(check.text, "nothing of wake.timer can be missed: it has no interval and no deadline");
}

#[test]
fn counts_are_compared() {
    let mut m = events(1_000, 0);
    m.summary.missed = 3;
    let early = MeasuredQuantity { value: 0.0, unit: "count".to_owned(), better: Better::Less };
    m.values.insert("early".to_owned(), early);
    assert_eq!(one(&m, "missed", 3.0).status, VerdictStatus::Pass);
    let check = one(&m, "missed", 2.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Exceeded, Some(3.0)));
    assert_eq!(check.text, "missed 3, at most 2 allowed");
    assert_eq!(one(&m, "early", 0.0).status, VerdictStatus::Pass);
    let check = one(&m, "faults", 0.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Inconclusive, None));
    assert_eq!(check.text, "wake.timer has no value called faults");
}

#[test]
fn doubtful_measurements_prove_nothing_in_either_direction() {
    let mut degraded = events(60_000, 2);
    degraded.lower(Reason::new(QualityLevel::Degraded, "not-as-asked", "ran as SCHED_OTHER", ""));
    let check = one(&degraded, "max", 50_000.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Inconclusive, Some(80_000.0)));
    assert_eq!(
        check.text,
        "measured under conditions that distort it (ran as SCHED_OTHER): not judged; \
         as measured, 2 of 60,000 were above 50.0 µs; the longest took 80.0 µs"
    );
    assert_eq!(one(&degraded, "max", 90_000.0).status, VerdictStatus::Inconclusive);
    let mut short = events(60_000, 0);
    short.incomplete = true;
    let check = one(&short, "max", 50_000.0);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(
        check.text.starts_with("the run ended before this measurement did; so far, none of"),
        "{check:?}"
    );
    // What was seen was seen.
    short = Measurement { incomplete: true, ..events(60_000, 2) };
    assert_eq!(one(&short, "max", 50_000.0).status, VerdictStatus::Exceeded);
    short.lower(Reason::new(QualityLevel::Degraded, CUT_SHORT, "the worker ended", ""));
    assert_eq!(one(&short, "max", 50_000.0).status, VerdictStatus::Exceeded);
    short.lower(Reason::new(QualityLevel::Degraded, "not-as-asked", "ran as SCHED_OTHER", ""));
    assert_eq!(one(&short, "max", 50_000.0).status, VerdictStatus::Inconclusive);
    let mut empty = of(&[]);
    empty.lower(Reason::new(QualityLevel::Unsupported, "not-possible-here", "no such tracer", ""));
    let check = one(&empty, "missed", 0.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Inconclusive, None));
    assert_eq!(check.text, "nothing was measured: no such tracer");
}

#[test]
fn what_failed_in_one_round_is_said_of_that_round() {
    let mut m = events(1_000, 0);
    let mut empty = of(&[]);
    empty.lower(Reason::new(QualityLevel::Unsupported, "nothing-measured", "nothing was measured", ""));
    m.add_round(empty);
    assert_eq!(
        (m.quality.level, m.quality.text().as_deref()),
        (QualityLevel::Degraded, Some("in a round: nothing was measured"))
    );
}

#[test]
fn an_unstable_measurement_does_not_pass_but_can_exceed() {
    let unstable = |above| {
        let mut m = events(60_000, above);
        m.lower(Reason::new(
            QualityLevel::Unstable,
            "rounds-in-two-groups",
            "changes between 1 µs and 9 µs",
            "",
        ));
        m
    };
    let check = one(&unstable(0), "max", 50_000.0);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(check.text.starts_with("unstable (changes between 1 µs and 9 µs): another run may"), "{check:?}");
    assert_eq!(one(&unstable(2), "max", 50_000.0).status, VerdictStatus::Exceeded);
    let mut short = unstable(2);
    short.incomplete = true;
    short.lower(Reason::new(QualityLevel::Degraded, CUT_SHORT, "the worker ended", ""));
    assert_eq!(one(&short, "max", 50_000.0).status, VerdictStatus::Exceeded);
    assert_eq!(one(&short, "max", 90_000.0).status, VerdictStatus::Inconclusive);
    short.lower(Reason::new(QualityLevel::Degraded, "not-as-asked", "ran as SCHED_OTHER", ""));
    assert_eq!(one(&short, "max", 50_000.0).status, VerdictStatus::Inconclusive);
}

#[test]
fn an_event_that_had_not_come_at_the_end_exceeds_a_limit_and_passes_none() {
    let waiting = |above| {
        let mut m = events(60_000, above);
        m.lower(Reason::new(QualityLevel::Degraded, NOT_RUN, "late by at least 2 s", ""));
        m
    };
    let check = one(&waiting(0), "max", 50_000.0);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(check.text.starts_with("late by at least 2 s; so far, none"), "{check:?}");
    assert_eq!(one(&waiting(2), "max", 50_000.0).status, VerdictStatus::Exceeded);
    let check = one(&waiting(0), "p99_999", 50_000.0);
    assert!(check.text.contains("too few to judge") && !check.text.contains("more"), "{check:?}");
    let mut short = waiting(2);
    short.incomplete = true;
    assert_eq!(one(&short, "max", 50_000.0).status, VerdictStatus::Exceeded);
}

#[test]
fn without_all_of_its_load_a_measurement_does_not_pass_but_can_exceed() {
    let unladen = |above| {
        let mut m = events(60_000, above);
        m.lower(Reason::new(QualityLevel::Degraded, LOAD_ENDED, "the load ended", ""));
        m
    };
    let check = one(&unladen(0), "max", 50_000.0);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(check.text.starts_with("not all was measured under the load; as measured, none"), "{check:?}");
    assert_eq!(one(&unladen(2), "max", 50_000.0).status, VerdictStatus::Exceeded);
}

#[test]
fn batches_say_of_single_events_only_that_one_was_as_long_as_the_mean() {
    let m = point("cpu.add", params([]), Semantics::Operation, 1.0);
    assert_eq!(one(&m, "max", 10.0).status, VerdictStatus::Inconclusive);
    assert_eq!(one(&m, "p99", 0.5).status, VerdictStatus::Inconclusive);
    let check = one(&m, "max", 0.5);
    assert_eq!(check.status, VerdictStatus::Exceeded);
    assert!(check.value > Some(1.0), "the longest batch: {:?}", check.value);
}

#[test]
fn the_median_of_batches_is_known_as_well_as_its_rounds_agree() {
    let m = point("cpu.add", params([]), Semantics::Operation, 1.0);
    let next = m.interval.unwrap();
    assert!(next.low < 1.0 && 1.0 < next.high, "{next:?}");
    for (limit, status) in [
        (next.high, VerdictStatus::Pass),
        (1.0, VerdictStatus::Inconclusive),
        (next.low - 1e-3, VerdictStatus::Exceeded),
    ] {
        assert_eq!(one(&m, "p50", limit).status, status, "{limit}");
    }
    let mut degraded = m.clone();
    degraded.lower(Reason::new(QualityLevel::Degraded, "emulated", "emulated", ""));
    let text = one(&degraded, "p50", next.high).text;
    assert!(text.ends_with("as measured, the median is 1.00 ns"), "{text}");
    let p50 = QUANTILES[0];
    assert_eq!((passes_from(&m, p50), passes_from(&m, QUANTILES[3])), (Some(next.high), None));
    let m = latscope_core::testing::once(m);
    assert_eq!((one(&m, "p50", 1e9).status, passes_from(&m, p50)), (VerdictStatus::Inconclusive, None));
}

#[test]
fn the_median_of_events_is_that_of_the_rounds_as_every_table_shows_it() {
    use latscope_core::testing::in_rounds;
    let m = in_rounds(events(60_000, 100), &[840.0, 842.0, 843.0]);
    let check = one(&m, "p50", 1_000.0);
    assert_eq!(
        (check.status, check.value, m.typical()),
        (VerdictStatus::Pass, Some(842.0), Some(842.0)),
        "{check:?}"
    );
    assert_eq!(one(&m, "p50", 842.0).status, VerdictStatus::Inconclusive);
    assert_eq!(one(&m, "p50", 700.0).status, VerdictStatus::Exceeded);
    let next = m.interval.unwrap();
    assert_eq!(passes_from(&m, QUANTILES[0]), Some(next.high));
    assert_eq!(one(&m, "p99", 50_000.0).status, VerdictStatus::Pass, "other quantiles are of all samples");
    // Two rounds do not say where the next one lies.
    let two = in_rounds(events(60_000, 100), &[840.0, 842.0]);
    assert_eq!(
        (one(&two, "p50", 1e6).status, passes_from(&two, QUANTILES[0])),
        (VerdictStatus::Inconclusive, None)
    );
    // With missed activations it is a row of its own, of all samples.
    let missed = Measurement { corrected: Some(events(61_000, 1_100).histogram), ..m };
    let check = one(&missed, "p50", 50_000.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Pass, missed.corrected.unwrap().quantile(0.5)));
}

#[test]
fn a_value_of_which_more_is_better_is_to_be_reached() {
    let mut m = events(1_000, 0);
    let value = MeasuredQuantity { value: 99.5, unit: "%".to_owned(), better: Better::More };
    m.values.insert("meet".to_owned(), value);
    assert_eq!(one(&m, "meet", 99.5).status, VerdictStatus::Pass);
    let check = one(&m, "meet", 99.9);
    assert_eq!(
        (check.status, check.text.as_str()),
        (VerdictStatus::Exceeded, "meet 99.5 %, at least 99.9 % wanted")
    );
}

#[test]
fn the_smallest_limit_that_passes_passes_and_none_below_does() {
    let spread = of(&[(5_000, 900), (3_000, 10_007), (1_950, 20_021), (50, 80_000), (1, 1 << 49)]);
    for m in [events(3_000, 0), events(3_000, 3), spread.clone()] {
        for quantile in &QUANTILES[..5] {
            let Some(least) = passes_from(&m, *quantile) else {
                assert_eq!(one(&m, quantile.name, 1e18).status, VerdictStatus::Inconclusive);
                continue;
            };
            assert_eq!(
                one(&m, quantile.name, least).status,
                VerdictStatus::Pass,
                "{} {least}",
                quantile.name
            );
            assert_ne!(
                one(&m, quantile.name, least - 1.0).status,
                VerdictStatus::Pass,
                "{} {least}",
                quantile.name
            );
        }
    }
    assert_eq!(passes_from(&events(100, 0), QUANTILES[3]), None, "299 are needed");
    assert_eq!(passes_from(&of(&[]), QUANTILES[0]), None);
}

#[test]
fn the_worst_check_decides() {
    let criteria = [("p99", 50_000.0), ("max", 1.0), ("faults", 0.0)];
    let criteria = criteria.map(|(name, limit)| MetricCriterion::new(name, limit).unwrap());
    assert_eq!(judge_measurement(&events(60_000, 0), &criteria).status, VerdictStatus::Exceeded);
    assert_eq!(judge_measurement(&events(60_000, 0), &criteria[..1]).status, VerdictStatus::Pass);
    assert_eq!(judge_measurement(&events(60_000, 0), &[]).status, VerdictStatus::Pass);
}

fn on_cpu(cpu: u64, interval: u64, above: u64) -> Measurement {
    let params = params([("cpu", cpu.into()), ("thread", cpu.into()), ("interval", interval.into())]);
    Measurement { params, ..events(60_000, above) }
}

#[test]
fn the_merged_measurement_is_judged_where_there_is_one() {
    let merged = params([("cpu", "all".into()), ("thread", 0u64.into()), ("interval", 1000u64.into())]);
    let all = Measurement { params: merged, ..events(120_000, 1) };
    let mut report = report(vec![on_cpu(0, 1000, 1), on_cpu(1, 1000, 0), all, on_cpu(0, 2000, 0)]);
    assert_eq!(subjects(&report), [2, 3]);
    assert_eq!(report_status(&report), None);
    judge_report(&mut report, &[]);
    assert_eq!(report_status(&report), None);
    judge_report(&mut report, &[MetricCriterion::new("max", 50_000.0).unwrap()]);
    assert_eq!(report_status(&report), Some(VerdictStatus::Exceeded));
    let verdicts: Vec<_> = report.measurements.iter().map(|m| m.verdict.as_ref().map(|v| v.status)).collect();
    assert_eq!(verdicts, [None, None, Some(VerdictStatus::Exceeded), Some(VerdictStatus::Pass)]);
}

#[test]
fn a_cpu_that_exceeds_a_quantile_does_not_pass_among_many() {
    let merged = params([("cpu", "all".into()), ("interval", 1000u64.into())]);
    let all = Measurement { params: merged, ..events(240_000, 5_000) };
    let others = (1..4).map(|cpu| on_cpu(cpu, 1000, 0));
    let mut report = report([on_cpu(0, 1000, 5_000)].into_iter().chain(others).chain([all]).collect());
    judge_report(&mut report, &[MetricCriterion::new("p95", 50_000.0).unwrap()]);
    let check = &report.measurements[4].verdict.as_ref().unwrap().checks[0];
    assert_eq!((check.status, check.above, check.of), (VerdictStatus::Exceeded, Some(5_000), Some(60_000)));
    assert!(check.text.starts_with("CPU 0: 5,000 of 60,000 were above"), "{}", check.text);
    // Where each CPU has few enough all have passed.
    report.finished = Some(report.started.clone());
    judge_report(&mut report, &[MetricCriterion::new("p90", 50_000.0).unwrap()]);
    assert_eq!(report_status(&report), Some(VerdictStatus::Pass));
}

#[test]
fn the_exit_code_follows_the_worst_that_is_known() {
    let of = |status| [false, true].map(|cut_short| exit_code(status, cut_short));
    assert_eq!(of(None), [0, 1]);
    assert_eq!(of(Some(VerdictStatus::Pass)), [0, 3]);
    assert_eq!(of(Some(VerdictStatus::Inconclusive)), [3, 3]);
    assert_eq!(of(Some(VerdictStatus::Exceeded)), [2, 2]);
}

#[test]
fn of_a_sum_of_one_that_one_is_judged_too_and_counts_once() {
    let merged = params([("cpu", "all".into()), ("interval", 1000u64.into())]);
    let all = Measurement { params: merged, ..events(60_000, 0) };
    let mut report = report(vec![on_cpu(0, 1000, 0), all]);
    report.finished = Some(report.started.clone());
    judge_report(&mut report, &[MetricCriterion::new("max", 50_000.0).unwrap()]);
    assert!(report.measurements.iter().all(|m| m.verdict.is_some()));
    assert_eq!(judged_measurements(&report).map(|(m, _)| is_merged(m)).collect::<Vec<_>>(), [false]);
    assert_eq!(report_status(&report), Some(VerdictStatus::Pass));
    report.finished = None;
    assert_eq!(report_status(&report), Some(VerdictStatus::Inconclusive));
}

#[test]
fn criteria_are_read_with_their_limits() {
    let read = |name: &str, limit: &str| {
        MetricCriterion::parse(name, limit).map(|c| (c.metric.name().to_owned(), c.limit))
    };
    assert_eq!(read("max", "50us"), Ok(("max".to_owned(), 50_000.0)));
    assert_eq!(read("p99.99", "1ms"), Ok(("p99_99".to_owned(), 1e6)));
    assert_eq!(read("missed", "0"), Ok(("missed".to_owned(), 0.0)));
    assert_eq!(read("faults", "2"), Ok(("faults".to_owned(), 2.0)));
    for (name, limit) in [("p98", "1ms"), ("p99_99999", "1ms"), ("", "1"), ("Max", "1ms"), ("a b", "1")] {
        assert_eq!(read(name, limit), Err(CriterionError::Unknown(name.to_owned())), "{name}");
    }
    for (name, limit) in [("max", "50"), ("missed", "-1"), ("missed", "1ms"), ("missed", "inf")] {
        assert!(read(name, limit).is_err(), "{name} {limit}");
    }
}

#[test]
fn a_plan_states_its_criteria_in_words() {
    let mut plan = fixture::report().plan;
    let criteria = [("max", 50_000.0), ("p99_9", 2e6), ("missed", 1_000.0), ("sync", 90.0)];
    plan.criteria =
        criteria.map(|(name, limit)| MetricCriterion::new(name, limit).unwrap().to_plan_criterion()).into();
    plan.notes = vec!["a note".to_owned()];
    let text = describe_plan(&plan);
    let end = "criterion: max ≤ 50.0 µs\ncriterion: p99.9 ≤ 2.00 ms\ncriterion: missed ≤ 1,000\n\
        criterion: sync ≥ 90 %\nnote: a note\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn threads_of_one_cpu_prove_no_more_than_one_of_them() {
    let judged = |independent: f64, metric: &str| {
        let mut m = events(60_000, 0);
        m.tested = Some(Tested { time_ns: 3_000_000_000, independent });
        one(&m, metric, 50_000.0)
    };
    let max = judged(0.05, "max");
    assert!(
        max.text.contains("once in 1 s would have been seen") && max.status == VerdictStatus::Pass,
        "{max:?}"
    );
    assert_eq!(judged(1.0, "p99_99").status, VerdictStatus::Pass);
    // 3,000 independent ones prove p99.9 and no more.
    assert_eq!(judged(0.05, "p99_9").status, VerdictStatus::Pass);
    let check = judged(0.05, "p99_99");
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(
        check.text.contains("as 3,000 independent ones") && check.text.contains("It takes "),
        "{check:?}"
    );
}

#[test]
fn late_activations_of_few_bouts_decide_no_quantile() {
    let judged = |above, independent: f64| {
        let mut m = events(60_000, above);
        m.tested = Some(Tested { time_ns: 60_000_000_000, independent });
        (one(&m, "p99_9", 50_000.0).status, passes_from(&m, QUANTILES[4]))
    };
    // 80 in a row are two bouts: the next minute may have none.
    assert_eq!(judged(80, 1.0), (VerdictStatus::Exceeded, Some(80_000.0)));
    assert_eq!(judged(80, 0.025), (VerdictStatus::Inconclusive, None));
    assert_eq!(judged(40, 1.0).0, VerdictStatus::Pass);
    assert_eq!(judged(40, 0.1).0, VerdictStatus::Inconclusive);
}

#[test]
fn the_number_of_samples_is_put_in_words() {
    let of = |m: Measurement| confidence_of(&report(Vec::new()), &m);
    let text = |n| of(events(n, 1)).unwrap();
    assert_eq!(
        text(60_000),
        "in 60 s, what exceeds 80.0 µs at random more often than once in 20 s would have been seen; quantiles up to p99.9"
    );
    for (limit, text) in [(0.0, "0.00 ns"), (50e3, "50.0 µs"), (530_200.0, "530.2 µs"), (1e9, "1.00 s")] {
        assert_eq!(limit_in_words(limit), text);
    }
    let near = one(&events(60_000, 1), "max", 80_040.0).text;
    assert!(near.starts_with("none of 60,000 in 60 s was above 80.04 µs"), "{near}");
    assert_eq!(text(5), "too few to say how rare one above 80.0 µs is; no quantile beyond p50");
    assert_eq!(of(super::tests::of(&[])), None);
    let mut unknown = events(5, 1);
    unknown.summary.p50 = None;
    assert!(of(unknown).unwrap().ends_with("; no quantile"));
    // The quantiles that are shown are those that are said to be known.
    for n in [1, 5, 19, 20, 99, 100, 1_000, 99_999] {
        let s = events(n, 1).summary;
        let shown = [("p90", s.p90), ("p95", s.p95), ("p99", s.p99), ("p99.9", s.p99_9)];
        let last = shown.iter().rfind(|(_, figure)| figure.is_some());
        let said = last.map_or("no quantile beyond p50".to_owned(), |(name, _)| format!("up to {name}"));
        assert!(text(n).ends_with(&said), "{n}: {said}, but {}", text(n));
    }
}

#[test]
fn no_gap_is_shorter_than_what_was_looked_for_and_proves_nothing_below() {
    let mut m = of(&[]);
    assert_eq!(one(&m, "max", 1_000.0).status, VerdictStatus::Inconclusive, "nothing was measured");
    let value = MeasuredQuantity { value: 1_000.0, unit: "ns".to_owned(), better: Better::Neither };
    m.values.insert("gap".to_owned(), value);
    let check = one(&m, "max", 1_000.0);
    assert_eq!(
        (check.status, check.text.as_str()),
        (VerdictStatus::Pass, "there was no gap of 1.00 µs or more")
    );
    assert_eq!(one(&m, "p99", 2_000.0).status, VerdictStatus::Pass);
    assert_eq!(one(&m, "threshold", 999.0).status, VerdictStatus::Inconclusive);
    m.lower(Reason::new(QualityLevel::Degraded, "coarse-clock", "the clock is too coarse", ""));
    assert_eq!(one(&m, "max", 1_000.0).status, VerdictStatus::Inconclusive);
}

#[test]
fn shares_of_calls_are_to_be_reached() {
    let with = |values: &[(&str, f64)]| {
        let mut m = events(1_000, 0);
        for (name, value) in values {
            let value = MeasuredQuantity { value: *value, unit: "count".to_owned(), better: Better::Neither };
            m.values.insert((*name).to_owned(), value);
        }
        m
    };
    let synced = with(&[("sync", 89.9), ("sync-of", 1_000.0)]);
    assert_eq!(one(&synced, "sync", 89.0).status, VerdictStatus::Pass);
    let check = one(&synced, "sync", 90.0);
    assert_eq!((check.status, check.value), (VerdictStatus::Exceeded, Some(89.9)));
    assert_eq!(check.text, "899 of 1,000 calls were served on the caller's CPU; 90 % wanted");
    let fifo = |inherited: f64, restored: f64| {
        with(&[("rt-calls", 50.0), ("rt-inherited", inherited), ("rt-restored", restored)])
    };
    assert_eq!(one(&fifo(50.0, 50.0), "inherits-fifo", 100.0).status, VerdictStatus::Pass);
    assert_eq!(one(&fifo(49.0, 50.0), "inherits-fifo", 100.0).status, VerdictStatus::Exceeded);
    assert_eq!(one(&fifo(50.0, 49.0), "inherits-fifo", 100.0).status, VerdictStatus::Exceeded);
    assert_eq!(one(&fifo(50.0, 50.0), "inherits-nice", 100.0).status, VerdictStatus::Inconclusive);
    assert_eq!(one(&with(&[]), "sync", 0.0).status, VerdictStatus::Inconclusive);
}
