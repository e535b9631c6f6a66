//! Files mapped for reading and writing, and memfds whose size is sealed: memfd_create(2), fcntl(2)
//! F_ADD_SEALS, mmap(2).

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::ptr::NonNull;

/// A part of a file in memory, unmapped when dropped. Who else has the file can write to it.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Where it begins: at a page.
    pub start: NonNull<u8>,
    /// Bytes.
    pub length: usize,
}

// SAFETY: a mapping is bound to no thread; who accesses the memory answers for that.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes from `offset`, which is that of a page.
    pub fn new(file: impl AsFd, offset: u64, length: usize, flags: MapFlags) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = flags | MapFlags::SHARED;
        // SAFETY: a new mapping at an address the kernel chooses touches no other memory.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, access, flags, file, offset)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` with this length, and no pointer into it outlives its owner.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A new memfd of zeros whose size nobody can change, so that no holder of the
/// descriptor can turn an access of another into SIGBUS.
pub(crate) fn sealed(name: &str, length: usize) -> io::Result<OwnedFd> {
    let descriptor = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&descriptor, length as u64)?;
    rustix::fs::fcntl_add_seals(&descriptor, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(descriptor)
}

/// The length of a file that nobody can make shorter; an error for any other.
pub(crate) fn sealed_length(file: impl AsFd) -> io::Result<usize> {
    let seals = rustix::fs::fcntl_get_seals(&file)?;
    let length = length(file)?;
    if seals.contains(SealFlags::SHRINK) { Ok(length) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// The length of a file; that of a device is 0.
pub(crate) fn length(file: impl AsFd) -> io::Result<usize> {
    Ok(usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0))
}
