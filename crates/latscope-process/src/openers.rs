//! Processes that have a terminal or a pipe open, or are controlled by a terminal, as far as this user can see them.

use crate::guardian;
use latscope_os::terminal::device_number;
use rustix::fd::AsFd;
use rustix::fs::{OFlags, Stat, fstat, major, minor};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Number of processes that are named; of further ones the number is stated.
const NAMED: usize = 3;

/// Places of fields in `/proc/PID/stat`, counted behind the name of the program: parent, session, and the number of the
/// controlling terminal.
const PARENT: usize = 1;
const SESSION: usize = 3;
const TERMINAL: usize = 4;

/// First and last major number of the terminals of pseudo terminals.
const TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

/// Returns the processes that have the terminal with this status open, in words: `cat (pid 12)`. Excepted are this
/// process, its children, guardians, and processes that have the master of the terminal: they are its other side.
/// `None` if there are no such processes, or this user cannot see them.
pub fn describe_openers(terminal: &Stat) -> Option<String> {
    let openers = processes().filter(|pid| has_only_terminal(*pid, terminal) && !is_guardian(*pid));
    name_processes(&openers.filter(|pid| parent(*pid) != Some(std::process::id())).collect::<Vec<_>>())
}

/// Returns the leaders of the sessions that a terminal controls, in words; where none can be seen, processes of those
/// sessions. `None` if the terminal controls no session, or this user cannot see it.
pub fn sessions(terminal: impl AsFd) -> Option<String> {
    let number = device_number(&terminal)?.cast_signed();
    let about = fstat(terminal).ok()?;
    let controlled = |pid: &u32| stat_field(*pid, TERMINAL) == Some(number);
    let all: Vec<u32> =
        all_processes().filter(controlled).filter(|pid| may_share_terminal(*pid, &about)).collect();
    let leads = |pid: &u32| stat_field(*pid, SESSION) == Some(pid.cast_signed());
    let leaders: Vec<u32> = all.iter().copied().filter(leads).collect();
    name_processes(if leaders.is_empty() { &all } else { &leaders })
}

/// Returns false if a process sees only other pseudo terminals than this one: another container can have the number.
fn may_share_terminal(pid: u32, terminal: &Stat) -> bool {
    let differs = |about: fs::Metadata| about.dev() != terminal.st_dev;
    let elsewhere = fs::metadata(format!("/proc/{pid}/root/dev/pts")).is_ok_and(differs);
    !is_pseudo(terminal) || !elsewhere || has_only_terminal(pid, terminal)
}

/// Returns processes in words: `cat (pid 12)`; `None` if there are none.
pub fn name_processes(pids: &[u32]) -> Option<String> {
    let mut named: Vec<String> = pids.iter().take(NAMED).map(|pid| process_name(*pid)).collect();
    let last = match pids.len().saturating_sub(NAMED) {
        0 => named.pop()?,
        more => format!("{more} more"),
    };
    Some(if named.is_empty() { last } else { format!("{} and {last}", named.join(", ")) })
}

/// Processes that can read from the pipe behind a descriptor of this process; none behind anything but a pipe.
pub(crate) fn readers(descriptor: i32) -> Vec<u32> {
    // By its name: the status of a file on a network that is away would be waited for.
    let own = format!("/proc/self/fd/{descriptor}");
    let is_pipe = fs::metadata(&own).is_ok_and(|found| found.file_type().is_fifo());
    let Ok(pipe) = fs::read_link(own) else { return Vec::new() };
    let reads = |pid: &u32| {
        let mut files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.any(|file| {
            fs::read_link(file.path()).is_ok_and(|link| link == pipe) && can_read(*pid, &file.path())
        })
    };
    if is_pipe { processes().filter(reads).collect() } else { Vec::new() }
}

/// Returns true if a descriptor of a process can be read from.
fn can_read(pid: u32, descriptor: &Path) -> bool {
    let flags = fdinfo_value(pid, descriptor, "flags:").and_then(|flags| u32::from_str_radix(&flags, 8).ok());
    flags.is_some_and(|flags| flags & OFlags::ACCMODE.bits() != OFlags::WRONLY.bits())
}

