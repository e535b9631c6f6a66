//! Links over byte streams: a token is a byte, and the kernel itself tells
//! when the other endpoint is gone.

use super::wait::Wait;
use super::{Closed, Link};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, read, write};
use std::marker::PhantomData;

/// One end of a link over descriptors that carry bytes.
#[derive(Debug)]
pub struct StreamEnd<W> {
    input: OwnedFd,
    output: OwnedFd,
    wait: PhantomData<W>,
}

impl<W: Wait> StreamEnd<W> {
    /// The end that reads from `input` and writes to `output`, both blocking.
    pub fn new(input: OwnedFd, output: OwnedFd) -> Self {
        StreamEnd { input, output, wait: PhantomData }
    }
}

impl<W: Wait> Link for StreamEnd<W> {
    #[inline]
    fn send(&mut self) -> Result<(), Closed> {
        loop {
            match write(&self.output, &[0]) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Closed),
            }
        }
    }

    #[inline]
    fn recv(&mut self) -> Result<(), Closed> {
        let input = &self.input;
        W::wait(|| readable(input).then(|| receive(input)), || receive(input))
    }
}

#[inline]
fn receive(input: &OwnedFd) -> Result<(), Closed> {
    let mut byte = [0];
    loop {
        match read(input, &mut byte) {
            Ok(1) => return Ok(()),
            Err(Errno::INTR) => {}
            _ => return Err(Closed),
        }
    }
}

/// Whether a read would not sleep: because of data, or because of the end.
#[inline]
pub(super) fn readable(input: impl AsFd) -> bool {
    let mut watched = [PollFd::new(&input, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut watched, Some(&at_once)), Ok(ready) if ready > 0)
}
