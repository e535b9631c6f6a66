//! select(2) without the limit of 1024 descriptors.
//!
//! The limit is one of the C library's `fd_set`; the kernel takes bit sets as
//! long as the process has descriptors. The call made is `pselect6`, which
//! every architecture has.

use crate::syscall::syscall;
use rustix::io::Result;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

const BITS: usize = usize::BITS as usize;

/// Descriptors to ask about, as select wants them: a bit for each.
#[derive(Debug, Clone)]
pub struct Descriptors<'a> {
    wanted: Vec<usize>,
    /// The bits given to the kernel, which overwrites them with its answer.
    answer: Vec<usize>,
    /// Number of the highest descriptor plus one.
    end: usize,
    /// The numbers are those of the same files as long as these are open.
    files: PhantomData<BorrowedFd<'a>>,
}

impl<'a> Descriptors<'a> {
    /// A set of these descriptors.
    pub fn new<F: AsFd>(descriptors: &'a [F]) -> Descriptors<'a> {
        let numbers = descriptors.iter().map(|fd| fd.as_fd().as_raw_fd() as usize);
        let end = numbers.clone().max().map_or(0, |highest| highest + 1);
        let mut wanted = vec![0; end.div_ceil(BITS)];
        numbers.for_each(|number| wanted[number / BITS] |= 1 << (number % BITS));
        Descriptors { answer: wanted.clone(), wanted, end, files: PhantomData }
    }

    /// Returns how many descriptors are readable now: select with a zero timeout. The set is filled anew before each
    /// call, as every caller of select has to do.
    ///
    /// # Errors
    /// ENOMEM.
    #[inline]
    pub fn readable_now(&mut self) -> Result<usize> {
        self.call_pselect(|set| [set, 0])
    }

    /// Returns how many descriptors can be written to now, in the way of [`readable_now`](Self::readable_now).
    ///
    /// # Errors
    /// The errors of [`readable_now`](Self::readable_now).
    #[inline]
    pub fn writable_now(&mut self) -> Result<usize> {
        self.call_pselect(|set| [0, set])
    }

    /// Calls pselect6(2); `place` returns the arguments for both sets, reading and writing, of which only one is the
    /// wanted set.
    #[inline(always)]
    fn call_pselect(&mut self, place: fn(usize) -> [usize; 2]) -> Result<usize> {
        self.answer.copy_from_slice(&self.wanted);
        let mut zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let ([read, write], timeout) = (place(self.answer.as_mut_ptr() as usize), &raw mut zero as usize);
        // SAFETY: the set has a bit for each descriptor below `end`, rounded up
        // to whole words as the kernel does; the timeout lives on this stack
        // (the kernel may write the time left, which is its zero again, into
        // it), and no signal mask is given.
        unsafe { syscall(libc::SYS_pselect6, [self.end, read, write, 0, timeout, 0]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn only_the_ready_ones_count_each_time() {
        let files: Vec<_> =
            (0..70).map(|n| eventfd(u32::from(n == 69), EventfdFlags::CLOEXEC).unwrap()).collect();
        let mut set = Descriptors::new(&files);
        assert_eq!(set.readable_now(), Ok(1));
        assert_eq!(set.readable_now(), Ok(1));
        assert_eq!(Descriptors::new(&files[..69]).readable_now(), Ok(0));
    }

    #[test]
    fn files_can_always_be_written_to() {
        let file = tempfile_like();
        let files: Vec<_> = (0..70).map(|_| file.try_clone().unwrap()).collect();
        assert_eq!(Descriptors::new(&files).writable_now(), Ok(70));
        assert_eq!(Descriptors::new(&files).readable_now(), Ok(70));
    }

    fn tempfile_like() -> std::os::fd::OwnedFd {
        rustix::fs::memfd_create("select", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
    }

    #[test]
    fn no_descriptors_are_never_ready() {
        assert_eq!(Descriptors::new::<std::os::fd::OwnedFd>(&[]).readable_now(), Ok(0));
    }
}
