//! Leftovers: objects of an exchange that outlast their holders.
//!
//! An exchange avoids them if it can, and hands on descriptors without names instead. Leftovers are the objects of
//! System V and those that libraries make.

use super::files::HeldDirectory;
use super::modes::{self, Modes};
use latscope_os::message_queue;
use latscope_os::system_v::{self, SystemVObjectKind};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, readlinkat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// Object that stays until it is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leftover {
    /// POSIX message queue of this name.
    PosixQueue(String),
    /// System V message queue of this number.
    SystemVQueue(i32),
    /// System V set of semaphores of this number.
    SystemVSemaphores(i32),
    /// All POSIX shared memory whose name has this prefix.
    SharedMemory(String),
    /// File, socket or FIFO.
    File(PathBuf),
    /// Directory with its content.
    Directory(PathBuf),
    /// Symbolic link, and its text: a link with another one is not ours.
    Link(PathBuf, PathBuf),
    /// Changed modes of a terminal that is in exclusive use, by its path: the modes before, and those that latscope
    /// set.
    Modes(PathBuf, Modes, Modes),
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Leftover::PosixQueue(name) => write!(f, "the message queue {name}"),
            Leftover::SystemVQueue(id) => write!(f, "the System V message queue {id}"),
            Leftover::SystemVSemaphores(id) => write!(f, "the System V semaphores {id}"),
            Leftover::SharedMemory(prefix) => write!(f, "{SHARED_MEMORY}/{prefix}*"),
            Leftover::File(path) | Leftover::Directory(path) | Leftover::Link(path, _) => {
                write!(f, "{}", path.display())
            }
            Leftover::Modes(path, ..) => write!(f, "our modes of the terminal {}", path.display()),
        }
    }
}

impl Leftover {
    /// Removes the leftover. It is no failure if it does not exist any more.
    ///
    /// # Errors
    /// The leftover exists and cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        let removed: io::Result<()> = match self {
            Leftover::PosixQueue(name) => message_queue::unlink(name).map_err(Into::into),
            Leftover::SystemVQueue(id) => system_v(SystemVObjectKind::Queue, *id),
            Leftover::SystemVSemaphores(id) => system_v(SystemVObjectKind::Semaphores, *id),
            Leftover::SharedMemory(prefix) => shared_memory(prefix),
            Leftover::File(path) => {
                HeldDirectory::of_file(path).and_then(|held| fs::remove_file(held.path_to(path)))
            }
            Leftover::Directory(path) => {
                HeldDirectory::of_file(path).and_then(|held| fs::remove_dir_all(held.path_to(path)))
            }
            Leftover::Link(path, text) => {
                HeldDirectory::of_file(path).and_then(|held| remove_link(held.as_fd(), path, text))
            }
            Leftover::Modes(path, before, ours) => modes::restore(path, before, ours),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Removes the leftover with what [`hold`](Leftover::hold) returned.
    ///
    /// # Errors
    /// The errors of [`remove`](Leftover::remove).
    pub(crate) fn remove_held(&self, held: &OwnedFd) -> io::Result<()> {
        match self {
            Leftover::Link(path, text) => remove_link(held.as_fd(), path, text),
            _ => self.remove(),
        }
    }

    /// Opens what cannot be opened any more once the leftover exists: a terminal that is then in exclusive use, and the
    /// directory of a link, whose name another user can give to another directory.
    ///
    /// # Errors
    /// The directory cannot be entered: the link could not be removed.
    pub(crate) fn open_handle(&self) -> io::Result<Option<OwnedFd>> {
        match self {
            Leftover::Modes(path, ..) => Ok(rustix::fs::open(path, modes::OPEN, Mode::empty()).ok()),
            Leftover::Link(path, _) => Ok(Some(HeldDirectory::of_file(path)?.into())),
            _ => Ok(None),
        }
    }

    /// Ends the exclusive use of a terminal, unless another process changed its modes since.
    pub(crate) fn release_terminal(&self, held: &OwnedFd) {
        if let Leftover::Modes(_, _, ours) = self
            && Modes::of_terminal(held).is_ok_and(|found| found == *ours)
        {
            modes::release_terminal(held);
        }
    }
}

/// Removes a link from a directory. What has its name by now, and is not the link, stays.
fn remove_link(directory: BorrowedFd, path: &Path, text: &Path) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::NotFound)?;
    match readlinkat(directory, name, Vec::new()) {
        Ok(found) if found.to_bytes() == text.as_os_str().as_bytes() => {
            Ok(unlinkat(directory, name, AtFlags::empty())?)
        }
        Ok(_) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn system_v(kind: SystemVObjectKind, id: i32) -> io::Result<()> {
    match system_v::remove(kind, id) {
        Err(Errno::INVAL | Errno::IDRM) => Ok(()),
        removed => removed.map_err(Into::into),
    }
}

/// Directory of POSIX shared memory in Linux: shm_overview(7).
const SHARED_MEMORY: &str = "/dev/shm";

fn shared_memory(prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(SHARED_MEMORY)? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
            Leftover::File(entry.path()).remove()?;
        }
    }
    Ok(())
}

