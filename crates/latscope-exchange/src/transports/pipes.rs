//! Two pipes, without names or as files: pipe(7), fifo(7).

use super::endpoint::{MORE_DESCRIPTORS, endpoint_pair, transport, unavailable};
use super::stream::{PREFIX, StreamEndpoint};
use crate::transaction::{EndpointPair, IpcTransport};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, fcntl_setfl, mkfifoat, open};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::io;
use std::path::Path;

pub(super) static PIPE: IpcTransport = transport::<StreamEndpoint>("pipe", "pipe", "pipe(7)", |payload| {
    let pipes = || io::Result::Ok([pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?]);
    let pipes = pipes().map_err(|error| unavailable("no pipes", error, MORE_DESCRIPTORS))?;
    Ok(pair_from_pipes(pipes, payload))
});

/// The names go before the files are used.
pub(super) static FIFO: IpcTransport =
    transport::<StreamEndpoint>("fifo", "FIFO file", "fifo(7)", |payload| {
        let fifos = create_fifo_pair().map_err(|error| {
            unavailable(
                "no FIFO can be made",
                error,
                "set TMPDIR to a directory you may write to (docker: --tmpfs /tmp:exec)",
            )
        })?;
        Ok(pair_from_pipes(fifos, payload))
    });

fn create_fifo_pair() -> io::Result<[(OwnedFd, OwnedFd); 2]> {
    let in_memory = |_| tempfile::Builder::new().prefix(".latscope-").tempdir_in("/dev/shm");
    let directory = tempfile::Builder::new().prefix(".latscope-").tempdir().or_else(in_memory)?;
    Ok([fifo(&directory.path().join("there"))?, fifo(&directory.path().join("back"))?])
}

/// The endpoint pair over two pipes: the ends to read from and to write to, first of that to the server.
fn pair_from_pipes(pipes: [(OwnedFd, OwnedFd); 2], payload: usize) -> EndpointPair {
    let [(server_reads, client_writes), (client_reads, server_writes)] = pipes;
    make_room(&client_writes, payload);
    make_room(&server_writes, payload);
    endpoint_pair(vec![server_reads, server_writes], vec![client_reads, client_writes])
}

/// Both ends of a new FIFO, blocking.
fn fifo(path: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?;
    // A reader that does not wait for a writer, who then does not wait either.
    let reads = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let writes = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_setfl(&reads, OFlags::empty())?;
    Ok((reads, writes))
}

/// Room in a pipe before it is asked for more: pipe(7).
const ROOM: usize = 64 << 10;

/// Enlarges a pipe to hold a whole message where permitted, so that its writer does not sleep in the middle of a
/// message. Where it is not permitted (/proc/sys/fs/pipe-max-size) a message goes in pieces.
fn make_room(pipe: &OwnedFd, payload: usize) {
    // A page that is not filled counts as full.
    let whole = payload + PREFIX + 4096;
    if whole > ROOM {
        let _ = fcntl_setpipe_size(pipe, whole.next_power_of_two());
    }
}
