//! Common part of the clients and servers of all mechanisms: messages go both ways, and a transaction is a message
//! there and a message back.

use super::LARGEST;
use crate::transaction::{
    Answer, Client, EndpointHandle, EndpointPair, Failure, Server, Service, Transport, Unavailable,
};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};

/// End, in one process, of a mechanism that carries messages both ways.
pub(super) trait Endpoint: Send + Sized + 'static {
    /// True if messages can be sent ahead of the receiver.
    const QUEUES: bool;

    /// Number of copies of a message: usually to a place that the other process can access, and from there.
    const COPIES: u32 = 2;

    /// Makes the endpoint from the descriptors and words passed to the process.
    fn join(handle: EndpointHandle, side: Side) -> Result<Self, Failure>;

    /// Hands a message to the other endpoint.
    fn put(&mut self, message: &[u8]) -> Result<(), Failure>;

    /// Waits for a message, puts as much of it into `buffer` as fits and
    /// returns its length.
    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, Failure>;
}

/// The client's end over any mechanism.
struct Asking<P> {
    endpoint: P,
    limit: usize,
}

impl<P: Endpoint> Client for Asking<P> {
    #[inline]
    fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, Failure> {
        check_length(request, self.limit)?;
        self.endpoint.put(request)?;
        let length = self.endpoint.take(reply)?;
        if length > reply.len() {
            return Err(Failure::Refused(format!(
                "an answer of {length} bytes came where {} were expected",
                reply.len()
            )));
        }
        Ok(length)
    }

    fn send(&mut self, request: &[u8]) -> Option<Result<(), Failure>> {
        P::QUEUES.then(|| check_length(request, self.limit).and_then(|()| self.endpoint.put(request)))
    }
}

/// The server's end over any mechanism.
struct Answering<P> {
    endpoint: P,
    limit: usize,
    buffer: Vec<u8>,
}

impl<P: Endpoint> Server for Answering<P> {
    fn serve(&mut self, service: &mut dyn Service) -> Result<(), Failure> {
        loop {
            match self.answer_one(service) {
                Ok(()) => {}
                Err(Failure::Gone) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }
}

impl<P: Endpoint> Answering<P> {
    #[inline]
    fn answer_one(&mut self, service: &mut dyn Service) -> Result<(), Failure> {
        let length = self.endpoint.take(&mut self.buffer)?;
        let request = self.buffer.get(..length).ok_or_else(|| {
            Failure::Broken(format!("a request of {length} bytes came where {} are the most", self.limit))
        })?;
        let answer = match service.answer(request) {
            Answer::Echo => request,
            Answer::Bytes(bytes) => bytes,
            Answer::None => return Ok(()),
        };
        check_length(answer, self.limit)?;
        self.endpoint.put(answer)
    }
}

#[inline]
fn check_length(message: &[u8], limit: usize) -> Result<(), Failure> {
    if message.is_empty() || message.len() > limit {
        return Err(Failure::Refused(format!(
            "a message of {} bytes: this endpoint pair is for 1 to {limit}",
            message.len()
        )));
    }
    Ok(())
}

/// Side of a process, in mechanisms that are alike for both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    pub(super) fn own(self) -> usize {
        self as usize
    }

    pub(super) fn other(self) -> usize {
        1 - self as usize
    }
}

/// A transport whose two ends are such endpoints.
pub(super) const fn transport<P: Endpoint>(
    name: &'static str,
    title: &'static str,
    source: &'static str,
    open: fn(usize) -> Result<EndpointPair, Unavailable>,
) -> Transport {
    Transport {
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
            Ok(Box::new(Answering { endpoint: P::join(handle, Side::Server)?, limit, buffer }))
        },
        client: |handle| {
            let limit = handle.payload;
            Ok(Box::new(Asking { endpoint: P::join(handle, Side::Client)?, limit }))
        },
    }
}

/// The descriptors that were handed over, as many as the mechanism has.
pub(super) fn descriptors<const N: usize>(handle: &mut EndpointHandle) -> Result<[OwnedFd; N], Failure> {
    let descriptors = std::mem::take(&mut handle.descriptors);
    descriptors.try_into().map_err(|got: Vec<OwnedFd>| {
        Failure::Broken(format!("{} descriptors were handed over instead of {N}", got.len()))
    })
}

/// The numbers that were handed over.
pub(super) fn numbers<T: std::str::FromStr, const N: usize>(
    handle: &EndpointHandle,
) -> Result<[T; N], Failure> {
    let numbers: Vec<T> = handle.words.iter().map_while(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| Failure::Broken(format!("not {N} numbers: {:?}", handle.words)))
}

/// An endpoint pair of nothing but descriptors.
pub(super) fn endpoint_pair(server: Vec<OwnedFd>, client: Vec<OwnedFd>) -> EndpointPair {
    EndpointPair { server, client, words: Vec::new(), leftovers: Default::default(), kept: None }
}

/// Returns the failure of the transaction that an error number of a transfer stands for.
#[cold]
pub(super) fn failed(error: Errno) -> Failure {
    match error {
        Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED | Errno::NOTCONN | Errno::IDRM | Errno::SRCH => {
            Failure::Gone
        }
        Errno::MSGSIZE | Errno::NOBUFS => Failure::Refused(std::io::Error::from(error).to_string()),
        error => Failure::Broken(std::io::Error::from(error).to_string()),
    }
}

/// Returns the failure of an end that could not be made from the passed descriptors and words.
pub(super) fn broken(error: impl Display) -> Failure {
    Failure::Broken(error.to_string())
}

/// A name that no process can have taken before.
pub(super) fn random_name() -> String {
    format!("latscope-{:016x}", RandomState::new().build_hasher().finish())
}

/// Returns the error of a mechanism that could not be set up.
pub(super) fn unavailable(what: &str, error: impl Display, remedy: &str) -> Unavailable {
    Unavailable { reason: format!("{what}: {error}"), remedy: remedy.to_string() }
}

/// Remedy for a lack of descriptors or memory.
pub(super) const MORE_DESCRIPTORS: &str = "allow more open files (ulimit -n) and memory";
