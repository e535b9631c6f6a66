//! Time that the hypervisor took from each CPU.

use crate::account::cpus;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Age from which on the readings are replaced; recent times are at most twice as old.
const RECENT: Duration = Duration::from_secs(1);

/// Time stolen from each CPU, by `/proc/stat` (proc_stat(5)).
#[derive(Debug)]
pub struct Steal {
    /// The readings before the present one, the older first.
    before: [BTreeMap<u32, u64>; 2],
    read: Instant,
}

impl Steal {
    /// Begins to watch all CPUs.
    pub fn watch() -> Steal {
        let now = read();
        Steal { before: [now.clone(), now], read: Instant::now() }
    }

    /// Replaces old readings, so that [`recent`](Steal::recent) stays recent; call it about once a second.
    pub fn look(&mut self) {
        if self.read.elapsed() >= RECENT {
            self.before = [std::mem::take(&mut self.before[1]), read()];
            self.read = Instant::now();
        }
    }

    /// Time stolen from a CPU within the last seconds, ns. The kernel counts it in steps of 10 ms.
    pub fn recent(&self, cpu: u32) -> u64 {
        let [now, before] =
            [&read(), &self.before[0]].map(|readings| readings.get(&cpu).copied().unwrap_or(0));
        now.saturating_sub(before)
    }
}

/// Stolen time by CPU, ns.
fn read() -> BTreeMap<u32, u64> {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    cpus::parse(&text).into_iter().map(|(cpu, time)| (cpu, time.stolen_ns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_tells() {
        let mut steal = Steal::watch();
        steal.look();
        assert_eq!(read().len(), std::fs::read_to_string("/proc/stat").unwrap().matches("\ncpu").count());
        assert_eq!(steal.recent(u32::MAX), 0);
    }
}
