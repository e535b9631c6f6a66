use super::super::testing::{SECOND, snapshot, test_outlier, test_plan, test_step, test_step_snapshot};
use super::*;

fn begun(step: &PlanStep) -> LiveModel {
    let mut model = LiveModel::default();
    model.start_run(&test_plan(step));
    model
}

#[test]
fn the_head_says_what_runs() {
    let mut two = test_step(&[0, 3]);
    assert_eq!(begun(&two).head, "latscope wake  every 1 ms, fifo 95, nanosleep, monotonic, CPUs 0,3");
    two.points[1].params.insert("interval".to_owned(), 1_500_000.into());
    two.points[1].params.insert("policy".to_owned(), "other".into());
    assert_eq!(begun(&two).head, "latscope wake  every 1 ms to 1.5 ms, nanosleep, monotonic, CPUs 0,3");
    let one = begun(&test_step(&[2]));
    assert!(one.head.ends_with("CPU 2"));
    assert_eq!((one.rows[0].label.as_str(), one.choices()), ("2", 1));
    let shared = begun(&test_step(&[1, 1]));
    let labels: Vec<&str> = shared.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["#0 1", "#1 1"]);
}

#[test]
fn rates_are_those_of_the_last_full_second() {
    let step = test_step(&[0, 1]);
    let mut model = begun(&step);
    let mut rates = Vec::new();
    // The first is there when the screen begins to look.
    let counts = [(5, 100), (6, 300), (10, 1100), (15, 2100), (17, 2500), (27, 2600)];
    for (tenths, count) in counts {
        let half = || snapshot(&[(5000, count / 2)], 0, 0);
        model.apply_step_snapshot(&test_step_snapshot(&step, tenths * SECOND / 10, vec![half(), half()]));
        rates.push((model.rows[1].rate, model.all.rate));
    }
    let (first, second) = ((Some(1000.0), Some(2000.0)), (Some(1250.0 / 6.0), Some(500.0 / 1.2)));
    assert_eq!(rates[..3], [(None, None); 3]);
    assert_eq!(rates[3..5], [first, first]);
    let close = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-6;
    assert!(close(rates[5].0, second.0) && close(rates[5].1, second.1), "{:?}", rates[5]);
}

#[test]
fn all_is_the_sum_and_knows_whose_maximum_it_has() {
    let step = test_step(&[0, 1]);
    let mut model = begun(&step);
    let one = snapshot(&[(5000, 10), (7000, 1)], 1, 3 * SECOND);
    let other = snapshot(&[(4000, 10), (9000, 1)], 2, 2 * SECOND);
    model.apply_step_snapshot(&test_step_snapshot(&step, 10 * SECOND, vec![one, other]));
    assert_eq!((model.all.histogram.count(), model.all.missed), (22, 3));
    assert_eq!((model.all.histogram.min(), model.all.histogram.max()), (Some(4000.0), Some(9000.0)));
    let age = |row: &LiveThreadRow| model.age_of_max(row).map(|age| age / SECOND);
    assert_eq!([age(&model.rows[0]), age(&model.rows[1]), age(&model.all)], [Some(7), Some(8), Some(8)]);
    assert_eq!(model.row_at(2).label, "1");
    assert_eq!(model.row_at(0).label, "all");
    assert_eq!(model.row_at(9).label, "all");
}

#[test]
fn a_thread_that_has_not_begun_disturbs_no_other() {
    let step = test_step(&[0, 1]);
    let mut model = begun(&step);
    // Its slot does not know its tick yet.
    let silent = || Snapshot { histogram: Histogram::new(1), ..snapshot(&[], 0, 0) };
    model.apply_step_snapshot(&test_step_snapshot(&step, SECOND, vec![silent(), silent()]));
    assert_eq!((model.all.histogram.count(), model.age_of_max(&model.all)), (0, None));
    model.apply_step_snapshot(&test_step_snapshot(
        &step,
        2 * SECOND,
        vec![silent(), snapshot(&[(5000, 3)], 0, SECOND)],
    ));
    assert_eq!((model.all.histogram.count(), model.age_of_max(&model.rows[0])), (3, None));
}

#[test]
fn each_second_has_its_largest_on_every_cpu_and_on_all() {
    let step = test_step(&[0, 1]);
    let mut model = begun(&step);
    let mut at = |tenths: u64, one: &[(u64, usize)], other: &[(u64, usize)]| {
        let points = vec![snapshot(one, 0, 0), snapshot(other, 0, 0)];
        model.apply_step_snapshot(&test_step_snapshot(&step, tenths * SECOND / 10, points));
    };
    at(1, &[(50, 1)], &[(40, 1)]);
    at(9, &[(50, 1), (90, 1)], &[(40, 2)]);
    at(11, &[(50, 1), (90, 1), (60, 1)], &[(40, 2), (70, 1)]);
    at(32, &[(50, 1), (90, 1), (60, 1)], &[(40, 2), (70, 1), (30, 1)]);
    let seconds = |row: &LiveThreadRow| row.seconds.last(9).collect::<Vec<_>>();
    assert_eq!(seconds(&model.rows[0]), [Some(90.0), Some(60.0), None, None]);
    assert_eq!(seconds(&model.rows[1]), [Some(40.0), Some(70.0), None, Some(30.0)]);
    assert_eq!(seconds(&model.all), [Some(90.0), Some(70.0), None, Some(30.0)]);
}

