//! Two pipes: pipe(7).

use super::endpoint::{MORE_DESCRIPTORS, client, endpoint_pair, server, unavailable};
use super::{LARGEST, stream};
use crate::transaction::{EndpointPair, Transport, Unavailable};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

pub(super) static TRANSPORT: Transport = Transport {
    name: "pipe",
    title: "pipe",
    source: "pipe(7)",
    copies: stream::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open,
    server: |handle| server(handle, stream::over_pipes),
    client: |handle| client(handle, stream::over_pipes),
};

fn open(payload: usize) -> Result<EndpointPair, Unavailable> {
    let pipe =
        || pipe_with(PipeFlags::CLOEXEC).map_err(|error| unavailable("no pipes", error, MORE_DESCRIPTORS));
    let ((server_reads, client_writes), (client_reads, server_writes)) = (pipe()?, pipe()?);
    make_room(&client_writes, payload);
    make_room(&server_writes, payload);
    Ok(endpoint_pair(vec![server_reads, server_writes], vec![client_reads, client_writes]))
}

/// Room in a pipe before it is asked for more: pipe(7).
const ROOM: usize = 64 << 10;

/// Has a pipe hold a whole message where it may, so that its writer does not
/// sleep in the middle of one. Where it may not (/proc/sys/fs/pipe-max-size) a
/// message goes in pieces.
pub(super) fn make_room(pipe: &OwnedFd, payload: usize) {
    // A page that is not filled counts as full.
    let whole = payload + stream::PREFIX + 4096;
    if whole > ROOM {
        let _ = fcntl_setpipe_size(pipe, whole.next_power_of_two());
    }
}
