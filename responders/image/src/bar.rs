//! The window: memory of a device, shared with a host that is not trusted.

use crate::pci::Span;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use latscope_rpmsg::{Fault, RpmsgMemory};

/// Memory that others write, reached by atomics alone.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    base: *mut u8,
    size: usize,
}

/// A type of which any bits are a value, and that can be changed by others at any time.
trait Cell {}
impl Cell for AtomicU8 {}
impl Cell for AtomicU16 {}
impl Cell for AtomicU32 {}
impl Cell for AtomicU64 {}

impl Bar {
    /// The memory at `span`.
    ///
    /// # Safety
    /// It is memory, mapped, aligned to a page, used by the device only, and stays so.
    pub unsafe fn new(span: Span) -> Bar {
        Bar { base: span.at as usize as *mut u8, size: span.size as usize }
    }

    /// The cell at an offset, if all of it is in the window and it is aligned.
    fn cell<T: Cell>(&self, at: usize) -> Result<&T, Fault> {
        let end = at.checked_add(size_of::<T>()).ok_or(Fault::OutOfWindow)?;
        if end > self.size || !at.is_multiple_of(align_of::<T>()) {
            return Err(Fault::OutOfWindow);
        }
        // SAFETY: it is in the window, which is mapped memory for ever, and aligned, since the
        // window is. Cells are atomics: others may change them meanwhile, and no bits are invalid.
        Ok(unsafe { &*self.base.add(at).cast::<T>() })
    }

    /// That `length` bytes at `at` are in the window.
    fn check(&self, at: usize, length: usize) -> Result<(), Fault> {
        match at.checked_add(length) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(Fault::OutOfWindow),
        }
    }
}

/// How many of `length` bytes at `at` are in front of the first whole word.
fn before_words(at: usize, length: usize) -> usize {
    (at.next_multiple_of(8) - at).min(length)
}

/// The processor is little-endian, as the window is.
impl RpmsgMemory for Bar {
    fn size(&self) -> usize {
        self.size
    }

    fn load_u8(&self, at: usize) -> Result<u8, Fault> {
        Ok(self.cell::<AtomicU8>(at)?.load(Ordering::Relaxed))
    }

    fn store_u8(&self, at: usize, value: u8) -> Result<(), Fault> {
        self.cell::<AtomicU8>(at)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn load_u16(&self, at: usize) -> Result<u16, Fault> {
        Ok(self.cell::<AtomicU16>(at)?.load(Ordering::Relaxed))
    }

    fn store_u16(&self, at: usize, value: u16) -> Result<(), Fault> {
        self.cell::<AtomicU16>(at)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn load_index(&self, at: usize) -> Result<u16, Fault> {
        Ok(self.cell::<AtomicU16>(at)?.load(Ordering::Acquire))
    }

    fn store_index(&self, at: usize, value: u16) -> Result<(), Fault> {
        self.cell::<AtomicU16>(at)?.store(value, Ordering::Release);
        Ok(())
    }

    fn load_u32(&self, at: usize) -> Result<u32, Fault> {
        Ok(self.cell::<AtomicU32>(at)?.load(Ordering::Relaxed))
    }

    fn store_u32(&self, at: usize, value: u32) -> Result<(), Fault> {
        self.cell::<AtomicU32>(at)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// In one piece where it is aligned to 8 bytes; a descriptor's address is in any sound ring.
    fn load_u64(&self, at: usize) -> Result<u64, Fault> {
        Ok(self.cell::<AtomicU64>(at)?.load(Ordering::Relaxed))
    }

    fn store_u64(&self, at: usize, value: u64) -> Result<(), Fault> {
        self.cell::<AtomicU64>(at)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        self.check(at, into.len())?;
        let (head, rest) = into.split_at_mut(before_words(at, into.len()));
        let (words, tail) = rest.as_chunks_mut::<8>();
        let (first, last) = (at + head.len(), at + head.len() + 8 * words.len());
        for (at, byte) in (at..).zip(head).chain((last..).zip(tail)) {
            *byte = self.load_u8(at)?;
        }
        for (at, word) in (first..).step_by(8).zip(words) {
            *word = self.load_u64(at)?.to_le_bytes();
        }
        Ok(())
    }

    fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Fault> {
        self.check(at, from.len())?;
        let (head, rest) = from.split_at(before_words(at, from.len()));
        let (words, tail) = rest.as_chunks::<8>();
        let (first, last) = (at + head.len(), at + head.len() + 8 * words.len());
        for (at, byte) in (at..).zip(head).chain((last..).zip(tail)) {
            self.store_u8(at, *byte)?;
        }
        for (at, word) in (first..).step_by(8).zip(words) {
            self.store_u64(at, u64::from_le_bytes(*word))?;
        }
        Ok(())
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}
