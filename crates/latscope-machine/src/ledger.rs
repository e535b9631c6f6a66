//! Growth of counters of the kernel, each part of which explains one event.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Age from which on the readings are replaced; recent times are at most twice as old.
const RECENT: Duration = Duration::from_secs(1);

/// Values by CPU, ns.
pub(crate) type CpuCounterValues = BTreeMap<u32, u64>;

/// Recent growth of a counter of each CPU, less what explanations have used of it.
#[derive(Debug)]
pub(crate) struct CpuCounterLedger {
    /// The readings before the present one, the older first.
    before: [CpuCounterValues; 2],
    /// Time used on each CPU since the beginning, and by the time of both readings.
    used: CpuCounterValues,
    used_before: [CpuCounterValues; 2],
    read: Instant,
}

impl CpuCounterLedger {
    /// Begins with a reading.
    pub fn new(now: CpuCounterValues) -> CpuCounterLedger {
        let before = [now.clone(), now];
        CpuCounterLedger {
            before,
            used: CpuCounterValues::new(),
            used_before: Default::default(),
            read: Instant::now(),
        }
    }

    /// Replaces old readings, so that [`left`](CpuCounterLedger::left) stays recent; call it about once a second.
    pub fn refresh_readings(&mut self, read: impl FnOnce() -> CpuCounterValues) {
        if self.read.elapsed() >= RECENT {
            self.rotate_readings(read());
            self.read = Instant::now();
        }
    }

    fn rotate_readings(&mut self, now: CpuCounterValues) {
        self.before = [std::mem::take(&mut self.before[1]), now];
        self.used_before = [std::mem::take(&mut self.used_before[1]), self.used.clone()];
    }

    /// Returns the growth of a CPU's counter up to `now` within the last one or two seconds, less what was used on that
    /// CPU meanwhile, ns. So all uses of a CPU together are never more than its counter has grown.
    pub fn unexplained_ns(&self, cpu: u32, now: u64) -> u64 {
        let grown = now.saturating_sub(cpu_value(&self.before[0], cpu));
        grown.saturating_sub(cpu_value(&self.used, cpu) - cpu_value(&self.used_before[0], cpu))
    }

    /// Notes that an explanation used time of a CPU.
    pub fn mark_explained(&mut self, cpu: u32, ns: u64) {
        *self.used.entry(cpu).or_default() += ns;
    }
}

fn cpu_value(counts: &CpuCounterValues, cpu: u32) -> u64 {
    counts.get(&cpu).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_is_recent_for_two_readings_and_is_used_once() {
        let mut ledger = CpuCounterLedger::new([(1, 100)].into());
        assert_eq!(ledger.unexplained_ns(1, 110), 10);
        ledger.mark_explained(1, 7);
        assert_eq!(
            (ledger.unexplained_ns(1, 110), ledger.unexplained_ns(1, 130), ledger.unexplained_ns(0, 0)),
            (3, 23, 0)
        );
        ledger.rotate_readings([(1, 130)].into());
        assert_eq!(ledger.unexplained_ns(1, 130), 23);
        ledger.rotate_readings([(1, 130)].into());
        assert_eq!(ledger.unexplained_ns(1, 130), 0);
        assert_eq!(ledger.unexplained_ns(1, 140), 10);
    }

    proptest! {
        /// Takes all that is left, or a part of it, at any instants.
        #[test]
        fn no_more_is_used_than_was_counted(
            steps in proptest::collection::vec((0u64..40, 0u32..3, 0u64..30), 1..200),
        ) {
            let (mut now, mut used) = ([1000u64, 5000], [0, 0]);
            let counts = |now: [u64; 2]| CpuCounterValues::from([(0, now[0]), (1, now[1])]);
            let mut ledger = CpuCounterLedger::new(counts(now));
            for (grown, action, wanted) in steps {
                let cpu = (grown % 2) as usize;
                now[cpu] += grown;
                if action == 0 {
                    ledger.rotate_readings(counts(now));
                } else {
                    let ns = wanted.min(ledger.unexplained_ns(cpu as u32, now[cpu]));
                    ledger.mark_explained(cpu as u32, ns);
                    used[cpu] += ns;
                }
                prop_assert!(used[0] <= now[0] - 1000 && used[1] <= now[1] - 5000);
            }
        }
    }
}
