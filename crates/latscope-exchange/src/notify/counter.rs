//! Notifications that are counts in shared memory: none is lost.

use super::{Notifier, without};
use latscope_os::futex::Tokens;
use latscope_os::monitor::CondvarCounter;
use latscope_os::semaphore::Semaphore;
use latscope_os::shared_cell::{Lane, Shareable, SharedCell};
use std::io;
use std::time::Duration;

/// Counter of tokens in shared memory, on which a thread can wait for a token.
pub trait TokenCounter: Shareable {
    /// Adds a token and wakes the thread that waits for one.
    ///
    /// # Errors
    /// There is no room for more tokens.
    fn add_token(&self) -> io::Result<()>;

    /// Takes a token, sleeping while there is none.
    fn take_token(&self);
}

/// futex(2) without a library between.
impl TokenCounter for Tokens {
    #[inline]
    fn add_token(&self) -> io::Result<()> {
        Tokens::give_token(self);
        Ok(())
    }

    #[inline]
    fn take_token(&self) {
        Tokens::take_token(self);
    }
}

/// A pthread mutex and condition variable: the giver locks, counts, unlocks and
/// signals; the taker waits for the count under the mutex.
impl TokenCounter for CondvarCounter {
    #[inline]
    fn add_token(&self) -> io::Result<()> {
        CondvarCounter::give_token(self);
        Ok(())
    }

    #[inline]
    fn take_token(&self) {
        CondvarCounter::take_token(self);
    }
}

/// Counts with sem_post(3) and sem_wait(3).
impl TokenCounter for Semaphore {
    #[inline]
    fn add_token(&self) -> io::Result<()> {
        self.post()
    }

    #[inline]
    fn take_token(&self) {
        self.wait();
    }
}

/// Memory of both directions: a lane for the tokens of each side.
pub type Lanes<T> = SharedCell<[Lane<T>; 2]>;

/// Side 0 or 1 of two counts.
#[derive(Debug)]
pub struct CounterNotifier<T: TokenCounter> {
    pub(crate) lanes: Lanes<T>,
    pub(crate) side: usize,
}

impl<T: TokenCounter> Notifier for CounterNotifier<T> {
    #[inline]
    fn notify(&mut self) -> io::Result<()> {
        self.lanes[self.side].signal.add_token()
    }

    #[inline]
    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        without(timeout)?;
        self.lanes[1 - self.side].signal.take_token();
        Ok(true)
    }
}
