use super::*;
use latscope_core::fixture;
use latscope_core::plan::params;
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{MeasuredQuantity, Report};
use latscope_core::rounds::RoundSummary;
use latscope_core::statistics::SplitMix;
use serde_json::json;

fn names(runs: &[(String, RunResult)]) -> BudgetNameSet {
    let mut names = BudgetNameSet::default();
    names.add_probe(
        "wake.timer",
        [("interval", BudgetParamKind::Time), ("policy", choice(&["fifo", "other"]))],
    );
    names.add_probe("sync.mutex", [("size", BudgetParamKind::Size)]);
    names.add_values(["meet", "losses", "drain"]);
    runs.iter().for_each(|(_, run)| names.add_run(run));
    names
}

fn choice(words: &[&str]) -> BudgetParamKind {
    BudgetParamKind::Choice(words.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn points_that_share_a_title_are_told_apart_by_what_differs() {
    let paced = |at: usize, pace: u64| {
        let mut report = fixture::wake();
        report.run_id = format!("run-{at}");
        report.measurements.truncate(1);
        let m = &mut report.measurements[0];
        m.params = params([("pace", pace.into()), ("payload", 16.into())]);
        "ping to a remote".clone_into(&mut m.title);
        run(report)
    };
    let runs = [paced(0, 3_000_000_000), paced(1, 7_000_000_000), paced(2, 7_000_000_000)];
    let limits = json!([{ "probe": "wake.timer", "max": "1s" }]);
    let titles = |runs: &[(String, RunResult)]| {
        let gate = judge_runs(&read(limits.clone(), runs).unwrap(), runs, &[]);
        gate.checks.iter().map(|check| check.title.clone()).collect::<Vec<_>>()
    };
    let [slow, slower] = ["ping to a remote, pace 3.00 s", "ping to a remote, pace 7.00 s"];
    assert_eq!(titles(&runs), [slow, slower, slower]);
    assert_eq!(titles(&runs[1..]), ["ping to a remote"; 2]);
}

pub(super) fn read(
    limits: serde_json::Value,
    runs: &[(String, RunResult)],
) -> Result<GateBudget, BudgetError> {
    let table: BudgetFileTable = serde_json::from_value(json!({ "limit": limits })).unwrap();
    GateBudget::read_entries(&table, &names(runs))
}

pub(super) fn run(report: Report) -> (String, RunResult) {
    (report.run_id.clone(), RunResult::from_report(report))
}

fn wake() -> (String, RunResult) {
    run(fixture::wake())
}

/// Status of each check of a budget, with the figure and its limit.
fn judged(limits: serde_json::Value, runs: &[(String, RunResult)]) -> Vec<(String, VerdictStatus)> {
    let gate = judge_runs(&read(limits, runs).unwrap(), runs, &[]);
    gate.checks.iter().map(|check| (check.format_requirement(), check.status)).collect()
}

#[test]
fn limits_of_a_result_are_judged_as_the_options_of_the_command() {
    let runs = [wake()];
    let limits = json!([{ "probe": "wake.timer", "where": { "cpu": "all" }, "max": "1ms", "p99": "1ms", "p50": "1us",
        "p99_9999": "1s", "missed": 0, "faults": 0 }]);
    let gate = judge_runs(&read(limits, &runs).unwrap(), &runs, &[]);
    let report = &runs[0].1.report;
    let all = report.measurements.iter().find(|m| m.has_param_value("cpu", "all")).unwrap();
    for check in &gate.checks {
        let criterion = MetricCriterion::new(&check.metric, check.allowed).unwrap();
        let expected = verdict::judge_measurement(all, &[criterion]).checks.remove(0);
        assert_eq!(
            (check.status, &check.text, check.value),
            (expected.status, &expected.text, expected.value)
        );
    }
    let statuses: Vec<(&str, VerdictStatus)> =
        gate.checks.iter().map(|c| (c.metric.as_str(), c.status)).collect();
    assert_eq!(
        statuses,
        [
            ("faults", VerdictStatus::Pass),
            ("max", VerdictStatus::Exceeded),
            ("missed", VerdictStatus::Exceeded),
            ("p50", VerdictStatus::Exceeded),
            ("p99", VerdictStatus::Pass),
            ("p99_9999", VerdictStatus::Inconclusive)
        ]
    );
    assert_eq!(gate.status, VerdictStatus::Exceeded);
    assert_eq!(gate.counts, GateCheckCounts { pass: 2, exceeded: 3, inconclusive: 1 });
}

#[test]
fn a_limit_is_about_the_points_that_it_names() {
    let runs = [wake()];
    let points = |place: serde_json::Value| -> Vec<String> {
        let limits = json!([{ "probe": "wake.timer", "where": place, "max": "1h" }]);
        let gate = judge_runs(&read(limits, &runs).unwrap(), &runs, &[]);
        let cpu = |check: &GateCheck| check.params.get("cpu").map_or("none".to_owned(), ToString::to_string);
        gate.checks.iter().map(cpu).collect()
    };
    assert_eq!(points(json!({})), ["0", "1", "all"]);
    assert_eq!(points(json!({ "cpu": "each" })), ["0", "1"]);
    assert_eq!(points(json!({ "cpu": "all" })), ["all"]);
    assert_eq!(points(json!({ "cpu": 1 })), ["1"]);
    assert_eq!(points(json!({ "cpu": "1", "interval": "1ms", "policy": "fifo" })), ["1"]);
    assert_eq!(points(json!({ "interval": "2ms" })), ["none"]);
}

#[test]
fn a_limit_without_a_point_is_inconclusive_and_says_what_there_is() {
    let runs = [wake()];
    let limits = json!([{ "probe": "wake.timer", "where": { "cpu": 7 }, "max": "1h" },
                        { "probe": "sync.mutex", "p50": "1h" }]);
    let gate = judge_runs(&read(limits, &runs).unwrap(), &runs, &[]);
    assert_eq!(gate.status, VerdictStatus::Inconclusive);
    assert_eq!(gate.checks[0].text, "no point is wake.timer[cpu=7]: of 3 points measured, cpu is 0, 1, all");
    assert_eq!(gate.checks[1].text, "nothing of sync.mutex was measured");
    assert_eq!(gate.checks[0].id, "wake.timer[cpu=7] max");
}

#[test]
fn ids_are_stable_and_no_two_alike() {
    let runs = [wake()];
    let limits = json!([{ "probe": "wake.timer", "where": { "cpu": 0 }, "max": "1ms" },
                        { "probe": "wake", "where": { "cpu": 0 }, "max": "2ms" }]);
    let gate = judge_runs(&read(limits, &runs).unwrap(), &runs, &[]);
    let id = "wake.timer[clock=monotonic,cpu=0,interval=1000000,method=nanosleep,policy=fifo,priority=95,thread=0] max";
    let ids: Vec<&str> = gate.checks.iter().map(|check| check.id.as_str()).collect();
    assert_eq!(ids, [id, &format!("{id}#2")]);
}

#[test]
fn every_run_has_to_hold_and_what_ended_early_has_not_passed() {
    let limits = || json!([{ "probe": "wake.timer", "where": { "cpu": "all" }, "max": "1h" }]);
    let cut = Report { finished: None, ..fixture::wake() };
    let mut degraded = fixture::wake();
    for m in &mut degraded.measurements {
        m.lower(Reason::new(QualityLevel::Degraded, "emulated", "emulated", ""));
    }
    let of = |report: Report| judged(limits(), &[run(report)])[0].1;
    assert_eq!(of(fixture::wake()), VerdictStatus::Pass);
    assert_eq!(of(cut.clone()), VerdictStatus::Inconclusive);
    assert_eq!(of(degraded), VerdictStatus::Inconclusive);
    let both = judged(limits(), &[wake(), run(cut)]);
    assert_eq!([both[0].1, both[1].1], [VerdictStatus::Pass, VerdictStatus::Inconclusive]);
    let strict = json!([{ "probe": "wake.timer", "where": { "cpu": "all" }, "max": "1ms" }]);
    assert_eq!(
        judged(strict, &[run(Report { finished: None, ..fixture::wake() })])[0].1,
        VerdictStatus::Exceeded
    );
}

#[test]
fn what_passes_has_a_figure() {
    let mut few = fixture::wake();
    for m in &mut few.measurements {
        // 299 suffice for a verdict on p99, and not for stating it.
        m.histogram = latscope_core::histogram::Histogram::new(1000);
        (0..299).for_each(|at| m.histogram.record(1_000 + at));
        (m.corrected, m.rounds) = (None, Vec::new());
        m.derive_results();
    }
    let mut none = fixture::wake();
    for m in &mut none.measurements {
        m.histogram = latscope_core::histogram::Histogram::new(1);
        let gap = MeasuredQuantity { value: 1_000.0, unit: "ns".to_owned(), better: Better::Neither };
        m.values.insert("gap".to_owned(), gap);
        (m.corrected, m.rounds) = (None, Vec::new());
        m.derive_results();
    }
    for (report, seen) in [(few, "≤ 1.30 µs"), (none, "≤ 1.00 µs")] {
        let runs = [run(report)];
        let limits = json!([{ "probe": "wake.timer", "where": { "cpu": 0 }, "p99": "1ms", "p50": "1ms", "max": "1ms" }]);
        let gate = judge_runs(&read(limits, &runs).unwrap(), &runs, &[]);
        for check in &gate.checks {
            assert_eq!(check.status, VerdictStatus::Pass, "{check:?}");
            assert_ne!(check.format_measured(), "–", "{check:?}");
        }
        let p99 = gate.checks.iter().find(|check| check.metric == "p99").unwrap();
        assert_eq!((p99.format_measured().as_str(), p99.value), (seen, None), "{p99:?}");
    }
}

#[test]
fn a_limit_and_a_figure_on_either_side_of_it_never_read_alike() {
    let runs = [wake()];
    let limits = json!([{ "probe": "wake.timer", "where": { "cpu": 1 }, "max": "3411999ns" }]);
    let gate = judge_runs(&read(limits, &runs).unwrap(), &runs, &[]);
    let check = &gate.checks[0];
    assert_eq!(check.status, VerdictStatus::Exceeded);
    let seen = (check.format_requirement(), check.format_measured());
    assert_eq!(seen, ("max ≤ 3.411999 ms".to_owned(), "3.412000 ms".to_owned()));
    let longest = "above 3.411999 ms (with the 3 missed activations); the longest took 3.412000 ms";
    assert!(check.text.contains(longest), "{}", check.text);
    assert_eq!(change_beside(1.05, 1.050_04), "+5.004 %");
    assert_eq!(
        [change_beside(1.05, 0.95), change_beside(1.05, 1.05), change_beside(1.0, 1.05)],
        ["-5 %", "+5 %", "+5 %"]
    );
}

#[test]
fn shares_and_values_have_their_direction_and_their_unit() {
    let mut report = fixture::wake();
    for (name, value, unit, better) in [
        ("meet", 99.5, "%", Better::More),
        ("losses", 2.0, "count", Better::Less),
        ("drain", 5_000.0, "ns", Better::Less),
        ("sync", 80.0, "%", Better::More),
        ("sync-of", 100.0, "count", Better::Neither),
        ("rt-calls", 10.0, "count", Better::Neither),
        ("rt-inherited", 10.0, "count", Better::Neither),
        ("rt-restored", 9.0, "count", Better::Neither),
    ] {
        let value = MeasuredQuantity { value, unit: unit.to_owned(), better };
        report.measurements[0].values.insert(name.to_owned(), value);
    }
    let runs = [run(report)];
    let limits = |more: serde_json::Value| {
        let mut limit = json!({ "probe": "wake.timer", "where": { "cpu": 0 } });
        limit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        judged(json!([limit]), &runs)
    };
    let one = |more: serde_json::Value| limits(more).remove(0);
    assert_eq!(one(json!({ "meet": "99%" })), ("meet ≥ 99 %".to_owned(), VerdictStatus::Pass));
    assert_eq!(one(json!({ "meet": 99.9 })).1, VerdictStatus::Exceeded);
    assert_eq!(one(json!({ "losses": 2 })), ("losses ≤ 2".to_owned(), VerdictStatus::Pass));
    assert_eq!(one(json!({ "losses": 1 })).1, VerdictStatus::Exceeded);
    assert_eq!(one(json!({ "drain": "5us" })), ("drain ≤ 5.00 µs".to_owned(), VerdictStatus::Pass));
    assert_eq!(one(json!({ "losses": "5%" })).1, VerdictStatus::Inconclusive, "another unit");
    assert_eq!(one(json!({ "sync": "80%" })).1, VerdictStatus::Pass);
    assert_eq!(one(json!({ "sync": 81 })).1, VerdictStatus::Exceeded);
    assert_eq!(
        one(json!({ "inherits": "fifo" })),
        ("inherits-fifo ≥ 100 %".to_owned(), VerdictStatus::Exceeded)
    );
    let both = limits(json!({ "inherits": ["fifo", "nice"] }));
    assert_eq!((both.len(), both[1].1), (2, VerdictStatus::Inconclusive));
}

#[test]
fn what_is_misspelt_is_an_error_with_the_words_that_there_are() {
    let of = |limit: serde_json::Value| read(json!([limit]), &[wake()]).unwrap_err();
    let cases = [
        (json!({ "probe": "wake.timre", "max": "1ms" }), "wake.timre", "wake.timer"),
        (json!({ "probe": "wake.timer", "where": { "cpus": 1 }, "max": "1ms" }), "cpus", "cpu"),
        (json!({ "probe": "wake.timer", "where": { "policy": "fifu" }, "max": "1ms" }), "fifu", "fifo"),
        (json!({ "probe": "wake.timer", "mxa": "1ms" }), "mxa", "max"),
        (json!({ "probe": "wake.timer", "p98": "1ms" }), "p98", "p99"),
        (json!({ "probe": "wake.timer", "losess": 0 }), "losess", "losses"),
        (json!({ "probe": "wake.timer", "wher": { "cpu": 1 }, "max": "1ms" }), "wher", "where"),
    ];
    for (limit, word, meant) in cases {
        let error = of(limit);
        let (wrong, known) = error.misspelt().unwrap_or_else(|| panic!("{error}"));
        assert_eq!(wrong, word);
        assert!(known.iter().any(|name| name == meant), "{error}: {known:?}");
    }
}

#[test]
fn what_can_be_no_limit_is_refused_with_what_could_be() {
    let of = |limit: serde_json::Value| read(json!([limit]), &[wake()]).unwrap_err().to_string();
    let timer = |name: &str, limit: serde_json::Value| of(json!({ "probe": "wake.timer", name: limit }));
    let cases = [
        (timer("max", json!(50)), "its unit is missing"),
        (timer("max", json!("0s")), "longer than 0"),
        (timer("max", json!("+5%")), "two maxima are never compared"),
        (timer("p90", json!("+5%")), "p50, p99 and p99_9 are compared"),
        (timer("missed", json!("+5%")), "missed = 0"),
        (timer("missed", json!(-1)), "from 0 up"),
        (timer("missed", json!("nan")), "from 0 up"),
        (timer("max", json!("NaNns")), "is not a duration"),
        (timer("p50", json!("-100%")), "relative"),
        (timer("p50", json!("5%")), "duration"),
        (timer("sync", json!(101)), "percentage"),
        (timer("max", json!(true)), "takes a limit"),
        (timer("inherits", json!("rr")), "\"fifo\", \"nice\""),
        (
            of(json!({ "probe": "wake.timer", "where": { "interval": "1mz" }, "max": "1ms" })),
            "interval: \"1mz\"",
        ),
        (of(json!({ "max": "1ms" })), "needs a probe"),
        (of(json!({ "probe": "wake.timer", "where": 1, "max": "1ms" })), "where takes"),
        (of(json!({ "probe": "wake.timer", "where": { "cpu": true }, "max": "1ms" })), "a number or a text"),
        (of(json!({ "probe": "sync.mutex", "where": { "size": "4X" }, "p50": "1ms" })), "size"),
    ];
    for (said, expected) in cases {
        assert!(said.contains(expected), "{said:?} does not say {expected:?}");
        assert!(said.starts_with("limit 1"), "{said}");
    }
    let none =
        GateBudget::read_entries(&BudgetFileTable::new(), &BudgetNameSet::default()).unwrap_err().to_string();
    assert_eq!(none, "the budget: it has no [[limit]]");
}

/// A run of the survey whose figures scatter by 1 % between runs, those of mutexes `factor` times as long.
fn survey(at: usize, factor: f64) -> (String, RunResult) {
    let mut report = fixture::report();
    report.run_id = format!("{factor}-{at}");
    report.measurements.retain(|m| m.probe.starts_with("sync."));
    for m in &mut report.measurements {
        let noise =
            |round: usize| 1.0 + 0.001 * ((at * 7) % 9) as f64 + 0.001 * ((at + round * 3) % 5) as f64;
        let p50 = m.summary.p50;
        let round = |round| RoundSummary {
            count: 9,
            p50: p50.map(|ns| ns * factor * noise(round)),
            ..RoundSummary::default()
        };
        m.rounds = (0..4).map(round).collect();
        m.derive_results();
    }
    run(report)
}

pub(super) fn side(runs: usize, factor: f64) -> Vec<(String, RunResult)> {
    (0..runs).map(|at| survey(at, factor)).collect()
}

fn relative(limit: &str, runs: &[(String, RunResult)], baseline: &[(String, RunResult)]) -> GateCheck {
    let limits = json!([{ "probe": "sync.mutex", "p50": limit }]);
    let gate = judge_runs(&read(limits, runs).unwrap(), runs, baseline);
    gate.checks.into_iter().next().unwrap()
}

#[test]
fn a_ratio_passes_and_is_exceeded_with_its_whole_interval_only() {
    let (a, slower, faster) = (side(9, 1.0), side(9, 1.2), side(9, 0.8));
    let check = relative("+5%", &slower, &a);
    assert_eq!(
        (check.status, check.format_requirement()),
        (VerdictStatus::Exceeded, "p50 ≤ +5 %".to_owned()),
        "{}",
        check.text
    );
    assert!(
        check.format_measured().starts_with("+2") || check.format_measured().starts_with("+19"),
        "{}",
        check.format_measured()
    );
    assert_eq!(relative("+30%", &slower, &a).status, VerdictStatus::Pass);
    assert_eq!(relative("+20%", &slower, &a).status, VerdictStatus::Inconclusive);
    assert_eq!(relative("+5%", &a, &side(9, 1.001)).status, VerdictStatus::Pass);
    // A limit below 0 asks for less than before: what stayed the same exceeds it.
    assert_eq!(relative("-5%", &faster, &a).status, VerdictStatus::Pass);
    assert_eq!(relative("-5%", &side(9, 1.001), &a).status, VerdictStatus::Exceeded);
    assert_eq!(relative("-5%", &side(9, 1.001), &a).format_measured(), "+0.1 %");
}

/// Nine runs of four rounds of a mutex whose figures scatter by 2 % between runs and between rounds, `factor` times as
/// long.
fn noisy(mutex: &RunResult, factor: f64, random: &mut SplitMix) -> Vec<(String, RunResult)> {
    // Twelve uniform numbers: nearly a normal one.
    let mut normal = || (0..12).map(|_| random.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0;
    let mut one = |at: usize| {
        let mut run = mutex.clone();
        run.report.run_id = format!("{factor}-{at}");
        for m in &mut run.report.measurements {
            let of_run = 0.02 * normal();
            for round in &mut m.rounds {
                round.p50 = Some(20.0 * factor * (of_run + 0.02 * normal()).exp());
            }
            m.derive_results();
        }
        (String::new(), run)
    };
    (0..9).map(&mut one).collect()
}

#[test]
fn limits_relative_to_a_baseline_are_wrong_as_seldom_as_they_say() {
    let mut random = SplitMix::new(3);
    let mut mutex = survey(0, 1.0).1;
    mutex.report.measurements.retain(|m| m.probe == "sync.mutex");
    let mut statuses = |factor: f64| -> [usize; 3] {
        let mut counts = [0; 3];
        for _ in 0..60 {
            let (a, b) = (noisy(&mutex, 1.0, &mut random), noisy(&mutex, factor, &mut random));
            counts[relative("+5%", &b, &a).status as usize] += 1;
        }
        counts
    };
    // Pass, inconclusive, exceeded.
    let (same, at_the_limit, beyond) = (statuses(1.0), statuses(1.05), statuses(1.15));
    assert!(same[0] >= 54 && same[2] == 0, "{same:?}");
    assert!(at_the_limit[0] <= 5 && at_the_limit[2] <= 5, "{at_the_limit:?}");
    assert!(beyond[2] >= 54 && beyond[0] == 0, "{beyond:?}");
}

#[test]
fn few_runs_decide_nothing_against_a_baseline_and_say_what_would() {
    let (a, slower) = (side(1, 1.0), side(1, 1.2));
    let check = relative("+5%", &slower, &a);
    assert_eq!(check.status, VerdictStatus::Inconclusive, "{}", check.text);
    assert!(check.text.contains("4 runs a side would decide"), "{}", check.text);
    assert_eq!(check.would_tell, Some(WouldTell::Runs(4)));
    let against = relative("+5%", &slower, &side(9, 1.0)).text;
    let said = "one run to be judged decides nothing; ";
    assert!(against.contains(said) && against.ends_with(" runs to be judged would decide"), "{against}");
    assert_eq!(relative("+5%", &side(3, 1.2), &side(3, 1.0)).status, VerdictStatus::Inconclusive);
    assert_eq!(relative("+5%", &side(4, 1.2), &side(4, 1.0)).status, VerdictStatus::Exceeded);
    let alone = relative("+5%", &slower, &[]);
    assert_eq!((alone.status, alone.text.as_str()), (VerdictStatus::Inconclusive, "there is no baseline"));
}

#[test]
fn what_is_not_the_same_work_or_not_to_be_trusted_is_inconclusive() {
    let mut other = side(9, 1.0);
    for (_, run) in &mut other {
        run.report.measurements.iter_mut().for_each(|m| m.revision = 9);
    }
    let refused = relative("+5%", &other, &side(9, 1.1));
    assert!(refused.text.contains("not the same work: revision"), "{}", refused.text);
    let mut shaky = side(9, 1.2);
    for (_, run) in &mut shaky {
        let reason = || Reason::new(QualityLevel::Unstable, "rounds-scatter", "they scatter", "");
        run.report.measurements.iter_mut().for_each(|m| m.quality.add_reason(reason()));
    }
    let unstable = relative("+5%", &shaky, &side(9, 1.0));
    assert_eq!(unstable.status, VerdictStatus::Inconclusive);
    assert!(unstable.text.starts_with("not to be trusted (rounds-scatter)"), "{}", unstable.text);
}

#[test]
fn what_was_learnt_passes_on_what_it_was_learnt_from() {
    let mut slower = fixture::wake();
    slower.run_id = "slower".to_owned();
    for runs in
        [vec![wake()], vec![wake(), run(slower)], side(1, 1.0), side(5, 1.0), vec![run(fixture::report())]]
    {
        let references: Vec<&RunResult> = runs.iter().map(|(_, run)| run).collect();
        let learnt = learn(&references, MARGIN);
        assert!(!learnt.points.is_empty());
        let limit = |point: &LearntPoint| {
            let mut limit = json!({ "probe": point.probe, "where": point.params });
            for one in &point.limits {
                let text =
                    if one.metric == "missed" { one.limit.to_string() } else { format!("{}ns", one.limit) };
                limit[one.metric] = text.into();
            }
            limit
        };
        let limits: Vec<serde_json::Value> = learnt.points.iter().map(limit).collect();
        let gate = judge_runs(&read(limits.into(), &runs).unwrap(), &runs, &[]);
        let failed: Vec<&GateCheck> =
            gate.checks.iter().filter(|check| check.status != VerdictStatus::Pass).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        let metrics = |probe: &str| {
            let of = learnt.points.iter().filter(|point| point.probe == probe);
            of.flat_map(|point| &point.limits).map(|limit| limit.metric).collect::<Vec<_>>()
        };
        assert!(!metrics("sync.mutex").contains(&"max"));
    }
}

/// The results of a plan: of one command the wake-ups, of the other one operations, each so often.
fn plan_runs(times: usize) -> Vec<(String, RunResult)> {
    let named = |mut report: Report, at: usize| {
        report.run_id = format!("{}-{at}", report.measurements[0].probe);
        run(report)
    };
    let both = |at: usize| [named(fixture::wake(), at), named(fixture::report(), at)];
    (0..times).flat_map(both).collect()
}

#[test]
fn a_limit_of_a_plan_concerns_the_results_that_measured_its_probe() {
    let runs = plan_runs(3);
    let limits = json!([{ "probe": "wake.timer", "where": { "cpu": 0 }, "p50": "1s" }]);
    let mut runs = runs;
    runs.iter_mut().for_each(|(_, run)| {
        let wakes = run.report.plan.job == "wake";
        run.report.measurements.retain(|m| wakes || !m.probe.starts_with("wake."));
        run.report
            .plan
            .steps
            .iter_mut()
            .for_each(|step| step.points.retain(|one| wakes || !one.probe.starts_with("wake.")));
    });
    let judged = judge_runs(&read(limits, &runs).unwrap(), &runs, &[]);
    assert_eq!((judged.status, judged.counts.inconclusive), (VerdictStatus::Pass, 0));
    assert!(judged.checks.iter().all(|check| check.run.is_some_and(|run| run % 2 == 0)));
    let nowhere = json!([{ "probe": "process.none", "p50": "1s" }]);
    let mut names = names(&runs);
    names.add_probe("process.none", []);
    let table = serde_json::from_value(json!({ "limit": nowhere })).unwrap();
    let budget = GateBudget::read_entries(&table, &names).unwrap();
    let judged = judge_runs(&budget, &runs, &[]);
    assert_eq!((judged.status, judged.checks.len()), (VerdictStatus::Inconclusive, 6));
    let learnt = learn(&runs.iter().map(|(_, run)| run).collect::<Vec<_>>(), MARGIN);
    let of = |probe: &str| learnt.points.iter().filter(|point| point.probe.starts_with(probe)).count();
    assert!(of("wake.") > 0 && of("sync.") > 0 && learnt.points.iter().all(|point| point.runs == 3));
}

#[test]
fn a_limit_for_most_results_is_judged_by_their_majority() {
    let with = |exceeded: usize, unsure: usize, all: usize| {
        let runs: Vec<(String, RunResult)> = (0..all).map(|_| wake()).collect();
        let limits =
            json!([{ "probe": "wake.timer", "where": { "cpu": "all" }, "runs": "most", "p50": "1s" }]);
        let budget = read(limits, &runs).unwrap();
        assert!(budget.limits[0].is_of_most);
        let mut checks = judge_runs(&budget, &runs, &[]).checks;
        let id = checks[0].id.clone();
        checks.retain(|check| check.id == id);
        assert_eq!(checks.len(), all);
        checks[..exceeded].iter_mut().for_each(|check| check.status = VerdictStatus::Exceeded);
        checks[exceeded..exceeded + unsure]
            .iter_mut()
            .for_each(|check| check.status = VerdictStatus::Inconclusive);
        judge_by_majority(&mut checks);
        checks.iter().map(|check| check.status).max().unwrap()
    };
    let status = |exceeded, all| with(exceeded, 0, all);
    assert_eq!(
        [status(0, 3), status(1, 3), status(2, 3)],
        [VerdictStatus::Pass, VerdictStatus::Pass, VerdictStatus::Exceeded]
    );
    assert_eq!([status(1, 2), status(1, 1)], [VerdictStatus::Inconclusive, VerdictStatus::Exceeded]);
    assert_eq!([status(2, 4), status(3, 5)], [VerdictStatus::Pass, VerdictStatus::Exceeded]);
    assert_eq!(
        [with(0, 1, 3), with(0, 2, 3), with(0, 1, 2)],
        [VerdictStatus::Pass, VerdictStatus::Inconclusive, VerdictStatus::Inconclusive]
    );
    assert_eq!(
        [with(1, 1, 3), with(2, 1, 3), with(1, 2, 3)],
        [VerdictStatus::Inconclusive, VerdictStatus::Exceeded, VerdictStatus::Inconclusive]
    );
    let wrong = json!([{ "probe": "wake.timer", "runs": "some", "p50": "1s" }]);
    assert!(read(wrong, &[wake()]).unwrap_err().to_string().contains("\"most\""));
}

#[test]
fn another_machine_is_a_remark() {
    let runs = vec![wake()];
    let mut budget = read(json!([{ "probe": "wake.timer", "p50": "1s" }]), &runs).unwrap();
    budget.cpu_models = vec!["another".to_owned()];
    let judged = judge_runs(&budget, &runs, &[]);
    assert!(judged.warnings[0].starts_with("another CPU model: "), "{:?}", judged.warnings);
}

#[test]
fn another_revision_of_the_probe_is_not_judged() {
    let of = |revision: u32| json!([{ "probe": "wake.timer", "revision": revision, "max": "1h" }]);
    let own = fixture::wake().measurements[0].revision;
    let other = judge_runs(&read(of(own + 6), &[wake()]).unwrap(), &[wake()], &[]);
    assert_eq!(other.status, VerdictStatus::Inconclusive);
    assert!(other.checks.iter().all(|check| check.text.contains("not the same work: revision")), "{other:?}");
    assert_eq!(judge_runs(&read(of(own), &[wake()]).unwrap(), &[wake()], &[]).status, VerdictStatus::Pass);
    let mut newer = fixture::wake();
    newer.measurements.iter_mut().for_each(|m| m.revision += 6);
    let learnt = learn(&[&wake().1, &RunResult::from_report(newer)], MARGIN);
    assert!(learnt.points.is_empty());
    assert_eq!(learnt.left_out[0].why, "the runs are of different revisions of the probe");
    let wrong = json!([{ "probe": "wake.timer", "revision": "new", "max": "1h" }]);
    assert!(read(wrong, &[wake()]).unwrap_err().to_string().contains("revision = 1"));
}

#[test]
fn a_learnt_limit_is_above_a_stated_figure_by_its_margin() {
    let mut runs: Vec<(String, RunResult)> = (0..6).map(|_| wake()).collect();
    for (_, run) in &mut runs {
        for m in &mut run.report.measurements {
            m.histogram = latscope_core::histogram::Histogram::new(1000);
            (0..5_000).for_each(|at| m.histogram.record(100_000 + at));
            (m.corrected, m.rounds) = (None, Vec::new());
            m.derive_results();
        }
    }
    let learnt = learn(&runs.iter().map(|(_, run)| run).collect::<Vec<_>>(), MARGIN);
    let point = &learnt.points[0];
    let m = &runs[0].1.report.measurements[0];
    assert_eq!(m.summary.p99_9, None);
    assert_eq!(point.without, [("p99_9", NoLimit::NotStated)]);
    let p50 = point.limits.iter().find(|limit| limit.metric == "p50").unwrap();
    assert_eq!(p50.seen, [m.typical().unwrap(); 2]);
    for limit in learnt.points.iter().flat_map(|point| &point.limits).filter(|limit| limit.limit > 0.0) {
        assert!(
            (limit.limit / limit.seen[1] - limit.margin).abs() < 1e-9 && limit.margin <= 2.0,
            "{limit:?}"
        );
    }
}

#[test]
fn a_figure_that_another_program_did_not_record_has_no_limit() {
    let mut run = wake().1;
    for m in &mut run.report.measurements {
        (m.summary.p50, m.rounds, m.interval) = (None, Vec::new(), None);
    }
    let learnt = learn(&[&run], MARGIN);
    assert!(learnt.points.iter().flat_map(|point| &point.limits).all(|limit| limit.metric != "p50"));
}

#[test]
fn few_runs_are_the_reason_for_no_limit() {
    let two = [1.0, 1.15].map(|factor| survey(0, factor).1);
    let learnt = learn(&two.each_ref(), MARGIN);
    let mut reasons = learnt.points.iter().flat_map(|point| &point.without).map(|(_, why)| *why);
    let left_out = learnt.left_out.iter().filter(|point| point.why == "too few runs for a limit").count();
    assert!(left_out > 0 || reasons.any(|why| matches!(why, NoLimit::FewRuns(2, _))), "{learnt:?}");
    assert!(learnt.left_out.iter().all(|point| point.why != "the figures scatter too much"), "{learnt:?}");
}

#[test]
fn nothing_is_learnt_of_what_cannot_be_trusted() {
    let cut = Report { finished: None, ..fixture::wake() };
    let learnt = learn(&[&RunResult::from_report(cut)], MARGIN);
    assert!(learnt.points.is_empty() && learnt.left_out.iter().all(|point| point.why == "a run ended early"));
    // Activations that were missed are no promise of none.
    let learnt = learn(&[&RunResult::from_report(fixture::wake())], MARGIN);
    assert!(learnt.points.iter().flat_map(|point| &point.limits).all(|limit| limit.metric != "missed"));
}
