//! Memory that is available without swapping.

use latscope_core::units::format_size;

/// Bytes of memory available: `MemAvailable` of proc_meminfo(5), or what is
/// free where there is no /proc.
pub fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    parse(&text).unwrap_or_else(|| {
        let info = rustix::system::sysinfo();
        #[allow(clippy::useless_conversion)] // its fields are narrower on 32-bit machines
        let free = u64::from(info.freeram);
        free * u64::from(info.mem_unit)
    })
}

/// Returns the reason why `bytes` of memory are not available together with their page tables and a reserve for
/// other programs, and the remedy; `None` if they are.
pub(crate) fn shortage(bytes: u64) -> Option<(String, &'static str)> {
    const OTHERS: u64 = 64 << 20;
    let (needed, there) = (bytes.saturating_add(bytes / 8).saturating_add(OTHERS), memory());
    (needed > there).then(|| {
        let reason = format!("{} of memory needed, {} available", format_size(needed), format_size(there));
        (reason, "free memory, or choose a smaller --size")
    })
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_and_nonsense_is_not() {
        assert_eq!(parse("MemTotal: 9 kB\nMemAvailable:    1024 kB\nBuffers: 1 kB\n"), Some(1 << 20));
        assert_eq!(parse("MemTotal: 9 kB\n"), None);
        assert_eq!(parse("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn there_is_some_memory_but_not_any_amount() {
        assert!(memory() > 1 << 20);
        let (reason, _) = shortage(1 << 60).unwrap();
        assert!(reason.contains("available"), "{reason}");
        assert!(shortage(u64::MAX).is_some());
    }
}
