//! Two connected sockets of each kind.

use super::datagram::DatagramEndpoint;
use super::endpoint::{MORE_DESCRIPTORS, endpoint_pair, transport, unavailable};
use super::lifeline;
use super::stream::StreamEndpoint;
use crate::transaction::{IpcTransport, TransportSetupError};
use latscope_os::vsock;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

/// A packet must fit into the buffer of a socket, 208 KiB by default.
const LARGEST_PACKET: usize = 128 << 10;

/// 64 KiB - 1 for the whole packet, less the headers of IP (20) and UDP (8). The MTU of the
/// loopback interface is 64 KiB: no datagram is cut into fragments there.
const LARGEST_DATAGRAM: usize = 65_507;

pub(super) static UNIX_STREAM: IpcTransport =
    transport::<StreamEndpoint>("unix-stream", "Unix stream socket", "unix(7), SOCK_STREAM", |_| {
        let (server, client) = unix(SocketType::STREAM)?;
        Ok(endpoint_pair(vec![server], vec![client]))
    });

pub(super) static UNIX_SEQPACKET: IpcTransport = IpcTransport {
    max_payload: LARGEST_PACKET,
    ..transport::<DatagramEndpoint<true>>(
        "unix-seqpacket",
        "Unix packet socket",
        "unix(7), SOCK_SEQPACKET",
        |_| {
            let (server, client) = unix(SocketType::SEQPACKET)?;
            Ok(endpoint_pair(vec![server], vec![client]))
        },
    )
};

pub(super) static UNIX_DATAGRAM: IpcTransport = IpcTransport {
    max_payload: LARGEST_PACKET,
    ..transport::<DatagramEndpoint<true>>(
        "unix-datagram",
        "Unix datagram socket",
        "unix(7), SOCK_DGRAM",
        |_| {
            let (server, client) = unix(SocketType::DGRAM)?;
            lifeline::endpoint_pair(vec![server], vec![client])
        },
    )
};

/// A receiver that is slower loses datagrams: nothing is sent ahead.
pub(super) static UDP: IpcTransport = IpcTransport {
    max_payload: LARGEST_DATAGRAM,
    ..transport::<DatagramEndpoint<false>>("udp", "UDP, loopback", "udp(7)", |_| {
        let (server, client) = udp().map_err(|error| no_loopback("UDP", error))?;
        lifeline::endpoint_pair(vec![server.into()], vec![client.into()])
    })
};

pub(super) static TCP: IpcTransport =
    transport::<StreamEndpoint>("tcp", "TCP, loopback", "tcp(7), TCP_NODELAY", |_| {
        let (server, client) = tcp().map_err(|error| no_loopback("TCP connection", error))?;
        Ok(endpoint_pair(vec![server.into()], vec![client.into()]))
    });

pub(super) static VSOCK: IpcTransport =
    transport::<StreamEndpoint>("vsock", "vsock, loopback", "vsock(7), VMADDR_CID_LOCAL", |_| {
        let (server, client) = vsock::connected_pair().map_err(|error| {
            unavailable("no vsock within this system", error, "load its module: modprobe vsock_loopback")
        })?;
        Ok(endpoint_pair(vec![server], vec![client]))
    });

fn no_loopback(what: &str, error: impl Display) -> TransportSetupError {
    unavailable(&format!("no {what} over 127.0.0.1"), error, "bring the interface up: ip link set lo up")
}

fn unix(kind: SocketType) -> Result<(OwnedFd, OwnedFd), TransportSetupError> {
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
        .map_err(|error| unavailable("no Unix sockets", error, MORE_DESCRIPTORS))
}

fn udp() -> io::Result<(UdpSocket, UdpSocket)> {
    let (first, second) =
        (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    first.connect(second.local_addr()?)?;
    second.connect(first.local_addr()?)?;
    Ok((first, second))
}

/// A connection without Nagle's delay.
fn tcp() -> io::Result<(TcpStream, TcpStream)> {
    let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listening.local_addr()?)?;
    let own = client.local_addr()?;
    // Any process on this machine could have been faster.
    let server = loop {
        let (server, from) = listening.accept()?;
        if from == own {
            break server;
        }
    };
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    Ok((server, client))
}
