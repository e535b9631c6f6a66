//! Time for which CPU quotas recently stopped the control groups of this process.

use super::SystemRoot;
use super::control_group::{quota, quotas, throttling};
use crate::ledger::{CpuCounterLedger, CpuCounterValues};
use latscope_core::units::format_time;

/// Time for which this process's groups, and those above them, were stopped by a quota.
#[derive(Debug)]
pub struct HeldBack {
    root: SystemRoot,
    ledger: CpuCounterLedger,
    /// The counter when the watch began, ns.
    began: u64,
}

/// The counter's place in the ledger: it is summed over CPUs.
const ALL_CPUS: u32 = 0;

impl HeldBack {
    /// Begins to watch the quotas.
    pub fn watch_quotas() -> HeldBack {
        HeldBack::with_root(SystemRoot::real())
    }

    fn with_root(root: SystemRoot) -> HeldBack {
        let began = read_throttled_ns(&root);
        let ledger = CpuCounterLedger::new(CpuCounterValues::from([(ALL_CPUS, began)]));
        HeldBack { root, ledger, began }
    }

    /// Replaces old readings, so that [`recent`](HeldBack::recent) stays recent; call it about once a second.
    pub fn refresh_readings(&mut self) {
        self.ledger.refresh_readings(|| CpuCounterValues::from([(ALL_CPUS, read_throttled_ns(&self.root))]));
    }

    /// Time for which the groups were stopped within the last seconds and that explains no event yet, ns, summed over
    /// CPUs.
    pub fn recent(&self) -> u64 {
        self.ledger.unexplained_ns(ALL_CPUS, read_throttled_ns(&self.root))
    }

    /// Returns true if the groups were stopped at any time since the watch began.
    pub fn was_throttled(&self) -> bool {
        read_throttled_ns(&self.root) > self.began
    }

    /// Notes that a stop of the groups explains a part of an event, ns: it explains no other.
    pub fn mark_explained(&mut self, ns: u64) {
        self.ledger.mark_explained(ALL_CPUS, ns);
    }

    /// Names the tightest quota: `50 ms of CPU time in each 100 ms`.
    pub fn quota(&self) -> Option<String> {
        let tightest = quota(&self.root)?;
        let [runtime, period] = [tightest.runtime, tightest.period].map(|us| format_time(us as f64 * 1e3));
        Some(format!("{runtime} of CPU time in each {period} ({})", tightest.group))
    }
}

fn read_throttled_ns(root: &SystemRoot) -> u64 {
    let groups = quotas(root).into_iter().filter_map(|quota| throttling(root, &quota.group));
    groups.map(|throttling| throttling.throttled_ns).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree;
    use std::fs;

    #[test]
    fn time_stopped_by_a_quota_counts_for_a_while() {
        let directory = "/sys/fs/cgroup/cpu,cpuacct/x";
        let file = |name: &str| format!("{directory}/{name}");
        let (tree, root) = tree(&[
            ("/proc/self/cgroup", "4:cpu,cpuacct:/x\n0::/\n"),
            (&file("cpu.cfs_quota_us"), "50000"),
            (&file("cpu.cfs_period_us"), "100000"),
            (&file("cpu.stat"), "nr_periods 9\nnr_throttled 3\nthrottled_time 7000\n"),
        ]);
        let mut held_back = HeldBack::with_root(root);
        held_back.refresh_readings();
        assert_eq!((held_back.recent(), held_back.was_throttled()), (0, false));
        let stat = tree.path().join(file("cpu.stat").trim_start_matches('/'));
        fs::write(stat, "nr_periods 10\nnr_throttled 4\nthrottled_time 9000\n").unwrap();
        assert_eq!((held_back.recent(), held_back.was_throttled()), (2000, true));
        held_back.mark_explained(500);
        assert_eq!(held_back.recent(), 1500);
        let quota = "50.0 ms of CPU time in each 100 ms (/sys/fs/cgroup/cpu,cpuacct/x)";
        assert_eq!(held_back.quota().as_deref(), Some(quota));
    }
}
