//! A periodic POSIX timer that signals one thread, which waits for it:
//! timer_create(2) with `SIGEV_THREAD_ID`, and rt_sigtimedwait(2).

use std::io;
use std::marker::PhantomData;
use std::ptr;

/// Which clock a timer runs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerClock {
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_REALTIME`.
    Realtime,
}

/// A timer of the calling thread; bound to it, because its signal is.
#[derive(Debug)]
pub struct PosixTimer {
    timer: libc::timer_t,
    set: libc::sigset_t,
    bound_to_thread: PhantomData<*const ()>,
}

/// The signal of the timers. Blocked in every thread that has one, so that it
/// never interrupts anything.
const SIGNAL: libc::c_int = libc::SIGALRM;

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

impl PosixTimer {
    /// A timer that expires at the instant `first` of the clock and every
    /// `interval` after that, both in ns.
    ///
    /// # Errors
    /// EAGAIN or ENOMEM (no timers left), EINVAL (an interval of 0 never expires again).
    pub fn start(clock: TimerClock, first: u64, interval: u64) -> io::Result<PosixTimer> {
        let clock = match clock {
            TimerClock::Monotonic => libc::CLOCK_MONOTONIC,
            TimerClock::Realtime => libc::CLOCK_REALTIME,
        };
        // SAFETY: sigset_t, sigevent and timer_t are plain data for which zeroes are valid; each
        // call writes to a local that outlives it, and `set` holds one blocked signal.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, SIGNAL);
            let failed = libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            if libc::timer_create(clock, &mut event, &mut timer) != 0 {
                return Err(io::Error::last_os_error());
            }
            let timer = PosixTimer { timer, set, bound_to_thread: PhantomData };
            let times = libc::itimerspec { it_interval: timespec(interval), it_value: timespec(first) };
            if libc::timer_settime(timer.timer, libc::TIMER_ABSTIME, &times, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(timer)
        }
    }

    /// Waits for the next expiration and returns how many more of them it
    /// stands for (timer_getoverrun(2)).
    #[inline]
    pub fn wait(&mut self) -> u64 {
        loop {
            // SAFETY: waits for the blocked signal of this timer; writes nowhere.
            let signal = unsafe { libc::sigtimedwait(&self.set, ptr::null_mut(), ptr::null()) };
            if signal == SIGNAL {
                // SAFETY: the timer exists as long as `self`.
                return unsafe { libc::timer_getoverrun(self.timer) }.max(0) as u64;
            }
        }
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: deleted once, here.
        unsafe { libc::timer_delete(self.timer) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;

    #[test]
    fn a_timer_never_expires_before_its_time_and_counts_what_was_slept_over() {
        std::thread::spawn(|| {
            let first = monotonic_ns() + 2_000_000;
            let mut timer = PosixTimer::start(TimerClock::Monotonic, first, 1_000_000).unwrap();
            let overrun = timer.wait();
            assert!(monotonic_ns() >= first + overrun * 1_000_000);
            std::thread::sleep(std::time::Duration::from_millis(5));
            let slept_over = timer.wait();
            assert!(slept_over >= 3, "{slept_over}");
            assert!(monotonic_ns() >= first + (overrun + 1 + slept_over) * 1_000_000);
        })
        .join()
        .unwrap();
    }
}
