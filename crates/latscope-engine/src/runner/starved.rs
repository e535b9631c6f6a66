//! Measuring threads that want a CPU and have none: they are named, and let go when the run ends.

use super::Coordinator;
use super::deadlines::CoordinatorDeadlines;
use crate::link::WorkerLink;
use anyhow::{Result, anyhow};
use latscope_bench::hold::Shortfall;
use latscope_bench::protocol::PointResult;
use latscope_bench::recorder::{Slots, ThreadDueState};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::plan::PlanStep;
use latscope_core::quality::{NOT_RUN, QualityLevel, Reason};
use latscope_core::report::{Exceedance, Measurement, SampleBlock, Sampling, Warning};
use latscope_core::units::format_time;
use latscope_machine::SystemRoot;
use latscope_machine::starvation::{self, Runnable, Starvation, occupant};
use latscope_os::clock::monotonic_ns;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Looks at the progress of a step's measuring threads.
pub(super) struct StarvationMonitor {
    starvation: Starvation,
    /// Points whose threads were due and had not run, at the last two looks, with how late they were, ns. One look is
    /// not enough: all may have stood still together, and go on one by one.
    late: BTreeMap<usize, u64>,
    /// Points whose threads were due and had not run at the last look, with the instant at which they were.
    due: BTreeMap<usize, u64>,
    /// Points whose threads were let go, with how late they were then, ns.
    let_go: BTreeMap<usize, u64>,
    /// True if a thread of the worker stood at the last look, and no progress of any is known.
    stands: bool,
    /// Samples at the last look, and when there was another number of them.
    counted: (u64, Instant),
    /// Each CPU that a thread waited for, with who had it at the last look.
    occupants: BTreeMap<u32, Option<String>>,
    said: Vec<(u32, Option<String>)>,
}

/// Time beyond that of a point after which a worker that does not run is ended.
const PATIENCE: Duration = Duration::from_secs(1);

impl StarvationMonitor {
    pub(super) fn new() -> StarvationMonitor {
        StarvationMonitor {
            starvation: Starvation::default(),
            late: BTreeMap::new(),
            due: BTreeMap::new(),
            let_go: BTreeMap::new(),
            stands: false,
            counted: (0, Instant::now()),
            occupants: BTreeMap::new(),
            said: Vec::new(),
        }
    }

    /// Looks at the threads; returns a warning for each CPU that another thread has kept them from since then. Those of
    /// a step that states no instants are looked at only when it is `overdue`: that takes a while.
    pub(super) fn check_threads(
        &mut self,
        step: &PlanStep,
        link: &WorkerLink,
        now: u64,
        overdue: bool,
    ) -> Vec<Warning> {
        let slots = &link.slots;
        let progress: Vec<ThreadDueState> =
            (0..step.points.len()).map(|point| slots.due_state(point)).collect();
        self.update_late_points(&progress, now);
        let known = progress.iter().any(|one| *one != ThreadDueState::Unknown);
        let stuck = !known && self.is_stuck(step, slots) && overdue;
        self.stands = false;
        if self.due.is_empty() && !stuck || slots.let_go_at().is_some() {
            self.starvation = Starvation::default();
            return Vec::new();
        }
        let runnable = self.starvation.find_runnable(&SystemRoot::real(), link.process());
        let standing = || runnable.iter().find(|thread| thread.stands);
        let mut waiting: Vec<(&Runnable, u64)> = Vec::new();
        for (point, late) in &self.late {
            let own = runnable.iter().find(|thread| thread.thread == slots.thread(*point));
            // One that is still set up is not known, and one that is woken by another waits for that.
            let cpu = step.points[*point].params.get(param::CPU).and_then(|cpu| cpu.as_number());
            let there = || {
                let there = |thread: &&Runnable| cpu == Some(thread.cpu.into());
                runnable.iter().filter(there).find(|thread| thread.thread != link.process())
            };
            waiting.extend(own.or_else(there).or_else(standing).map(|thread| (thread, *late)));
        }
        if stuck {
            let still = self.counted.1.elapsed().as_nanos() as u64;
            self.stands = standing().is_some();
            waiting.extend(standing().map(|thread| (thread, still)));
        }
        waiting.into_iter().filter_map(|(thread, late)| self.name_occupant(thread, late)).collect()
    }

