//! The loop of a periodic thread: wait, stamp, and only then anything else.

use latscope_core::report::Exceedance;

/// A way to wait for the next activation of a thread.
pub trait Waiter {
    /// Waits for the activation that is due at `due`, an instant of the clock.
    fn wait_until_due(&mut self, due: u64) -> ThreadActivation;
}

/// A thread that has just been activated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadActivation {
    /// Instant at which it should have been activated: the requested instant, or, where the time runs from the
    /// call, that much after the call.
    pub due: u64,
    /// The first stamp after waking.
    pub now: u64,
    /// Number of activations that this one has swallowed, where the timer itself counts them.
    pub swallowed: Option<u64>,
}

/// Receiver of the activations of a thread.
pub trait ActivationSink {
    /// Returns true if an end was requested.
    fn stopping(&self) -> bool;
    /// Returns true if an instant has passed by more than an interval.
    fn is_overdue(&self, instant: u64) -> bool;
    /// Notes the next instant that counts, before the thread waits for it.
    fn due(&self, instant: u64);
    /// Returns true if the thread had no CPU when the run ended: what it waited for is recorded from outside.
    fn let_go(&self) -> bool;
    /// Records an activation with the number of activations it swallowed; `early` is true if it came before its
    /// time.
    fn record_activation(&mut self, sample: Exceedance, missed: u64, early: bool);
    /// Notes that an activation is recorded, before its work; `next` is the instant of the next one.
    fn recorded(&self, next: u64);
    /// Does the work of an activation, after its stamp: `woken` has how many of those that it swallowed count. Returns
    /// true to go on.
    fn act(&mut self, woken: ThreadActivation, sample: Exceedance) -> bool;
}

/// Interval of the loop, and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivationLimits {
    /// Time from one activation to the next, ns.
    pub interval: u64,
    /// Intervals at the beginning whose activations are not recorded.
    pub warm_up: u64,
    /// Number of recorded activations.
    pub count: u64,
    /// Instant from which on no activation is due: in five intervals there are five.
    pub until: u64,
}

