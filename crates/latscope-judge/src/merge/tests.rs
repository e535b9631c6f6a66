use super::*;
use latscope_core::fixture;
use latscope_core::histogram::Histogram;
use latscope_core::plan::{MeasuringThreadPolicy, OnThreshold};
use latscope_core::report::Sampling;
use proptest::prelude::*;

/// A run of single events of two points, of which the second is absent without values.
fn run(at: usize, values: &[Vec<u64>; 2]) -> Report {
    let mut report = fixture::wake();
    report.run_id = format!("run-{at}");
    report.started = format!("2026-11-2{at}T10:00:00Z");
    report.measurements.truncate(2);
    for (m, values) in report.measurements.iter_mut().zip(values) {
        m.histogram = Histogram::new(1000);
        values.iter().for_each(|value| m.histogram.record(*value));
        (m.corrected, m.tested) = (None, None);
        m.derive_results();
    }
    report.measurements.retain(|m| m.summary.count > 0);
    report
}

fn merged<const N: usize>(reports: [&Report; N]) -> Report {
    merge(reports.map(|report| ("a file".to_owned(), report.clone())).into()).unwrap()
}

#[test]
fn what_differs_is_named_and_each_run_stays_known() {
    let values = [vec![5000; 40], vec![7000; 40]];
    let [a, mut b] = [run(1, &values), run(2, &[vec![6000; 60], Vec::new()])];
    b.machine.kernel = "6.12.0".to_owned();
    b.labels.insert("board".to_owned(), "b3".to_owned());
    let whole = merged([&b, &a]);
    let known = whole.merged.as_ref().unwrap();
    assert_eq!(known.runs.iter().map(|run| &*run.run_id).collect::<Vec<_>>(), ["run-1", "run-2"]);
    let differs: Vec<&str> = known.differs.iter().map(|fact| &*fact.what).collect();
    assert_eq!(differs, ["kernel", "label board"]);
    assert_eq!(known.differs[1].values, [("b3".to_owned(), 1), ("none".to_owned(), 1)].into());
    assert_eq!((&*whole.machine.kernel, &*whole.machine.name), ("", "bench"));
    let rounds: Vec<usize> = whole.measurements.iter().map(|m| m.rounds.len()).collect();
    assert_eq!(rounds, [2, 1], "the second point is of one run");
    let first = &whole.measurements[0];
    assert_eq!((first.summary.count, first.rounds[0].count, first.rounds[1].count), (100, 40, 60));
    assert!(first.interval.is_some() && first.blocks.is_empty());
    // It survives its file, and is no run that is judged beside others.
    let text = whole.to_json();
    assert_eq!(Report::from_json(text.as_bytes()).unwrap(), whole);
    assert!(crate::imports::read_run(text.as_bytes()).unwrap_err().to_string().contains("several runs"));
}

#[test]
fn redacted_runs_are_not_said_to_be_of_one_machine() {
    let values = [vec![5000; 40], vec![7000; 40]];
    let [mut a, mut b] = [run(1, &values), run(2, &values)];
    let warned = |whole: &Report| whole.warnings.iter().filter(|one| one.id == MACHINE_NOT_KNOWN).count();
    assert_eq!(warned(&merged([&a, &b])), 0);
    for one in [&mut a, &mut b] {
        "machine-1".clone_into(&mut one.machine.name);
    }
    let both = merged([&a, &b]);
    assert_eq!(warned(&both), 1);
    assert_eq!(warned(&merged([&both, &run(3, &values)])), 1);
}

#[test]
fn a_run_is_merged_once() {
    let values = [vec![1], vec![2]];
    let (a, b) = (run(1, &values), run(2, &values));
    let both = merged([&a, &b]);
    let error =
        merge(vec![("b.json".to_owned(), b), ("both.json".to_owned(), both)]).unwrap_err().to_string();
    assert!(["b.json", "both.json", "run-2"].iter().all(|word| error.contains(word)), "{error}");
    assert!(merge(Vec::new()).is_err());
}

