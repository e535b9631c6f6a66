//! How the two sides of a link in shared memory wait for each other.

use latscope_os::clock::monotonic_ns;
use latscope_os::futex::Bell;
use latscope_os::shared_cell::{Lane, SharedCell};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::cell::Cell;
use std::hint::spin_loop;
use std::io;

/// How a side waits for the other, and tells it.
pub trait Kicks {
    /// Tells the other side to look.
    ///
    /// # Errors
    /// The kernel refuses.
    fn kick(&self) -> io::Result<()>;

    /// Sleeps until the other side kicked, or at most so many ns; whether it
    /// did. A kick is a hint: it may come early, twice, or for nothing.
    ///
    /// # Errors
    /// The kernel refuses.
    fn sleep(&self, ns: u64) -> io::Result<bool>;

    /// How long one looks before one sleeps, ns: 0 for not at all, [`FOREVER`] for ever.
    fn spin_ns(&self) -> u64;

    /// What becomes readable by a kick, where it is a descriptor.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Spin time of an endpoint that never sleeps and needs no kicks.
pub const FOREVER: u64 = u64::MAX;

/// Looks until something is there; no kick is sent.
#[derive(Debug)]
pub struct Spin;

impl Kicks for Spin {
    fn kick(&self) -> io::Result<()> {
        Ok(())
    }

    fn sleep(&self, _: u64) -> io::Result<bool> {
        Ok(false)
    }

    fn spin_ns(&self) -> u64 {
        FOREVER
    }
}

/// Sleeps on an eventfd.
#[derive(Debug)]
pub struct Eventfd {
    /// What the other side writes to.
    pub ours: OwnedFd,
    /// What this side writes to.
    pub theirs: OwnedFd,
}

impl Kicks for Eventfd {
    fn kick(&self) -> io::Result<()> {
        match rustix::io::write(&self.theirs, &1u64.to_ne_bytes()) {
            // A full counter is a kick, too.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn sleep(&self, ns: u64) -> io::Result<bool> {
        if !readable(self.ours.as_fd(), ns)? {
            return Ok(false);
        }
        match rustix::io::read(&self.ours, &mut [0u8; 8]) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn spin_ns(&self) -> u64 {
        0
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(rustix::fd::AsFd::as_fd(&self.ours))
    }
}

/// A word for each side, on which that side sleeps.
pub type Bells = SharedCell<[Lane<Bell>; 2]>;

/// Sleeps on a futex in memory that both map.
#[derive(Debug)]
pub struct Futex {
    bells: Bells,
    /// Which of them is ours.
    ours: usize,
    seen: Cell<u32>,
    spin_ns: u64,
}

impl Futex {
    /// One side, which sleeps on the bell of this number and looks for so many ns before.
    pub fn new(bells: Bells, ours: usize, spin_ns: u64) -> Futex {
        let seen = Cell::new(bells[ours].signal.rings());
        Futex { bells, ours, seen, spin_ns }
    }
}

impl Kicks for Futex {
    fn kick(&self) -> io::Result<()> {
        self.bells[1 - self.ours].signal.ring();
        Ok(())
    }

    fn sleep(&self, ns: u64) -> io::Result<bool> {
        let rings = self.bells[self.ours].signal.wait(self.seen.get(), ns);
        Ok(self.seen.replace(rings) != rings)
    }

    fn spin_ns(&self) -> u64 {
        self.spin_ns
    }
}

/// Looks between two looks at the clock.
const LOOKS: u32 = 1 << 8;

/// How long a kick is waited for before one looks again, ns: one may be lost.
pub const WATCHDOG: u64 = 10_000_000;

/// One wait of a side, from a look that found nothing to the next that finds something.
#[derive(Debug)]
pub struct Wait {
    spin_ns: u64,
    until: u64,
    looks: u32,
    began: Option<u64>,
}

/// What comes after a look that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another look.
    Look,
    /// Sleep for at most so many ns, if nothing came until the other side knows of that.
    Sleep(u64),
    /// Time is over.
    Over,
}

impl Wait {
    /// Waits until an instant of `CLOCK_MONOTONIC`, ns; one in the past is for a single look.
    #[inline]
    pub fn new(spin_ns: u64, until: u64) -> Wait {
        Wait { spin_ns, until, looks: 0, began: None }
    }

    /// After a look that found nothing.
    #[inline]
    pub fn looked(&mut self) -> Next {
        self.looks = self.looks.wrapping_add(1);
        if self.spin_ns > 0 && self.until > 0 && !self.looks.is_multiple_of(LOOKS) {
            spin_loop();
            return Next::Look;
        }
        self.by_the_clock()
    }

    fn by_the_clock(&mut self) -> Next {
        let now = monotonic_ns();
        let left = self.until.saturating_sub(now);
        if left == 0 {
            return Next::Over;
        }
        match now - *self.began.get_or_insert(now) < self.spin_ns {
            true => Next::Look,
            false => Next::Sleep(left.min(WATCHDOG)),
        }
    }
}

/// Waits until a descriptor can be read or has ended, at most so many ns;
/// whether it can.
///
/// # Errors
/// The kernel refuses.
pub fn readable(descriptor: BorrowedFd<'_>, ns: u64) -> io::Result<bool> {
    let time = Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], Some(&time)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_looks_then_sleeps_and_has_an_end() {
        assert_eq!(Wait::new(0, 0).looked(), Next::Over);
        assert_eq!(Wait::new(FOREVER, 0).looked(), Next::Over);
        assert_eq!(Wait::new(0, u64::MAX).looked(), Next::Sleep(WATCHDOG));
        let mut spinning = Wait::new(FOREVER, u64::MAX);
        assert!((0..10 * LOOKS).all(|_| spinning.looked() == Next::Look));
        let mut patient = Wait::new(1, u64::MAX);
        let first = (0..10 * LOOKS).find(|_| patient.looked() != Next::Look).unwrap();
        assert!(first >= LOOKS - 1, "it slept at once");
        let mut late = Wait::new(FOREVER, 1);
        assert!((0..=LOOKS).any(|_| late.looked() == Next::Over));
    }
}
