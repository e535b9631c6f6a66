//! How soon a thread that is ready gets to run: preemption, isolation,
//! throttling, timer slack.

use super::{Context, bad, good, note, unknown};
use latscope_core::machine::Check;
use latscope_core::units::{CpuList, format_time};

/// Probes that wait for a thread to be woken.
const WOKEN: &[&str] = &["wake.*", "ipc.*", "sync.*", "thread.*"];
const MODEL: &str = "/sys/kernel/debug/sched/preempt";

/// The kernel's preemption model: its own version string names what was built
/// in, debugfs and the command line what was chosen at boot
/// (kernel/sched/core.c, `preempt=`).
pub(super) fn preemption(context: &Context) -> Check {
    let id = "preemption";
    let version = &context.machine.kernel_version;
    let built = |word: &str| version.split_whitespace().any(|one| one == word);
    if built("PREEMPT_RT") || context.root.text("/sys/kernel/realtime").as_deref() == Some("1") {
        return good(id, "full, with sleeping locks (PREEMPT_RT)");
    }
    let chosen = context.root.choice(MODEL).or_else(|| context.boot_option("preempt"));
    match chosen.as_deref() {
        Some("full") => good(id, "full"),
        Some("lazy") => Check {
            remedy: context.write("full", MODEL),
            ..note(id, "lazy: a normal thread may run on to the end of its tick", &["sync.*", "thread.*"])
        },
        Some(model) => Check {
            remedy: context.write("full", MODEL),
            ..note(id, format!("{model}: a thread inside the kernel is not preempted"), WOKEN)
        },
        None if built("PREEMPT_DYNAMIC") => Check {
            remedy: context.command("mount -t debugfs none /sys/kernel/debug"),
            ..unknown(id, "chosen at boot (PREEMPT_DYNAMIC), and debugfs, which says which, cannot be read")
        },
        None if built("PREEMPT") => good(id, "full"),
        None if version.is_empty() => unknown(id, "the kernel's version is not known"),
        None => note(id, "none or voluntary: a thread inside the kernel is not preempted", WOKEN),
    }
}

pub(super) fn isolation(context: &Context) -> Check {
    let id = "isolation";
    let isolated =
        context.root.cpu_list("/sys/devices/system/cpu/isolated").filter(|cpus| !cpus.0.is_empty());
    let options = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"];
    let given: Vec<String> = options
        .iter()
        .filter_map(|name| context.boot_option(name).map(|value| format!("{name}={value}")))
        .collect();
    match (isolated, given.is_empty()) {
        (None, true) => context.absent(id, "/proc/cmdline", "no CPU is set apart"),
        (None, false) => note(id, given.join(" "), &["wake.*"]),
        (Some(cpus), _) => {
            let options = if given.is_empty() { String::new() } else { format!(" ({})", given.join(" ")) };
            let found = format!("CPUs {cpus} are set apart{options}: nothing is moved there unless pinned");
            let allowed = &context.machine.allowed.0;
            let ours = CpuList(cpus.0.iter().copied().filter(|cpu| allowed.contains(cpu)).collect());
            let remedy = (!ours.0.is_empty()).then(|| format!("measure there: --cpus {ours}"));
            Check { remedy, ..note(id, found, WOKEN) }
        }
    }
}

/// `kernel.sched_rt_runtime_us`, Documentation/scheduler/sched-rt-group.rst.
pub(super) fn throttling(context: &Context) -> Check {
    let id = "real-time-throttling";
    let file = "/proc/sys/kernel/sched_rt_runtime_us";
    let Some(runtime) = context.root.number::<i64>(file) else {
        return context.absent(id, "/proc/sys/kernel", "not in this kernel");
    };
    let period = context.root.number::<i64>("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    if runtime < 0 || runtime >= period {
        return good(id, "off");
    }
    let remedy = context.write("-1", file);
    if runtime == 0 {
        return Check { remedy, ..bad(id, "real-time threads have no time at all", &["wake.*", "ipc.*"]) };
    }
    let [runtime, period] = [runtime, period].map(|time| format_time(time as f64 * 1e3));
    let found = format!(
        "real-time threads may take {runtime} in each {period}; one that spins is stopped for the rest"
    );
    Check { remedy, ..note(id, found, &["wake.*", "ipc.*"]) }
}

/// `/proc/self/timerslack_ns`: by how much the kernel may delay the timers of a
/// thread that is not real-time (prctl(2), PR_SET_TIMERSLACK).
pub(super) fn timer_slack(context: &Context) -> Check {
    let id = "timer-slack";
    let Some(slack) = context.root.number::<u64>("/proc/self/timerslack_ns") else {
        return context.absent(id, "/proc/self", "the kernel does not say");
    };
    let time = format_time(slack as f64);
    match slack {
        0..=1_000 => good(id, format!("{time} for threads that are not real-time")),
        _ => note(id, format!("sleeps of threads that are not real-time end up to {time} late"), &["wake.*"]),
    }
}
