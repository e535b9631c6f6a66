//! Hand-over by a pthread mutex and condition variable: the giver locks,
//! counts, unlocks and signals; the taker waits for the count under the mutex.

use super::wait::Wait;
use super::{Ends, TokenCounter, shared};
use latscope_os::monitor::Monitor;
use latscope_os::shared_cell::Scope;
use std::io;

impl TokenCounter for Monitor {
    #[inline]
    fn give(&self) -> io::Result<()> {
        Monitor::give(self);
        Ok(())
    }

    #[inline]
    fn take(&self) {
        Monitor::take(self);
    }

    #[inline]
    fn try_take(&self) -> bool {
        Monitor::try_take(self)
    }
}

/// Two ends connected by two condition variables, each with its mutex.
///
/// # Errors
/// No memory or descriptors left.
pub fn pair<W: Wait>(scope: Scope) -> io::Result<Ends<Monitor, W>> {
    shared::pair(scope)
}
