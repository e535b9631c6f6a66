//! Size of the kernel's buffers, which follows the rate of events.

use latscope_core::units::{CpuList, count_with_noun as number_of, format_amount, format_size};
use std::fs;
use std::path::{Path, PathBuf};

/// Size of the kernel's buffer of a CPU to begin with, KiB: some 200 000 events. When it is full, the newest
/// events replace the oldest.
const USUAL_KIB: u64 = 8192;

/// Returns the size to begin with, KiB: less if memory is short.
pub(super) fn initial_size_kib() -> usize {
    USUAL_KIB.min(available() / PART / 4) as usize
}

/// Memory for the buffers of all CPUs together, KiB, unless the rate or the user asks for more.
pub(super) const ALL_KIB: usize = 64 * 1024;

/// Largest buffer of a CPU that results from the rate of events, KiB.
const MOST_KIB: u64 = 32 * 1024;

/// Divisor of the available memory: all buffers together take at most the quotient.
const PART: u64 = 16;

/// Smallest buffer of a CPU, KiB.
pub(super) const LEAST_KIB: u64 = 64;

/// Memory that a trace takes for each byte of a buffer: the kernel's own, and what is read of it, which may be as much
/// again twice.
pub(super) const KEPT: u64 = 2;

/// Time whose events a buffer shall hold, s, since the process that reads it may wait so long for a CPU.
const HELD_S: f64 = 2.0;

/// The kernel's counts for the buffer of a CPU (`per_cpu/cpuN/stats`).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TraceBufferStats {
    /// Events recorded since the begin.
    events: u64,
    /// Mean length of an event, bytes; 0 without events.
    length: f64,
}

impl TraceBufferStats {
    pub fn parse(stats: &str) -> TraceBufferStats {
        let [there, bytes, overrun, read] = ["entries", "bytes", "overrun", "read events"].map(|name| {
            let value = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        });
        let length = if there > 0 { bytes as f64 / there as f64 } else { 0.0 };
        TraceBufferStats { events: there + overrun + read, length }
    }
}

/// Returns the size of a buffer in which the events of two seconds fit, KiB, for the busiest CPU; `None` if the
/// present size suffices.
pub(super) fn required_size_kib(
    before: &[TraceBufferStats],
    now: &[TraceBufferStats],
    seconds: f64,
    (present, available, cpus): (u64, u64, u64),
) -> Option<u64> {
    let sizes = before.iter().zip(now).map(|(before, now)| {
        let rate = now.events.saturating_sub(before.events) as f64 / seconds.max(0.1);
        // The head of each event counts, too.
        (rate * HELD_S * (now.length + 4.0) / 1024.0) as u64
    });
    let most = MOST_KIB.min(available / PART / cpus.max(1));
    let size = sizes.max()?.next_power_of_two().min(most);
    (size > present).then_some(size)
}

/// Checks a size for the buffer of each CPU.
///
/// # Errors
/// The size is too small, or this machine has not that much memory for all CPUs; the text has the limits.
pub fn check_size(bytes: u64) -> Result<(), String> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = online.trim().parse::<CpuList>().map_or(1, |list| list.0.len() as u64);
    check_limits(bytes, available(), cpus)
}

fn check_limits(bytes: u64, available_kib: u64, cpus: u64) -> Result<(), String> {
    let least = LEAST_KIB * 1024;
    if bytes < least {
        return Err(format!("a buffer has at least {}", format_size(least)));
    }
    let each = (KEPT + 1) * cpus.max(1);
    // A kernel that does not state its memory (0) is left to refuse for itself.
    if available_kib > 0 && bytes.div_ceil(1024) > available_kib / each {
        let most = format_amount(available_kib / each * 1024);
        let (memory, cpus) = (format_amount(available_kib * 1024), number_of(cpus, "CPU"));
        return Err(format!(
            "here a buffer has at most {most}: {cpus} of {} times its size in {memory} of memory",
            KEPT + 1
        ));
    }
    Ok(())
}

/// Memory that is available, KiB.
pub(super) fn available() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

/// Reads what was counted of each CPU.
pub(super) fn read_stats(directory: &Path, cpus: impl Iterator<Item = u32>) -> Vec<TraceBufferStats> {
    let paths = cpus.map(|cpu| directory.join(format!("per_cpu/cpu{cpu}/stats")));
    paths.map(|path| TraceBufferStats::parse(&fs::read_to_string(path).unwrap_or_default())).collect()
}

/// Enlarges the buffers in the background: the kernel does it on each CPU, and waits for its turn there.
pub(super) fn enlarge(directory: &Path, kib: u64) {
    let path: PathBuf = directory.join("buffer_size_kb");
    let _ = std::thread::Builder::new().name("buffers".to_owned()).spawn(move || {
        // Without memory the buffers stay as they are.
        let _ = fs::write(path, kib.to_string());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_cannot_be_are_refused_with_the_limit() {
        let (cpus, available) = (4, 12 << 20);
        for (bytes, said) in [
            (0, "at least 64 KiB"),
            (65_535, "at least 64 KiB"),
            ((1 << 30) + 1, "at most 1 GiB: 4 CPUs of 3 times its size in 12 GiB of memory"),
            (u64::MAX, "at most 1 GiB"),
        ] {
            let refusal = check_limits(bytes, available, cpus).unwrap_err();
            assert!(refusal.contains(said), "{bytes}: {refusal}");
        }
        for bytes in [65_536, 1 << 30] {
            assert_eq!(check_limits(bytes, available, cpus), Ok(()));
        }
        assert_eq!(check_limits(1 << 40, 0, cpus), Ok(()), "the memory is not known");
    }

    #[test]
    fn buffers_grow_with_the_rate_and_no_further_than_memory_allows() {
        let stats = "entries: 1000\noverrun: 400000\ncommit overrun: 0\nbytes: 36000\nread events: 99000\n";
        let now = TraceBufferStats::parse(stats);
        assert_eq!(now, TraceBufferStats { events: 500_000, length: 36.0 });
        let before = TraceBufferStats::default();
        // 500,000 events of 40 bytes in a second: 39 MB in two.
        let many = (2048, 8 << 20, 2);
        assert_eq!(required_size_kib(&[before, before], &[before, now], 1.0, many), Some(MOST_KIB));
        assert_eq!(required_size_kib(&[before], &[now], 4.0, many), Some(16 * 1024));
        assert_eq!(required_size_kib(&[before], &[now], 100.0, many), None, "a slow rate");
        assert_eq!(
            required_size_kib(&[before], &[now], 1.0, (2048, 128 * 1024, 2)),
            Some(4096),
            "little memory"
        );
        assert_eq!(required_size_kib(&[before], &[now], 1.0, (MOST_KIB, 8 << 20, 2)), None);
        assert_eq!(TraceBufferStats::parse(""), TraceBufferStats::default());
    }
}
