//! Trials of permissions, which can only be determined by trying: they depend on users, capabilities, control groups
//! and filters, and no file shows the sum.

use latscope_os::counted_event::PerfEventCounter;
use latscope_os::memory_lock;
use latscope_os::sched::{self, ThreadSchedPolicy};
use rustix::fs::{Access, access};
use std::fs::OpenOptions;
use std::path::Path;
use std::{io, thread};

/// Attempts that leave the machine as it was. A test scripts the results.
pub trait Trials {
    /// Puts a thread under SCHED_FIFO with a priority and reads the policy back.
    ///
    /// # Errors
    /// The policy is refused, or another policy is read back.
    fn real_time(&mut self, priority: u32) -> io::Result<()>;

    /// Locks an amount of memory, in bytes, and gives it back.
    ///
    /// # Errors
    /// The lock is refused; see [`memory_lock::try_lock`].
    fn lock_memory(&mut self, bytes: usize) -> io::Result<()>;

    /// Opens a file for writing and closes it unwritten.
    ///
    /// # Errors
    /// The file does not exist, or opening it is not permitted.
    fn open_for_writing(&mut self, path: &Path) -> io::Result<()>;

    /// Asks the kernel whether a directory may be made in another one. To make one is no trial: in tracefs that is a
    /// trace instance, which takes buffers of each CPU and milliseconds.
    ///
    /// # Errors
    /// Making a directory is not permitted.
    fn may_make_directory(&mut self, parent: &Path) -> io::Result<()>;

    /// Counts cycles by the processor's own counter, for a moment.
    ///
    /// # Errors
    /// There is no such counter, or it is not permitted; see [`PerfEventCounter::cycles`].
    fn count_cycles(&mut self) -> io::Result<()>;
}

/// Trials on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Trials for ThisMachine {
    fn real_time(&mut self, priority: u32) -> io::Result<()> {
        // On a thread of its own: the policy ends with it.
        let thread = thread::Builder::new().spawn(move || {
            let requested = ThreadSchedPolicy::Fifo(priority);
            sched::set_policy(requested)?;
            match sched::policy()? {
                granted if granted == requested => Ok(()),
                other => Err(io::Error::other(format!("the kernel made it {other:?}"))),
            }
        })?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the trial's thread died")))
    }

    fn lock_memory(&mut self, bytes: usize) -> io::Result<()> {
        Ok(memory_lock::try_lock(bytes)?)
    }

    fn open_for_writing(&mut self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).open(path).map(drop)
    }

    fn may_make_directory(&mut self, parent: &Path) -> io::Result<()> {
        Ok(access(parent, Access::WRITE_OK | Access::EXEC_OK)?)
    }

    fn count_cycles(&mut self) -> io::Result<()> {
        PerfEventCounter::cycles().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn trials_leave_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        ThisMachine.may_make_directory(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        let file = directory.path().join("file");
        fs::write(&file, "kept").unwrap();
        ThisMachine.open_for_writing(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");

        let before = sched::policy().unwrap();
        let _permitted = ThisMachine.real_time(1).is_ok();
        assert_eq!(sched::policy().unwrap(), before);
    }

    #[test]
    fn refusals_are_errors() {
        assert!(ThisMachine.real_time(100).is_err());
        assert!(ThisMachine.open_for_writing(Path::new("/nonexistent/file")).is_err());
        assert!(ThisMachine.may_make_directory(Path::new("/nonexistent")).is_err());
        assert!(ThisMachine.lock_memory(0).is_err());
    }
}
