//! Shared memory, with event descriptors as the bell: eventfd(2).

use super::LARGEST;
use super::endpoint::{MORE_DESCRIPTORS, Side, broken, client, descriptors, failed, server, unavailable};
use super::lifeline::Lifeline;
use super::mailbox::{self, Bell, Extra, MailboxEndpoint};
use crate::transaction::{EndpointHandle, EndpointPair, Failure, Transport, Unavailable};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};

pub(super) static TRANSPORT: Transport = Transport {
    name: "eventfd",
    title: "shared memory, eventfd",
    source: "eventfd(2), memfd_create(2)",
    copies: mailbox::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open,
    server: |handle| server(handle, join),
    client: |handle| client(handle, join),
};

fn open(payload: usize) -> Result<EndpointPair, Unavailable> {
    let events = || -> std::io::Result<Extra> {
        // In the order of the sides that ring them.
        let events = vec![eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?];
        Extra::shared(events)
    };
    mailbox::endpoint_pair(
        payload,
        events().map_err(|error| unavailable("no eventfd", error, MORE_DESCRIPTORS))?,
    )
}

fn join(handle: EndpointHandle, side: Side) -> Result<MailboxEndpoint<Events>, Failure> {
    mailbox::join(handle, side, Events::new)
}

struct Events {
    input: OwnedFd,
    output: OwnedFd,
    lifeline: Lifeline,
}

impl Events {
    fn new(lifeline: OwnedFd, mut handle: EndpointHandle, side: Side) -> Result<Self, Failure> {
        let [client_rings, server_rings] = descriptors(&mut handle)?;
        let (input, output) = match side {
            Side::Client => (server_rings, client_rings),
            Side::Server => (client_rings, server_rings),
        };
        let own = input.try_clone().map_err(broken)?;
        let wake = move || {
            // It fails only for a count that is at its maximum: no thread sleeps then.
            let _ = ring(&own);
        };
        Ok(Events { input, output, lifeline: Lifeline::watch(lifeline, wake)? })
    }
}

#[inline]
fn ring(event: &OwnedFd) -> rustix::io::Result<()> {
    loop {
        match write(event, &1u64.to_ne_bytes()) {
            Err(Errno::INTR) => {}
            done => return done.map(drop),
        }
    }
}

impl Bell for Events {
    #[inline]
    fn ring(&mut self) -> Result<(), Failure> {
        ring(&self.output).map_err(failed)
    }

    #[inline]
    fn wait(&mut self, _: impl Fn() -> bool) -> Result<(), Failure> {
        let mut count = [0; 8];
        loop {
            match read(&self.input, &mut count) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    #[inline]
    fn gone(&self) -> bool {
        self.lifeline.gone()
    }
}
