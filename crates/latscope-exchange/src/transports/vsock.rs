//! A stream socket of virtual machines, within one system: vsock(7), over
//! `VMADDR_CID_LOCAL`.

use super::endpoint::{client, endpoint_pair, server, unavailable};
use super::{LARGEST, stream};
use crate::transaction::Transport;
use latscope_os::vsock;

pub(super) static TRANSPORT: Transport = Transport {
    name: "vsock",
    title: "vsock, loopback",
    source: "vsock(7), VMADDR_CID_LOCAL",
    copies: stream::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open: |_| {
        let (server, client) = vsock::pair().map_err(|error| {
            unavailable("no vsock within this system", error, "load its module: modprobe vsock_loopback")
        })?;
        Ok(endpoint_pair(vec![server], vec![client]))
    },
    server: |handle| server(handle, stream::over_socket),
    client: |handle| client(handle, stream::over_socket),
};
