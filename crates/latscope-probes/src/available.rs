//! Memory and CPUs that an operation takes and that are not available.

use latscope_bench::bench::Bench;
use latscope_core::units::format_size;
use latscope_os::memory::available_memory;

/// Returns the reason why `bytes` of memory are not available together with their page tables and a reserve for
/// other programs, and the remedy; `None` if they are.
pub(crate) fn shortage(bytes: u64) -> Option<(String, &'static str)> {
    const OTHERS: u64 = 64 << 20;
    let (needed, there) = (bytes.saturating_add(bytes / 8).saturating_add(OTHERS), available_memory());
    (needed > there).then(|| {
        let reason = format!("{} of memory needed, {} available", format_size(needed), format_size(there));
        (reason, "free memory, or choose a smaller --size")
    })
}

/// Closes a point that needs a second CPU.
pub(crate) fn lacks_a_cpu(bench: &mut Bench, point: usize) {
    let reason = "it takes two CPUs, and this run may use only one";
    bench.unsupported(point, reason, "allow a second CPU (--cpus, taskset, the cgroup's cpuset)");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_some_memory_but_not_any_amount() {
        assert!(shortage(1 << 20).is_none());
        let (reason, _) = shortage(1 << 60).unwrap();
        assert!(reason.contains("available"), "{reason}");
        assert!(shortage(u64::MAX).is_some());
    }
}