    /// Finds the points that are late, and were so for the same instant at the look before.
    fn update_late_points(&mut self, progress: &[ThreadDueState], now: u64) {
        let due = progress.iter().enumerate().filter_map(|(point, one)| match one {
            ThreadDueState::Due(due) if one.starvation_ns(now).is_some() => Some((point, *due)),
            _ => None,
        });
        let before = std::mem::replace(&mut self.due, due.collect());
        let again = self.due.iter().filter(|(point, due)| before.get(point) == Some(due));
        self.late = again.map(|(point, due)| (*point, now - due)).collect();
    }

    /// Forgets what was seen of threads that stand still with their process.
    fn reset_progress(&mut self) {
        (self.late, self.due) = Default::default();
        self.starvation = Starvation::default();
    }

    /// Returns true if a thread is late that was not so at the look before.
    fn is_to_look_again(&self) -> bool {
        self.due.len() > self.late.len()
    }

    /// Returns true if there were no samples for a second.
    fn is_stuck(&mut self, step: &PlanStep, slots: &Slots) -> bool {
        let count = (0..step.points.len()).map(|point| slots.attempt_count(point)).sum();
        if self.counted.0 != count {
            self.counted = (count, Instant::now());
        }
        self.counted.1.elapsed() >= PATIENCE
    }

    /// Finds who has the CPU that a thread waits for. Returns a warning the first time.
    fn name_occupant(&mut self, thread: &Runnable, late: u64) -> Option<Warning> {
        let found = occupant(&SystemRoot::real(), thread, std::process::id());
        let known = self.occupants.entry(thread.cpu).or_default();
        *known = found.clone().or(known.take());
        let key = (thread.cpu, found);
        if self.said.contains(&key) {
            return None;
        }
        let time = format_time(late as f64);
        let text = format!("CPU {}: the thread has not run for {time}: {}", key.0, has_it(key.1.as_deref()));
        let remedy = if key.1.is_some() { REMEDY } else { ELSEWHERE };
        self.said.push(key);
        Some(Warning { id: NOT_RUN.to_owned(), text, remedy: Some(remedy.to_owned()) })
    }

    /// Returns true if threads are to be let go: a run that ends does not wait for them.
    pub(super) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Returns why a worker is ended that does not come to measure, if it does not.
    pub(super) fn standstill(&self) -> Option<String> {
        let who = || self.words().unwrap_or_else(|| "who had the CPU is not known".to_owned());
        self.stands.then(|| format!("the worker did not run: {}", who()))
    }

    /// Returns true if a step that began then is past its time.
    pub(super) fn is_overdue(step: &PlanStep, slots: &Slots, since: Instant, now: u64) -> bool {
        let end = slots.last_end();
        let planned = if end.is_some() { counted_ns(step) } else { step.stop.limit_ns };
        let limit = Duration::from_nanos(planned).saturating_add(PATIENCE);
        end.is_some_and(|end| now >= end) || since.elapsed() >= limit
    }

    /// Lets the late threads go: moves all threads of the worker to a CPU where they can run, except those of points
    /// that are not late.
    pub(super) fn let_go(&mut self, step: &PlanStep, link: &WorkerLink, now: u64) {
        link.slots.let_go(now);
        link.slots.ask_to_stop();
        // One that ran since the look has recorded how late it was, and ends by itself.
        self.late.retain(|point, late| link.slots.due_state(*point) == ThreadDueState::Due(now - *late));
        for (point, late) in &self.late {
            self.let_go.entry(*point).or_insert(*late);
        }
        let on_time = (0..step.points.len()).filter(|point| !self.late.contains_key(point));
        let on_time: Vec<u32> = on_time.map(|point| link.slots.thread(point)).collect();
        let still_late = |thread: &u32| self.late.keys().any(|point| link.slots.thread(*point) == *thread);
        let except: Vec<u32> = on_time.into_iter().filter(|thread| !still_late(thread)).collect();
        link.move_threads_here(&except);
    }

