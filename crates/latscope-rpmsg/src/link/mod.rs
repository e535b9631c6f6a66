//! Messages over a pair of rings.
//!
//! The [`RpmsgHost`] is the virtio driver (Linux): it supplies the buffers of both
//! directions. The [`RpmsgRemote`] is the device (the remote processor). The first
//! ring carries messages to the host, the second messages to the remote.

mod host;
mod remote;
#[cfg(test)]
mod tests;

pub use host::RpmsgHost;
pub use remote::RpmsgRemote;

use crate::header::{RpmsgAddress, RpmsgHeader};
use crate::ring::WindowBuffer;
use crate::{Fault, RpmsgMemory};
use core::fmt;

/// Message taken from a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpmsgMessage {
    /// Header of the message; its length is that of the sent payload.
    pub header: RpmsgHeader,
    /// Bytes of payload in the caller's buffer: less than was sent if the buffer was too short. The excess is lost.
    pub length: usize,
}

/// Message received from a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Header of the message; its length is that of the sent payload.
    pub header: RpmsgHeader,
    /// Bytes of payload in the caller's buffer: less than was sent if the buffer was too short. The excess is lost.
    pub length: usize,
    /// True if the peer wants a kick: a buffer became free on the ring that brought the message.
    pub kick: bool,
}

/// Reason why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// All buffers are with the peer: the caller is to try again after the peer gave one back.
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

/// Event that a side waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpmsgLinkEvent {
    /// A message to receive.
    Message,
    /// A buffer to send in.
    Buffer,
}

/// Side of a link.
///
/// No call waits. A side that waits asks for a kick with [`RpmsgLink::request_kick`], unless that returns that there is
/// something already. At first both sides listen to messages, the remote to buffers as well, and the host not, as Linux
/// does.
///
/// Most callers need only [`send_message`](RpmsgLink::send_message) and
/// [`receive_message`](RpmsgLink::receive_message). The steps that they are made of are for callers in a hurry: the
/// check whether a kick is wanted waits until the peer can see all earlier stores, and that may come after the reply.
/// Two sides that never sleep need no such check at all.
pub trait RpmsgLink {
    /// Returns true if the peer takes announcements of names: a remote must not send any to a driver that did not
    /// accept them.
    fn takes_announcements(&self) -> bool {
        true
    }

    /// Sends a message. Returns true if the peer wants a kick for it, on the ring that this side sends by.
    ///
    /// # Errors
    /// See [`Unsent`]: nothing was sent.
    fn send_message(
        &mut self,
        source: RpmsgAddress,
        destination: RpmsgAddress,
        payload: &[u8],
    ) -> Result<bool, Unsent> {
        self.post(source, destination, payload)?;
        Ok(self.wants_kick(RpmsgLinkEvent::Message)?)
    }

    /// Copies the next message's payload to the beginning of `into`, if there is a message, and
    /// gives its buffer back.
    ///
    /// # Errors
    /// [`Fault::Length`] of a message, which is dropped, and the faults of the rings.
    fn receive_message(&mut self, into: &mut [u8]) -> Result<Option<Received>, Fault> {
        let taken = self.take_message(into);
        self.release_buffer()?;
        let Some(RpmsgMessage { header, length }) = taken? else { return Ok(None) };
        Ok(Some(Received { header, length, kick: self.wants_kick(RpmsgLinkEvent::Buffer)? }))
    }

    /// Sends a message, and does not look whether a kick is wanted.
    ///
    /// # Errors
    /// The errors of [`RpmsgLink::send_message`].
    fn post(&mut self, source: RpmsgAddress, destination: RpmsgAddress, payload: &[u8])
    -> Result<(), Unsent>;

    /// Copies the next message's payload as [`RpmsgLink::receive_message`] does, and keeps its buffer until
    /// [`RpmsgLink::release_buffer`] or until the next message is taken. A side that goes to sleep releases it before.
    ///
    /// # Errors
    /// The errors of [`RpmsgLink::receive_message`].
    fn take_message(&mut self, into: &mut [u8]) -> Result<Option<RpmsgMessage>, Fault>;

    /// Gives the buffer of the last message back, if that was not done.
    ///
    /// # Errors
    /// [`Fault::Reset`] of the remote.
    fn release_buffer(&mut self) -> Result<(), Fault>;

    /// Returns true if the peer wants a kick for the work so far: for a message, on the ring that this side sends by;
    /// for a buffer that was given back, on the ring that this side receives by.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank.
    fn wants_kick(&self, event: RpmsgLinkEvent) -> Result<bool, Fault>;

    /// Asks the peer for a kick at the next event of this kind. Returns true if an event is there already.
    ///
    /// # Errors
    /// [`Fault::Index`].
    fn request_kick(&mut self, event: RpmsgLinkEvent) -> Result<bool, Fault>;

    /// Asks the peer for no kicks at events of this kind.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank.
    fn suppress_kicks(&mut self, event: RpmsgLinkEvent) -> Result<(), Fault>;
}

/// Returns true if a payload and its header fit a buffer of `room` bytes.
fn fits(payload: &[u8], room: u32) -> bool {
    payload.len() <= usize::from(u16::MAX)
        && RpmsgHeader::SIZE as u64 + payload.len() as u64 <= u64::from(room)
}

/// Writes a message to a buffer that it fits, and returns its whole length, bytes.
fn write_message(
    memory: &impl RpmsgMemory,
    at: usize,
    source: RpmsgAddress,
    destination: RpmsgAddress,
    payload: &[u8],
) -> Result<u32, Fault> {
    let header = RpmsgHeader { source, destination, length: payload.len() as u16, flags: 0 };
    memory.write_bytes(at, &header.encode_bytes())?;
    memory.write_bytes(at + RpmsgHeader::SIZE, payload)?;
    Ok((RpmsgHeader::SIZE + payload.len()) as u32)
}

/// Reads a message from a buffer into which the peer wrote `filled` bytes, and returns its header and how many bytes of
/// its payload are in `into`.
fn read_message(
    memory: &impl RpmsgMemory,
    buffer: WindowBuffer,
    filled: u32,
    into: &mut [u8],
) -> Result<RpmsgMessage, Fault> {
    if filled > buffer.length {
        return Err(Fault::Length);
    }
    let room = filled.checked_sub(RpmsgHeader::SIZE as u32).ok_or(Fault::Length)?;
    let mut bytes = [0; RpmsgHeader::SIZE];
    memory.read_bytes(buffer.at, &mut bytes)?;
    let header = RpmsgHeader::parse(&bytes);
    if u32::from(header.length) > room {
        return Err(Fault::Length);
    }
    let length = into.len().min(header.length.into());
    memory.read_bytes(buffer.at + RpmsgHeader::SIZE, &mut into[..length])?;
    Ok(RpmsgMessage { header, length })
}
