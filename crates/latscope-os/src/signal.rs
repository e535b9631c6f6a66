//! Signals as readable events (signalfd(2)), for a loop that waits for several things.

use crate::syscall::{check_errno, check_number, signal_set};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;

/// The signals that end a run: from a terminal, a time limit, a service manager.
pub const TERMINATION: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The signal of a child that ended, was stopped or went on.
pub const CHILD: i32 = libc::SIGCHLD;

/// The name of a signal of [`TERMINATION`], and `signal N` of another.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGINT => "SIGINT",
        libc::SIGTERM => "SIGTERM",
        libc::SIGHUP => "SIGHUP",
        libc::SIGQUIT => "SIGQUIT",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

/// A set of signals that are blocked for this thread and read from a descriptor instead.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks `signals` in the calling thread and those it will create, and
    /// opens a descriptor on which they arrive.
    ///
    /// # Errors
    /// Out of descriptors, or refused by a seccomp filter.
    pub fn block(signals: &[i32]) -> io::Result<SignalFd> {
        block_signals(signals)?;
        // SAFETY: the call only reads the set.
        let fd = unsafe { libc::signalfd(-1, &signal_set(signals), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        let fd = check_errno(fd)?;
        // SAFETY: signalfd returned a new descriptor without another owner.
        Ok(SignalFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The number of the next signal that arrived, if any.
    ///
    /// # Errors
    /// The descriptor cannot be read.
    pub fn next(&self) -> io::Result<Option<i32>> {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.0, &mut info) {
            Ok(_) => Ok(Some(i32::from_ne_bytes([info[0], info[1], info[2], info[3]]))),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for SignalFd {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

fn mask(how: i32, signals: &[i32]) -> io::Result<()> {
    // SAFETY: the call only reads the set.
    check_number(unsafe { libc::pthread_sigmask(how, &signal_set(signals), std::ptr::null_mut()) })
}

/// Blocks signals in the calling thread and those it will create: they wait for [`SignalFd`], or for
/// [`unblock_signals`].
///
/// # Errors
/// Refused by a seccomp filter.
pub fn block_signals(signals: &[i32]) -> io::Result<()> {
    mask(libc::SIG_BLOCK, signals)
}

/// Delivers signals again, and those that were [held](block_signals).
///
/// # Errors
/// Refused by a seccomp filter.
pub fn unblock_signals(signals: &[i32]) -> io::Result<()> {
    mask(libc::SIG_UNBLOCK, signals)
}

/// Returns the first of these signals that waits to be delivered to this process or thread, since it is blocked.
pub fn pending(signals: &[i32]) -> Option<i32> {
    let mut set = signal_set(&[]);
    // SAFETY: the call writes a set.
    if unsafe { libc::sigpending(&mut set) } != 0 {
        return None;
    }
    // SAFETY: the set is only read.
    signals.iter().copied().find(|signal| unsafe { libc::sigismember(&set, *signal) } == 1)
}

/// Ignores a signal in the whole process; children that are executed inherit that.
pub fn ignore(signal: i32) {
    // SAFETY: SIG_IGN installs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_arrives_on_the_descriptor() {
        std::thread::spawn(|| {
            let signals = SignalFd::block(&[libc::SIGUSR2]).unwrap();
            assert_eq!(signals.next().unwrap(), None);
            assert_eq!(pending(&[libc::SIGUSR1, libc::SIGUSR2]), None);
            // SAFETY: raise() sends to the calling thread, where the signal is blocked.
            unsafe { libc::raise(libc::SIGUSR2) };
            assert_eq!(pending(&[libc::SIGUSR1, libc::SIGUSR2]), Some(libc::SIGUSR2));
            assert_eq!(signals.next().unwrap(), Some(libc::SIGUSR2));
            assert_eq!(pending(&[libc::SIGUSR2]), None);
        })
        .join()
        .unwrap();
    }
}
