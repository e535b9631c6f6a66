//! Memory in which two processes leave each other messages, in turn: one slot for both directions, whose stamp is the
//! number of the message in it.
//!
//! The cache line of the stamp holds a short message too. The message arrives with the one line that the receiver
//! reads, and the answer returns in the same line. With a slot for each direction, each turn would have to take the
//! line of each slot from the other CPU's cache, for writing and then for reading. A longer message is in the lines
//! after it, which the receiver does not read before the message is complete.

use crate::mapping::{self, MemoryMapping};
use crate::{copy, shared_cell};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::mm::MapFlags;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// A cache line, bytes.
const LINE: usize = 64;

const WORD: usize = size_of::<AtomicU64>();

/// Longest message that fits the first line, behind the head, in bytes. The head is the stamp (upper half) and the
/// length (lower half) of the message.
const SHORT: usize = LINE - WORD;

/// A slot in shared memory, which is only accessed by atomics and copies that expect others to write.
#[derive(Debug)]
pub struct SharedMailbox {
    mapping: MemoryMapping,
    capacity: usize,
    descriptor: OwnedFd,
}

/// Bytes of a slot for messages of up to `capacity` bytes.
const fn slot_size(capacity: usize) -> usize {
    LINE + capacity.next_multiple_of(LINE)
}

impl SharedMailbox {
    /// An empty slot for messages of up to `capacity` bytes, in fresh memory. Its stamp is 0.
    ///
    /// # Errors
    /// No memory or descriptors left, or `capacity` is 4 GiB or more.
    pub fn create_empty(capacity: usize) -> io::Result<SharedMailbox> {
        if u32::try_from(capacity).is_err() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let descriptor = mapping::sealed("latscope-mailbox", slot_size(capacity))?;
        map_mailbox(descriptor, capacity)
    }

    /// Maps the slot another process made with the same `capacity`.
    ///
    /// # Errors
    /// The descriptor is not such a memory, or mapping fails.
    pub fn map_existing(descriptor: OwnedFd, capacity: usize) -> io::Result<SharedMailbox> {
        shared_cell::refuse(&descriptor)?;
        let got = mapping::sealed_length(&descriptor)?;
        if u32::try_from(capacity).is_err() || got != slot_size(capacity) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("not a mailbox for messages of {capacity} bytes: it has {got} bytes"),
            ));
        }
        map_mailbox(descriptor, capacity)
    }

    /// The memfd behind it, to hand to another process.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Puts `message` into the slot and then stamps it: a process that sees the stamp
    /// sees the message. The two processes take turns: the one that has taken the
    /// last message puts the next.
    ///
    /// # Panics
    /// The message is longer than the capacity.
    #[inline(always)]
    pub fn write_message(&self, stamp: u32, message: &[u8]) {
        assert!(message.len() <= self.capacity);
        if message.len() <= SHORT {
            let (words, rest) = message.as_chunks();
            for (place, word) in self.short_message().iter().zip(words) {
                place.store(u64::from_ne_bytes(*word), Relaxed);
            }
            if !rest.is_empty() {
                let mut last = [0; WORD];
                last[..rest.len()].copy_from_slice(rest);
                self.short_message()[words.len()].store(u64::from_ne_bytes(last), Relaxed);
            }
        } else {
            // SAFETY: the slot has room for `capacity` bytes behind its first line, to which
            // no reference exists.
            unsafe { copy::copy_in(self.long_message(), message) };
        }
        self.head().store((u64::from(stamp) << 32) | message.len() as u64, Release);
    }

    /// The length of the message in the slot, if it has this stamp; at most the capacity.
    #[inline(always)]
    pub fn stamped_length(&self, stamp: u32) -> Option<usize> {
        self.checked_length(self.head().load(Acquire), stamp)
    }

    /// Returns the same as `holds`, for a process that will put the next message at once: the load takes the line for
    /// writing where the processor lets it, so that the line need not move again for that.
    #[inline(always)]
    pub fn holds_for_writing(&self, stamp: u32) -> Option<usize> {
        // Changes nothing, whether it finds 0 or not.
        let (Ok(head) | Err(head)) = self.head().compare_exchange(0, 0, AcqRel, Acquire);
        self.checked_length(head, stamp)
    }

    #[inline(always)]
    fn checked_length(&self, head: u64, stamp: u32) -> Option<usize> {
        // What another process wrote is not trusted.
        ((head >> 32) as u32 == stamp).then(|| (head as u32 as usize).min(self.capacity))
    }

    /// Copies the first `length` bytes of the message out of the slot, as many
    /// of them as fit and there are at most; see [`stamped_length`](SharedMailbox::stamped_length).
    #[inline(always)]
    pub fn copy_message(&self, length: usize, buffer: &mut [u8]) {
        let fits = length.min(self.capacity).min(buffer.len());
        let buffer = &mut buffer[..fits];
        if length <= SHORT {
            let (words, rest) = buffer.as_chunks_mut();
            for (place, word) in self.short_message().iter().zip(words.iter_mut()) {
                *word = place.load(Relaxed).to_ne_bytes();
            }
            if !rest.is_empty() {
                let last = self.short_message()[words.len()].load(Relaxed).to_ne_bytes();
                rest.copy_from_slice(&last[..rest.len()]);
            }
        } else {
            // SAFETY: as in `write_message`.
            unsafe { copy::out(self.long_message(), buffer) };
        }
    }

    /// Place of longer messages.
    #[inline(always)]
    fn long_message(&self) -> NonNull<u8> {
        // SAFETY: the mapping goes on behind the first line, or ends with it.
        unsafe { self.mapping.start.add(LINE) }
    }

    /// Place of short messages, which are copied word by word: the call of a function that copies anything takes a
    /// considerable part of the time that the line needs to arrive.
    #[inline(always)]
    fn short_message(&self) -> &[AtomicU64; SHORT / WORD] {
        // SAFETY: the mapping begins with an aligned line, which is only used
        // atomically and stays as long as `self`.
        unsafe { self.mapping.start.add(WORD).cast().as_ref() }
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        // SAFETY: a slot begins with an aligned 64-bit head that is only used
        // atomically, and stays mapped as long as `self`.
        unsafe { self.mapping.start.cast::<AtomicU64>().as_ref() }
    }
}