    /// Words of who had the CPUs; `None` if that is not known.
    fn words(&self) -> Option<String> {
        let words = |(cpu, name): (&u32, &Option<String>)| {
            let name = name.as_deref().unwrap_or("a thread that is not known");
            format!("{name} had CPU {cpu}")
        };
        let known = self.occupants.iter().map(words).collect::<Vec<_>>();
        (!known.is_empty()).then(|| known.join(", "))
    }

    /// Records what the threads were due for at `ended` and had not run for: late by that much at least. The worker has
    /// ended.
    pub(super) fn record_missed(
        &self,
        step: &PlanStep,
        slots: &Slots,
        results: &mut [Option<PointResult>],
        (ended, epoch_ns): (u64, u64),
    ) -> Vec<Unfinished> {
        let ended = slots.let_go_at().unwrap_or(ended);
        let mut all = Vec::new();
        for (point, result) in results.iter_mut().enumerate() {
            let (progress, threaded) = (slots.due_state(point), slots.thread(point) != 0);
            let (ThreadDueState::Due(due), Some(late)) = (progress, progress.starvation_ns(ended)) else {
                // A thread that watches time has recorded by itself what it missed until it was let go.
                let longest = || slots.snapshot(point).histogram.max().map_or(0, |max| max as u64);
                let late = self.let_go.get(&point).map(|late| (*late).min(longest()));
                all.extend(late.map(|late| Unfinished { point, late, words: self.words() }));
                continue;
            };
            let turn = slots.snapshot(point).histogram.count();
            let sample = Exceedance { turn, at: ended, value: late };
            let (interval, missed) =
                missed(step, point, due, slots.end_of(point).map_or(ended, |end| end.min(ended)));
            let mut writer = slots.writer(point, Sampling::Event);
            writer.record_event(sample, epoch_ns, missed, interval);
            if threaded && late > writer.threshold() {
                writer.exceed(sample);
            }
            writer.mark_over();
            if let Some(result) = result {
                add_to_blocks(&mut result.blocks, ended.saturating_sub(epoch_ns), late);
            }
            all.push(Unfinished { point, late, words: self.words() });
        }
        all
    }
}

impl Coordinator<'_> {
    /// Looks at the progress of the threads. A step that is to end does not wait for those that have no CPU.
    ///
    /// # Errors
    /// The worker does not come to measure; the text names who has its CPU.
    pub(super) fn check_progress(
        &mut self,
        step: &PlanStep,
        link: &WorkerLink,
        deadlines: &mut CoordinatorDeadlines,
        starved: &mut StarvationMonitor,
    ) -> Result<()> {
        if link.is_halted() {
            // It has no CPU since it wants none.
            starved.reset_progress();
            return Ok(());
        }
        let now = monotonic_ns();
        let overdue =
            self.told.is_none() && StarvationMonitor::is_overdue(step, &link.slots, self.since, now);
        let warnings = starved.check_threads(step, link, now, overdue);
        warnings.into_iter().for_each(|warning| self.pass_on(warning));
        if let Some(text) = starved.standstill() {
            return Err(anyhow!(text));
        }
        if starved.is_to_look_again() {
            deadlines.look_soon();
        }
        // A count may take longer than its intervals without being at its end.
        if overdue && link.slots.last_end().is_some_and(|end| now >= end) {
            deadlines.shorten_period();
        }
        if starved.has_late() && (overdue || self.told.is_some()) {
            starved.let_go(step, link, now);
            deadlines.let_go();
        }
        Ok(())
    }
}

