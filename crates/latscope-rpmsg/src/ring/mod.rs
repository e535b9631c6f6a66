//! The split virtqueue of the virtio specification (1.x, section 2.7), both halves.
//!
//! The [`VirtqueueDriver`] owns the buffers: it offers them in the *available* ring and
//! reclaims them from the *used* ring. The [`VirtqueueDevice`] takes and gives back. Each
//! ring has an index that runs freely modulo 65536 and is written by one side only.
//!
//! Each side can set a flag to show the other that it needs no kick. A side that publishes an index checks the other's
//! flag after that; a side that asks for kicks again checks the other's index after that. With a full fence between the
//! two steps on both sides, one of them sees what the other did, and no kick is lost.
//!
//! Time between two cores is the transfer of cache lines. So a side loads the peer's index again only when it has used
//! up the last value, and does not store an entry or a descriptor that has the right bytes already: in a ring whose
//! buffers come back in order, only the indices change.

mod device;
mod driver;

pub use device::{VirtqueueDevice, VirtqueueElement};
pub use driver::{Reclaimed, VirtqueueDriver};

use crate::{Fault, RpmsgMemory};

/// Flag of a descriptor that continues in another descriptor.
const NEXT: u16 = 1;
/// Flag of a descriptor whose buffer the device writes.
const WRITE: u16 = 2;
/// Flag of a descriptor whose buffer is a table of descriptors.
const INDIRECT: u16 = 4;
/// Value in `flags` of either ring: the side that writes it needs no kick.
const MUTED: u16 = 1;

/// Bytes of a descriptor: `u64` address, `u32` length, `u16` flags, `u16` next.
const DESCRIPTOR: usize = 16;
/// Offset of the index in either ring, after the flags.
const INDEX: usize = 2;
/// Offset of the entries in either ring.
const ENTRIES: usize = 4;

/// Direction of the data in the buffers of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtqueueDirection {
    /// The device writes, the driver reads.
    ToDriver,
    /// The driver writes, the device reads.
    ToDevice,
}

impl VirtqueueDirection {
    /// The flags of a descriptor.
    #[inline]
    fn flags(self) -> u16 {
        match self {
            VirtqueueDirection::ToDriver => WRITE,
            VirtqueueDirection::ToDevice => 0,
        }
    }
}

/// A piece of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBuffer {
    /// Offset of the first byte.
    pub at: usize,
    /// Length of the buffer, bytes.
    pub length: u32,
}

/// Offsets of the three parts of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtqueueLayout {
    descriptors: usize,
    available: usize,
    used: usize,
    num: u16,
}

impl VirtqueueLayout {
    /// The most entries a ring can have.
    pub const LARGEST: u32 = 32768;

    /// A ring of `num` entries in one piece from `base` on: descriptors, the available ring behind
    /// them, and the used ring at the next multiple of `align`. So it is with virtio-mmio of
    /// version 1 and in remote processors' resource tables.
    ///
    /// # Errors
    /// [`Fault::Ring`] unless `num` and `align` are powers of two, `num` at most [`VirtqueueLayout::LARGEST`],
    /// and `base` a multiple of `align` and of 16.
    pub fn contiguous(base: usize, num: u32, align: u32) -> Result<VirtqueueLayout, Fault> {
        let align = usize::try_from(align).map_err(|_| Fault::Ring)?;
        let sound = align.is_power_of_two()
            && align >= 4
            && base.is_multiple_of(align)
            && num <= VirtqueueLayout::LARGEST;
        if !sound {
            return Err(Fault::Ring);
        }
        let entries = num as usize;
        let part = |from: usize, length| from.checked_add(length).ok_or(Fault::Ring);
        let available = part(base, entries * DESCRIPTOR)?;
        let end = part(available, VirtqueueLayout::available_size(entries))?;
        let used = end.checked_next_multiple_of(align).ok_or(Fault::Ring)?;
        VirtqueueLayout::parts(base, available, used, num)
    }

    /// A ring of `num` entries whose parts are anywhere, as virtio 1 allows.
    ///
    /// # Errors
    /// [`Fault::Ring`] unless `num` is a power of two of at most [`VirtqueueLayout::LARGEST`] and the
    /// parts are aligned to 16, 2 and 4 bytes.
    pub fn parts(
        descriptors: usize,
        available: usize,
        used: usize,
        num: u32,
    ) -> Result<VirtqueueLayout, Fault> {
        let sound = num.is_power_of_two()
            && num <= VirtqueueLayout::LARGEST
            && descriptors.is_multiple_of(16)
            && available.is_multiple_of(2)
            && used.is_multiple_of(4);
        if !sound {
            return Err(Fault::Ring);
        }
        Ok(VirtqueueLayout { descriptors, available, used, num: num as u16 })
    }

