//! Checks of the delay until a ready thread runs: scheduler, preemption, isolation, throttling, timer slack.

use super::build::NO_CONFIGURATION;
use super::{DoctorContext, DoctorFinding, bad, good, note_finding, unknown_finding};
use crate::control_group::{self, RealTimeBudget};
use crate::snapshot::KERNEL_SCHEDULER;
use latscope_core::catalogue::Condition;
use latscope_core::units::{CpuList, format_time};

const MODEL: &str = "/sys/kernel/debug/sched/preempt";

/// Checks the kernel's preemption model: the active model from debugfs; else the choice at boot (`preempt=`,
/// kernel/sched/core.c), the built-in model, the entry in the kernel's log.
pub(super) fn preemption(context: &DoctorContext) -> DoctorFinding {
    let version = &context.machine.kernel_version;
    let [rt, dynamic, preempt] = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"]
        .map(|word| version.split_whitespace().any(|built| built == word));
    if rt || context.root.read_text("/sys/kernel/realtime").as_deref() == Some("1") {
        return good("full, with sleeping locks (PREEMPT_RT)");
    }
    let remedy = if dynamic {
        preempt_fully(context)
    } else {
        Some("a kernel with CONFIG_PREEMPT or PREEMPT_RT".to_owned())
    };
    match model(context, dynamic) {
        Some((PreemptionModel::Full, source)) => good(format!("full, says {source}")),
        Some((PreemptionModel::Lazy, source)) => {
            let found = format!("lazy, says {source}: a normal thread may run on to the end of its tick");
            note_finding(found, Condition::Fairness).with_remedy(remedy)
        }
        Some((PreemptionModel::Voluntary, source)) => {
            let found =
                format!("voluntary, says {source}: a thread inside the kernel is preempted at few places");
            note_finding(found, Condition::WakeUp).with_remedy(remedy)
        }
        Some((PreemptionModel::None, source)) => {
            let found = format!("none, says {source}: a thread inside the kernel is not preempted");
            bad(found, Condition::WakeUp).with_remedy(remedy)
        }
        None if dynamic => {
            let evidence = "debugfs, command line, configuration and log of the kernel do not say which";
            unknown_finding(format!("chosen at boot (PREEMPT_DYNAMIC): {evidence}")).with_remedy(remedy)
        }
        None if preempt => good("full"),
        None if version.is_empty() => unknown_finding("the kernel's version is not known"),
        None => note_finding(
            "none or voluntary: a thread inside the kernel is rarely preempted",
            Condition::WakeUp,
        )
        .with_remedy(remedy),
    }
}

/// Preemption model: when a thread inside the kernel gives way.
#[derive(Clone, Copy)]
enum PreemptionModel {
    None,
    Voluntary,
    Full,
    Lazy,
}

impl PreemptionModel {
    fn from_name(name: &str) -> Option<PreemptionModel> {
        match name {
            "none" => Some(PreemptionModel::None),
            "voluntary" => Some(PreemptionModel::Voluntary),
            "full" => Some(PreemptionModel::Full),
            "lazy" => Some(PreemptionModel::Lazy),
            _ => None,
        }
    }
}

/// The model, and its source.
fn model(context: &DoctorContext, dynamic: bool) -> Option<(PreemptionModel, String)> {
    if let Some(model) = context.root.choice(MODEL).and_then(|name| PreemptionModel::from_name(&name)) {
        return Some((model, MODEL.to_owned()));
    }
    let log = context.log();
    // A mode that the kernel does not have is ignored at boot, with a message.
    let is_refused = log.is_some_and(|log| log.find_message("Dynamic Preempt: unsupported mode").is_some());
    let booted = context.boot_option("preempt").filter(|_| dynamic && !is_refused);
    if let Some(model) = booted.and_then(|name| PreemptionModel::from_name(&name)) {
        return Some((model, "the kernel's command line".to_owned()));
    }
    if let Some(configuration) = context.configuration() {
        let options = [
            ("PREEMPT_NONE", PreemptionModel::None),
            ("PREEMPT_VOLUNTARY", PreemptionModel::Voluntary),
            ("PREEMPT", PreemptionModel::Full),
            ("PREEMPT_LAZY", PreemptionModel::Lazy),
        ];
        let model = options.into_iter().find(|(option, _)| configuration.is_set(option));
        if let Some((_, model)) = model {
            return Some((model, configuration.file.clone()));
        }
    }
    let model = PreemptionModel::from_name(log?.text_after("Dynamic Preempt: ")?)?;
    Some((model, "the kernel's log".to_owned()))
}

/// Command or boot option for full preemption in a kernel that has it.
fn preempt_fully(context: &DoctorContext) -> Option<String> {
    let boot = "preempt=full on the kernel's command line";
    match (context.lockdown(), context.root.exists(MODEL)) {
        (Some(_), _) => Some(format!("{boot} (lockdown forbids {MODEL})")),
        (None, true) => context.command_to_write("full", MODEL),
        (None, false) => Some(boot.to_owned()),
    }
}

