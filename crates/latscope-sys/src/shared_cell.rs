//! A value in memory that several processes may map: a memfd of its own.
//!
//! The descriptor is the handle: pass it to another process and [`open`](SharedCell::open)
//! it there. The size is sealed, so that no holder of the descriptor can turn
//! an access of another into SIGBUS.
//!
//! Sources: memfd_create(2), fcntl(2) F_ADD_SEALS, mmap(2).

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Who waits and wakes: decides between the private and the shared form of a
/// futex (futex(2) FUTEX_PRIVATE_FLAG, pthread_mutexattr_setpshared(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Threads of one process.
    Threads,
    /// Threads of several processes that map the same memory.
    Processes,
}

/// A type that may live in memory shared with other processes.
///
/// # Safety
/// The type has no invalid bit pattern, holds no address that is meaningful in
/// one process only, and every access through `&self` is sound however other
/// holders use it at the same time. Zeroed memory is a value of it.
pub unsafe trait Shareable: Send + Sync + Sized + 'static {
    /// Makes zeroed memory ready for use; called once, by the creator, before
    /// anybody else can have the memory.
    ///
    /// # Errors
    /// What the system reports for the primitives inside.
    fn initialise(&self, scope: Scope) -> io::Result<()>;
}

// SAFETY: an atomic integer accepts every bit pattern and any concurrent use.
unsafe impl Shareable for AtomicU32 {
    fn initialise(&self, _: Scope) -> io::Result<()> {
        Ok(())
    }
}

// SAFETY: as for AtomicU32.
unsafe impl Shareable for AtomicU64 {
    fn initialise(&self, _: Scope) -> io::Result<()> {
        Ok(())
    }
}

// SAFETY: an array adds nothing to its elements.
unsafe impl<T: Shareable, const N: usize> Shareable for [T; N] {
    fn initialise(&self, scope: Scope) -> io::Result<()> {
        self.iter().try_for_each(|each| each.initialise(scope))
    }
}

/// One direction of a link: what wakes the receiver, and when the sender ended.
/// On cache lines of its own (two of them: adjacent lines are fetched in pairs).
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Lane<T> {
    /// The primitive that carries the tokens.
    pub signal: T,
    /// 0 while the sender is there; then the number of tokens it gave, the one
    /// that told of its end included.
    pub ended: AtomicU64,
}

// SAFETY: both fields are Shareable and repr(C) fixes where they are.
unsafe impl<T: Shareable> Shareable for Lane<T> {
    fn initialise(&self, scope: Scope) -> io::Result<()> {
        self.signal.initialise(scope)
    }
}

#[derive(Debug)]
struct Mapping<T> {
    address: NonNull<T>,
    descriptor: OwnedFd,
}

// SAFETY: the mapping is only ever used through `&T`, and T: Shareable is Sync.
unsafe impl<T: Shareable> Send for Mapping<T> {}
// SAFETY: as above.
unsafe impl<T: Shareable> Sync for Mapping<T> {}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map` with this size, and nobody
        // borrows it any more. It cannot fail for a range that is mapped.
        let _ = unsafe { rustix::mm::munmap(self.address.as_ptr().cast(), size_of::<T>()) };
    }
}

/// A handle on a shared value; clones refer to the same memory.
#[derive(Debug)]
pub struct SharedCell<T: Shareable>(Arc<Mapping<T>>);

impl<T: Shareable> Clone for SharedCell<T> {
    fn clone(&self) -> Self {
        SharedCell(Arc::clone(&self.0))
    }
}

impl<T: Shareable> SharedCell<T> {
    /// Makes a new value, in fresh zeroed pages of its own.
    ///
    /// # Errors
    /// No memory or descriptors left, or what `T` needs is missing.
    pub fn create(scope: Scope) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create("latscope-cell", flags)?;
        rustix::fs::ftruncate(&descriptor, size_of::<T>() as u64)?;
        rustix::fs::fcntl_add_seals(&descriptor, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let cell = SharedCell(Arc::new(map::<T>(descriptor)?));
        cell.initialise(scope)?;
        Ok(cell)
    }

    /// Maps the value another holder has made.
    ///
    /// # Errors
    /// The descriptor is not a cell of this type's size, or mapping fails.
    pub fn open(descriptor: OwnedFd) -> io::Result<Self> {
        let size = rustix::fs::fstat(&descriptor)?.st_size;
        let sealed = rustix::fs::fcntl_get_seals(&descriptor)?.contains(SealFlags::SHRINK);
        if !sealed || size != size_of::<T>() as i64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("not a shared cell of {} bytes (it has {size})", size_of::<T>()),
            ));
        }
        Ok(SharedCell(Arc::new(map(descriptor)?)))
    }

    /// The memfd behind it, to hand to another process.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }
}

impl<T: Shareable> Deref for SharedCell<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping is at least size_of::<T>() bytes, page-aligned,
        // and lives as long as self; Shareable makes every content a valid T.
        unsafe { self.0.address.as_ref() }
    }
}

fn map<T: Shareable>(descriptor: OwnedFd) -> io::Result<Mapping<T>> {
    assert!(align_of::<T>() <= 4096, "a mapping is only page-aligned");
    // SAFETY: a new mapping at an address the kernel chooses touches no other
    // memory; the file has the size and cannot shrink (sealed).
    let address = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            size_of::<T>(),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::POPULATE,
            &descriptor,
            0,
        )?
    };
    let address = NonNull::new(address.cast()).expect("mmap never returns address 0 without MAP_FIXED");
    Ok(Mapping { address, descriptor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_second_mapping_sees_the_same_value() {
        let first = SharedCell::<[AtomicU64; 3]>::create(Scope::Processes).unwrap();
        let second =
            SharedCell::<[AtomicU64; 3]>::open(first.descriptor().try_clone_to_owned().unwrap()).unwrap();
        first[2].store(7, Relaxed);
        assert_eq!(second[2].load(Relaxed), 7);
        drop(first);
        assert_eq!(second[2].load(Relaxed), 7);
    }

    #[test]
    fn another_size_or_an_unsealed_file_is_refused() {
        let cell = SharedCell::<AtomicU64>::create(Scope::Threads).unwrap();
        let descriptor = cell.descriptor().try_clone_to_owned().unwrap();
        assert!(SharedCell::<AtomicU32>::open(descriptor).is_err());
        let loose = rustix::fs::memfd_create("loose", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&loose, 8).unwrap();
        assert!(SharedCell::<AtomicU64>::open(loose).is_err());
    }

    #[test]
    fn lanes_do_not_share_lines() {
        assert_eq!(align_of::<Lane<AtomicU32>>(), 128);
        assert_eq!(size_of::<[Lane<AtomicU32>; 2]>(), 256);
    }
}