    /// Returns the offset of the descriptors.
    #[inline]
    pub fn descriptors(&self) -> usize {
        self.descriptors
    }

    /// Returns the offset of the available ring.
    #[inline]
    pub fn available(&self) -> usize {
        self.available
    }

    /// Returns the offset of the used ring.
    #[inline]
    pub fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of descriptors, and of entries in either ring.
    #[inline]
    pub fn num(&self) -> u16 {
        self.num
    }

    /// The first offset behind the used ring; behind all of a ring in one piece.
    #[inline]
    pub fn end_offset(&self) -> usize {
        self.used.saturating_add(VirtqueueLayout::used_size(self.num.into()))
    }

    /// Bytes of the available ring: flags, index, entries, `used_event`.
    fn available_size(entries: usize) -> usize {
        ENTRIES + 2 * entries + 2
    }

    /// Bytes of the used ring: flags, index, entries of 8 bytes, `avail_event`.
    fn used_size(entries: usize) -> usize {
        ENTRIES + 8 * entries + 2
    }

    /// The three parts: where each begins and how long it is.
    fn spans(&self) -> [(usize, usize); 3] {
        let entries = usize::from(self.num);
        [
            (self.descriptors, entries * DESCRIPTOR),
            (self.available, VirtqueueLayout::available_size(entries)),
            (self.used, VirtqueueLayout::used_size(entries)),
        ]
    }

    /// Checks that the ring is in a memory's window.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] unless every part is.
    pub fn check_window(&self, memory: &impl RpmsgMemory) -> Result<(), Fault> {
        self.spans()
            .into_iter()
            .try_for_each(|(at, length)| memory.locate(at as u64, length as u32).map(|_| ()))
    }

    /// Sets the whole ring to zero, as it is before its first use.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] unless every part is in the window.
    pub fn clear(&self, memory: &impl RpmsgMemory) -> Result<(), Fault> {
        self.check_window(memory)?;
        // By halves of a word: an index is never seen half cleared.
        let mut places = self.spans().into_iter().flat_map(|(at, length)| (at..at + length).step_by(2));
        places.try_for_each(|at| memory.store_u16(at, 0))
    }

    /// Returns true if neither side moved an index since the ring was cleared, or both moved it through all values back
    /// to 0.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] unless both indices are in the window.
    pub fn is_fresh(&self, memory: &impl RpmsgMemory) -> Result<bool, Fault> {
        Ok(memory.load_index(self.available + INDEX)? == 0 && memory.load_index(self.used + INDEX)? == 0)
    }

    /// Returns true if no device stored an entry or an index since the ring was cleared.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] unless the used ring is in the window.
    pub(crate) fn is_unused(&self, memory: &impl RpmsgMemory) -> Result<bool, Fault> {
        if memory.load_index(self.used + INDEX)? != 0 {
            return Ok(false);
        }
        let words = 2 * usize::from(self.num);
        for at in (self.used + ENTRIES..).step_by(4).take(words) {
            if memory.load_u32(at)? != 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The offset of a descriptor; `index` is below `num`.
    #[inline]
    fn descriptor_offset(&self, index: u16) -> usize {
        self.descriptors + usize::from(index) * DESCRIPTOR
    }

    /// The entry of the available ring for a free-running index.
    #[inline]
    fn available_entry(&self, index: u16) -> usize {
        self.available + ENTRIES + 2 * usize::from(index & (self.num - 1))
    }

    /// The entry of the used ring for a free-running index.
    #[inline]
    fn used_entry(&self, index: u16) -> usize {
        self.used + ENTRIES + 8 * usize::from(index & (self.num - 1))
    }
}

/// Stores 16 bits that only this side stores, unless they are there: a store takes the cache line
/// from the peer even if it changes nothing.
#[inline]
fn update_u16(memory: &impl RpmsgMemory, at: usize, value: u16) -> Result<(), Fault> {
    if memory.load_u16(at)? == value { Ok(()) } else { memory.store_u16(at, value) }
}

/// Stores `value` like [`update_u16`], with 32 bits.
#[inline]
fn update_u32(memory: &impl RpmsgMemory, at: usize, value: u32) -> Result<(), Fault> {
    if memory.load_u32(at)? == value { Ok(()) } else { memory.store_u32(at, value) }
}

/// Returns how many entries the peer published that were not consumed yet; [`Fault::Index`] if its index shows more
/// than `most`.
#[inline]
fn waiting(published: u16, consumed: u16, most: u16) -> Result<u16, Fault> {
    let waiting = published.wrapping_sub(consumed);
    if waiting > most { Err(Fault::Index) } else { Ok(waiting) }
}

#[cfg(test)]
mod tests;