#[test]
fn snapshots_that_come_too_fast_are_passed_over() {
    let step = test_step(&[0]);
    let mut model = begun(&step);
    let mut count = |at: u64, count: usize| {
        model.apply_step_snapshot(&test_step_snapshot(&step, at, vec![snapshot(&[(5, count)], 0, 0)]));
        model.all.histogram.count()
    };
    assert_eq!([count(SECOND, 1), count(SECOND + 50_000_000, 2), count(SECOND + 95_000_000, 3)], [1, 1, 3]);
}

#[test]
fn outliers_are_in_order_and_the_last_ones_are_kept() {
    let mut model = LiveModel::default();
    for at in [10, 30, 20, 40] {
        model.add_outlier(&test_outlier(at, 0, 1));
    }
    let times: Vec<u64> = model.outliers.iter().map(|outlier| outlier.at).collect();
    assert_eq!(times, [40, 30, 20, 10]);
    (100..1000).for_each(|at| model.add_outlier(&test_outlier(at, 0, 1)));
    assert_eq!((model.outliers.len(), model.outlier_count), (KEPT, 904));
    assert_eq!((model.outliers[0].at, model.outliers[KEPT - 1].at), (999, 900));
}

#[test]
fn progress_is_that_of_the_nearer_limit() {
    let mut counted = test_step(&[0, 1]);
    let mut model = begun(&counted);
    let theme = |model: &mut LiveModel, step: &PlanStep, seconds: u64, count: usize| {
        let half = || snapshot(&[(5, count / 2)], 0, 0);
        model.apply_step_snapshot(&test_step_snapshot(step, seconds * SECOND, vec![half(), half()]));
    };
    theme(&mut model, &counted, 2, 10);
    theme(&mut model, &counted, 17, 100);
    assert_eq!((model.elapsed(), model.time_limit_ns()), (16 * SECOND, Some(60 * SECOND)));
    assert_eq!((model.event_limit(), model.progress()), (None, Some(16.0 / 60.0)));
    counted.stop.events = 100;
    let mut model = begun(&counted);
    theme(&mut model, &counted, 2, 100);
    assert_eq!((model.event_limit(), model.progress()), (Some(200), Some(0.5)));
    counted.stop.events = u64::MAX;
    counted.stop.limit_ns = u64::MAX;
    assert_eq!(begun(&counted).progress(), None);
}

#[test]
fn a_warning_is_kept_once() {
    let mut model = LiveModel::default();
    let mut warning = Warning { id: "x".to_owned(), text: "memory is not locked".to_owned(), remedy: None };
    model.add_warning(&warning);
    model.add_warning(&warning);
    warning.remedy = Some("ulimit -l unlimited".to_owned());
    model.add_warning(&warning);
    assert_eq!(model.warnings, ["memory is not locked", "memory is not locked (ulimit -l unlimited)"]);
}

#[test]
fn another_step_begins_anew() {
    let (first, second) = (test_step(&[0]), test_step(&[1]));
    let mut model = begun(&first);
    model.apply_step_snapshot(&test_step_snapshot(&first, SECOND, vec![snapshot(&[(5, 1)], 0, 0)]));
    model.add_outlier(&test_outlier(1, 0, 1));
    model.apply_step_snapshot(&test_step_snapshot(&second, 9 * SECOND, vec![snapshot(&[(7, 2)], 0, 0)]));
    assert_eq!((model.rows[0].label.as_str(), model.all.histogram.count()), ("1", 2));
    assert_eq!((model.elapsed(), model.outlier_count), (8 * SECOND, 1));
}

#[test]
fn a_round_begins_anew_and_is_told() {
    let step = PlanStep { rounds: 3, ..test_step(&[0]) };
    let mut model = begun(&step);
    assert_eq!((model.round().as_deref(), model.time_limit_ns()), (Some("round 1 of 3"), Some(20 * SECOND)));
    let mut seen = |number: u32, at: u64, count: usize| {
        let step = step.in_round(number - 1);
        let points = vec![snapshot(&[(5, count)], 0, 0)];
        let round = StepRound::of(&step, number - 1);
        model.apply_step_snapshot(&StepSnapshot {
            round,
            began: (u64::from(number) - 1) * 20 * SECOND,
            ..test_step_snapshot(&step, at, points)
        });
        (model.round().unwrap(), model.elapsed() / SECOND, model.all.histogram.count())
    };
    assert_eq!(seen(1, 19 * SECOND, 900), ("round 1 of 3".to_owned(), 19, 900));
    assert_eq!(seen(2, 22 * SECOND, 5), ("round 2 of 3".to_owned(), 2, 5));
    assert_eq!(seen(2, 24 * SECOND, 50), ("round 2 of 3".to_owned(), 4, 50));
}

#[test]
fn the_first_look_at_a_step_knows_how_long_it_has_been_running() {
    let step = test_step(&[0]);
    let mut model = begun(&step);
    model.apply_step_snapshot(&test_step_snapshot(&step, 11 * SECOND, vec![snapshot(&[(5, 10_000)], 0, 0)]));
    assert_eq!(model.elapsed(), 10 * SECOND);
}
