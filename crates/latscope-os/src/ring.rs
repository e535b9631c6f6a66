//! Submission and completion rings (io_uring(7)) that send each other messages:
//! IORING_OP_MSG_RING, Linux 5.18.
//!
//! A ring is made once and [mapped](UringMessageRing::map_ring) in the process that uses it; its
//! descriptor can be inherited, but not sent over a socket (the kernel forbids it).

use crate::mapping::MemoryMapping;
use crate::shared_cell;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::retry_on_intr;
use rustix::io_uring::{
    IoringEnterFlags, IoringFeatureFlags, IoringMsgringCmds, IoringOp, IoringSqeFlags,
    addr_or_splice_off_in_union, io_uring_cqe, io_uring_enter, io_uring_params, io_uring_setup, io_uring_sqe,
    io_uring_user_data, off_or_addr2_union,
};
use rustix::mm::MapFlags;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Submissions a ring has room for; twice as many completions.
const ENTRIES: u32 = 8;

/// Bytes of a completion (without IORING_SETUP_CQE32).
const COMPLETION: usize = 16;

/// The least size of a page.
const PAGE: usize = 4096;

const OFFSET_OF_RINGS: u64 = 0;
const OFFSET_OF_SUBMISSIONS: u64 = 0x1000_0000;

/// Offsets of the parts that the kernel placed in the memory of a ring, bytes from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringLayout {
    submission_tail: u32,
    submission_array: u32,
    completion_head: u32,
    completion_tail: u32,
    completions: u32,
}

impl UringLayout {
    /// Returns the offsets as numbers, to be passed to another process.
    pub fn to_words(self) -> [u32; 5] {
        let UringLayout { submission_tail, submission_array, completion_head, completion_tail, completions } =
            self;
        [submission_tail, submission_array, completion_head, completion_tail, completions]
    }

    /// Makes a layout from such numbers; `None` if they cannot be a layout.
    pub fn from_words(words: [u32; 5]) -> Option<UringLayout> {
        let [submission_tail, submission_array, completion_head, completion_tail, completions] = words;
        let sane = words.iter().all(|offset| *offset < 4096 && offset % 4 == 0) && completions % 8 == 0;
        sane.then_some(UringLayout {
            submission_tail,
            submission_array,
            completion_head,
            completion_tail,
            completions,
        })
    }

    /// Bytes of the memory with both rings.
    fn mapped_bytes(self) -> usize {
        let completions = self.completions as usize + 2 * ENTRIES as usize * COMPLETION;
        completions.max(self.submission_array as usize + ENTRIES as usize * size_of::<u32>())
    }
}

/// Makes an io_uring instance, and returns its descriptor and layout.
///
/// # Errors
/// `ENOSYS`, `EPERM`: a kernel without io_uring, or it is switched off
/// (/proc/sys/kernel/io_uring_disabled, a seccomp filter). `ENOMEM`: over RLIMIT_MEMLOCK.
pub fn create_ring() -> io::Result<(OwnedFd, UringLayout)> {
    let mut params = io_uring_params::default();
    // SAFETY: zeroed parameters name no memory and no other descriptor.
    let ring = unsafe { io_uring_setup(ENTRIES, &mut params)? };
    let (submissions, completions) = (params.sq_off, params.cq_off);
    let layout = UringLayout::from_words([
        submissions.tail, submissions.array, completions.head, completions.tail, completions.cqes,
    ]);
    let expected = (params.sq_entries, params.cq_entries) == (ENTRIES, 2 * ENTRIES)
        && params.features.contains(IoringFeatureFlags::SINGLE_MMAP);
    match layout {
        Some(layout) if expected => Ok((ring, layout)),
        _ => Err(io::Error::new(io::ErrorKind::Unsupported, "an io_uring older than Linux 5.4")),
    }
}

/// Entry of a completion queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Value that the operation was marked with.
    pub mark: u64,
    /// The result of the operation, negative for an error number.
    pub result: i32,
}

/// A ring in the memory of this process, which sends messages to one other.
#[derive(Debug)]
pub struct UringMessageRing {
    descriptor: OwnedFd,
    /// The kernel looks for it by its number when it takes a submission.
    to: OwnedFd,
    layout: UringLayout,
    rings: MemoryMapping,
    submissions: MemoryMapping,
    waiting: u32,
}

