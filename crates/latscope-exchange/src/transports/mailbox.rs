//! Messages in shared memory, and a bell that tells that one is there.

use super::endpoint::{Endpoint, MORE_DESCRIPTORS, Side, broken, unavailable};
use super::lifeline;
use crate::transaction::{EndpointHandle, EndpointPair, Failure, Unavailable};
use latscope_host::leftover::Leftovers;
use latscope_os::mailbox::Mailbox;
use rustix::fd::OwnedFd;

/// How often a message is copied: into the memory and out of it.
pub(super) const COPIES: u32 = 2;

/// What tells the other endpoint that a message is there.
pub(super) trait Bell: Send + 'static {
    /// Tells it.
    fn ring(&mut self) -> Result<(), Failure>;

    /// Waits for a notification, or until the other endpoint is gone; may return early.
    /// `arrived` tells whether a message is there.
    fn wait(&mut self, arrived: impl Fn() -> bool) -> Result<(), Failure>;

    /// Whether the other endpoint is known to be gone.
    fn gone(&self) -> bool;
}

/// What a mechanism adds to the memory and the lifeline of an endpoint pair.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) server: Vec<OwnedFd>,
    pub(super) client: Vec<OwnedFd>,
    pub(super) words: Vec<String>,
    pub(super) leftovers: Leftovers,
}

impl Extra {
    /// The same descriptors for both processes.
    pub(super) fn shared(descriptors: Vec<OwnedFd>) -> std::io::Result<Extra> {
        let client = descriptors.iter().map(OwnedFd::try_clone).collect::<std::io::Result<_>>()?;
        Ok(Extra { server: descriptors, client, ..Extra::default() })
    }
}

/// An endpoint pair over shared memory.
pub(super) fn endpoint_pair(payload: usize, extra: Extra) -> Result<EndpointPair, Unavailable> {
    let no_memory = |error| unavailable("no shared memory", error, MORE_DESCRIPTORS);
    let mailbox = Mailbox::create(payload).map_err(no_memory)?;
    let handle = || mailbox.descriptor().try_clone_to_owned().map_err(no_memory);
    let (server_line, client_line) = lifeline::pair()?;
    let (mut server, mut client) = (vec![handle()?, server_line], vec![handle()?, client_line]);
    server.extend(extra.server);
    client.extend(extra.client);
    Ok(EndpointPair { server, client, words: extra.words, leftovers: extra.leftovers, kept: None })
}

/// One end over shared memory, with the bell that `bell` makes of the
/// lifeline and what the mechanism added.
pub(super) fn join<B: Bell>(
    mut handle: EndpointHandle,
    side: Side,
    bell: impl FnOnce(OwnedFd, EndpointHandle, Side) -> Result<B, Failure>,
) -> Result<MailboxEndpoint<B>, Failure> {
    if handle.descriptors.len() < 2 {
        return Err(broken("neither memory nor a lifeline was handed over"));
    }
    let memory = handle.descriptors.remove(0);
    let lifeline = handle.descriptors.remove(0);
    let mailbox = Mailbox::open(memory, handle.payload).map_err(broken)?;
    let bell = bell(lifeline, handle, side)?;
    Ok(MailboxEndpoint { mailbox, bell, side, last: 0 })
}

/// One endpoint that leaves messages for the other.
pub(super) struct MailboxEndpoint<B> {
    mailbox: Mailbox,
    bell: B,
    side: Side,
    /// Stamp of the last message, whosever it was.
    last: u32,
}

impl<B: Bell> Endpoint for MailboxEndpoint<B> {
    /// There is one slot, and the answer goes where the request was.
    const QUEUES: bool = false;

    #[inline(always)]
    fn put(&mut self, message: &[u8]) -> Result<(), Failure> {
        if self.bell.gone() {
            return Err(Failure::Gone);
        }
        self.last = self.last.wrapping_add(1);
        self.mailbox.put(self.last, message);
        self.bell.ring()
    }

    #[inline(always)]
    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let next = self.last.wrapping_add(1);
        loop {
            let arrived = || match self.side {
                Side::Client => self.mailbox.holds(next).is_some(),
                Side::Server => self.mailbox.holds_for_writing(next).is_some(),
            };
            self.bell.wait(arrived)?;
            if let Some(length) = self.mailbox.holds(next) {
                self.last = next;
                self.mailbox.take(length, buffer);
                return Ok(length);
            }
            if self.bell.gone() {
                return Err(Failure::Gone);
            }
        }
    }
}
