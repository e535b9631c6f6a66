use super::*;
use latscope_bench::recorder::{HistogramSlotLayout, HistogramSlotWriter};
use latscope_core::plan::{Periodic, Phase, Stop, params};
use latscope_core::report::Sampling;

fn step(points: usize, threshold: u64) -> PlanStep {
    let point = |cpu: u64| MeasurementPoint {
        probe: "wake.timer".to_owned(),
        revision: 1,
        params: params([("cpu", (10 + cpu).into())]),
        title: String::new(),
        row: false,
    };
    let stop = Stop { samples: 0, events: 0, batch_ns: 0, budget_ns: 0, limit_ns: 0 };
    let periodic = Some(Periodic { threshold: Some(threshold), ..Periodic::new(Phase::Free, 0) });
    let points = (0..points as u64).map(point).collect();
    PlanStep { periodic, ..PlanStep::new("wake.timer", points, vec![10], stop) }
}

/// Slots of a step with a writer for each point.
fn slots(step: &PlanStep) -> (Slots, Vec<HistogramSlotWriter>) {
    let layout = HistogramSlotLayout::of_step(step);
    let slots = Slots::map_memfd(Slots::create_memfd(&layout).unwrap(), layout).unwrap();
    let writers: Vec<HistogramSlotWriter> =
        (0..step.points.len()).map(|point| slots.writer(point, Sampling::Event)).collect();
    writers.iter().for_each(HistogramSlotWriter::adopt);
    (slots, writers)
}

fn sample(turn: u64, value: u64) -> Exceedance {
    Exceedance { turn, at: 1_000_000 + turn, value }
}

#[test]
fn outliers_are_taken_once_and_the_worst_of_each_point_are_kept() {
    let step = step(2, 5);
    let (slots, writers) = slots(&step);
    let mut outliers = Outliers::for_step(&step, &OnThreshold::default(), 1_000_000);
    let kept = KEPT as u64;
    (0..kept + 6).for_each(|turn| writers[1].exceed(sample(turn, 100 + turn)));
    let taken = outliers.take_outliers(&slots);
    assert_eq!(taken.len() as u64, kept + 6);
    assert_eq!(taken[3], Outlier { at: 3, cpu: 11, value: 103, ..Outlier::default() });
    assert_eq!(outliers.take_outliers(&slots), []);
    let (worst, first) = outliers.of_point(1);
    assert_eq!((worst.len(), worst[0].value, worst[KEPT - 1].value), (KEPT, 106, 105 + kept));
    assert_eq!((first.len(), first[0], first[63]), (FIRST, sample(0, 100), sample(63, 163)));
    assert_eq!(outliers.of_point(0), (Vec::new(), Vec::new()));
    outliers.sum_up();
    assert_eq!(outliers.warnings, []);
}

/// Keeps each of the longest, however many come in a second: here without a trace, so that no cause is known.
#[test]
fn the_longest_are_kept_however_many_there_are() {
    let step = step(1, 5);
    let (slots, writers) = slots(&step);
    let plan = OnThreshold { blame: true, ..OnThreshold::default() };
    let mut outliers = Outliers::for_step(&step, &plan, 0);
    for round in 0..4 {
        (0..500).for_each(|turn| writers[0].exceed(sample(round * 500 + turn, 10 + turn)));
        writers[0].exceed(sample(5000 + round, 33_000_000 + round));
        outliers.last(&slots);
    }
    let (worst, _) = outliers.of_point(0);
    assert_eq!(worst.len(), KEPT);
    assert!(worst.iter().filter(|outlier| outlier.value > 33_000_000 - 1).count() == 4);
    assert!(worst.iter().all(|outlier| outlier.cause.is_empty()));
    // The shortest are not: of 500 different lengths four times each the longest are kept.
    assert!(worst.iter().all(|outlier| outlier.value >= 10 + 500 - KEPT as u64 / 4 - 1));
}

#[test]
fn events_that_come_soon_after_others_wait_and_none_is_forgotten() {
    let step = step(1, 5);
    let (slots, writers) = slots(&step);
    let mut outliers = Outliers::for_step(&step, &OnThreshold::default(), 0);
    assert_eq!(outliers.examination_delay(), None);
    writers[0].exceed(sample(0, 7));
    assert_eq!(outliers.take_outliers(&slots).len(), 1);
    outliers.read_at = Some(Instant::now() + SECOND);
    writers[0].exceed(sample(1, 8));
    assert_eq!(outliers.take_outliers(&slots), []);
    assert!(outliers.examination_delay().is_some_and(|pause| pause >= PAUSE));
    assert_eq!(outliers.last(&slots).len(), 1);
    assert_eq!(outliers.examination_delay(), None);
}

#[test]
fn what_came_too_fast_is_counted() {
    let step = step(1, 5);
    let (slots, writers) = slots(&step);
    let mut outliers = Outliers::for_step(&step, &OnThreshold::default(), 0);
    (0..3000).for_each(|turn| writers[0].exceed(sample(turn, 9)));
    let taken = outliers.take_outliers(&slots).len() as u64;
    outliers.sum_up();
    let text = &outliers.warnings[0].text;
    assert!(text.starts_with(&count_with_noun(3000 - taken, "event")), "{taken} taken: {text}");
}

