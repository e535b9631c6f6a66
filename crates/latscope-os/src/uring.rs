//! A submission queue with one owner (io_uring(7)): operations that do nothing, and reads of a file.

use crate::kernels::code::calls::SystemCallLoop;
use crate::mapping::MemoryMapping;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::io_uring::{
    IoringEnterFlags, IoringFeatureFlags, IoringOp, IoringSetupFlags, IoringSqFlags,
    addr_or_splice_off_in_union, io_uring_cqe, io_uring_enter, io_uring_params, io_uring_ptr, io_uring_setup,
    io_uring_sqe, len_union, off_or_addr2_union,
};
use rustix::mm::{MapFlags, ProtFlags};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering, fence};
use std::time::Duration;

const OFFSET_OF_RINGS: u64 = 0;
const OFFSET_OF_SUBMISSIONS: u64 = 0x1000_0000;

/// Thread that takes the submissions of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// The submitting thread itself, in its system call.
    Caller,
    /// A thread of the kernel on this CPU, which sleeps after so long a time without submissions, at least 1 ms.
    Poller {
        /// CPU of the thread.
        cpu: u32,
        /// Time without submissions after which it sleeps.
        idle: Duration,
    },
}

/// A queue of operations. Its operations are submitted together, and waited for together.
#[derive(Debug)]
pub struct UringQueue {
    descriptor: OwnedFd,
    params: io_uring_params,
    rings: MemoryMapping,
    submissions: MemoryMapping,
    /// Operations that are prepared and not submitted.
    prepared: u32,
    /// Operations whose completions are awaited.
    in_flight: u32,
    reads: Option<Reads>,
    /// System call at several addresses, for so many operations.
    calls: Option<(SystemCallLoop<'static>, u32)>,
}

/// File that is read, and memory for each entry.
#[derive(Debug)]
struct Reads {
    file: OwnedFd,
    size: usize,
    memory: MemoryMapping,
}

impl UringQueue {
    /// Makes a queue for `entries` operations, a power of two.
    ///
    /// # Errors
    /// `ENOSYS`, `EPERM`: a kernel without io_uring, or it is switched off (/proc/sys/kernel/io_uring_disabled, a
    /// seccomp filter). `EINVAL`: the CPU of the thread is not allowed, or the kernel is older than Linux 5.11.
    /// `ENOMEM`: over RLIMIT_MEMLOCK.
    pub fn new(entries: u32, taker: Taker) -> Result<UringQueue> {
        let mut params = io_uring_params::default();
        if let Taker::Poller { cpu, idle } = taker {
            params.flags = IoringSetupFlags::SQPOLL | IoringSetupFlags::SQ_AFF;
            params.sq_thread_cpu = cpu;
            params.sq_thread_idle = u32::try_from(idle.as_millis()).map_err(|_| Errno::INVAL)?;
        }
        // SAFETY: the parameters name no memory and no other descriptor.
        let descriptor = unsafe { io_uring_setup(entries, &mut params)? };
        // Before Linux 5.11 a poller reads registered files only.
        if !params.features.contains(IoringFeatureFlags::SINGLE_MMAP | IoringFeatureFlags::SQPOLL_NONFIXED) {
            return Err(Errno::INVAL);
        }
        let submitted = params.sq_off.array as usize + params.sq_entries as usize * size_of::<u32>();
        let completed = params.cq_off.cqes as usize + params.cq_entries as usize * size_of::<io_uring_cqe>();
        let length = submitted.max(completed);
        let rings = MemoryMapping::shared(&descriptor, OFFSET_OF_RINGS, length, MapFlags::POPULATE)?;
        let length = params.sq_entries as usize * size_of::<io_uring_sqe>();
        let submissions =
            MemoryMapping::shared(&descriptor, OFFSET_OF_SUBMISSIONS, length, MapFlags::POPULATE)?;
        Ok(UringQueue {
            descriptor,
            params,
            rings,
            submissions,
            prepared: 0,
            in_flight: 0,
            reads: None,
            calls: None,
        })
    }

    /// Takes the file that is read, `size` bytes at a time.
    ///
    /// # Errors
    /// There is no memory left for as many reads as there are entries.
    ///
    /// # Panics
    /// If reads are in flight.
    pub fn read_from(&mut self, file: OwnedFd, size: usize) -> Result<()> {
        assert_eq!(self.prepared + self.in_flight, 0, "the memory of earlier reads is still in use");
        let length = size.checked_mul(self.params.sq_entries as usize).ok_or(Errno::NOMEM)?;
        let memory =
            MemoryMapping::anonymous(length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::POPULATE)?;
        self.reads = Some(Reads { file, size, memory });
        Ok(())
    }

