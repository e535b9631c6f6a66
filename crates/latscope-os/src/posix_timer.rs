//! A periodic POSIX timer that signals one thread, which waits for it:
//! timer_create(2) with `SIGEV_THREAD_ID`, and rt_sigtimedwait(2).

use crate::syscall::{check_errno, check_number, signal_set};
use rustix::time::ClockId;
use std::marker::PhantomData;
use std::time::Duration;
use std::{io, ptr};

/// A timer that signals the thread that makes it.
#[derive(Debug)]
pub(crate) struct ThreadTimer {
    timer: libc::timer_t,
    bound_to_thread: PhantomData<*const ()>,
}

impl ThreadTimer {
    /// A timer that sends `signal` at the instant `first`, relative unless `flags` say otherwise, and every
    /// `interval` after that.
    ///
    /// # Safety
    /// The signal does no harm to the thread: it is blocked or handled.
    pub unsafe fn start_signalling(
        clock: libc::clockid_t,
        signal: libc::c_int,
        flags: libc::c_int,
        first: Duration,
        interval: Duration,
    ) -> io::Result<ThreadTimer> {
        let timespec = |time: Duration| libc::timespec {
            tv_sec: time.as_secs() as _,
            tv_nsec: time.subsec_nanos() as _,
        };
        let times = libc::itimerspec { it_interval: timespec(interval), it_value: timespec(first) };
        // SAFETY: sigevent and timer_t are plain data for which zeroes are valid; each call uses locals that outlive
        // it. For the signal the caller vouches.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            check_errno(libc::timer_create(clock, &mut event, &mut timer))?;
            let timer = ThreadTimer { timer, bound_to_thread: PhantomData };
            check_errno(libc::timer_settime(timer.timer, flags, &times, ptr::null_mut()))?;
            Ok(timer)
        }
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: deleted once, here.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// A timer of the calling thread; bound to it, because its signal is.
#[derive(Debug)]
pub struct PosixTimer {
    timer: ThreadTimer,
    set: libc::sigset_t,
}

/// The signal of the timers. Blocked in every thread that has one, so that it
/// never interrupts anything.
const SIGNAL: libc::c_int = libc::SIGALRM;

impl PosixTimer {
    /// A timer that expires at the instant `first` of the clock and every
    /// `interval` after that, both in ns.
    ///
    /// # Errors
    /// EAGAIN or ENOMEM (no timers left), EINVAL (an interval of 0 never expires again).
    pub fn start_absolute(clock: ClockId, first: u64, interval: u64) -> io::Result<PosixTimer> {
        let set = signal_set(&[SIGNAL]);
        // SAFETY: the set is only read.
        check_number(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut()) })?;
        let (first, interval) = (Duration::from_nanos(first), Duration::from_nanos(interval));
        // SAFETY: the signal is blocked.
        let timer = unsafe {
            ThreadTimer::start_signalling(clock as _, SIGNAL, libc::TIMER_ABSTIME, first, interval)?
        };
        Ok(PosixTimer { timer, set })
    }

    /// Waits for the next expiration and returns how many more of them it
    /// stands for (timer_getoverrun(2)).
    #[inline]
    pub fn wait_expiration(&mut self) -> u64 {
        loop {
            // SAFETY: waits for the blocked signal of this timer; writes nowhere.
            let signal = unsafe { libc::sigtimedwait(&self.set, ptr::null_mut(), ptr::null()) };
            if signal == SIGNAL {
                // SAFETY: the timer exists as long as `self`.
                return unsafe { libc::timer_getoverrun(self.timer.timer) }.max(0) as u64;
            }
        }
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
            let mut timer = PosixTimer::start_absolute(ClockId::Monotonic, first, 1_000_000).unwrap();
            let overrun = timer.wait_expiration();
            assert!(monotonic_ns() >= first + overrun * 1_000_000);
            std::thread::sleep(std::time::Duration::from_millis(5));
            let slept_over = timer.wait_expiration();
            assert!(slept_over >= 3, "{slept_over}");
            assert!(monotonic_ns() >= first + (overrun + 1 + slept_over) * 1_000_000);
        })
        .join()
        .unwrap();
    }
}
