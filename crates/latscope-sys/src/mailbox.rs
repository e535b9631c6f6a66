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

/// A cache line, bytes.
const LINE: usize = 64;

/// What slots are multiples of.
const ALIGNMENT: usize = 128;

/// Two slots in shared memory; clones refer to the same.
#[derive(Debug, Clone)]
pub struct Mailbox(Arc<Mapping>);

/// One of the slots.
#[derive(Debug, Clone)]
pub struct Slot {
    start: NonNull<u8>,
    capacity: usize,
    /// Keeps the memory mapped.
    _mailbox: Mailbox,
}

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

    /// A slot: 0 or 1.
    ///
    /// # Panics
    /// There is no such slot.
    pub fn slot(&self, index: usize) -> Slot {
        assert!(index < 2);
        let capacity = self.0.capacity;
        // SAFETY: the mapping holds two slots of this size.
        let start = unsafe { self.0.start.add(index * slot(capacity)) };
        Slot { start, capacity, _mailbox: self.clone() }
    }
}

// SAFETY: as of the mapping that it keeps.
unsafe impl Send for Slot {}

impl Slot {
    /// Puts `message` into the slot and then stamps it: whoever sees the stamp
    /// sees the message. One process at a time may put into a slot, and not
    /// while the other takes from it.
    ///
    /// # Panics
    /// The message is longer than the capacity.
    #[inline(always)]
    pub fn put(&self, stamp: u32, message: &[u8]) {
        assert!(message.len() <= self.capacity);
        // SAFETY: the slot has room for `capacity` bytes behind its head, and
        // nothing of ours overlaps a shared mapping. A process that breaks the
        // rule above changes bytes, and any bytes are a message.
        unsafe { copy(message.as_ptr(), self.start.as_ptr().add(HEAD), message.len()) };
        self.head().store((u64::from(stamp) << 32) | message.len() as u64, Ordering::Release);
    }

    /// The length of the message in the slot, if it has this stamp; at most the capacity.
    #[inline(always)]
    pub fn holds(&self, stamp: u32) -> Option<usize> {
        let head = self.head().load(Ordering::Acquire);
        // What another process wrote is not trusted.
        ((head >> 32) as u32 == stamp).then(|| (head as u32 as usize).min(self.capacity))
    }

    /// Copies the first `length` bytes of the message out of the slot, as many
    /// of them as fit and there are at most; see [`holds`](Slot::holds).
    #[inline(always)]
    pub fn take(&self, length: usize, buffer: &mut [u8]) {
        let fits = length.min(self.capacity).min(buffer.len());
        // SAFETY: as in `put`, the other way round.
        unsafe { copy(self.start.as_ptr().add(HEAD), buffer.as_mut_ptr(), fits) };
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        // SAFETY: a slot begins with an aligned 64-bit head that is only used
        // atomically, and stays mapped as long as `self`.
        unsafe { self.start.cast::<AtomicU64>().as_ref() }
    }
}

/// Copies bytes; a message of one line without a call, which would take as long.
///
/// # Safety
/// As of [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    type Block = [u64; 2];
    const BLOCK: usize = size_of::<Block>();
    if length > LINE || !length.is_multiple_of(BLOCK) {
        // SAFETY: the caller's.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
    }
    for at in (0..length).step_by(BLOCK) {
        // SAFETY: a block more is within `length`, and these accesses need no alignment.
        unsafe {
            let block = from.add(at).cast::<Block>().read_unaligned();
            to.add(at).cast::<Block>().write_unaligned(block);
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
        let [left, right] = [second.slot(0), second.slot(1)];
        assert_eq!((left.holds(0), right.holds(0), left.holds(1)), (Some(0), Some(0), None));
        let slot = first.slot(1);
        drop((first, second));
        slot.put(7, b"seven");
        let mut buffer = [0; 8];
        assert_eq!((left.holds(0), right.holds(0), right.holds(7)), (Some(0), None, Some(5)));
        right.take(5, &mut buffer);
        assert_eq!(&buffer, b"seven\0\0\0");
        let mut short = [0; 2];
        right.take(5, &mut short);
        assert_eq!(&short, b"se");
    }

    #[test]
    fn slots_hold_messages_of_any_length_and_share_no_lines() {
        let mailbox = Mailbox::create(120).unwrap();
        for length in 1..=120 {
            let message: Vec<u8> = (1..=length as u8).collect();
            mailbox.slot(0).put(length as u32, &message);
            mailbox.slot(1).put(length as u32, &[0xff; 120]);
            let mut buffer = [0; 121];
            assert_eq!(mailbox.slot(0).holds(length as u32), Some(length));
            mailbox.slot(0).take(length, &mut buffer);
            assert_eq!((&buffer[..length], buffer[length]), (&message[..], 0));
        }
        // More than there can be is not taken.
        let mut buffer = [0; 300];
        mailbox.slot(1).take(300, &mut buffer);
        assert_eq!((&buffer[..120], buffer[120]), (&[0xff; 120][..], 0));
        assert_eq!((slot(1), slot(120), slot(121)), (128, 128, 256));
    }

    #[test]
    #[should_panic(expected = "capacity")]
    fn a_longer_message_is_refused() {
        Mailbox::create(8).unwrap().slot(0).put(0, &[0; 9]);
    }

    #[test]
    fn memory_of_another_size_is_refused() {
        let mailbox = Mailbox::create(100).unwrap();
        assert!(Mailbox::open(mailbox.descriptor().try_clone_to_owned().unwrap(), 200).is_err());
    }
}
