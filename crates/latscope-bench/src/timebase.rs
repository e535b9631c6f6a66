//! The clock of a run: which one, how fast it ticks, what a stamp costs.

use crate::kernel_clock::clock_source;
use latscope_core::machine::ClockInfo;
use latscope_machine::SystemRoot;
use latscope_os::clock::{Clock, Counter, MonotonicRaw, monotonic_raw_ns};
use serde::{Deserialize, Serialize};

/// A calibrated clock. Made once by the coordinator and handed to every
/// worker, so that all of them agree on the length of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timebase {
    /// True if stamps come from the processor's counter.
    counter: bool,
    /// Nanoseconds in a tick.
    ns_per_tick: f64,
    /// Ticks between two stamps with nothing between them.
    overhead: u64,
}

/// The clock chosen for a run, as a value: probes that take stamps on threads
/// of their own copy it. Its one branch is part of the measured overhead.
#[derive(Debug, Clone, Copy)]
pub enum AnyClock {
    /// Counter of the processor.
    Counter(Counter),
    /// The kernel's raw monotonic clock.
    MonotonicRaw(MonotonicRaw),
}

impl Clock for AnyClock {
    #[inline(always)]
    fn stamp_start(self) -> u64 {
        match self {
            AnyClock::Counter(clock) => clock.stamp_start(),
            AnyClock::MonotonicRaw(clock) => clock.stamp_start(),
        }
    }

    #[inline(always)]
    fn stamp_end(self) -> u64 {
        match self {
            AnyClock::Counter(clock) => clock.stamp_end(),
            AnyClock::MonotonicRaw(clock) => clock.stamp_end(),
        }
    }
}

impl Timebase {
    /// For tests: a clock of 1 ns ticks without overhead.
    #[cfg(any(test, feature = "scripted"))]
    pub fn scripted() -> Timebase {
        Timebase { counter: false, ns_per_tick: 1.0, overhead: 0 }
    }

    /// The clock these ticks belong to.
    pub fn clock(&self) -> AnyClock {
        match Counter::new().filter(|_| self.counter) {
            Some((counter, _)) => AnyClock::Counter(counter),
            None => AnyClock::MonotonicRaw(MonotonicRaw),
        }
    }

    /// Ticks between two stamps with nothing between them.
    pub fn overhead(&self) -> u64 {
        self.overhead
    }

    /// Nanoseconds between two stamps, the cost of stamping subtracted.
    #[inline]
    pub fn interval_ns(&self, ticks: u64) -> f64 {
        ticks.saturating_sub(self.overhead) as f64 * self.ns_per_tick
    }

