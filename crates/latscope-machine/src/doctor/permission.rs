//! Checks of the permissions of this process, determined by trying.

use super::lockdown::Lockdown;
use super::{DoctorContext, DoctorFinding, bad, good, note_finding, unknown_finding};
use crate::control_group;
use crate::trials::Trials;
use latscope_core::catalogue::Condition;
use latscope_core::units::format_size;
use std::io;

/// A soft limit of `/proc/self/limits`.
fn read_limit(context: &DoctorContext, name: &str) -> Option<String> {
    let text = context.root.read_text("/proc/self/limits")?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Checks SCHED_FIFO at the top priority, else at the lowest (sched(7)).
pub(super) fn real_time(context: &DoctorContext, trials: &mut dyn Trials) -> DoctorFinding {
    let affects = Condition::RealTime;
    let Err(error) = trials.real_time(99) else {
        return good("SCHED_FIFO is granted up to priority 99");
    };
    let limit = read_limit(context, "Max realtime priority");
    let words = limit.as_deref().map(|limit| format!(", RLIMIT_RTPRIO is {limit}")).unwrap_or_default();
    let raise = (!context.machine.root).then(|| "sudo prlimit --pid $$ --rtprio=99:99".to_owned());
    if trials.real_time(1).is_ok() {
        let found = format!("SCHED_FIFO is granted, but not up to priority 99{words}");
        return note_finding(found, affects).with_remedy(raise);
    }
    let (found, remedy) = match control_group::no_real_time_budget(context.root) {
        Some(file) => {
            (format!("SCHED_FIFO is refused: {file} is 0"), context.command_to_write("950000", &file))
        }
        None if context.machine.root => (
            format!("SCHED_FIFO is refused even to root: {error}"),
            Some("in a container: docker run --cap-add SYS_NICE --ulimit rtprio=99".to_owned()),
        ),
        None => (format!("SCHED_FIFO is refused: {error}{words}"), raise),
    };
    bad(found, affects).with_remedy(remedy)
}

/// Size of locked memory that is enough for a worker with its largest buffers, bytes.
const LOCKED: usize = 256 << 20;

/// Checks the limit of locked memory, RLIMIT_MEMLOCK (mlock(2)).
pub(super) fn locked_memory(context: &DoctorContext, trials: &mut dyn Trials) -> DoctorFinding {
    let amount = format_size(LOCKED as u64);
    let error = match trials.lock_memory(LOCKED) {
        Ok(()) => return good(format!("{amount} can be locked")),
        Err(error) => error,
    };
    if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) {
        return unknown_finding(format!("it cannot be tried: {error}"));
    }
    let limit = read_limit(context, "Max locked memory");
    let words = match limit.as_deref().map(str::parse::<u64>) {
        Some(Ok(bytes)) => format!(", RLIMIT_MEMLOCK is {}", format_size(bytes)),
        _ => String::new(),
    };
    let found = format!("{amount} cannot be locked: {error}{words}");
    let remedy = context.root_command("prlimit --pid $$ --memlock=unlimited:unlimited");
    note_finding(found, Condition::LockedMemory).with_remedy(remedy)
}

/// Checks that a trace instance, a directory in `instances`, can be made (Documentation/trace/ftrace.rst).
pub(super) fn tracing(context: &DoctorContext, trials: &mut dyn Trials) -> DoctorFinding {
    // Time lines and the blame of spikes are lost without; no number changes.
    if context.lockdown().is_some_and(Lockdown::is_confidential) {
        return note_finding("the kernel is locked down (confidentiality): outliers stay unexplained", None);
    }
    let mounts = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let instances = mounts.map(|mount| format!("{mount}/instances"));
    let Some(directory) = instances.iter().find(|directory| context.root.exists(directory)) else {
        return no_tracing(context);
    };
    match trials.may_make_directory(&context.root.path(directory)) {
        Ok(()) => good("a trace instance can be made"),
        Err(error) => {
            note_finding(format!("no trace instance can be made: {error}; outliers stay unexplained"), None)
                .with_remedy((!context.machine.root).then(|| "run latscope as root".to_owned()))
        }
    }
}

/// Explains a missing directory: it may be hidden from this user, not mounted, or not in the kernel.
fn no_tracing(context: &DoctorContext) -> DoctorFinding {
    let supported = context.root.read_text("/proc/filesystems").map(|text| text.contains("tracefs"));
    match supported {
        None => unknown_finding("/proc/filesystems cannot be read"),
        Some(false) => note_finding("not in this kernel: spikes stay unexplained", None),
        Some(true) if context.root.exists("/sys/kernel/tracing/README") || context.machine.root => {
            note_finding(
                "tracefs is not mounted: latscope mounts it for itself while it explains spikes",
                None,
            )
            .with_remedy(context.root_command("mount -t tracefs nodev /sys/kernel/tracing"))
        }
        Some(true) => {
            note_finding("tracefs is not mounted or not for this user: spikes stay unexplained", None)
                .with_remedy("run latscope as root".to_owned())
        }
    }
}

/// Checks the processor's own counters and the access to them: perf_event_open(2), `kernel.perf_event_paranoid`.
pub(super) fn counters(context: &DoctorContext, trials: &mut dyn Trials) -> DoctorFinding {
    let file = "/proc/sys/kernel/perf_event_paranoid";
    let Some(level) = context.root.read_number::<i32>(file) else {
        return context.missing_knob("/proc/sys/kernel", "not in this kernel");
    };
    let (whom, is_open) = match level {
        _ if context.machine.root => ("root".to_owned(), true),
        level => (format!("users (level {level})"), level <= 1),
    };
    match trials.count_cycles() {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => no_counters(context, &error),
        Err(error) if is_open => {
            note_finding(format!("open to {whom}, but refused to this process: {error}"), None)
        }
        _ if is_open => good(format!("cycles can be counted; open to {whom}")),
        _ => note_finding(format!("closed to users for kernel events (level {level})"), None)
            .with_remedy(context.command_to_write("1", file)),
    }
}

/// Explains that the processor has no counters of its own here, which most hypervisors withhold.
fn no_counters(context: &DoctorContext, error: &io::Error) -> DoctorFinding {
    let found = format!("none of the processor's own ({error}): cycles cannot be counted, tracepoints can");
    let is_guest = context.machine.hypervisor.is_some();
    note_finding(found, None)
        .with_remedy(is_guest.then(|| "a PMU from the hypervisor (QEMU: -cpu host,pmu=on)".to_owned()))
}