impl UringMessageRing {
    /// Maps a ring from [`create_ring`] whose messages go to the ring `to`. One holder at a time has it open.
    ///
    /// # Errors
    /// The descriptor is no ring, another holder has it open or died with it, or there is no memory left.
    pub fn map_ring(descriptor: OwnedFd, layout: UringLayout, to: OwnedFd) -> io::Result<UringMessageRing> {
        shared_cell::refuse(&descriptor)?;
        check_kind(&descriptor)?;
        let rings =
            MemoryMapping::shared(&descriptor, OFFSET_OF_RINGS, layout.mapped_bytes(), MapFlags::POPULATE)?;
        // A page has room for more than the entries.
        let submissions =
            MemoryMapping::shared(&descriptor, OFFSET_OF_SUBMISSIONS, PAGE, MapFlags::POPULATE)?;
        if claim(&submissions).compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another holder has the ring open"));
        }
        Ok(UringMessageRing { descriptor, to, layout, rings, submissions, waiting: 0 })
    }

    /// Prepares a message to the other ring, which gets a completion with `mark`.
    /// Nothing comes back to this ring, unless it fails: then a completion with mark 0.
    ///
    /// # Errors
    /// More is prepared than there is room for.
    #[inline]
    pub fn prepare_message(&mut self, mark: u64) -> io::Result<()> {
        let mark = io_uring_user_data { u64_: mark };
        self.prepare_entry(io_uring_sqe {
            opcode: IoringOp::MsgRing,
            flags: IoringSqeFlags::CQE_SKIP_SUCCESS,
            fd: self.to.as_raw_fd(),
            off_or_addr2: off_or_addr2_union { user_data: mark },
            addr_or_splice_off_in: addr_or_splice_off_in_union { msgring_cmd: IoringMsgringCmds::Data },
            ..io_uring_sqe::default()
        })
    }

    #[inline]
    fn prepare_entry(&mut self, entry: io_uring_sqe) -> io::Result<()> {
        if self.waiting == ENTRIES {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let tail = self.word_at(self.layout.submission_tail);
        let now = tail.load(Ordering::Relaxed);
        let index = now % ENTRIES;
        self.word_at(self.layout.submission_array + 4 * index).store(index, Ordering::Relaxed);
        // SAFETY: the mapping has room for ENTRIES entries, aligned to the page; it is this holder's alone
        // (the claim), and the kernel reads this one only after the tail has passed it.
        unsafe { self.submissions.start.cast::<io_uring_sqe>().add(index as usize).write(entry) };
        tail.store(now.wrapping_add(1), Ordering::Release);
        self.waiting += 1;
        Ok(())
    }

    /// Submits the prepared operations and sleeps until there are `completions` at least, in one system call unless a
    /// signal comes: io_uring_enter(2).
    ///
    /// # Errors
    /// The ring does not work any more.
    #[inline]
    pub fn submit_and_wait(&mut self, completions: u32) -> io::Result<()> {
        let (flags, waiting) = (IoringEnterFlags::GETEVENTS, self.waiting);
        // SAFETY: the prepared entries name the descriptor that is kept for them, and no memory.
        let taken =
            retry_on_intr(|| unsafe { io_uring_enter(&self.descriptor, waiting, completions, flags) })?;
        self.waiting -= taken.min(waiting);
        Ok(())
    }

    /// Takes the next completion, if there is one.
    #[inline]
    pub fn completion(&mut self) -> Option<Completion> {
        let head = self.word_at(self.layout.completion_head);
        let now = head.load(Ordering::Relaxed);
        if now == self.word_at(self.layout.completion_tail).load(Ordering::Acquire) {
            return None;
        }
        let offset = self.layout.completions as usize + (now % (2 * ENTRIES)) as usize * COMPLETION;
        // SAFETY: the completion lies within the mapping (`mapped_bytes`) and is aligned to 8. By atomics: with the
        // layout of another ring the kernel could write there.
        let completion = unsafe {
            let start = self.rings.start.as_ptr().add(offset);
            let (mark, result) = (&*start.cast::<AtomicU64>(), &*start.add(8).cast::<AtomicI32>());
            Completion { mark: mark.load(Ordering::Relaxed), result: result.load(Ordering::Relaxed) }
        };
        head.store(now.wrapping_add(1), Ordering::Release);
        Some(completion)
    }

    #[inline]
    fn word_at(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: all offsets in use lie within the mapping and are aligned
        // (`UringLayout::from_words`, `mapped_bytes`); it lives as long as self.
        unsafe { &*self.rings.start.as_ptr().add(offset as usize).cast::<AtomicU32>() }
    }
}

