//! Hand-over by pipes: pipe(7).

use super::StreamEnd;
use super::wait::Wait;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;

/// Two ends connected by two pipes.
///
/// # Errors
/// No descriptors left.
pub fn pair<W: Wait>() -> io::Result<(StreamEnd<W>, StreamEnd<W>)> {
    let (first_reads, second_writes) = pipe_with(PipeFlags::CLOEXEC)?;
    let (second_reads, first_writes) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((StreamEnd::new(first_reads, first_writes), StreamEnd::new(second_reads, second_writes)))
}
