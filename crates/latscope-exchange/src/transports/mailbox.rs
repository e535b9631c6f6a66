//! Messages in shared memory, and a bell that reports that a message is there.

use super::endpoint::{EndpointSide, MORE_DESCRIPTORS, MessageEndpoint, broken, transport, unavailable};
use super::lifeline;
use crate::transaction::{
    EndpointHandle, EndpointPair, IpcTransport, TransactionFailure, TransportSetupError,
};
use latscope_os::mailbox::SharedMailbox;
use latscope_process::leftover::Leftovers;
use rustix::fd::OwnedFd;
use std::io;

/// Mechanism that notifies the other endpoint of a message.
pub(super) trait MailboxBell: Send + Sized + 'static {
    /// Makes the objects that the bell adds to the memory and the lifeline.
    fn create() -> Result<Extra, TransportSetupError>;

    /// Makes the bell from the lifeline and the added objects.
    fn open(
        lifeline: OwnedFd,
        handle: EndpointHandle,
        side: EndpointSide,
    ) -> Result<Self, TransactionFailure>;

    /// Notifies the other endpoint.
    fn ring(&mut self) -> Result<(), TransactionFailure>;

    /// Waits for a notification, or until the other endpoint ends; may return early. `arrived` returns true if a
    /// message is there.
    fn wait(&mut self, arrived: impl Fn() -> bool) -> Result<(), TransactionFailure>;

    /// Returns true if the other endpoint is known to be gone.
    fn gone(&self) -> bool;
}

/// Objects that a bell adds to the memory and the lifeline of an endpoint pair.
#[derive(Default)]
pub(super) struct Extra {
    /// Descriptors for both processes.
    pub(super) descriptors: Vec<OwnedFd>,
    pub(super) words: Vec<String>,
    pub(super) leftovers: Leftovers,
}

/// A transport over shared memory and a bell.
pub(super) const fn with<B: MailboxBell>(
    name: &'static str,
    title: &'static str,
    source: &'static str,
) -> IpcTransport {
    transport::<MailboxEndpoint<B>>(name, title, source, open::<B>)
}

fn open<B: MailboxBell>(payload: usize) -> Result<EndpointPair, TransportSetupError> {
    let Extra { descriptors, words, leftovers } = B::create()?;
    let (server, client) = with_mailbox(descriptors, payload)
        .map_err(|error| unavailable("no shared memory", error, MORE_DESCRIPTORS))?;
    Ok(EndpointPair { words, leftovers, ..lifeline::endpoint_pair(server, client)? })
}

/// The descriptors of both sides, a new mailbox before those of the bell.
fn with_mailbox(mut server: Vec<OwnedFd>, payload: usize) -> io::Result<(Vec<OwnedFd>, Vec<OwnedFd>)> {
    server.insert(0, SharedMailbox::create(payload)?.descriptor().try_clone_to_owned()?);
    let client = server.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
    Ok((server, client))
}

/// Endpoint that leaves messages for the other.
pub(super) struct MailboxEndpoint<B> {
    mailbox: SharedMailbox,
    bell: B,
    side: EndpointSide,
    /// Stamp of the last message of either side.
    last: u32,
}

impl<B: MailboxBell> MessageEndpoint for MailboxEndpoint<B> {
    /// False: there is one slot, and the answer takes the place of the request.
    const QUEUES: bool = false;

    fn join(mut handle: EndpointHandle, side: EndpointSide) -> Result<Self, TransactionFailure> {
        if handle.descriptors.len() < 2 {
            return Err(broken("neither memory nor a lifeline was handed over"));
        }
        let memory = handle.descriptors.remove(0);
        let lifeline = lifeline::of(&mut handle)?;
        let mailbox = SharedMailbox::open(memory, handle.payload).map_err(broken)?;
        Ok(MailboxEndpoint { mailbox, bell: B::open(lifeline, handle, side)?, side, last: 0 })
    }

    #[inline(always)]
    fn put(&mut self, message: &[u8]) -> Result<(), TransactionFailure> {
        if self.bell.gone() {
            return Err(TransactionFailure::Gone);
        }
        self.last = self.last.wrapping_add(1);
        self.mailbox.put(self.last, message);
        self.bell.ring()
    }

    #[inline(always)]
    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, TransactionFailure> {
        let next = self.last.wrapping_add(1);
        loop {
            self.bell.wait(|| match self.side {
                EndpointSide::Client => self.mailbox.holds(next).is_some(),
                EndpointSide::Server => self.mailbox.holds_for_writing(next).is_some(),
            })?;
            if let Some(length) = self.mailbox.holds(next) {
                self.last = next;
                self.mailbox.take(length, buffer);
                return Ok(length);
            }
            if self.bell.gone() {
                return Err(TransactionFailure::Gone);
            }
        }
    }
}
