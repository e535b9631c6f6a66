//! Processes that stand still: stopped by a signal, or frozen by a control group.

use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::time::{Duration, Instant};

/// Returns true if a process stands still. One of another user, or that is gone, counts as running.
pub fn is_halted(pid: u32) -> bool {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = read("stat");
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| state.starts_with(['T', 't'])) || read("cgroup").lines().any(is_frozen)
}

/// Returns true if a line of the list of a process's control groups is of a group that is frozen: `7:freezer:/docker/1`
/// in version 1, `0::/user.slice` in version 2.
fn is_frozen(group: &str) -> bool {
    let mut parts = group.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return false };
    let read = |file: &str| fs::read_to_string(format!("/sys/fs/cgroup{file}")).unwrap_or_default();
    if controllers.split(',').any(|controller| controller == "freezer") {
        return read(&format!("/freezer{path}/freezer.state")).starts_with("FR");
    }
    let events = ["", "/unified"].map(|mount| read(&format!("{mount}{path}/cgroup.events")));
    controllers.is_empty() && events.iter().any(|events| events.lines().any(|line| line == "frozen 1"))
}

/// Lets the processes of a group go on that a signal stopped.
pub fn resume(group: u32) {
    if let Some(group) = Pid::from_raw(group.cast_signed()) {
        // A group that is gone stands still no more.
        let _ = kill_process_group(group, Signal::CONT);
    }
}

/// Time for which a process must stand still at every look: all may have been stopped together, and go on one by one.
const LASTING: Duration = Duration::from_secs(1);

/// Time since which a process was seen to stand still.
#[derive(Debug, Default)]
pub struct Standstill(Option<Instant>);

impl Standstill {
    /// Notes a look at a process. Returns true if it stood still for a second, and begins anew then.
    pub fn note_look(&mut self, halted: bool) -> bool {
        if !halted {
            self.0 = None;
        }
        let lasts = halted && self.0.get_or_insert_with(Instant::now).elapsed() >= LASTING;
        if lasts {
            self.0 = None;
        }
        lasts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::kill_process;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn a_stopped_process_stands_still_until_it_is_resumed() {
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        let until = |halted: bool| {
            while is_halted(child.id()) != halted {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        until(false);
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        until(true);
        resume(child.id());
        until(false);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_short_standstill_does_not_last() {
        let mut standstill = Standstill::default();
        assert!(!standstill.note_look(true) && !standstill.note_look(false) && !standstill.note_look(true));
        standstill.0 = standstill.0.and_then(|since| since.checked_sub(LASTING));
        assert!(standstill.note_look(true) && !standstill.note_look(true), "it begins anew");
    }
}