/// A ring that is open again has nothing prepared, and may be another holder's.
impl Drop for UringMessageRing {
    fn drop(&mut self) {
        let tail = self.word_at(self.layout.submission_tail);
        // The kernel takes entries only when it is entered, which no other holder can do now.
        tail.store(tail.load(Ordering::Relaxed).wrapping_sub(self.waiting), Ordering::Release);
        claim(&self.submissions).store(0, Ordering::Release);
    }
}

/// Refuses a file that is no ring: its memory could be written by others.
fn check_kind(descriptor: &OwnedFd) -> io::Result<()> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))?;
    let is_ring = link.as_os_str() == "anon_inode:[io_uring]";
    is_ring.then_some(()).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is no io_uring"))
}

/// The word by which a holder has a ring for itself, in the page of submissions: far behind the last that the kernel
/// knows of.
fn claim(submissions: &MemoryMapping) -> &AtomicU32 {
    // SAFETY: the mapping is a page; this place of it is only accessed here, by atomics.
    unsafe { &*submissions.start.as_ptr().add(PAGE - 8).cast::<AtomicU32>() }
}

impl AsFd for UringMessageRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

const _: () = assert!(ENTRIES as usize * size_of::<io_uring_sqe>() <= PAGE - 8);
const _: () = assert!(size_of::<io_uring_sqe>() == 64 && size_of::<io_uring_cqe>() == COMPLETION);

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Two rings, each of which sends to the other.
    fn rings() -> (UringMessageRing, UringMessageRing) {
        let ((near, layout), (far, _)) = (create_ring().unwrap(), create_ring().unwrap());
        let layout = UringLayout::from_words(layout.to_words()).unwrap();
        let (to_near, to_far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        (
            UringMessageRing::map_ring(near, layout, to_far).unwrap(),
            UringMessageRing::map_ring(far, layout, to_near).unwrap(),
        )
    }

    #[test]
    fn messages_arrive_in_the_other_ring_and_nothing_in_the_own() {
        let (mut near, mut far) = rings();
        for mark in 0..100 {
            near.prepare_message(mark).unwrap();
            near.submit_and_wait(0).unwrap();
            far.submit_and_wait(1).unwrap();
            assert_eq!(far.completion(), Some(Completion { mark, result: 0 }));
            assert_eq!((far.completion(), near.completion()), (None, None));
        }
    }

    #[test]
    fn a_failed_message_is_told() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (descriptor, layout) = create_ring().unwrap();
        let mut ring = UringMessageRing::map_ring(descriptor, layout, ours.into()).unwrap();
        ring.prepare_message(1).unwrap();
        ring.submit_and_wait(1).unwrap();
        assert!(ring.completion().unwrap().result < 0, "a socket is no ring");
    }

    #[test]
    fn one_holder_at_a_time_has_a_ring_and_the_next_one_finds_nothing_prepared() {
        let ((near, layout), (far, _)) = (create_ring().unwrap(), create_ring().unwrap());
        let open = || UringMessageRing::map_ring(near.try_clone().unwrap(), layout, far.try_clone().unwrap());
        let mut first = open().unwrap();
        assert_eq!(open().unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        first.prepare_message(7).unwrap();
        drop(first);
        let mut second = open().unwrap();
        second.prepare_message(8).unwrap();
        second.submit_and_wait(0).unwrap();
        drop(second);
        let mut other =
            UringMessageRing::map_ring(far.try_clone().unwrap(), layout, near.try_clone().unwrap()).unwrap();
        other.submit_and_wait(1).unwrap();
        assert_eq!((other.completion().map(|one| one.mark), other.completion()), (Some(8), None));
    }

    #[test]
    fn only_a_ring_is_opened_as_one() {
        let (ring, layout) = create_ring().unwrap();
        let file = std::fs::File::from(
            rustix::fs::memfd_create("no-ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap(),
        );
        file.set_len(OFFSET_OF_SUBMISSIONS + 4096).unwrap();
        let error = UringMessageRing::map_ring(file.into(), layout, ring).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn what_cannot_be_a_layout_is_refused() {
        let words = create_ring().unwrap().1.to_words();
        assert!(UringLayout::from_words(words).is_some());
        assert!(UringLayout::from_words([1, 2, 3, 4, 5]).is_none());
        assert!(UringLayout::from_words([u32::MAX - 3; 5]).is_none());
    }

    #[test]
    fn more_than_there_is_room_for_is_refused() {
        let (mut ring, _other) = rings();
        for mark in 0..u64::from(ENTRIES) {
            ring.prepare_message(mark).unwrap();
        }
        assert!(ring.prepare_message(9).is_err());
    }
}
