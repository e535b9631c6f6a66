//! The ways a thread can wait for an instant.

use super::activations::{ThreadActivation, Waiter};
use super::thread::{ClockName, WakeHopKind, WakeMethod, WakeThreadSettings};
use crate::prelude::*;
use latscope_exchange::{TokenLink, links};
use latscope_os::posix_timer::PosixTimer;
use rustix::thread::{
    ClockId, NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative, nanosleep,
};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use std::marker::PhantomData;

/// A clock of the kernel by which timers run.
pub trait KernelClock: Copy + Send + 'static {
    /// Id of the clock in the kernel.
    const ID: ClockId;
    /// Id of the clock for timers that have a descriptor.
    const OF_DESCRIPTOR: TimerfdClockId;
}

/// The kernel's clock `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic;

/// The kernel's clock `CLOCK_REALTIME`.
#[derive(Debug, Clone, Copy)]
pub struct Realtime;

impl KernelClock for Monotonic {
    const ID: ClockId = ClockId::Monotonic;
    const OF_DESCRIPTOR: TimerfdClockId = TimerfdClockId::Monotonic;
}

impl KernelClock for Realtime {
    const ID: ClockId = ClockId::Realtime;
    const OF_DESCRIPTOR: TimerfdClockId = TimerfdClockId::Realtime;
}