/// All leftovers of an endpoint pair; removed when this is dropped.
#[derive(Debug, Default)]
pub struct Leftovers(Vec<Leftover>);

impl Leftovers {
    /// No leftovers: all objects end with their holders.
    pub fn none() -> Leftovers {
        Leftovers::default()
    }

    /// Returns the leftovers with `leftover` added.
    pub fn with_leftover(mut self, leftover: Leftover) -> Leftovers {
        self.0.push(leftover);
        self
    }

    /// Each leftover, to be journalled.
    pub fn iter(&self) -> impl Iterator<Item = &Leftover> {
        self.0.iter()
    }
}

impl<const N: usize> From<[Leftover; N]> for Leftovers {
    fn from(leftovers: [Leftover; N]) -> Self {
        Leftovers(leftovers.into())
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        for leftover in &self.0 {
            // The error is not reported; a guardian that has it tries again.
            let _ = leftover.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pseudo_terminal::PseudoTerminal;
    use rustix::shm::OFlags;

    /// Creates a leftover of each kind.
    fn all(terminal: &PseudoTerminal) -> [Leftover; 8] {
        let name = format!("/latscope-leftover-{}", std::process::id());
        message_queue::create_queue(&name, 1, 8).unwrap();
        rustix::shm::open(name.as_str(), OFlags::CREATE | OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
        let directory = std::env::temp_dir().join(&name[1..]);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("inner"), "x").unwrap();
        let raw = Modes::of_terminal(&terminal.slave).unwrap();
        let lines = raw.cooked_without_echo();
        let file = directory.with_extension("file");
        fs::write(&file, "x").unwrap();
        let link = directory.with_extension("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        [
            Leftover::PosixQueue(name.clone()),
            Leftover::SystemVQueue(system_v::create_queue().unwrap()),
            Leftover::SystemVSemaphores(system_v::create_semaphores(1).unwrap()),
            Leftover::SharedMemory(name[1..name.len() - 1].to_string()),
            Leftover::File(file),
            Leftover::Directory(directory),
            Leftover::Link(link, "nowhere".into()),
            Leftover::Modes(terminal.path.clone(), lines, raw),
        ]
    }

    fn is_there(leftover: &Leftover) -> bool {
        match leftover {
            Leftover::PosixQueue(name) => message_queue::unlink(name).is_ok(),
            Leftover::SystemVQueue(id) => system_v::remove(SystemVObjectKind::Queue, *id).is_ok(),
            Leftover::SystemVSemaphores(id) => system_v::change(*id, 0, 1).is_ok(),
            Leftover::SharedMemory(prefix) => {
                let mut names = fs::read_dir(SHARED_MEMORY).unwrap();
                names.any(|name| name.unwrap().file_name().to_string_lossy().starts_with(prefix))
            }
            Leftover::File(path) | Leftover::Directory(path) => path.exists(),
            Leftover::Link(path, _) => path.symlink_metadata().is_ok(),
            Leftover::Modes(path, _, ours) => {
                let terminal = rustix::fs::open(path, modes::OPEN, Mode::empty()).unwrap();
                Modes::of_terminal(terminal).unwrap() == *ours
            }
        }
    }

    #[test]
    fn what_is_left_goes_when_dropped_and_not_twice() {
        let terminal = PseudoTerminal::open().unwrap();
        let each = all(&terminal);
        assert!(
            each.iter().all(|leftover| matches!(leftover, Leftover::PosixQueue(_)) || is_there(leftover))
        );
        drop(Leftovers::from(each.clone()));
        for leftover in &each {
            assert!(!is_there(leftover), "{leftover:?}");
            leftover.remove().unwrap();
            let journalled = serde_json::to_string(leftover).unwrap();
            assert_eq!(&serde_json::from_str::<Leftover>(&journalled).unwrap(), leftover);
        }
    }

    #[test]
    fn a_link_is_removed_from_the_directory_it_was_made_in_and_nothing_else_is() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        let leftover = Leftover::Link(at("inner/link"), "terminal".into());
        let held = leftover.open_handle().unwrap().unwrap();
        symlink("terminal", at("inner/link")).unwrap();
        fs::rename(at("inner"), at("away")).unwrap();
        fs::create_dir(at("inner")).unwrap();
        symlink("another", at("inner/link")).unwrap();
        leftover.remove().unwrap();
        assert!(at("inner/link").symlink_metadata().is_ok(), "it has another text");
        leftover.remove_held(&held).unwrap();
        assert!(at("away/link").symlink_metadata().is_err());
        fs::write(at("away/link"), "a file").unwrap();
        leftover.remove_held(&held).unwrap();
        assert!(at("away/link").exists());
        assert!(Leftover::Link(at("none/link"), "terminal".into()).open_handle().is_err());
    }
}
