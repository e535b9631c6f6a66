//! What an exchange makes that does not die with its holders.
//!
//! Where there is a choice nothing is: descriptors without names are handed
//! on instead. What is left is System V's objects and what libraries make.

use super::modes::{self, Modes};
use latscope_os::message_queue;
use latscope_os::system_v::{self, Kind};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fmt, fs, io};

/// Something that stays until it is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leftover {
    /// A POSIX message queue of this name.
    PosixQueue(String),
    /// A System V message queue of this number.
    SystemVQueue(i32),
    /// A System V set of semaphores of this number.
    SystemVSemaphores(i32),
    /// All POSIX shared memory whose name begins so.
    SharedMemory(String),
    /// A file, a socket, a FIFO.
    File(PathBuf),
    /// A directory with all that is in it.
    Directory(PathBuf),
    /// Modes of a terminal, by its path: those of before, and ours.
    Modes(PathBuf, Modes, Modes),
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Leftover::PosixQueue(name) => write!(f, "the message queue {name}"),
            Leftover::SystemVQueue(id) => write!(f, "the System V message queue {id}"),
            Leftover::SystemVSemaphores(id) => write!(f, "the System V semaphores {id}"),
            Leftover::SharedMemory(prefix) => write!(f, "{SHARED_MEMORY}/{prefix}*"),
            Leftover::File(path) | Leftover::Directory(path) => write!(f, "{}", path.display()),
            Leftover::Modes(path, ..) => write!(f, "our modes of the terminal {}", path.display()),
        }
    }
}

impl Leftover {
    /// Removes it. That it is gone already is no failure.
    ///
    /// # Errors
    /// It is there and cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        let removed: io::Result<()> = match self {
            Leftover::PosixQueue(name) => message_queue::unlink(name).map_err(Into::into),
            Leftover::SystemVQueue(id) => system_v(Kind::Queue, *id),
            Leftover::SystemVSemaphores(id) => system_v(Kind::Semaphores, *id),
            Leftover::SharedMemory(prefix) => shared_memory(prefix),
            Leftover::File(path) => fs::remove_file(path),
            Leftover::Directory(path) => fs::remove_dir_all(path),
            Leftover::Modes(path, before, ours) => modes::restore(path, before, ours),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

fn system_v(kind: Kind, id: i32) -> io::Result<()> {
    match system_v::remove(kind, id) {
        Err(Errno::INVAL | Errno::IDRM) => Ok(()),
        removed => removed.map_err(Into::into),
    }
}

/// Where Linux has it: shm_overview(7).
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

/// All that an endpoint pair leaves; removed when this is dropped.
#[derive(Debug, Default)]
pub struct Leftovers(Vec<Leftover>);

impl Leftovers {
    /// Nothing: all that there is dies with its holders.
    pub fn none() -> Leftovers {
        Leftovers::default()
    }

    /// With one more.
    pub fn and(mut self, leftover: Leftover) -> Leftovers {
        self.0.push(leftover);
        self
    }

    /// Each of them, to be journalled.
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
    use crate::pseudo_terminal::Terminal;
    use rustix::fs::Mode;
    use rustix::shm::OFlags;

    /// One of each kind, really there.
    fn all(terminal: &Terminal) -> [Leftover; 7] {
        let name = format!("/latscope-leftover-{}", std::process::id());
        message_queue::create(&name, 1, 8).unwrap();
        rustix::shm::open(name.as_str(), OFlags::CREATE | OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
        let directory = std::env::temp_dir().join(&name[1..]);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("inner"), "x").unwrap();
        let raw = Modes::of(&terminal.slave).unwrap();
        let lines = raw.lines();
        let file = directory.with_extension("file");
        fs::write(&file, "x").unwrap();
        [
            Leftover::PosixQueue(name.clone()),
            Leftover::SystemVQueue(system_v::create_queue().unwrap()),
            Leftover::SystemVSemaphores(system_v::create_semaphores(1).unwrap()),
            Leftover::SharedMemory(name[1..name.len() - 1].to_string()),
            Leftover::File(file),
            Leftover::Directory(directory),
            Leftover::Modes(terminal.path.clone(), lines, raw),
        ]
    }

    fn is_there(leftover: &Leftover) -> bool {
        match leftover {
            Leftover::PosixQueue(name) => message_queue::unlink(name).is_ok(),
            Leftover::SystemVQueue(id) => system_v::remove(Kind::Queue, *id).is_ok(),
            Leftover::SystemVSemaphores(id) => system_v::change(*id, 0, 1).is_ok(),
            Leftover::SharedMemory(prefix) => {
                let mut names = fs::read_dir(SHARED_MEMORY).unwrap();
                names.any(|name| name.unwrap().file_name().to_string_lossy().starts_with(prefix))
            }
            Leftover::File(path) | Leftover::Directory(path) => path.exists(),
            Leftover::Modes(path, _, ours) => {
                let terminal = rustix::fs::open(path, modes::OPEN, Mode::empty()).unwrap();
                Modes::of(terminal).unwrap() == *ours
            }
        }
    }

    #[test]
    fn what_is_left_goes_when_dropped_and_not_twice() {
        let terminal = Terminal::open().unwrap();
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
}