/// Now, by this clock, ns.
#[inline(always)]
pub fn now<C: KernelClock>() -> u64 {
    let time = clock_gettime(C::ID);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Sleeps until an instant; a signal does not end the sleep.
#[inline(always)]
pub fn sleep_until<C: KernelClock>(due: u64) {
    let due = timespec(due);
    while clock_nanosleep_absolute(C::ID, &due) == Err(Errno::INTR) {}
}

/// `clock_nanosleep` to an absolute instant.
pub struct Nanosleep<C>(pub C);

impl<C: KernelClock> Waiter for Nanosleep<C> {
    #[inline(always)]
    fn wait_until_due(&mut self, due: u64) -> ThreadActivation {
        sleep_until::<C>(due);
        ThreadActivation { due, now: now::<C>(), swallowed: None }
    }
}

/// A sleep for a time from now: `clock_nanosleep` without `TIMER_ABSTIME`, or nanosleep(2). The due instant is
/// that time after the call, so that the cost of the call counts as lateness, and lateness adds up.
pub struct Relative<C> {
    interval: u64,
    by_nanosleep: bool,
    clock: PhantomData<C>,
}

impl<C: KernelClock> Waiter for Relative<C> {
    #[inline(always)]
    fn wait_until_due(&mut self, _: u64) -> ThreadActivation {
        let mut rest = timespec(self.interval);
        let due = now::<C>() + self.interval;
        loop {
            let slept = match self.by_nanosleep {
                true => nanosleep(&rest),
                false => clock_nanosleep_relative(C::ID, &rest),
            };
            match slept {
                NanosleepRelativeResult::Interrupted(left) => rest = left,
                _ => return ThreadActivation { due, now: now::<C>(), swallowed: None },
            }
        }
    }
}

/// A read of a periodic timerfd, which is started at the first wait.
pub(crate) struct Timerfd<C> {
    timer: OwnedFd,
    interval: u64,
    started: bool,
    clock: PhantomData<C>,
}

impl<C: KernelClock> Timerfd<C> {
    fn start_timer(&mut self, first: u64) {
        let times = Itimerspec { it_interval: timespec(self.interval), it_value: timespec(first) };
        // Refused only for times that are none, and these are sound.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &times);
        self.started = true;
    }
}

impl<C: KernelClock> Waiter for Timerfd<C> {
    #[inline(always)]
    fn wait_until_due(&mut self, due: u64) -> ThreadActivation {
        if !self.started {
            self.start_timer(due);
        }
        let mut expirations = [0u8; 8];
        while rustix::io::read(&self.timer, &mut expirations) == Err(Errno::INTR) {}
        let swallowed = u64::from_ne_bytes(expirations).saturating_sub(1);
        ThreadActivation { due, now: now::<C>(), swallowed: Some(swallowed) }
    }
}

/// A periodic POSIX timer, started at the first wait by the thread it signals.
pub(crate) struct ByPosixTimer<C> {
    timer: Option<PosixTimer>,
    interval: u64,
    clock: PhantomData<C>,
}

impl<C: KernelClock> Waiter for ByPosixTimer<C> {
    #[inline(always)]
    fn wait_until_due(&mut self, due: u64) -> ThreadActivation {
        if self.timer.is_none() {
            self.timer = PosixTimer::start_absolute(C::ID, due, self.interval).ok();
        }
        let swallowed = match &mut self.timer {
            Some(timer) => Some(timer.wait_expiration()),
            // None is left since one was tried: the same sleep by another mechanism.
            None => {
                sleep_until::<C>(due);
                None
            }
        };
        ThreadActivation { due, now: now::<C>(), swallowed }
    }
}

/// `sched_yield` of a SCHED_DEADLINE thread, which ends the runtime of this
/// period and sleeps until the next begins.
pub struct Yield<C> {
    grid: Grid,
    clock: PhantomData<C>,
}

impl<C: KernelClock> Waiter for Yield<C> {
    #[inline(always)]
    fn wait_until_due(&mut self, due: u64) -> ThreadActivation {
        rustix::thread::sched_yield();
        self.grid.woken(due, now::<C>())
    }
}

/// Grid of the periods. The kernel does not report their beginnings, and no wake-up comes before them: the
/// earliest so far sets the grid.
struct Grid {
    interval: u64,
    begin: Option<u64>,
    /// Time by which the last wake-up came before the grid so far, ns.
    moved: u64,
}

impl Grid {
    fn new(interval: u64) -> Grid {
        Grid { interval, begin: None, moved: 0 }
    }

    /// Returns the activation of a wake-up at `now`, in the period that is expected to begin at `due`; that
    /// period follows the one that the call before returned.
    fn woken(&mut self, due: u64, now: u64) -> ThreadActivation {
        let grid = *self.begin.get_or_insert(now);
        let expected = due - self.moved;
        let periods = (expected.saturating_sub(grid) + self.interval / 2) / self.interval;
        let due = grid + periods * self.interval;
        self.moved = due.saturating_sub(now);
        self.begin = Some(grid.saturating_sub(self.moved));
        ThreadActivation { due, now, swallowed: None }
    }
}

/// Waits for another thread, which waits for the instant and then hands over.
pub struct WakeHopWaiter {
    link: Box<dyn TokenLink>,
    handed_over: Arc<HandedOver>,
    taken: usize,
    now: fn() -> u64,
}

/// Due instants of the activations handed over, and the number of activations that each has swallowed. The link
/// carries only tokens; a receiver that is late finds several.
struct HandedOver([[AtomicU64; 2]; BACKLOG]);

/// Number of activations that a receiver may be behind.
const BACKLOG: usize = 1024;

impl Waiter for WakeHopWaiter {
    #[inline(always)]
    fn wait_until_due(&mut self, due: u64) -> ThreadActivation {
        if self.link.receive_token().is_err() {
            return ThreadActivation { due, now: due, swallowed: Some(0) };
        }
        let now = (self.now)();
        let [due, swallowed] = &self.handed_over.0[self.taken % BACKLOG];
        self.taken += 1;
        ThreadActivation {
            due: due.load(Ordering::Acquire),
            now,
            swallowed: Some(swallowed.load(Ordering::Acquire)),
        }
    }
}

/// The other side of a [`WakeHopWaiter`]: sleeps until each instant and hands over.
pub struct Hopper {
    link: Box<dyn TokenLink>,
    handed_over: Arc<HandedOver>,
}

impl Hopper {
    /// Hands over at `first` and every `interval` after that, until the
    /// receiver is gone.
    pub fn run_hops(mut self, clock: ClockName, first: u64, interval: u64) {
        let (mut due, mut given) = (first, 0);
        loop {
            let now = match clock {
                ClockName::Monotonic => Nanosleep(Monotonic).wait_until_due(due).now,
                ClockName::Realtime => Nanosleep(Realtime).wait_until_due(due).now,
            };
            let swallowed = now.saturating_sub(due).saturating_sub(1) / interval;
            let [due_here, swallowed_here] = &self.handed_over.0[given % BACKLOG];
            due_here.store(due, Ordering::Release);
            swallowed_here.store(swallowed, Ordering::Release);
            if self.link.send_token().is_err() {
                return;
            }
            given += 1;
            due += (1 + swallowed) * interval;
        }
    }
}

/// The two ends of a hop.
///
/// # Errors
/// No memory or descriptors are left.
pub fn hop(thread: &WakeThreadSettings) -> Result<Option<(WakeHopWaiter, Hopper)>> {
    let (receiver, sender): (Box<dyn TokenLink>, Box<dyn TokenLink>) = match thread.via {
        WakeHopKind::Direct => return Ok(None),
        WakeHopKind::Thread => {
            box_ends(links::counter_pair::<Tokens>(SharingScope::Threads).context("no futex for the hop")?)
        }
        WakeHopKind::Eventfd => box_ends(links::eventfd().context("no eventfd for the hop")?),
        WakeHopKind::Pipe => box_ends(links::pipe().context("no pipe for the hop")?),
    };
    let handed_over = Arc::new(HandedOver([const { [const { AtomicU64::new(0) }; 2] }; BACKLOG]));
    let now = match thread.clock {
        ClockName::Monotonic => now::<Monotonic>,
        ClockName::Realtime => now::<Realtime>,
    };
    let hop = WakeHopWaiter { link: receiver, handed_over: handed_over.clone(), taken: 0, now };
    Ok(Some((hop, Hopper { link: sender, handed_over })))
}

fn box_ends<L: TokenLink + 'static>((a, b): (L, L)) -> (Box<dyn TokenLink>, Box<dyn TokenLink>) {
    (Box::new(a), Box::new(b))
}

