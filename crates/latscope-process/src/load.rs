//! Load beside the measurement: a worker that keeps the machine busy.

use super::guardian::{Guardian, Ticket, UndoAction};
use super::message_groups::{MessageGroupTransport, MessageGroups};
use super::process_group;
use super::role::{ProcessRole, reap};
use anyhow::{Context, Result};
use latscope_core::plan::BackgroundLoad;
use latscope_core::units::{CpuList, format_time};
use latscope_machine::account;
use latscope_os::futex::{OneWordLock, PiLock};
use latscope_os::process_probe::{self, ChildMemoryMode};
use latscope_os::sched::{self, ThreadSchedPolicy};
use latscope_os::signal;
use latscope_os::worker::{self, Lifetime};
use rustix::process::{Pid, WaitId, WaitIdOptions};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Load workers that end when this is dropped. This must outlive the guardian, which kills their groups: the numbers of
/// the groups become free once the workers are waited for.
#[derive(Debug)]
pub struct LoadWorkers {
    workers: Vec<Child>,
    since: Instant,
    /// True if the load is a command, which can only be judged by its processes.
    is_command: bool,
}

/// Share of one CPU below which a command may be no load at all.
const IDLE: f64 = 0.01;

/// Least age of processes that are judged by their CPU time, which is counted in ticks.
const JUDGED_FROM: Duration = Duration::from_secs(1);

/// Starts `load` on each of `cpus` (a command: once, not pinned; groups of messages: once, on all of them).
///
/// The guardian ends it, too, as the processes of a command do not end with their parent.
///
/// # Errors
/// A worker cannot be started.
pub fn start_load(load: &BackgroundLoad, cpus: &[u32], guardian: &Guardian) -> Result<LoadWorkers> {
    let is_command = matches!(load, BackgroundLoad::Command(_));
    let mut loaded = LoadWorkers { workers: Vec::new(), since: Instant::now(), is_command };
    let (name, arguments) = match (load, load.name_and_description()) {
        (BackgroundLoad::Command(command), _) => ("command", vec![command.clone()]),
        (BackgroundLoad::Hackbench | BackgroundLoad::Network, Some((name, _))) => {
            (name, vec![CpuList(cpus.to_vec()).to_string()])
        }
        (_, Some((name, _))) => (name, cpus.iter().map(u32::to_string).collect()),
        (_, None) => anyhow::bail!("{load:?} has no name"),
    };
    for argument in arguments {
        let child = worker::spawn(&[ROLE.name, name, &argument], &[], Lifetime::WithParent);
        let child = child.context("the load does not start")?;
        let group = child.id();
        loaded.workers.push(child);
        let _: Ticket = guardian.journal(UndoAction::EndGroup(group))?;
    }
    Ok(loaded)
}

/// Returns true if the shell knows the command that the first word names. A word with characters of the shell's syntax
/// counts as known, as only running it decides.
pub fn is_command(command: &str) -> bool {
    let word = command.split_whitespace().next().unwrap_or_default();
    if word.is_empty() || !word.chars().all(|c| c.is_ascii_alphanumeric() || "_./+-".contains(c)) {
        return !word.is_empty();
    }
    let mut shell = Command::new("sh");
    let query = shell.args(["-c", "command -v -- \"$1\"", "sh", word]).stdout(Stdio::null());
    query.status().is_ok_and(|status| status.success())
}

/// The names of the stressors of the installed stress-ng; `None` if it is not installed.
pub fn stressors() -> Option<Vec<String>> {
    let shown = Command::new("stress-ng").arg("--stressors").stdin(Stdio::null()).output().ok()?;
    let names = String::from_utf8_lossy(&shown.stdout);
    shown.status.success().then(|| names.split_whitespace().map(str::to_owned).collect())
}

/// The command that runs a stressor of stress-ng on each CPU until it is killed.
pub fn stressor(name: &str) -> String {
    format!("stress-ng --quiet --timeout 0 --{name} 0")
}

impl LoadWorkers {
    /// Processes of the load, each of which leads a group.
    pub fn workers(&self) -> Vec<u32> {
        self.workers.iter().map(Child::id).collect()
    }

    /// Exit status or signal of a worker that ended by itself; `None` if all run. The worker is not reaped, so that the
    /// number of its group stays taken.
    pub fn worker_exit_status(&self) -> Option<String> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.workers.iter().find_map(|child| {
            let process = WaitId::Pid(Pid::from_raw(child.id() as i32)?);
            let status = rustix::process::waitid(process, options).ok()??;
            let exited = status.exit_status().map(|code| format!("exit status: {code}"));
            exited.or_else(|| Some(format!("signal: {}", status.terminating_signal()?)))
        })
    }

    /// A sentence if the command of the load used hardly any CPU time; `None` if it used more, if it ran for less than
    /// a second, and for loads of latscope itself.
    pub fn idle(&self) -> Option<String> {
        let elapsed = self.since.elapsed();
        if !self.is_command || elapsed < JUDGED_FROM {
            return None;
        }
        let used: u64 = self.workers.iter().map(|worker| account::group_ns(worker.id())).sum();
        let share = used as f64 / elapsed.as_nanos() as f64;
        (share < IDLE).then(|| {
            let (used, elapsed) = (format_time(used as f64), format_time(elapsed.as_nanos() as f64));
            format!("the processes of the load used {used} of CPU time in {elapsed}")
        })
    }
}

