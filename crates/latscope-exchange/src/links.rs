//! Links between threads: tokens by notifications.

use crate::notify::Notifier;
use crate::notify::counter::{CounterNotifier, Lanes, TokenCounter};
use crate::notify::eventfd::{self, Eventfd, EventfdByLibc};
use crate::notify::stream::Bytes;
use crate::{Closed, TokenLink};
use latscope_os::shared_cell::{Shareable, SharingScope};
use rustix::event::EventfdFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

/// Endpoint of a link whose mechanism outlives its users, so that the end of an endpoint is reported through memory.
#[derive(Debug)]
pub struct CountedEnd<T: Shareable, N: Notifier> {
    notifier: N,
    lanes: Lanes<T>,
    side: usize,
    given: u64,
    taken: u64,
    ended: bool,
}

impl<T: Shareable, N: Notifier> CountedEnd<T, N> {
    fn new(notifier: N, lanes: Lanes<T>, side: usize) -> Self {
        CountedEnd { notifier, lanes, side, given: 0, taken: 0, ended: false }
    }
}

impl<T: Shareable, N: Notifier + Send> TokenLink for CountedEnd<T, N> {
    #[inline]
    fn send_token(&mut self) -> Result<(), Closed> {
        if self.lanes[1 - self.side].ended.load(Ordering::Relaxed) != 0 {
            return Err(Closed);
        }
        self.given += 1;
        self.notifier.notify().map_err(|_| Closed)
    }

    #[inline]
    fn receive_token(&mut self) -> Result<(), Closed> {
        if self.ended {
            return Err(Closed);
        }
        self.notifier.wait_for_peer(None).map_err(|_| Closed)?;
        self.taken += 1;
        // The last token of a sender that ended only tells of its end.
        self.ended = self.lanes[1 - self.side].ended.load(Ordering::Acquire) == self.taken;
        if self.ended { Err(Closed) } else { Ok(()) }
    }
}

impl<T: Shareable, N: Notifier> Drop for CountedEnd<T, N> {
    fn drop(&mut self) {
        self.lanes[self.side].ended.store(self.given + 1, Ordering::Release);
        // Full of tokens: the receiver comes to the end without another wake-up.
        let _ = self.notifier.notify();
    }
}

/// Endpoint of a link through counts in shared memory.
pub(crate) type CounterEnd<T> = CountedEnd<T, CounterNotifier<T>>;

/// Two ends connected by two counts: futexes, POSIX semaphores, or condition variables
/// with their mutexes.
///
/// # Errors
/// No memory or descriptors left.
pub fn counter_pair<T: TokenCounter>(scope: SharingScope) -> io::Result<(CounterEnd<T>, CounterEnd<T>)> {
    let lanes = Lanes::create_zeroed(scope)?;
    Ok((counter_end(lanes.clone(), 0), counter_end(lanes, 1)))
}

/// The end of side 0 or 1; each side has one user.
pub(crate) fn counter_end<T: TokenCounter>(lanes: Lanes<T>, side: usize) -> CounterEnd<T> {
    CountedEnd::new(CounterNotifier { lanes: lanes.clone(), side }, lanes, side)
}

/// Endpoint of a link over two event descriptors.
pub(crate) type EventfdEnd = CountedEnd<AtomicU32, Eventfd>;

/// Two ends connected by two event descriptors in semaphore mode: each read takes one token.
///
/// # Errors
/// No memory or descriptors left.
pub fn eventfd() -> io::Result<(EventfdEnd, EventfdEnd)> {
    let events = eventfd::create_pair(EventfdFlags::SEMAPHORE)?;
    let lanes = Lanes::create_zeroed(SharingScope::Threads)?;
    let first = Eventfd::new([events[0].try_clone()?, events[1].try_clone()?], 0);
    Ok((CountedEnd::new(first, lanes.clone(), 0), CountedEnd::new(Eventfd::new(events, 1), lanes, 1)))
}

/// Two ends as those of [`eventfd()`], which call the functions of the C library.
///
/// # Errors
/// No memory or descriptors left.
pub fn eventfd_by_libc() -> io::Result<(EventfdByLibcEnd, EventfdByLibcEnd)> {
    let [first, second] = eventfd::create_pair(EventfdFlags::SEMAPHORE)?.map(File::from);
    let lanes = Lanes::create_zeroed(SharingScope::Threads)?;
    let near = EventfdByLibc { input: second.try_clone()?, output: first.try_clone()? };
    let far = EventfdByLibc { input: first, output: second };
    Ok((CountedEnd::new(near, lanes.clone(), 0), CountedEnd::new(far, lanes, 1)))
}

/// Endpoint of a link over two event descriptors by the C library.
pub(crate) type EventfdByLibcEnd = CountedEnd<AtomicU32, EventfdByLibc>;

/// Endpoint of a link over descriptors that carry bytes.
#[derive(Debug)]
pub struct StreamEnd(Bytes);

impl TokenLink for StreamEnd {
    #[inline]
    fn send_token(&mut self) -> Result<(), Closed> {
        self.0.notify().map_err(|_| Closed)
    }

    #[inline]
    fn receive_token(&mut self) -> Result<(), Closed> {
        self.0.wait_for_peer(None).map(drop).map_err(|_| Closed)
    }
}

/// Two ends connected by two pipes: pipe(7).
///
/// # Errors
/// No descriptors left.
pub fn pipe() -> io::Result<(StreamEnd, StreamEnd)> {
    let (first_reads, second_writes) = pipe_with(PipeFlags::CLOEXEC)?;
    let (second_reads, first_writes) = pipe_with(PipeFlags::CLOEXEC)?;
    let end = |input, output| StreamEnd(Bytes { input, output });
    Ok((end(first_reads, first_writes), end(second_reads, second_writes)))
}

/// Two ends connected by a pair of Unix stream sockets: unix(7).
///
/// # Errors
/// No descriptors left.
pub fn unix_stream() -> io::Result<(StreamEnd, StreamEnd)> {
    let end = |socket: UnixStream| -> io::Result<StreamEnd> {
        Ok(StreamEnd(Bytes { input: socket.try_clone()?.into(), output: socket.into() }))
    };
    let (first, second) = UnixStream::pair()?;
    Ok((end(first)?, end(second)?))
}