/// A job that takes any waiter; compiled for each kind of them.
pub(crate) trait WithWaiter {
    /// Result of the job.
    type Output;
    /// Does the job with this waiter.
    fn run_with(self, waiter: impl Waiter) -> Self::Output;
}

/// Does a job with the waiter of a thread's method.
///
/// # Errors
/// The kernel has no such timer.
pub(crate) fn with_waiter<C: KernelClock, J: WithWaiter>(
    clock: C,
    thread: &WakeThreadSettings,
    job: J,
) -> Result<J::Output> {
    let (interval, kernel_clock, clock) = (thread.interval, clock, PhantomData::<C>);
    Ok(match thread.method {
        WakeMethod::Nanosleep => job.run_with(Nanosleep(kernel_clock)),
        WakeMethod::Relative => job.run_with(Relative { interval, by_nanosleep: false, clock }),
        WakeMethod::System => job.run_with(Relative { interval, by_nanosleep: true, clock }),
        WakeMethod::Yield => job.run_with(Yield { grid: Grid::new(interval), clock }),
        WakeMethod::Timerfd => {
            let timer = timerfd_create(C::OF_DESCRIPTOR, TimerfdFlags::CLOEXEC).context("no timerfd")?;
            job.run_with(Timerfd { timer, interval, started: false, clock })
        }
        WakeMethod::PosixTimer => {
            PosixTimer::start_absolute(ClockId::Monotonic, u64::MAX >> 2, interval)
                .context("no POSIX timer")?;
            job.run_with(ByPosixTimer { timer: None, interval, clock })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeywordEnum;
    use crate::wake::thread::WakeThreadPolicy;

    struct ThreeWakeUps(ClockName, u64);

    impl WithWaiter for ThreeWakeUps {
        type Output = ();
        fn run_with(self, mut waiter: impl Waiter) {
            let now = match self.0 {
                ClockName::Monotonic => now::<Monotonic>(),
                ClockName::Realtime => now::<Realtime>(),
            };
            let mut due = now + self.1;
            for _ in 0..3 {
                let woken = waiter.wait_until_due(due);
                assert!(woken.now >= woken.due, "woken before its time");
                due = woken.due + (1 + woken.swallowed.unwrap_or(0)) * self.1;
            }
        }
    }

    #[test]
    fn an_early_wake_up_moves_the_begin_of_all_periods_after_it() {
        let mut grid = Grid::new(1000);
        let mut due = 0;
        let mut late = |now: u64| {
            let woken = grid.woken(due, now);
            due = woken.due + 1000;
            now.cast_signed() - woken.due.cast_signed()
        };
        // The first came 800 late, which shows with the second.
        assert_eq!([1800, 2000, 3003, 4000, 4998, 6005].map(&mut late), [0, -800, 3, 0, -2, 7]);
    }

    #[test]
    fn no_way_of_waiting_wakes_before_its_time() {
        std::thread::spawn(|| {
            for method in WakeMethod::ALL.iter().filter(|method| **method != WakeMethod::Yield) {
                let usual = crate::wake::timer::usual_thread(0, None);
                let thread = WakeThreadSettings {
                    method: *method,
                    interval: 500_000,
                    policy: WakeThreadPolicy::Other,
                    ..usual
                };
                with_waiter(Monotonic, &thread, ThreeWakeUps(ClockName::Monotonic, 500_000)).unwrap();
                with_waiter(Realtime, &thread, ThreeWakeUps(ClockName::Realtime, 500_000)).unwrap();
            }
        })
        .join()
        .unwrap();
    }
}
