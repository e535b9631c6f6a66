//! Shared memory, with System V semaphores as the bell: semop(2).

use super::LARGEST;
use super::endpoint::{Side, client, failed, numbers, server, unavailable};
use super::lifeline::Lifeline;
use super::mailbox::{self, Bell, Extra, MailboxEndpoint};
use crate::transaction::{EndpointHandle, EndpointPair, Failure, Transport, Unavailable};
use latscope_host::leftover::{Leftover, Leftovers};
use latscope_os::system_v::{change, create_semaphores};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

pub(super) static TRANSPORT: Transport = Transport {
    name: "sysv-semaphore",
    title: "shared memory, System V semaphore",
    source: "semop(2), memfd_create(2)",
    copies: mailbox::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open,
    server: |handle| server(handle, join),
    client: |handle| client(handle, join),
};

fn open(payload: usize) -> Result<EndpointPair, Unavailable> {
    let set = create_semaphores(2).map_err(|error| {
        let remedy =
            "remove unused ones (ipcs -s, ipcrm), raise kernel.sem, or use a kernel with CONFIG_SYSVIPC";
        unavailable("no System V semaphores", error, remedy)
    })?;
    let leftovers = Leftovers::from([Leftover::SystemVSemaphores(set)]);
    mailbox::endpoint_pair(payload, Extra { words: vec![set.to_string()], leftovers, ..Extra::default() })
}

fn join(handle: EndpointHandle, side: Side) -> Result<MailboxEndpoint<Semaphores>, Failure> {
    mailbox::join(handle, side, Semaphores::new)
}

/// A set of two: what the client posts and what the server posts.
struct Semaphores {
    set: i32,
    own: u16,
    other: u16,
    lifeline: Lifeline,
}

impl Semaphores {
    fn new(lifeline: OwnedFd, handle: EndpointHandle, side: Side) -> Result<Self, Failure> {
        let [set] = numbers(&handle)?;
        let (own, other) = (side.own() as u16, side.other() as u16);
        let wake = move || {
            // It fails only where the set is removed, and with it all waiting.
            let _ = change(set, other, 1);
        };
        Ok(Semaphores { set, own, other, lifeline: Lifeline::watch(lifeline, wake)? })
    }
}

/// A set that is not there any more was removed with the run.
#[cold]
fn ended(error: Errno) -> Failure {
    if error == Errno::INVAL { Failure::Gone } else { failed(error) }
}

impl Bell for Semaphores {
    #[inline]
    fn ring(&mut self) -> Result<(), Failure> {
        change(self.set, self.own, 1).map_err(ended)
    }

    #[inline]
    fn wait(&mut self, _: impl Fn() -> bool) -> Result<(), Failure> {
        change(self.set, self.other, -1).map_err(ended)
    }

    #[inline]
    fn gone(&self) -> bool {
        self.lifeline.gone()
    }
}
