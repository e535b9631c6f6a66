//! Two System V semaphores of a set: semop(2).

use super::{Notifier, without};
use latscope_os::system_v::change;
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// Side of a set of two semaphores: side 0 posts the first and side 1 the second.
#[derive(Debug)]
pub(crate) struct SystemVSemaphores {
    pub(crate) set: i32,
    pub(crate) side: u16,
}

/// A set that is not there any more was removed with the run.
#[cold]
fn map_removal_error(error: Errno) -> Errno {
    if error == Errno::INVAL { Errno::IDRM } else { error }
}

impl Notifier for SystemVSemaphores {
    #[inline]
    fn notify(&mut self) -> io::Result<()> {
        Ok(change(self.set, self.side, 1).map_err(map_removal_error)?)
    }

    #[inline]
    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        without(timeout)?;
        change(self.set, 1 - self.side, -1).map_err(map_removal_error)?;
        Ok(true)
    }
}