/// Event that had not come when the run ended.
pub(super) struct Unfinished {
    point: usize,
    late: u64,
    /// Words of who had the CPU, if that is known.
    words: Option<String>,
}

/// Time that a count of periodic activations takes where none is missed, ns, with the wait for a full second of the
/// clock. `u64::MAX` without a count.
fn counted_ns(step: &PlanStep) -> u64 {
    let Some(periodic) = &step.periodic else { return u64::MAX };
    let intervals = step.points.iter().filter_map(|point| point.params.get(param::INTERVAL)?.as_number());
    let alignment = u64::from(periodic.align_second) * 1_000_000_000;
    let activations = periodic.warm_up.saturating_add(step.stop.events);
    intervals.max().unwrap_or(u64::MAX).saturating_mul(activations).saturating_add(alignment)
}

/// Warns of a run that has only these CPUs and may not end.
pub(super) fn cannot_end(cpus: &[u32]) -> Option<Warning> {
    let text = starvation::cannot_end(&SystemRoot::real(), cpus)?;
    let remedy = "run `sysctl kernel.sched_rt_runtime_us=950000` as root, or allow a second CPU";
    Some(Warning { id: "may-not-end".to_owned(), text, remedy: Some(remedy.to_owned()) })
}

const STOOD_STILL: &str = "the run stood still meanwhile";

const REMEDY: &str = "end that program, give it another CPU, or measure on other CPUs (--cpus)";

/// Remedy where it is not known which program has the CPU.
const ELSEWHERE: &str = "measure on other CPUs (--cpus)";

fn has_it(occupant: Option<&str>) -> String {
    occupant.map_or("who has the CPU is not known".to_owned(), |name| format!("{name} has it"))
}

/// The interval of a point's thread, and how many activations after `due` were due until then.
fn missed(step: &PlanStep, point: usize, due: u64, until: u64) -> (u64, u64) {
    let planned = &step.points[point];
    let interval = planned.params.get(param::INTERVAL).and_then(|value| value.as_number());
    let interval = interval.filter(|_| [ids::WAKE_TIMER, ids::WAKE_RESPONSE].contains(&&*planned.probe));
    let interval = interval.unwrap_or(u64::MAX).max(1);
    (interval, until.saturating_sub(due).saturating_sub(1) / interval)
}

fn add_to_blocks(blocks: &mut Vec<SampleBlock>, at: u64, value: u64) {
    match blocks.last_mut() {
        Some(last) => {
            (last.count, last.sum) = (last.count + 1, last.sum.saturating_add(value));
            last.max = last.max.max(value);
        }
        None => blocks.push(SampleBlock { from: at, count: 1, sum: value, max: value, median: value }),
    }
}

