//! Method calls of D-Bus between two peers, without a bus between, by the
//! library zbus. What is measured is the library, its threads included.

use super::endpoint::{
    Endpoint, MORE_DESCRIPTORS, Side, broken, descriptors, endpoint_pair, transport, unavailable,
};
use crate::transaction::{EndpointHandle, Failure, Transport};
use serde_bytes::Bytes;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use zbus::blocking::{Connection, MessageIterator, connection::Builder};
use zbus::message::Type;
use zbus::{Guid, Message};

pub(super) static TRANSPORT: Transport =
    transport::<Peer>("dbus", "D-Bus, peer to peer", "D-Bus Specification, method calls, by zbus", |_| {
        let (server, client) =
            UnixStream::pair().map_err(|error| unavailable("no Unix sockets", error, MORE_DESCRIPTORS))?;
        Ok(endpoint_pair(vec![server.into()], vec![client.into()]))
    });

/// Endpoint of a connection between peers.
struct Peer {
    socket: UnixStream,
    connection: Connection,
    incoming: MessageIterator,
    /// Request that the server has to answer.
    asked: Option<Message>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The library closes its own in a thread of its own, some time.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Endpoint for Peer {
    const QUEUES: bool = true;

    /// Into a message, into the kernel, out of it, out of the message.
    const COPIES: u32 = 4;

    fn join(mut handle: EndpointHandle, side: Side) -> Result<Self, Failure> {
        let [socket] = descriptors(&mut handle)?;
        let socket = UnixStream::from(socket);
        let builder = Builder::async_io_unix_stream(socket.try_clone().map_err(broken)?).p2p();
        let builder = match side {
            Side::Client => builder,
            Side::Server => builder.server(Guid::generate()).map_err(failed)?,
        };
        // Made later, the iterator would miss a message that comes at once.
        let incoming = builder.build_message_iterator().map_err(failed)?;
        Ok(Peer { socket, connection: Connection::from(&incoming), incoming, asked: None })
    }

    fn put(&mut self, message: &[u8]) -> Result<(), Failure> {
        let builder = match self.asked.take() {
            Some(asked) => Message::method_return(&asked.header()),
            None => Message::method_call("/latscope", "Call"),
        };
        let message = builder.and_then(|builder| builder.build(&Bytes::new(message))).map_err(failed)?;
        self.connection.send(&message).map_err(failed)
    }

    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        loop {
            let message = self.incoming.next().ok_or(Failure::Gone)?.map_err(failed)?;
            match message.message_type() {
                Type::MethodCall => self.asked = Some(message.clone()),
                Type::MethodReturn => {}
                Type::Error => return Err(Failure::Refused(message.to_string())),
                Type::Signal => continue,
            }
            let body = message.body();
            let bytes: &Bytes = body.deserialize().map_err(failed)?;
            let fits = bytes.len().min(buffer.len());
            buffer[..fits].copy_from_slice(&bytes[..fits]);
            return Ok(bytes.len());
        }
    }
}

#[cold]
fn failed(error: zbus::Error) -> Failure {
    match error {
        zbus::Error::InputOutput(_) => Failure::Gone,
        error => broken(error),
    }
}