#[test]
fn a_merge_takes_two_results_with_a_common_point() {
    let named = |name: &str, report: &Report| (name.to_owned(), report.clone());
    let [a, b] = [run(1, &[vec![1], vec![2]]), run(2, &[vec![1], Vec::new()])];
    let other = Report { run_id: "other".to_owned(), ..fixture::ipc::latency() };
    let refused = |results: Vec<(String, Report)>| merge(results).unwrap_err().to_string();
    let alone = refused(vec![named("a.json", &a), named("b.json", &b), named("other.json", &other)]);
    assert!(alone.starts_with("other.json has no point in common"), "{alone}");
    let none = refused(vec![named("b.json", &b), named("other.json", &other)]);
    assert!(none.contains("has no point in common"), "{none}");
    let single = refused(vec![named("a.json", &a)]);
    assert!(single.starts_with("a.json is the only result"), "{single}");
    let merged = merge(vec![named("a.json", &a), named("b.json", &b)]).unwrap();
    assert!(refused(vec![named("both.json", &merged)]).starts_with("both.json is the only result"));
}

#[test]
fn points_that_are_not_alike_stay_apart() {
    let values = [vec![3000; 20], vec![4000; 20]];
    let a = run(1, &values);
    let changes: [fn(&mut Report); 4] = [
        |b| b.measurements[0].revision += 1,
        |b| b.measurements[0].times = latscope_core::report::Semantics::RoundTrip,
        |b| b.measurements[0].sampling = Sampling::Batch { ops: 9 },
        |b| {
            b.measurements[0].histogram = Histogram::new(1);
            b.measurements[0].histogram.record(3);
            b.measurements[0].derive_results();
        },
    ];
    for change in changes {
        let mut b = run(2, &values);
        change(&mut b);
        let whole = merged([&a, &b]);
        assert_eq!(whole.measurements.len(), 3);
        let again = merged([&whole, &run(3, &values)]);
        assert_eq!((again.measurements.len(), again.measurements[0].rounds.len()), (3, 2));
    }
    let (batched, mut longer) = (fixture::report(), fixture::report());
    longer.run_id = "longer".to_owned();
    longer.plan.steps.iter_mut().for_each(|step| step.stop.batch_ns *= 2);
    let batches =
        batched.measurements.iter().filter(|m| m.sampling != Sampling::Event && m.summary.count > 0);
    let planned = batches.filter(|m| batched.batch_target(m).is_some_and(|length| length > 0)).count();
    let whole = merged([&batched, &longer]);
    assert!(planned > 0);
    assert_eq!(whole.measurements.len(), batched.measurements.len() + planned);
}

fn values() -> impl Strategy<Value = [Vec<u64>; 2]> {
    // The first point is in all runs.
    let some = |least| proptest::collection::vec(0u64..1 << 50, least..20);
    (some(1), some(0)).prop_map(|(a, b)| [a, b])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn merging_is_associative_and_equals_one_histogram_of_all(all in [values(), values(), values()]) {
        let runs: Vec<Report> = (1..).zip(&all).map(|(at, values)| run(at, values)).collect();
        let flat = merged([&runs[0], &runs[1], &runs[2]]);
        let left = merged([&merged([&runs[0], &runs[1]]), &runs[2]]);
        let right = merged([&runs[0], &merged([&runs[1], &runs[2]])]);
        let turned = merged([&runs[2], &runs[0], &runs[1]]);
        prop_assert_eq!(&flat, &left);
        prop_assert_eq!(&flat, &right);
        prop_assert_eq!(&flat, &turned);
        for cpu in 0..2 {
            let mut whole = Histogram::new(1000);
            all.iter().flat_map(|values| &values[cpu]).for_each(|value| whole.record(*value));
            let point = flat.measurements.iter().find(|m| m.numeric_param("cpu") == Some(cpu as u64));
            prop_assert_eq!(point.map_or(Histogram::new(1000), |m| m.histogram.clone()), whole);
        }
    }
}

#[test]
fn other_conditions_and_a_trace_are_named() {
    let values = [vec![5000; 40], vec![7000; 40]];
    let [a, mut b] = [run(1, &values), run(2, &values)];
    b.plan.steps[0].conditions.lock_memory = false;
    b.plan.steps[0].policy = MeasuringThreadPolicy::Fifo(50);
    b.plan.on_threshold = Some(OnThreshold { blame: true, ..OnThreshold::default() });
    let whole = merged([&a, &b]);
    let differs = &whole.merged.as_ref().unwrap().differs;
    let blame = "setting on_threshold.blame";
    for name in ["setting conditions.lock_memory", "setting policy", blame] {
        let known = differs.iter().find(|fact| fact.what == name);
        assert_eq!(known.map(|fact| fact.values.len()), Some(2), "{name}: {differs:?}");
    }
}
