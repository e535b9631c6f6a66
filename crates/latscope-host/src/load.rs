//! Load beside the measurement: a worker that keeps the machine busy.

use super::guardian::{Guardian, Ticket, Undo};
use super::message_groups::{MessageGroups, Wire};
use super::process_group;
use super::role::Role;
use anyhow::{Context, Result};
use latscope_core::plan::Load;
use latscope_core::units::CpuList;
use latscope_os::worker::{self, Lifetime};
use latscope_os::{sched, signal};
use rustix::process::{Pid, WaitId, WaitIdOptions};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Load workers that end when this is dropped: not before the guardian has ended, which kills their
/// groups, whose numbers are free once they were waited for.
#[derive(Debug)]
pub struct Loaded(Vec<Child>);

/// Starts `load` on each of `cpus` (a command: once, not pinned; hackbench: once, on all of them).
///
/// The guardian ends it, too: what a command started does not die with its parent.
///
/// # Errors
/// A worker cannot be started.
pub fn start(load: &Load, cpus: &[u32], guardian: &mut Guardian) -> Result<Loaded> {
    let mut loaded = Loaded(Vec::new());
    let mut spawn = |args: &[&str]| -> Result<()> {
        let child = worker::spawn(args, &[], Lifetime::WithParent).context("the load does not start")?;
        let group = child.id();
        loaded.0.push(child);
        let _: Ticket = guardian.journal(Undo::EndGroup(group))?;
        Ok(())
    };
    match load {
        Load::Command(command) => spawn(&[ROLE.name, "command", command])?,
        Load::Cpu => cpus.iter().try_for_each(|cpu| spawn(&[ROLE.name, "cpu", &cpu.to_string()]))?,
        Load::Hackbench => spawn(&[ROLE.name, "hackbench", &CpuList(cpus.to_vec()).to_string()])?,
        Load::Memory => cpus.iter().try_for_each(|cpu| spawn(&[ROLE.name, "memory", &cpu.to_string()]))?,
    }
    Ok(loaded)
}

/// Whether the shell knows what the first word of a command calls. What is more
/// than a word to it is known only when it runs.
pub fn is_command(command: &str) -> bool {
    let word = command.split_whitespace().next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let mut shell = Command::new("sh");
    let asked = shell.args(["-c", "command -v -- \"$1\"", "sh", word]).stdout(Stdio::null());
    !word.is_empty() && (!word.chars().all(plain) || asked.status().is_ok_and(|status| status.success()))
}

impl Loaded {
    /// Whether a load ended by itself, and how. It is not waited for: the number of its group stays taken.
    pub fn ended(&self) -> Option<String> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let how = |child: &Child| {
            let process = WaitId::Pid(Pid::from_raw(child.id() as i32)?);
            let status = rustix::process::waitid(process, options).ok()??;
            let exited = status.exit_status().map(|code| format!("exit status: {code}"));
            exited.or_else(|| Some(format!("signal: {}", status.terminating_signal()?)))
        };
        self.0.iter().find_map(how)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Each worker leads a process group: what a command started ends with it.
            let _ = process_group::kill(child.id());
            let _ = child.wait();
        }
    }
}

/// Bytes that a memory load copies through: more than any cache holds.
const MEMORY_LOAD: usize = 256 << 20;

/// The load worker. A command that is a load keeps the usual signals: what it starts may be ended by them.
pub(crate) const ROLE: Role = Role { name: "__load", terminates: true, main };

/// Never returns unless it cannot start.
fn main(args: &[String]) -> Result<()> {
    if args.first().is_none_or(|kind| kind != "command") {
        signal::TERMINATION.into_iter().for_each(signal::ignore);
    }
    match args {
        [kind, command] if kind == "command" => {
            let error = Command::new("sh").args(["-c", command]).exec();
            Err(error).with_context(|| format!("cannot run {command:?}"))
        }
        [kind, cpus] if kind == "hackbench" => talk_for_ever(&cpus.parse::<CpuList>()?.0),
        [kind, cpu] => {
            sched::pin(&[cpu.parse()?])?;
            match kind.as_str() {
                "cpu" => loop {
                    std::hint::black_box(latscope_os::kernels::cycle::dependent_adds(1_000_000));
                },
                "memory" => copy_for_ever(),
                other => anyhow::bail!("no load is called {other:?}"),
            }
        }
        _ => anyhow::bail!("a load has a kind and an argument"),
    }
}

/// A group for each CPU, its processes anywhere on them.
fn talk_for_ever(cpus: &[u32]) -> Result<()> {
    sched::pin(cpus)?;
    let message_groups = MessageGroups {
        groups: cpus.len() as u64,
        size: 20,
        messages: u64::MAX,
        bytes: 100,
        wire: Wire::Socket,
        threads: false,
    };
    let message_groups = message_groups.gather()?;
    message_groups.start()?;
    Ok(message_groups.finish()?)
}

fn copy_for_ever() -> ! {
    let mut memory = vec![1u8; MEMORY_LOAD];
    let (source, destination) = memory.split_at_mut(MEMORY_LOAD / 2);
    loop {
        destination.copy_from_slice(std::hint::black_box(source));
        std::hint::black_box(&mut *destination);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_the_shell_are_known() {
        for command in ["true", "sh -c :", "exit 3", "while :; do :; done", "A=1 true", "(true)", "/bin/sh"] {
            assert!(is_command(command), "{command}");
        }
        for other in ["", "banana", "/nonexistent/program 3"] {
            assert!(!is_command(other), "{other}");
        }
    }
}
