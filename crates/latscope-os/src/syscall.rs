//! System calls without a library between: the instruction and nothing else. The module also has helpers for callers of
//! the C library.
//!
//! The C library caches some answers (old `getpid`), wraps others
//! (`sigaction` translates its structure) and leaves a few out (`tgkill`).
//! Where the call itself is timed, it is made here.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::{Errno, Result};
use std::io;
use std::time::Duration;

/// Makes the call `number` with six arguments; unused ones are 0.
///
/// # Errors
/// What the kernel answers, as an error number.
///
/// # Safety
/// The arguments must be what the call with this number asks for: pointers
/// valid for what the kernel reads and writes through them, and no effect on
/// memory or descriptors that Rust code believes to own.
#[inline(always)]
pub(crate) unsafe fn syscall(number: libc::c_long, arguments: [usize; 6]) -> Result<usize> {
    // SAFETY: the caller vouches for the arguments.
    let answer = unsafe { execute_syscall(number, arguments) };
    // The kernel answers errors as -4095..=-1.
    if answer > -4096isize as usize {
        return Err(Errno::from_raw_os_error(answer.wrapping_neg() as i32));
    }
    Ok(answer)
}

/// The answer of a call of the C library that fails with a negative one, and the reason in `errno`.
#[inline]
pub(crate) fn check_errno(answer: impl Into<i64>) -> io::Result<i32> {
    let answer = answer.into();
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
}

/// The answer of a call that fails with an error number, as those of pthread do.
#[inline]
pub(crate) fn check_number(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Waits until there is something to read, or to accept.
pub(crate) fn is_readable(descriptor: &impl AsFd, timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    Ok(poll(&mut descriptors, Some(&timeout))? > 0)
}

pub(crate) fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data; the calls only write to `set`.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        set
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn execute_syscall(number: libc::c_long, a: [usize; 6]) -> usize {
    let answer;
    // SAFETY: the registers are those of the x86-64 kernel ABI (syscall(2));
    // `syscall` itself destroys rcx and r11 and leaves the stack alone.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as usize => answer,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
            in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn execute_syscall(number: libc::c_long, a: [usize; 6]) -> usize {
    let answer;
    // SAFETY: the registers are those of the arm64 kernel ABI (syscall(2));
    // `svc` preserves all others and leaves the stack alone.
    unsafe {
        std::arch::asm!(
            "svc #0",
            in("x8") number as usize,
            inlateout("x0") a[0] => answer,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack),
        );
    }
    answer
}

#[cfg(target_arch = "riscv64")]
#[inline(always)]
unsafe fn execute_syscall(number: libc::c_long, a: [usize; 6]) -> usize {
    let answer;
    // SAFETY: the registers are those of the RISC-V kernel ABI (syscall(2)); `ecall` preserves all others and leaves
    // the stack alone.
    unsafe {
        std::arch::asm!(
            "ecall",
            in("a7") number as usize,
            inlateout("a0") a[0] => answer,
            in("a1") a[1], in("a2") a[2], in("a3") a[3], in("a4") a[4], in("a5") a[5],
            options(nostack),
        );
    }
    answer
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
unsafe fn execute_syscall(number: libc::c_long, a: [usize; 6]) -> usize {
    // SAFETY: the caller vouches for the arguments.
    let answer = unsafe { libc::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) };
    match answer {
        -1 => (io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL) as usize).wrapping_neg(),
        answer => answer as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_errors_are_told_apart() {
        // SAFETY: getppid has no arguments; close of an impossible descriptor
        // touches nothing.
        let (parent, refused) = unsafe {
            (syscall(libc::SYS_getppid, [0; 6]), syscall(libc::SYS_close, [usize::MAX, 0, 0, 0, 0, 0]))
        };
        assert_eq!(parent, Ok(std::os::unix::process::parent_id() as usize));
        assert_eq!(refused, Err(Errno::BADF));
    }
}
