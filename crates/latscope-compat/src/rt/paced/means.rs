//! Waking and waiting, by each of the means.

use super::Means;
use super::board::{Board, Word};
use latscope_exchange::notify::counter::Lanes;
use latscope_exchange::transports::nameless_queue;
use latscope_os::futex::Tokens;
use latscope_os::message_queue::{self, Blocking};
use latscope_os::queued_signal::{self, Address};
use latscope_os::shared_cell::Scope;
use latscope_os::system_v;
use latscope_process::leftover::{Leftover, Leftovers};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::atomic::Ordering;

/// Connection between the two endpoints of a pair. Each waits on a lane of its own: the receiver on 0, the
/// sender on 1.
#[derive(Debug)]
pub(super) enum Channel {
    Queues([OwnedFd; 2]),
    Semaphores(i32),
    Futexes(Lanes<Tokens>),
    Signals,
}

/// Bytes of a message.
const MESSAGE: usize = 8;

impl Channel {
    /// Creates a channel. Also returns the objects that stay behind if they are not removed.
    pub(super) fn create(means: Means, scope: Scope) -> std::io::Result<(Channel, Leftovers)> {
        let channel = match means {
            Means::Queues => Channel::Queues([nameless_queue(1, MESSAGE)?, nameless_queue(1, MESSAGE)?]),
            Means::Semaphores => Channel::Semaphores(system_v::create_semaphores(2)?),
            Means::Futexes => Channel::Futexes(Lanes::create(scope)?),
            Means::Signals => Channel::Signals,
        };
        let left = match channel {
            Channel::Semaphores(set) => Leftovers::from([Leftover::SystemVSemaphores(set)]),
            _ => Leftovers::none(),
        };
        Ok((channel, left))
    }

    /// Wakes the thread that waits on a lane.
    #[inline]
    pub(super) fn wake(&self, lane: usize, waiting: Address) -> Result<()> {
        match self {
            Channel::Queues(queues) => {
                retry_on_intr(|| message_queue::send(&queues[lane], &[0; MESSAGE], Blocking::Yes))
            }
            Channel::Semaphores(set) => system_v::change(*set, lane as u16, 1),
            Channel::Futexes(lanes) => {
                lanes[lane].signal.give();
                Ok(())
            }
            Channel::Signals => queued_signal::send(waiting),
        }
    }

    /// Waits on a lane.
    #[inline]
    pub(super) fn wait(&self, lane: usize) -> Result<()> {
        match self {
            Channel::Queues(queues) => {
                let mut message = [0; MESSAGE];
                retry_on_intr(|| message_queue::receive(&queues[lane], &mut message, Blocking::Yes)).map(drop)
            }
            Channel::Semaphores(set) => system_v::change(*set, lane as u16, -1),
            Channel::Futexes(lanes) => {
                lanes[lane].signal.take();
                Ok(())
            }
            Channel::Signals => queued_signal::wait(),
        }
    }

    /// Waits on a lane as [`wait`](Channel::wait) does, but for some seconds at most, where a timeout is
    /// possible: after them the error is `ETIMEDOUT`.
    pub(super) fn wait_for(&self, lane: usize, seconds: u64) -> Result<()> {
        let Channel::Queues(queues) = self else { return self.wait(lane) };
        let now = clock_gettime(ClockId::Realtime);
        let end = Timespec { tv_sec: now.tv_sec.saturating_add_unsigned(seconds as _), ..now };
        retry_on_intr(|| message_queue::receive_until(&queues[lane], &mut [0; MESSAGE], &end)).map(drop)
    }
}

/// Address to wake, as it is on the board once the endpoint is ready.
pub(super) fn address(board: &Board, endpoint: usize) -> Address {
    let packed = board.word(endpoint, Word::Address).load(Ordering::Acquire);
    Address { process: (packed >> 32) as u32, thread: packed as u32 }
}

/// Puts the calling thread on the board as ready to be woken.
pub(super) fn introduce(board: &Board, endpoint: usize, means: Means) -> Result<()> {
    let own = match means {
        Means::Signals => queued_signal::receiver()?,
        _ => Address {
            process: std::process::id(),
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
        },
    };
    let packed = u64::from(own.process) << 32 | u64::from(own.thread);
    board.word(endpoint, Word::Address).store(packed, Ordering::Release);
    Ok(())
}

/// Error of a wait that ended without a message.
pub(super) const TIMED_OUT: Errno = Errno::TIMEDOUT;