fn map_mailbox(descriptor: OwnedFd, capacity: usize) -> io::Result<SharedMailbox> {
    let mapping = MemoryMapping::shared(&descriptor, 0, slot_size(capacity), MapFlags::POPULATE)?;
    Ok(SharedMailbox { mapping, capacity, descriptor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_there_and_back_through_two_mappings() {
        let here = SharedMailbox::create_empty(100).unwrap();
        let there =
            SharedMailbox::map_existing(here.descriptor().try_clone_to_owned().unwrap(), 100).unwrap();
        assert_eq!((there.stamped_length(0), there.stamped_length(1)), (Some(0), None));
        here.write_message(7, b"seven");
        let mut buffer = [0; 8];
        assert_eq!((there.stamped_length(0), there.stamped_length(7)), (None, Some(5)));
        there.copy_message(5, &mut buffer);
        assert_eq!(&buffer, b"seven\0\0\0");
        there.write_message(8, b"eight!");
        drop(there);
        assert_eq!((here.stamped_length(7), here.stamped_length(8)), (None, Some(6)));
        let mut short = [0; 2];
        here.copy_message(6, &mut short);
        assert_eq!(&short, b"ei");
        here.write_message(9, &[1; 60]);
        here.copy_message(60, &mut short);
        assert_eq!(short, [1; 2]);
    }

    #[test]
    fn messages_have_any_length() {
        let mailbox = SharedMailbox::create_empty(120).unwrap();
        for length in 1..=120 {
            let message: Vec<u8> = (1..=length as u8).collect();
            mailbox.write_message(0, &[0xff; 120]);
            mailbox.write_message(length as u32, &message);
            let mut buffer = [0; 121];
            assert_eq!(mailbox.stamped_length(length as u32), Some(length));
            mailbox.copy_message(length, &mut buffer);
            assert_eq!((&buffer[..length], buffer[length]), (&message[..], 0));
        }
        // More than there can be is not taken.
        let mut buffer = [0; 300];
        mailbox.write_message(0, &[0xff; 120]);
        mailbox.copy_message(300, &mut buffer);
        assert_eq!((&buffer[..120], buffer[120]), (&[0xff; 120][..], 0));
        assert_eq!((slot_size(1), slot_size(64), slot_size(65)), (128, 128, 192));
    }

    #[test]
    #[should_panic(expected = "capacity")]
    fn a_longer_message_is_refused() {
        SharedMailbox::create_empty(8).unwrap().write_message(0, &[0; 9]);
    }

    #[test]
    fn memory_of_another_size_is_refused() {
        let mailbox = SharedMailbox::create_empty(100).unwrap();
        assert!(
            SharedMailbox::map_existing(mailbox.descriptor().try_clone_to_owned().unwrap(), 200).is_err()
        );
    }
}
