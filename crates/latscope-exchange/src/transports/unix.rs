//! Connected pairs of Unix sockets of each type: unix(7).

use super::endpoint::{MORE_DESCRIPTORS, client, endpoint_pair, server, unavailable};
use super::{LARGEST, datagram, lifeline, stream};
use crate::transaction::{EndpointPair, Transport, Unavailable};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// A packet must fit into the buffer of a socket, 208 KiB by default.
const LARGEST_PACKET: usize = 128 << 10;

pub(super) static STREAM: Transport = Transport {
    name: "unix-stream",
    title: "Unix stream socket",
    source: "unix(7), SOCK_STREAM",
    copies: stream::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open: |_| {
        let (server, client) = pair(SocketType::STREAM)?;
        Ok(endpoint_pair(vec![server], vec![client]))
    },
    server: |handle| server(handle, stream::over_socket),
    client: |handle| client(handle, stream::over_socket),
};

pub(super) static SEQPACKET: Transport = Transport {
    name: "unix-seqpacket",
    title: "Unix packet socket",
    source: "unix(7), SOCK_SEQPACKET",
    copies: datagram::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST_PACKET,
    open: |_| {
        let (server, client) = pair(SocketType::SEQPACKET)?;
        Ok(endpoint_pair(vec![server], vec![client]))
    },
    server: |handle| server(handle, datagram::connected::<true>),
    client: |handle| client(handle, datagram::connected::<true>),
};

pub(super) static DATAGRAM: Transport = Transport {
    name: "unix-datagram",
    title: "Unix datagram socket",
    source: "unix(7), SOCK_DGRAM",
    copies: datagram::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST_PACKET,
    open: open_datagrams,
    server: |handle| server(handle, datagram::watched::<true>),
    client: |handle| client(handle, datagram::watched::<true>),
};

fn open_datagrams(_: usize) -> Result<EndpointPair, Unavailable> {
    let (server, client) = pair(SocketType::DGRAM)?;
    let (server_line, client_line) = lifeline::pair()?;
    Ok(endpoint_pair(vec![server, server_line], vec![client, client_line]))
}

fn pair(kind: SocketType) -> Result<(OwnedFd, OwnedFd), Unavailable> {
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
        .map_err(|error| unavailable("no Unix sockets", error, MORE_DESCRIPTORS))
}
