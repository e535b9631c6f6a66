//! Hand-over through shared memory alone: an atomic count that the receiver
//! watches. It never sleeps.

use super::wait::Spin;
use super::{Ends, TokenCounter, shared};
use latscope_os::shared_cell::Scope;
use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

impl TokenCounter for AtomicU64 {
    #[inline]
    fn give(&self) -> io::Result<()> {
        self.fetch_add(1, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn take(&self) {
        while !self.try_take() {
            spin_loop();
        }
    }

    #[inline]
    fn try_take(&self) -> bool {
        // Only one receiver takes: what it sees above zero stays there.
        let tokens = self.load(Ordering::Acquire) > 0;
        if tokens {
            self.fetch_sub(1, Ordering::Relaxed);
        }
        tokens
    }
}

/// Two ends connected by two counts.
///
/// # Errors
/// No memory or descriptors left.
pub fn pair(scope: Scope) -> io::Result<Ends<AtomicU64, Spin>> {
    shared::pair(scope)
}
