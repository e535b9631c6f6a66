//! Waits of the two sides of a link in shared memory for each other.

use crate::notify::Notifier;
use latscope_os::clock::monotonic_ns;
use rustix::fd::BorrowedFd;
use std::hint::spin_loop;
use std::io;
use std::time::Duration;

/// Means by which a side kicks the other, and its spin time before a sleep.
pub(super) struct Kicks {
    /// `None` where both sides look until something is there, and no kick is sent.
    notifier: Option<Box<dyn Notifier>>,
    /// Time that a side spins before it sleeps, ns: 0 to sleep at once, [`FOREVER`] to spin without limit.
    pub(crate) spin_ns: u64,
}

/// Spin time of an endpoint that never sleeps and needs no kicks.
pub(crate) const FOREVER: u64 = u64::MAX;

impl Kicks {
    /// Looks until something is there.
    pub(crate) const SPIN: Kicks = Kicks { notifier: None, spin_ns: FOREVER };

    /// Looks for so many ns, then sleeps until it is notified.
    pub fn new(notifier: impl Notifier + 'static, spin_ns: u64) -> Kicks {
        Kicks { notifier: Some(Box::new(notifier)), spin_ns }
    }

    /// Kicks the other side, which then looks at the memory.
    pub(crate) fn kick(&mut self) -> io::Result<()> {
        self.notifier.as_mut().map_or(Ok(()), |notifier| notifier.notify())
    }

    /// Sleeps until the other side kicked, or at most so many ns; whether it
    /// did. A kick is a hint: it may come early, twice, or for nothing.
    pub(crate) fn wait_for_kick(&mut self, ns: u64) -> io::Result<bool> {
        self.notifier
            .as_mut()
            .map_or(Ok(false), |notifier| notifier.wait_for_peer(Some(Duration::from_nanos(ns))))
    }

    /// Returns the descriptor that a kick makes readable, where there is one.
    pub(crate) fn poll_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.notifier.as_ref()?.poll_descriptor()
    }
}

/// Looks between two looks at the clock.
const LOOKS: u32 = 1 << 8;

/// Longest sleep before the next look, ns: a kick may be lost.
pub(super) const WATCHDOG: u64 = 10_000_000;

/// Wait of a side, from a look that found nothing to the next that finds something.
#[derive(Debug)]
pub(super) struct KickWait {
    spin_ns: u64,
    until: u64,
    looks: u32,
    began: Option<u64>,
}

/// Next action after a look that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Look at the memory once more.
    Look,
    /// Sleep for at most so many ns, if no message arrived before the other side knows of the sleep.
    Sleep(u64),
    /// The time is over.
    Over,
}

impl KickWait {
    /// Waits until an instant of `CLOCK_MONOTONIC`, ns; one in the past is for a single look.
    #[inline]
    pub(super) fn new(spin_ns: u64, until: u64) -> KickWait {
        KickWait { spin_ns, until, looks: 0, began: None }
    }

    /// After a look that found nothing.
    #[inline]
    pub(super) fn next_action(&mut self) -> Next {
        self.looks = self.looks.wrapping_add(1);
        if self.spin_ns > 0 && self.until > 0 && !self.looks.is_multiple_of(LOOKS) {
            spin_loop();
            return Next::Look;
        }
        self.by_the_clock()
    }

    fn by_the_clock(&mut self) -> Next {
        let now = monotonic_ns();
        let left = self.until.saturating_sub(now);
        if left == 0 {
            return Next::Over;
        }
        let spins = now - *self.began.get_or_insert(now) < self.spin_ns;
        if spins { Next::Look } else { Next::Sleep(left.min(WATCHDOG)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_looks_then_sleeps_and_has_an_end() {
        assert_eq!(KickWait::new(0, 0).next_action(), Next::Over);
        assert_eq!(KickWait::new(FOREVER, 0).next_action(), Next::Over);
        assert_eq!(KickWait::new(0, u64::MAX).next_action(), Next::Sleep(WATCHDOG));
        let mut spinning = KickWait::new(FOREVER, u64::MAX);
        assert!((0..10 * LOOKS).all(|_| spinning.next_action() == Next::Look));
        let mut patient = KickWait::new(1, u64::MAX);
        let first = (0..10 * LOOKS).find(|_| patient.next_action() != Next::Look).unwrap();
        assert!(first >= LOOKS - 1, "it slept at once");
        let mut late = KickWait::new(FOREVER, 1);
        assert!((0..=LOOKS).any(|_| late.next_action() == Next::Over));
    }
}
