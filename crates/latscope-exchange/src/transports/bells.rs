//! Notice that a message is in shared memory: a notification, or a look at the memory.

use super::endpoint::{
    EndpointSide, MORE_DESCRIPTORS, broken_failure, descriptors, failure_from_errno, parse_numbers,
    unavailable,
};
use super::lifeline::Lifeline;
use super::mailbox::{Extra, MailboxBell, mailbox_transport};
use crate::notify::counter::{CounterNotifier, Lanes, TokenCounter};
use crate::notify::eventfd::{self, Eventfd};
use crate::notify::io_uring::{self, IoUring};
use crate::notify::signal::{QueuedSignal, WaiterThreadCell};
use crate::notify::system_v::SystemVSemaphores;
use crate::notify::{Notifier, poll};
use crate::transaction::{EndpointHandle, IpcTransport, TransactionFailure, TransportSetupError};
use latscope_os::futex::Tokens;
use latscope_os::ring::UringLayout;
use latscope_os::semaphore::Semaphore;
use latscope_os::shared_cell::{Lane, Shareable, SharedCell, SharingScope};
use latscope_os::system_v::{change, create_semaphores};
use latscope_process::leftover::{Leftover, Leftovers};
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

pub(super) static SPIN: IpcTransport = IpcTransport {
    spins: true,
    ..mailbox_transport::<SpinningBell>("spin", "shared memory, spinning", "memfd_create(2), mmap(2)")
};

pub(super) static FUTEX: IpcTransport = mailbox_transport::<Notified<CounterNotifier<Tokens>>>(
    "futex",
    "shared memory, futex",
    "futex(2), memfd_create(2)",
);

pub(super) static POSIX_SEMAPHORE: IpcTransport = mailbox_transport::<Notified<CounterNotifier<Semaphore>>>(
    "posix-semaphore",
    "shared memory, POSIX semaphore",
    "sem_overview(7), memfd_create(2)",
);

pub(super) static SYSTEM_V_SEMAPHORE: IpcTransport = mailbox_transport::<Notified<SystemVSemaphores>>(
    "sysv-semaphore",
    "shared memory, System V semaphore",
    "semop(2), memfd_create(2)",
);

pub(super) static EVENTFD: IpcTransport = mailbox_transport::<Notified<Eventfd>>(
    "eventfd",
    "shared memory, eventfd",
    "eventfd(2), memfd_create(2)",
);

pub(super) static SIGNAL: IpcTransport = mailbox_transport::<Notified<QueuedSignal>>(
    "signal",
    "shared memory, queued signal",
    "sigqueue(3), sigwaitinfo(2)",
);

pub(super) static IO_URING: IpcTransport = mailbox_transport::<Notified<IoUring>>(
    "io-uring",
    "shared memory, io_uring message",
    "io_uring_enter(2), IORING_OP_MSG_RING",
);

/// A means of notification between two processes.
trait ProcessNotifier: Notifier + Send + Sized + 'static {
    /// Makes the objects that both processes get.
    fn create_shared() -> Result<Extra, TransportSetupError>;

    /// Makes one side of it; `gone` is true after the end of the other side.
    fn open_side(
        handle: EndpointHandle,
        side: usize,
        gone: Arc<AtomicBool>,
    ) -> Result<Self, TransactionFailure>;

    /// Returns a function that wakes this side from another thread.
    fn waker(&self) -> io::Result<impl FnMut() + Send + 'static>;
}

/// A bell that sleeps until it is notified.
struct Notified<N> {
    notifier: N,
    lifeline: Lifeline,
}

impl<N: ProcessNotifier> MailboxBell for Notified<N> {
    fn create_objects() -> Result<Extra, TransportSetupError> {
        N::create_shared()
    }

    fn open_bell(
        lifeline: OwnedFd,
        handle: EndpointHandle,
        side: EndpointSide,
    ) -> Result<Self, TransactionFailure> {
        let gone = Arc::default();
        let notifier = N::open_side(handle, side.own_index(), Arc::clone(&gone))?;
        let lifeline = Lifeline::watch_with_flag(lifeline, gone, notifier.waker().map_err(broken_failure)?)?;
        Ok(Notified { notifier, lifeline })
    }

    #[inline]
    fn ring(&mut self) -> Result<(), TransactionFailure> {
        self.notifier.notify().map_err(failure_from_io)
    }

    #[inline]
    fn wait_for_bell(&mut self, _: impl Fn() -> bool) -> Result<(), TransactionFailure> {
        self.notifier.wait_for_peer(None).map(drop).map_err(failure_from_io)
    }

    #[inline]
    fn gone(&self) -> bool {
        self.lifeline.gone()
    }
}

