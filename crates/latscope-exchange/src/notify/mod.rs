//! Waking a peer and waiting to be woken by it: one trait, and one file a means.
//! Links between threads, transports between processes and remotes use these.

pub mod counter;
pub mod eventfd;
pub(crate) mod futex;
pub(crate) mod io_uring;
pub(crate) mod signal;
pub(crate) mod stream;
pub(crate) mod system_v;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// Side of a pair that notifies each other.
pub trait Notifier {
    /// Wakes the peer, or makes its next wait return at once.
    ///
    /// # Errors
    /// The kernel refuses, or the peer is known to be gone.
    fn notify(&mut self) -> io::Result<()>;

    /// Sleeps until the peer notifies, takes that and returns true. With a timeout
    /// it may return false before, and of zero it never sleeps.
    ///
    /// # Errors
    /// The errors of [`notify`](Notifier::notify); `Unsupported`: this notifier has no timeout.
    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool>;

    /// Returns the descriptor that a notification makes readable, where there is one.
    fn poll_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Upper bound on one wait, for notifiers whose waits all have a timeout.
pub(crate) const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Refuses a timeout, on behalf of notifiers whose waits have none.
#[inline]
fn without(timeout: Option<Duration>) -> io::Result<()> {
    timeout.map_or(Ok(()), |_| Err(io::ErrorKind::Unsupported.into()))
}

/// Waits until a descriptor can be read or has ended, at most so long; whether it can.
///
/// # Errors
/// The kernel refuses.
#[inline]
pub fn readable(descriptor: impl AsFd, timeout: impl Into<Option<Duration>>) -> io::Result<bool> {
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], timeout)
}

/// Waits until one of the descriptors is ready, for at most the timeout. Returns true if one is ready. A signal ends
/// the wait.
///
/// # Errors
/// The kernel refuses.
#[inline]
pub fn poll(watched: &mut [PollFd], timeout: impl Into<Option<Duration>>) -> io::Result<bool> {
    let time = |time: Duration| Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ };
    match rustix::event::poll(watched, timeout.into().map(time).as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
