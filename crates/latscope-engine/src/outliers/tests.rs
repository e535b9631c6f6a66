use super::*;
use latscope_bench::recorder::{Layout, Writer};
use latscope_core::plan::{Conditions, Periodic, Phase, Policy, Stop, params};
use latscope_core::report::Sampling;

fn step(points: usize, threshold: u64) -> Step {
    let point = |cpu: u64| Point {
        probe: "wake.timer".to_owned(),
        revision: 1,
        params: params([("cpu", (10 + cpu).into())]),
        title: String::new(),
        row: false,
    };
    Step {
        rounds: 1,
        name: "wake.timer".to_owned(),
        points: (0..points as u64).map(point).collect(),
        cpus: vec![10],
        policy: Policy::Other,
        stop: Stop { samples: 0, events: 0, batch_ns: 0, budget_ns: 0, limit_ns: 0 },
        conditions: Conditions::default(),
        periodic: Some(Periodic { threshold: Some(threshold), ..Periodic::new(Phase::Free, 0) }),
        seed: 1,
    }
}

/// Slots of a step with a writer for each point.
fn slots(step: &Step) -> (Slots, Vec<Writer>) {
    let layout = Layout::of(step);
    let slots = Slots::map(Slots::create(&layout).unwrap(), layout).unwrap();
    let writers = (0..step.points.len()).map(|point| slots.writer(point, Sampling::Event)).collect();
    (slots, writers)
}

fn sample(turn: u64, value: u64) -> Exceedance {
    Exceedance { turn, at: 1_000_000 + turn, value }
}

#[test]
fn outliers_are_taken_once_and_the_worst_of_each_point_are_kept() {
    let step = step(2, 5);
    let (slots, writers) = slots(&step);
    let mut outliers = Outliers::of(&step, &OnThreshold::default(), 1_000_000);
    (0..70).for_each(|turn| writers[1].exceed(sample(turn, 100 + turn)));
    let taken = outliers.take(&slots);
    assert_eq!(taken.len(), 70);
    assert_eq!(taken[3], Outlier { at: 3, cpu: 11, value: 103, cause: Vec::new() });
    assert_eq!(outliers.take(&slots), []);
    let (worst, first) = outliers.of_point(1);
    assert_eq!((worst.len(), worst[0].value, worst[63].value), (64, 106, 169));
    assert_eq!((first.len(), first[0], first[63]), (64, sample(0, 100), sample(63, 163)));
    assert_eq!(outliers.of_point(0), (Vec::new(), Vec::new()));
    outliers.sum_up();
    let ids: Vec<_> = outliers.warnings.iter().map(|warning| warning.id.as_str()).collect();
    assert_eq!(ids, ["outliers-unattended"]);
    assert!(outliers.warnings[0].text.starts_with("20 events"), "{:?}", outliers.warnings);
}

#[test]
fn what_came_too_fast_is_counted() {
    let step = step(1, 5);
    let (slots, writers) = slots(&step);
    let mut outliers = Outliers::of(&step, &OnThreshold::default(), 0);
    (0..3000).for_each(|turn| writers[0].exceed(sample(turn, 9)));
    let taken = outliers.take(&slots).len() as u64;
    outliers.sum_up();
    let text = &outliers.warnings[0].text;
    assert!(text.starts_with(&counted(3000 - taken, "event")), "{taken} taken: {text}");
}

#[test]
fn the_budget_is_for_a_second_and_the_worst_have_it_first() {
    let (now, mut budget) = (Instant::now(), Budget::default());
    assert_eq!(budget.grant(30, now), 30);
    assert_eq!((budget.grant(30, now + SECOND / 2), budget.refused), (20, 10));
    assert_eq!((budget.grant(60, now + SECOND), budget.refused), (50, 20));
    let mut outliers = Outliers::of(&step(1, 5), &OnThreshold::default(), 0);
    let fresh: Vec<_> = (0..52).map(|turn| (0, sample(turn, turn))).collect();
    let attended = outliers.attended(&fresh);
    assert_eq!((attended[..2].contains(&true), attended[2..].contains(&false)), (false, false));
}

#[test]
fn the_threshold_follows_the_worst_after_the_first_second() {
    let step = step(2, u64::MAX);
    let (slots, mut writers) = slots(&step);
    let plan = OnThreshold { worst: Some(3), ..OnThreshold::default() };
    let mut outliers = Outliers::of(&step, &plan, 0);
    for (at, value) in [10, 50, 20, 60, 30, 7].into_iter().enumerate() {
        writers[at % 2].record(value, at as u64);
    }
    let now = Instant::now();
    outliers.follow(&slots, 3, now);
    assert_eq!(slots.threshold(), u64::MAX);
    outliers.follow(&slots, 3, now + SECOND);
    assert_eq!(slots.threshold(), 30);
    // Fewer than wanted: nothing is known yet.
    outliers.follow(&slots, 7, now + 2 * SECOND);
    assert_eq!(slots.threshold(), 30);
    for (turn, value) in [(0, 31), (1, 90), (2, 40), (3, 80), (4, 35)] {
        writers[turn % 2].exceed(sample(turn as u64, value));
    }
    assert_eq!(outliers.take(&slots).len(), 5);
    let values = |outliers: Vec<Outlier>| outliers.iter().map(|o| o.value).collect::<Vec<_>>();
    assert_eq!(values(outliers.of_point(0).0), [40]);
    assert_eq!(values(outliers.of_point(1).0), [90, 80]);
}

#[test]
fn a_command_gets_the_outlier_and_is_not_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("said");
    let command = format!("echo $$ $LATSCOPE_CPU $LATSCOPE_NS >{}", file.display());
    let plan = OnThreshold { actions: vec![Action::Exec(command)], ..OnThreshold::default() };
    let step = step(1, 5);
    let (slots, writers) = slots(&step);
    let mut outliers = Outliers::of(&step, &plan, 0);
    writers[0].exceed(sample(0, 77));
    outliers.take(&slots);
    let said = loop {
        let said = std::fs::read_to_string(&file).unwrap_or_default();
        if said.ends_with('\n') {
            break said;
        }
        std::thread::yield_now();
    };
    let (process, rest) = said.split_once(' ').unwrap();
    assert_eq!(rest, "10 77\n");
    // Not even as a zombie.
    while std::path::Path::new("/proc").join(process).exists() {
        std::thread::yield_now();
    }
}
