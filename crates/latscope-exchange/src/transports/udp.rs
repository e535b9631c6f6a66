//! Two connected UDP sockets on the loopback interface: udp(7). Its MTU is
//! 64 KiB: no datagram is cut into fragments there.

use super::endpoint::{client, endpoint_pair, server, unavailable};
use super::{datagram, lifeline};
use crate::transaction::{EndpointPair, Transport, Unavailable};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// 64 KiB - 1 for the whole packet, less the headers of IP (20) and UDP (8).
const LARGEST_DATAGRAM: usize = 65_507;

pub(super) static TRANSPORT: Transport = Transport {
    name: "udp",
    title: "UDP, loopback",
    source: "udp(7)",
    copies: datagram::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST_DATAGRAM,
    open,
    // A receiver that is slower loses datagrams: nothing is sent ahead.
    server: |handle| server(handle, datagram::watched::<false>),
    client: |handle| client(handle, datagram::watched::<false>),
};

fn open(_: usize) -> Result<EndpointPair, Unavailable> {
    let (server, client) = pair().map_err(|error| {
        unavailable("no UDP over 127.0.0.1", error, "bring the interface up: ip link set lo up")
    })?;
    let (server_line, client_line) = lifeline::pair()?;
    Ok(endpoint_pair(vec![server.into(), server_line], vec![client.into(), client_line]))
}

fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let (first, second) =
        (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    first.connect(second.local_addr()?)?;
    second.connect(first.local_addr()?)?;
    Ok((first, second))
}
