//! A futex on which a side sleeps: how often it was notified meanwhile does not matter.

use super::Notifier;
use latscope_os::futex::FutexBell;
use latscope_os::shared_cell::{Lane, SharedCell};
use std::io;
use std::time::Duration;

/// A word for each side, on which that side sleeps.
pub(crate) type Bells = SharedCell<[Lane<FutexBell>; 2]>;

/// Side of two words in memory that both sides map.
#[derive(Debug)]
pub(crate) struct Futex {
    bells: Bells,
    /// Index of the word on which this side sleeps.
    ours: usize,
    seen: u32,
}

impl Futex {
    /// The side that sleeps on the word of this number.
    pub fn new(bells: Bells, ours: usize) -> Futex {
        let seen = bells[ours].signal.ring_count();
        Futex { bells, ours, seen }
    }
}

impl Notifier for Futex {
    fn notify(&mut self) -> io::Result<()> {
        self.bells[1 - self.ours].signal.ring_bell();
        Ok(())
    }

    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let rings = self.bells[self.ours].signal.wait_for_ring(self.seen, timeout);
        Ok(std::mem::replace(&mut self.seen, rings) != rings)
    }
}
