//! Time for which a remote is waited for that is not there yet: once for all rows, and not for each.

use latscope_core::plan::Stop;
use latscope_os::clock::monotonic_ns;
use std::time::Duration;

/// Part of the three seconds within which a command ends after its `--duration`: the rest is for its own beginning and
/// end.
const GRACE: u64 = 2_000_000_000;

/// Time for each of the other rows: a server that has just lost its driver takes a moment to listen again.
const LEAST: Duration = Duration::from_millis(100);

/// Time that is left for a remote to come.
#[derive(Debug)]
pub(super) struct RemotePatience {
    /// Instant of `CLOCK_MONOTONIC`, ns; none if the run has no `--duration`.
    until: Option<u64>,
    /// A row waited, and was given up.
    is_over: bool,
}

impl RemotePatience {
    /// Patience of a run that began at an instant of `CLOCK_MONOTONIC`, ns.
    pub(super) fn new(stop: &Stop, began: u64) -> RemotePatience {
        // Only --duration makes the limits of a point the same.
        let is_asked = stop.limit_ns == stop.budget_ns && stop.limit_ns != u64::MAX;
        let until = is_asked.then(|| began.saturating_add(stop.limit_ns).saturating_add(GRACE));
        RemotePatience { until, is_over: false }
    }

    /// Longest wait for the remote of a row that begins now.
    pub(super) fn left(&self) -> Duration {
        let left = |until: u64| Duration::from_nanos(until.saturating_sub(monotonic_ns()));
        if self.is_over { LEAST } else { self.until.map_or(Duration::MAX, left).max(LEAST) }
    }

    /// Ends the patience if a row waited since an instant, ns, and no remote came.
    pub(super) fn waited_since(&mut self, began: u64) {
        self.is_over |= monotonic_ns().saturating_sub(began) >= LEAST.as_nanos() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_waited_for_once_and_no_longer_than_the_run_may_last() {
        let now = monotonic_ns();
        let stop = |limit_ns, budget_ns| Stop { budget_ns, ..Stop::after(100, limit_ns) };
        let second = 1_000_000_000;
        let mut of_a_second = RemotePatience::new(&stop(second, second), now);
        assert!(of_a_second.left() > LEAST && of_a_second.left() <= Duration::from_secs(3));
        of_a_second.waited_since(monotonic_ns() + second);
        assert!(of_a_second.left() > LEAST, "it failed at once");
        of_a_second.waited_since(now.saturating_sub(second));
        assert_eq!(of_a_second.left(), LEAST);
        let before = RemotePatience::new(&stop(second, second), now.saturating_sub(60 * second));
        assert_eq!(before.left(), LEAST);
        for usual in [stop(u64::MAX, u64::MAX), stop(400_000_000, 100_000_000)] {
            assert_eq!(RemotePatience::new(&usual, now).left(), Duration::MAX);
        }
    }
}
