//! Watches the freezers of control groups (cgroup-v1/freezer-subsystem.rst; cgroup-v2.rst, `cgroup.freeze`).

use crate::control_group::freezers;
use crate::root::SystemRoot;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Interval at which the groups of the process are read again: it may have been moved.
const PAUSE: Duration = Duration::from_millis(200);

/// Notices that one of the control groups of a process is frozen. The kernel keeps a note of each write to their files,
/// so that a process sees afterwards that it was frozen itself.
#[derive(Debug)]
pub struct Freezer {
    root: SystemRoot,
    process: String,
    notes: OwnedFd,
    /// Files that freeze groups of the process, by the number of their watch.
    files: BTreeMap<i32, String>,
    read: Instant,
    /// True if one of the groups was frozen when its file was last written to.
    frozen: bool,
    /// True if one of the files was written to between the last two looks, or one of the groups was frozen then.
    written: bool,
}

impl Freezer {
    /// Watches the groups of a process from now on; `None` where the kernel refuses.
    pub fn watch_process(process: u32) -> Option<Freezer> {
        Freezer::with_root(SystemRoot::real(), &process.to_string())
    }

    fn with_root(root: SystemRoot, process: &str) -> Option<Freezer> {
        let notes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let (process, files, read) = (process.to_owned(), BTreeMap::new(), Instant::now());
        let mut freezer = Freezer { root, process, notes, files, read, frozen: false, written: false };
        freezer.watch_groups();
        Some(freezer)
    }

    /// Returns what to poll for: the descriptor can be read as soon as a group may be frozen.
    pub fn poll(&self) -> PollFd<'_> {
        PollFd::new(&self.notes, PollFlags::IN)
    }

    /// Returns true if one of the groups was frozen since the last call, or is.
    pub fn was_frozen(&mut self) -> bool {
        if self.read.elapsed() >= PAUSE {
            self.watch_groups();
        }
        let mut writes: BTreeMap<i32, u32> = BTreeMap::new();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.notes, &mut buffer);
        while let Ok(note) = reader.next() {
            if note.events().contains(ReadFlags::MODIFY) {
                *writes.entry(note.wd()).or_default() += 1;
            }
        }
        self.written = self.frozen || !writes.is_empty();
        if writes.is_empty() {
            return false;
        }
        // A group above may be frozen still when one below is written to.
        self.frozen = self.files.values().any(|file| is_frozen(&self.root, file));
        // One write that left it thawed changed nothing, or was seen frozen before. Two froze and thawed it.
        self.frozen || writes.values().any(|count| *count > 1)
    }

    /// Returns true if one of the groups may have been frozen before the last call of [`Freezer::was_frozen`]: the
    /// kernel notes a write after it took effect, so that a process that thaws may find the note of the first of two
    /// alone.
    pub fn was_written(&self) -> bool {
        self.written
    }

    /// Watches the files of the groups in which the process is now.
    fn watch_groups(&mut self) {
        self.read = Instant::now();
        for file in freezers(&self.root, &self.process) {
            // The end of each write lies between two of them, so that the kernel does not make one note of both.
            let events = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
            if let Ok(watch) = inotify::add_watch(&self.notes, self.root.path(&file), events) {
                self.files.insert(watch, file);
            }
        }
    }
}

/// Returns true if the state of a group says so: `FROZEN` or `FREEZING` in the first version, 1 in the second.
fn is_frozen(root: &SystemRoot, file: &str) -> bool {
    root.read_text(file).is_some_and(|state| ["FROZEN", "FREEZING", "1"].contains(&state.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree;
    use std::fs;

    #[test]
    fn a_group_that_is_frozen_is_noticed_also_afterwards() {
        let (first, second) =
            ("/sys/fs/cgroup/freezer/a/freezer.state", "/sys/fs/cgroup/unified/b/cgroup.freeze");
        let (_directory, root) = tree(&[
            ("/proc/7/cgroup", "6:freezer:/a/c\n0::/b\n"),
            ("/sys/fs/cgroup/unified/cgroup.controllers", ""),
            (first, "THAWED\n"),
            (second, "0\n"),
        ]);
        let mut freezer = Freezer::with_root(root.clone(), "7").unwrap();
        assert!(!freezer.was_frozen() && !freezer.was_written());
        let put = |file: &str, state: &str| fs::write(root.path(file), state).unwrap();
        for (file, [freeze, thaw]) in [(first, ["FROZEN\n", "THAWED\n"]), (second, ["1\n", "0\n"])] {
            put(file, freeze);
            assert!(freezer.was_frozen(), "it is");
            assert!(!freezer.was_frozen() && freezer.was_written(), "it is still");
            put(file, thaw);
            assert!(!freezer.was_frozen(), "it was known");
            put(file, freeze);
            put(file, thaw);
            assert!(freezer.was_frozen(), "it was meanwhile");
            put(file, thaw);
            assert!(!freezer.was_frozen(), "nothing changed");
            assert!(freezer.was_written());
            assert!(!freezer.was_frozen() && !freezer.was_written(), "nothing since then");
        }
        put(first, "FROZEN\n");
        assert!(freezer.was_frozen());
        put(second, "0\n");
        assert!(freezer.was_frozen(), "the other group is");
        assert!(!freezer.was_frozen() && freezer.was_written());
    }

    #[test]
    fn a_process_that_is_moved_is_followed() {
        let state = "/sys/fs/cgroup/freezer/late/freezer.state";
        let (_directory, root) = tree(&[("/proc/7/cgroup", "6:freezer:/\n"), (state, "THAWED\n")]);
        let mut freezer = Freezer::with_root(root.clone(), "7").unwrap();
        fs::write(root.path("/proc/7/cgroup"), "6:freezer:/late\n").unwrap();
        freezer.watch_groups();
        fs::write(root.path(state), "FROZEN\n").unwrap();
        assert!(freezer.was_frozen());
    }
}
