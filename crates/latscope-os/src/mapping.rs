//! Parts of the address space that have an owner, and memfds whose size is sealed: mmap(2), munmap(2),
//! memfd_create(2), fcntl(2) F_ADD_SEALS.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Result;
use rustix::mm::{self, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::ptr::{NonNull, null_mut};

/// A mapping, unmapped when dropped. Other holders of a mapped file can write to it.
#[derive(Debug)]
pub(crate) struct MemoryMapping {
    /// Begin of the mapping, at a page boundary.
    pub start: NonNull<u8>,
    pub length: usize,
}

// SAFETY: a mapping is bound to no thread; the code that accesses the memory answers for that.
unsafe impl Send for MemoryMapping {}
// SAFETY: as above.
unsafe impl Sync for MemoryMapping {}

impl MemoryMapping {
    /// Maps `length` bytes of a file from `offset`, which is that of a page, for all holders to read and write.
    pub fn shared(file: impl AsFd, offset: u64, length: usize, flags: MapFlags) -> Result<MemoryMapping> {
        MemoryMapping::file(
            file,
            offset,
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            flags | MapFlags::SHARED,
        )
    }

    /// Maps `length` bytes of a file from `offset`, which is that of a page.
    #[inline]
    pub fn file(
        file: impl AsFd,
        offset: u64,
        length: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> Result<MemoryMapping> {
        assert!(!flags.contains(MapFlags::FIXED));
        // SAFETY: a new mapping at an address the kernel chooses touches no other memory.
        Ok(MemoryMapping::of(unsafe { mm::mmap(null_mut(), length, access, flags, file, offset)? }, length))
    }

    /// Maps private memory of zeros.
    #[inline]
    pub fn anonymous(length: usize, access: ProtFlags, flags: MapFlags) -> Result<MemoryMapping> {
        MemoryMapping::anonymous_near(0, length, access, flags)
    }

    /// Maps private memory of zeros, at `address` if there is room.
    #[inline]
    pub fn anonymous_near(
        address: usize,
        length: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> Result<MemoryMapping> {
        assert!(!flags.contains(MapFlags::FIXED));
        let (flags, hint) = (flags | MapFlags::PRIVATE, std::ptr::without_provenance_mut(address));
        // SAFETY: as in `file`; without MAP_FIXED, the address is a wish.
        Ok(MemoryMapping::of(unsafe { mm::mmap_anonymous(hint, length, access, flags)? }, length))
    }

    #[inline]
    fn of(start: *mut c_void, length: usize) -> MemoryMapping {
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at address 0 unasked");
        MemoryMapping { start, length }
    }

    /// Unmaps all but the `length` bytes from `offset`; both are multiples of the page size.
    pub fn trim(mut self, offset: usize, length: usize) -> Result<MemoryMapping> {
        assert!(offset <= self.length && length <= self.length - offset);
        let after = offset + length..self.length;
        // SAFETY: the pieces lie in the mapping, which is no longer than before them after they are gone, and no
        // pointer into it exists, since it is passed by value.
        unsafe {
            if !after.is_empty() {
                mm::munmap(self.start.as_ptr().add(after.start).cast(), after.len())?;
                self.length = after.start;
            }
            if offset > 0 {
                mm::munmap(self.start.as_ptr().cast(), offset)?;
                self.start = self.start.add(offset);
                self.length = length;
            }
        }
        Ok(self)
    }

    /// Unmaps, as dropping does, and returns the outcome.
    #[inline]
    pub fn unmap(self) -> Result<()> {
        let MemoryMapping { start, length } = *std::mem::ManuallyDrop::new(self);
        // SAFETY: as in `drop`.
        unsafe { mm::munmap(start.as_ptr().cast(), length) }
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped with this length, and no pointer into it outlives its owner. An error would
        // only leave it mapped.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A new memfd of zeros whose size cannot be changed, so that no holder of the
/// descriptor can turn an access of another into SIGBUS.
pub(crate) fn sealed(name: &str, length: usize) -> io::Result<OwnedFd> {
    let descriptor = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&descriptor, length as u64)?;
    rustix::fs::fcntl_add_seals(&descriptor, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(descriptor)
}

/// The length of a file that cannot be made shorter; an error for any other.
pub(crate) fn sealed_length(file: impl AsFd) -> io::Result<usize> {
    let seals = rustix::fs::fcntl_get_seals(&file)?;
    let length = length(file)?;
    if seals.contains(SealFlags::SHRINK) { Ok(length) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// The length of a file; that of a device is 0.
pub(crate) fn length(file: impl AsFd) -> io::Result<usize> {
    Ok(usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0))
}
