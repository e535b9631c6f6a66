//! Mappings for measurements of page faults and protection changes: mmap(2), munmap(2), mprotect(2), madvise(2),
//! mincore(2).

use crate::mapping;
use crate::syscall::syscall;
use rustix::io::{Errno, Result};
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Size of a huge page, bytes: the range that the second level of the page table maps with 4 KiB pages.
pub const HUGE_PAGE: usize = 2 << 20;

/// Size of a page of this kernel, bytes.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// The shortest cache line there is, bytes.
const LINE: usize = 32;

/// Takes the line of an address out of all caches: CLFLUSH (SSE2, on every
/// x86-64), or DC CIVAC, which Linux lets programs use on arm64.
///
/// # Safety
/// `address` is mapped and readable.
#[inline(always)]
pub(crate) unsafe fn flush_line(address: *const u8) -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as promised by the caller; every x86-64 has the instruction.
    unsafe {
        core::arch::x86_64::_mm_clflush(address);
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as promised by the caller; changes no memory and no register.
    unsafe {
        core::arch::asm!("dc civac, {}", in(reg) address, options(nostack, preserves_flags));
    }
    let _ = address;
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

/// Accesses that the program may make to the pages of a [`PageMapping`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Permits loads, but no stores.
    Read,
    /// Permits loads and stores.
    ReadWrite,
}

/// Memory or file behind the pages of a [`Mapping`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backing {
    Anonymous,
    /// A file, of which stores make private copies.
    Private,
    /// A file that others may write to meanwhile.
    Shared,
}

/// A stretch of this process's address space, unmapped when dropped.
///
/// A mapped file must not be made shorter meanwhile: touching a page beyond
/// its end raises SIGBUS.
#[derive(Debug)]
pub struct PageMapping {
    memory: mapping::MemoryMapping,
    access: Access,
    backing: Backing,
}

impl PageMapping {
    /// Maps `bytes` of private anonymous memory, not yet backed by pages.
    ///
    /// # Errors
    /// ENOMEM, EAGAIN (a limit on locked memory), EINVAL (`bytes` is 0).
    #[inline]
    pub fn anonymous(bytes: usize) -> Result<PageMapping> {
        let memory = mapping::MemoryMapping::anonymous(
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::NORESERVE,
        )?;
        Ok(PageMapping { memory, access: Access::ReadWrite, backing: Backing::Anonymous })
    }

    /// Maps private anonymous memory that starts on a boundary of
    /// [`HUGE_PAGE`], so that huge pages fit in.
    ///
    /// # Errors
    /// The errors of [`anonymous`](Self::anonymous); EINVAL also where `bytes` are no whole pages.
    pub fn huge_aligned(bytes: usize) -> Result<PageMapping> {
        if bytes == 0 || !bytes.is_multiple_of(page_size()) {
            return Err(Errno::INVAL);
        }
        let wide = PageMapping::anonymous(bytes.checked_add(HUGE_PAGE).ok_or(Errno::NOMEM)?)?;
        let before = wide.memory.start.as_ptr().align_offset(HUGE_PAGE);
        Ok(PageMapping { memory: wide.memory.trim(before, bytes)?, ..wide })
    }

    /// Maps the first `bytes` of a file for reading, shared with the page
    /// cache.
    ///
    /// # Errors
    /// ENODEV (the file system cannot), EACCES, ENOMEM.
    #[inline]
    pub fn shared(file: impl AsFd, bytes: usize) -> Result<PageMapping> {
        let memory = mapping::MemoryMapping::file(file, 0, bytes, ProtFlags::READ, MapFlags::SHARED)?;
        Ok(PageMapping { memory, access: Access::Read, backing: Backing::Shared })
    }

