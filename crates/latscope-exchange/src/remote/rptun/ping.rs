//! The messages of the endpoint by which NuttX measures itself (`drivers/rpmsg/rpmsg_ping.c`): a header, in which a
//! request asks for an answer, and data that come back.

use super::super::rings::Rings;
use super::super::{ChannelFailure, MessageWakeSource, RemoteChannel};
use latscope_rpmsg::name_service::RpmsgEndpointName;

/// Name of NuttX's endpoint.
pub(super) const NAME: RpmsgEndpointName = RpmsgEndpointName::new("rpmsg-ping").expect("a short name");

/// Bytes in front of the data: command and length, u32 each, and a cookie, u64.
pub(super) const HEADER: usize = 16;
/// A request that asks for an answer, and the answer.
pub(super) const REQUEST: u32 = 1;
pub(super) const RESPONSE: u32 = 0x20;

/// A channel whose messages have that header.
pub(super) struct Framed {
    rings: Rings,
    message: Vec<u8>,
}

impl Framed {
    pub(super) fn new(rings: Rings) -> Framed {
        Framed { message: vec![0; HEADER + rings.limit()], rings }
    }
}

impl RemoteChannel for Framed {
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure> {
        let length = HEADER + message.len();
        let mut request = Vec::with_capacity(length);
        request.extend(REQUEST.to_le_bytes());
        request.extend((length as u32).to_le_bytes());
        request.extend(0_u64.to_le_bytes());
        request.extend(message);
        self.rings.send_message(&request)
    }

    /// Receives the data of an answer. A message that is no answer is passed on with its header, since it matches none
    /// of the messages that were sent.
    fn receive_message(&mut self, into: &mut [u8], until: u64) -> Result<usize, ChannelFailure> {
        let length = self.rings.receive_message(&mut self.message, until)?;
        let whole = &self.message[..length];
        let data = match whole.split_first_chunk() {
            Some((command, rest)) if u32::from_le_bytes(*command) == RESPONSE => {
                rest.get(HEADER - 4..).unwrap_or_default()
            }
            _ => whole,
        };
        let length = data.len().min(into.len());
        into[..length].copy_from_slice(&data[..length]);
        Ok(length)
    }

    fn wake_source(&mut self) -> Result<MessageWakeSource<'_>, ChannelFailure> {
        self.rings.wake_source()
    }

    fn limit(&self) -> usize {
        self.rings.limit() - HEADER
    }

    fn window(&self) -> usize {
        self.rings.window()
    }

    fn faults(&self) -> u64 {
        self.rings.faults()
    }

    fn misaddressed(&self) -> u64 {
        self.rings.misaddressed()
    }

    fn recovered(&self) -> u64 {
        self.rings.recovered()
    }

    fn end_description(&mut self) -> Option<String> {
        self.rings.end_description()
    }

    fn distortion(&self) -> Option<&'static str> {
        self.rings.distortion()
    }
}
