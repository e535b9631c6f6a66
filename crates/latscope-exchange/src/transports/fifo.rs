//! Two named pipes in a directory: fifo(7). The names go as soon as both ends
//! are open: what is measured are the files.

use super::endpoint::{client, endpoint_pair, server, unavailable};
use super::{LARGEST, pipe, stream};
use crate::transaction::{EndpointPair, Transport, Unavailable};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, mkfifoat, open as open_file};
use std::io;
use std::path::Path;

pub(super) static TRANSPORT: Transport = Transport {
    name: "fifo",
    title: "FIFO file",
    source: "fifo(7)",
    copies: stream::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open,
    server: |handle| server(handle, stream::over_pipes),
    client: |handle| client(handle, stream::over_pipes),
};

fn open(payload: usize) -> Result<EndpointPair, Unavailable> {
    let fifos = || -> io::Result<_> {
        let directory = tempfile::Builder::new().prefix(".latscope-").tempdir()?;
        Ok((fifo(&directory.path().join("there"))?, fifo(&directory.path().join("back"))?))
    };
    let ((server_reads, client_writes), (client_reads, server_writes)) = fifos().map_err(|error| {
        unavailable("no FIFO can be made", error, "set TMPDIR to a directory you may write to")
    })?;
    pipe::make_room(&client_writes, payload);
    pipe::make_room(&server_writes, payload);
    Ok(endpoint_pair(vec![server_reads, server_writes], vec![client_reads, client_writes]))
}

/// Both ends of a new FIFO, blocking.
fn fifo(path: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?;
    // A reader that does not wait for a writer, who then does not wait either.
    let reads = open_file(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let writes = open_file(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_setfl(&reads, OFlags::empty())?;
    Ok((reads, writes))
}
