//! Notification by event descriptors: eventfd(2).

use super::{Notifier, readable};
use rustix::event::EventfdFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, read, retry_on_intr, write};
use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Side of two event descriptors.
#[derive(Debug)]
pub struct Eventfd {
    pub(crate) input: OwnedFd,
    output: OwnedFd,
}

/// Two descriptors, in the order of the sides that write to them.
pub(crate) fn create_pair(flags: EventfdFlags) -> io::Result<[OwnedFd; 2]> {
    let eventfd = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | flags);
    Ok([eventfd()?, eventfd()?])
}

impl Eventfd {
    /// Makes side 0 or 1 from the descriptors that `create_pair` returned.
    pub fn new([first, second]: [OwnedFd; 2], side: usize) -> Eventfd {
        match side {
            0 => Eventfd { output: first, input: second },
            _ => Eventfd { output: second, input: first },
        }
    }
}

/// Adds one. A full counter wakes, too.
#[inline]
pub(crate) fn signal(event: &OwnedFd) -> io::Result<()> {
    match retry_on_intr(|| write(event, &1u64.to_ne_bytes())) {
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Notifier for Eventfd {
    #[inline]
    fn notify(&mut self) -> io::Result<()> {
        signal(&self.output)
    }

    #[inline]
    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        if timeout.is_some() && !readable(&self.input, timeout)? {
            return Ok(false);
        }
        let mut count = [0; 8];
        match retry_on_intr(|| read(&self.input, &mut count)) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn poll_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.input.as_fd())
    }
}

/// Side of two event descriptors that block, by read and write of the C library.
#[derive(Debug)]
pub struct EventfdByLibc {
    pub(crate) input: File,
    pub(crate) output: File,
}

impl Notifier for EventfdByLibc {
    #[inline]
    fn notify(&mut self) -> io::Result<()> {
        self.output.write_all(&1u64.to_ne_bytes())
    }

    #[inline]
    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        if timeout.is_some() && !readable(&self.input, timeout)? {
            return Ok(false);
        }
        self.input.read_exact(&mut [0; 8])?;
        Ok(true)
    }

    fn poll_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.input.as_fd())
    }
}
