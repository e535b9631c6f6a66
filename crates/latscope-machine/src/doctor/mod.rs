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
use super::root::Root;
use super::trials::Trials;
use build::Configuration;
use latscope_core::catalogue::{Catalogue, Condition};
use latscope_core::machine::{Check, CheckState, Machine};
use latscope_core::units::CpuList;
use lockdown::Lockdown;
use std::cell::OnceCell;

/// Examines a machine, described before by [`snapshot`](super::snapshot()). Permissions are determined by trying; every
/// trial is undone.
pub fn checks(root: &Root, machine: &Machine, trials: &mut dyn Trials, catalogue: &Catalogue) -> Vec<Check> {
    let context = Context::new(root, machine, &machine.allowed);
    let rows = rows(&context, trials);
    rows.into_iter().map(|row| row.check(catalogue)).collect()
}

fn rows(context: &Context, trials: &mut dyn Trials) -> Vec<Row> {
    vec![
        execution::hypervisor(context),
        execution::steal(context),
        execution::load(context),
        execution::quota(context),
        execution::cpus(context),
        execution::seccomp(context),
        processor::governor(context),
        processor::boost(context),
        processor::smt(context),
        processor::idle_states(context, trials),
        processor::mitigations(context),
        processor::kinds(context),
        processor::hotplug(context),
        processor::clock_source(context),
        memory::transparent_huge_pages(context),
        memory::huge_pages(context),
        memory::swap(context),
        memory::numa_balancing(context),
        memory::same_page_merging(context),
        memory::access_monitoring(context),
        scheduling::scheduler(context),
        scheduling::preemption(context),
        scheduling::isolation(context),
        scheduling::throttling(context),
        scheduling::group_budgets(context),
        scheduling::fair_server(context),
        interrupts::tick(context),
        interrupts::watchdogs(context),
        interrupts::devices(context),
        scheduling::timer_slack(context),
        permission::real_time(context, trials),
        permission::locked_memory(context, trials),
        permission::tracing(context, trials),
        permission::counters(context),
        lockdown::lockdown(context),
        build::kernel_debugging(context),
        build::android(context),
        binder::driver(context),
        binder::context_manager(context),
    ]
}

/// Examines anew the checks that depend on the measured CPUs: the interrupts of devices, the fair server.
pub(super) fn measured_on(root: &Root, machine: &mut Machine, cpus: &CpuList, catalogue: &Catalogue) {
    let examined = {
        let context = Context::new(root, machine, cpus);
        [Some(interrupts::devices(&context)), scheduling::shown_fair_server(&context)]
    };
    for new in examined.into_iter().flatten().map(|row| row.check(catalogue)) {
        if let Some(check) = machine.checks.iter_mut().find(|check| check.id == new.id) {
            *check = new;
        }
    }
}

/// Input of every check. Large files are read when a check asks for them first: of the kernel's log a read has one
/// record, so that it takes thousands.
struct Context<'a> {
    root: &'a Root,
    machine: &'a Machine,
    /// CPUs that are measured.
    cpus: &'a CpuList,
    configuration: OnceCell<Option<Configuration>>,
    log: OnceCell<Option<KernelLog>>,
    lockdown: OnceCell<Option<Lockdown>>,
}

impl<'a> Context<'a> {
    fn new(root: &'a Root, machine: &'a Machine, cpus: &'a CpuList) -> Context<'a> {
        Context {
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
        self.log.get_or_init(|| KernelLog::read(self.root)).as_ref()
    }

    /// The lockdown in force.
    fn lockdown(&self) -> Option<&Lockdown> {
        self.lockdown.get_or_init(|| Lockdown::find(self)).as_ref()
    }
}

/// The value of a `name=value` word of the kernel's command line; empty for
/// a single word.
fn boot_option(root: &Root, name: &str) -> Option<String> {
    let line = root.text("/proc/cmdline")?;
    // What follows "--" is for init.
    let options = line.split_whitespace().take_while(|word| *word != "--");
    let values = options.filter_map(|word| match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (word == name).then_some(""),
    });
    values.last().map(str::to_owned)
}

impl Context<'_> {
    /// The command that writes a value to a file of the kernel, if a lockdown does not forbid that; works for
    /// patterns of files too.
    fn write(&self, value: &str, path: &str) -> Option<String> {
        if path.starts_with("/sys/kernel/debug/") && self.lockdown().is_some() {
            return Some(format!("none while the kernel is locked down: {path} is forbidden"));
        }
        let sudo = if self.machine.root { "" } else { "sudo " };
        Some(format!("echo {value} | {sudo}tee {path}"))
    }

    /// A command that only root may run.
    fn command(&self, command: &str) -> Option<String> {
        let sudo = if self.machine.root { "" } else { "sudo " };
        Some(format!("{sudo}{command}"))
    }

    /// The row of a missing knob: good if the tree that would contain it exists, unknown if the tree is missing too.
    fn absent(&self, id: &str, tree: &str, found: &str) -> Row {
        if self.root.exists(tree) { good(id, found) } else { unknown(id, format!("{tree} cannot be read")) }
    }

    /// An option of the kernel's command line.
    fn boot_option(&self, name: &str) -> Option<String> {
        boot_option(self.root, name)
    }
}

/// Result of a check, before the affected probes are known.
struct Row {
    id: String,
    state: CheckState,
    found: String,
    /// Condition that the check is about; `None` if it distorts no figure.
    condition: Option<Condition>,
    remedy: Option<String>,
}

impl Row {
    fn check(self, catalogue: &Catalogue) -> Check {
        let affects = self.condition.map(|condition| catalogue.affected_by(condition)).unwrap_or_default();
        Check { id: self.id, state: self.state, found: self.found, affects, remedy: self.remedy }
    }
}

fn row(id: &str, state: CheckState, found: impl Into<String>, condition: Option<Condition>) -> Row {
    Row { id: id.to_owned(), state, found: found.into(), condition, remedy: None }
}

fn good(id: &str, found: impl Into<String>) -> Row {
    row(id, CheckState::Good, found, None)
}

fn note(id: &str, found: impl Into<String>, condition: impl Into<Option<Condition>>) -> Row {
    row(id, CheckState::Note, found, condition.into())
}

fn bad(id: &str, found: impl Into<String>, condition: Condition) -> Row {
    row(id, CheckState::Bad, found, Some(condition))
}

fn unknown(id: &str, found: impl Into<String>) -> Row {
    row(id, CheckState::Unknown, found, None)
}
