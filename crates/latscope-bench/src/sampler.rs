//! The measuring loops. Inside there is no allocation, lock or print.
//!
//! They are compiled once, not for each event: the loop of a batch and the stamps
//! of a single event lie behind the call, so what a call costs is in no figure.

use crate::gate::{SampleGateReading, Taint};
use crate::timebase::Timebase;
use latscope_core::plan::Stop;
use latscope_os::clock::Clock;

/// Services that the loops need from the machine, besides the event. The real implementation is `MachineSamplerHost` in
/// `live`; tests use a scripted one.
pub trait SamplerHost {
    /// The clock of the stamps.
    type Clock: Clock;
    /// The clock of the stamps.
    fn clock(&self) -> Self::Clock;
    /// Lets others run now rather than in the sample; says whether one did.
    fn yield_cpu(&mut self) -> bool;
    /// Opens the gate before a sample.
    fn open_gate(&mut self) -> SampleGateReading;
    /// Closes the gate after a sample of `wall_ns`.
    fn close_gate(&mut self, before: SampleGateReading, wall_ns: f64) -> Option<Taint>;
    /// Picoseconds of a core cycle at this moment, if wanted.
    fn cycle_ps(&mut self) -> Option<f64>;
}

/// Destination of a loop's samples.
pub trait SampleSink {
    /// A clean sample of a part, in ps per operation (batches) or ns (events),
    /// taken at this stamp.
    fn record_sample(&mut self, part: usize, value: u64, at: u64);
    /// A sample thrown away.
    fn reject(&mut self, taint: Taint);
}

/// Result of a loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplerOutcome {
    /// Iterations in a batch, or 1.
    pub iterations: u64,
    /// Number of clean samples recorded.
    pub clean: u64,
    /// No sample was clean: what was recorded had been disturbed.
    pub disturbed: bool,
    /// Core cycles of one operation, a figure for each clean batch.
    pub cycles: Vec<f64>,
}

/// Composition of a batch.
#[derive(Debug, Clone, Copy)]
pub struct SampleBatchShape {
    /// Operations in one iteration.
    pub ops: u64,
    /// Iterations that bring the working set back into the caches after
    /// something else ran, however long a batch is; 0 for a sixteenth of it.
    pub warm: u64,
    /// Iterations of a batch, where they are known from an earlier round.
    pub iterations: Option<u64>,
}

/// Disturbed samples kept in case that no clean one comes.
const KEPT: usize = 64;

/// Time after which a point without a single clean sample is given up, also
/// where a count was asked for and no limit: a machine that disturbs all of
/// them will not stop to do so.
const PATIENCE_NS: f64 = 10e9;

fn is_late(elapsed_ns: f64, stop: &Stop, clean: u64) -> bool {
    elapsed_ns >= stop.limit_ns as f64 || clean == 0 && elapsed_ns >= PATIENCE_NS
}

/// Times batches of `event(iterations)` until `stop`.
pub fn batches<H: SamplerHost>(
    host: &mut H,
    timebase: &Timebase,
    stop: &Stop,
    shape: SampleBatchShape,
    event: &mut dyn FnMut(u64),
    sink: &mut impl SampleSink,
) -> SamplerOutcome {
    let clock = host.clock();
    let began = clock.stamp_start();
    let iterations = match shape.iterations {
        Some(known) => {
            event(known);
            known
        }
        None => calibrate(host, timebase, stop, shape.warm, event),
    };
    let warm = if shape.warm == 0 { iterations / 16 } else { shape.warm }.max(1);
    let capacity = stop.samples.min(100_000) as usize;
    let mut outcome =
        SamplerOutcome { iterations, cycles: Vec::with_capacity(capacity), ..SamplerOutcome::default() };
    let mut disturbed: Vec<(u64, u64)> = Vec::with_capacity(KEPT);
    let mut clean_ns = 0.0;
    let mut visited = false;
    loop {
        // Another process left the caches full of its own data.
        if host.yield_cpu() | visited {
            event(warm);
        }
        let cycle_before = host.cycle_ps();
        let before = host.open_gate();
        let start = clock.stamp_start();
        event(iterations);
        let end = clock.stamp_end();
        let ns = timebase.interval_ns(end - start);
        let taint = host.close_gate(before, timebase.interval_ns(end - start));
        let ps = ns * 1e3 / (iterations * shape.ops) as f64;
        visited = taint.is_some();
        match taint {
            None => {
                sink.record_sample(0, ps.round() as u64, start);
                let cycle = cycle_before.zip(host.cycle_ps()).map(|(a, b)| a.min(b));
                outcome.cycles.extend(cycle.map(|cycle| ps / cycle));
                outcome.clean += 1;
                clean_ns += ns;
            }
            Some(taint) => {
                sink.reject(taint);
                if disturbed.len() < KEPT {
                    disturbed.push((ps.round() as u64, start));
                }
            }
        }
        let enough = outcome.clean >= stop.samples || clean_ns >= stop.budget_ns as f64;
        if enough || is_late(timebase.interval_ns(end - began), stop, outcome.clean) {
            break;
        }
    }
    if outcome.clean == 0 {
        disturbed.iter().for_each(|(ps, at)| sink.record_sample(0, *ps, *at));
        outcome.disturbed = true;
    }
    outcome
}

