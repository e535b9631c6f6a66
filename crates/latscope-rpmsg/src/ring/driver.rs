//! Half of a ring that owns the buffers: Linux, or a program in its role.

use super::{
    INDEX, MUTED, VirtqueueDirection, VirtqueueLayout, WindowBuffer, update_u16, update_u32, waiting,
};
use crate::{Fault, RpmsgMemory};

/// The driver's half of a ring of at most `N` entries.
///
/// What is in flight is remembered here, in private: descriptors are written
/// into shared memory, and what is there is never believed.
#[derive(Debug)]
pub struct VirtqueueDriver<M, const N: usize> {
    memory: M,
    layout: VirtqueueLayout,
    direction: VirtqueueDirection,
    slots: [DescriptorSlot; N],
    /// The first of the free descriptors.
    free: Option<u16>,
    in_flight: u16,
    /// Our index of the available ring.
    published: u16,
    /// Index up to which the used ring was consumed.
    consumed: u16,
    /// The device's index of the used ring when it was last loaded by [`VirtqueueDriver::reclaim`].
    seen: u16,
}

/// Use of a descriptor.
#[derive(Debug, Clone, Copy)]
enum DescriptorSlot {
    Free { next: Option<u16> },
    InFlight(WindowBuffer),
}

/// A buffer that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reclaimed {
    /// The buffer, as it was offered.
    pub buffer: WindowBuffer,
    /// Number of bytes that the device reports as written, unchecked.
    pub written: u32,
}

impl<M: RpmsgMemory, const N: usize> VirtqueueDriver<M, N> {
    /// Clears the ring and begins with no buffer offered.
    ///
    /// # Errors
    /// [`Fault::Ring`] if it has more than `N` entries, [`Fault::OutOfWindow`].
    pub fn new(memory: M, layout: VirtqueueLayout, direction: VirtqueueDirection) -> Result<Self, Fault> {
        if usize::from(layout.num) > N {
            return Err(Fault::Ring);
        }
        layout.clear(&memory)?;
        let mut slots = [DescriptorSlot::Free { next: None }; N];
        for (next, slot) in (1..layout.num).zip(&mut slots) {
            *slot = DescriptorSlot::Free { next: Some(next) };
        }
        Ok(VirtqueueDriver {
            memory,
            layout,
            direction,
            slots,
            free: Some(0),
            in_flight: 0,
            published: 0,
            consumed: 0,
            seen: 0,
        })
    }

    /// Returns the layout of the ring.
    pub fn layout(&self) -> &VirtqueueLayout {
        &self.layout
    }

    /// Returns how many buffers are with the device.
    pub fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// Hands a buffer to the device. False if all descriptors are in flight.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] if the buffer is not in the window.
    #[inline]
    pub fn offer(&mut self, buffer: WindowBuffer) -> Result<bool, Fault> {
        self.memory.locate(buffer.at as u64, buffer.length)?;
        let Some(index) = self.occupy(buffer) else { return Ok(false) };
        let at = self.layout.descriptor_offset(index);
        let address = buffer.at as u64;
        update_u32(&self.memory, at, address as u32)?;
        update_u32(&self.memory, at + 4, (address >> 32) as u32)?;
        update_u32(&self.memory, at + 8, buffer.length)?;
        update_u16(&self.memory, at + 12, self.direction.flags())?;
        update_u16(&self.memory, at + 14, 0)?;
        update_u16(&self.memory, self.layout.available_entry(self.published), index)?;
        self.published = self.published.wrapping_add(1);
        self.memory.store_index(self.layout.available + INDEX, self.published)?;
        Ok(true)
    }

    /// Takes a descriptor from the free ones.
    #[inline]
    fn occupy(&mut self, buffer: WindowBuffer) -> Option<u16> {
        let index = self.free?;
        let slot = self.slots.get_mut(usize::from(index))?;
        let DescriptorSlot::Free { next } = *slot else { return None };
        *slot = DescriptorSlot::InFlight(buffer);
        self.free = next;
        self.in_flight += 1;
        Some(index)
    }

    /// Takes back a buffer that the device has finished with, if there is one.
    ///
    /// # Errors
    /// [`Fault::Index`] if more buffers came back than the ring holds (no entry is consumed), [`Fault::NotInFlight`] if
    /// the buffer was not offered (the entry is consumed).
    #[inline]
    pub fn reclaim(&mut self) -> Result<Option<Reclaimed>, Fault> {
        if self.seen == self.consumed {
            let used = self.memory.load_index(self.layout.used + INDEX)?;
            if waiting(used, self.consumed, self.layout.num)? == 0 {
                return Ok(None);
            }
            self.seen = used;
        }
        let at = self.layout.used_entry(self.consumed);
        let id = self.memory.load_u32(at)?;
        let written = self.memory.load_u32(at + 4)?;
        self.consumed = self.consumed.wrapping_add(1);
        let buffer = self.vacate(id).ok_or(Fault::NotInFlight)?;
        Ok(Some(Reclaimed { buffer, written }))
    }

    /// Puts a descriptor back to the free ones.
    #[inline]
    fn vacate(&mut self, id: u32) -> Option<WindowBuffer> {
        let index = u16::try_from(id).ok()?;
        let slot = self.slots.get_mut(usize::from(index))?;
        let DescriptorSlot::InFlight(buffer) = *slot else { return None };
        *slot = DescriptorSlot::Free { next: self.free };
        self.free = Some(index);
        self.in_flight -= 1;
        Some(buffer)
    }

    /// Returns true if a buffer came back that was not reclaimed.
    ///
    /// # Errors
    /// [`Fault::Index`].
    #[inline]
    pub fn is_pending(&self) -> Result<bool, Fault> {
        let used = self.memory.load_index(self.layout.used + INDEX)?;
        // A made-up entry was consumed without a buffer for it, so that the
        // bound is the ring's, not what is in flight.
        Ok(waiting(used, self.consumed, self.layout.num)? > 0)
    }

    /// Returns true if the device wants to be kicked for the offers so far. To be called after the last of a series of
    /// offers.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank.
    #[inline]
    pub fn wants_kick(&self) -> Result<bool, Fault> {
        self.memory.fence();
        Ok(self.memory.load_u16(self.layout.used)? & MUTED == 0)
    }

    /// Asks the device for no interrupts. It may send some nevertheless.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of a memory that shrank.
    pub fn suppress_interrupts(&mut self) -> Result<(), Fault> {
        self.memory.store_u16(self.layout.available, MUTED)
    }

    /// Asks the device for an interrupt at the next buffer that comes back. True if there is one
    /// already: none need follow for it.
    ///
    /// # Errors
    /// [`Fault::Index`].
    pub fn request_interrupt(&mut self) -> Result<bool, Fault> {
        self.memory.store_u16(self.layout.available, 0)?;
        self.memory.fence();
        self.is_pending()
    }
}
