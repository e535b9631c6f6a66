//! A signal as a message between threads of any process: sent with
//! rt_tgsigqueueinfo(2), received by waiting for it, never by a handler.

use crate::syscall::syscall;
use rustix::io::{Errno, Result, retry_on_intr};
use std::cell::Cell;

/// A thread, as others may send to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedSignalTarget {
    /// Process id of the thread's process.
    pub process: u32,
    /// Thread id of the receiver.
    pub thread: u32,
}

/// The signal. Real-time signals queue up: none of them is lost.
#[inline]
fn signal_number() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

/// Bytes of the kernel's signal set: _NSIG / 8.
const SET: usize = 8;

#[inline]
fn signal_bits() -> u64 {
    1 << (signal_number() - 1)
}

thread_local! {
    /// The calling thread, once the signal is blocked in it.
    static RECEIVER: Cell<Option<QueuedSignalTarget>> = const { Cell::new(None) };
}

/// Makes the calling thread one that can receive: the signal is blocked in it,
/// for as long as it lives. Makes system calls once in a thread only.
///
/// # Errors
/// A seccomp filter refuses it.
#[inline]
pub fn receiver() -> Result<QueuedSignalTarget> {
    match RECEIVER.get() {
        None => prepare_receiver(),
        Some(address) => Ok(address),
    }
}

#[cold]
fn prepare_receiver() -> Result<QueuedSignalTarget> {
    let set = signal_bits();
    let arguments = [libc::SIG_BLOCK as usize, &raw const set as usize, 0, SET, 0, 0];
    // SAFETY: a set of the size that is passed, which is only read. Blocking a
    // signal without another user changes nothing for the rest of the process.
    unsafe { syscall(libc::SYS_rt_sigprocmask, arguments)? };
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let address = QueuedSignalTarget { process: std::process::id(), thread };
    RECEIVER.set(Some(address));
    Ok(address)
}

/// Sends a signal to a thread that is a [`receiver`].
///
/// # Errors
/// `ESRCH`: the thread no longer exists. `EAGAIN`: as many signals are queued as RLIMIT_SIGPENDING allows. `EPERM`: the
/// thread belongs to another user.
#[inline]
pub fn send_signal(to: QueuedSignalTarget) -> Result<()> {
    let signal = signal_number();
    // SAFETY: siginfo_t is plain data for which zeroes are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    (info.si_signo, info.si_code) = (signal, libc::SI_QUEUE);
    let arguments =
        [to.process as usize, to.thread as usize, signal as usize, &raw const info as usize, 0, 0];
    // SAFETY: the kernel reads the information; nothing else of ours is touched.
    unsafe { syscall(libc::SYS_rt_tgsigqueueinfo, arguments) }.map(drop)
}

/// Sleeps until a signal is sent to the calling thread, which must be a
/// [`receiver`]: sigwaitinfo(2).
///
/// # Errors
/// The thread is no receiver (`EINVAL`).
#[inline]
pub fn wait_signal() -> Result<()> {
    if RECEIVER.get().is_none() {
        return Err(Errno::INVAL);
    }
    let set = signal_bits();
    let arguments = [&raw const set as usize, 0, 0, SET, 0, 0];
    // SAFETY: waits for a blocked signal; reads the set and writes nowhere.
    retry_on_intr(|| unsafe { syscall(libc::SYS_rt_sigtimedwait, arguments) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn each_signal_arrives_at_its_thread() {
        let (tell, told) = channel();
        let waiting = std::thread::spawn(move || {
            tell.send(receiver().unwrap()).unwrap();
            (0..100).map(|_| wait_signal()).collect::<Result<Vec<()>>>().unwrap().len()
        });
        let address = told.recv().unwrap();
        for _ in 0..100 {
            send_signal(address).unwrap();
        }
        assert_eq!(waiting.join().unwrap(), 100);
        // Joined is not yet gone: the kernel clears up behind a thread.
        let refused = loop {
            match send_signal(address) {
                Ok(()) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(refused, Errno::SRCH);
    }

    #[test]
    fn a_thread_that_is_no_receiver_does_not_wait_for_ever() {
        let waited = std::thread::spawn(wait_signal).join().unwrap();
        assert_eq!(waited, Err(Errno::INVAL));
    }
}
