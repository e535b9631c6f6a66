//! How the two sides of a link in shared memory wait for each other.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;

/// How a side waits for the other, and tells it.
pub trait Kicks {
    /// Tells the other side to look.
    ///
    /// # Errors
    /// The kernel refuses.
    fn kick(&self) -> io::Result<()>;

    /// Sleeps until the other side kicked, or at most so many ns. A kick is a
    /// hint: it may come early, twice, or for nothing.
    ///
    /// # Errors
    /// The kernel refuses.
    fn sleep(&self, ns: u64) -> io::Result<()>;

    /// How long one looks before one sleeps, ns: 0 for not at all, `u64::MAX` for ever.
    fn patience(&self) -> u64;

    /// What becomes readable by a kick, where it is a descriptor.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Looks until something is there; nobody is kicked.
#[derive(Debug)]
pub struct Spin;

impl Kicks for Spin {
    fn kick(&self) -> io::Result<()> {
        Ok(())
    }

    fn sleep(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn patience(&self) -> u64 {
        u64::MAX
    }
}

/// Sleeps on an eventfd.
#[derive(Debug)]
pub struct Eventfd {
    /// What the other side writes to.
    pub ours: OwnedFd,
    /// What this side writes to.
    pub theirs: OwnedFd,
}

impl Kicks for Eventfd {
    fn kick(&self) -> io::Result<()> {
        match rustix::io::write(&self.theirs, &1u64.to_ne_bytes()) {
            // A full counter is a kick, too.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn sleep(&self, ns: u64) -> io::Result<()> {
        if !readable(rustix::fd::AsFd::as_fd(&self.ours), ns)? {
            return Ok(());
        }
        match rustix::io::read(&self.ours, &mut [0u8; 8]) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn patience(&self) -> u64 {
        0
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(rustix::fd::AsFd::as_fd(&self.ours))
    }
}

/// Waits until a descriptor can be read or has ended, at most so many ns;
/// whether it can.
///
/// # Errors
/// The kernel refuses.
pub fn readable(descriptor: BorrowedFd<'_>, ns: u64) -> io::Result<bool> {
    let time = Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], Some(&time)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
