//! A window of memory that is shared with another operating system or process,
//! reached by offsets: for [`latscope_rpmsg`].

pub mod ends;

use crate::mapping::{self, MemoryMapping};
use crate::{access, copy, shared_cell};
use latscope_rpmsg::{Fault, RpmsgMemory};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::mm::MapFlags;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// A mapped window; clones refer to the same. Offsets count from its beginning, but of [`map_at`](MemoryWindow::map_at)
/// and [`map_from`](MemoryWindow::map_from).
///
/// Its memory is only accessed by instructions and copies that expect others to write, in any sizes.
#[derive(Debug, Clone)]
pub struct MemoryWindow(Arc<WindowMapping>);

#[derive(Debug)]
struct WindowMapping {
    mapping: MemoryMapping,
    /// The offset at which it begins.
    base: usize,
    descriptor: OwnedFd,
}

impl MemoryWindow {
    /// A window of zeros in fresh memory that cannot be made shorter.
    ///
    /// # Errors
    /// No memory or descriptors left.
    pub fn create_zeroed(size: usize) -> io::Result<MemoryWindow> {
        MemoryWindow::map_file(mapping::sealed("latscope-window", size)?)
    }

    /// The whole of a file: that of [`create_zeroed`](MemoryWindow::create_zeroed) in another
    /// process, one in `/dev/shm`, memory of a device. One that is not sealed
    /// may be made shorter by another holder, which ends this process by
    /// SIGBUS at the next access (mmap(2)).
    ///
    /// # Errors
    /// The file is empty, that of a [`SharedCell`](shared_cell::SharedCell), or cannot be
    /// mapped for reading and writing.
    pub fn map_file(descriptor: OwnedFd) -> io::Result<MemoryWindow> {
        let size = mapping::length(&descriptor)?;
        MemoryWindow::mapping(descriptor, 0, size, MapFlags::POPULATE, 0)
    }

    /// Maps like [`map_file`](MemoryWindow::map_file), with offsets that begin at `base`, the other side's offset of
    /// the first byte.
    ///
    /// # Errors
    /// The errors of [`map_file`](MemoryWindow::map_file); the last offset would overflow.
    pub fn map_from(descriptor: OwnedFd, base: usize) -> io::Result<MemoryWindow> {
        let size = mapping::length(&descriptor)?;
        base.checked_add(size).ok_or(io::ErrorKind::InvalidInput)?;
        MemoryWindow::mapping(descriptor, 0, size, MapFlags::POPULATE, base)
    }

    /// A part of a file whose offsets are physical addresses. Offsets in the
    /// window are those of the file, so that the first is `base`.
    ///
    /// # Errors
    /// The errors of [`map_part`](MemoryWindow::map_part).
    pub fn map_at(descriptor: OwnedFd, base: usize, size: usize) -> io::Result<MemoryWindow> {
        check_within(&descriptor, base as u64, size)?;
        MemoryWindow::device(descriptor, base, size)
    }

    /// Maps like [`map_at`](MemoryWindow::map_at), from a device, which has no size. The caller knows that the part is
    /// memory that is there to be shared.
    pub(crate) fn device(descriptor: OwnedFd, base: usize, size: usize) -> io::Result<MemoryWindow> {
        base.checked_add(size).ok_or(io::ErrorKind::InvalidInput)?;
        MemoryWindow::mapping(descriptor, base as u64, size, MapFlags::POPULATE, base)
    }

    /// A part of a file, such as the memory of a virtual machine, whose pages
    /// are not touched before they are used. Else as [`map_file`](MemoryWindow::map_file).
    ///
    /// # Errors
    /// The errors of [`map_file`](MemoryWindow::map_file); the part is not wholly in the file, or begins within a page.
    pub fn map_part(descriptor: OwnedFd, offset: u64, size: usize) -> io::Result<MemoryWindow> {
        check_within(&descriptor, offset, size)?;
        MemoryWindow::mapping(descriptor, offset, size, MapFlags::empty(), 0)
    }

    fn mapping(
        descriptor: OwnedFd,
        offset: u64,
        size: usize,
        flags: MapFlags,
        base: usize,
    ) -> io::Result<MemoryWindow> {
        shared_cell::refuse(&descriptor)?;
        let mapping = MemoryMapping::shared(&descriptor, offset, size, flags)?;
        Ok(MemoryWindow(Arc::new(WindowMapping { mapping, base, descriptor })))
    }

    /// The file behind it, to hand to another process.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }

    /// Returns the place of an aligned `T` that is wholly in the window.
    #[inline(always)]
    fn pointer_at<T>(&self, at: usize) -> Result<NonNull<T>, Fault> {
        // What is below the base is far above the size then.
        let at = at.wrapping_sub(self.0.base);
        let fits = at.checked_add(size_of::<T>()).is_some_and(|end| end <= self.0.mapping.length);
        if !fits || !at.is_multiple_of(align_of::<T>()) {
            return Err(Fault::OutOfWindow);
        }
        // SAFETY: `at` is within the mapping, which begins on a page, so that an aligned offset is an aligned address.
        Ok(unsafe { self.0.mapping.start.add(at) }.cast())
    }

    /// Returns the place of a range that is wholly in the window.
    #[inline(always)]
    fn range(&self, at: usize, length: usize) -> Result<NonNull<u8>, Fault> {
        let at = at.wrapping_sub(self.0.base);
        let fits = at.checked_add(length).is_some_and(|end| end <= self.0.mapping.length);
        // SAFETY: `at` is within the mapping, or just behind it where the range is empty.
        if fits { Ok(unsafe { self.0.mapping.start.add(at) }) } else { Err(Fault::OutOfWindow) }
    }
}

/// Refuses a part that is not wholly in the file.
fn check_within(file: impl AsFd, offset: u64, size: usize) -> io::Result<()> {
    let length = mapping::length(file)? as u64;
    match offset.checked_add(size as u64) {
        Some(end) if end <= length => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

impl RpmsgMemory for MemoryWindow {
    #[inline]
    fn size(&self) -> usize {
        self.0.base + self.0.mapping.length
    }

    #[inline]
    fn load_u8(&self, at: usize) -> Result<u8, Fault> {
        let place = self.pointer_at(at)?;
        // SAFETY: the place is in the mapping, which lives as long as `self`; all of it is accessed in this way only.
        Ok(unsafe { access::load_u8(place.as_ptr()) })
    }

    #[inline]
    fn store_u8(&self, at: usize, value: u8) -> Result<(), Fault> {
        let place = self.pointer_at(at)?;
        // SAFETY: as above.
        unsafe { access::store_u8(place.as_ptr(), value) };
        Ok(())
    }

    #[inline]
    fn load_u16(&self, at: usize) -> Result<u16, Fault> {
        let place = self.pointer_at(at)?;
        // SAFETY: as above.
        Ok(u16::from_le(unsafe { access::load_u16(place.as_ptr()) }))
    }

    #[inline]
    fn store_u16(&self, at: usize, value: u16) -> Result<(), Fault> {
        let place = self.pointer_at(at)?;
        // SAFETY: as above.
        unsafe { access::store_u16(place.as_ptr(), value.to_le()) };
        Ok(())
    }

    #[inline]
    fn load_index(&self, at: usize) -> Result<u16, Fault> {
        let place = self.pointer_at(at)?;
        // SAFETY: as above.
        Ok(u16::from_le(unsafe { access::load_acquire(place.as_ptr()) }))
    }

    #[inline]
    fn store_index(&self, at: usize, value: u16) -> Result<(), Fault> {
        let place = self.pointer_at(at)?;
        // SAFETY: as above.
        unsafe { access::store_release(place.as_ptr(), value.to_le()) };
        Ok(())
    }

    #[inline]
    fn load_u32(&self, at: usize) -> Result<u32, Fault> {
        let place = self.pointer_at(at)?;
        // SAFETY: as above.
        Ok(u32::from_le(unsafe { access::load_u32(place.as_ptr()) }))
    }

    #[inline]
    fn store_u32(&self, at: usize, value: u32) -> Result<(), Fault> {
        let place = self.pointer_at(at)?;
        // SAFETY: as above.
        unsafe { access::store_u32(place.as_ptr(), value.to_le()) };
        Ok(())
    }

    #[inline]
    fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        let from = self.range(at, into.len())?;
        // SAFETY: the range is in the mapping, and no reference is to its bytes.
        unsafe { copy::out(from, into) };
        Ok(())
    }

    #[inline]
    fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Fault> {
        let to = self.range(at, from.len())?;
        // SAFETY: as in `read`.
        unsafe { copy::copy_in(to, from) };
        Ok(())
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_are_one_memory() {
        let first = MemoryWindow::create_zeroed(4096).unwrap();
        let second = MemoryWindow::map_file(first.descriptor().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!((second.size(), second.load_u32(4092)), (4096, Ok(0)));
        first.store_u32(8, 0x0403_0201).unwrap();
        first.store_index(12, 0x0605).unwrap();
        let mut bytes = [0; 6];
        second.read_bytes(8, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6]);
        second.write_bytes(8, &[9, 8]).unwrap();
        drop(second);
        assert_eq!(
            (first.load_u16(8), first.load_index(12), first.load_u8(9)),
            (Ok(0x0809), Ok(0x0605), Ok(8))
        );
    }

    #[test]
    fn what_is_not_wholly_within_is_refused_and_untouched() {
        let window = MemoryWindow::create_zeroed(4096).unwrap();
        let out = Err(Fault::OutOfWindow);
        assert_eq!((window.load_u8(4096).map(drop), window.load_u16(4095).map(drop)), (out, out));
        assert_eq!((window.load_u32(4094).map(drop), window.load_u32(usize::MAX).map(drop)), (out, out));
        assert_eq!((window.load_u16(1).map(drop), window.store_u32(2, 1)), (out, out));
        assert_eq!((window.write_bytes(4094, &[1; 3]), window.write_bytes(usize::MAX, &[1; 2])), (out, out));
        assert_eq!(window.read_bytes(4094, &mut [0; 3]), out);
        assert_eq!((window.load_u16(4094), window.write_bytes(4096, &[])), (Ok(0), Ok(())));
    }

    /// Payloads of 65,520 bytes, in buffers of 64 KiB, until all indices have wrapped.
    #[test]
    fn long_messages_go_round_until_all_indices_wrapped() {
        use latscope_rpmsg::{RpmsgHost, RpmsgLink, RpmsgWindow as Layout};
        const PAYLOAD: usize = 65_520;
        let layout = Layout::new(16, 65536, 512).unwrap();
        let window = MemoryWindow::create_zeroed(layout.size).unwrap();
        layout.reset(&window).unwrap();
        let mut host: RpmsgHost<_, 16> = layout.host(&window).unwrap();
        let mut remote = layout.remote(&window).unwrap().unwrap();
        let (mut message, mut found) = (vec![7; PAYLOAD], vec![0; PAYLOAD]);
        for turn in 0..66_000_u32 {
            for place in [0, PAYLOAD / 2, PAYLOAD - 4] {
                message[place..place + 4].copy_from_slice(&turn.to_le_bytes());
            }
            remote.send_message(1, 2, &message).unwrap();
            let received = host.receive_message(&mut found).unwrap().unwrap();
            assert_eq!(received.length, PAYLOAD);
            assert!(found == message, "message {turn}");
            host.send_message(2, 1, &turn.to_le_bytes()).unwrap();
            assert_eq!(remote.receive_message(&mut found).unwrap().unwrap().length, 4);
        }
    }

    #[test]
    fn a_part_of_a_file_has_the_offsets_of_the_file() {
        let whole = MemoryWindow::create_zeroed(3 * 4096).unwrap();
        let part =
            MemoryWindow::map_at(whole.descriptor().try_clone_to_owned().unwrap(), 4096, 4096).unwrap();
        part.store_u32(4100, 7).unwrap();
        part.write_bytes(8190, &[8, 9]).unwrap();
        assert_eq!((whole.load_u32(4100), whole.load_u8(8191)), (Ok(7), Ok(9)));
        let out = Err(Fault::OutOfWindow);
        assert_eq!((part.load_u32(4092).map(drop), part.load_u8(8192).map(drop)), (out, out));
        assert_eq!(
            (part.read_bytes(4095, &mut [0; 2]), part.write_bytes(8191, &[1; 2]), part.size()),
            (out, out, 8192)
        );
        let part =
            |base, size| MemoryWindow::map_at(whole.descriptor().try_clone_to_owned().unwrap(), base, size);
        for (base, size) in [(1, 4096), (4096, 2 * 4096 + 1), (usize::MAX - 4095, 8192), (0, usize::MAX)] {
            assert!(part(base, size).is_err(), "{size} bytes at {base}");
        }
        // A device has no size.
        let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/zero").unwrap();
        assert!(MemoryWindow::map_at(device.into(), 0, 4096).is_err());
    }

    #[test]
    fn a_part_is_within_its_file() {
        let whole = MemoryWindow::create_zeroed(3 * 4096).unwrap();
        let part = |offset, size| {
            MemoryWindow::map_part(whole.descriptor().try_clone_to_owned().unwrap(), offset, size)
        };
        let second = part(4096, 4096).unwrap();
        second.store_u32(0, 7).unwrap();
        assert_eq!((whole.load_u32(4096), second.size()), (Ok(7), 4096));
        assert!(second.load_u8(4096).is_err());
        for (offset, size) in [(4096, 0), (4096, 2 * 4096 + 1), (u64::MAX, 4096), (1, 4096), (4 * 4096, 1)] {
            assert!(part(offset, size).is_err(), "{size} bytes at {offset}");
        }
    }

    #[test]
    fn an_empty_file_is_no_window() {
        assert!(MemoryWindow::create_zeroed(0).is_err());
    }
}
