//! Window of memory that is shared with an untrusted party.
//!
//! The protocol reaches shared memory through [`RpmsgMemory`] alone. A load returns a copy, checked after the load and
//! never loaded again, so that a peer that changes the memory in between has no effect.

use crate::Fault;
use core::sync::atomic::{AtomicU16, Ordering, fence};

/// Loads and stores by offset in a window that another party writes, too.
///
/// An offset is what the peer calls a *device address*: a file mapped by both sides counts from
/// its beginning; a back end of a virtual machine translates guest addresses, and may have holes.
///
/// Multi-byte values are little-endian in memory on every machine and native in arguments and
/// results: an implementor converts. The other side may write at any time: each call is one
/// volatile or atomic access (`u8`, `u16`, `u32`), or any number of them ([`read_bytes`](RpmsgMemory::read_bytes),
/// [`write_bytes`](RpmsgMemory::write_bytes)).
///
/// # Errors
/// Every method refuses with [`Fault::OutOfWindow`] a range that is not wholly in the window, and touches nothing then.
/// `u16` and `u32` need their natural alignment: a misaligned access is refused likewise.
pub trait RpmsgMemory {
    /// The first offset behind the window, bytes.
    fn size(&self) -> usize;

    /// Loads a byte; relaxed.
    fn load_u8(&self, at: usize) -> Result<u8, Fault>;

    /// Stores a byte; relaxed.
    fn store_u8(&self, at: usize, value: u8) -> Result<(), Fault>;

    /// Loads 16 bits; relaxed.
    fn load_u16(&self, at: usize) -> Result<u16, Fault>;

    /// Stores 16 bits; relaxed.
    fn store_u16(&self, at: usize, value: u16) -> Result<(), Fault>;

    /// Loads a ring's index: all later loads see the peer's stores before the store of that index (acquire).
    fn load_index(&self, at: usize) -> Result<u16, Fault>;

    /// Stores a ring's index: all earlier stores are seen by a peer that loads it (release).
    fn store_index(&self, at: usize, value: u16) -> Result<(), Fault>;

    /// Loads 32 bits; relaxed.
    fn load_u32(&self, at: usize) -> Result<u32, Fault>;

    /// Stores 32 bits; relaxed.
    fn store_u32(&self, at: usize, value: u32) -> Result<(), Fault>;

    /// Copies `into.len()` bytes out of the window.
    fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Fault>;

    /// Copies `from` into the window.
    fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Fault>;

    /// Orders all earlier accesses before all later ones, stores before loads included (sequentially consistent).
    fn fence(&self);

    /// Loads 64 bits in two halves, so that machines without 64-bit atomics can: an address in a
    /// descriptor is published by an index and needs not come in one piece.
    fn load_u64(&self, at: usize) -> Result<u64, Fault> {
        let high = at.checked_add(4).ok_or(Fault::OutOfWindow)?;
        Ok(u64::from(self.load_u32(at)?) | u64::from(self.load_u32(high)?) << 32)
    }

    /// Stores 64 bits in two halves.
    fn store_u64(&self, at: usize, value: u64) -> Result<(), Fault> {
        let high = at.checked_add(4).ok_or(Fault::OutOfWindow)?;
        self.store_u32(at, value as u32)?;
        self.store_u32(high, (value >> 32) as u32)
    }

    /// The offset of `length` bytes at a device address, if all of them are below [`RpmsgMemory::size`].
    fn locate(&self, address: u64, length: u32) -> Result<usize, Fault> {
        let end = address.checked_add(u64::from(length)).ok_or(Fault::OutOfWindow)?;
        if end > self.size() as u64 {
            return Err(Fault::OutOfWindow);
        }
        usize::try_from(address).map_err(|_| Fault::OutOfWindow)
    }