pub(super) fn isolation(context: &DoctorContext) -> DoctorFinding {
    let isolated =
        context.root.cpu_list("/sys/devices/system/cpu/isolated").filter(|cpus| !cpus.0.is_empty());
    let options = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"];
    let given: Vec<String> = options
        .iter()
        .filter_map(|name| context.boot_option(name).map(|value| format!("{name}={value}")))
        .collect();
    match (isolated, given.is_empty()) {
        (None, true) if !context.root.exists("/proc/cmdline") => {
            unknown_finding("/proc/cmdline cannot be read")
        }
        (None, true) => {
            note_finding("no CPU is set apart: any thread and interrupt may come", Condition::Isolation)
        }
        (None, false) => note_finding(given.join(" "), Condition::Isolation),
        (Some(cpus), _) => {
            let options = if given.is_empty() { String::new() } else { format!(" ({})", given.join(" ")) };
            let found = format!("CPUs {cpus} are set apart{options}: nothing is moved there unless pinned");
            let allowed = &context.machine.allowed.0;
            let ours = CpuList(cpus.0.iter().copied().filter(|cpu| allowed.contains(cpu)).collect());
            let remedy = (!ours.0.is_empty()).then(|| format!("measure there: --cpus {ours}"));
            note_finding(found, Condition::WakeUp).with_remedy(remedy)
        }
    }
}

/// Checks `kernel.sched_rt_runtime_us` (Documentation/scheduler/sched-rt-group.rst). Since 6.12 it only throttles
/// groups of real-time threads (CONFIG_RT_GROUP_SCHED), and the [`fair_server`] replaces it otherwise.
pub(super) fn throttling(context: &DoctorContext) -> DoctorFinding {
    let affects = Condition::RealTime;
    let file = "/proc/sys/kernel/sched_rt_runtime_us";
    let Some(runtime) = context.root.read_number::<i64>(file) else {
        return context.missing_knob("/proc/sys/kernel", "not in this kernel");
    };
    let period = context.root.read_number::<i64>("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    let remedy = context.command_to_write("-1", file);
    if runtime < 0 || runtime >= period {
        return good("off");
    }
    let [allowed, each] = [runtime, period].map(|time| format_time(time as f64 * 1e3));
    let message = context.log().and_then(|log| log.find_message("RT throttling activated"));
    if let Some(message) = message {
        let at = format_time(message.at as f64 * 1e3);
        let found = format!(
            "real-time threads may take {allowed} in each {each}; some were throttled, first {at} after boot, says the kernel's log (later ones are not logged)"
        );
        return bad(found, affects).with_remedy(remedy);
    }
    if runtime == 0 {
        return bad("real-time threads have no time at all", affects).with_remedy(remedy);
    }
    if has_fair_server(context) == Some(true) && has_group_budgets(context) == Some(false) {
        return good("not in this kernel: see fair-server");
    }
    let found = format!(
        "real-time threads may take {allowed} in each {each}; one that spins is stopped for the rest"
    );
    note_finding(found, affects).with_remedy(remedy)
}

/// Returns true if control groups have their own real-time budgets (CONFIG_RT_GROUP_SCHED, `rt_group_sched=`); `None`
/// if it is not known.
fn has_group_budgets(context: &DoctorContext) -> Option<bool> {
    let configuration = context.configuration()?;
    let booted =
        context.boot_option("rt_group_sched").map(|value| !["0", "n", "off"].contains(&value.as_str()));
    let default = !configuration.is_set("RT_GROUP_SCHED_DEFAULT_DISABLED");
    Some(configuration.is_set("RT_GROUP_SCHED") && booted.unwrap_or(default))
}

/// Checks CONFIG_RT_GROUP_SCHED: in a group without a budget the kernel refuses real-time policies, and with one it
/// stops threads that have used it up. Both only while the limit of the whole machine is in force.
pub(super) fn group_budgets(context: &DoctorContext) -> DoctorFinding {
    let affects = Condition::RealTime;
    match has_group_budgets(context) {
        None => return unknown_finding(NO_CONFIGURATION),
        Some(false) => return good("control groups have no real-time budgets"),
        Some(true) => {}
    }
    let limit = "/proc/sys/kernel/sched_rt_runtime_us";
    if context.root.read_number::<i64>(limit).is_some_and(|runtime| runtime < 0) {
        return good(format!("budgets of control groups are not in force: {limit} is -1"));
    }
    let remedy = Some("rt_group_sched=0 on the kernel's command line (since 6.16)".to_owned());
    let Some(RealTimeBudget { runtime, period, file }) = control_group::real_time_budget(context.root) else {
        let found = "each control group has a real-time budget; that of this one is not known";
        return note_finding(found, affects).with_remedy(remedy);
    };
    if runtime == 0 {
        let found = format!("SCHED_FIFO is refused: {file} is 0");
        return bad(found, affects).with_remedy(context.command_to_write("950000", &file));
    }
    if runtime < 0 || runtime >= period {
        return good(format!("the budget of this control group is all of the time ({file})"));
    }
    let [allowed, each] = [runtime, period].map(|time| format_time(time as f64 * 1e3));
    let found = format!(
        "real-time threads of this control group may take {allowed} in each {each}; one that spins is stopped for the rest \
         ({file})"
    );
    note_finding(found, affects).with_remedy(remedy)
}

/// Returns true if the kernel has a deadline server for ordinary threads, by its version; `None` if that is not known.
fn has_fair_server(context: &DoctorContext) -> Option<bool> {
    let mut numbers = context.machine.kernel.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next()?, numbers.next()?) {
        (Ok(major), Ok(minor)) => Some((major, minor) >= (6, 12)),
        _ => None,
    }
}