/// Marks the points with an event that had not come when the run ended. `halted` has those that stood still meanwhile.
pub(super) fn mark_overdue(
    measured: &mut [Measurement],
    unfinished: &[Unfinished],
    halted: &BTreeMap<usize, Shortfall>,
) {
    for Unfinished { point, late, words } in unfinished {
        let Some(m) = measured.get_mut(*point) else { continue };
        let time = format_time(*late as f64);
        let unknown = if halted.contains_key(point) { STOOD_STILL } else { "why is not known" };
        let words = words.as_deref().unwrap_or(unknown);
        let text = format!("late by at least {time}: the thread had not run when the run ended ({words})");
        m.lower(
            Reason::new(QualityLevel::Degraded, NOT_RUN, text, REMEDY)
                .with_number("lower_bound", *late as f64),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_bench::recorder::{HistogramSlotLayout, STARVED_NS};
    use latscope_core::plan::{MeasurementPoint, Periodic, Phase, params};

    const SECOND: u64 = STARVED_NS;

    fn step(probe: &str) -> PlanStep {
        let point = MeasurementPoint {
            probe: probe.to_owned(),
            revision: 1,
            params: params([(param::INTERVAL, 1_000_000.into())]),
            title: "a thread".to_owned(),
            row: false,
        };
        let periodic = Some(Periodic { corrected: true, ..Periodic::new(Phase::Staggered, 0) });
        PlanStep { periodic, ..crate::harness::step(probe, vec![point]) }
    }

    fn slots(step: &PlanStep) -> Slots {
        let layout = HistogramSlotLayout::of_step(step);
        Slots::map_memfd(Slots::create_memfd(&layout).unwrap(), layout).unwrap()
    }

    #[test]
    fn what_had_not_come_at_the_end_is_late_by_that_much_at_least() {
        let step = step(ids::WAKE_TIMER);
        let slots = slots(&step);
        let mut writer = slots.writer(0, Sampling::Event);
        writer.record_event(Exceedance { turn: 0, at: 5, value: 7 }, 0, 0, 1_000_000);
        writer.set_due(3 * SECOND);
        slots.set_end(0, 5 * SECOND);
        let mut results = [Some(PointResult::default())];
        let starved = StarvationMonitor::new();
        let unfinished = starved.record_missed(&step, &slots, &mut results, (6 * SECOND, 0));
        let snapshot = slots.snapshot(0);
        assert_eq!((snapshot.histogram.count(), snapshot.histogram.max()), (2, Some(3e9)));
        // Those that were due until the end of the run.
        assert_eq!((snapshot.missed, snapshot.corrected.unwrap().count()), (1_999, 2_001));
        assert_eq!((unfinished.len(), unfinished[0].late), (1, 3 * SECOND));
        assert_eq!(results[0].as_ref().unwrap().blocks[0].max, 3 * SECOND);
        assert!(
            starved.record_missed(&step, &slots, &mut results, (9 * SECOND, 0)).is_empty(),
            "it is recorded once"
        );
    }

    #[test]
    fn the_instant_at_which_a_thread_was_let_go_is_the_end() {
        let step = step(ids::WAKE_TIMER);
        let slots = slots(&step);
        slots.writer(0, Sampling::Event).set_due(SECOND);
        slots.let_go(3 * SECOND);
        let unfinished = StarvationMonitor::new().record_missed(&step, &slots, &mut [None], (4 * SECOND, 0));
        assert_eq!((unfinished[0].late, slots.snapshot(0).missed), (2 * SECOND, 1_999));
        // What is no activation misses none.
        let step = self::step(ids::NOISE_BUSY);
        let slots = self::slots(&step);
        slots.writer(0, Sampling::Event).set_due(SECOND);
        assert_eq!(
            StarvationMonitor::new().record_missed(&step, &slots, &mut [None], (4 * SECOND, 0)).len(),
            1
        );
        assert_eq!(slots.snapshot(0).missed, 0);
    }

    #[test]
    fn a_thread_that_sleeps_or_has_ended_or_records_by_itself_leaves_nothing_to_record() {
        let step = step(ids::NOISE_BUSY);
        let slots = slots(&step);
        let mut writer = slots.writer(0, Sampling::Event);
        let record = |starved: &StarvationMonitor| {
            starved.record_missed(&step, &slots, &mut [None], (SECOND, 0)).len()
        };
        assert_eq!(record(&StarvationMonitor::new()), 0, "it has not begun");
        writer.set_due(SECOND);
        assert_eq!(record(&StarvationMonitor::new()), 0, "it is not late");
        writer.mark_over();
        assert_eq!(record(&StarvationMonitor::new()), 0, "it has ended");
        writer.record_value(SECOND - 7, SECOND);
        let starved = StarvationMonitor { let_go: [(0, SECOND)].into(), ..StarvationMonitor::new() };
        let unfinished = starved.record_missed(&step, &slots, &mut [None], (SECOND, 0));
        assert_eq!(
            (unfinished.len(), unfinished[0].late),
            (1, SECOND - 7),
            "its own record is a lower bound"
        );
        assert_eq!(slots.snapshot(0).histogram.count(), 1);
    }

    #[test]
    fn each_thread_misses_what_its_own_time_had() {
        let mut step = step(ids::WAKE_TIMER);
        step.points = vec![
            step.points[0].clone(),
            MeasurementPoint { probe: ids::WAKE_RESPONSE.to_owned(), ..step.points[0].clone() },
        ];
        let slots = slots(&step);
        for (point, first) in [(0, SECOND), (1, SECOND + 500_000)] {
            slots.writer(point, Sampling::Event).set_due(first);
            slots.set_end(point, first + SECOND);
        }
        assert_eq!(slots.last_end(), Some(2 * SECOND + 500_000));
        StarvationMonitor::new().record_missed(&step, &slots, &mut [None, None], (4 * SECOND, 0));
        assert_eq!([0, 1].map(|point| slots.snapshot(point).missed), [999; 2]);
    }

    #[test]
    fn a_thread_is_late_that_was_so_at_two_looks() {
        let mut starved = StarvationMonitor::new();
        let mut looked = |due: [u64; 2], now: u64| {
            starved.update_late_points(&due.map(ThreadDueState::Due), now * SECOND);
            (starved.late.clone(), starved.is_to_look_again())
        };
        assert_eq!(looked([7, 7], 3), ([].into(), true));
        assert_eq!(looked([7, SECOND], 3), ([(0, 3 * SECOND - 7)].into(), true), "the second has run");
        assert_eq!(looked([7, 3 * SECOND], 3), ([(0, 3 * SECOND - 7)].into(), false));
        starved.reset_progress();
        assert!(!starved.has_late() && !starved.is_to_look_again());
    }

    #[test]
    fn a_run_that_stood_still_blames_no_other_thread() {
        let halted = [(0, Shortfall::run_stopped())].into();
        let marked = |words: Option<&str>, halted: &BTreeMap<usize, Shortfall>| {
            let point = step(ids::WAKE_TIMER).points.remove(0);
            let histogram = latscope_core::histogram::Histogram::new(1000);
            let times = latscope_core::report::Semantics::OneWay;
            let mut measured = [Measurement::from_samples(point, Sampling::Event, times, histogram)];
            let words = words.map(str::to_owned);
            mark_overdue(&mut measured, &[Unfinished { point: 0, late: SECOND, words }], halted);
            measured[0].quality.text().unwrap()
        };
        assert!(marked(None, &halted).ends_with("(the run stood still meanwhile)"));
        assert!(marked(None, &BTreeMap::new()).ends_with("(why is not known)"));
        assert!(marked(Some("sh had CPU 1"), &halted).ends_with("(sh had CPU 1)"));
    }

    #[test]
    fn who_had_the_cpu_stands_in_the_row() {
        let mut starved = StarvationMonitor::new();
        assert_eq!(starved.words(), None);
        starved.occupants.insert(1, Some("sh (pid 7, SCHED_FIFO 99)".to_owned()));
        starved.occupants.insert(3, None);
        let words = "sh (pid 7, SCHED_FIFO 99) had CPU 1, a thread that is not known had CPU 3";
        assert_eq!(starved.words().as_deref(), Some(words));
    }

    #[test]
    fn a_step_without_an_end_of_its_own_is_never_overdue() {
        let mut step = step(ids::WAKE_TIMER);
        let (slots, now) = (slots(&step), Instant::now());
        step.stop.limit_ns = u64::MAX;
        assert!(!StarvationMonitor::is_overdue(&step, &slots, now, u64::MAX - 1));
        slots.set_end(0, u64::MAX);
        assert!(!StarvationMonitor::is_overdue(&step, &slots, now, u64::MAX - 1));
        slots.set_end(0, 0);
        step.stop.limit_ns = 0;
        assert!(
            !StarvationMonitor::is_overdue(&step, &slots, now, 7),
            "its time is over, and a second is not"
        );
    }
}