/// Runs activations from `first` on; returns how many were recorded.
///
/// An activation that comes more than an interval late has swallowed the ones that were due meanwhile: those before the
/// end of the run are counted as missed, and the next one is the first that lies ahead, on the grid of the first.
pub fn run_activations<S: ActivationSink>(
    rules: ActivationLimits,
    first: u64,
    waiter: &mut impl Waiter,
    sink: &mut S,
) -> u64 {
    // By the clock and not by activations: where most are missed a warm-up would never end.
    let warm = first.saturating_add(rules.warm_up.saturating_mul(rules.interval));
    let (mut due, mut turn) = (first, 0);
    // A thread that had no CPU from its first instant to the end of the run was late: it did not just lack the time.
    let overdue = |due: u64, sink: &S| due == first && !sink.let_go() && sink.is_overdue(first);
    while turn < rules.count && due < rules.until && (!sink.stopping() || overdue(due, sink)) {
        sink.due(due.max(warm));
        let woken = waiter.wait_until_due(due);
        if sink.let_go() {
            return turn;
        }
        let swallowed = |late: u64| late.saturating_sub(1) / rules.interval;
        let late = woken.now.saturating_sub(woken.due);
        let missed = woken.swallowed.unwrap_or(swallowed(late));
        let next = woken.due.saturating_add(missed.saturating_add(1).saturating_mul(rules.interval));
        // One that is so late in the warm-up that it swallowed the first instants after it stands for these.
        let warming = if due < warm { (warm - due).div_ceil(rules.interval) } else { 0 };
        let counted = woken.due.saturating_add(warming.saturating_mul(rules.interval));
        if warming == 0 || warming <= missed && woken.now >= counted {
            let late = woken.now.saturating_sub(counted);
            let sample = Exceedance { turn, at: woken.now, value: late };
            turn += 1;
            let rest = rules.until.saturating_sub(counted).saturating_sub(1) / rules.interval;
            let swallowed = (missed - warming.min(missed)).min(rest);
            sink.record_activation(sample, swallowed, woken.now < counted);
            sink.recorded(if next < rules.until { next } else { u64::MAX });
            if !sink.act(ThreadActivation { due: counted, swallowed: Some(swallowed), ..woken }, sample) {
                return turn;
            }
        }
        due = next;
    }
    turn
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;

    const RULES: ActivationLimits =
        ActivationLimits { interval: 1000, warm_up: 0, count: u64::MAX, until: 11_000 };

    /// Waiter that wakes late by these times, in turn, and early by negative ones.
    struct Script(Vec<i64>, usize);

    impl Waiter for Script {
        fn wait_until_due(&mut self, due: u64) -> ThreadActivation {
            let late = self.0[self.1 % self.0.len()];
            self.1 += 1;
            ThreadActivation { due, now: due.saturating_add_signed(late), swallowed: None }
        }
    }

    #[derive(Default)]
    struct Kept {
        samples: Vec<(u64, u64, u64)>,
        swallowed: Vec<u64>,
        early: u64,
        stop_at: Option<u64>,
        asked: bool,
        overdue: bool,
        due: RefCell<Vec<u64>>,
        next: RefCell<Vec<u64>>,
        let_go_at: Option<usize>,
    }

    impl ActivationSink for Kept {
        fn stopping(&self) -> bool {
            self.asked
        }
        fn is_overdue(&self, _: u64) -> bool {
            self.overdue
        }
        fn due(&self, instant: u64) {
            self.due.borrow_mut().push(instant);
        }
        fn recorded(&self, next: u64) {
            self.next.borrow_mut().push(next);
        }
        fn let_go(&self) -> bool {
            self.let_go_at.is_some_and(|turn| self.due.borrow().len() > turn)
        }
        fn record_activation(&mut self, sample: Exceedance, missed: u64, early: bool) {
            self.samples.push((sample.turn, sample.value, missed));
            self.early += u64::from(early);
        }
        fn act(&mut self, woken: ThreadActivation, sample: Exceedance) -> bool {
            self.swallowed.extend(woken.swallowed);
            self.stop_at.is_none_or(|limit| sample.value <= limit)
        }
    }

    fn kept(rules: ActivationLimits, late: &[i64]) -> Kept {
        let mut kept = Kept::default();
        run_activations(rules, 1000, &mut Script(late.to_vec(), 0), &mut kept);
        kept
    }

    #[test]
    fn a_thread_that_had_no_cpu_until_the_end_of_the_run_was_late_once() {
        let ended = |overdue, let_go_at| {
            let mut kept = Kept { asked: true, overdue, let_go_at, ..Kept::default() };
            run_activations(RULES, 1000, &mut Script(vec![5400], 0), &mut kept);
            kept.samples
        };
        assert_eq!(ended(true, None), [(0, 5400, 5)]);
        assert_eq!(ended(false, None), []);
        // What the coordinator lets go is recorded from outside.
        assert_eq!(ended(true, Some(0)), []);
    }

    #[test]
    fn an_end_that_is_asked_for_in_the_warm_up_ends_it() {
        let mut kept = Kept { asked: true, overdue: true, ..Kept::default() };
        let rules = ActivationLimits { warm_up: 100, until: 1_000_000, ..RULES };
        assert_eq!(run_activations(rules, 1000, &mut Script(vec![5], 0), &mut kept), 0);
        assert_eq!((kept.due.borrow().len(), kept.samples.len()), (1, 0), "it waited for one instant");
    }

    #[test]
    fn the_grid_is_that_of_the_first_instant_whatever_comes_late() {
        let kept = kept(RULES, &[5, 3400, 7]);
        assert_eq!(kept.samples[..3], [(0, 5, 0), (1, 3400, 3), (2, 7, 0)]);
        // Taken place and missed together are all that were due until the last one came.
        let due: u64 = kept.samples.iter().map(|(_, _, missed)| 1 + missed).sum();
        assert_eq!((kept.samples.len(), due), (5, 10));
    }

    proptest! {
        /// Whenever stalls come and whatever they span: all that the time had was due, and not one more.
        #[test]
        fn as_many_are_due_as_the_time_has_intervals(
            late in prop::collection::vec(0..30_000i64, 1..6), warm_up in 0..4u64, time in 1..20_000u64,
        ) {
            let rules = ActivationLimits { warm_up, until: 1000 + warm_up * 1000 + time, ..RULES };
            let kept = kept(rules, &late);
            let due: u64 = kept.samples.iter().map(|(_, _, missed)| 1 + missed).sum();
            prop_assert_eq!(due, time.div_ceil(1000));
            prop_assert_eq!(kept.swallowed, kept.samples.iter().map(|(_, _, missed)| *missed).collect::<Vec<_>>());
        }
    }

    #[test]
    fn exactly_an_interval_late_swallows_nothing() {
        assert_eq!(kept(RULES, &[1000]).samples[0], (0, 1000, 0));
        assert_eq!(kept(RULES, &[1001]).samples[0], (0, 1001, 1));
    }

    /// Set from 1970 to 2026, and no timer counts what it swallowed.
    #[test]
    fn a_clock_that_is_set_swallows_at_once_what_would_have_been() {
        let decades = 56 * 365 * 86_400 * 1_000_000_000;
        let rules = ActivationLimits { interval: 1_000_000, until: u64::MAX, count: 2, ..RULES };
        let kept = kept(rules, &[decades, 3]);
        assert_eq!(kept.samples, [(0, decades as u64, (decades as u64 - 1) / 1_000_000), (1, 3, 0)]);
    }

    #[test]
    fn so_many_activations_are_recorded_as_there_are_intervals_in_the_time() {
        for (warm_up, intervals) in [(0, 5), (1, 5), (3, 1)] {
            let until = 1000 + (warm_up + intervals) * RULES.interval;
            let kept = kept(ActivationLimits { warm_up, until, ..RULES }, &[5]);
            assert_eq!(kept.samples.len() as u64, intervals, "{warm_up} of warm-up");
        }
        // A part of an interval at the end begins one more.
        assert_eq!(kept(ActivationLimits { until: 6001, ..RULES }, &[5]).samples.len(), 6);
    }

    #[test]
    fn the_warm_up_is_not_recorded_and_not_counted() {
        let kept = kept(ActivationLimits { warm_up: 3, count: 2, ..RULES }, &[9, 9, 9, 1, 2]);
        assert_eq!(kept.samples, [(0, 1, 0), (1, 2, 0)]);
    }

    #[test]
    fn what_a_late_one_of_the_warm_up_swallows_after_it_is_counted() {
        // Due at 1000, 4000 is the first instant that counts, and 5000 and 6000 are missed.
        let rules = ActivationLimits { warm_up: 3, ..RULES };
        assert_eq!(
            kept(ActivationLimits { count: 2, ..rules }, &[5500, 1]).samples,
            [(0, 2500, 2), (1, 1, 0)]
        );
        // As late as the run is long: it is the only one, and none of what was due is forgotten.
        assert_eq!(kept(rules, &[20_500]).samples, [(0, 17_500, 6)]);
        // Within the warm-up it swallows what is not counted.
        assert_eq!(kept(ActivationLimits { count: 1, ..rules }, &[1500, 7, 7]).samples, [(0, 7, 0)]);
    }

    #[test]
    fn an_early_one_is_late_by_nothing_and_counted_apart() {
        let kept = kept(ActivationLimits { count: 2, ..RULES }, &[-20, 4]);
        assert_eq!((kept.samples, kept.early), (vec![(0, 0, 0), (1, 4, 0)], 1));
    }

    #[test]
    fn what_a_thread_waited_for_when_it_was_let_go_is_not_recorded_by_it() {
        let mut late = Kept { let_go_at: Some(2), ..Kept::default() };
        assert_eq!(run_activations(RULES, 1000, &mut Script(vec![3], 0), &mut late), 2);
        assert_eq!((late.samples.len(), late.due.take()), (2, vec![1000, 2000, 3000]));
        assert_eq!(late.next.take(), [2000, 3000], "while it works it is not late for what it recorded");
        // Within the warm-up the first instant that counts is the one to be late for.
        let rules = ActivationLimits { warm_up: 3, ..RULES };
        let mut warming = Kept { let_go_at: Some(1), ..Kept::default() };
        assert_eq!(run_activations(rules, 1000, &mut Script(vec![3], 0), &mut warming), 0);
        assert_eq!((warming.samples.len(), warming.due.take()), (0, vec![4000, 4000]));
    }

    #[test]
    fn it_ends_at_the_instant_at_the_count_at_the_threshold_and_when_asked() {
        assert_eq!(kept(RULES, &[1]).samples.len(), 10);
        assert_eq!(kept(ActivationLimits { count: 4, ..RULES }, &[1]).samples.len(), 4);
        let mut stops = Kept { stop_at: Some(50), ..Kept::default() };
        assert_eq!(run_activations(RULES, 1000, &mut Script(vec![1, 51, 1], 0), &mut stops), 2);
        let mut asked = Kept { asked: true, ..Kept::default() };
        assert_eq!(run_activations(RULES, 1000, &mut Script(vec![1], 0), &mut asked), 0);
    }
}