    /// Prepares an operation that does nothing.
    ///
    /// # Panics
    /// If more is prepared than there is room for.
    #[inline]
    pub fn prepare_nop(&mut self) {
        self.prepare_entry(io_uring_sqe { opcode: IoringOp::Nop, ..io_uring_sqe::default() });
    }

    /// Prepares a read at an offset of the file, into memory of its own.
    ///
    /// # Panics
    /// If more is prepared than there is room for, or no file was taken.
    #[inline]
    pub fn prepare_read(&mut self, offset: u64) {
        let reads = self.reads.as_ref().expect("a file was taken");
        let at = self.prepared as usize * reads.size;
        assert!(at + reads.size <= reads.memory.length);
        // SAFETY: within the mapping, as just asserted.
        let address = unsafe { reads.memory.start.as_ptr().add(at) };
        let (file, length) = (reads.file.as_raw_fd(), reads.size as u32);
        self.prepare_entry(io_uring_sqe {
            opcode: IoringOp::Read,
            fd: file,
            off_or_addr2: off_or_addr2_union { off: offset },
            addr_or_splice_off_in: addr_or_splice_off_in_union { addr: io_uring_ptr::from(address.cast()) },
            len: len_union { len: length },
            ..io_uring_sqe::default()
        });
    }

    #[inline]
    fn prepare_entry(&mut self, entry: io_uring_sqe) {
        assert!(self.prepared + self.in_flight < self.params.sq_entries, "there is no room");
        let tail = self.word_at(self.params.sq_off.tail).load(Ordering::Relaxed).wrapping_add(self.prepared);
        let index = tail & (self.params.sq_entries - 1);
        self.word_at(self.params.sq_off.array + 4 * index).store(index, Ordering::Relaxed);
        // SAFETY: the mapping has room for all entries, aligned to the page; the kernel reads this one only after the
        // tail has passed it.
        unsafe { self.submissions.start.cast::<io_uring_sqe>().add(index as usize).write(entry) };
        self.prepared += 1;
    }

    /// Submits what is prepared, and waits until all of it is done: in one system call, or, beside a poller, by
    /// watching the completions. Returns the sum of their results.
    ///
    /// # Errors
    /// The error of an operation, or of the call.
    #[inline]
    pub fn submit_and_wait(&mut self) -> Result<u64> {
        let count = self.publish();
        if !self.has_poller() {
            self.enter(count, self.in_flight, IoringEnterFlags::GETEVENTS)?;
        } else if self.is_asleep() {
            self.enter(0, 0, IoringEnterFlags::SQ_WAKEUP)?;
        }
        self.await_completions()
    }

    /// Puts the system call that submits and awaits so many operations at several addresses, and returns their number.
    pub fn place_call(&mut self, seed: u64, operations: u32) -> usize {
        let calls = SystemCallLoop::enter_ring(seed, self.descriptor.as_raw_fd(), operations);
        self.calls.insert((calls, operations)).0.address_count()
    }

    /// Submits and awaits what is prepared, by the system call at the address with this number.
    ///
    /// # Errors
    /// The errors of [`submit_and_wait`](Self::submit_and_wait).
    ///
    /// # Panics
    /// No call was placed for so many operations, or there is no such address.
    #[inline]
    pub fn finish_at(&mut self, address: usize) -> Result<u64> {
        let count = self.publish();
        let (calls, operations) = self.calls.as_mut().expect("a call was placed");
        assert_eq!(count, *operations, "the call is for another number of operations");
        calls.run_at(address, 1)?;
        self.await_completions()
    }

    /// Makes prepared entries visible to the kernel, and returns their number.
    #[inline]
    fn publish(&mut self) -> u32 {
        let count = self.prepared;
        let tail = self.word_at(self.params.sq_off.tail);
        tail.store(tail.load(Ordering::Relaxed).wrapping_add(count), Ordering::Release);
        (self.prepared, self.in_flight) = (0, self.in_flight + count);
        count
    }

    /// Waits for all completions, and returns the sum of their results.
    #[inline]
    fn await_completions(&mut self) -> Result<u64> {
        let (mut sum, mut failed) = (0, None);
        while self.in_flight > 0 {
            match self.completion() {
                Some(Ok(result)) => sum += u64::from(result),
                Some(Err(error)) => failed = Some(error),
                None => std::hint::spin_loop(),
            }
        }
        failed.map_or(Ok(sum), Err)
    }

    fn has_poller(&self) -> bool {
        self.params.flags.contains(IoringSetupFlags::SQPOLL)
    }

    /// Returns true if the poller sleeps, and has to be woken by a system call.
    #[inline]
    pub fn is_asleep(&self) -> bool {
        // The tail must be visible before the flag is read: the poller sets the flag, then looks at the tail.
        fence(Ordering::SeqCst);
        let flags = self.word_at(self.params.sq_off.flags).load(Ordering::Relaxed);
        flags & IoringSqFlags::NEED_WAKEUP.bits() != 0
    }

