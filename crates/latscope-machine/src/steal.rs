//! Time that the hypervisor took from each CPU.

use crate::account::cpus;
use crate::ledger::{CpuCounterLedger, CpuCounterValues};

/// Time stolen from each CPU, by `/proc/stat` (proc_stat(5)).
#[derive(Debug)]
pub struct Steal(CpuCounterLedger);

impl Steal {
    /// Begins to watch all CPUs.
    pub fn watch_cpus() -> Steal {
        Steal(CpuCounterLedger::new(read_stolen_ns()))
    }

    /// Replaces old readings, so that [`recent`](Steal::recent) stays recent; call it about once a second.
    pub fn refresh_readings(&mut self) {
        self.0.refresh_readings(read_stolen_ns);
    }

    /// Time stolen from a CPU within the last seconds that explains no event yet, ns. The kernel counts it in steps of
    /// 10 ms.
    pub fn recent(&self, cpu: u32) -> u64 {
        self.0.unexplained_ns(cpu, read_stolen_ns().get(&cpu).copied().unwrap_or(0))
    }

    /// Notes that stolen time of a CPU explains a part of an event, ns: it explains no other.
    pub fn mark_explained(&mut self, cpu: u32, ns: u64) {
        self.0.mark_explained(cpu, ns);
    }
}

/// Stolen time by CPU, ns.
fn read_stolen_ns() -> CpuCounterValues {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    cpus::parse_cpu_times(&text).into_iter().map(|(cpu, time)| (cpu, time.stolen_ns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_tells() {
        let mut steal = Steal::watch_cpus();
        steal.refresh_readings();
        assert_eq!(
            read_stolen_ns().len(),
            std::fs::read_to_string("/proc/stat").unwrap().matches("\ncpu").count()
        );
        assert_eq!(steal.recent(u32::MAX), 0);
    }
}