#[test]
fn without_a_threshold_of_the_user_no_text_speaks_of_one() {
    let step = step(1, u64::MAX);
    let (slots, writers) = slots(&step);
    for (worst, events) in [
        (None, "events above the threshold are not explained"),
        (Some(1), "the longest event is not explained"),
        (Some(10), "the 10 longest events are not explained"),
    ] {
        let mut outliers = Outliers::for_step(&step, &OnThreshold { worst, ..OnThreshold::default() }, 0);
        (0..3000).for_each(|turn| writers[0].exceed(sample(turn, 9)));
        outliers.take_outliers(&slots);
        outliers.sum_up();
        assert_eq!(outliers.unexplained(), events);
        let Warning { text, remedy, .. } = &outliers.warnings[0];
        let all = format!("{text} ({})", remedy.as_deref().unwrap_or_default());
        assert_eq!(all.contains("threshold"), worst.is_none(), "{all}");
    }
}

#[test]
fn the_budget_is_for_a_second() {
    let (now, mut budget) = (Instant::now(), ActionRateLimit::default());
    let mut granted = |at| (0..60).filter(|_| budget.grants(at)).count();
    assert_eq!((granted(now), granted(now + SECOND / 2), granted(now + SECOND)), (50, 0, 50));
    assert_eq!(budget.refused, 10 + 60 + 10);
}

#[test]
fn the_threshold_follows_the_worst_from_the_first_event_on() {
    let step = step(2, u64::MAX);
    let (slots, writers) = slots(&step);
    let plan = OnThreshold { worst: Some(3), ..OnThreshold::default() };
    let mut outliers = Outliers::for_step(&step, &plan, 0);
    outliers.arm(&slots);
    assert_eq!(slots.threshold(), 0);
    writers[0].exceed(sample(0, 6_000_000));
    writers[1].exceed(sample(1, 20));
    outliers.take_outliers(&slots);
    assert_eq!(slots.threshold(), 0, "fewer than wanted");
    for (turn, value) in [(2, 31), (3, 90), (4, 40), (5, 80), (6, 35)] {
        writers[turn % 2].exceed(sample(turn as u64, value));
    }
    outliers.last(&slots);
    assert_eq!(slots.threshold(), 80);
    let values = |outliers: Vec<Outlier>| outliers.iter().map(|o| o.value).collect::<Vec<_>>();
    // The first event is among them.
    assert_eq!(values(outliers.of_point(0).0), [6_000_000]);
    assert_eq!(values(outliers.of_point(1).0), [90, 80]);
}

#[test]
fn the_longest_event_is_listed_also_if_it_came_too_fast() {
    let step = step(1, 5);
    let (slots, mut writers) = slots(&step);
    let plan = OnThreshold { blame: true, ..OnThreshold::default() };
    let mut outliers = Outliers::for_step(&step, &plan, 0);
    writers[0].record_value(90_000, 17);
    writers[0].exceed(sample(0, 90_000));
    (1..3000).for_each(|turn| writers[0].exceed(sample(turn, 9)));
    outliers.last(&slots);
    let (worst, _) = outliers.of_point(0);
    let longest = worst.iter().max_by_key(|outlier| outlier.value).unwrap();
    // To the width of a bucket.
    assert!(longest.value.abs_diff(90_000) < 2_000 && longest.at == 17, "{longest:?}");
    assert_eq!(longest.cause, []);
}

#[test]
fn what_the_scheduler_held_back_is_warned_of_with_the_remedy() {
    let mut outliers = Outliers::for_step(&step(1, 5), &OnThreshold::default(), 0);
    let cause =
        |kind: &str, name: &str, ns| Cause { kind: kind.to_owned(), name: name.to_owned(), pid: 0, ns };
    let throttling = |ns| cause(kind::THROTTLING, "hog (real-time priority 10)", ns);
    (0..3).for_each(|_| outliers.count_held_back(&[throttling(9), cause("thread", "other", 1)]));
    outliers.count_held_back(&[cause(kind::QUOTA, "", 9)]);
    // Without throttling this hog would never end.
    outliers.count_held_back(&[cause("thread", "hog", 80), throttling(6)]);
    outliers.sum_up();
    let told: Vec<_> = outliers.warnings.iter().map(|w| (w.id.as_str(), w.text.as_str())).collect();
    let expected = [
        ("quota", "the CPU quota of a control group delayed 1 event"),
        ("rt-throttling", "real-time throttling delayed 3 events: hog (real-time priority 10)"),
    ];
    assert_eq!(told, expected);
    assert!(outliers.warnings[1].remedy.as_ref().unwrap().contains("sched_rt_runtime_us"));
}

#[test]
fn a_command_gets_the_outlier_and_is_not_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("said");
    let command = format!("echo $$ $LATSCOPE_CPU $LATSCOPE_NS >{}", file.display());
    let plan = OnThreshold { actions: vec![Action::Exec(command)], ..OnThreshold::default() };
    let step = step(1, 5);
    let (slots, writers) = slots(&step);
    let mut outliers = Outliers::for_step(&step, &plan, 0);
    writers[0].exceed(sample(0, 77));
    outliers.take_outliers(&slots);
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
