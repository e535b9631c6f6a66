//! Settings of this machine that distort latency, with the affected probes and the remedies. A check names
//! the condition that it is about, the catalogue the probes that this condition distorts.
//!
//! A knob that this machine does not have is never bad; a knob that cannot be read is unknown.

mod binder;
mod build;
mod execution;
mod interrupts;
mod lockdown;
mod memory;
mod permission;
mod processor;
mod scheduling;
#[cfg(test)]
mod tests;

use super::kernel_log::KernelLog;
use super::root::SystemRoot;
use super::trials::Trials;
use build::Configuration;
use latscope_core::catalogue::{Condition, ProbeCatalogue};
use latscope_core::machine::{CheckState, DoctorCheck, Machine};
use latscope_core::units::CpuList;
use lockdown::Lockdown;
use std::cell::OnceCell;

/// Examines a machine, described before by [`snapshot`](super::snapshot()). Permissions are determined by trying; every
/// trial is undone.
pub fn checks(
    root: &SystemRoot,
    machine: &Machine,
    trials: &mut dyn Trials,
    catalogue: &ProbeCatalogue,
) -> Vec<DoctorCheck> {
    let context = DoctorContext::new(root, machine, &machine.allowed);
    collect_findings(&context, trials).into_iter().map(|(id, row)| row.into_check(id, catalogue)).collect()
}

/// All checks in their order, by their ids.
fn collect_findings(context: &DoctorContext, trials: &mut dyn Trials) -> [(&'static str, DoctorFinding); 40] {
    [
        ("virtualised", execution::hypervisor(context)),
        ("steal", execution::steal(context)),
        ("load", execution::system_load(context)),
        ("cpu-quota", execution::quota(context)),
        ("cpus", execution::allowed_cpus(context)),
        ("seccomp", execution::seccomp(context)),
        ("governor", processor::governor(context)),
        ("boost", processor::boost(context)),
        ("smt", processor::smt(context)),
        ("idle-states", processor::idle_states(context, trials)),
        ("mitigations", processor::mitigations(context)),
        ("cpu-kinds", processor::kinds(context)),
        ("offline-cpus", processor::hotplug(context)),
        ("clock-source", processor::clock_source(context)),
        ("transparent-huge-pages", memory::transparent_huge_pages(context)),
        ("huge-pages", memory::huge_pages(context)),
        ("swap", memory::swap(context)),
        ("numa-balancing", memory::numa_balancing(context)),
        ("same-page-merging", memory::same_page_merging(context)),
        ("damon", memory::access_monitoring(context)),
        ("scheduler", scheduling::scheduler(context)),
        ("preemption", scheduling::preemption(context)),
        ("isolation", scheduling::isolation(context)),
        ("real-time-throttling", scheduling::throttling(context)),
        ("real-time-groups", scheduling::group_budgets(context)),
        ("fair-server", scheduling::fair_server(context)),
        ("timer-tick", interrupts::tick(context)),
        ("watchdogs", interrupts::watchdogs(context)),
        ("device-interrupts", interrupts::device_interrupts(context)),
        ("timer-migration", interrupts::timer_migration(context)),
        ("timer-slack", scheduling::timer_slack(context)),
        ("real-time", permission::real_time(context, trials)),
        ("locked-memory", permission::locked_memory(context, trials)),
        ("tracing", permission::tracing(context, trials)),
        ("performance-counters", permission::counters(context, trials)),
        ("lockdown", lockdown::lockdown(context)),
        ("kernel-debugging", build::kernel_debugging(context)),
        ("android-build", build::android(context)),
        ("binder", binder::driver(context)),
        ("binder-manager", binder::context_manager(context)),
    ]
}

/// Examines anew the checks that depend on the measured CPUs: the interrupts of devices, the fair server.
pub(super) fn measured_on(
    root: &SystemRoot,
    machine: &mut Machine,
    cpus: &CpuList,
    catalogue: &ProbeCatalogue,
) {
    let examined = {
        let context = DoctorContext::new(root, machine, cpus);
        let devices = Some(interrupts::device_interrupts(&context));
        [("device-interrupts", devices), ("fair-server", scheduling::shown_fair_server(&context))]
    };
    for (id, row) in examined {
        let known = machine.checks.iter_mut().find(|check| check.id == id);
        if let Some((check, row)) = known.zip(row) {
            *check = row.into_check(id, catalogue);
        }
    }
}

/// Input of every check. Large files are read when a check asks for them first: of the kernel's log a read has one
/// record, so that it takes thousands.
struct DoctorContext<'a> {
    root: &'a SystemRoot,
    machine: &'a Machine,
    /// CPUs that are measured.
    cpus: &'a CpuList,
    configuration: OnceCell<Option<Configuration>>,
    log: OnceCell<Option<KernelLog>>,
    lockdown: OnceCell<Option<Lockdown>>,
}