impl Drop for LoadWorkers {
    fn drop(&mut self) {
        for child in &mut self.workers {
            // Each worker leads a process group: what a command started ends with it.
            let _ = process_group::kill(child.id());
            reap(child);
        }
    }
}

/// Size of the buffer that a memory load copies, in bytes: more than any cache holds.
const MEMORY_LOAD: usize = 256 << 20;

/// Size of the buffer that a cache load copies, in bytes: more than a CPU's own caches hold.
const CACHE_LOAD: usize = 4 << 20;

/// Role of the load worker. A command that is a load keeps the usual signals, as they may end its children.
pub(crate) const ROLE: ProcessRole = ProcessRole { name: "__load", terminates: true, main };

/// Runs a load. Returns only if the load fails.
fn main(args: &[String]) -> Result<()> {
    if args.first().is_none_or(|kind| kind != "command") {
        for number in signal::TERMINATION {
            signal::ignore(number);
        }
    }
    match args {
        [kind, command] if kind == "command" => {
            let error = Command::new("sh").args(["-c", command]).exec();
            Err(error).with_context(|| format!("cannot run {command:?}"))
        }
        [kind, cpus] if kind == "hackbench" => {
            talk_for_ever(&cpus.parse::<CpuList>()?.0, MessageGroupTransport::Socket)
        }
        [kind, cpus] if kind == "network" => {
            talk_for_ever(&cpus.parse::<CpuList>()?.0, MessageGroupTransport::Tcp)
        }
        [kind, cpu] => {
            sched::pin(&[cpu.parse()?])?;
            match kind.as_str() {
                "cpu" => loop {
                    std::hint::black_box(latscope_os::kernels::cycle::dependent_adds(1_000_000));
                },
                "cache" => copy_for_ever(CACHE_LOAD),
                "memory" => copy_for_ever(MEMORY_LOAD),
                "fork" => loop {
                    process_probe::fork_exit(ChildMemoryMode::Copied)?;
                },
                "disk" => write_for_ever(),
                "timer" => sleep_for_ever(),
                "pi-storm" => contend_for_ever(),
                other => anyhow::bail!("no load is called {other:?}"),
            }
        }
        _ => anyhow::bail!("a load has a kind and an argument"),
    }
}

/// Runs a message group for each CPU, with its processes anywhere on these CPUs.
fn talk_for_ever(cpus: &[u32], wire: MessageGroupTransport) -> Result<()> {
    sched::pin(cpus)?;
    let message_groups = MessageGroups {
        groups: cpus.len() as u64,
        size: 20,
        messages: u64::MAX,
        bytes: 100,
        wire,
        threads: false,
    };
    let message_groups = message_groups.gather()?;
    message_groups.start()?;
    Ok(message_groups.wait_until_done()?)
}

fn copy_for_ever(bytes: usize) -> ! {
    let mut memory = vec![1u8; bytes];
    let (source, destination) = memory.split_at_mut(bytes / 2);
    loop {
        destination.copy_from_slice(std::hint::black_box(source));
        std::hint::black_box(&mut *destination);
    }
}

/// Block of a disk load, in bytes, and the number of blocks before it begins anew.
const BLOCK: usize = 1 << 20;
const BLOCKS: u64 = 64;

/// Writes to a file without a name, so that nothing stays. It is in the current directory if that is writable, as the
/// directory for temporary files is often in memory.
fn write_for_ever() -> Result<()> {
    let file = tempfile::tempfile_in(".").or_else(|_| tempfile::tempfile());
    let file = file.context("the disk load has no file")?;
    let block = vec![0x5a; BLOCK];
    for at in (0..BLOCKS).cycle() {
        file.write_all_at(&block, at * BLOCK as u64).context("the disk load cannot write")?;
        file.sync_data().context("the disk load cannot write")?;
    }
    Ok(())
}

/// Number of threads of a load on one CPU.
const THREADS: u32 = 4;

fn sleep_for_ever() -> Result<()> {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
                loop {
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
        }
    });
    Ok(())
}

/// Runs threads that contend for a lock. Each holds it a third of the time or less, so that other threads of the CPU
/// run, too.
fn contend_for_ever() -> Result<()> {
    PiLock::supported().context("this kernel has no locks with priority inheritance")?;
    sched::set_policy(ThreadSchedPolicy::Fifo(THREADS))
        .context("a PI storm needs SCHED_FIFO: run it as root")?;
    let lock = PiLock::default();
    std::thread::scope(|scope| {
        for priority in 1..=THREADS {
            let lock = &lock;
            scope.spawn(move || {
                sched::set_policy(ThreadSchedPolicy::Fifo(priority)).expect("a higher one was allowed");
                loop {
                    lock.lock();
                    let since = Instant::now();
                    while since.elapsed() < Duration::from_micros(20) {}
                    lock.unlock();
                    std::thread::sleep(Duration::from_micros(u64::from(50 * priority)));
                }
            });
        }
    });
    Ok(())
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
