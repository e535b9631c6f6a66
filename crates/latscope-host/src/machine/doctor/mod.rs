//! What on this machine distorts latency, which probes it touches, and what
//! mends it.
//!
//! A knob that this machine does not have is never bad; one that cannot be
//! read is unknown.

mod binder;
mod build;
mod control_group;
mod execution;
mod memory;
mod permission;
mod processor;
mod scheduling;
#[cfg(test)]
mod tests;

use super::root::Root;
use super::trials::Trials;
use latscope_core::machine::{Check, CheckState, Machine};

/// Examines a machine, described before by [`snapshot`](super::snapshot()).
/// Permissions are found out by trying; every trial is
/// undone.
pub fn checks(root: &Root, machine: &Machine, trials: &mut dyn Trials) -> Vec<Check> {
    let context = Context { root, machine };
    vec![
        execution::hypervisor(&context),
        execution::steal(&context),
        execution::load(&context),
        execution::quota(&context),
        execution::cpus(&context),
        execution::seccomp(&context),
        processor::governor(&context),
        processor::boost(&context),
        processor::smt(&context),
        processor::idle_states(&context, trials),
        processor::mitigations(&context),
        processor::kinds(&context),
        processor::hotplug(&context),
        processor::clock_source(&context),
        memory::transparent_huge_pages(&context),
        memory::huge_pages(&context),
        memory::swap(&context),
        memory::numa_balancing(&context),
        memory::same_page_merging(&context),
        scheduling::preemption(&context),
        scheduling::isolation(&context),
        scheduling::throttling(&context),
        scheduling::timer_slack(&context),
        permission::real_time(&context, trials),
        permission::locked_memory(&context, trials),
        permission::tracing(&context, trials),
        permission::counters(&context),
        build::kernel_debugging(&context),
        build::android(&context),
        binder::driver(&context),
        binder::context_manager(&context),
    ]
}

/// What every check looks at.
struct Context<'a> {
    root: &'a Root,
    machine: &'a Machine,
}

impl Context<'_> {
    /// The command that writes a value to a file of the kernel; works for
    /// patterns of files too.
    fn write(&self, value: &str, path: &str) -> Option<String> {
        let sudo = if self.machine.root { "" } else { "sudo " };
        Some(format!("echo {value} | {sudo}tee {path}"))
    }

    /// A command that only root may run.
    fn command(&self, command: &str) -> Option<String> {
        let sudo = if self.machine.root { "" } else { "sudo " };
        Some(format!("{sudo}{command}"))
    }

    /// The row of a knob that is not there: nothing to mend if the tree it
    /// would stand in is there, unknown if that is missing too.
    fn absent(&self, id: &str, tree: &str, found: &str) -> Check {
        if self.root.exists(tree) { good(id, found) } else { unknown(id, format!("{tree} cannot be read")) }
    }

    /// The value of a `name=value` word of the kernel's command line; empty for
    /// a single word.
    fn boot_option(&self, name: &str) -> Option<String> {
        let line = self.root.text("/proc/cmdline")?;
        // What follows "--" is for init.
        let options = line.split_whitespace().take_while(|word| *word != "--");
        let values = options.filter_map(|word| match word.split_once('=') {
            Some((key, value)) => (key == name).then_some(value),
            None => (word == name).then_some(""),
        });
        values.last().map(str::to_owned)
    }
}

fn check(id: &str, state: CheckState, found: impl Into<String>, affects: &[&str]) -> Check {
    Check {
        id: id.to_owned(),
        state,
        found: found.into(),
        affects: affects.iter().map(|probe| (*probe).to_owned()).collect(),
        remedy: None,
    }
}

fn good(id: &str, found: impl Into<String>) -> Check {
    check(id, CheckState::Good, found, &[])
}

fn note(id: &str, found: impl Into<String>, affects: &[&str]) -> Check {
    check(id, CheckState::Note, found, affects)
}

fn bad(id: &str, found: impl Into<String>, affects: &[&str]) -> Check {
    check(id, CheckState::Bad, found, affects)
}

fn unknown(id: &str, found: impl Into<String>) -> Check {
    check(id, CheckState::Unknown, found, &[])
}