impl<'a> DoctorContext<'a> {
    fn new(root: &'a SystemRoot, machine: &'a Machine, cpus: &'a CpuList) -> DoctorContext<'a> {
        DoctorContext {
            root,
            machine,
            cpus,
            configuration: OnceCell::new(),
            log: OnceCell::new(),
            lockdown: OnceCell::new(),
        }
    }

    /// The kernel's configuration; `None` if no file has it.
    fn configuration(&self) -> Option<&Configuration> {
        self.configuration.get_or_init(|| Configuration::read(self.root, &self.machine.kernel)).as_ref()
    }

    /// The kernel's log; `None` if this user may not read it.
    fn log(&self) -> Option<&KernelLog> {
        self.log.get_or_init(|| KernelLog::read_kmsg(self.root)).as_ref()
    }

    /// The lockdown in force.
    fn lockdown(&self) -> Option<&Lockdown> {
        self.lockdown.get_or_init(|| Lockdown::find_active(self)).as_ref()
    }
}

/// The value of a `name=value` word of the kernel's command line; empty for
/// a single word.
fn boot_option(root: &SystemRoot, name: &str) -> Option<String> {
    let line = root.read_text("/proc/cmdline")?;
    // What follows "--" is for init.
    let options = line.split_whitespace().take_while(|word| *word != "--");
    let values = options.filter_map(|word| match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (word == name).then_some(""),
    });
    values.last().map(str::to_owned)
}

impl DoctorContext<'_> {
    /// The command that writes a value to a file of the kernel, if a lockdown does not forbid that; works for
    /// patterns of files too.
    fn command_to_write(&self, value: &str, path: &str) -> Option<String> {
        if path.starts_with("/sys/kernel/debug/") && self.lockdown().is_some() {
            return Some(format!("none while the kernel is locked down: {path} is forbidden"));
        }
        let sudo = if self.machine.root { "" } else { "sudo " };
        Some(format!("echo {value} | {sudo}tee {path}"))
    }

    /// A command that only root may run.
    fn root_command(&self, command: &str) -> Option<String> {
        let sudo = if self.machine.root { "" } else { "sudo " };
        Some(format!("{sudo}{command}"))
    }

    /// The row of a missing knob: good if the tree that would contain it exists, unknown if the tree is missing too.
    fn missing_knob(&self, tree: &str, found: &str) -> DoctorFinding {
        if self.root.exists(tree) { good(found) } else { unknown_finding(format!("{tree} cannot be read")) }
    }

    /// An option of the kernel's command line.
    fn boot_option(&self, name: &str) -> Option<String> {
        boot_option(self.root, name)
    }
}

/// Result of a check, before the affected probes are known.
struct DoctorFinding {
    state: CheckState,
    found: String,
    /// Condition that the check is about; `None` if it distorts no figure.
    condition: Option<Condition>,
    remedy: Option<String>,
}

impl DoctorFinding {
    fn with_remedy(self, remedy: impl Into<Option<String>>) -> DoctorFinding {
        DoctorFinding { remedy: remedy.into(), ..self }
    }

    fn into_check(self, id: &str, catalogue: &ProbeCatalogue) -> DoctorCheck {
        let affects = self.condition.map(|condition| catalogue.affected_by(condition)).unwrap_or_default();
        DoctorCheck { id: id.to_owned(), state: self.state, found: self.found, affects, remedy: self.remedy }
    }
}

fn new_finding(state: CheckState, found: impl Into<String>, condition: Option<Condition>) -> DoctorFinding {
    DoctorFinding { state, found: found.into(), condition, remedy: None }
}

fn good(found: impl Into<String>) -> DoctorFinding {
    new_finding(CheckState::Good, found, None)
}

fn note_finding(found: impl Into<String>, condition: impl Into<Option<Condition>>) -> DoctorFinding {
    new_finding(CheckState::Note, found, condition.into())
}

fn bad(found: impl Into<String>, condition: Condition) -> DoctorFinding {
    new_finding(CheckState::Bad, found, Some(condition))
}

fn unknown_finding(found: impl Into<String>) -> DoctorFinding {
    new_finding(CheckState::Unknown, found, None)
}
