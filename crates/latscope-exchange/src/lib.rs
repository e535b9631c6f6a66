//! The mechanisms by which two endpoints hand over.
//!
//! [`notify`] wakes a peer: a trait, with one file a means. Over it are [`links`]
//! between threads, on which tokens are sent and received ([`TokenLink`]) and, with an
//! [`echo`] on the other side, calls are made ([`RoundTripCall`]); [`transports`] between
//! processes, which carry bytes; and ways to [`remote`] operating systems.
//!
//! Links hold what the conformance suite (`conformance`) asks: no token is lost, what
//! was written before a `send_token` is seen after the `receive_token`, a `receive_token` sleeps, and the end
//! of one endpoint ends the waiting of the other.
#![forbid(unsafe_code)]

pub mod binder;
#[cfg(test)]
mod conformance;
pub mod links;
pub mod notify;
pub mod remote;
#[cfg(test)]
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;
pub mod transaction;
pub mod transports;

/// The roles of processes that this crate starts.
pub const ROLES: &[latscope_process::role::ProcessRole] = &[remote::shm::ROLE];

/// The other endpoint no longer exists, and everything it sent has been received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other endpoint is gone")]
pub struct Closed;

/// Endpoint of a two-way connection that carries tokens.
pub trait TokenLink: Send {
    /// Sends a token to the other endpoint, waking it if it waits.
    ///
    /// # Errors
    /// [`Closed`] when the other endpoint is known to be gone; a token it never
    /// received is lost with it.
    fn send_token(&mut self) -> Result<(), Closed>;

    /// Receives a token, waiting for it.
    ///
    /// # Errors
    /// [`Closed`] when the other endpoint is gone and all its tokens are received.
    fn receive_token(&mut self) -> Result<(), Closed>;
}

/// A request with an answer.
pub trait RoundTripCall: Send {
    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// [`Closed`] when the other endpoint is gone.
    fn call(&mut self) -> Result<(), Closed>;
}

impl<L: TokenLink> RoundTripCall for L {
    #[inline]
    fn call(&mut self) -> Result<(), Closed> {
        self.send_token()?;
        self.receive_token()
    }
}

/// Answers each token with a token, until the other endpoint ends.
pub fn echo(mut link: impl TokenLink) {
    while link.receive_token().is_ok() && link.send_token().is_ok() {}
}
