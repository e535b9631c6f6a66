//! Time stamps: the processor's counter where it is sound, else the kernel's clock.

use std::sync::OnceLock;

/// A source of time stamps. Ticks have the frequency the caller calibrated.
pub trait Clock: Copy {
    /// A stamp before what is timed: later instructions do not start before it.
    fn stamp_start(self) -> u64;
    /// A stamp after what is timed: earlier instructions have completed.
    fn stamp_end(self) -> u64;
}

/// The counter of the processor: the TSC on x86, CNTVCT_EL0 on arm64.
///
/// Can only be had through [`Counter::new`], which checks that it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter(());

/// `CLOCK_MONOTONIC_RAW`, in nanoseconds (clock_gettime(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonotonicRaw;

impl Counter {
    /// The counter, with its name; `None` on processors where it does not
    /// run at a constant rate in all power states or cannot be read.
    pub fn new() -> Option<(Counter, &'static str)> {
        // The processor is asked once: CPUID takes microseconds in a virtual machine.
        static NAME: OnceLock<Option<&str>> = OnceLock::new();
        NAME.get_or_init(counter::name).map(|name| (Counter(()), name))
    }
}

impl Clock for Counter {
    #[inline(always)]
    fn stamp_start(self) -> u64 {
        counter::start()
    }

    #[inline(always)]
    fn stamp_end(self) -> u64 {
        counter::end()
    }
}

impl Clock for MonotonicRaw {
    #[inline(always)]
    fn stamp_start(self) -> u64 {
        monotonic_raw_ns()
    }

    #[inline(always)]
    fn stamp_end(self) -> u64 {
        monotonic_raw_ns()
    }
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: not slewed by NTP.
#[inline]
pub fn monotonic_raw_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; the clock exists since Linux 2.6.28.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
    nanoseconds(time.tv_sec, time.tv_nsec)
}

/// `CLOCK_MONOTONIC` in nanoseconds: the clock of timers and of trace events.
#[inline]
pub fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    nanoseconds(time.tv_sec, time.tv_nsec)
}

#[inline]
pub(crate) fn nanoseconds(seconds: impl Into<i64>, nanoseconds: impl Into<i64>) -> u64 {
    seconds.into() as u64 * 1_000_000_000 + nanoseconds.into() as u64
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use crate::cpuid;
    use core::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

    /// The rate must be constant, and RDTSCP must exist.
    pub fn name() -> Option<&'static str> {
        (cpuid::invariant_tsc() && cpuid::has_rdtscp()).then_some("tsc")
    }

    #[inline(always)]
    pub fn start() -> u64 {
        // SAFETY: LFENCE and RDTSC exist on every x86-64.
        unsafe {
            _mm_lfence();
            let stamp = _rdtsc();
            _mm_lfence();
            stamp
        }
    }

    #[inline(always)]
    pub fn end() -> u64 {
        let mut cpu = 0;
        // SAFETY: `name` found RDTSCP before a `Counter` could be made.
        unsafe {
            let stamp = __rdtscp(&mut cpu);
            _mm_lfence();
            stamp
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod counter {
    use core::arch::asm;

    /// The generic timer is architectural and runs at a constant rate.
    pub fn name() -> Option<&'static str> {
        Some("cntvct")
    }

    #[inline(always)]
    pub fn start() -> u64 {
        let stamp;
        // SAFETY: Linux lets user space read the virtual counter.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) stamp, options(nostack)) };
        stamp
    }

    #[inline(always)]
    pub fn end() -> u64 {
        start()
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod counter {
    pub fn name() -> Option<&'static str> {
        None
    }

    pub fn start() -> u64 {
        super::monotonic_raw_ns()
    }

    pub fn end() -> u64 {
        super::monotonic_raw_ns()
    }
}

/// Reads the bare counter without ordering, for the probe that times just that.
#[inline(always)]
pub fn bare_counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: RDTSC exists on every x86-64.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    counter::start()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never_runs_backwards(clock: impl Clock) {
        let mut last = clock.stamp_start();
        for _ in 0..10_000 {
            let now = clock.stamp_end();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn stamps_never_run_backwards() {
        never_runs_backwards(MonotonicRaw);
        if let Some((counter, name)) = Counter::new() {
            assert!(!name.is_empty());
            never_runs_backwards(counter);
        }
    }
}
