//! Checks of the CPU time of this process: hypervisor, load, control groups, affinity, filters.

use super::{DoctorContext, DoctorFinding, bad, good, note_finding, unknown_finding};
use crate::control_group;
use crate::snapshot::load_average;
use latscope_core::catalogue::Condition;
use latscope_core::units::{format_share, format_time};

pub(super) fn hypervisor(context: &DoctorContext) -> DoctorFinding {
    match context.machine.hypervisor.as_deref() {
        // Nothing was there to be asked.
        None if context.machine.cpu_model.is_empty() => {
            unknown_finding("neither CPUID nor /proc/cpuinfo says so")
        }
        None => good("no hypervisor seen"),
        Some(name) if name.contains("emulated") => {
            let found = format!("{name}: instructions are translated, no number is that of a processor");
            bad(found, Condition::Speed).with_remedy("run on real hardware or under KVM".to_owned())
        }
        Some("unknown") => virtualised("an unknown hypervisor"),
        Some(name) => virtualised(name),
    }
}

fn virtualised(name: &str) -> DoctorFinding {
    let found = format!(
        "under {name}: the host decides when these CPUs run; wake-ups, timers and page faults may go through it"
    );
    note_finding(found, Condition::Virtualisation)
}

/// Share of CPU time since boot that the hypervisor gave to others: field 8 of
/// the first line of `/proc/stat` (proc_stat(5)).
pub(super) fn steal(context: &DoctorContext) -> DoctorFinding {
    let Some(line) = context.root.read_text("/proc/stat") else {
        return unknown_finding("/proc/stat cannot be read");
    };
    let first = line.lines().next().unwrap_or_default();
    // Guest time, fields 9 and 10, is part of user time already.
    let times: Vec<f64> =
        first.split_whitespace().skip(1).take(8).filter_map(|time| time.parse().ok()).collect();
    let total: f64 = times.iter().sum();
    let Some(stolen) = times.get(7).filter(|_| total > 0.0) else {
        return unknown_finding("/proc/stat does not count it");
    };
    let share = stolen / total;
    let found = format!("{} of CPU time since boot was taken by the host", format_share(share));
    let remedy = "on the host, give this guest's CPUs cores of their own: virsh vcpupin".to_owned();
    match share {
        none if none < 0.0005 => good(found),
        little if little < 0.01 => note_finding(found, Condition::Speed),
        _ => bad(found, Condition::Speed).with_remedy(remedy),
    }
}

pub(super) fn system_load(context: &DoctorContext) -> DoctorFinding {
    let Some(load) = load_average(context.root) else {
        return unknown_finding("/proc/loadavg cannot be read");
    };
    let cpus = context.machine.allowed.0.len().max(1);
    let found = format!("load average {load:.2} on {cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" });
    let remedy = Some("ps -eo pcpu,pid,comm --sort=-pcpu | head".to_owned());
    match load / cpus as f64 {
        idle if idle < 0.1 => good(found),
        some if some < 0.5 => note_finding(found, Condition::Speed).with_remedy(remedy),
        _ => bad(found, Condition::Speed).with_remedy(remedy),
    }
}

pub(super) fn quota(context: &DoctorContext) -> DoctorFinding {
    if !context.root.exists("/proc/self/cgroup") {
        return context.missing_knob("/proc/self", "no control groups in this kernel");
    }
    let Some(quota) = control_group::quota(context.root) else {
        return good("no limit of CPU time");
    };
    let found = format!(
        "{:.2} CPUs: {} of CPU time in each {}, then all threads stand still until the period is over",
        quota.cpus(),
        format_time(quota.runtime as f64 * 1e3),
        format_time(quota.period as f64 * 1e3)
    );
    bad(found, Condition::Speed).with_remedy(context.command_to_write(quota.lift, &quota.file))
}

pub(super) fn allowed_cpus(context: &DoctorContext) -> DoctorFinding {
    let (online, allowed) = (&context.machine.online, &context.machine.allowed);
    if allowed.0.is_empty() {
        return unknown_finding("neither sysfs nor /proc lists the CPUs");
    }
    if online.0.len() == 1 {
        return note_finding("this machine has one CPU: nothing can run on two", Condition::TwoCpus);
    }
    if online.0.iter().all(|cpu| allowed.0.contains(cpu)) {
        return good(format!(
            "may run on {}",
            match online.0.len() {
                1 => "the only CPU".to_owned(),
                all => format!("all {all} CPUs"),
            }
        ));
    }
    let cpuset = control_group::cpuset(context.root).filter(|(cpus, _)| cpus == allowed);
    let (by, remedy) = match cpuset {
        Some((_, file)) => ("the control group", context.command_to_write(&online.to_string(), &file)),
        None => ("the affinity mask", Some(format!("taskset -pc {online} $$"))),
    };
    let found = format!("may run on CPUs {allowed} of {online} only, by {by}");
    match allowed.0.len() {
        1 => bad(found, Condition::TwoCpus).with_remedy(remedy),
        _ => note_finding(found, Condition::TwoCpus).with_remedy(remedy),
    }
}

/// Checks `Seccomp:` of proc_pid_status(5): 0 off, 1 strict, 2 filter.
pub(super) fn seccomp(context: &DoctorContext) -> DoctorFinding {
    match context.root.field("/proc/self/status", "Seccomp").as_deref() {
        None => context.missing_knob("/proc/self/status", "no seccomp in this kernel"),
        Some("0") => good("no filter"),
        Some(_) => note_finding(
            "a filter looks at each system call, which costs time, and may refuse some",
            Condition::CallFilter,
        )
        .with_remedy("in a container: docker run --security-opt seccomp=unconfined".to_owned()),
    }
}
