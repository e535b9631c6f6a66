//! Time for which a remote is waited for that is not there: once for all rows, and not for each.

use latscope_core::plan::{Params, Stop};
use std::collections::BTreeMap;
use std::time::Duration;

/// Part of the three seconds within which a row ends after its `--duration`: the rest is for its own beginning and end.
const GRACE: Duration = Duration::from_secs(2);

/// Time for each of the other rows: a server that has just lost its driver takes a moment to listen again.
const LEAST: Duration = Duration::from_millis(100);

/// Transport of a remote, and its options.
pub(super) type RemoteAddress = (&'static str, Params);

/// Waits of a remote so far.
#[derive(Debug)]
enum PastWait {
    /// It came. It may take as long as its transport permits to come back: it boots again between rows.
    Met,
    /// It was not there in all of this time.
    InVain(Duration),
}

/// Time that is left for each remote to come.
#[derive(Debug)]
pub(super) struct RemotePatience {
    /// Time for all rows of a remote; none if the run has no `--duration`.
    limit: Option<Duration>,
    waits: BTreeMap<RemoteAddress, PastWait>,
}

impl RemotePatience {
    pub(super) fn new(stop: &Stop) -> RemotePatience {
        // Only --duration makes the limits of a point the same.
        let is_asked = stop.limit_ns == stop.budget_ns && stop.limit_ns != u64::MAX;
        let limit = is_asked.then(|| Duration::from_nanos(stop.limit_ns).saturating_add(GRACE));
        RemotePatience { limit, waits: BTreeMap::new() }
    }

    /// Longest wait for the remote of a row that begins now.
    pub(super) fn remaining_wait(&self, remote: &RemoteAddress) -> Duration {
        match (self.waits.get(remote), self.limit) {
            (Some(PastWait::Met), _) => Duration::MAX,
            (Some(PastWait::InVain(waited)), Some(limit)) => limit.saturating_sub(*waited).max(LEAST),
            (Some(PastWait::InVain(_)), None) => LEAST,
            (None, limit) => limit.unwrap_or(Duration::MAX),
        }
    }

    /// Notes that a remote came.
    pub(super) fn record_arrival(&mut self, remote: RemoteAddress) {
        self.waits.insert(remote, PastWait::Met);
    }

    /// Notes that a remote was not there for this time.
    pub(super) fn waited_in_vain(&mut self, remote: RemoteAddress, time: Duration) {
        let before = match self.waits.get(&remote) {
            Some(PastWait::InVain(before)) => *before,
            _ => Duration::ZERO,
        };
        self.waits.insert(remote, PastWait::InVain(before.saturating_add(time)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn of(limit_ns: u64, budget_ns: u64) -> RemotePatience {
        RemotePatience::new(&Stop { budget_ns, ..Stop::after_events(100, limit_ns) })
    }

    #[test]
    fn a_remote_that_is_not_there_is_waited_for_once() {
        let [absent, other] = ["rptun", "openamp"].map(|name| (name, Params::new()));
        let mut patience = of(SECOND, SECOND);
        assert_eq!(patience.remaining_wait(&absent), Duration::from_secs(3));
        patience.waited_in_vain(absent.clone(), Duration::from_secs(1));
        assert_eq!(patience.remaining_wait(&absent), Duration::from_secs(2));
        patience.waited_in_vain(absent.clone(), Duration::from_secs(2));
        assert_eq!(
            (patience.remaining_wait(&absent), patience.remaining_wait(&other)),
            (LEAST, Duration::from_secs(3))
        );
        for mut usual in [of(u64::MAX, u64::MAX), of(4 * SECOND, SECOND)] {
            assert_eq!(usual.remaining_wait(&absent), Duration::MAX);
            usual.waited_in_vain(absent.clone(), Duration::from_secs(20));
            assert_eq!(usual.remaining_wait(&absent), LEAST);
        }
    }

    /// NuttX boots again before each row, also long after the first one.
    #[test]
    fn one_that_came_may_come_again_in_its_own_time() {
        let remote = ("rptun", Params::new());
        let mut patience = of(SECOND, SECOND);
        patience.record_arrival(remote.clone());
        assert_eq!(patience.remaining_wait(&remote), Duration::MAX);
    }
}
