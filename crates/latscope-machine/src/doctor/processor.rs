//! Checks of settings that change the processor's speed: clock rate, shared cores, sleep, mitigations, clock source.

use super::{DoctorContext, DoctorFinding, bad, good, note_finding, unknown_finding};
use crate::topology;
use crate::trials::Trials;
use latscope_core::catalogue::Condition;
use latscope_core::ordered::entry;
use latscope_core::units::CpuList;

const CPUS: &str = "/sys/devices/system/cpu";
const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// Checks the governors of the clock rate (Documentation/admin-guide/pm/cpufreq.rst): one policy for each clock domain.
pub(super) fn governor(context: &DoctorContext) -> DoctorFinding {
    let root = context.root;
    // Those of one governor together: `performance`, the CPUs.
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    let policies = root.numbered(&format!("{CPUS}/cpufreq"), "policy");
    let mut can_perform = true;
    let mut driver = None;
    for (first, path) in &policies {
        let Some(governor) = root.read_text(&format!("{path}/scaling_governor")) else { continue };
        let cpus = root.read_text(&format!("{path}/affected_cpus")).unwrap_or_default();
        let mut cpus: Vec<u32> = cpus.split_whitespace().filter_map(|cpu| cpu.parse().ok()).collect();
        if cpus.is_empty() {
            cpus.push(*first);
        }
        let choices = root.read_text(&format!("{path}/scaling_available_governors"));
        can_perform &= choices.is_none_or(|all| all.split_whitespace().any(|one| one == "performance"));
        driver = driver.or_else(|| root.read_text(&format!("{path}/scaling_driver")));
        entry(&mut groups, governor).extend(cpus);
    }
    if groups.is_empty() {
        return no_frequency_control(context);
    }
    let words: Vec<String> =
        groups.iter().map(|(name, cpus)| format!("{name} on CPUs {}", sort_cpus(cpus))).collect();
    let driver = driver.map(|name| format!(" ({name})")).unwrap_or_default();
    let found = format!("{}{driver}", words.join(", "));
    if groups.iter().all(|(name, _)| name == "performance") {
        return good(found);
    }
    let found = found + ": the clock follows the load";
    let remedy = can_perform
        .then(|| context.command_to_write("performance", &format!("{CPUS}/cpufreq/policy*/scaling_governor")))
        .flatten();
    bad(found, Condition::ClockRate).with_remedy(remedy)
}

fn no_frequency_control(context: &DoctorContext) -> DoctorFinding {
    if context.machine.hypervisor.is_some() {
        return note_finding(
            "the host decides the clock rate; it cannot be seen from here",
            Condition::ClockRate,
        );
    }
    context.missing_knob(CPUS, "no frequency control: the clock rate is fixed or the firmware's")
}

fn sort_cpus(cpus: &[u32]) -> CpuList {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    CpuList(cpus)
}

/// Checks `boost` of acpi-cpufreq and cppc, `no_turbo` of intel_pstate.
pub(super) fn boost(context: &DoctorContext) -> DoctorFinding {
    let no_turbo = format!("{CPUS}/intel_pstate/no_turbo");
    let boost = format!("{CPUS}/cpufreq/boost");
    let (on, off, file) =
        match (context.root.read_number::<u32>(&no_turbo), context.root.read_number::<u32>(&boost)) {
            (Some(no), _) => (no == 0, "1", no_turbo),
            (None, Some(yes)) => (yes == 1, "0", boost),
            (None, None) => return context.missing_knob(CPUS, "no control of boost clocks"),
        };
    if !on {
        return good("boost clocks are off");
    }
    let found = "boost clocks are on: the rate depends on temperature and on how many cores are busy";
    note_finding(found, Condition::ClockRate).with_remedy(context.command_to_write(off, &file))
}

