//! Transactions between two processes: a request with bytes, an answer with
//! bytes.
//!
//! A [`Transport`] is a mechanism that can carry them. The process that starts the two
//! processes [opens](Transport::open) it and gets a [`EndpointPair`]: descriptors
//! and words that are handed to the server's and to the client's process, where
//! the two ends are made of it. What an endpoint pair names outside of its descriptors
//! (a queue, a segment, a mount) goes when [`EndpointPair::leftovers`] are dropped;
//! the caller journals them before the processes start, for the case that it
//! is killed.
//!
//! An endpoint learns of the end of the other by the end of its descriptors.
//! No other process may hold them: the one that starts the two processes lets them
//! *inherit* their descriptors (those of io_uring cannot be sent over a
//! socket) and closes its own copies.

use latscope_host::leftover::Leftovers;
use rustix::fd::OwnedFd;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Why a transport cannot be used here, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// What is missing or refused.
    pub reason: String,
    /// What mends it; empty where nothing does.
    pub remedy: String,
}

/// Why a transaction failed. It is counted apart and never a latency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The other endpoint is gone.
    #[error("the other endpoint is gone")]
    Gone,
    /// The transport refused this one; the next may succeed.
    #[error("{0}")]
    Refused(String),
    /// The transport itself does not work any more.
    #[error("{0}")]
    Broken(String),
}

/// What a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The bytes of the request, from where they are.
    Echo,
    /// These bytes.
    Bytes(&'a [u8]),
    /// Nothing: the request was one way.
    None,
}

/// What a server does with a request.
pub trait Service {
    /// Answers a request.
    fn answer(&mut self, request: &[u8]) -> Answer<'_>;
}

/// The server's end.
pub trait Server {
    /// Answers requests until the client is gone, which is no failure.
    ///
    /// # Errors
    /// The transport does not work any more, or refused an answer (too long).
    fn serve(&mut self, service: &mut dyn Service) -> Result<(), Failure>;
}

/// The client's end; one thread at a time uses it.
pub trait Client: Send {
    /// Sends `request`, waits for the answer, puts it into `reply` and returns
    /// its length. Signals do not end the wait.
    ///
    /// # Errors
    /// See [`Failure`]. A request that is empty or longer than the endpoint pair was
    /// opened for is [`Failure::Refused`], and so is an answer for which
    /// `reply` is too short.
    fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, Failure>;

    /// The same, but the answer may stay where it came, until the next call: a
    /// transport that brings it into this process needs no further copy.
    ///
    /// # Errors
    /// As [`call`](Client::call).
    fn ask<'a>(&'a mut self, request: &[u8], room: &'a mut [u8]) -> Result<&'a [u8], Failure> {
        let length = self.call(request, room)?;
        Ok(&room[..length])
    }

    /// Sends `request` and does not wait for anything; `None` where the
    /// transport has no such thing.
    fn send(&mut self, request: &[u8]) -> Option<Result<(), Failure>> {
        let _ = request;
        None
    }

    /// An end for one more thread of the client's process, where the transport
    /// ties ends to threads; `None` where this end may move between threads.
    ///
    /// # Errors
    /// No end is left.
    fn another(&self) -> Option<Result<Box<dyn Client>, Failure>> {
        None
    }
}

/// The endpoints of a transport, for two processes.
#[derive(Debug)]
pub struct EndpointPair {
    /// For the server's process, in this order.
    pub server: Vec<OwnedFd>,
    /// For the client's process, in this order.
    pub client: Vec<OwnedFd>,
    /// Names, numbers: whatever both need to know.
    pub words: Vec<String>,
    /// What does not die with its holders; removed when dropped.
    pub leftovers: Leftovers,
    /// What has to live as long as the endpoint pair, and ends with it.
    pub kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl EndpointPair {
    /// One at which only words are handed, to the client.
    pub fn of_words(words: Vec<String>) -> EndpointPair {
        EndpointPair {
            server: Vec::new(),
            client: Vec::new(),
            words,
            leftovers: Leftovers::none(),
            kept: None,
        }
    }
}

/// A mechanism that carries transactions.
pub struct Transport {
    /// Its name on the command line and in probe ids: `unix-stream`.
    pub name: &'static str,
    /// What a reader calls it.
    pub title: &'static str,
    /// Where its semantics come from: a man page.
    pub source: &'static str,
    /// How often the payload is copied on its way there, the sender's and the
    /// receiver's own buffers being where it begins and ends.
    pub copies: u32,
    /// Whether waiting is spinning: such a transport keeps CPUs busy.
    pub spins: bool,
    /// By what means the server could inherit the caller's priority; `None`
    /// where there is none.
    pub inheritance: Option<&'static str>,
    /// Largest payload, bytes.
    pub max_payload: usize,
    /// Makes an endpoint pair for payloads up to this many bytes; called through
    /// [`endpoint_pair`](Transport::endpoint_pair), which knows the limit.
    pub open: fn(usize) -> Result<EndpointPair, Unavailable>,
    /// Makes the server's end, in its process.
    pub server: fn(EndpointHandle) -> Result<Box<dyn Server>, Failure>,
    /// Makes the client's end, in its process.
    pub client: fn(EndpointHandle) -> Result<Box<dyn Client>, Failure>,
}

/// One process's share of an endpoint pair.
#[derive(Debug)]
pub struct EndpointHandle {
    /// The descriptors, in the order of the endpoint pair.
    pub descriptors: Vec<OwnedFd>,
    /// The words of the endpoint pair.
    pub words: Vec<String>,
    /// Largest payload, bytes.
    pub payload: usize,
}

impl Transport {
    /// An endpoint pair for payloads of up to `payload` bytes.
    ///
    /// # Errors
    /// The payload is over the limit, or what [`Transport::open`] says.
    pub fn endpoint_pair(&self, payload: usize) -> Result<EndpointPair, Unavailable> {
        if payload == 0 || payload > self.max_payload {
            return Err(Unavailable {
                reason: format!(
                    "{} carries 1 to {} bytes at once, not {payload}",
                    self.title, self.max_payload
                ),
                remedy: String::from("choose another payload"),
            });
        }
        (self.open)(payload)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("name", &self.name).finish_non_exhaustive()
    }
}
