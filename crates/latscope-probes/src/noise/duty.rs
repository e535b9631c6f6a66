//! Share of its time for which a real-time busy loop may watch. A loop that never slept would run into the
//! kernel's throttling and measure that. Without throttling it would keep a machine from doing anything else.

use std::time::Duration;

/// Turns of watching and resting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duty {
    /// Time to watch, ns.
    pub watch_ns: u64,
    /// Time to rest after watching.
    pub rest: Duration,
}

/// Length of a turn, ns: no other thread waits for longer.
const TURN_NS: u64 = 100_000_000;

/// Share of the granted time that is used.
const SHARE: f64 = 0.8;

/// The least share of a turn worth watching.
const LEAST: f64 = 0.01;

impl Duty {
    /// Returns the duty that fits into the kernel's limit of `runtime` in each `period`, both in µs; a negative
    /// runtime is no limit. `None` if next to no time is left.
    pub fn within_limit(runtime: i64, period: i64) -> Option<Duty> {
        let granted = if runtime < 0 { 1.0 } else { runtime as f64 / period.max(1) as f64 };
        let share = SHARE * granted.min(1.0);
        let watch_ns = (share * TURN_NS as f64) as u64;
        let rest = Duration::from_nanos(TURN_NS - watch_ns);
        (share >= LEAST).then_some(Duty { watch_ns, rest })
    }

    /// Returns the duty that fits on this machine; if the limit cannot be read, the duty without a limit.
    pub fn for_this_machine() -> Option<Duty> {
        let number = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Duty::within_limit(
            number("sched_rt_runtime_us").unwrap_or(-1),
            number("sched_rt_period_us").unwrap_or(1_000_000),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_time_for_others() {
        for (runtime, period) in [(950_000, 1_000_000), (-1, 1_000_000), (2_000_000, 1_000_000), (10, 100)] {
            let duty = Duty::within_limit(runtime, period).unwrap();
            let share = duty.watch_ns as f64 / TURN_NS as f64;
            assert!(duty.rest.as_nanos() as u64 >= TURN_NS / 5, "{runtime}: {duty:?}");
            assert!(runtime < 0 || share < runtime as f64 / period as f64, "{runtime}: {duty:?}");
        }
        assert_eq!(Duty::within_limit(0, 1_000_000), None);
    }
}