    /// Nanoseconds in so many ticks, nothing subtracted.
    #[inline]
    pub fn span(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// Ticks in `ns` nanoseconds.
    pub fn ticks(&self, ns: u64) -> u64 {
        (ns as f64 / self.ns_per_tick) as u64
    }

    /// Chooses the clock, measures its rate against `CLOCK_MONOTONIC_RAW`
    /// (for 20 ms), its resolution and the cost of a pair of stamps.
    pub fn calibrate() -> (Timebase, ClockInfo) {
        let chosen = choose(Counter::new(), clock_source(&SystemRoot::real()).as_deref());
        let counter = chosen.counter.is_some();
        let ns_per_tick = chosen.counter.map_or(1.0, ns_per_tick);
        let mut timebase = Timebase { counter, ns_per_tick, overhead: 0 };
        let (overhead, resolution) = stamp_cost(timebase.clock());
        timebase.overhead = overhead;
        let info = ClockInfo {
            source: chosen.source.to_owned(),
            reason: chosen.reason,
            frequency_hz: 1e9 / ns_per_tick,
            resolution_ns: resolution as f64 * ns_per_tick,
            overhead_ns: overhead as f64 * ns_per_tick,
        };
        (timebase, info)
    }
}

struct ClockSourceChoice {
    counter: Option<Counter>,
    source: &'static str,
    reason: String,
}

/// Chooses the counter if it exists, runs at a constant rate, and the kernel trusts it too. A kernel that keeps time by
/// something else has found, or assumes by its settings, that the counters of the CPUs disagree.
fn choose(counter: Option<(Counter, &'static str)>, kernel: Option<&str>) -> ClockSourceChoice {
    let os = |reason: String| ClockSourceChoice { counter: None, source: "monotonic-raw", reason };
    match (counter, kernel) {
        (None, _) => os("the processor has no constant-rate counter that programs can read".to_owned()),
        (Some((_, name)), Some(other))
            if !matches!(other, "tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page") =>
        {
            os(format!("the kernel keeps time by {other}, not by the {name}: it may not trust it"))
        }
        (Some((counter, name)), kernel) => {
            let kernel = match kernel {
                Some(source) => format!("the kernel keeps time by {source}"),
                None => "the kernel's clock source is not visible".to_owned(),
            };
            ClockSourceChoice {
                counter: Some(counter),
                source: name,
                reason: format!("constant rate in all power states; {kernel}"),
            }
        }
    }
}

/// Paired readings of both clocks at both ends of a stretch; of several tries
/// at each end the one with the least time between its readings counts.
fn ns_per_tick(counter: Counter) -> f64 {
    let (first_ticks, first_ns) = read_clock_pair(counter);
    // Asleep: the counter runs on, and no CPU time is used.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let (last_ticks, last_ns) = read_clock_pair(counter);
    (last_ns - first_ns) as f64 / (last_ticks - first_ticks) as f64
}

fn read_clock_pair(counter: Counter) -> (u64, u64) {
    let tries = (0..32).map(|_| {
        let before = counter.stamp_start();
        let ns = monotonic_raw_ns();
        let after = counter.stamp_end();
        (after - before, before + (after - before) / 2, ns)
    });
    let (_, ticks, ns) = tries.min().expect("32 tries");
    (ticks, ns)
}

/// Ticks between two stamps with nothing between, at least and without
/// disturbance (the tenth percentile), and the smallest step ever seen.
fn stamp_cost(clock: AnyClock) -> (u64, u64) {
    let mut pairs: Vec<u64> = (0..2000)
        .map(|_| {
            let start = clock.stamp_start();
            clock.stamp_end() - start
        })
        .collect();
    pairs.sort_unstable();
    let resolution = smallest_step(clock).max(1);
    (pairs[pairs.len() / 10], resolution)
}

fn smallest_step(clock: AnyClock) -> u64 {
    let steps = (0..2000).filter_map(|_| {
        let first = clock.stamp_end();
        (0..1000).map(|_| clock.stamp_end() - first).find(|step| *step > 0)
    });
    steps.min().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::skipped;

    #[test]
    fn the_counter_is_not_used_when_the_kernel_does_not_trust_it() {
        let name = "the_counter_is_not_used_when_the_kernel_does_not_trust_it";
        let Some(counter) = Counter::new() else { return skipped(name, "this CPU has no counter") };
        assert!(choose(Some(counter), Some("tsc")).counter.is_some());
        let hpet = choose(Some(counter), Some("hpet"));
        assert!(hpet.counter.is_none());
        assert!(hpet.reason.contains("hpet"), "{}", hpet.reason);
        assert!(choose(None, Some("tsc")).counter.is_none());
        assert!(choose(Some(counter), None).reason.contains("not visible"));
    }

    #[test]
    fn a_calibrated_clock_is_described() {
        let (timebase, info) = Timebase::calibrate();
        assert!(info.frequency_hz > 1e6 && info.resolution_ns > 0.0, "{info:?}");
        assert_eq!(timebase.interval_ns(0), 0.0);
        let ticks = timebase.ticks(1_000_000);
        assert!((timebase.interval_ns(ticks + timebase.overhead) - 1e6).abs() < 100.0);
    }
}
