//! Signals that interrupt the system calls of a thread again and again, to test that nothing is lost by them: `EINTR`,
//! signal(7).

use crate::posix_timer::ThreadTimer;
use crate::syscall::check_errno;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{io, ptr};

/// The calling thread is interrupted as long as this lives.
#[derive(Debug)]
pub struct Interruptions(#[expect(dead_code, reason = "it interrupts until it is dropped")] ThreadTimer);

const SIGNAL: libc::c_int = libc::SIGVTALRM;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Returns how many times threads of this process were interrupted so far.
pub fn interruption_count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

extern "C" fn count_interruption(_: libc::c_int) {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

impl Interruptions {
    /// Interrupts the calling thread once in a `period`, by a handler without
    /// SA_RESTART, which stays.
    ///
    /// # Errors
    /// No timers left, or a period of 0 or of 1 s or more.
    pub fn start_periodic(period: Duration) -> io::Result<Interruptions> {
        if period.is_zero() || period >= Duration::from_secs(1) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: sigaction is plain data for which zeroes are valid; the handler is async-signal-safe.
        let timer = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count_interruption as *const () as usize;
            check_errno(libc::sigaction(SIGNAL, &action, ptr::null_mut()))?;
            ThreadTimer::start_signalling(libc::CLOCK_MONOTONIC, SIGNAL, 0, period, period)?
        };
        Ok(Interruptions(timer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{Errno, read};

    #[test]
    fn a_sleeping_call_is_interrupted() {
        let (reads, _writes) = rustix::pipe::pipe().unwrap();
        let interruptions = Interruptions::start_periodic(Duration::from_millis(1)).unwrap();
        for _ in 0..3 {
            assert_eq!(read(&reads, &mut [0; 1]), Err(Errno::INTR));
        }
        drop(interruptions);
        assert!(interruption_count() >= 3);
        assert!(Interruptions::start_periodic(Duration::ZERO).is_err());
    }
}
