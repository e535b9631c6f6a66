//! Bytes over pipes and sockets: the kernel itself reports the end of the peer.

use super::{Notifier, without};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};
use std::io;
use std::time::Duration;

/// Side of two blocking descriptors: a notification is a byte.
#[derive(Debug)]
pub(crate) struct Bytes {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
}

impl Notifier for Bytes {
    #[inline]
    fn notify(&mut self) -> io::Result<()> {
        loop {
            match write(&self.output, &[0]) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[inline]
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        without(timeout)?;
        let mut byte = [0];
        loop {
            match read(&self.input, &mut byte) {
                Ok(1) => return Ok(true),
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
