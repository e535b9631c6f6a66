//! Messages in shared memory, and a bell that reports that a message is there.

use super::endpoint::{
    EndpointSide, MORE_DESCRIPTORS, MessageEndpoint, broken_failure, transport, unavailable,
};
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
    fn create_objects() -> Result<Extra, TransportSetupError>;

    /// Makes the bell from the lifeline and the added objects.
    fn open_bell(
        lifeline: OwnedFd,
        handle: EndpointHandle,
        side: EndpointSide,
    ) -> Result<Self, TransactionFailure>;

    /// Notifies the other endpoint.
    fn ring(&mut self) -> Result<(), TransactionFailure>;

    /// Waits for a notification, or until the other endpoint ends; may return early. `arrived` returns true if a
    /// message is there.
    fn wait_for_bell(&mut self, arrived: impl Fn() -> bool) -> Result<(), TransactionFailure>;

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
pub(super) const fn mailbox_transport<B: MailboxBell>(
    name: &'static str,
    title: &'static str,
    source: &'static str,
) -> IpcTransport {
    transport::<MailboxEndpoint<B>>(name, title, source, open_pair::<B>)
}

fn open_pair<B: MailboxBell>(payload: usize) -> Result<EndpointPair, TransportSetupError> {
    let Extra { descriptors, words, leftovers } = B::create_objects()?;
    let (server, client) = with_mailbox(descriptors, payload)
        .map_err(|error| unavailable("no shared memory", error, MORE_DESCRIPTORS))?;
    Ok(EndpointPair { words, leftovers, ..lifeline::endpoint_pair(server, client)? })
}

/// The descriptors of both sides, a new mailbox before those of the bell.
fn with_mailbox(mut server: Vec<OwnedFd>, payload: usize) -> io::Result<(Vec<OwnedFd>, Vec<OwnedFd>)> {
    server.insert(0, SharedMailbox::create_empty(payload)?.descriptor().try_clone_to_owned()?);
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

    fn from_handle(mut handle: EndpointHandle, side: EndpointSide) -> Result<Self, TransactionFailure> {
        if handle.descriptors.len() < 2 {
            return Err(broken_failure("neither memory nor a lifeline was handed over"));
        }
        let memory = handle.descriptors.remove(0);
        let lifeline = lifeline::take_from_handle(&mut handle)?;
        let mailbox = SharedMailbox::map_existing(memory, handle.payload).map_err(broken_failure)?;
        Ok(MailboxEndpoint { mailbox, bell: B::open_bell(lifeline, handle, side)?, side, last: 0 })
    }

    #[inline(always)]
    fn send_message(&mut self, message: &[u8]) -> Result<(), TransactionFailure> {
        if self.bell.gone() {
            return Err(TransactionFailure::Gone);
        }
        self.last = self.last.wrapping_add(1);
        self.mailbox.write_message(self.last, message);
        self.bell.ring()
    }

    #[inline(always)]
    fn receive_message(&mut self, buffer: &mut [u8]) -> Result<usize, TransactionFailure> {
        let next = self.last.wrapping_add(1);
        loop {
            self.bell.wait_for_bell(|| match self.side {
                EndpointSide::Client => self.mailbox.stamped_length(next).is_some(),
                EndpointSide::Server => self.mailbox.holds_for_writing(next).is_some(),
            })?;
            if let Some(length) = self.mailbox.stamped_length(next) {
                self.last = next;
                self.mailbox.copy_message(length, buffer);
                return Ok(length);
            }
            if self.bell.gone() {
                return Err(TransactionFailure::Gone);
            }
        }
    }
}
