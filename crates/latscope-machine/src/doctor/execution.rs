//! Checks of the CPU time of this process: hypervisor, load, control groups, affinity, filters.

use super::{Context, Row, bad, good, note, unknown};
use crate::control_group;
use crate::snapshot::load_average;
use latscope_core::catalogue::Condition;
use latscope_core::units::{format_share, format_time};

pub(super) fn hypervisor(context: &Context) -> Row {
    let id = "virtualised";
    match context.machine.hypervisor.as_deref() {
        // Nothing was there to be asked.
        None if context.machine.cpu_model.is_empty() => {
            unknown(id, "neither CPUID nor /proc/cpuinfo says so")
        }
        None => good(id, "no hypervisor seen"),
        Some(name) if name.contains("emulated") => {
            let found = format!("{name}: instructions are translated, no number is that of a processor");
            Row {
                remedy: Some("run on real hardware or under KVM".to_owned()),
                ..bad(id, found, Condition::Speed)
            }
        }
        Some("unknown") => virtualised(id, "an unknown hypervisor"),
        Some(name) => virtualised(id, name),
    }
}

fn virtualised(id: &str, name: &str) -> Row {
    let found = format!(
        "under {name}: the host decides when these CPUs run; wake-ups, timers and page faults may go through it"
    );
    note(id, found, Condition::Virtualisation)
}

/// Share of CPU time since boot that the hypervisor gave to others: field 8 of
/// the first line of `/proc/stat` (proc_stat(5)).
pub(super) fn steal(context: &Context) -> Row {
    let id = "steal";
    let Some(line) = context.root.text("/proc/stat") else {
        return unknown(id, "/proc/stat cannot be read");
    };
    let first = line.lines().next().unwrap_or_default();
    // Guest time, fields 9 and 10, is part of user time already.
    let times: Vec<f64> =
        first.split_whitespace().skip(1).take(8).filter_map(|time| time.parse().ok()).collect();
    let total: f64 = times.iter().sum();
    let Some(stolen) = times.get(7).filter(|_| total > 0.0) else {
        return unknown(id, "/proc/stat does not count it");
    };
    let share = stolen / total;
    let found = format!("{} of CPU time since boot was taken by the host", format_share(share));
    let remedy = "on the host, give this guest's CPUs cores of their own: virsh vcpupin".to_owned();
    match share {
        none if none < 0.0005 => good(id, found),
        little if little < 0.01 => note(id, found, Condition::Speed),
        _ => Row { remedy: Some(remedy), ..bad(id, found, Condition::Speed) },
    }
}

pub(super) fn load(context: &Context) -> Row {
    let id = "load";
    let Some(load) = load_average(context.root) else {
        return unknown(id, "/proc/loadavg cannot be read");
    };
    let cpus = context.machine.allowed.0.len().max(1);
    let found = format!("load average {load:.2} on {cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" });
    let remedy = Some("ps -eo pcpu,pid,comm --sort=-pcpu | head".to_owned());
    match load / cpus as f64 {
        idle if idle < 0.1 => good(id, found),
        some if some < 0.5 => Row { remedy, ..note(id, found, Condition::Speed) },
        _ => Row { remedy, ..bad(id, found, Condition::Speed) },
    }
}

pub(super) fn quota(context: &Context) -> Row {
    let id = "cpu-quota";
    if !context.root.exists("/proc/self/cgroup") {
        return context.absent(id, "/proc/self", "no control groups in this kernel");
    }
    let Some(quota) = control_group::quota(context.root) else {
        return good(id, "no limit of CPU time");
    };
    let found = format!(
        "{:.2} CPUs: {} of CPU time in each {}, then all threads stand still until the period is over",
        quota.cpus(),
        format_time(quota.runtime as f64 * 1e3),
        format_time(quota.period as f64 * 1e3)
    );
    Row { remedy: context.write(quota.lift, &quota.file), ..bad(id, found, Condition::Speed) }
}

pub(super) fn cpus(context: &Context) -> Row {
    let id = "cpus";
    let (online, allowed) = (&context.machine.online, &context.machine.allowed);
    if allowed.0.is_empty() {
        return unknown(id, "neither sysfs nor /proc lists the CPUs");
    }
    if online.0.len() == 1 {
        return note(id, "this machine has one CPU: nothing can run on two", Condition::TwoCpus);
    }
    if online.0.iter().all(|cpu| allowed.0.contains(cpu)) {
        return good(
            id,
            format!(
                "may run on {}",
                match online.0.len() {
                    1 => "the only CPU".to_owned(),
                    all => format!("all {all} CPUs"),
                }
            ),
        );
    }
    let cpuset = control_group::cpuset(context.root).filter(|(cpus, _)| cpus == allowed);
    let (by, remedy) = match cpuset {
        Some((_, file)) => ("the control group", context.write(&online.to_string(), &file)),
        None => ("the affinity mask", Some(format!("taskset -pc {online} $$"))),
    };
    let found = format!("may run on CPUs {allowed} of {online} only, by {by}");
    match allowed.0.len() {
        1 => Row { remedy, ..bad(id, found, Condition::TwoCpus) },
        _ => Row { remedy, ..note(id, found, Condition::TwoCpus) },
    }
}

/// Checks `Seccomp:` of proc_pid_status(5): 0 off, 1 strict, 2 filter.
pub(super) fn seccomp(context: &Context) -> Row {
    let id = "seccomp";
    let affects = Condition::CallFilter;
    match context.root.field("/proc/self/status", "Seccomp").as_deref() {
        None => context.absent(id, "/proc/self/status", "no seccomp in this kernel"),
        Some("0") => good(id, "no filter"),
        Some(_) => Row {
            remedy: Some("in a container: docker run --security-opt seccomp=unconfined".to_owned()),
            ..note(id, "a filter looks at each system call, which costs time, and may refuse some", affects)
        },
    }
}