    /// Sets `length` bytes to zero.
    fn clear(&self, at: usize, length: usize) -> Result<(), Fault> {
        let end = at.checked_add(length).ok_or(Fault::OutOfWindow)?;
        (at..end).try_for_each(|at| self.store_u8(at, 0))
    }
}

/// Several views share one memory.
impl<M: RpmsgMemory + ?Sized> RpmsgMemory for &M {
    fn size(&self) -> usize {
        (**self).size()
    }
    fn load_u8(&self, at: usize) -> Result<u8, Fault> {
        (**self).load_u8(at)
    }
    fn store_u8(&self, at: usize, value: u8) -> Result<(), Fault> {
        (**self).store_u8(at, value)
    }
    fn load_u16(&self, at: usize) -> Result<u16, Fault> {
        (**self).load_u16(at)
    }
    fn store_u16(&self, at: usize, value: u16) -> Result<(), Fault> {
        (**self).store_u16(at, value)
    }
    fn load_index(&self, at: usize) -> Result<u16, Fault> {
        (**self).load_index(at)
    }
    fn store_index(&self, at: usize, value: u16) -> Result<(), Fault> {
        (**self).store_index(at, value)
    }
    fn load_u32(&self, at: usize) -> Result<u32, Fault> {
        (**self).load_u32(at)
    }
    fn store_u32(&self, at: usize, value: u32) -> Result<(), Fault> {
        (**self).store_u32(at, value)
    }
    fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        (**self).read_bytes(at, into)
    }
    fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Fault> {
        (**self).write_bytes(at, from)
    }
    fn fence(&self) {
        (**self).fence()
    }
}

/// Memory for two threads of one program, for tests and for examples: an array
/// of atomics, 16 bits each because a ring's index and its flags are.
///
/// `C` holds the cells: an array, a `Vec`, or a slice. A `u32` is loaded and stored in two halves.
#[derive(Debug)]
pub struct AtomicCellMemory<C>(pub C);

impl<C: AsRef<[AtomicU16]>> AtomicCellMemory<C> {
    /// The cell of the byte `at`.
    fn cell_at(&self, at: usize) -> Result<&AtomicU16, Fault> {
        self.0.as_ref().get(at / 2).ok_or(Fault::OutOfWindow)
    }

    /// The cell that begins with the byte `at`.
    fn aligned_cell(&self, at: usize) -> Result<&AtomicU16, Fault> {
        if at.is_multiple_of(2) { self.cell_at(at) } else { Err(Fault::OutOfWindow) }
    }

    /// The cells that two halves of 32 bits at `at` lie in.
    fn halves(&self, at: usize) -> Result<[&AtomicU16; 2], Fault> {
        if !at.is_multiple_of(4) {
            return Err(Fault::OutOfWindow);
        }
        Ok([self.cell_at(at)?, self.cell_at(at + 2)?])
    }

    /// Checks that `length` bytes at `at` are in the window.
    fn check_range(&self, at: usize, length: usize) -> Result<(), Fault> {
        match at.checked_add(length) {
            Some(end) if end <= self.size() => Ok(()),
            _ => Err(Fault::OutOfWindow),
        }
    }
}

impl<C: AsRef<[AtomicU16]>> RpmsgMemory for AtomicCellMemory<C> {
    fn size(&self) -> usize {
        self.0.as_ref().len() * 2
    }

    fn load_u8(&self, at: usize) -> Result<u8, Fault> {
        Ok(self.cell_at(at)?.load(Ordering::Relaxed).to_ne_bytes()[at % 2])
    }

    fn store_u8(&self, at: usize, value: u8) -> Result<(), Fault> {
        let with = |cell: u16| {
            let mut bytes = cell.to_ne_bytes();
            bytes[at % 2] = value;
            Some(u16::from_ne_bytes(bytes))
        };
        // The closure always has an answer, and so has the update.
        let _ = self.cell_at(at)?.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
        Ok(())
    }

    fn load_u16(&self, at: usize) -> Result<u16, Fault> {
        Ok(u16::from_le(self.aligned_cell(at)?.load(Ordering::Relaxed)))
    }

