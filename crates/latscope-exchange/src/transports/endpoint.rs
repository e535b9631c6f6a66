//! Common part of the clients and servers of all mechanisms: messages go both ways, and a transaction is a message
//! there and a message back.

use super::LARGEST;
use crate::transaction::{
    EndpointHandle, EndpointPair, HandlerReply, IpcTransport, RequestHandler, TransactionClient,
    TransactionFailure, TransactionServer, TransportSetupError,
};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};

/// End, in one process, of a mechanism that carries messages both ways.
pub(super) trait MessageEndpoint: Send + Sized + 'static {
    /// True if messages can be sent ahead of the receiver.
    const QUEUES: bool;

    /// Number of copies of a message: usually to a place that the other process can access, and from there.
    const COPIES: u32 = 2;

    /// Makes the endpoint from the descriptors and words passed to the process.
    fn from_handle(handle: EndpointHandle, side: EndpointSide) -> Result<Self, TransactionFailure>;

    /// Hands a message to the other endpoint.
    fn send_message(&mut self, message: &[u8]) -> Result<(), TransactionFailure>;

    /// Waits for a message, puts as much of it into `buffer` as fits and
    /// returns its length.
    fn receive_message(&mut self, buffer: &mut [u8]) -> Result<usize, TransactionFailure>;
}

/// The client's end over any mechanism.
struct MessageEndpointClient<P> {
    endpoint: P,
    limit: usize,
}

impl<P: MessageEndpoint> TransactionClient for MessageEndpointClient<P> {
    #[inline]
    fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, TransactionFailure> {
        check_length(request, self.limit)?;
        self.endpoint.send_message(request)?;
        let length = self.endpoint.receive_message(reply)?;
        if length > reply.len() {
            return Err(TransactionFailure::Refused(format!(
                "an answer of {length} bytes came where {} were expected",
                reply.len()
            )));
        }
        Ok(length)
    }

    fn send_one_way(&mut self, request: &[u8]) -> Option<Result<(), TransactionFailure>> {
        P::QUEUES
            .then(|| check_length(request, self.limit).and_then(|()| self.endpoint.send_message(request)))
    }
}

/// The server's end over any mechanism.
struct Answering<P> {
    endpoint: P,
    limit: usize,
    buffer: Vec<u8>,
}

impl<P: MessageEndpoint> TransactionServer for Answering<P> {
    fn serve_requests(&mut self, service: &mut dyn RequestHandler) -> Result<(), TransactionFailure> {
        loop {
            match self.answer_one(service) {
                Ok(()) => {}
                Err(TransactionFailure::Gone) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }
}

impl<P: MessageEndpoint> Answering<P> {
    #[inline]
    fn answer_one(&mut self, service: &mut dyn RequestHandler) -> Result<(), TransactionFailure> {
        let length = self.endpoint.receive_message(&mut self.buffer)?;
        let request = self.buffer.get(..length).ok_or_else(|| {
            TransactionFailure::Broken(format!(
                "a request of {length} bytes came where {} are the most",
                self.limit
            ))
        })?;
        let answer = match service.handle_request(request) {
            HandlerReply::Echo => request,
            HandlerReply::Bytes(bytes) => bytes,
            HandlerReply::None => return Ok(()),
        };
        check_length(answer, self.limit)?;
        self.endpoint.send_message(answer)
    }
}

#[inline]
fn check_length(message: &[u8], limit: usize) -> Result<(), TransactionFailure> {
    if message.is_empty() || message.len() > limit {
        return Err(TransactionFailure::Refused(format!(
            "a message of {} bytes: this endpoint pair is for 1 to {limit}",
            message.len()
        )));
    }
    Ok(())
}

/// Side of a process, in mechanisms that are alike for both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndpointSide {
    Client = 0,
    Server = 1,
}

impl EndpointSide {
    pub(super) fn own_index(self) -> usize {
        self as usize
    }

    pub(super) fn other_index(self) -> usize {
        1 - self as usize
    }
}

/// A transport whose two ends are such endpoints.
pub(super) const fn transport<P: MessageEndpoint>(
    name: &'static str,
    title: &'static str,
    source: &'static str,
    open: fn(usize) -> Result<EndpointPair, TransportSetupError>,
) -> IpcTransport {
    IpcTransport {
        name,
        title,
        source,
        copies: P::COPIES,
        spins: false,
        inheritance: None,
        max_payload: LARGEST,
        open,
        server: |handle| {
            let (limit, buffer) = (handle.payload, vec![0; handle.payload]);
            Ok(Box::new(Answering { endpoint: P::from_handle(handle, EndpointSide::Server)?, limit, buffer }))
        },
        client: |handle| {
            let limit = handle.payload;
            Ok(Box::new(MessageEndpointClient {
                endpoint: P::from_handle(handle, EndpointSide::Client)?,
                limit,
            }))
        },
    }
}

/// The descriptors that were handed over, as many as the mechanism has.
pub(super) fn descriptors<const N: usize>(
    handle: &mut EndpointHandle,
) -> Result<[OwnedFd; N], TransactionFailure> {
    let descriptors = std::mem::take(&mut handle.descriptors);
    descriptors.try_into().map_err(|got: Vec<OwnedFd>| {
        TransactionFailure::Broken(format!("{} descriptors were handed over instead of {N}", got.len()))
    })
}

/// The numbers that were handed over.
pub(super) fn parse_numbers<T: std::str::FromStr, const N: usize>(
    handle: &EndpointHandle,
) -> Result<[T; N], TransactionFailure> {
    let numbers: Vec<T> = handle.words.iter().map_while(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| TransactionFailure::Broken(format!("not {N} numbers: {:?}", handle.words)))
}

/// An endpoint pair of nothing but descriptors.
pub(super) fn endpoint_pair(server: Vec<OwnedFd>, client: Vec<OwnedFd>) -> EndpointPair {
    EndpointPair { server, client, words: Vec::new(), leftovers: Default::default(), kept: None }
}

/// Returns the failure of the transaction that an error number of a transfer stands for.
#[cold]
pub(super) fn failure_from_errno(error: Errno) -> TransactionFailure {
    match error {
        Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::NOTCONN | Errno::IDRM | Errno::SRCH => {
            TransactionFailure::Gone
        }
        Errno::MSGSIZE | Errno::NOBUFS => {
            TransactionFailure::Refused(std::io::Error::from(error).to_string())
        }
        error => TransactionFailure::Broken(std::io::Error::from(error).to_string()),
    }
}

/// Returns the failure of an end that could not be made from the passed descriptors and words.
pub(super) fn broken_failure(error: impl Display) -> TransactionFailure {
    TransactionFailure::Broken(error.to_string())
}

/// A name that no process can have taken before.
pub(super) fn random_name() -> String {
    format!("latscope-{:016x}", RandomState::new().build_hasher().finish())
}

/// Returns the error of a mechanism that could not be set up.
pub(super) fn unavailable(what: &str, error: impl Display, remedy: &str) -> TransportSetupError {
    TransportSetupError { reason: format!("{what}: {error}"), remedy: remedy.to_string() }
}

/// Remedy for a lack of descriptors or memory.
pub(super) const MORE_DESCRIPTORS: &str = "allow more open files (ulimit -n) and memory";