    /// Maps the first `bytes` of a file for reading and writing, shared with the page cache.
    ///
    /// # Errors
    /// The errors of [`shared`](Self::shared).
    #[inline]
    pub fn shared_writable(file: impl AsFd, bytes: usize) -> Result<PageMapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let memory = mapping::MemoryMapping::file(file, 0, bytes, access, MapFlags::SHARED)?;
        Ok(PageMapping { memory, access: Access::ReadWrite, backing: Backing::Shared })
    }

    /// Maps the first `bytes` of a file copy-on-write: a store makes a private
    /// copy of its page.
    ///
    /// # Errors
    /// The errors of [`shared`](Self::shared).
    pub fn private(file: impl AsFd, bytes: usize) -> Result<PageMapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let memory = mapping::MemoryMapping::file(file, 0, bytes, access, MapFlags::PRIVATE)?;
        Ok(PageMapping { memory, access: Access::ReadWrite, backing: Backing::Private })
    }

    /// Maps the first `pages` pages of a file for reading, each page by a
    /// mapping of its own, in reverse order so that the kernel cannot join
    /// them. A fault is then served for one page only: the kernel's
    /// fault-around (16 pages at once) stays within a mapping.
    ///
    /// # Errors
    /// The errors of [`shared`](Self::shared); ENOMEM also when there are too many mappings (`vm.max_map_count`).
    pub fn page_by_page(file: impl AsFd, pages: usize) -> Result<PageMapping> {
        let page = page_size();
        let bytes = pages.checked_mul(page).ok_or(Errno::NOMEM)?;
        let whole =
            PageMapping { access: Access::Read, backing: Backing::Shared, ..PageMapping::anonymous(bytes)? };
        for slot in 0..pages {
            let offset = ((pages - 1 - slot) * page) as u64;
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            // SAFETY: replaces a page of `whole`, which has no user yet.
            unsafe {
                let address = whole.memory.start.as_ptr().add(slot * page).cast();
                mm::mmap(address, page, ProtFlags::READ, flags, file.as_fd(), offset)?;
            }
        }
        Ok(whole)
    }

    /// Returns start and length of memory that can be written.
    ///
    /// # Panics
    /// If it cannot.
    pub(crate) fn writable_range(&mut self) -> [usize; 2] {
        assert!(self.access == Access::ReadWrite);
        [self.memory.start.as_ptr() as usize, self.memory.length]
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.memory.start.as_ptr()
    }

    /// Returns the length in bytes.
    #[allow(clippy::len_without_is_empty)] // a mapping is never empty
    pub fn len(&self) -> usize {
        self.memory.length
    }

    /// Stores one byte at `offset`: faults if the page is not there yet.
    ///
    /// # Panics
    /// If the offset is outside or the mapping is for reading only.
    #[inline(always)]
    pub fn write_byte(&mut self, offset: usize) {
        assert!(offset < self.memory.length && self.access == Access::ReadWrite);
        // SAFETY: inside a writable mapping that `self` borrows exclusively.
        unsafe { AtomicU8::from_ptr(self.memory.start.as_ptr().add(offset)) }.store(1, Relaxed);
    }

    /// Loads the byte at `offset`.
    ///
    /// # Panics
    /// If the offset is outside.
    #[inline(always)]
    pub fn read_byte(&self, offset: usize) -> u8 {
        assert!(offset < self.memory.length);
        // SAFETY: inside a readable mapping; atomic, because a shared file
        // may be written by others.
        unsafe { AtomicU8::from_ptr(self.memory.start.as_ptr().add(offset)) }.load(Relaxed)
    }

    /// Loads one word of every `step` bytes and returns their sum.
    ///
    /// # Panics
    /// If `step` is no multiple of 8.
    #[inline]
    pub fn sum_words(&self, step: usize) -> u64 {
        assert!(step > 0 && step.is_multiple_of(8));
        let mut sum = 0u64;
        for offset in (0..self.memory.length.saturating_sub(7)).step_by(step) {
            // SAFETY: a whole aligned word inside a readable mapping, which
            // starts on a page.
            let word = unsafe { AtomicU64::from_ptr(self.memory.start.as_ptr().add(offset).cast()) };
            sum = sum.wrapping_add(word.load(Relaxed));
        }
        sum
    }

    /// Stores one byte in each page, so that all of them are there.
    #[inline]
    pub fn populate(&mut self) {
        for offset in (0..self.memory.length).step_by(page_size()) {
            self.write_byte(offset);
        }
    }

    /// Writes `bytes` from `offset` back to memory and takes them out of all caches, of every CPU. Returns true if this
    /// architecture lets a program do so. All pages of the range must be there: an absent page would fault.
    ///
    /// # Panics
    /// If the range leaves the mapping.
    #[inline]
    pub fn flush(&self, offset: usize, bytes: usize) -> bool {
        assert!(offset <= self.memory.length && bytes <= self.memory.length - offset);
        (0..bytes).step_by(LINE).all(|at| {
            // SAFETY: an address inside of the mapping, which is readable.
            unsafe { flush_line(self.memory.start.as_ptr().add(offset + at)) }
        })
    }

    /// The memory as a slice of bytes, aligned to a page.
    ///
    /// # Panics
    /// If it is not writable anonymous memory: others must not change what a slice shows.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        assert!(self.backing == Backing::Anonymous && self.access == Access::ReadWrite);
        // SAFETY: private memory of this length, zeroed by the kernel and
        // borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.as_ptr(), self.memory.length) }
    }

    /// Changes the permitted accesses to all pages: mprotect(2).
    ///
    /// # Errors
    /// ENOMEM (too many mappings), EACCES (a [shared](Self::shared) file is for reading only).
    #[inline]
    pub fn protect(&mut self, access: Access) -> Result<()> {
        if self.backing == Backing::Shared && access == Access::ReadWrite {
            return Err(Errno::ACCESS);
        }
        let flags = match access {
            Access::Read => MprotectFlags::READ,
            Access::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
        };
        // SAFETY: `self` is borrowed exclusively, so no slice of it is alive.
        unsafe { mm::mprotect(self.memory.start.as_ptr().cast(), self.memory.length, flags)? };
        self.access = access;
        Ok(())
    }

    /// Asks for huge pages (MADV_HUGEPAGE). [`resident`](Self::resident) shows if the kernel gave them.
    ///
    /// # Errors
    /// EINVAL: the kernel has no transparent huge pages.
    pub fn want_huge_pages(&self) -> Result<()> {
        self.advise(Advice::LinuxHugepage)
    }

    /// Asks for pages of the normal size only (MADV_NOHUGEPAGE).
    ///
    /// # Errors
    /// EINVAL: the kernel has no transparent huge pages, and then there is
    /// nothing to forbid.
    pub fn refuse_huge_pages(&self) -> Result<()> {
        self.advise(Advice::LinuxNoHugepage)
    }

    /// Gives the pages back (MADV_DONTNEED): the next touch faults, and finds
    /// zeroes, or in a mapping of a file the file.
    ///
    /// # Errors
    /// EINVAL: the pages are locked.
    pub fn discard(&mut self) -> Result<()> {
        self.advise(Advice::LinuxDontNeed)
    }

    /// Gives one page back, as [`discard`](Self::discard) does all.
    ///
    /// # Errors
    /// EINVAL: `offset` is not that of a page, or it is locked.
    ///
    /// # Panics
    /// The page is not in the mapping.
    pub fn discard_page(&mut self, offset: usize) -> Result<()> {
        let page = page_size();
        assert!(
            offset.checked_add(page).is_some_and(|end| end <= self.memory.length),
            "page outside of the mapping"
        );
        // SAFETY: the page lies in the mapping, which is borrowed exclusively; its contents
        // become what mmap gives.
        unsafe { mm::madvise(self.memory.start.as_ptr().add(offset).cast(), page, Advice::LinuxDontNeed) }
    }

    fn advise(&self, advice: Advice) -> Result<()> {
        // SAFETY: the advices above leave the contents alone or (DONTNEED,
        // with `self` borrowed exclusively) replace them by what mmap gives.
        unsafe { mm::madvise(self.memory.start.as_ptr().cast(), self.memory.length, advice) }
    }

    /// Returns how many pages of `bytes` from `offset` are in memory: mincore(2). For a mapped file that is the page
    /// cache, for anonymous memory this mapping.
    ///
    /// # Errors
    /// EINVAL (`offset` is not that of a page), ENOMEM, EAGAIN (the kernel is
    /// out of memory).
    ///
    /// # Panics
    /// If the range leaves the mapping.
    pub fn resident(&self, offset: usize, bytes: usize) -> Result<usize> {
        assert!(offset <= self.memory.length && bytes <= self.memory.length - offset);
        let mut flags = vec![0u8; bytes.div_ceil(page_size())];
        let start = self.memory.start.as_ptr() as usize + offset;
        // SAFETY: the kernel writes one byte for each page of the range, and
        // `flags` has as many.
        unsafe { syscall(libc::SYS_mincore, [start, bytes, flags.as_mut_ptr() as usize, 0, 0, 0])? };
        Ok(flags.iter().filter(|flag| **flag & 1 == 1).count())
    }

    /// Unmaps: munmap(2). The same as dropping, with the answer.
    ///
    /// # Errors
    /// ENOMEM: too many mappings.
    #[inline]
    pub fn unmap(self) -> Result<()> {
        self.memory.unmap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    fn file(pages: usize) -> std::os::fd::OwnedFd {
        let file = memfd_create("page-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, (pages * page_size()) as u64).unwrap();
        for page in 0..pages {
            rustix::io::pwrite(&file, &[page as u8], (page * page_size()) as u64).unwrap();
        }
        file
    }

    #[test]
    fn anonymous_pages_come_with_the_first_touch_and_go_with_discard() {
        let mut mapping = PageMapping::anonymous(8 * page_size()).unwrap();
        mapping.refuse_huge_pages().unwrap_or(());
        mapping.write_byte(0);
        mapping.write_byte(5 * page_size());
        assert_eq!(mapping.resident(0, 8 * page_size()), Ok(2));
        assert_eq!(mapping.read_byte(5 * page_size()), 1);
        mapping.discard().unwrap();
        assert_eq!((mapping.resident(0, 8 * page_size()), mapping.read_byte(0)), (Ok(0), 0));
    }

    #[test]
    fn huge_alignment_holds_and_all_of_it_is_usable() {
        let mut mapping = PageMapping::huge_aligned(2 * HUGE_PAGE).unwrap();
        assert_eq!(mapping.as_ptr() as usize % HUGE_PAGE, 0);
        mapping.write_byte(0);
        mapping.write_byte(2 * HUGE_PAGE - 1);
        assert_eq!(mapping.as_mut_slice().iter().map(|byte| usize::from(*byte)).sum::<usize>(), 2);
    }

    #[test]
    fn sizes_that_wrap_around_or_are_no_pages_are_refused() {
        let last = usize::MAX - page_size() + 1;
        for (bytes, error) in [(0, Errno::INVAL), (usize::MAX, Errno::INVAL), (last, Errno::NOMEM)] {
            assert_eq!(PageMapping::huge_aligned(bytes).unwrap_err(), error, "{bytes}");
        }
        assert_eq!(PageMapping::huge_aligned(usize::MAX - HUGE_PAGE + 1).unwrap_err(), Errno::NOMEM);
        let around = usize::MAX / page_size() + 2;
        assert_eq!(PageMapping::page_by_page(file(1), around).unwrap_err(), Errno::NOMEM);
    }

    #[test]
    fn a_private_mapping_leaves_the_file_alone() {
        let file = file(2);
        let mut mapping = PageMapping::private(&file, 2 * page_size()).unwrap();
        mapping.write_byte(0);
        let mut byte = [9];
        rustix::io::pread(&file, &mut byte, 0).unwrap();
        assert_eq!((byte, mapping.read_byte(0)), ([0], 1));
    }

    #[test]
    fn a_page_that_is_given_back_faults_again_and_its_neighbour_does_not() {
        let mut mapping = PageMapping::page_by_page(file(2), 2).unwrap();
        let look = |mapping: &PageMapping| [0, 1].map(|page| mapping.read_byte(page * page_size()));
        assert_eq!(look(&mapping), [1, 0]);
        mapping.discard_page(page_size()).unwrap();
        let before = crate::usage::thread_counts().minor_faults;
        assert_eq!(look(&mapping), [1, 0]);
        assert_eq!(crate::usage::thread_counts().minor_faults - before, 1);
        assert!(mapping.discard_page(1).is_err());
    }

    #[test]
    fn page_by_page_shows_the_file_in_reverse() {
        let mapping = PageMapping::page_by_page(file(4), 4).unwrap();
        let seen: Vec<u8> = (0..4).map(|page| mapping.read_byte(page * page_size())).collect();
        assert_eq!(seen, [3, 2, 1, 0]);
    }

    #[test]
    #[should_panic(expected = "ReadWrite")]
    fn a_store_to_a_read_only_mapping_is_refused_before_it_faults() {
        let mut mapping = PageMapping::anonymous(page_size()).unwrap();
        mapping.protect(Access::Read).unwrap();
        mapping.write_byte(0);
    }

    #[test]
    fn flushed_memory_keeps_its_contents() {
        let mut mapping = PageMapping::anonymous(2 * page_size()).unwrap();
        mapping.as_mut_slice().fill(7);
        let able = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        assert_eq!(mapping.flush(page_size(), page_size()), able);
        assert!(mapping.as_mut_slice().iter().all(|byte| *byte == 7));
    }

    #[test]
    fn the_sum_takes_one_word_a_step() {
        let mut mapping = PageMapping::anonymous(page_size()).unwrap();
        mapping.as_mut_slice().fill(1);
        assert_eq!(mapping.sum_words(64), (page_size() as u64 / 64) * 0x0101_0101_0101_0101);
    }
}
