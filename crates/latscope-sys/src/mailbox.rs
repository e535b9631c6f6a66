//! Memory in which two processes leave each other messages: a slot for each
//! direction, whose stamp tells which message lies in it.
//!
//! Stamp and message begin on the same cache line, so that a short message
//! comes over with the one line the receiver looks at. Slots are two lines
//! apart at least: adjacent lines are fetched in pairs.
//!
//! Sources: memfd_create(2), fcntl(2) F_ADD_SEALS, mmap(2).

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The stamp (upper half) and the length (lower half) of a message.
const HEAD: usize = size_of::<AtomicU64>();

/// What slots are multiples of.
const ALIGNMENT: usize = 128;

/// Two slots in shared memory; clones refer to the same.
#[derive(Debug, Clone)]
pub struct Mailbox(Arc<Mapping>);

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    capacity: usize,
    descriptor: OwnedFd,
}

// SAFETY: heads are used atomically. Messages are only copied from and to the
// mapping through raw pointers: no reference to them exists.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map` with this size, and no pointer into it outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), 2 * slot(self.capacity)) };
    }
}

/// Bytes of a slot for messages of up to `capacity` bytes.
const fn slot(capacity: usize) -> usize {
    (HEAD + capacity).next_multiple_of(ALIGNMENT)
}

impl Mailbox {
    /// Two empty slots for messages of up to `capacity` bytes, in fresh memory. Their stamps are 0.
    ///
    /// # Errors
    /// No memory or descriptors left, or `capacity` is 4 GiB or more.
    pub fn create(capacity: usize) -> io::Result<Mailbox> {
        if u32::try_from(capacity).is_err() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create("latscope-mailbox", flags)?;
        rustix::fs::ftruncate(&descriptor, 2 * slot(capacity) as u64)?;
        rustix::fs::fcntl_add_seals(&descriptor, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        map(descriptor, capacity)
    }

    /// Maps the slots another process made with the same `capacity`.
    ///
    /// # Errors
    /// The descriptor is not such a memory, or mapping fails.
    pub fn open(descriptor: OwnedFd, capacity: usize) -> io::Result<Mailbox> {
        let size = rustix::fs::fstat(&descriptor)?.st_size;
        let sealed = rustix::fs::fcntl_get_seals(&descriptor)?.contains(SealFlags::SHRINK);
        if !sealed || u32::try_from(capacity).is_err() || size != 2 * slot(capacity) as i64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("not a mailbox for messages of {capacity} bytes: it has {size} bytes"),
            ));
        }
        map(descriptor, capacity)
    }

    /// The memfd behind it, to hand to another process.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }

    /// Longest message, bytes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// Puts `message` into a slot and then stamps it: whoever sees the stamp
    /// sees the message. One process at a time may put into a slot, and not
    /// while the other takes from it.
    ///
    /// # Panics
    /// The message is longer than the capacity, or there is no such slot.
    #[inline]
    pub fn put(&self, slot: usize, stamp: u32, message: &[u8]) {
        assert!(message.len() <= self.0.capacity);
        let (head, body) = self.slot(slot);
        // SAFETY: the slot has room for `capacity` bytes, and nothing of ours
        // overlaps a shared mapping. A process that breaks the rule above
        // changes bytes, and any bytes are a message.
        unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), body, message.len()) };
        head.store((u64::from(stamp) << 32) | message.len() as u64, Ordering::Release);
    }

    /// The stamp of the message in a slot.
    ///
    /// # Panics
    /// There is no such slot.
    #[inline]
    pub fn stamp(&self, slot: usize) -> u32 {
        (self.slot(slot).0.load(Ordering::Acquire) >> 32) as u32
    }

    /// Copies the message out of a slot, as much of it as fits, and returns its whole length.
    ///
    /// # Panics
    /// There is no such slot.
    #[inline]
    pub fn take(&self, slot: usize, buffer: &mut [u8]) -> usize {
        let (head, body) = self.slot(slot);
        // What another process wrote is not trusted.
        let length = (head.load(Ordering::Acquire) as u32 as usize).min(self.0.capacity);
        let fits = length.min(buffer.len());
        // SAFETY: as in `put`, the other way round.
        unsafe { std::ptr::copy_nonoverlapping(body, buffer.as_mut_ptr(), fits) };
        length
    }

    #[inline]
    fn slot(&self, index: usize) -> (&AtomicU64, *mut u8) {
        assert!(index < 2);
        // SAFETY: the mapping holds two slots, each beginning with an aligned
        // 64-bit head that is only used atomically, and lives as long as self.
        unsafe {
            let start = self.0.start.as_ptr().add(index * slot(self.0.capacity));
            (&*start.cast::<AtomicU64>(), start.add(HEAD))
        }
    }
}

fn map(descriptor: OwnedFd, capacity: usize) -> io::Result<Mailbox> {
    // SAFETY: a new mapping at an address the kernel chooses touches no other
    // memory; the file has the size and cannot shrink (sealed).
    let start = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            2 * slot(capacity),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::POPULATE,
            &descriptor,
            0,
        )?
    };
    let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(Mailbox(Arc::new(Mapping { start, capacity, descriptor })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_seen_through_another_mapping() {
        let first = Mailbox::create(100).unwrap();
        let second = Mailbox::open(first.descriptor().try_clone_to_owned().unwrap(), 100).unwrap();
        assert_eq!((second.stamp(0), second.stamp(1)), (0, 0));
        first.put(1, 7, b"seven");
        drop(first);
        let mut buffer = [0; 8];
        assert_eq!((second.stamp(0), second.stamp(1), second.take(1, &mut buffer)), (0, 7, 5));
        assert_eq!(&buffer[..5], b"seven");
        let mut short = [0; 2];
        assert_eq!((second.take(1, &mut short), &short), (5, b"se"));
    }

    #[test]
    fn slots_hold_their_capacity_and_share_no_lines() {
        let mailbox = Mailbox::create(120).unwrap();
        mailbox.put(0, 1, &[1; 120]);
        mailbox.put(1, 2, &[2; 120]);
        let mut buffer = [0; 120];
        assert_eq!((mailbox.take(0, &mut buffer), buffer), (120, [1; 120]));
        assert_eq!((mailbox.take(1, &mut buffer), buffer), (120, [2; 120]));
        assert_eq!((slot(1), slot(120), slot(121)), (128, 128, 256));
    }

    #[test]
    #[should_panic(expected = "capacity")]
    fn a_longer_message_is_refused() {
        Mailbox::create(8).unwrap().put(0, 1, &[0; 9]);
    }

    #[test]
    fn memory_of_another_size_is_refused() {
        let mailbox = Mailbox::create(100).unwrap();
        assert!(Mailbox::open(mailbox.descriptor().try_clone_to_owned().unwrap(), 200).is_err());
    }
}
