//! Processes at the other end of this process's open sockets, terminals and shared memory.

use super::processes::{self, exact_ns};
use crate::SystemRoot;
use latscope_os::socket_peer;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Processes with which this one exchanges messages, each with its CPU time at the last query, ns.
#[derive(Debug, Default)]
pub struct Peers(Vec<(u32, u64)>);

/// Highest descriptor of the standard streams: the terminal of a user is no peer.
const STREAMS: i32 = 2;

impl Peers {
    /// Finds the peers of this process that are not part of a run: neither `run` itself nor its descendants.
    pub fn find_outside_run(run: u32) -> Peers {
        let root = SystemRoot::real();
        let links = Links::of_this_process();
        let mut found: BTreeSet<u32> =
            links.sockets.iter().filter_map(|fd| socket_peer::peer_process(*fd)).collect();
        if !links.files.is_empty() || !links.terminals.is_empty() {
            let all = root.list_names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
            found.extend(all.filter(|pid| links.is_shared_with(*pid)));
        }
        found.retain(|pid| *pid != 0 && !processes::is_part_of(&root, *pid, run));
        Peers(found.into_iter().filter_map(|pid| Some((pid, exact_ns(&root, pid)?))).collect())
    }

    /// Process ids of the peers.
    pub fn process_ids(&self) -> Vec<u32> {
        self.0.iter().map(|(pid, _)| *pid).collect()
    }

    /// CPU time that the peers used since the last call, ns.
    pub fn used_ns(&mut self) -> u64 {
        let root = SystemRoot::real();
        let used = self.0.iter_mut().filter_map(|(pid, last)| {
            let now = exact_ns(&root, *pid)?.max(*last);
            Some(now - std::mem::replace(last, now))
        });
        used.sum()
    }
}

/// Objects that this process has open and another process may have open, too.
#[derive(Debug, Default)]
struct Links {
    sockets: Vec<i32>,
    /// Files that are mapped shared and writable: device and inode number.
    files: BTreeSet<(String, u64)>,
    /// Numbers of pseudo-terminals of which this process has either side.
    terminals: BTreeSet<u32>,
}

/// Major numbers of the slave side of pseudo-terminals (Documentation/admin-guide/devices.txt).
const SLAVES: std::ops::RangeInclusive<u32> = 136..=143;

impl Links {
    fn of_this_process() -> Links {
        let mut links = Links { files: shared_files("self"), ..Links::default() };
        for (fd, target) in list_descriptors("self").into_iter().filter(|(fd, _)| *fd > STREAMS) {
            if target.starts_with("socket:") {
                links.sockets.push(fd);
            }
            links.terminals.extend(terminal_number("self", fd));
        }
        links
    }

    /// Returns true if a process has the other side of one of the terminals, or maps one of the files.
    fn is_shared_with(&self, pid: u32) -> bool {
        let process = pid.to_string();
        if !self.files.is_disjoint(&shared_files(&process)) {
            return true;
        }
        let open = if self.terminals.is_empty() { Vec::new() } else { list_descriptors(&process) };
        let mut terminals = open.into_iter().filter_map(|(fd, _)| terminal_number(&process, fd));
        terminals.any(|terminal| self.terminals.contains(&terminal))
    }
}

/// Descriptors of a process, with the targets of their links; empty if the process is another user's.
fn list_descriptors(process: &str) -> Vec<(i32, String)> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, target.to_string_lossy().into_owned()))
    });
    links.collect()
}

/// Number of the pseudo-terminal of which a descriptor is either side.
fn terminal_number(process: &str, fd: i32) -> Option<u32> {
    let about = fs::metadata(format!("/proc/{process}/fd/{fd}")).ok()?;
    let device = about.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    if SLAVES.contains(&major) {
        return Some((major - SLAVES.start()) * 256 + minor);
    }
    // The master side is one device for all; the kernel says which it is.
    if (major, minor) != (5, 2) {
        return None;
    }
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).ok()?;
    info.lines().find_map(|line| line.strip_prefix("tty-index:")?.trim().parse().ok())
}

/// Files that a process maps shared and writable (proc_pid_maps(5)).
fn shared_files(process: &str) -> BTreeSet<(String, u64)> {
    let text = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let files = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (rights, device, number) = (words.next()?, words.nth(1)?, words.next()?);
        let number = number.parse().ok().filter(|number| *number > 0)?;
        rights.starts_with("rw-s").then(|| (device.to_owned(), number))
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};

    #[test]
    fn both_sides_of_a_terminal_have_its_number() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let slave = fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let number = |fd: i32| terminal_number("self", fd);
        use std::os::fd::AsRawFd;
        let of_master = number(master.as_raw_fd());
        assert!(of_master.is_some() && of_master == number(slave.as_raw_fd()));
        assert!(Links::of_this_process().terminals.contains(&of_master.unwrap()));
    }

    #[test]
    fn a_process_of_the_run_is_no_peer() {
        let (a, _b) = std::os::unix::net::UnixStream::pair().unwrap();
        use std::os::fd::AsRawFd;
        assert_eq!(socket_peer::peer_process(a.as_raw_fd()), Some(std::process::id()));
        assert!(!Peers::find_outside_run(std::process::id()).process_ids().contains(&std::process::id()));
    }
}
