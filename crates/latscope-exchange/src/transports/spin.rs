//! Shared memory alone: the receiver watches the stamp and never sleeps. No
//! system call is made while the other endpoint answers.

use super::LARGEST;
use super::endpoint::{Side, client, server};
use super::mailbox::{self, Bell, Extra, MailboxEndpoint};
use crate::transaction::{EndpointHandle, Failure, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::hint::spin_loop;

pub(super) static TRANSPORT: Transport = Transport {
    name: "spin",
    title: "shared memory, spinning",
    source: "memfd_create(2), mmap(2)",
    copies: mailbox::COPIES,
    spins: true,
    inheritance: None,
    max_payload: LARGEST,
    open: |payload| mailbox::endpoint_pair(payload, Extra::default()),
    server: |handle| server(handle, join),
    client: |handle| client(handle, join),
};

fn join(handle: EndpointHandle, side: Side) -> Result<MailboxEndpoint<Watched>, Failure> {
    mailbox::join(handle, side, |lifeline, _, _| Ok(Watched { lifeline, gone: false }))
}

/// Looks, without a look at the lifeline: a millisecond or so. Waiting longer
/// than that means that the other endpoint has no CPU, or is gone.
const LOOKS: u32 = 1 << 14;

/// No bell at all.
struct Watched {
    lifeline: OwnedFd,
    gone: bool,
}

impl Bell for Watched {
    #[inline]
    fn ring(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, arrived: impl Fn() -> bool) -> Result<(), Failure> {
        loop {
            for _ in 0..LOOKS {
                if arrived() {
                    return Ok(());
                }
                // Each look takes the line from the one that is about to write into it.
                spin_loop();
            }
            self.gone = hung_up(&self.lifeline);
            if self.gone {
                return Ok(());
            }
            // The two may have to share one CPU.
            std::thread::yield_now();
        }
    }

    #[inline]
    fn gone(&self) -> bool {
        self.gone
    }
}

/// Whether the other end of a lifeline is closed.
#[cold]
fn hung_up(lifeline: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(lifeline, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut watched, Some(&at_once)), Ok(ready) if ready > 0)
}
