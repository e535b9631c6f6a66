//! Waking and waiting, by each of the means.

use super::PacedWakeMechanism;
use super::board::{PacedEndpointWord, PacedRunMemory};
use latscope_exchange::notify::counter::Lanes;
use latscope_exchange::transports::nameless_queue;
use latscope_os::futex::Tokens;
use latscope_os::message_queue::{self, Blocking};
use latscope_os::queued_signal::{self, QueuedSignalTarget};
use latscope_os::shared_cell::SharingScope;
use latscope_os::system_v;
use latscope_process::leftover::{Leftover, Leftovers};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::atomic::Ordering;

/// Connection between the two endpoints of a pair. Each waits on a lane of its own: the receiver on 0, the
/// sender on 1.
#[derive(Debug)]
pub(super) enum PacedWakeChannel {
    Queues([OwnedFd; 2]),
    Semaphores(i32),
    Futexes(Lanes<Tokens>),
    Signals,
}

/// Bytes of a message.
const MESSAGE: usize = 8;

impl PacedWakeChannel {
    /// Creates a channel. Also returns the objects that stay behind if they are not removed.
    pub(super) fn create_with_leftovers(
        means: PacedWakeMechanism,
        scope: SharingScope,
    ) -> std::io::Result<(PacedWakeChannel, Leftovers)> {
        let channel = match means {
            PacedWakeMechanism::Queues => {
                PacedWakeChannel::Queues([nameless_queue(1, MESSAGE)?, nameless_queue(1, MESSAGE)?])
            }
            PacedWakeMechanism::Semaphores => PacedWakeChannel::Semaphores(system_v::create_semaphores(2)?),
            PacedWakeMechanism::Futexes => PacedWakeChannel::Futexes(Lanes::create_zeroed(scope)?),
            PacedWakeMechanism::Signals => PacedWakeChannel::Signals,
        };
        let left = match channel {
            PacedWakeChannel::Semaphores(set) => Leftovers::from([Leftover::SystemVSemaphores(set)]),
            _ => Leftovers::none(),
        };
        Ok((channel, left))
    }

    /// Wakes the thread that waits on a lane.
    #[inline]
    pub(super) fn wake_lane(&self, lane: usize, waiting: QueuedSignalTarget) -> Result<()> {
        match self {
            PacedWakeChannel::Queues(queues) => {
                retry_on_intr(|| message_queue::send_message(&queues[lane], &[0; MESSAGE], Blocking::Yes))
            }
            PacedWakeChannel::Semaphores(set) => system_v::change(*set, lane as u16, 1),
            PacedWakeChannel::Futexes(lanes) => {
                lanes[lane].signal.give_token();
                Ok(())
            }
            PacedWakeChannel::Signals => queued_signal::send_signal(waiting),
        }
    }

    /// Waits on a lane.
    #[inline]
    pub(super) fn wait_on_lane(&self, lane: usize) -> Result<()> {
        match self {
            PacedWakeChannel::Queues(queues) => {
                let mut message = [0; MESSAGE];
                retry_on_intr(|| message_queue::receive_message(&queues[lane], &mut message, Blocking::Yes))
                    .map(drop)
            }
            PacedWakeChannel::Semaphores(set) => system_v::change(*set, lane as u16, -1),
            PacedWakeChannel::Futexes(lanes) => {
                lanes[lane].signal.take_token();
                Ok(())
            }
            PacedWakeChannel::Signals => queued_signal::wait_signal(),
        }
    }

    /// Waits on a lane as [`wait_on_lane`](PacedWakeChannel::wait_on_lane) does, but for some seconds at most, where a
    /// timeout is possible: after them the error is `ETIMEDOUT`.
    pub(super) fn wait_for(&self, lane: usize, seconds: u64) -> Result<()> {
        let PacedWakeChannel::Queues(queues) = self else { return self.wait_on_lane(lane) };
        let now = clock_gettime(ClockId::Realtime);
        let end = Timespec { tv_sec: now.tv_sec.saturating_add_unsigned(seconds as _), ..now };
        retry_on_intr(|| message_queue::receive_until(&queues[lane], &mut [0; MESSAGE], &end)).map(drop)
    }
}

/// Address to wake, as it is on the board once the endpoint is ready.
pub(super) fn wake_target(board: &PacedRunMemory, endpoint: usize) -> QueuedSignalTarget {
    let packed = board.endpoint_word(endpoint, PacedEndpointWord::Address).load(Ordering::Acquire);
    QueuedSignalTarget { process: (packed >> 32) as u32, thread: packed as u32 }
}

/// Puts the calling thread on the board as ready to be woken.
pub(super) fn publish_wake_target(
    board: &PacedRunMemory,
    endpoint: usize,
    means: PacedWakeMechanism,
) -> Result<()> {
    let own = match means {
        PacedWakeMechanism::Signals => queued_signal::receiver()?,
        _ => QueuedSignalTarget {
            process: std::process::id(),
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
        },
    };
    let packed = u64::from(own.process) << 32 | u64::from(own.thread);
    board.endpoint_word(endpoint, PacedEndpointWord::Address).store(packed, Ordering::Release);
    Ok(())
}

/// Error of a wait that ended without a message.
pub(super) const TIMED_OUT: Errno = Errno::TIMEDOUT;
