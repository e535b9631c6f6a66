//! A TCP connection over the loopback interface, without Nagle's delay: tcp(7).

use super::endpoint::{client, endpoint_pair, server, unavailable};
use super::{LARGEST, stream};
use crate::transaction::{EndpointPair, Transport, Unavailable};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

pub(super) static TRANSPORT: Transport = Transport {
    name: "tcp",
    title: "TCP, loopback",
    source: "tcp(7), TCP_NODELAY",
    copies: stream::COPIES,
    spins: false,
    inheritance: None,
    max_payload: LARGEST,
    open,
    server: |handle| server(handle, stream::over_socket),
    client: |handle| client(handle, stream::over_socket),
};

fn open(_: usize) -> Result<EndpointPair, Unavailable> {
    let (server, client) = pair().map_err(|error| {
        unavailable("no TCP connection over 127.0.0.1", error, "bring the interface up: ip link set lo up")
    })?;
    Ok(endpoint_pair(vec![server.into()], vec![client.into()]))
}

fn pair() -> io::Result<(TcpStream, TcpStream)> {
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