/// Processes other than this one.
fn processes() -> impl Iterator<Item = u32> {
    all_processes().filter(|pid| *pid != std::process::id())
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, PARENT)?.try_into().ok()
}

/// Value of a field of `/proc/PID/stat`.
fn stat_field(pid: u32, field: usize) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    status.rsplit_once(") ")?.1.split(' ').nth(field)?.parse().ok()
}

/// Returns true for a process that has the terminal open only to put it back.
fn is_guardian(pid: u32) -> bool {
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split('\0').nth(1) == Some(guardian::ROLE.name)
}

fn process_name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} (pid {pid})", name.trim())
}

/// Returns true if a process has the terminal open and not its master.
fn has_only_terminal(pid: u32, terminal: &Stat) -> bool {
    let mut has_terminal = false;
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        // Devices alone: the status of a file on a network that is away would be waited for.
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        if target.file_name().is_some_and(|name| name == "ptmx") {
            if is_pseudo(terminal) && index(pid, &entry.path()) == Some(minor(terminal.st_rdev)) {
                return false;
            }
        } else if target.starts_with("/dev") {
            has_terminal |= fs::metadata(entry.path()).is_ok_and(|found| {
                // The numbers of pseudo terminals are those of their file system.
                let same_place = !is_pseudo(terminal) || found.dev() == terminal.st_dev;
                found.rdev() == terminal.st_rdev && same_place
            });
        }
    }
    has_terminal
}

fn is_pseudo(terminal: &Stat) -> bool {
    TERMINALS.contains(&major(terminal.st_rdev))
}

/// Index of the terminal that belongs to the master with this descriptor.
fn index(pid: u32, descriptor: &Path) -> Option<u32> {
    fdinfo_value(pid, descriptor, "tty-index:")?.parse().ok()
}

/// Value of a line of what the kernel tells about a descriptor.
fn fdinfo_value(pid: u32, descriptor: &Path, name: &str) -> Option<String> {
    let number = descriptor.file_name()?.to_str()?;
    let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
    Some(about.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pseudo_terminal::PseudoTerminal;
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::{Command, Stdio};

    /// Process that is no child of this one; it sleeps until it is dropped.
    struct Orphan(u32);

    impl Orphan {
        fn with(input: Stdio, error: Stdio) -> Orphan {
            let script = "exec 3<&0; sleep 60 <&3 >/dev/null & echo $!";
            let started =
                Command::new("sh").args(["-c", script]).stdin(input).stderr(error).output().unwrap();
            Orphan(String::from_utf8(started.stdout).unwrap().trim().parse().unwrap())
        }
    }

    impl Drop for Orphan {
        fn drop(&mut self) {
            kill_process(Pid::from_raw(self.0.cast_signed()).unwrap(), Signal::KILL).unwrap();
        }
    }

    #[test]
    fn those_that_have_a_terminal_open_are_named_and_its_other_side_is_not() {
        let (terminal, other) = (PseudoTerminal::open().unwrap(), PseudoTerminal::open().unwrap());
        let found = || describe_openers(&fstat(&terminal.slave).unwrap());
        let slave = || Stdio::from(terminal.slave.try_clone().unwrap());
        assert_eq!(found(), None, "this process is excepted");
        let _of_other = Orphan::with(other.slave.try_clone().unwrap().into(), Stdio::null());
        let _other_side = Orphan::with(slave(), terminal.master.try_clone().unwrap().into());
        assert_eq!(found(), None);
        let mut openers: Vec<Orphan> = Vec::new();
        let named = |orphan: &Orphan| format!("sleep (pid {})", orphan.0);
        openers.push(Orphan::with(slave(), Stdio::null()));
        assert_eq!(found(), Some(named(&openers[0])));
        openers.push(Orphan::with(slave(), Stdio::null()));
        let both = found().unwrap();
        assert!(
            openers.iter().all(|orphan| both.contains(&named(orphan))) && both.contains(" and "),
            "{both}"
        );
        (0..2).for_each(|_| openers.push(Orphan::with(slave(), Stdio::null())));
        assert!(found().unwrap().ends_with(" and 1 more"), "{:?}", found());
    }
}
