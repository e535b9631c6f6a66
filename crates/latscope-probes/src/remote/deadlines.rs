//! Times at which pings are sent: at once, or at even intervals.

use crate::wake::waiter::{Monotonic, sleep_until};
use latscope_os::clock::monotonic_ns;

/// Longest piece of a sleep, so that a request to end does not wait for long, ns.
const PIECE: u64 = 250_000_000;

/// Instants, the first of which is now; without an interval, every instant.
#[derive(Debug)]
pub struct PingSchedule {
    interval: u64,
    due: u64,
}

impl PingSchedule {
    /// Returns instants that are `interval` ns apart; 0 for back to back.
    pub fn with_interval(interval: u64) -> PingSchedule {
        PingSchedule { interval, due: monotonic_ns() }
    }

    /// Sleeps until the next instant, or until an end is requested. Returns the number of instants that passed
    /// meanwhile and are left out.
    pub fn wait_for_next(&mut self, ending: impl Fn() -> bool) -> u64 {
        if self.interval == 0 {
            return 0;
        }
        while monotonic_ns() < self.due && !ending() {
            sleep_until::<Monotonic>(self.due.min(monotonic_ns() + PIECE));
        }
        let missed = passed(self.due, monotonic_ns(), self.interval);
        self.due += self.interval * (missed + 1);
        missed
    }
}

/// Whole intervals that passed since an instant was due.
fn passed(due: u64, now: u64, interval: u64) -> u64 {
    now.saturating_sub(due) / interval
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_that_passed_are_left_out() {
        assert_eq!([990, 1000, 1099, 1100, 1350].map(|now| passed(1000, now, 100)), [0, 0, 0, 1, 3]);
    }

    #[test]
    fn instants_lie_evenly_and_none_comes_early() {
        let interval = 2_000_000;
        let mut deadlines = PingSchedule::with_interval(interval);
        let (first, mut left_out) = (deadlines.due, 0);
        for turn in 0..10 {
            let due = deadlines.due;
            left_out += deadlines.wait_for_next(|| false);
            assert!(monotonic_ns() >= due);
            assert_eq!(deadlines.due, first + interval * (turn + 1 + left_out));
        }
        let mut endless = PingSchedule { interval: u64::MAX / 4, due: u64::MAX / 2 };
        assert_eq!(endless.wait_for_next(|| true), 0, "who is asked to end does not sleep");
        assert_eq!(PingSchedule::with_interval(0).wait_for_next(|| false), 0);
    }
}
