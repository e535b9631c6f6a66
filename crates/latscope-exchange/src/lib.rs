//! The mechanisms by which two endpoints hand over, one file each.
//!
//! A mechanism offers two connected ends; each is a [`Link`] on which tokens
//! are sent and received, and with an [`echo`] on the other side a [`Call`].
//! How a receiver waits is a type parameter ([`wait`]). All of them hold what
//! the conformance suite (`conformance`) asks: no token is lost, what was
//! written before a `send` is seen after the `recv`, a blocking `recv` sleeps,
//! and the end of one endpoint ends the waiting of the other.
//!
//! Ends refer to descriptors only, or to a [`SharedCell`] behind a descriptor,
//! so that the two can as well be in two processes.
//!
//! [`SharedCell`]: latscope_os::shared_cell::SharedCell
#![forbid(unsafe_code)]

pub mod binder;
pub mod condvar;
#[cfg(test)]
mod conformance;
pub mod eventfd;
pub mod futex;
pub mod pipe;
pub mod remote;
pub mod semaphore;
mod shared;
#[cfg(test)]
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;
pub mod spin;
mod stream;
pub mod transaction;
pub mod transports;
pub mod unix_stream;
pub mod wait;

pub use shared::{Ends, Lanes, SharedEnd, TokenCounter};
pub use stream::StreamEnd;

/// The other endpoint is gone and everything it sent has been received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other endpoint is gone")]
pub struct Closed;

/// One end of a two-way connection over which tokens go.
pub trait Link: Send {
    /// Hands a token to the other endpoint, waking it if it waits.
    ///
    /// # Errors
    /// [`Closed`] when the other endpoint is known to be gone; a token it never
    /// received is lost with it.
    fn send(&mut self) -> Result<(), Closed>;

    /// Receives a token, waiting for it.
    ///
    /// # Errors
    /// [`Closed`] when the other endpoint is gone and all its tokens are received.
    fn recv(&mut self) -> Result<(), Closed>;
}

/// A request with an answer.
pub trait Call: Send {
    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// [`Closed`] when the other endpoint is gone.
    fn call(&mut self) -> Result<(), Closed>;
}

impl<L: Link> Call for L {
    #[inline]
    fn call(&mut self) -> Result<(), Closed> {
        self.send()?;
        self.recv()
    }
}

/// Answers each token with one, until the other endpoint is gone.
pub fn echo(mut link: impl Link) {
    while link.recv().is_ok() && link.send().is_ok() {}
}
