//! CPU time of each CPU, from `/proc/stat` (proc_stat(5)).

use super::TICK_NS;
use std::collections::BTreeMap;

/// Time of one CPU since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    /// Time idle, or waiting for devices, ns.
    pub idle_ns: u64,
    /// Time that the hypervisor gave to others, ns.
    pub stolen_ns: u64,
}

impl CpuTime {
    /// Time in which the CPU ran nothing, ns. It is exact to a tick; many kernels only sample the time in use at ticks.
    pub fn free_ns(&self) -> u64 {
        self.idle_ns.saturating_add(self.stolen_ns)
    }
}

/// Times of all CPUs that are online.
pub(crate) fn parse_cpu_times(stat: &str) -> BTreeMap<u32, CpuTime> {
    let cpus = stat.lines().filter_map(|line| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next()?.parse().ok().filter(|_| !line.starts_with("cpu "))?;
        let mut ticks = words.map(|word| word.parse::<u64>().unwrap_or(0));
        let (idle, iowait) = (ticks.nth(3)?, ticks.next()?);
        let idle_ns = idle.saturating_add(iowait).saturating_mul(TICK_NS);
        Some((cpu, CpuTime { idle_ns, stolen_ns: ticks.nth(2).unwrap_or(0).saturating_mul(TICK_NS) }))
    });
    cpus.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_time_are_those_of_each_cpu() {
        let text = "cpu  30 0 30 700 10 0 0 5 0 0\ncpu0 10 0 20 300 4 1 2 3 0 0\ncpu10 1 1 1 1 1 1 1 1 0 0\ncpu1 20 0 10 400 6\nintr 5\n";
        let all = parse_cpu_times(text);
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), [0, 1, 10]);
        assert_eq!((all[&0].idle_ns, all[&0].stolen_ns), (304 * TICK_NS, 3 * TICK_NS));
        assert_eq!((all[&1].free_ns(), all[&10].free_ns()), (406 * TICK_NS, 3 * TICK_NS));
    }
}
