//! Bytes over pipes and sockets: the kernel itself reports the end of the peer.

use super::{Notifier, without};
use rustix::fd::OwnedFd;
use rustix::io::{read, retry_on_intr, write};
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
        retry_on_intr(|| write(&self.output, &[0]))?;
        Ok(())
    }

    #[inline]
    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        without(timeout)?;
        let mut byte = [0];
        match retry_on_intr(|| read(&self.input, &mut byte))? {
            1 => Ok(true),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
