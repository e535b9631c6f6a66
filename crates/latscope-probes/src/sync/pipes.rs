//! Tokens through pipes, as single bytes.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;

/// Opens a pipe: the end to read from and the end to write to. A forked child has both ends, a program that it
/// executes has not.
///
/// # Errors
/// No descriptors are left.
pub fn open_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Writes a token; returns true on success.
#[inline]
pub fn write_token(output: impl AsFd) -> bool {
    retry_on_intr(|| write(&output, &[0])) == Ok(1)
}

/// Waits for a token; returns true if one came before the end.
#[inline]
pub fn read_token(input: impl AsFd) -> bool {
    let mut token = [0];
    retry_on_intr(|| read(&input, &mut token)) == Ok(1)
}
