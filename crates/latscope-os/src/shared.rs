//! A memfd of 64-bit counters that a worker writes and the coordinator reads:
//! what was counted survives a crash of the worker.

use crate::mapping::{self, MemoryMapping};
use crate::shared_cell;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags, ftruncate, memfd_create};
use rustix::mm::MapFlags;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// A shared mapping of counters, zero at first. Pages never written take no memory.
#[derive(Debug)]
pub struct SharedCounters {
    mapping: MemoryMapping,
    length: usize,
}

/// Bytes of so many counters.
fn byte_length(length: usize) -> io::Result<usize> {
    Ok(length.checked_mul(size_of::<AtomicU64>()).ok_or(io::ErrorKind::InvalidInput)?)
}

/// Makes a memfd with room for `length` counters (memfd_create(2)). Where a
/// seccomp filter refuses that, a file without a name on a tmpfs serves as well.
///
/// # Errors
/// Out of descriptors or memory, or there is no place for such a file either.
pub fn create_memfd(length: usize) -> io::Result<OwnedFd> {
    let bytes = byte_length(length)?;
    let fd = memfd_create("latscope-histograms", MemfdFlags::CLOEXEC).or_else(|refused| {
        nameless("/dev/shm").or_else(|_| nameless(std::env::temp_dir())).map_err(|_| refused)
    })?;
    ftruncate(&fd, bytes as u64)?;
    Ok(fd)
}

/// Opens a file that no directory lists and that is deleted when it is closed (open(2), `O_TMPFILE`).
fn nameless(directory: impl AsRef<Path>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(directory.as_ref(), flags, Mode::RUSR | Mode::WUSR)
}

impl SharedCounters {
    /// Maps the first `length` counters of a memfd from [`create_memfd`].
    ///
    /// # Errors
    /// The memfd is shorter than that, or memory is exhausted.
    pub fn map_memfd(fd: impl AsFd, length: usize) -> io::Result<SharedCounters> {
        shared_cell::refuse(&fd)?;
        if mapping::length(&fd)? < byte_length(length)? {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the shared counters are too short"));
        }
        Ok(SharedCounters {
            mapping: MemoryMapping::shared(fd, 0, byte_length(length.max(1))?, MapFlags::empty())?,
            length,
        })
    }

    /// Returns the counters as a slice.
    pub fn as_slice(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `length` aligned 64-bit words, lives as long as `self`, and is only used
        // atomically.
        unsafe { std::slice::from_raw_parts(self.mapping.start.cast().as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn two_mappings_see_the_same_counters() {
        let fd = create_memfd(1000).unwrap();
        let (a, b) =
            (SharedCounters::map_memfd(&fd, 1000).unwrap(), SharedCounters::map_memfd(&fd, 1000).unwrap());
        a.as_slice()[999].store(7, Relaxed);
        assert_eq!(b.as_slice()[999].load(Relaxed), 7);
        assert!(SharedCounters::map_memfd(&fd, 1001).is_err());
        // Sizes that wrap around to that of the file, or to less.
        assert!(
            SharedCounters::map_memfd(&fd, usize::MAX / 8 + 1001).is_err()
                && SharedCounters::map_memfd(&fd, usize::MAX).is_err()
        );
        assert!(create_memfd(usize::MAX / 8 + 2).is_err());
    }

    #[test]
    fn a_nameless_file_can_be_shared_and_leaves_nothing() {
        let directory = std::env::temp_dir().join(format!("latscope-nameless-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let fd = nameless(&directory).unwrap();
        ftruncate(&fd, 8).unwrap();
        let counters = SharedCounters::map_memfd(&fd, 1).unwrap();
        counters.as_slice()[0].store(7, Relaxed);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        std::fs::remove_dir(&directory).unwrap();
    }
}