/// Finds how many iterations last `stop.batch_ns`, also while others run: each
/// trial is warmed as a batch is, and counts with the better of two timings.
fn calibrate<H: SamplerHost>(
    host: &mut H,
    timebase: &Timebase,
    stop: &Stop,
    warm: u64,
    event: &mut dyn FnMut(u64),
) -> u64 {
    let clock = host.clock();
    let target = stop.batch_ns as f64;
    let mut iterations = 1u64;
    for _ in 0..24 {
        let trial = |host: &mut H, event: &mut dyn FnMut(u64)| {
            if host.yield_cpu() && warm > 0 {
                event(warm);
            }
            let start = clock.stamp_start();
            event(iterations);
            timebase.interval_ns(clock.stamp_end() - start).max(1.0)
        };
        let ns = trial(host, event).min(if iterations == 1 { f64::MAX } else { trial(host, event) });
        let factor = target / ns;
        if factor < 2.0 {
            return ((iterations as f64 * factor).round() as u64).max(1);
        }
        // Short trials say little: approach in steps of at most 16.
        iterations = (iterations as f64 * factor.min(16.0)).round() as u64;
    }
    iterations
}

/// Parts of an activity that can be timed apart.
pub(crate) const MAX_PARTS: usize = 8;

/// A part that this activity did not time.
pub(crate) const NOT_TIMED: u64 = u64::MAX;

/// Events in a group: the gate is opened and closed around a group, so that
/// it is not part of each event's cost.
const GROUP: usize = 64;

