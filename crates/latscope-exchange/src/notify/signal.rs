//! Queued signals to the thread that waits: sigqueue(3), sigwaitinfo(2).

use super::{Notifier, without};
use latscope_os::queued_signal::{self, QueuedSignalTarget, receiver};
use latscope_os::shared_cell::{Lane, SharedCell};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Thread of each side that waits; 0 before a thread waits.
pub(crate) type WaiterThreadCell = SharedCell<[Lane<AtomicU64>; 2]>;

/// Side of two processes that signal each other.
#[derive(Debug)]
pub(crate) struct QueuedSignal {
    waiting: WaiterThreadCell,
    side: usize,
    told: Option<QueuedSignalTarget>,
    /// True after the end of the peer.
    gone: Arc<AtomicBool>,
}

impl QueuedSignal {
    /// Makes side 0 or 1; `gone` is true from before the call of its waker.
    pub fn new(waiting: WaiterThreadCell, side: usize, gone: Arc<AtomicBool>) -> QueuedSignal {
        QueuedSignal { waiting, side, told: None, gone }
    }

    /// Returns a function that wakes this side from another thread.
    pub(crate) fn waker(&self) -> impl FnMut() + Send + 'static {
        let (waiting, side) = (self.waiting.clone(), self.side);
        move || {
            if let Some(address) = waiting_on(&waiting, side) {
                // The thread is gone, or so many are queued that it does not sleep.
                let _ = queued_signal::send_signal(address);
            }
        }
    }

    /// Reports to the peer which thread of this side waits, before the thread may have to.
    #[inline]
    fn publish_waiter(&mut self) -> io::Result<()> {
        let own = receiver()?;
        if self.told != Some(own) {
            let packed = u64::from(own.process) << 32 | u64::from(own.thread);
            self.waiting[self.side].signal.store(packed, Ordering::SeqCst);
            self.told = Some(own);
        }
        Ok(())
    }

    /// The peer's waiting thread, which at the very beginning is awaited.
    #[inline]
    fn peer(&self) -> io::Result<QueuedSignalTarget> {
        loop {
            if let Some(address) = waiting_on(&self.waiting, 1 - self.side) {
                return Ok(address);
            }
            if self.gone.load(Ordering::SeqCst) {
                return Err(Errno::SRCH.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[inline]
fn waiting_on(waiting: &WaiterThreadCell, side: usize) -> Option<QueuedSignalTarget> {
    match waiting[side].signal.load(Ordering::SeqCst) {
        0 => None,
        packed => Some(QueuedSignalTarget { process: (packed >> 32) as u32, thread: packed as u32 }),
    }
}

impl Notifier for QueuedSignal {
    #[inline]
    fn notify(&mut self) -> io::Result<()> {
        self.publish_waiter()?;
        Ok(queued_signal::send_signal(self.peer()?)?)
    }

    #[inline]
    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        without(timeout)?;
        self.publish_waiter()?;
        // The peer's end may have been told to another thread that this one waited.
        if !self.gone.load(Ordering::SeqCst) {
            queued_signal::wait_signal()?;
        }
        Ok(true)
    }
}