/// Words for the share of ordinary threads, from its times in ns.
fn fair_share(runtime: u64, period: u64) -> String {
    let [runtime, period] = [runtime, period].map(|time| format_time(time as f64));
    format!("ordinary threads get {runtime} in each {period} of a CPU that real-time threads keep busy")
}

const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";

/// Checks the deadline server of ordinary threads: it takes its share of a CPU from real-time threads that keep
/// ordinary threads waiting (kernel/sched/deadline.c, `dl_server`; kernel/sched/debug.c).
pub(super) fn fair_server(context: &DoctorContext) -> DoctorFinding {
    shown_fair_server(context).unwrap_or_else(|| hidden_fair_server(context))
}

/// Checks the share of ordinary threads on the measured CPUs; `None` if no file has it.
pub(super) fn shown_fair_server(context: &DoctorContext) -> Option<DoctorFinding> {
    let cpus = context.root.numbered(FAIR_SERVER, "cpu").into_iter();
    let shares = cpus.filter(|(cpu, _)| context.cpus.0.contains(cpu)).filter_map(|(_, path)| {
        let times =
            ["runtime", "period"].map(|name| context.root.read_number::<u64>(&format!("{path}/{name}")));
        times[0].zip(times[1])
    });
    let (runtime, period) = shares.max_by_key(|(runtime, _)| *runtime)?;
    if runtime == 0 {
        return Some(good("off"));
    }
    let remedy = context.command_to_write("0", &format!("{FAIR_SERVER}/cpu*/runtime"));
    Some(note_finding(fair_share(runtime, period), Condition::RealTime).with_remedy(remedy))
}

/// Judges by the kernel's release where no file has the share.
fn hidden_fair_server(context: &DoctorContext) -> DoctorFinding {
    match has_fair_server(context) {
        Some(true) => {}
        Some(false) => return good("not in this kernel (since 6.12)"),
        None => return unknown_finding("the kernel's release is not known"),
    }
    let share = fair_share(50_000_000, 1_000_000_000);
    // A file that no process may open cannot be changed.
    if context.lockdown().is_some() {
        let found = format!("{share}, as the kernel is built; lockdown forbids {FAIR_SERVER}");
        return note_finding(found, Condition::RealTime);
    }
    unknown_finding(format!("{FAIR_SERVER} cannot be read; {share} by default"))
        .with_remedy(context.root_command("mount -t debugfs none /sys/kernel/debug"))
}

/// Checks if a program has replaced the scheduler of ordinary threads (Documentation/scheduler/sched-ext.rst).
pub(super) fn scheduler(context: &DoctorContext) -> DoctorFinding {
    match context.machine.scheduler.as_deref() {
        None => unknown_finding("/sys/kernel cannot be read"),
        Some(KERNEL_SCHEDULER) => good("the kernel's own"),
        Some(name) => {
            note_finding(format!("{name} (sched_ext) decides which ordinary thread runs"), Condition::WakeUp)
                .with_remedy("end the program that loaded it".to_owned())
        }
    }
}

/// Checks `/proc/self/timerslack_ns`, by which the kernel may delay the timers of a thread that is not real-time
/// (prctl(2), PR_SET_TIMERSLACK).
pub(super) fn timer_slack(context: &DoctorContext) -> DoctorFinding {
    let Some(slack) = context.root.read_number::<u64>("/proc/self/timerslack_ns") else {
        return context.missing_knob("/proc/self", "the kernel does not say");
    };
    let time = format_time(slack as f64);
    match slack {
        0..=1_000 => good(format!("{time} for threads that are not real-time")),
        // The threads of wake set their own.
        _ => note_finding(
            format!("sleeps of threads that are not real-time end up to {time} late"),
            Condition::TimerSlack,
        ),
    }
}