#[cold]
fn failure_from_io(error: io::Error) -> TransactionFailure {
    failure_from_errno(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// A value in shared memory.
fn create_cell<T: Shareable>() -> Result<Extra, TransportSetupError> {
    let made = || SharedCell::<T>::create_zeroed(SharingScope::Processes)?.descriptor().try_clone_to_owned();
    let memory = made().map_err(|error| unavailable("no shared memory", error, MORE_DESCRIPTORS))?;
    Ok(Extra { descriptors: vec![memory], ..Extra::default() })
}

impl<T: TokenCounter> ProcessNotifier for CounterNotifier<T> {
    fn create_shared() -> Result<Extra, TransportSetupError> {
        create_cell::<[Lane<T>; 2]>()
    }

    fn open_side(
        mut handle: EndpointHandle,
        side: usize,
        _: Arc<AtomicBool>,
    ) -> Result<Self, TransactionFailure> {
        let [memory] = descriptors(&mut handle)?;
        Ok(CounterNotifier { lanes: Lanes::map_existing(memory).map_err(broken_failure)?, side })
    }

    fn waker(&self) -> io::Result<impl FnMut() + Send + 'static> {
        let (lanes, other) = (self.lanes.clone(), 1 - self.side);
        // Full of tokens: no thread sleeps for want of one.
        Ok(move || drop(lanes[other].signal.add_token()))
    }
}

impl ProcessNotifier for SystemVSemaphores {
    fn create_shared() -> Result<Extra, TransportSetupError> {
        let set = create_semaphores(2).map_err(|error| {
            let remedy =
                "remove unused ones (ipcs -s, ipcrm), raise kernel.sem, or use a kernel with CONFIG_SYSVIPC";
            unavailable("no System V semaphores", error, remedy)
        })?;
        let leftovers = Leftovers::from([Leftover::SystemVSemaphores(set)]);
        Ok(Extra { words: vec![set.to_string()], leftovers, ..Extra::default() })
    }

    fn open_side(
        handle: EndpointHandle,
        side: usize,
        _: Arc<AtomicBool>,
    ) -> Result<Self, TransactionFailure> {
        let [set] = parse_numbers(&handle)?;
        Ok(SystemVSemaphores { set, side: side as u16 })
    }

    fn waker(&self) -> io::Result<impl FnMut() + Send + 'static> {
        let (set, other) = (self.set, 1 - self.side);
        // It fails only where the set is removed, and with it all waiting.
        Ok(move || change(set, other, 1).unwrap_or(()))
    }
}

impl ProcessNotifier for Eventfd {
    fn create_shared() -> Result<Extra, TransportSetupError> {
        let events = eventfd::create_pair(EventfdFlags::empty())
            .map_err(|error| unavailable("no eventfd", error, MORE_DESCRIPTORS))?;
        Ok(Extra { descriptors: events.into(), ..Extra::default() })
    }

    fn open_side(
        mut handle: EndpointHandle,
        side: usize,
        _: Arc<AtomicBool>,
    ) -> Result<Self, TransactionFailure> {
        Ok(Eventfd::new(descriptors(&mut handle)?, side))
    }

    fn waker(&self) -> io::Result<impl FnMut() + Send + 'static> {
        let input = self.input.try_clone()?;
        // It fails only for a count that is at its maximum: no thread sleeps then.
        Ok(move || drop(eventfd::signal(&input)))
    }
}

impl ProcessNotifier for QueuedSignal {
    fn create_shared() -> Result<Extra, TransportSetupError> {
        create_cell::<[Lane<AtomicU64>; 2]>()
    }

    fn open_side(
        mut handle: EndpointHandle,
        side: usize,
        gone: Arc<AtomicBool>,
    ) -> Result<Self, TransactionFailure> {
        let [memory] = descriptors(&mut handle)?;
        Ok(QueuedSignal::new(WaiterThreadCell::map_existing(memory).map_err(broken_failure)?, side, gone))
    }

    fn waker(&self) -> io::Result<impl FnMut() + Send + 'static> {
        Ok(self.waker())
    }
}

impl ProcessNotifier for IoUring {
    fn create_shared() -> Result<Extra, TransportSetupError> {
        let (rings, layout) = io_uring::create_rings().map_err(|error| {
            let remedy =
                "Linux 5.18 or newer, kernel.io_uring_disabled=0, no seccomp filter against io_uring";
            unavailable("no messages between io_uring instances", error, remedy)
        })?;
        let words = layout.to_words().iter().map(u32::to_string).collect();
        Ok(Extra { descriptors: rings.into(), words, ..Extra::default() })
    }

    fn open_side(
        mut handle: EndpointHandle,
        side: usize,
        _: Arc<AtomicBool>,
    ) -> Result<Self, TransactionFailure> {
        let layout = UringLayout::from_words(parse_numbers(&handle)?)
            .ok_or_else(|| broken_failure("no layout of a ring"))?;
        IoUring::from_descriptors(descriptors(&mut handle)?, layout, side).map_err(broken_failure)
    }

    /// A ring that watched the lifeline itself would hold it, and the other
    /// endpoint holds the ring: neither would ever see the end.
    fn waker(&self) -> io::Result<impl FnMut() + Send + 'static> {
        self.waker()
    }
}

/// Number of looks at the memory before a look at the lifeline: a millisecond or so. A longer wait means that the other
/// endpoint has no CPU, or is gone.
const LOOKS: u32 = 1 << 14;

/// No bell at all: the memory is watched.
struct SpinningBell {
    lifeline: OwnedFd,
    gone: bool,
}

impl MailboxBell for SpinningBell {
    fn create_objects() -> Result<Extra, TransportSetupError> {
        Ok(Extra::default())
    }

    fn open_bell(lifeline: OwnedFd, _: EndpointHandle, _: EndpointSide) -> Result<Self, TransactionFailure> {
        Ok(SpinningBell { lifeline, gone: false })
    }

    #[inline]
    fn ring(&mut self) -> Result<(), TransactionFailure> {
        Ok(())
    }

    #[inline(always)]
    fn wait_for_bell(&mut self, arrived: impl Fn() -> bool) -> Result<(), TransactionFailure> {
        loop {
            for _ in 0..LOOKS {
                if arrived() {
                    return Ok(());
                }
                // Each look takes the line from the one that is about to write into it.
                spin_loop();
            }
            self.gone = hung_up(&self.lifeline);
            if self.gone {
                return Ok(());
            }
            // The two may have to share one CPU.
            std::thread::yield_now();
        }
    }

    #[inline]
    fn gone(&self) -> bool {
        self.gone
    }
}

/// Returns true if the other end of a lifeline is closed.
#[cold]
fn hung_up(lifeline: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(lifeline, PollFlags::RDHUP)], Duration::ZERO).unwrap_or(false)
}
