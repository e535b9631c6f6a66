//! Hand-over by event descriptors: eventfd(2), in semaphore mode, so that
//! each read takes one token.

use super::stream::readable;
use super::wait::Wait;
use super::{Closed, Link};
use latscope_os::shared_cell::{Lane, Scope, SharedCell};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// An eventfd outlives its users, so the end of one is reported through memory.
type Ended = SharedCell<[Lane<AtomicU32>; 2]>;

/// One end of a link over two event descriptors.
#[derive(Debug)]
pub struct EventEnd<W> {
    input: OwnedFd,
    output: OwnedFd,
    lanes: Ended,
    side: usize,
    given: u64,
    taken: u64,
    ended: bool,
    wait: PhantomData<W>,
}

/// Two connected ends.
///
/// # Errors
/// No memory or descriptors left.
pub fn pair<W: Wait>() -> io::Result<(EventEnd<W>, EventEnd<W>)> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
    let (there, back) = (eventfd(0, flags)?, eventfd(0, flags)?);
    let lanes = Ended::create(Scope::Threads)?;
    let first = EventEnd::new(back.try_clone()?, there.try_clone()?, lanes.clone(), 0);
    Ok((first, EventEnd::new(there, back, lanes, 1)))
}

impl<W: Wait> EventEnd<W> {
    fn new(input: OwnedFd, output: OwnedFd, lanes: Ended, side: usize) -> Self {
        EventEnd { input, output, lanes, side, given: 0, taken: 0, ended: false, wait: PhantomData }
    }
}

impl<W: Wait> Link for EventEnd<W> {
    #[inline]
    fn send(&mut self) -> Result<(), Closed> {
        if self.lanes[1 - self.side].ended.load(Ordering::Relaxed) != 0 {
            return Err(Closed);
        }
        self.given += 1;
        give(&self.output)
    }

    #[inline]
    fn recv(&mut self) -> Result<(), Closed> {
        if self.ended {
            return Err(Closed);
        }
        let input = &self.input;
        W::wait(|| readable(input).then(|| take(input)), || take(input))?;
        self.taken += 1;
        self.ended = self.lanes[1 - self.side].ended.load(Ordering::Acquire) == self.taken;
        if self.ended { Err(Closed) } else { Ok(()) }
    }
}

#[inline]
fn give(output: &OwnedFd) -> Result<(), Closed> {
    loop {
        match write(output, &1u64.to_ne_bytes()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(_) => return Err(Closed),
        }
    }
}

#[inline]
fn take(input: &OwnedFd) -> Result<(), Closed> {
    let mut count = [0; 8];
    loop {
        match read(input, &mut count) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(_) => return Err(Closed),
        }
    }
}

impl<W> Drop for EventEnd<W> {
    fn drop(&mut self) {
        self.lanes[self.side].ended.store(self.given + 1, Ordering::Release);
        // An eventfd has room for 2^64 - 2 tokens: this one is not refused.
        let _ = give(&self.output);
    }
}
