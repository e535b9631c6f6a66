//! Processes of a run, found by a mark in their environment.

use crate::support::eventually;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

const VARIABLE: &str = "LATSCOPE_TEST_RUN";

/// Mark that all processes of a run carry.
pub struct Mark(String);

/// Process of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub command: String,
}

/// Kills the processes of a failed test, so that nothing runs beside the next tests.
impl Drop for Mark {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for process in self.processes() {
                let _ = Pid::from_raw(process.pid).map(|pid| kill_process(pid, Signal::KILL));
            }
        }
    }
}

impl Mark {
    /// Marks what `command` will start.
    pub fn on(command: &mut Command) -> Mark {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let value = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        command.env(VARIABLE, &value);
        Mark(format!("{VARIABLE}={value}"))
    }

    /// Living processes that carry the mark.
    pub fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").expect("the tests need /proc").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| self.process(pid)).collect()
    }

    fn process(&self, pid: i32) -> Option<Process> {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).ok();
        let environment = read("environ")?;
        let marked = environment.split(|byte| *byte == 0).any(|entry| entry == self.0.as_bytes());
        if !marked {
            return None;
        }
        let command = String::from_utf8_lossy(&read("cmdline")?).replace('\0', " ");
        Some(Process { pid, command })
    }

    /// Waits for the process whose command line has this word.
    #[track_caller]
    pub fn wait_for(&self, word: &str) -> Process {
        eventually(word, || self.processes().into_iter().find(|process| process.command.contains(word)))
    }

    /// Waits until no process of the run is left.
    #[track_caller]
    pub fn wait_for_none(&self) {
        eventually("all processes are gone", || self.processes().is_empty().then_some(()));
    }
}

/// Sends a signal to a process of a run.
#[track_caller]
pub fn send(signal: Signal, pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("the process is there");
}

/// Sends a signal to a child that is still to be waited for.
#[track_caller]
pub fn signal(child: &Child, signal: Signal) {
    send(signal, child.id().cast_signed());
}
