//! Progress of the measuring threads: when each is due, and whether the coordinator let it go because it had no CPU.

use super::{COUNT, DUE, ENDS_AT, HistogramSlotWriter, PREEMPTED, STOLEN, Slots};
use std::sync::atomic::Ordering::Relaxed;

/// Word of the first page: the instant at which starved threads were let go, ns of `CLOCK_MONOTONIC`.
const LET_GO: usize = 24;

/// Time after which a thread that is due and has not run counts as starved, ns.
pub const STARVED_NS: u64 = 1_000_000_000;

/// State of a measuring thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadDueState {
    /// The thread has stated no instant.
    Unknown,
    /// The thread is due at this instant of `CLOCK_MONOTONIC`, ns.
    Due(u64),
    /// The thread has ended.
    Over,
}

impl ThreadDueState {
    /// Returns how late a thread is at an instant, ns, if it counts as starved.
    pub fn starvation_ns(self, now: u64) -> Option<u64> {
        match self {
            ThreadDueState::Due(due) => Some(now.saturating_sub(due)).filter(|late| *late >= STARVED_NS),
            ThreadDueState::Unknown | ThreadDueState::Over => None,
        }
    }
}

impl Slots {
    /// Progress of a point's measuring thread.
    pub fn due_state(&self, point: usize) -> ThreadDueState {
        match self.slot(point)[DUE].load(Relaxed) {
            0 => ThreadDueState::Unknown,
            u64::MAX => ThreadDueState::Over,
            due => ThreadDueState::Due(due),
        }
    }

    /// Samples of a point so far, with those that were thrown away.
    pub fn attempt_count(&self, point: usize) -> u64 {
        [COUNT, PREEMPTED, STOLEN].iter().map(|word| self.slot(point)[*word].load(Relaxed)).sum()
    }

    /// States when a point's thread is due, ns of `CLOCK_MONOTONIC`.
    #[inline]
    pub fn set_due(&self, point: usize, ns: u64) {
        self.slot(point)[DUE].store(ns.min(u64::MAX - 1), Relaxed);
    }

    /// States the instant after which no activation of a point is due, ns of `CLOCK_MONOTONIC`.
    pub fn set_end(&self, point: usize, ns: u64) {
        self.slot(point)[ENDS_AT].store(ns, Relaxed);
    }

    /// Instant after which no activation of a point is due; `None` if it was not stated.
    pub fn end_of(&self, point: usize) -> Option<u64> {
        Some(self.slot(point)[ENDS_AT].load(Relaxed)).filter(|ns| *ns != 0)
    }

    /// Instant after which no activation of any point is due; `None` if none was stated.
    pub fn last_end(&self) -> Option<u64> {
        (0..self.layout.points).filter_map(|point| self.end_of(point)).max()
    }

    /// Lets starved threads go, at an instant of `CLOCK_MONOTONIC`: they record nothing more of what they waited for.
    /// The first instant counts.
    pub fn let_go(&self, ns: u64) {
        let _ = self.first_page(LET_GO).compare_exchange(0, ns, Relaxed, Relaxed);
    }

    /// Instant at which starved threads were let go; `None` if they were not.
    #[inline]
    pub fn let_go_at(&self) -> Option<u64> {
        Some(self.first_page(LET_GO).load(Relaxed)).filter(|ns| *ns != 0)
    }
}

impl HistogramSlotWriter {
    /// States when the thread is due, ns of `CLOCK_MONOTONIC`.
    #[inline]
    pub fn set_due(&self, ns: u64) {
        self.slots.set_due(self.point, ns);
    }

    /// States the instant after which no activation is due, ns of `CLOCK_MONOTONIC`.
    pub fn set_end(&self, ns: u64) {
        self.slots.set_end(self.point, ns);
    }

    /// Instant at which this thread was let go because it was starved; `None` if it was not.
    #[inline]
    pub fn let_go_at(&self) -> Option<u64> {
        let at = self.slots.let_go_at()?;
        self.slots.due_state(self.point).starvation_ns(at).map(|_| at)
    }

    /// States that the thread has ended. What a thread that was [let go](Self::let_go_at) was due for stays open.
    pub fn mark_ended(&self) {
        if self.let_go_at().is_none() {
            self.mark_over();
        }
    }

    /// States that the thread is due for nothing now.
    #[inline]
    pub fn clear_due(&self) {
        self.set_due(u64::MAX);
    }

    /// States that nothing is open.
    pub fn mark_over(&self) {
        self.slots.slot(self.point)[DUE].store(u64::MAX, Relaxed);
    }

    /// The slots of the step.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::super::HistogramSlotLayout;
    use super::*;
    use latscope_core::report::Sampling;

    fn slots() -> Slots {
        let layout = HistogramSlotLayout { points: 2, ..HistogramSlotLayout::default() };
        Slots::map_memfd(Slots::create_memfd(&layout).unwrap(), layout).unwrap()
    }

    #[test]
    fn only_a_thread_that_is_due_for_long_is_let_go_and_what_it_waited_for_stays_open() {
        let slots = slots();
        let [late, sleeping] = [0, 1].map(|point| slots.writer(point, Sampling::Event));
        assert_eq!(
            (slots.due_state(0), slots.let_go_at(), slots.last_end()),
            (ThreadDueState::Unknown, None, None)
        );
        late.set_due(1);
        sleeping.set_due(STARVED_NS);
        slots.set_end(1, 7);
        slots.set_end(0, 5);
        assert_eq!((late.let_go_at(), slots.last_end(), slots.end_of(0)), (None, Some(7), Some(5)));
        slots.let_go(STARVED_NS + 1);
        slots.let_go(STARVED_NS + 2);
        assert_eq!((late.let_go_at(), sleeping.let_go_at()), (Some(STARVED_NS + 1), None));
        [&late, &sleeping].into_iter().for_each(HistogramSlotWriter::mark_ended);
        assert_eq!(
            [0, 1].map(|point| slots.due_state(point)),
            [ThreadDueState::Due(1), ThreadDueState::Over]
        );
        late.mark_over();
        assert_eq!((slots.due_state(0), slots.attempt_count(0)), (ThreadDueState::Over, 0));
    }

    #[test]
    fn a_thread_is_starved_from_a_second_on() {
        let late = |now| ThreadDueState::Due(5).starvation_ns(now);
        assert_eq!([late(4), late(STARVED_NS + 4), late(STARVED_NS + 5)], [None, None, Some(STARVED_NS)]);
        assert_eq!(
            ThreadDueState::Over.starvation_ns(u64::MAX).or(ThreadDueState::Unknown.starvation_ns(u64::MAX)),
            None
        );
    }
}
