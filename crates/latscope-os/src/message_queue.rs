//! POSIX message queues (mq_overview(7)) by their system calls: a queue is a
//! descriptor, so that one without a name lives as long as its holders.

use crate::syscall::syscall;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::time::Timespec;
use std::ffi::CString;

/// Layout of `struct mq_attr` (linux/mqueue.h).
#[repr(C)]
#[derive(Debug, Default)]
struct PosixQueueAttributes {
    flags: libc::c_long,
    most_messages: libc::c_long,
    message_size: libc::c_long,
    messages: libc::c_long,
    reserved: [libc::c_long; 4],
}

/// Choice whether a call may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// The call sleeps until it can succeed, or a signal comes.
    Yes,
    /// The call never sleeps: it returns `ETIMEDOUT` instead.
    No,
}

static PAST: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl Blocking {
    #[inline]
    fn timeout_address(self) -> usize {
        match self {
            Blocking::Yes => 0,
            Blocking::No => &raw const PAST as usize,
        }
    }
}

/// The name as the kernel wants it: without the slash of mq_open(3).
fn kernel_name(name: &str) -> Result<CString> {
    CString::new(name.trim_start_matches('/')).map_err(|_| Errno::INVAL)
}

/// Makes a queue for `messages` messages of up to `size` bytes: mq_open(2).
///
/// # Errors
/// `EEXIST`: the name is taken. `EINVAL`: more or longer messages than
/// /proc/sys/fs/mqueue allows. `EMFILE`: over RLIMIT_MSGQUEUE. `ENOSYS`: a kernel without queues.
pub fn create_queue(name: &str, messages: usize, size: usize) -> Result<OwnedFd> {
    let name = kernel_name(name)?;
    let attributes = PosixQueueAttributes {
        most_messages: messages as libc::c_long,
        message_size: size as libc::c_long,
        ..PosixQueueAttributes::default()
    };
    let flags = (libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC) as usize;
    let arguments = [name.as_ptr() as usize, flags, 0o600, &raw const attributes as usize, 0, 0];
    // SAFETY: both pointers are valid for the call, which only reads them.
    let descriptor = unsafe { syscall(libc::SYS_mq_open, arguments)? };
    // SAFETY: a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Takes the name away; the queue goes with its last descriptor: mq_unlink(2).
///
/// # Errors
/// `ENOENT`: there is no such queue.
pub fn unlink(name: &str) -> Result<()> {
    let name = kernel_name(name)?;
    // SAFETY: the pointer is valid for the call, which only reads it.
    unsafe { syscall(libc::SYS_mq_unlink, [name.as_ptr() as usize, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Puts a message behind the others of priority 0: mq_timedsend(2).
///
/// # Errors
/// `EMSGSIZE`: longer than the queue allows. `EINTR`. `ETIMEDOUT`: full.
#[inline]
pub fn send_message(queue: impl AsFd, message: &[u8], blocking: Blocking) -> Result<()> {
    let queue = queue.as_fd().as_raw_fd() as usize;
    let arguments = [queue, message.as_ptr() as usize, message.len(), 0, blocking.timeout_address(), 0];
    // SAFETY: the message is valid for the call, which only reads it and the instant.
    unsafe { syscall(libc::SYS_mq_timedsend, arguments) }.map(drop)
}

/// Takes the first message and returns its length: mq_timedreceive(2).
///
/// # Errors
/// `EMSGSIZE`: the buffer is shorter than the queue's longest message. `EINTR`. `ETIMEDOUT`: empty.
#[inline]
pub fn receive_message(queue: impl AsFd, buffer: &mut [u8], blocking: Blocking) -> Result<usize> {
    receive_with_timeout(queue, buffer, blocking.timeout_address())
}

/// [`receive_message`], which gives up at an instant of `CLOCK_REALTIME` with `ETIMEDOUT`.
///
/// # Errors
/// The errors of [`receive_message`].
#[inline]
pub fn receive_until(queue: impl AsFd, buffer: &mut [u8], instant: &Timespec) -> Result<usize> {
    receive_with_timeout(queue, buffer, std::ptr::from_ref(instant) as usize)
}

/// `until` is the address of an instant, or 0.
#[inline]
fn receive_with_timeout(queue: impl AsFd, buffer: &mut [u8], until: usize) -> Result<usize> {
    let queue = queue.as_fd().as_raw_fd() as usize;
    let arguments = [queue, buffer.as_mut_ptr() as usize, buffer.len(), 0, until, 0];
    // SAFETY: the kernel writes at most buffer.len() bytes to the buffer and reads the instant, if any.
    unsafe { syscall(libc::SYS_mq_timedreceive, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(of: &str) -> String {
        format!("/latscope-{of}-{}", std::process::id())
    }

    #[test]
    fn attributes_are_laid_out_as_the_kernel_has_them() {
        assert_eq!(size_of::<PosixQueueAttributes>(), size_of::<[libc::c_long; 8]>());
        assert_eq!(std::mem::offset_of!(PosixQueueAttributes, message_size), size_of::<[libc::c_long; 2]>());
    }

    #[test]
    fn messages_keep_their_order_and_bounds_without_a_name() {
        let name = name("order");
        let queue = create_queue(&name, 3, 16).unwrap();
        assert_eq!(create_queue(&name, 3, 16).unwrap_err(), Errno::EXIST);
        unlink(&name).unwrap();
        assert_eq!(unlink(&name), Err(Errno::NOENT));
        for message in [&b"first"[..], b"", b"third"] {
            send_message(&queue, message, Blocking::Yes).unwrap();
        }
        assert_eq!(send_message(&queue, b"fourth", Blocking::No), Err(Errno::TIMEDOUT));
        let mut buffer = [0; 16];
        assert_eq!(receive_message(&queue, &mut buffer[..15], Blocking::Yes), Err(Errno::MSGSIZE));
        assert_eq!(receive_message(&queue, &mut buffer, Blocking::Yes), Ok(5));
        assert_eq!(&buffer[..5], b"first");
        assert_eq!(receive_message(&queue, &mut buffer, Blocking::Yes), Ok(0));
        assert_eq!(receive_message(&queue, &mut buffer, Blocking::No), Ok(5));
        assert_eq!(receive_message(&queue, &mut buffer, Blocking::No), Err(Errno::TIMEDOUT));
        assert_eq!(receive_until(&queue, &mut buffer, &PAST), Err(Errno::TIMEDOUT));
        assert_eq!(send_message(&queue, &[0; 17], Blocking::No), Err(Errno::MSGSIZE));
    }
}
