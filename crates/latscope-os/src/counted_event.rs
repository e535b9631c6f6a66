//! Events that the kernel counts for the calling thread, a tracepoint or a breakpoint in a function:
//! perf_event_open(2). Nothing is recorded, and the event goes with its descriptor.

use crate::syscall::syscall;
use rustix::fd::{FromRawFd, OwnedFd};
use std::io;

/// The first 72 bytes of `struct perf_event_attr` (PERF_ATTR_SIZE_VER1).
#[repr(C)]
#[derive(Default)]
struct PerfEventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    /// Address of the path of a program, for a breakpoint in it.
    config1: u64,
    /// Place in its file.
    config2: u64,
}

/// PERF_TYPE_HARDWARE, whose event 0 is PERF_COUNT_HW_CPU_CYCLES.
const HARDWARE: u32 = 0;
/// PERF_TYPE_TRACEPOINT.
const TRACEPOINT: u32 = 2;
/// Bits of the flags by which only the program is counted: `exclude_kernel`, `exclude_hv`.
const PROGRAM_ONLY: u64 = 1 << 5 | 1 << 6;
const CLOSE_ON_EXEC: usize = 8;

/// Event that is counted, until this is dropped.
#[derive(Debug)]
pub struct PerfEventCounter(OwnedFd);

impl PerfEventCounter {
    /// Counts a tracepoint by its id, from the file `id` of the event in tracefs.
    ///
    /// # Errors
    /// `EACCES`, `EPERM`: it takes CAP_PERFMON, or the kernel is locked down. `ENOENT`, `ENOSYS`: a kernel without it.
    pub fn tracepoint(id: u64) -> io::Result<PerfEventCounter> {
        PerfEventCounter::open_event(PerfEventAttributes {
            kind: TRACEPOINT,
            config: id,
            ..PerfEventAttributes::default()
        })
    }

    /// Counts the cycles in which the processor carries out this thread's program, by its own counter.
    ///
    /// # Errors
    /// `ENOENT`, `EOPNOTSUPP`, `ENODEV`: the machine has no such counter. `EACCES`, `EPERM`: this user may not.
    pub fn cycles() -> io::Result<PerfEventCounter> {
        PerfEventCounter::open_event(PerfEventAttributes {
            kind: HARDWARE,
            flags: PROGRAM_ONLY,
            ..PerfEventAttributes::default()
        })
    }

    /// Counts executions of [`probed`] by this thread: a uprobe.
    ///
    /// # Errors
    /// The errors of [`tracepoint`](Self::tracepoint); `NotFound`: a kernel without uprobes for perf (Linux 4.17).
    pub fn uprobe() -> io::Result<PerfEventCounter> {
        let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type")?;
        let kind = kind.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        let place = place_in_file(&std::fs::read_to_string("/proc/self/maps")?, probed_address());
        let place = place.ok_or(io::ErrorKind::NotFound)?;
        let path = c"/proc/self/exe".as_ptr() as u64;
        PerfEventCounter::open_event(PerfEventAttributes {
            kind,
            config1: path,
            config2: place,
            ..PerfEventAttributes::default()
        })
    }

    fn open_event(attributes: PerfEventAttributes) -> io::Result<PerfEventCounter> {
        let attributes = PerfEventAttributes { size: size_of::<PerfEventAttributes>() as u32, ..attributes };
        let [this_thread, any_cpu, no_group] = [0, usize::MAX, usize::MAX];
        let start = &raw const attributes as usize;
        // SAFETY: the attributes are of the length that they state, and the path they may name is constant; the
        // descriptor is new.
        unsafe {
            let arguments = [start, this_thread, any_cpu, no_group, CLOSE_ON_EXEC, 0];
            let descriptor = syscall(libc::SYS_perf_event_open, arguments)?;
            Ok(PerfEventCounter(OwnedFd::from_raw_fd(descriptor as i32)))
        }
    }

    /// Returns the number of events so far.
    ///
    /// # Errors
    /// The errors of read(2).
    pub fn read_count(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        rustix::io::read(&self.0, &mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

/// Place in its file of what is mapped at an address, from the text of `/proc/self/maps`.
fn place_in_file(maps: &str, address: u64) -> Option<u64> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let range = number(start)?..number(end)?;
        let offset = number(fields.nth(1)?)?;
        range.contains(&address).then(|| address - range.start + offset)
    })
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
core::arch::global_asm!(
    ".text",
    ".p2align 4",
    ".globl latscope_probed",
    "latscope_probed:",
    // An instruction that the kernel carries out itself, without a single step of the program.
    "nop",
    "ret",
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    fn latscope_probed();
}

/// Calls a function that does nothing, for a breakpoint.
#[inline(always)]
pub fn probed() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: it only returns.
    unsafe {
        latscope_probed();
    }
}

fn probed_address() -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return latscope_probed as *const () as u64;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::skipped;

    #[test]
    fn an_address_is_found_in_the_file_that_is_mapped_there() {
        let maps = "00400000-00401000 r--p 00000000 fe:00 12 /bin/x\n00401000-00403000 r-xp 00005000 fe:00 12 /bin/x\n";
        assert_eq!(place_in_file(maps, 0x402010), Some(0x6010));
        assert_eq!(place_in_file(maps, 0x403000), None);
    }

    #[test]
    fn each_call_of_the_function_is_counted_where_the_kernel_allows_it() {
        let counted = match PerfEventCounter::uprobe() {
            Ok(counted) => counted,
            Err(refused) => return skipped("each_call_of_the_function_is_counted", &format!("{refused:?}")),
        };
        (0..100).for_each(|_| probed());
        assert_eq!(counted.read_count().unwrap(), 100);
    }

    #[test]
    fn an_event_that_does_not_exist_is_refused() {
        assert!(PerfEventCounter::tracepoint(u64::MAX).is_err());
    }
}
