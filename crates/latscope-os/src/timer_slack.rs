//! Timer slack of the calling thread: PR_SET_TIMERSLACK(2const).

use crate::syscall::check_errno;
use std::io;

/// Lets the kernel end sleeps of the calling thread, and of its later children, up to so many ns late.
///
/// # Errors
/// The kernel refuses the call.
pub fn set_slack_ns(ns: u64) -> io::Result<()> {
    let ns = libc::c_ulong::try_from(ns).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes numbers.
    check_errno(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns, 0, 0, 0) }).map(drop)
}

/// Returns the timer slack of the calling thread, ns, as far as it fits into the answer (2 s); 0 under a real-time
/// policy. `None` if the kernel refuses the call.
pub fn get() -> Option<u64> {
    // SAFETY: the call takes numbers.
    let answer = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(answer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slack_is_what_was_set_for_this_thread() {
        let within = std::thread::spawn(|| {
            set_slack_ns(123_456).unwrap();
            get()
        });
        assert_eq!(within.join().unwrap(), Some(123_456));
        assert_ne!(get(), Some(123_456));
    }
}
