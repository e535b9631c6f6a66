//! Hand-over by futex(2) without a library between.

use super::wait::Wait;
use super::{Ends, TokenCounter, shared};
use latscope_os::futex::Tokens;
use latscope_os::shared_cell::Scope;
use std::io;

impl TokenCounter for Tokens {
    #[inline]
    fn give(&self) -> io::Result<()> {
        Tokens::give(self);
        Ok(())
    }

    #[inline]
    fn take(&self) {
        Tokens::take(self);
    }

    #[inline]
    fn try_take(&self) -> bool {
        Tokens::try_take(self)
    }
}

/// Two ends connected by two futexes.
///
/// # Errors
/// No memory or descriptors left.
pub fn pair<W: Wait>(scope: Scope) -> io::Result<Ends<Tokens, W>> {
    shared::pair(scope)
}