pub(super) fn smt(context: &DoctorContext) -> DoctorFinding {
    let shared: Vec<String> = context
        .machine
        .cpus
        .iter()
        .filter(|cpu| cpu.siblings.0.len() > 1 && cpu.siblings.0.first() == Some(&cpu.id))
        .map(|cpu| cpu.siblings.to_string())
        .collect();
    let active = context.root.read_number::<u32>(&format!("{CPUS}/smt/active"));
    if shared.is_empty() && active != Some(1) {
        return match active {
            Some(_) if context.machine.hypervisor.is_some() => good("no CPUs share a core, says the host"),
            Some(_) => good("no CPUs share a core"),
            None => context.missing_knob(CPUS, "no CPUs share a core"),
        };
    }
    let some = shared.iter().take(4).cloned().collect::<Vec<_>>().join(" | ");
    let more = if shared.len() > 4 { " | …" } else { "" };
    let found = format!("CPUs share cores: {some}{more}; a busy sibling takes half of a core");
    let control = format!("{CPUS}/smt/control");
    let can_switch = context.root.read_text(&control).as_deref() == Some("on");
    let remedy = can_switch.then(|| context.command_to_write("off", &control)).flatten();
    note_finding(found, Condition::SharedCore).with_remedy(remedy)
}

/// An idle state of the first allowed CPU.
struct IdleState {
    number: u32,
    name: String,
    /// Time to leave the state, µs.
    latency: u64,
}

fn enabled_states(context: &DoctorContext) -> Vec<IdleState> {
    let cpu = context.machine.allowed.0.first().copied().unwrap_or(0);
    let directories = context.root.numbered(&format!("{CPUS}/cpu{cpu}/cpuidle"), "state");
    let states = directories.into_iter().filter_map(|(number, path)| {
        let enabled = context.root.read_number::<u32>(&format!("{path}/disable")).unwrap_or(0) == 0;
        let name = context.root.read_text(&format!("{path}/name")).unwrap_or_default();
        let latency = context.root.read_number(&format!("{path}/latency"))?;
        enabled.then_some(IdleState { number, name, latency })
    });
    states.collect()
}

/// Time to leave an idle state above which it is deep, µs.
const DEEP: u64 = 10;

/// Checks the idle states (Documentation/admin-guide/pm/cpuidle.rst). A value written into /dev/cpu_dma_latency
/// prevents all states slower than it.
pub(super) fn idle_states(context: &DoctorContext, trials: &mut dyn Trials) -> DoctorFinding {
    let affects = Condition::WakeUp;
    let states = enabled_states(context);
    let driver = context.root.read_text(&format!("{CPUS}/cpuidle/current_driver")).unwrap_or_default();
    let Some(deepest) = states.iter().max_by_key(|state| state.latency) else {
        if context.machine.hypervisor.is_some() {
            return note_finding("an idle CPU halts, and the host has to start it again", affects);
        }
        return context.missing_knob(CPUS, "no idle states to choose from");
    };
    let found = format!("deepest: {}, {} µs to leave ({driver})", deepest.name, deepest.latency);
    if deepest.latency < DEEP {
        return match context.machine.hypervisor {
            Some(_) => note_finding(found + "; the way through the host comes on top", affects),
            None => good(found),
        };
    }
    let deep: String = states.iter().filter(|s| s.latency >= DEEP).map(|s| s.number.to_string()).collect();
    let remedy = context.command_to_write("1", &format!("{CPUS}/cpu*/cpuidle/state[{deep}]/disable"));
    match trials.open_for_writing(&context.root.path(DMA_LATENCY)) {
        Ok(()) => note_finding(format!("{found}; {DMA_LATENCY} can be held"), affects).with_remedy(remedy),
        Err(error) => {
            bad(format!("{found}; {DMA_LATENCY} cannot be held: {error}"), affects).with_remedy(remedy)
        }
    }
}

/// Checks the mitigations of vulnerabilities (Documentation/admin-guide/hw-vuln).
pub(super) fn mitigations(context: &DoctorContext) -> DoctorFinding {
    let directory = format!("{CPUS}/vulnerabilities");
    let (mut active, mut open) = (Vec::new(), Vec::new());
    for name in context.root.list_names(&directory) {
        let text = context.root.read_text(&format!("{directory}/{name}")).unwrap_or_default();
        let stated = |how: &str| how.split([';', ',']).next().unwrap_or_default().trim().to_owned();
        if let Some(how) = text.strip_prefix("Mitigation:") {
            active.push(format!("{name} ({})", stated(how)));
        } else if let Some(how) = text.strip_prefix("Vulnerable:").filter(|how| is_applied(how)) {
            active.push(format!("{name} ({})", stated(how)));
            open.push(format!("{name} in part ({})", how.trim()));
        } else if let Some(why) = text.strip_prefix("Vulnerable") {
            let why = why.trim_start_matches(':').trim();
            open.push(if why.is_empty() { name } else { format!("{name} ({why})") });
        }
    }
    active.sort();
    open.sort();
    // This mitigation costs most often: a system call has dozens of returns.
    let returns = active.iter().find(|how| how.contains("Safe RET") || how.contains("return thunk"));
    let left = if open.is_empty() { String::new() } else { format!("; left open: {}", open.join(", ")) };
    if active.is_empty() {
        return context.missing_knob(&directory, &format!("none active{left}"));
    }
    let remedy = "mitigations=off on the kernel's command line, only where nothing foreign ever runs";
    let paid = returns.map_or("", |_| "; each return in the kernel goes through a thunk");
    note_finding(
        format!("{} active: {}{paid}{left}", active.len(), active.join(", ")),
        Condition::Mitigations,
    )
    .with_remedy(Some(remedy.to_owned()))
}