/// Times single activities until `stop`. `activity` fills in the ticks of each
/// of its `parts` (`NOT_TIMED` where it did not); it learns whether it is one
/// of a group, or only warms up.
pub fn time_events<H: SamplerHost>(
    host: &mut H,
    timebase: &Timebase,
    stop: &Stop,
    parts: usize,
    activity: &mut dyn FnMut(&mut [u64; MAX_PARTS], bool),
    sink: &mut impl SampleSink,
) -> SamplerOutcome {
    let clock = host.clock();
    let began = clock.stamp_start();
    let mut group = [([NOT_TIMED; MAX_PARTS], 0u64); GROUP];
    let mut outcome = SamplerOutcome { iterations: 1, ..SamplerOutcome::default() };
    let mut clean_ns = 0.0;
    let mut warm = false;
    let record = |group: &[([u64; MAX_PARTS], u64)], sink: &mut dyn FnMut(usize, u64, u64)| {
        for (ticks, at) in group {
            for (part, ticks) in ticks[..parts].iter().enumerate().filter(|(_, t)| **t != NOT_TIMED) {
                sink(part, timebase.interval_ns(*ticks).round() as u64, *at);
            }
        }
    };
    loop {
        if host.yield_cpu() || !warm {
            activity(&mut [NOT_TIMED; MAX_PARTS], false);
            warm = true;
        }
        let before = host.open_gate();
        let start = clock.stamp_start();
        let mut filled = 0;
        let mut now = start;
        let wanted = stop.events.saturating_sub(outcome.clean).min(GROUP as u64) as usize;
        while filled < wanted && timebase.interval_ns(now - start) < stop.batch_ns as f64 * 4.0 {
            group[filled] = ([NOT_TIMED; MAX_PARTS], now);
            activity(&mut group[filled].0, true);
            filled += 1;
            now = clock.stamp_end();
        }
        let ns = timebase.interval_ns(now - start);
        let taint = host.close_gate(before, ns);
        let late = is_late(timebase.interval_ns(now - began), stop, outcome.clean);
        outcome.disturbed = taint.is_some() && late && outcome.clean == 0;
        if taint.is_none() || outcome.disturbed {
            record(&group[..filled], &mut |part, value, at| sink.record_sample(part, value, at));
            outcome.clean += filled as u64;
            clean_ns += ns;
        }
        if let Some(taint) = taint {
            (0..filled).for_each(|_| sink.reject(taint));
        }
        if late || outcome.clean >= stop.events || clean_ns >= stop.budget_ns as f64 {
            return outcome;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Time that only moves when the script says so.
    #[derive(Clone, Copy)]
    struct Scripted<'a>(&'a Cell<u64>);

    impl Clock for Scripted<'_> {
        fn stamp_start(self) -> u64 {
            self.0.get()
        }
        fn stamp_end(self) -> u64 {
            self.0.get()
        }
    }

    /// A host on which every `nth` sample is disturbed by `steal_ns`.
    struct Machine<'a> {
        now: &'a Cell<u64>,
        samples: u64,
        nth: u64,
        steal_ns: u64,
        cycle_ps: Option<f64>,
        /// Lines in the caches, which others throw out at every pause.
        cached: Option<&'a Cell<u64>>,
    }

    impl<'a> SamplerHost for Machine<'a> {
        type Clock = Scripted<'a>;
        fn clock(&self) -> Scripted<'a> {
            Scripted(self.now)
        }
        fn yield_cpu(&mut self) -> bool {
            self.cached.inspect(|lines| lines.set(0)).is_some()
        }
        fn open_gate(&mut self) -> SampleGateReading {
            self.samples += 1;
            if self.nth > 0 && self.samples.is_multiple_of(self.nth) {
                self.now.set(self.now.get() + self.steal_ns);
            }
            SampleGateReading::default()
        }
        fn close_gate(&mut self, _: SampleGateReading, _: f64) -> Option<Taint> {
            (self.nth > 0 && self.samples.is_multiple_of(self.nth)).then_some(Taint::Preempted)
        }
        fn cycle_ps(&mut self) -> Option<f64> {
            self.cycle_ps
        }
    }

    #[derive(Default)]
    struct Kept {
        values: RefCell<Vec<(usize, u64)>>,
        rejected: u64,
    }

    impl SampleSink for Kept {
        fn record_sample(&mut self, part: usize, value: u64, _: u64) {
            self.values.borrow_mut().push((part, value));
        }
        fn reject(&mut self, _: Taint) {
            self.rejected += 1;
        }
    }

    const STOP: Stop =
        Stop { samples: 100, events: 640, batch_ns: 300_000, budget_ns: u64::MAX, limit_ns: 10_000_000_000 };

    fn machine(now: &Cell<u64>, nth: u64) -> Machine<'_> {
        Machine { now, samples: 0, nth, steal_ns: 4_000_000, cycle_ps: Some(400.0), cached: None }
    }

    #[test]
    fn batches_report_the_time_of_one_operation_in_picoseconds_and_cycles() {
        let now = Cell::new(0);
        let mut kept = Kept::default();
        // 2 ns an iteration of 10 operations: 200 ps each, half a cycle of 400 ps.
        let shape = SampleBatchShape { ops: 10, warm: 0, iterations: None };
        let outcome = batches(
            &mut machine(&now, 0),
            &Timebase::scripted(),
            &STOP,
            shape,
            &mut |n| now.set(now.get() + 2 * n),
            &mut kept,
        );
        assert_eq!(outcome.iterations, 150_000);
        assert_eq!(kept.values.into_inner(), vec![(0, 200); 100]);
        assert_eq!(outcome.cycles, vec![0.5; 100]);
    }

    #[test]
    fn disturbed_batches_are_counted_and_replaced() {
        let now = Cell::new(0);
        let mut kept = Kept::default();
        let shape = SampleBatchShape { ops: 1, warm: 0, iterations: None };
        let outcome = batches(
            &mut machine(&now, 3),
            &Timebase::scripted(),
            &STOP,
            shape,
            &mut |n| now.set(now.get() + 5 * n),
            &mut kept,
        );
        assert_eq!((outcome.clean, kept.rejected, outcome.disturbed), (100, 49, false));
        assert!(kept.values.into_inner().iter().all(|(_, ps)| *ps == 5_000));
    }

    #[test]
    fn a_working_set_is_brought_back_before_it_is_timed() {
        let (now, cached) = (Cell::new(0), Cell::new(0));
        let mut kept = Kept::default();
        let mut host = Machine { cached: Some(&cached), ..machine(&now, 0) };
        // 10_000 lines: 90 ns each until all of them are cached, 5 ns then.
        let mut event = |n| {
            let cold = (10_000 - cached.get()).min(n);
            cached.set(cached.get() + cold);
            now.set(now.get() + 90 * cold + 5 * (n - cold));
        };
        let shape = SampleBatchShape { ops: 1, warm: 10_000, iterations: None };
        let outcome = batches(&mut host, &Timebase::scripted(), &STOP, shape, &mut event, &mut kept);
        assert_eq!(outcome.iterations, STOP.batch_ns / 5);
        assert!(kept.values.into_inner().iter().all(|(_, ps)| *ps == 5_000));
    }

    #[test]
    fn when_nothing_is_clean_the_limit_ends_it_and_the_outcome_says_so() {
        let now = Cell::new(0);
        let mut kept = Kept::default();
        let shape = SampleBatchShape { ops: 1, warm: 0, iterations: None };
        let outcome = batches(
            &mut machine(&now, 1),
            &Timebase::scripted(),
            &STOP,
            shape,
            &mut |n| now.set(now.get() + 5 * n),
            &mut kept,
        );
        assert!(outcome.disturbed && outcome.clean == 0);
        assert!(kept.rejected >= KEPT as u64);
        assert_eq!(kept.values.into_inner().len(), KEPT);
    }

    #[test]
    fn without_a_limit_a_timeout_ends_what_is_never_clean() {
        let now = Cell::new(0);
        let mut kept = Kept::default();
        let stop = Stop { limit_ns: u64::MAX, ..STOP };
        let mut activity = |parts: &mut [u64; MAX_PARTS], _: bool| {
            parts[0] = 1;
            now.set(now.get() + 1_000_000);
        };
        let outcome =
            time_events(&mut machine(&now, 1), &Timebase::scripted(), &stop, 1, &mut activity, &mut kept);
        assert!(outcome.disturbed && now.get() < 12_000_000_000);
        // What is shown of them counts among the rejected, too.
        assert!(!kept.values.into_inner().is_empty() && kept.rejected > outcome.clean);
    }

    #[test]
    fn an_operation_longer_than_a_batch_is_timed_alone() {
        let now = Cell::new(0);
        let mut kept = Kept::default();
        let stop = Stop { samples: 3, ..STOP };
        let shape = SampleBatchShape { ops: 1, warm: 0, iterations: None };
        let outcome = batches(
            &mut machine(&now, 0),
            &Timebase::scripted(),
            &stop,
            shape,
            &mut |n| now.set(now.get() + 7_000_000 * n),
            &mut kept,
        );
        assert_eq!((outcome.iterations, outcome.clean), (1, 3));
    }

    #[test]
    fn events_keep_parts_apart_and_reject_whole_groups() {
        let now = Cell::new(0);
        let mut kept = Kept::default();
        let mut turn = 0;
        let mut activity = |parts: &mut [u64; MAX_PARTS], _: bool| {
            turn += 1;
            parts[0] = 40;
            parts[1] = if turn % 2 == 0 { 60 } else { NOT_TIMED };
            now.set(now.get() + 1_000);
        };
        let outcome =
            time_events(&mut machine(&now, 2), &Timebase::scripted(), &STOP, 2, &mut activity, &mut kept);
        assert_eq!((outcome.clean, kept.rejected), (640, 9 * 64));
        let values = kept.values.into_inner();
        assert_eq!(values.iter().filter(|v| **v == (0, 40)).count(), 640);
        assert_eq!(values.iter().filter(|v| **v == (1, 60)).count(), 320);
        assert_eq!(values.len(), 960);
    }

    #[test]
    fn an_event_that_warms_up_after_a_pause_is_told_so_and_not_recorded() {
        let (now, cached) = (Cell::new(0), Cell::new(0));
        // Another process ran in every pause.
        let mut host = Machine { cached: Some(&cached), ..machine(&now, 0) };
        let mut kept = Kept::default();
        let mut warmed = 0;
        let mut activity = |parts: &mut [u64; MAX_PARTS], of_group: bool| {
            warmed += u64::from(!of_group);
            parts[0] = if of_group { 40 } else { 999 };
            now.set(now.get() + 1_000);
        };
        let outcome = time_events(&mut host, &Timebase::scripted(), &STOP, 1, &mut activity, &mut kept);
        assert_eq!((warmed, outcome.clean), (10, 640));
        assert!(kept.values.into_inner().iter().all(|value| *value == (0, 40)));
    }

    #[test]
    fn a_budget_of_clean_time_ends_slow_events() {
        let now = Cell::new(0);
        let mut kept = Kept::default();
        let stop = Stop { budget_ns: 50_000_000, ..STOP };
        let mut activity = |parts: &mut [u64; MAX_PARTS], _: bool| {
            parts[0] = 1;
            now.set(now.get() + 10_000_000);
        };
        let outcome =
            time_events(&mut machine(&now, 0), &Timebase::scripted(), &stop, 1, &mut activity, &mut kept);
        assert_eq!(outcome.clean, 5);
    }
}
