//! Tokens through pipes, as single bytes.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;

/// A pipe: the end to read from and the end to write to. A child that is
/// forked has them too, a program it executes has not.
///
/// # Errors
/// No descriptors left.
pub fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Hands a token on; says whether it went.
#[inline]
pub fn give(output: impl AsFd) -> bool {
    loop {
        match write(&output, &[0]) {
            Err(Errno::INTR) => {}
            result => return result == Ok(1),
        }
    }
}

/// Waits for a token; says whether one came before the end.
#[inline]
pub fn take(input: impl AsFd) -> bool {
    let mut token = [0];
    loop {
        match read(&input, &mut token) {
            Err(Errno::INTR) => {}
            result => return result == Ok(1),
        }
    }
}
