//! Messages over a pair of rings.
//!
//! The [`Host`] is the virtio driver (Linux): it supplies the buffers of both
//! directions. The [`Remote`] is the device (the remote processor). The first
//! ring carries messages to the host, the second messages to the remote.

mod host;
mod remote;
#[cfg(test)]
mod tests;

pub use host::Host;
pub use remote::Remote;

use crate::header::{Address, Header};
use crate::ring::Buffer;
use crate::{Fault, Memory};
use core::fmt;

/// What a message was taken as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its header; the length is what was sent.
    pub header: Header,
    /// Bytes of payload in the caller's buffer: less than was sent if that was too short. The excess is lost.
    pub length: usize,
}

/// What a message was received as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its header; the length is what was sent.
    pub header: Header,
    /// Bytes of payload in the caller's buffer: less than was sent if that was too short. The excess is lost.
    pub length: usize,
    /// Whether the peer wants a kick: a buffer became free on the ring that the message came by.
    pub kick: bool,
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// All buffers are with the peer: to be tried again when it gave one back.
    NoBuffer,
    /// The payload does not fit a buffer.
    TooLong,
    /// The peer broke the protocol.
    Fault(Fault),
}

impl From<Fault> for Unsent {
    fn from(fault: Fault) -> Self {
        Unsent::Fault(fault)
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Unsent::NoBuffer => f.write_str("no buffer is free"),
            Unsent::TooLong => f.write_str("the message is longer than a buffer"),
            Unsent::Fault(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for Unsent {}

/// What a side waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A message to receive.
    Message,
    /// A buffer to send in.
    Buffer,
}

/// One side of a link.
///
/// No call waits. Who waits asks for a kick with [`Link::listen`], unless that
/// says that there is something already. At first both sides listen to
/// messages, the remote to buffers as well, and the host not, as Linux does.
///
/// [`send`](Link::send) and [`receive`](Link::receive) are all that most need. The steps that they are
/// made of are for who has no time: to look whether a kick is wanted waits until the peer can see all that
/// was stored, and that may come after the reply. Two sides that never sleep need not look at all.
pub trait Link {
    /// Whether the peer takes announcements of names: a remote is not to make any to a driver that did not
    /// accept that.
    fn names(&self) -> bool {
        true
    }

    /// Sends a message. True if the peer wants a kick for it, on the ring that we send by.
    ///
    /// # Errors
    /// See [`Unsent`]: nothing was sent.
    fn send(&mut self, source: Address, destination: Address, payload: &[u8]) -> Result<bool, Unsent> {
        self.post(source, destination, payload)?;
        Ok(self.wants_kick(Event::Message)?)
    }

    /// Copies the next message's payload to the beginning of `into`, if there is a message, and
    /// gives its buffer back.
    ///
    /// # Errors
    /// [`Fault::Length`] of a message, which is dropped, and the faults of the rings.
    fn receive(&mut self, into: &mut [u8]) -> Result<Option<Received>, Fault> {
        let taken = self.take(into);
        self.release()?;
        let Some(Message { header, length }) = taken? else { return Ok(None) };
        Ok(Some(Received { header, length, kick: self.wants_kick(Event::Buffer)? }))
    }

    /// Sends a message, and does not look whether a kick is wanted.
    ///
    /// # Errors
    /// As [`Link::send`].
    fn post(&mut self, source: Address, destination: Address, payload: &[u8]) -> Result<(), Unsent>;

    /// Copies the next message's payload as [`Link::receive`] does, and keeps its buffer until
    /// [`Link::release`] or the next message is taken. Who goes to sleep releases it before.
    ///
    /// # Errors
    /// As [`Link::receive`].
    fn take(&mut self, into: &mut [u8]) -> Result<Option<Message>, Fault>;

    /// Gives the buffer of the last message back, if that was not done.
    ///
    /// # Errors
    /// [`Fault::Reset`] of the remote.
    fn release(&mut self) -> Result<(), Fault>;

    /// Whether the peer wants a kick for what was done so far: for a message, on the ring that we send by;
    /// for a buffer that was given back, on the ring that we receive by.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank.
    fn wants_kick(&self, event: Event) -> Result<bool, Fault>;

    /// Asks the peer for a kick at the next event of this kind. True if one is there already.
    ///
    /// # Errors
    /// [`Fault::Index`].
    fn listen(&mut self, event: Event) -> Result<bool, Fault>;

    /// Asks the peer for no kicks at events of this kind.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank.
    fn mute(&mut self, event: Event) -> Result<(), Fault>;
}

/// Whether a payload and its header fit a buffer of `room` bytes.
fn fits(payload: &[u8], room: u32) -> bool {
    payload.len() <= usize::from(u16::MAX) && Header::SIZE as u64 + payload.len() as u64 <= u64::from(room)
}

/// Writes a message to a buffer that it fits, and tells how long it is in all.
fn write(
    memory: &impl Memory,
    at: usize,
    source: Address,
    destination: Address,
    payload: &[u8],
) -> Result<u32, Fault> {
    let header = Header { source, destination, length: payload.len() as u16, flags: 0 };
    memory.write(at, &header.bytes())?;
    memory.write(at + Header::SIZE, payload)?;
    Ok((Header::SIZE + payload.len()) as u32)
}

/// Reads a message from a buffer of which `filled` bytes are the peer's, and
/// tells its header and how much of its payload `into` has.
fn read(memory: &impl Memory, buffer: Buffer, filled: u32, into: &mut [u8]) -> Result<Message, Fault> {
    if filled > buffer.length {
        return Err(Fault::Length);
    }
    let room = filled.checked_sub(Header::SIZE as u32).ok_or(Fault::Length)?;
    let mut bytes = [0; Header::SIZE];
    memory.read(buffer.at, &mut bytes)?;
    let header = Header::parse(&bytes);
    if u32::from(header.length) > room {
        return Err(Fault::Length);
    }
    let length = into.len().min(header.length.into());
    memory.read(buffer.at + Header::SIZE, &mut into[..length])?;
    Ok(Message { header, length })
}
