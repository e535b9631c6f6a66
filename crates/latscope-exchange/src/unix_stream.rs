//! Hand-over by a pair of connected Unix stream sockets: unix(7).

use super::StreamEnd;
use super::wait::Wait;
use std::io;
use std::os::unix::net::UnixStream;

/// Two connected ends.
///
/// # Errors
/// No descriptors left.
pub fn pair<W: Wait>() -> io::Result<(StreamEnd<W>, StreamEnd<W>)> {
    let (first, second) = UnixStream::pair()?;
    Ok((end(first)?, end(second)?))
}

fn end<W: Wait>(socket: UnixStream) -> io::Result<StreamEnd<W>> {
    Ok(StreamEnd::new(socket.try_clone()?.into(), socket.into()))
}
