//! Half of a ring that takes the buffers and gives them back: the remote processor, or a program in its role.

use super::{
    INDEX, INDIRECT, MUTED, NEXT, VirtqueueDirection, VirtqueueLayout, WRITE, WindowBuffer, update_u32,
    waiting,
};
use crate::{Fault, RpmsgMemory};

/// The device's half of a ring.
#[derive(Debug)]
pub struct VirtqueueDevice<M> {
    memory: M,
    layout: VirtqueueLayout,
    direction: VirtqueueDirection,
    /// Our index of the used ring.
    published: u16,
    /// Index up to which the available ring was consumed.
    consumed: u16,
    /// The driver's index of the available ring when it was last loaded by [`VirtqueueDevice::take`].
    seen: u16,
}

/// A buffer that was taken and is to be given back once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the driver has one buffer less until it is given back"]
pub struct VirtqueueElement {
    descriptor: u16,
    buffer: WindowBuffer,
}

impl VirtqueueElement {
    /// The buffer: all of it was in the window when it was taken.
    #[inline]
    pub fn buffer(&self) -> WindowBuffer {
        self.buffer
    }
}

impl<M: RpmsgMemory> VirtqueueDevice<M> {
    /// Begins with a ring that the driver has just cleared.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`]; [`Fault::Stale`] if a device used the ring before.
    pub fn new(memory: M, layout: VirtqueueLayout, direction: VirtqueueDirection) -> Result<Self, Fault> {
        VirtqueueDevice::resume(memory, layout, direction, 0)
    }

    /// Goes on with a ring of which an earlier device consumed `position` entries and gave all back.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`]; [`Fault::Stale`] if the ring is not at this position.
    pub fn resume(
        memory: M,
        layout: VirtqueueLayout,
        direction: VirtqueueDirection,
        position: u16,
    ) -> Result<Self, Fault> {
        layout.check_window(&memory)?;
        if memory.load_index(layout.used + INDEX)? != position {
            return Err(Fault::Stale);
        }
        Ok(VirtqueueDevice {
            memory,
            layout,
            direction,
            published: position,
            consumed: position,
            seen: position,
        })
    }

    /// Returns how many entries were consumed, modulo 65536.
    pub fn position(&self) -> u16 {
        self.consumed
    }

    /// Takes the next buffer that the driver offers, if there is one.
    ///
    /// # Errors
    /// [`Fault::Reset`] or [`Fault::Index`] (nothing is consumed). Of a bad entry, which is consumed and its buffer not
    /// returned: [`Fault::Descriptor`], [`Fault::Indirect`], [`Fault::Chained`],
    /// [`Fault::Direction`], [`Fault::OutOfWindow`].
    #[inline]
    pub fn take_buffer(&mut self) -> Result<Option<VirtqueueElement>, Fault> {
        let available = match self.seen {
            seen if seen != self.consumed => seen,
            _ => self.memory.load_index(self.layout.available + INDEX)?,
        };
        if available == self.consumed {
            return Ok(None);
        }
        // After the index: who sees that of a driver that began again sees what it cleared before.
        self.check_reset()?;
        waiting(available, self.consumed, self.layout.num)?;
        self.seen = available;
        let descriptor = self.memory.load_u16(self.layout.available_entry(self.consumed))?;
        self.consumed = self.consumed.wrapping_add(1);
        if descriptor >= self.layout.num {
            return Err(Fault::Descriptor);
        }
        let buffer = self.buffer(descriptor)?;
        Ok(Some(VirtqueueElement { descriptor, buffer }))
    }

    /// Loads a descriptor, each word once, and checks it.
    #[inline]
    fn buffer(&self, descriptor: u16) -> Result<WindowBuffer, Fault> {
        let at = self.layout.descriptor_offset(descriptor);
        let address = self.memory.load_u64(at)?;
        let length = self.memory.load_u32(at + 8)?;
        let flags = self.memory.load_u16(at + 12)?;
        if flags & INDIRECT != 0 {
            return Err(Fault::Indirect);
        }
        if flags & NEXT != 0 {
            return Err(Fault::Chained);
        }
        if flags & WRITE != self.direction.flags() {
            return Err(Fault::Direction);
        }
        Ok(WindowBuffer { at: self.memory.locate(address, length)?, length })
    }

    /// Checks that the driver has not begun again since this side began: a driver that begins again clears this side's
    /// index. The check touches none of the driver's cache lines, so that it may be made often.
    ///
    /// # Errors
    /// [`Fault::Reset`] if the driver began again: this side must begin again, too.
    pub fn check_reset(&self) -> Result<(), Fault> {
        let ours = self.memory.load_u16(self.layout.used + INDEX)?;
        if ours == self.published { Ok(()) } else { Err(Fault::Reset) }
    }

    /// Gives a buffer back, `written` bytes of which were written here (0 for one that was read).
    ///
    /// # Errors
    /// [`Fault::Reset`] if the driver began again: the buffer is not of its run, and nothing is stored.
    #[inline]
    pub fn give_back(&mut self, taken: VirtqueueElement, written: u32) -> Result<(), Fault> {
        self.check_reset()?;
        let at = self.layout.used_entry(self.published);
        update_u32(&self.memory, at, taken.descriptor.into())?;
        update_u32(&self.memory, at + 4, written)?;
        self.published = self.published.wrapping_add(1);
        self.memory.store_index(self.layout.used + INDEX, self.published)
    }

    /// Returns true if the driver offers a buffer that was not taken.
    ///
    /// # Errors
    /// [`Fault::Index`].
    #[inline]
    pub fn is_pending(&self) -> Result<bool, Fault> {
        let available = self.memory.load_index(self.layout.available + INDEX)?;
        Ok(waiting(available, self.consumed, self.layout.num)? > 0)
    }

    /// Returns true if the driver wants an interrupt for the buffers that were given back so far. To be called after
    /// the last of a series.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank.
    #[inline]
    pub fn wants_kick(&self) -> Result<bool, Fault> {
        self.memory.fence();
        Ok(self.memory.load_u16(self.layout.available)? & MUTED == 0)
    }

    /// Asks the driver for no kicks. It may send some nevertheless.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank.
    pub fn suppress_kicks(&mut self) -> Result<(), Fault> {
        self.memory.store_u16(self.layout.used, MUTED)
    }

    /// Asks the driver for a kick at the next buffer it offers. True if there is one already:
    /// none need follow for it.
    ///
    /// # Errors
    /// [`Fault::Index`].
    pub fn request_kick(&mut self) -> Result<bool, Fault> {
        self.memory.store_u16(self.layout.used, 0)?;
        self.memory.fence();
        self.is_pending()
    }
}
