//! Driver's side of a link.

use super::{RpmsgLink, RpmsgLinkEvent, RpmsgMessage, Unsent, fits, read_message, write_message};
use crate::header::RpmsgAddress;
use crate::pool::RpmsgBufferPool;
use crate::ring::{VirtqueueDirection, VirtqueueDriver, VirtqueueLayout, WindowBuffer};
use crate::{Fault, RpmsgMemory};

/// The side that supplies the buffers, as `virtio_rpmsg_bus.c` does in Linux. Rings have at most `N` entries.
#[derive(Debug)]
pub struct RpmsgHost<M, const N: usize> {
    memory: M,
    receive: VirtqueueDriver<M, N>,
    transmit: VirtqueueDriver<M, N>,
    /// Buffers to send in that were not used yet.
    unused: RpmsgBufferPool,
    /// The buffer of the message that was taken last.
    held: Option<WindowBuffer>,
}

impl<M: RpmsgMemory + Clone, const N: usize> RpmsgHost<M, N> {
    /// Clears both rings, offers the buffers of the first pool for messages to the host, and asks for no
    /// interrupts about sent messages.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] or [`Fault::Ring`] if a ring or a pool does not fit.
    pub fn new(memory: M, rings: [VirtqueueLayout; 2], pools: [RpmsgBufferPool; 2]) -> Result<Self, Fault> {
        let mut receive = VirtqueueDriver::new(memory.clone(), rings[0], VirtqueueDirection::ToDriver)?;
        let mut transmit = VirtqueueDriver::new(memory.clone(), rings[1], VirtqueueDirection::ToDevice)?;
        let [mut inward, mut unused] = pools;
        // So that who has a buffer finds a descriptor for it.
        unused.count = unused.count.min(rings[1].num());
        unused.check_window(&memory)?;
        inward.check_window(&memory)?;
        transmit.suppress_interrupts()?;
        while let Some(buffer) = inward.take_first() {
            if !receive.offer(buffer)? {
                break;
            }
        }
        Ok(RpmsgHost { memory, receive, transmit, unused, held: None })
    }

    /// Returns the offset of a buffer to send in: a buffer that came back, or one that was never used.
    #[inline]
    fn buffer(&mut self) -> Result<usize, Unsent> {
        let buffer = match self.transmit.reclaim()? {
            Some(reclaimed) => reclaimed.buffer,
            None => self.unused.take_first().ok_or(Unsent::NoBuffer)?,
        };
        Ok(buffer.at)
    }
}

impl<M: RpmsgMemory + Clone, const N: usize> RpmsgLink for RpmsgHost<M, N> {
    #[inline]
    fn post(
        &mut self,
        source: RpmsgAddress,
        destination: RpmsgAddress,
        payload: &[u8],
    ) -> Result<(), Unsent> {
        if !fits(payload, self.unused.buffer) {
            return Err(Unsent::TooLong);
        }
        let at = self.buffer()?;
        let length = write_message(&self.memory, at, source, destination, payload)?;
        self.transmit.offer(WindowBuffer { at, length })?;
        Ok(())
    }

    #[inline]
    fn take_message(&mut self, into: &mut [u8]) -> Result<Option<RpmsgMessage>, Fault> {
        self.release_buffer()?;
        let Some(reclaimed) = self.receive.reclaim()? else { return Ok(None) };
        // A message that is wrong is dropped; its buffer is not.
        self.held = Some(reclaimed.buffer);
        read_message(&self.memory, reclaimed.buffer, reclaimed.written, into).map(Some)
    }

    #[inline]
    fn release_buffer(&mut self) -> Result<(), Fault> {
        match self.held.take() {
            Some(buffer) => self.receive.offer(buffer).map(|_| ()),
            None => Ok(()),
        }
    }

    #[inline]
    fn wants_kick(&self, event: RpmsgLinkEvent) -> Result<bool, Fault> {
        match event {
            RpmsgLinkEvent::Message => self.transmit.wants_kick(),
            RpmsgLinkEvent::Buffer => self.receive.wants_kick(),
        }
    }

    fn request_kick(&mut self, event: RpmsgLinkEvent) -> Result<bool, Fault> {
        match event {
            RpmsgLinkEvent::Message => self.receive.request_interrupt(),
            RpmsgLinkEvent::Buffer => Ok(self.transmit.request_interrupt()? || self.unused.count > 0),
        }
    }

    fn suppress_kicks(&mut self, event: RpmsgLinkEvent) -> Result<(), Fault> {
        match event {
            RpmsgLinkEvent::Message => self.receive.suppress_interrupts(),
            RpmsgLinkEvent::Buffer => self.transmit.suppress_interrupts(),
        }
    }
}
