//! Signals that interrupt the system calls of a thread again and again, to try
//! that nothing is lost by it: `EINTR`, signal(7).

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr};

/// The calling thread is interrupted as long as this lives.
#[derive(Debug)]
pub struct Interruptions {
    timer: libc::timer_t,
    bound_to_thread: PhantomData<*const ()>,
}

const SIGNAL: libc::c_int = libc::SIGVTALRM;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// How often threads of this process have been interrupted so far.
pub fn count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

extern "C" fn interrupted(_: libc::c_int) {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

impl Interruptions {
    /// Interrupts the calling thread every `period` ns, by a handler without
    /// SA_RESTART, which stays.
    ///
    /// # Errors
    /// No timers left, or a period of 0 or of more than 1 s.
    pub fn start(period: u64) -> io::Result<Interruptions> {
        if !(1..1_000_000_000).contains(&period) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let every = libc::timespec { tv_sec: 0, tv_nsec: period as _ };
        let times = libc::itimerspec { it_interval: every, it_value: every };
        // SAFETY: sigaction, sigevent and timer_t are plain data for which zeroes
        // are valid; the handler is async-signal-safe, and the calls only use
        // locals that outlive them.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = interrupted as *const () as usize;
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            if libc::sigaction(SIGNAL, &action, ptr::null_mut()) != 0
                || libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) != 0
            {
                return Err(io::Error::last_os_error());
            }
            let interruptions = Interruptions { timer, bound_to_thread: PhantomData };
            match libc::timer_settime(timer, 0, &times, ptr::null_mut()) {
                0 => Ok(interruptions),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}

impl Drop for Interruptions {
    fn drop(&mut self) {
        // SAFETY: deleted once, here.
        unsafe { libc::timer_delete(self.timer) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{Errno, read};

    #[test]
    fn a_sleeping_call_is_interrupted() {
        let (reads, _writes) = rustix::pipe::pipe().unwrap();
        let interruptions = Interruptions::start(1_000_000).unwrap();
        for _ in 0..3 {
            assert_eq!(read(&reads, &mut [0; 1]), Err(Errno::INTR));
        }
        drop(interruptions);
        assert!(count() >= 3);
        assert!(Interruptions::start(0).is_err());
    }
}