/// Returns true if the kernel works around a vulnerability, at that price, although the processor stays vulnerable:
/// without its new microcode, or for some programs (Documentation/admin-guide/hw-vuln, spec_rstack_overflow, mds).
fn is_applied(how: &str) -> bool {
    const APPLIED: [&str; 5] = ["Safe RET", "Clear CPU buffers", "Retpoline", "Enhanced", "eIBRS"];
    APPLIED.iter().any(|word| how.trim_start().starts_with(word))
}

/// Checks if the CPUs are of several kinds.
pub(super) fn kinds(context: &DoctorContext) -> DoctorFinding {
    let root = context.root;
    let kinds = topology::kinds(root);
    if kinds.is_empty() {
        return context.missing_knob(CPUS, "all CPUs are alike");
    }
    let words: Vec<String> =
        kinds.iter().map(|kind| format!("CPUs {} are {}", kind.cpus, kind.name)).collect();
    let energy = "/proc/sys/kernel/sched_energy_aware";
    let aware = root.read_number::<u32>(energy) == Some(1);
    let policy = if aware { "; the scheduler chooses among them by energy" } else { "" };
    let remedy =
        if aware { context.command_to_write("0", energy) } else { Some("--cpus of one kind".to_owned()) };
    note_finding(words.join(", ") + policy, Condition::ClockRate).with_remedy(remedy)
}

/// Checks for CPUs that are switched off: a driver that does so to save energy stops the machine for it.
pub(super) fn hotplug(context: &DoctorContext) -> DoctorFinding {
    let Some(present) = context.root.cpu_list(&format!("{CPUS}/present")) else {
        return context.missing_knob(CPUS, "no CPU can be switched off");
    };
    let online = &context.machine.online.0;
    let offline = CpuList(present.0.into_iter().filter(|cpu| !online.contains(cpu)).collect());
    let Some(first) = offline.0.first() else { return good("all CPUs are online") };
    let remedy = context.command_to_write("1", &format!("{CPUS}/cpu{first}/online"));
    note_finding(format!("CPUs {offline} are switched off"), Condition::WakeUp).with_remedy(remedy)
}

/// Checks the counter from which the kernel reads the time.
pub(super) fn clock_source(context: &DoctorContext) -> DoctorFinding {
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let file = format!("{directory}/current_clocksource");
    let Some(current) = context.root.read_text(&file) else {
        return context.missing_knob(directory, "the kernel does not say which one it uses");
    };
    let available = context.root.read_text(&format!("{directory}/available_clocksource")).unwrap_or_default();
    let better = available.split_whitespace().find(|one| *one == "tsc").filter(|_| current != "tsc");
    let remedy = better.and_then(|tsc| context.command_to_write(tsc, &file));
    let found = format!("{current}, available: {available}");
    match current.as_str() {
        "tsc" | "arch_sys_counter" | "riscv_clocksource" | "timebase" | "tod" | "stick" => good(found),
        // Read without a system call too, at a somewhat higher price.
        "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen" => {
            note_finding(found, Condition::ClockCall).with_remedy(remedy)
        }
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" => {
            let found = found + ": every reading of the time is a slow system call";
            bad(found, Condition::ClockSource).with_remedy(remedy)
        }
        _ if context.machine.architecture == "x86_64" => {
            note_finding(found, Condition::ClockCall).with_remedy(remedy)
        }
        _ => unknown_finding(format!("{found}: not known whether it is read without a system call")),
    }
}
