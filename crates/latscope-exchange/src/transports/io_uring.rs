//! Shared memory, with messages between two io_uring instances as the bell:
//! IORING_OP_MSG_RING. One system call a side: what was prepared is handed
//! over by the same call that waits.

use super::LARGEST;
use super::endpoint::{Side, broken, client, descriptors, numbers, server, unavailable};
use super::lifeline::Lifeline;
use super::mailbox::{self, Bell, Extra, MailboxEndpoint};
use crate::transaction::{EndpointHandle, EndpointPair, Failure, Transport, Unavailable};
use latscope_os::ring::{self, Completion, Layout, Ring};
use rustix::fd::{AsFd, OwnedFd};
use std::io;

pub(super) static TRANSPORT: Transport = Transport {
    name: "io-uring",
    title: "shared memory, io_uring message",
    source: "io_uring_enter(2), IORING_OP_MSG_RING",
    copies: mailbox::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open,
    server: |handle| server(handle, join),
    client: |handle| client(handle, join),
};

/// What a message is marked with.
const RUNG: u64 = 1;

fn open(payload: usize) -> Result<EndpointPair, Unavailable> {
    let rings = || -> io::Result<Extra> {
        let (first, layout) = ring::create()?;
        let (second, _) = ring::create()?;
        check_messages(&first, layout)?;
        let words = layout.words().iter().map(u32::to_string).collect();
        // In the order of the sides whose rings they are.
        Ok(Extra { words, ..Extra::shared(vec![first, second])? })
    };
    let extra = rings().map_err(|error| {
        let remedy = "Linux 5.18 or newer, kernel.io_uring_disabled=0, no seccomp filter against io_uring";
        unavailable("no messages between io_uring instances", error, remedy)
    })?;
    mailbox::endpoint_pair(payload, extra)
}

/// Has a ring send itself a message: an older kernel knows no such operation.
fn check_messages(descriptor: &OwnedFd, layout: Layout) -> io::Result<()> {
    let mut ring = Ring::open(descriptor.try_clone()?, layout, descriptor.try_clone()?)?;
    ring.prepare_message(RUNG)?;
    ring.enter(1)?;
    match ring.completion() {
        Some(Completion { mark: RUNG, result: 0 }) => Ok(()),
        Some(completion) => Err(io::Error::from_raw_os_error(-completion.result)),
        None => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn join(handle: EndpointHandle, side: Side) -> Result<MailboxEndpoint<Rings>, Failure> {
    mailbox::join(handle, side, Rings::new)
}

struct Rings {
    own: Ring,
    lifeline: Lifeline,
}

impl Rings {
    fn new(lifeline: OwnedFd, mut handle: EndpointHandle, side: Side) -> Result<Self, Failure> {
        let layout = Layout::from_words(numbers(&handle)?).ok_or_else(|| broken("no layout of a ring"))?;
        let [clients, servers] = descriptors(&mut handle)?;
        let (own, other) = match side {
            Side::Client => (clients, servers),
            Side::Server => (servers, clients),
        };
        let own = Ring::open(own, layout, other).map_err(broken)?;
        // A ring that watched the lifeline itself would hold it, and the other
        // endpoint holds the ring: neither would ever see the end.
        let mut alarm = alarm(&own).map_err(broken)?;
        let wake = move || {
            // It fails only where the ring does not work any more.
            let _ = alarm();
        };
        Ok(Rings { own, lifeline: Lifeline::watch(lifeline, wake)? })
    }
}

/// What sends a message to a ring from another thread: a ring of its own.
fn alarm(to: &Ring) -> io::Result<impl FnMut() -> io::Result<()> + Send + 'static> {
    let to = to.as_fd().try_clone_to_owned()?;
    let (descriptor, layout) = ring::create()?;
    let mut ring = Ring::open(descriptor, layout, to)?;
    Ok(move || {
        ring.prepare_message(RUNG)?;
        ring.enter(0)
    })
}

impl Bell for Rings {
    #[inline]
    fn ring(&mut self) -> Result<(), Failure> {
        self.own.prepare_message(RUNG).map_err(broken)
    }

    #[inline]
    fn wait(&mut self, _: impl Fn() -> bool) -> Result<(), Failure> {
        loop {
            self.own.enter(1).map_err(broken)?;
            match self.own.completion() {
                Some(Completion { mark: RUNG, .. }) => return Ok(()),
                Some(Completion { result, .. }) => return Err(broken(io::Error::from_raw_os_error(-result))),
                None => {}
            }
        }
    }

    #[inline]
    fn gone(&self) -> bool {
        self.lifeline.gone()
    }
}
