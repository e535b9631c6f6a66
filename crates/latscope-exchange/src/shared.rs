//! Links whose tokens are counts in shared memory.

use super::wait::Wait;
use super::{Closed, Link};
use latscope_os::shared_cell::{Lane, Scope, Shareable, SharedCell};
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

/// Something in shared memory that counts tokens and lets one wait for them.
pub trait TokenCounter: Shareable {
    /// Adds a token and wakes the thread that waits for one.
    ///
    /// # Errors
    /// There is no room for more tokens.
    fn give(&self) -> io::Result<()>;

    /// Takes a token, sleeping while there is none.
    fn take(&self);

    /// Takes a token if there is one.
    fn try_take(&self) -> bool;
}

/// The memory of a two-way link: a lane for what each side sends.
pub type Lanes<T> = SharedCell<[Lane<T>; 2]>;

/// Two connected ends.
pub type Ends<T, W> = (SharedEnd<T, W>, SharedEnd<T, W>);

/// One end of a link through shared memory.
#[derive(Debug)]
pub struct SharedEnd<T: TokenCounter, W> {
    lanes: Lanes<T>,
    side: usize,
    given: u64,
    taken: u64,
    ended: bool,
    wait: PhantomData<W>,
}

/// Two ends in fresh memory.
///
/// # Errors
/// As [`SharedCell::create`].
pub fn pair<T: TokenCounter, W: Wait>(scope: Scope) -> io::Result<Ends<T, W>> {
    let lanes = Lanes::create(scope)?;
    Ok((SharedEnd::new(lanes.clone(), 0), SharedEnd::new(lanes, 1)))
}

impl<T: TokenCounter, W: Wait> SharedEnd<T, W> {
    /// The end of side 0 or 1 of a link; each side has one user.
    pub fn new(lanes: Lanes<T>, side: usize) -> Self {
        assert!(side < 2, "a link has two sides");
        SharedEnd { lanes, side, given: 0, taken: 0, ended: false, wait: PhantomData }
    }

    /// The memory of the link, whose descriptor another process can open.
    pub fn lanes(&self) -> &Lanes<T> {
        &self.lanes
    }
}

impl<T: TokenCounter, W: Wait> Link for SharedEnd<T, W> {
    #[inline]
    fn send(&mut self) -> Result<(), Closed> {
        if self.lanes[1 - self.side].ended.load(Ordering::Relaxed) != 0 {
            return Err(Closed);
        }
        self.given += 1;
        self.lanes[self.side].signal.give().map_err(|_| Closed)
    }

    #[inline]
    fn recv(&mut self) -> Result<(), Closed> {
        if self.ended {
            return Err(Closed);
        }
        let lane = &self.lanes[1 - self.side];
        W::wait(|| lane.signal.try_take().then_some(()), || lane.signal.take());
        self.taken += 1;
        // The last token of a sender that ended only tells of its end.
        self.ended = lane.ended.load(Ordering::Acquire) == self.taken;
        if self.ended { Err(Closed) } else { Ok(()) }
    }
}

impl<T: TokenCounter, W> Drop for SharedEnd<T, W> {
    fn drop(&mut self) {
        let lane = &self.lanes[self.side];
        lane.ended.store(self.given + 1, Ordering::Release);
        // Full of tokens: the receiver comes to the end without another wake-up.
        let _ = lane.signal.give();
    }
}
