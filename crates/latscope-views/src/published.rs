//! Wake-up latencies that others published, to compare a result with. Each has its conditions: latency depends
//! on the interval, the load, the length of the run and the kernel more than on the machine, so no figure is a
//! number to be beaten.

use latscope_core::events::{Group, Row};
use latscope_core::param;
use latscope_core::report::Report;
use latscope_core::units::{counted, format_time};

/// A published figure or promise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Name of the machine or program that was measured.
    pub name: &'static str,
    /// The figure, in words: `max 55 µs`.
    pub figure: &'static str,
    /// Scheduling policy of the threads, as a value of the parameter `policy`.
    pub policy: &'static str,
    /// Time from one activation to the next, ns, where it is published.
    pub interval: Option<u64>,
    /// Length of the run: activations of a thread, where they are published.
    pub activations: Option<u64>,
    /// Conditions of the measurement, in words.
    pub conditions: &'static str,
    /// Publication that the figure is from.
    pub source: &'static str,
}

/// Published figures on periodic wake-ups.
pub const WAKE_UPS: [Published; 10] = [
    Published {
        name: "OSADL QA farm",
        figure: "max 55 µs",
        policy: "fifo",
        interval: Some(200_000),
        activations: Some(100_000_000),
        conditions: "PREEMPT_RT, FIFO 90, 5 h 33 min: 2 h idle, then 30-50 % load of network, disk and memory",
        source: "example plot of the QA farm (cyclictest -l100000000 -m -Sp90 -i200 -h400 -q)",
    },
    Published {
        name: "rteval, tuned machine",
        figure: "max 4 µs (11 µs with one CPU isolated)",
        policy: "fifo",
        interval: Some(100_000),
        activations: Some(864_000_000),
        conditions: "24 h, isolated CPUs of a tuned 12-core NUMA server, FIFO 95, load on the other CPUs",
        source: "a published rteval report",
    },
    Published {
        name: "Raspberry Pi 5",
        figure: "max 8 to 14 µs",
        policy: "fifo",
        interval: None,
        activations: None,
        conditions: "PREEMPT_RT, 1 min",
        source: "published cyclictest runs",
    },
    Published {
        name: "NI Linux Real-Time, PXIe-8880",
        figure: "limit: max 8 µs",
        policy: "fifo",
        interval: None,
        activations: None,
        conditions: "PREEMPT_RT, nohz_full",
        source: "limits of NILRT's release tests",
    },
    Published {
        name: "NI Linux Real-Time, PXIe-8881",
        figure: "limit: max 27 µs, p99.9999 16 µs",
        policy: "fifo",
        interval: None,
        activations: None,
        conditions: "PREEMPT_RT",
        source: "limits of NILRT's release tests",
    },
    Published {
        name: "LAVA gate",
        figure: "limit: max 50 µs",
        policy: "fifo",
        interval: Some(1_000_000),
        activations: Some(60_000),
        conditions: "FIFO 98, 1 min, whatever runs beside",
        source: "default of Linaro's cyclictest test definition",
    },
    Published {
        name: "OpenShift for telecommunication",
        figure: "promise: max below 20 µs",
        policy: "fifo",
        interval: None,
        activations: None,
        conditions: "PREEMPT_RT, isolated CPUs",
        source: "the platform's latency tests",
    },
    Published {
        name: "rtla timerlat, SCHED_DEADLINE",
        figure: "max 36 to 58 µs, mean 4 to 5 µs",
        policy: "deadline",
        interval: Some(1_000_000),
        activations: Some(600_000),
        conditions: "5 CPUs, runtime 100 µs in 1 ms, 10 min",
        source: "example in rtla's manual",
    },
    Published {
        name: "KVM guest",
        figure: "mean 4.56 µs (5.63 µs without the fast path of its timer)",
        policy: "fifo",
        interval: None,
        activations: None,
        conditions: "a guest on an otherwise idle host",
        source: "patch series for KVM's TSC-deadline timer",
    },
    Published {
        name: "kernel without and with PREEMPT_RT",
        figure: "max 39 ms without, 18 to 22 µs with",
        policy: "fifo",
        interval: None,
        activations: Some(100_000),
        conditions: "the same machine",
        source: "rt-tests' introduction",
    },
];

impl Published {
    /// Returns the conditions, as far as they are published.
    pub fn described(&self) -> String {
        let mut parts = vec![self.conditions.to_owned()];
        match self.interval {
            Some(interval) => parts.push(format!("every {}", format_time(interval as f64))),
            None => parts.push("interval unknown".to_owned()),
        }
        parts.extend(self.activations.map(|count| counted(count, "activation")));
        parts.join(", ")
    }

    /// Returns true if the figure is known not to be comparable with these measurements: another or an unknown
    /// interval, another policy, or another kind of kernel. The load differs in any case.
    pub fn differs(&self, report: &Report, group: &Group) -> bool {
        let real_time = |text: &str| text.contains("PREEMPT_RT");
        let kernel = real_time(self.conditions) && !real_time(&report.machine.kernel_version);
        let ours = |row: &Row| row.m.params.get(param::POLICY) == Some(&self.policy.into());
        let policy = !group.singles.iter().all(ours);
        kernel || policy || self.interval.is_none() || self.interval != interval(group)
    }
}

/// Returns the conditions on this machine, in the same words.
pub fn here(report: &Report, group: &Group) -> String {
    let mut parts = vec![report.machine.preemption()];
    parts.retain(|part| !part.is_empty());
    parts.extend(interval(group).map(|interval| format!("every {}", format_time(interval as f64))));
    let most = group.singles.iter().map(|row| row.m.summary.count).max().unwrap_or(0);
    parts.push(counted(most, "activation"));
    parts.join(", ")
}

/// The interval of all threads; `None` where they have several.
fn interval(group: &Group) -> Option<u64> {
    let interval = |row: &Row| row.m.number(param::INTERVAL);
    let first = interval(group.singles.first()?)?;
    group.singles.iter().all(|row| interval(row) == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::groups;
    use latscope_core::fixture;

    #[test]
    fn every_figure_has_a_source_and_conditions() {
        for published in WAKE_UPS {
            assert!(!published.source.is_empty() && !published.conditions.is_empty(), "{published:?}");
        }
    }

    #[test]
    fn conditions_are_told_on_both_sides() {
        let report = fixture::wake();
        let groups = groups(&report);
        assert_eq!(here(&report, &groups[0]), "PREEMPT_DYNAMIC, every 1.00 ms, 30,000 activations");
        assert_eq!(
            WAKE_UPS[5].described(),
            "FIFO 98, 1 min, whatever runs beside, every 1.00 ms, 60,000 activations"
        );
        assert_eq!(WAKE_UPS[2].described(), "PREEMPT_RT, 1 min, interval unknown");
    }

    #[test]
    fn another_interval_or_kernel_is_another_thing() {
        let mut report = fixture::wake();
        let differing = |report: &Report| -> Vec<&str> {
            let groups = groups(report);
            WAKE_UPS.iter().filter(|row| !row.differs(report, &groups[0])).map(|row| row.name).collect()
        };
        assert_eq!(differing(&report), ["LAVA gate"]);
        report.machine.kernel_version = "#1 SMP PREEMPT_RT".to_owned();
        for m in &mut report.measurements {
            m.params.insert("interval".to_owned(), 200_000u64.into());
        }
        assert_eq!(differing(&report), ["OSADL QA farm"]);
        report.measurements[0].params.insert("interval".to_owned(), 300_000u64.into());
        assert_eq!(differing(&report), [""; 0]);
    }
}