    fn store_u16(&self, at: usize, value: u16) -> Result<(), Fault> {
        self.aligned_cell(at)?.store(value.to_le(), Ordering::Relaxed);
        Ok(())
    }

    fn load_index(&self, at: usize) -> Result<u16, Fault> {
        Ok(u16::from_le(self.aligned_cell(at)?.load(Ordering::Acquire)))
    }

    fn store_index(&self, at: usize, value: u16) -> Result<(), Fault> {
        self.aligned_cell(at)?.store(value.to_le(), Ordering::Release);
        Ok(())
    }

    fn load_u32(&self, at: usize) -> Result<u32, Fault> {
        let [low, high] = self.halves(at)?.map(|cell| u16::from_le(cell.load(Ordering::Relaxed)));
        Ok(u32::from(low) | u32::from(high) << 16)
    }

    fn store_u32(&self, at: usize, value: u32) -> Result<(), Fault> {
        let [low, high] = self.halves(at)?;
        low.store((value as u16).to_le(), Ordering::Relaxed);
        high.store(((value >> 16) as u16).to_le(), Ordering::Relaxed);
        Ok(())
    }

    fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        self.check_range(at, into.len())?;
        for (at, byte) in (at..).zip(into) {
            *byte = self.load_u8(at)?;
        }
        Ok(())
    }

    fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Fault> {
        self.check_range(at, from.len())?;
        for (at, byte) in (at..).zip(from) {
            self.store_u8(at, *byte)?;
        }
        Ok(())
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
pub(crate) mod watched;

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> AtomicCellMemory<[AtomicU16; 8]> {
        AtomicCellMemory(Default::default())
    }

    #[test]
    fn values_are_little_endian() {
        let memory = cells();
        memory.store_u64(0, 0x0807_0605_0403_0201).unwrap();
        let mut bytes = [0; 8];
        memory.read_bytes(0, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(memory.load_u16(2), Ok(0x0403));
        assert_eq!(memory.load_u32(4), Ok(0x0807_0605));
        assert_eq!(memory.load_u64(0), Ok(0x0807_0605_0403_0201));
        memory.write_bytes(3, &[9, 9, 9]).unwrap();
        assert_eq!(memory.load_u64(0), Ok(0x0807_0909_0903_0201));
    }

    #[test]
    fn nothing_outside_is_touched() {
        let memory = cells();
        let refused = Err(Fault::OutOfWindow);
        assert_eq!(memory.store_u8(16, 1), refused);
        assert_eq!(memory.store_u16(16, 1), refused);
        assert_eq!(memory.store_u32(16, 1), refused);
        assert_eq!(memory.store_u64(usize::MAX - 3, 1), refused);
        assert_eq!(memory.write_bytes(14, &[1, 2, 3]), refused);
        assert_eq!(memory.write_bytes(usize::MAX, &[1]), refused);
        assert_eq!(memory.read_bytes(usize::MAX, &mut [0; 2]), refused);
        assert_eq!(memory.clear(usize::MAX, 2), refused);
        assert!(memory.0.iter().all(|cell| cell.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn misaligned_words_are_refused() {
        let memory = cells();
        assert_eq!(memory.load_u16(1), Err(Fault::OutOfWindow));
        assert_eq!(memory.load_index(3), Err(Fault::OutOfWindow));
        assert_eq!(memory.load_u32(2), Err(Fault::OutOfWindow));
    }

    #[test]
    fn an_address_is_located_only_with_its_end() {
        let memory = cells();
        assert_eq!(memory.locate(8, 8), Ok(8));
        assert_eq!(memory.locate(16, 0), Ok(16));
        assert_eq!(memory.locate(8, 9), Err(Fault::OutOfWindow));
        assert_eq!(memory.locate(u64::MAX, 2), Err(Fault::OutOfWindow));
    }
}
