//! Checks of the sources of interrupts: the tick, watchdogs, devices.

use super::build::NO_CONFIGURATION;
use super::{DoctorContext, DoctorFinding, bad, good, note_finding, unknown_finding};
use latscope_core::catalogue::Condition;
use latscope_core::units::{CpuList, count_with_noun, format_time};

/// Checks the kernel's tick, CONFIG_HZ, at which ordinary threads are preempted at the end of their slice.
pub(super) fn tick(context: &DoctorContext) -> DoctorFinding {
    let Some(configuration) = context.configuration() else { return unknown_finding(NO_CONFIGURATION) };
    let Some(rate) =
        configuration.option_value("HZ").and_then(|rate| rate.parse::<u32>().ok()).filter(|rate| *rate > 0)
    else {
        return unknown_finding(format!("{} does not say", configuration.file));
    };
    let length = format_time(1e9 / f64::from(rate));
    let found = format!("{rate} Hz: a tick comes every {length}");
    let is_off = context.boot_option("highres").is_some_and(|value| value == "off");
    if is_off || !configuration.is_set("HIGH_RES_TIMERS") {
        let found = format!("{found}, and without high-resolution timers a sleep ends at a tick");
        return bad(found, Condition::Tick);
    }
    if rate >= 1000 {
        return good(found);
    }
    let found = format!("{found}; an ordinary thread that computes keeps its CPU until one");
    note_finding(found, Condition::WakeUp).with_remedy("a kernel with HZ=1000".to_owned())
}

/// Checks `kernel.timer_migration` (Documentation/admin-guide/sysctl/kernel.rst): timers of idle CPUs may expire on
/// CPUs that are set apart.
pub(super) fn timer_migration(context: &DoctorContext) -> DoctorFinding {
    let file = "/proc/sys/kernel/timer_migration";
    let Some(value) = context.root.read_number::<u32>(file) else {
        return context.missing_knob("/proc/sys/kernel", "not in this kernel");
    };
    if value == 0 {
        return good("off: a timer expires on the CPU that armed it");
    }
    match context.root.cpu_list("/sys/devices/system/cpu/isolated").filter(|cpus| !cpus.0.is_empty()) {
        None => good("on: timers of idle CPUs may expire on busy ones"),
        Some(cpus) => {
            let found = format!("on: timers of other CPUs may expire on CPUs {cpus}, which are set apart");
            note_finding(found, Condition::Interrupts).with_remedy(context.command_to_write("0", file))
        }
    }
}

/// Checks the detectors of lockups (Documentation/admin-guide/lockup-watchdogs.rst).
pub(super) fn watchdogs(context: &DoctorContext) -> DoctorFinding {
    let number = |name: &str| context.root.read_number::<u64>(&format!("/proc/sys/kernel/{name}"));
    let all = number("watchdog");
    let is_on = |name| all != Some(0) && number(name) == Some(1);
    if all.is_none() && number("nmi_watchdog").is_none() {
        return context.missing_knob("/proc/sys/kernel", "not in this kernel");
    }
    let threshold = number("watchdog_thresh").unwrap_or(10) as f64 * 1e9;
    let mut parts = Vec::new();
    if is_on("soft_watchdog") {
        let each = format_time(threshold * 0.4);
        parts.push(format!("a timer each {each} starts a thread of the highest priority (soft lockups)"));
    }
    if is_on("nmi_watchdog") {
        parts.push(format!("an NMI about each {} of computing (hard lockups)", format_time(threshold)));
    }
    if parts.is_empty() || threshold == 0.0 {
        return good("off");
    }
    let cpus = context.root.cpu_list("/proc/sys/kernel/watchdog_cpumask");
    let on = cpus.map(|cpus| format!(" on CPUs {cpus}")).unwrap_or_default();
    note_finding(parts.join(", ") + &on, Condition::Interrupts)
        .with_remedy(context.command_to_write("0", "/proc/sys/kernel/watchdog"))
}

/// An interrupt of a device.
struct Interrupt {
    number: u32,
    name: String,
    /// Number of times that the measured CPUs have served the interrupt since boot.
    served: u64,
}

/// Checks which interrupts of devices the measured CPUs serve (Documentation/core-api/irq/irq-affinity.rst).
pub(super) fn device_interrupts(context: &DoctorContext) -> DoctorFinding {
    let numbers = context.root.numbered("/proc/irq", "");
    let Some(table) = context.root.read_text("/proc/interrupts").filter(|_| !numbers.is_empty()) else {
        return context.missing_knob("/proc/irq", "none");
    };
    let measured = &context.cpus;
    let served = numbers.iter().filter(|(_, path)| {
        let files = ["effective_affinity_list", "smp_affinity_list"];
        let cpus = files.iter().find_map(|file| context.root.cpu_list(&format!("{path}/{file}")));
        cpus.is_some_and(|cpus| cpus.0.iter().any(|cpu| measured.0.contains(cpu)))
    });
    let mut served: Vec<Interrupt> =
        served.filter_map(|(number, _)| interrupt(&table, *number, measured)).collect();
    served.sort_by_key(|interrupt| std::cmp::Reverse(interrupt.served));
    let Some(most) = served.first() else { return good(format!("CPUs {measured} serve none")) };
    let found = format!(
        "CPUs {measured} serve {}; the most frequent: {} ({}, {} since boot)",
        count_with_noun(served.len() as u64, "interrupt"),
        most.name,
        most.number,
        most.served
    );
    let others = context.machine.online.0.iter().copied().filter(|cpu| !measured.0.contains(cpu));
    let others = CpuList(others.collect());
    let remedy = (!others.0.is_empty()).then(|| {
        let frequent: Vec<String> =
            served.iter().take(8).map(|interrupt| interrupt.number.to_string()).collect();
        let files = match &frequent[..] {
            [single] => single.clone(),
            several => format!("{{{}}}", several.join(",")),
        };
        context.command_to_write(&others.to_string(), &format!("/proc/irq/{files}/smp_affinity_list"))
    });
    note_finding(found, Condition::Interrupts).with_remedy(remedy.flatten())
}

/// The line of an interrupt in `/proc/interrupts`: a column for each CPU online, then controller and actions.
fn interrupt(table: &str, number: u32, measured: &CpuList) -> Option<Interrupt> {
    let columns: Vec<u32> = table
        .lines()
        .next()?
        .split_whitespace()
        .filter_map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(&format!("{number}:")))?;
    let counts = columns.iter().zip(line.split_whitespace());
    let served = counts
        .filter(|(cpu, _)| measured.0.contains(cpu))
        .filter_map(|(_, count)| count.parse::<u64>().ok())
        .fold(0, u64::saturating_add);
    let name = line.split_whitespace().skip(columns.len()).last()?.to_owned();
    Some(Interrupt { number, name, served })
}
