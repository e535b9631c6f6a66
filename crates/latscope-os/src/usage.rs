//! Resources that a thread or process consumed, to find out if anything else ran.

use crate::clock::nanoseconds;
use crate::syscall::{check_errno, check_number};
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// CPU time of the calling thread, ns (`CLOCK_THREAD_CPUTIME_ID`).
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of the process, ns (`CLOCK_PROCESS_CPUTIME_ID`).
pub fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

/// CPU time of all threads of another process, ns (clock_getcpuclockid(3)).
///
/// # Errors
/// There is no such process, or it is hidden from this one.
pub fn cpu_ns_of(process: u32) -> io::Result<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid to write to.
    check_number(unsafe { libc::clock_getcpuclockid(process as libc::pid_t, &mut clock) })?;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    check_errno(unsafe { libc::clock_gettime(clock, &mut time) })?;
    Ok(nanoseconds(time.tv_sec, time.tv_nsec))
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    nanoseconds(time.tv_sec, time.tv_nsec)
}

/// Context switches and page faults, as getrusage(2) counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsageCounts {
    /// The thread waited for something.
    pub voluntary: u64,
    /// The thread was preempted.
    pub involuntary: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
}

/// Counts of the calling thread (`RUSAGE_THREAD`).
pub fn thread_counts() -> ResourceUsageCounts {
    resource_counts(libc::RUSAGE_THREAD)
}

/// Counts of the whole process (`RUSAGE_SELF`).
pub fn process_counts() -> ResourceUsageCounts {
    resource_counts(libc::RUSAGE_SELF)
}

/// Returns the CPU time of this process and of its children that have ended and were waited for, with their own such
/// children, in ns, to the microsecond.
pub fn process_and_ended_children_cpu_ns() -> u64 {
    let ns = |time: libc::timeval| nanoseconds(time.tv_sec, time.tv_usec * 1_000);
    let used = |usage: libc::rusage| ns(usage.ru_utime) + ns(usage.ru_stime);
    used(rusage(libc::RUSAGE_SELF)) + used(rusage(libc::RUSAGE_CHILDREN))
}

fn rusage(who: libc::c_int) -> libc::rusage {
    // SAFETY: rusage is plain data for which zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid rusage to write to.
    unsafe { libc::getrusage(who, &mut usage) };
    usage
}

fn resource_counts(who: libc::c_int) -> ResourceUsageCounts {
    let usage = rusage(who);
    ResourceUsageCounts {
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_is_read_by_its_id() {
        let parent = rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get() as u32);
        assert!(cpu_ns_of(std::process::id()).unwrap() > 0);
        assert!(cpu_ns_of(parent).unwrap() > 0);
        assert!(cpu_ns_of(1 << 23).is_err());
    }

    #[test]
    fn sleeping_is_a_voluntary_switch_and_no_cpu_time() {
        let (before, cpu) = (thread_counts(), thread_cpu_ns());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(thread_counts().voluntary > before.voluntary);
        assert!(thread_cpu_ns() >= cpu);
        assert!(process_cpu_ns() >= thread_cpu_ns() - cpu);
    }
}
