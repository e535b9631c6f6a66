//! Shared memory, with a queued real-time signal as the bell, which its
//! receiver waits for: sigqueue(3), sigwaitinfo(2).
//!
//! Each side tells in memory which of its threads waits: a signal goes to one
//! thread, whatever the other threads of its process do with that signal.

use super::LARGEST;
use super::endpoint::{MORE_DESCRIPTORS, Side, broken, client, descriptors, failed, server, unavailable};
use super::lifeline::Lifeline;
use super::mailbox::{self, Bell, Extra, MailboxEndpoint};
use crate::transaction::{EndpointHandle, EndpointPair, Failure, Transport, Unavailable};
use latscope_os::queued_signal::{self, Address, receiver};
use latscope_os::shared_cell::{Lane, Scope, SharedCell};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(super) static TRANSPORT: Transport = Transport {
    name: "signal",
    title: "shared memory, queued signal",
    source: "sigqueue(3), sigwaitinfo(2)",
    copies: mailbox::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open,
    server: |handle| server(handle, join),
    client: |handle| client(handle, join),
};

/// Who waits, on each side: 0 before one does.
type Waiting = SharedCell<[Lane<AtomicU64>; 2]>;

fn open(payload: usize) -> Result<EndpointPair, Unavailable> {
    let waiting = || -> std::io::Result<Extra> {
        let waiting = Waiting::create(Scope::Processes)?;
        Extra::shared(vec![waiting.descriptor().try_clone_to_owned()?])
    };
    let no_memory = |error| unavailable("no shared memory", error, MORE_DESCRIPTORS);
    mailbox::endpoint_pair(payload, waiting().map_err(no_memory)?)
}

fn join(handle: EndpointHandle, side: Side) -> Result<MailboxEndpoint<Signals>, Failure> {
    mailbox::join(handle, side, Signals::new)
}

struct Signals {
    waiting: Waiting,
    side: Side,
    told: Option<Address>,
    lifeline: Lifeline,
}

impl Signals {
    fn new(lifeline: OwnedFd, mut handle: EndpointHandle, side: Side) -> Result<Self, Failure> {
        let [memory] = descriptors(&mut handle)?;
        let waiting = Waiting::open(memory).map_err(broken)?;
        let watched = waiting.clone();
        let wake = move || {
            if let Some(address) = waiting_on(&watched, side.own()) {
                // The thread is gone, or so many are queued that it does not sleep.
                let _ = queued_signal::send(address);
            }
        };
        Ok(Signals { waiting, side, told: None, lifeline: Lifeline::watch(lifeline, wake)? })
    }

    /// Tells the other endpoint which thread of this one waits, before it may have to.
    #[inline]
    fn tell(&mut self) -> Result<(), Failure> {
        let own = receiver().map_err(failed)?;
        if self.told != Some(own) {
            let packed = u64::from(own.process) << 32 | u64::from(own.thread);
            self.waiting[self.side.own()].signal.store(packed, Ordering::SeqCst);
            self.told = Some(own);
        }
        Ok(())
    }

    /// The other endpoint's waiting thread, which at the very beginning is awaited.
    #[inline]
    fn other(&self) -> Result<Address, Failure> {
        loop {
            if let Some(address) = waiting_on(&self.waiting, self.side.other()) {
                return Ok(address);
            }
            if self.lifeline.gone() {
                return Err(Failure::Gone);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[inline]
fn waiting_on(waiting: &Waiting, side: usize) -> Option<Address> {
    match waiting[side].signal.load(Ordering::SeqCst) {
        0 => None,
        packed => Some(Address { process: (packed >> 32) as u32, thread: packed as u32 }),
    }
}

impl Bell for Signals {
    #[inline]
    fn ring(&mut self) -> Result<(), Failure> {
        self.tell()?;
        match queued_signal::send(self.other()?) {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(Failure::Gone),
            Err(error) => Err(failed(error)),
        }
    }

    #[inline]
    fn wait(&mut self, _: impl Fn() -> bool) -> Result<(), Failure> {
        self.tell()?;
        if self.lifeline.gone() {
            // It may have been told to another thread that this one waited.
            return Ok(());
        }
        queued_signal::wait().map_err(failed)
    }

    #[inline]
    fn gone(&self) -> bool {
        self.lifeline.gone()
    }
}