    /// io_uring_enter(2), again if a signal came before anything was submitted.
    #[inline]
    fn enter(&self, submitted: u32, awaited: u32, flags: IoringEnterFlags) -> Result<()> {
        // SAFETY: the prepared entries name the file that is kept for them, and memory that lives until they are done
        // (`drop`).
        retry_on_intr(|| unsafe { io_uring_enter(&self.descriptor, submitted, awaited, flags) }).map(drop)
    }

    #[inline]
    fn completion(&mut self) -> Option<Result<u32>> {
        let head = self.word_at(self.params.cq_off.head);
        let now = head.load(Ordering::Relaxed);
        if now == self.word_at(self.params.cq_off.tail).load(Ordering::Acquire) {
            return None;
        }
        let index = (now & (self.params.cq_entries - 1)) as usize;
        let offset = self.params.cq_off.cqes as usize + index * size_of::<io_uring_cqe>() + size_of::<u64>();
        // SAFETY: the completion lies within the mapping (`new`), and its result is aligned to 4.
        let result = unsafe { &*self.rings.start.as_ptr().add(offset).cast::<AtomicI32>() };
        let result = result.load(Ordering::Relaxed);
        head.store(now.wrapping_add(1), Ordering::Release);
        self.in_flight -= 1;
        Some(u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result)))
    }

    #[inline]
    fn word_at(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel gave the offsets of its words in this mapping, aligned to 4; those of the array are
        // within its entries (`prepare_entry`).
        unsafe { &*self.rings.start.as_ptr().add(offset as usize).cast::<AtomicU32>() }
    }
}

/// No memory of a read goes before the kernel has written it.
impl Drop for UringQueue {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            if self.completion().is_some() {
                continue;
            }
            if !self.has_poller() && self.enter(0, 1, IoringEnterFlags::GETEVENTS).is_err() {
                // What the kernel may still write to stays mapped.
                std::mem::forget(self.reads.take());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};

    #[test]
    fn operations_that_do_nothing_are_all_done() {
        let mut queue = UringQueue::new(8, Taker::Caller).unwrap();
        for count in [1, 8, 3] {
            (0..count).for_each(|_| queue.prepare_nop());
            assert_eq!(queue.submit_and_wait(), Ok(0));
            assert_eq!(queue.in_flight, 0);
        }
        let addresses = queue.place_call(1, 2);
        for address in 0..addresses {
            (0..2).for_each(|_| queue.prepare_nop());
            assert_eq!(queue.finish_at(address), Ok(0));
            assert_eq!(queue.in_flight, 0);
        }
    }

    #[test]
    fn a_poller_falls_asleep_and_is_woken() {
        let cpu = *crate::sched::allowed_cpus().unwrap().last().unwrap();
        let mut queue = UringQueue::new(4, Taker::Poller { cpu, idle: Duration::from_millis(1) }).unwrap();
        for _ in 0..2 {
            queue.prepare_nop();
            assert_eq!(queue.submit_and_wait(), Ok(0));
            while !queue.is_asleep() {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn reads_bring_what_is_in_the_file() {
        let file = memfd_create("uring-test", MemfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&file, &[1, 2, 3, 4]).unwrap();
        let mut queue = UringQueue::new(4, Taker::Caller).unwrap();
        queue.read_from(file, 2).unwrap();
        [2, 0, 3, 4].into_iter().for_each(|offset| queue.prepare_read(offset));
        assert_eq!(queue.submit_and_wait(), Ok(2 + 2 + 1));
        let memory = &queue.reads.as_ref().unwrap().memory;
        // SAFETY: nothing is in flight, and the mapping has these bytes.
        let seen = unsafe { std::slice::from_raw_parts(memory.start.as_ptr(), 5) };
        assert_eq!(seen, [3, 4, 1, 2, 4]);
    }

    #[test]
    fn a_failed_read_is_an_error_and_the_queue_goes_on() {
        let (_kept, written) = rustix::pipe::pipe().unwrap();
        let mut queue = UringQueue::new(2, Taker::Caller).unwrap();
        queue.read_from(written, 1).unwrap();
        queue.prepare_read(0);
        queue.prepare_nop();
        assert_eq!(queue.submit_and_wait(), Err(Errno::BADF));
        queue.prepare_nop();
        assert_eq!(queue.submit_and_wait(), Ok(0));
    }

    #[test]
    #[should_panic(expected = "no room")]
    fn more_than_there_is_room_for_is_refused() {
        let mut queue = UringQueue::new(1, Taker::Caller).unwrap();
        (0..2).for_each(|_| queue.prepare_nop());
    }
}
