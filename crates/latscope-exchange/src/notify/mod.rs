//! Waking a peer and waiting to be woken by it: one trait, and one file a means.
//! Links between threads, transports between processes and remotes use these.

pub mod counter;
pub(crate) mod eventfd;
pub(crate) mod futex;
pub(crate) mod io_uring;
pub(crate) mod signal;
pub(crate) mod stream;
pub(crate) mod system_v;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// One side of a pair that notifies each other.
pub trait Notifier {
    /// Wakes the peer, or lets its next wait return at once.
    ///
    /// # Errors
    /// The kernel refuses, or the peer is known to be gone.
    fn notify(&mut self) -> io::Result<()>;

    /// Sleeps until the peer notifies, takes that and returns true. With a timeout
    /// it may return false before, and of zero it never sleeps.
    ///
    /// # Errors
    /// As [`notify`](Notifier::notify); `Unsupported`: this means has no timeout.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool>;

    /// What becomes readable by a notification, where it is a descriptor.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Refuses a timeout, for means whose waits have none.
#[inline]
fn without(timeout: Option<Duration>) -> io::Result<()> {
    timeout.map_or(Ok(()), |_| Err(io::ErrorKind::Unsupported.into()))
}

/// Waits until a descriptor can be read or has ended, at most so long; whether it can.
/// A signal ends the wait.
///
/// # Errors
/// The kernel refuses.
#[inline]
pub fn readable(descriptor: impl AsFd, timeout: Duration) -> io::Result<bool> {
    let time = Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ };
    match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&time)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
