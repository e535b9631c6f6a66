//! Transactions between two processes: a request with bytes, an answer with
//! bytes.
//!
//! A [`IpcTransport`] is a mechanism that can carry them. The process that starts the two
//! processes [opens](IpcTransport::open) it and gets a [`EndpointPair`]: descriptors
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

use latscope_process::leftover::Leftovers;
use rustix::fd::OwnedFd;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Reason why a transport cannot be used here, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TransportSetupError {
    /// Missing or refused resource, in words.
    pub reason: String,
    /// Remedy for it; empty where there is none.
    pub remedy: String,
}

/// Reason why a transaction failed. A failed transaction is counted apart and never as a latency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransactionFailure {
    /// The other endpoint no longer exists.
    #[error("the other endpoint is gone")]
    Gone,
    /// The transport refused this one; the next may succeed.
    #[error("{0}")]
    Refused(String),
    /// The transport itself does not work any more.
    #[error("{0}")]
    Broken(String),
}

/// Answer of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerReply<'a> {
    /// The bytes of the request, from where they are.
    Echo,
    /// Bytes other than those of the request.
    Bytes(&'a [u8]),
    /// No bytes: the request was one way.
    None,
}

/// Processing of requests by a server.
pub trait RequestHandler {
    /// Returns the answer to `request`.
    fn handle_request(&mut self, request: &[u8]) -> HandlerReply<'_>;
}

/// Endpoint of the server.
pub trait TransactionServer {
    /// Answers requests until the client ends, which is no failure.
    ///
    /// # Errors
    /// The transport does not work any more, or refused an answer (too long).
    fn serve_requests(&mut self, service: &mut dyn RequestHandler) -> Result<(), TransactionFailure>;
}

/// Endpoint of the client; one thread at a time uses it.
pub trait TransactionClient: Send {
    /// Sends `request`, waits for the answer, puts it into `reply` and returns
    /// its length. Signals do not end the wait.
    ///
    /// # Errors
    /// See [`TransactionFailure`]. A request that is empty or longer than the endpoint pair was
    /// opened for is [`TransactionFailure::Refused`], and so is an answer for which
    /// `reply` is too short.
    fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, TransactionFailure>;

    /// Makes a call like [`call`](TransactionClient::call), but the answer may stay where it arrived, until the next
    /// call: a transport that brings it into this process needs no further copy.
    ///
    /// # Errors
    /// The errors of [`call`](TransactionClient::call).
    fn call_in_place<'a>(
        &'a mut self,
        request: &[u8],
        room: &'a mut [u8],
    ) -> Result<&'a [u8], TransactionFailure> {
        let length = self.call(request, room)?;
        Ok(&room[..length])
    }

    /// Sends `request` and does not wait for anything; `None` where the
    /// transport has no such thing.
    fn send_one_way(&mut self, request: &[u8]) -> Option<Result<(), TransactionFailure>> {
        let _ = request;
        None
    }

    /// An end for one more thread of the client's process, where the transport
    /// ties ends to threads; `None` where this end may move between threads.
    ///
    /// # Errors
    /// No end is left.
    fn clone_for_thread(&self) -> Option<Result<Box<dyn TransactionClient>, TransactionFailure>> {
        None
    }
}

/// The endpoints of a transport, for two processes.
#[derive(Debug)]
pub struct EndpointPair {
    /// Descriptors for the server's process, in this order.
    pub server: Vec<OwnedFd>,
    /// Descriptors for the client's process, in this order.
    pub client: Vec<OwnedFd>,
    /// Names, numbers and other values that both processes need.
    pub words: Vec<String>,
    /// Objects that outlive their holders; removed when dropped.
    pub leftovers: Leftovers,
    /// Value that has to live as long as the endpoint pair, and is dropped with it.
    pub kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl EndpointPair {
    /// Returns an endpoint pair that passes only words, to the client.
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
pub struct IpcTransport {
    /// Name on the command line and in probe ids: `unix-stream`.
    pub name: &'static str,
    /// Name for readers of reports.
    pub title: &'static str,
    /// Source of the semantics: a man page.
    pub source: &'static str,
    /// Number of copies of the payload on its way from the sender's own buffer to the receiver's own buffer.
    pub copies: u32,
    /// True if waiting is spinning: such a transport keeps CPUs busy.
    pub spins: bool,
    /// Means by which the server could inherit the caller's priority; `None` where there is none.
    pub inheritance: Option<&'static str>,
    /// Size of the largest payload, bytes.
    pub max_payload: usize,
    /// Makes an endpoint pair for payloads up to this many bytes; called through
    /// [`endpoint_pair`](IpcTransport::endpoint_pair), which knows the limit.
    pub open: fn(usize) -> Result<EndpointPair, TransportSetupError>,
    /// Makes the server's end, in its process.
    pub server: fn(EndpointHandle) -> Result<Box<dyn TransactionServer>, TransactionFailure>,
    /// Makes the client's end, in its process.
    pub client: fn(EndpointHandle) -> Result<Box<dyn TransactionClient>, TransactionFailure>,
}

/// Share of one process in an endpoint pair.
#[derive(Debug)]
pub struct EndpointHandle {
    /// The descriptors, in the order of the endpoint pair.
    pub descriptors: Vec<OwnedFd>,
    /// The words of the endpoint pair.
    pub words: Vec<String>,
    /// Size of the largest payload, bytes.
    pub payload: usize,
}

impl IpcTransport {
    /// An endpoint pair for payloads of up to `payload` bytes.
    ///
    /// # Errors
    /// The payload is over the limit, or [`IpcTransport::open`] fails.
    pub fn endpoint_pair(&self, payload: usize) -> Result<EndpointPair, TransportSetupError> {
        if payload == 0 || payload > self.max_payload {
            return Err(TransportSetupError {
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

impl fmt::Debug for IpcTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("name", &self.name).finish_non_exhaustive()
    }
}
