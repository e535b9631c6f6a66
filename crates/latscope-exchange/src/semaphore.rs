//! Hand-over by POSIX semaphores: sem_post(3), sem_wait(3).

use super::wait::Wait;
use super::{Ends, TokenCounter, shared};
use latscope_os::semaphore::Semaphore;
use latscope_os::shared_cell::Scope;
use std::io;

impl TokenCounter for Semaphore {
    #[inline]
    fn give(&self) -> io::Result<()> {
        self.post()
    }

    #[inline]
    fn take(&self) {
        self.wait();
    }

    #[inline]
    fn try_take(&self) -> bool {
        self.try_wait()
    }
}

/// Two ends connected by two unnamed semaphores.
///
/// # Errors
/// No memory or descriptors left.
pub fn pair<W: Wait>(scope: Scope) -> io::Result<Ends<Semaphore, W>> {
    shared::pair(scope)
}
