//! Messages between the monitor of a virtual machine and the process that plays a device.
//!
//! Source: QEMU's docs/interop/vhost-user.rst, protocol version 1.

use anyhow::{Context, Result, bail, ensure};
use rustix::fd::OwnedFd;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;

/// Bytes of a header: request, flags, length, 32 bits each, as the machine has them.
const HEADER: usize = 12;
/// The longest message that is taken; the longest that is known has 264 bytes.
const LONGEST: usize = 1024;
/// Largest number of descriptors with a message: one for each region of memory.
const DESCRIPTORS: usize = 8;

const VERSION: u32 = 1;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

/// A region of the guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VhostMemoryRegion {
    /// The guest's physical address.
    pub guest: u64,
    /// Size of the region, bytes.
    pub size: u64,
    /// Address of the region in the monitor.
    pub user: u64,
    /// Offset of the region in the file that comes with it.
    pub offset: u64,
}

/// A message as it came.
#[derive(Debug)]
pub(super) struct VhostUserMessage {
    /// Number of the request.
    pub request: u32,
    /// True if success is to be confirmed.
    pub confirm: bool,
    payload: Vec<u8>,
    /// Descriptors that came with the message.
    pub descriptors: Vec<OwnedFd>,
}

impl VhostUserMessage {
    /// Receives the next message; `None` at the end of the monitor.
    ///
    /// # Errors
    /// The message is not one of this protocol, or the socket fails.
    pub(super) fn receive(stream: &mut UnixStream) -> Result<Option<VhostUserMessage>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut header = [0; HEADER];
        let into = &mut [IoSliceMut::new(&mut header)];
        let received = match recvmsg(&*stream, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            received => received.context("the socket of the monitor")?,
        };
        if received.bytes == 0 {
            return Ok(None);
        }
        ensure!(!received.flags.contains(ReturnFlags::CTRUNC), "more descriptors than regions can be");
        let rights = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptors = rights.flatten().collect();
        stream.read_exact(&mut header[received.bytes..])?;
        let [request, flags, length] = parse_words(&header);
        ensure!(flags & 3 == VERSION && flags & REPLY == 0, "this is not vhost-user, version {VERSION}");
        ensure!(length as usize <= LONGEST, "request {request} has {length} bytes");
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload)?;
        Ok(Some(VhostUserMessage { request, confirm: flags & NEED_REPLY != 0, payload, descriptors }))
    }

    /// Sends the answer to a request.
    pub(super) fn send_reply(&self, stream: &mut UnixStream, payload: &[u8]) -> Result<()> {
        let header = [self.request, VERSION | REPLY, payload.len() as u32].map(u32::to_ne_bytes);
        Ok(stream.write_all(&[header.as_flattened(), payload].concat())?)
    }

    /// The payload, if it is one number.
    ///
    /// # Errors
    /// The payload has another length.
    pub(super) fn parse_number(&self) -> Result<u64> {
        let bytes = self.payload.as_slice().try_into();
        Ok(u64::from_ne_bytes(bytes.ok().with_context(|| self.format_summary())?))
    }

    /// The payload, if it is a ring's index and a number.
    ///
    /// # Errors
    /// The payload has another length.
    pub(super) fn parse_ring_state(&self) -> Result<(usize, u32)> {
        ensure!(self.payload.len() == 8, self.format_summary());
        let [index, number] = parse_words(&self.payload);
        Ok((index as usize, number))
    }

    /// Returns the addresses of a ring from the payload: its index, and the monitor's addresses of descriptors, used
    /// and available ring.
    ///
    /// # Errors
    /// The payload has another length.
    pub(super) fn addresses(&self) -> Result<(usize, [u64; 3])> {
        ensure!(self.payload.len() == 40, self.format_summary());
        let [index, _flags] = parse_words(&self.payload);
        let [_, descriptors, used, available, _log] = longs(&self.payload);
        Ok((index as usize, [descriptors, used, available]))
    }

    /// The payload, if it is a ring's index and a descriptor, or none.
    ///
    /// # Errors
    /// The payload has another length.
    pub(super) fn take_descriptor(&mut self) -> Result<(usize, Option<OwnedFd>)> {
        /// Bit in the number that is set if no descriptor comes along.
        const NONE: u64 = 1 << 8;
        let number = self.parse_number()?;
        let descriptor = if number & NONE == 0 { self.descriptors.pop() } else { None };
        Ok(((number & 0xFF) as usize, descriptor))
    }

    /// The payload, if it is a table of regions, with their files.
    ///
    /// # Errors
    /// The payload has another length, or there are not as many descriptors as regions.
    pub(super) fn regions(&mut self) -> Result<Vec<(VhostMemoryRegion, OwnedFd)>> {
        const SIZE: usize = 32;
        ensure!(self.payload.len() >= 8, self.format_summary());
        let [count, _] = parse_words(&self.payload);
        let bytes = &self.payload[8..];
        ensure!(
            bytes.len() >= count as usize * SIZE && self.descriptors.len() == count as usize,
            self.format_summary()
        );
        let regions = bytes.chunks_exact(SIZE).map(|bytes| {
            let [guest, size, user, offset] = longs(bytes);
            VhostMemoryRegion { guest, size, user, offset }
        });
        Ok(regions.zip(self.descriptors.drain(..)).collect())
    }

    fn format_summary(&self) -> String {
        format!(
            "request {} of {} bytes, {} descriptors",
            self.request,
            self.payload.len(),
            self.descriptors.len()
        )
    }

    /// Rejects the request as unknown.
    ///
    /// # Errors
    /// The function always returns an error.
    pub(super) fn reject_unknown(&self) -> Result<()> {
        bail!("the monitor asks what RPMsg does not need ({})", self.format_summary())
    }
}

/// The first words of a payload that is long enough; zeros where it is not.
fn parse_words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let words = bytes.as_chunks::<4>().0;
    std::array::from_fn(|at| words.get(at).map_or(0, |word| u32::from_ne_bytes(*word)))
}

fn longs<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let longs = bytes.as_chunks::<8>().0;
    std::array::from_fn(|at| longs.get(at).map_or(0, |long| u64::from_ne_bytes(*long)))
}
