//! Value in memory that several processes may map: each value has its own memfd.
//!
//! The descriptor is the handle: pass it to another process of the same program and
//! [`map_existing`](SharedCell::map_existing) it there. A stamp behind the value identifies its type, and nothing else
//! of this crate maps such a file. A program that writes there by other means (pwrite(2), a mapping made without this
//! crate) is like a program that writes /proc/self/mem: no type can protect itself from it.

use crate::mapping::{self, MemoryMapping};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{pread, pwrite};
use rustix::mm::MapFlags;
use std::any::TypeId;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Set of the threads that wait and wake. It decides between the private and the shared form of a futex (futex(2)
/// FUTEX_PRIVATE_FLAG, pthread_mutexattr_setpshared(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingScope {
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
    /// Makes zeroed memory ready for use.
    ///
    /// # Errors
    /// What the system reports for the primitives inside.
    ///
    /// # Safety
    /// Called once, by the creator, before anything else can use the memory.
    unsafe fn initialise(&self, scope: SharingScope) -> io::Result<()>;
}

// SAFETY: an atomic integer accepts every bit pattern and any concurrent use.
unsafe impl Shareable for AtomicU32 {
    unsafe fn initialise(&self, _: SharingScope) -> io::Result<()> {
        Ok(())
    }
}

// SAFETY: as for AtomicU32.
unsafe impl Shareable for AtomicU64 {
    unsafe fn initialise(&self, _: SharingScope) -> io::Result<()> {
        Ok(())
    }
}

// SAFETY: an array adds nothing to its elements.
unsafe impl<T: Shareable, const N: usize> Shareable for [T; N] {
    unsafe fn initialise(&self, scope: SharingScope) -> io::Result<()> {
        // SAFETY: as the caller vouches.
        self.iter().try_for_each(|each| unsafe { each.initialise(scope) })
    }
}

/// Direction of a link: the primitive that wakes the receiver, and the end of the sender. It has its own cache lines
/// (two of them: adjacent lines are fetched in pairs).
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Lane<T> {
    /// The primitive that carries the tokens.
    pub signal: T,
    /// Zero while the sender exists; then the number of tokens it gave, including the token that signals its end.
    pub ended: AtomicU64,
}

// SAFETY: both fields are Shareable and repr(C) fixes where they are.
unsafe impl<T: Shareable> Shareable for Lane<T> {
    unsafe fn initialise(&self, scope: SharingScope) -> io::Result<()> {
        // SAFETY: as the caller vouches.
        unsafe { self.signal.initialise(scope) }
    }
}

/// Last bytes of a file that holds a value.
const MARK: [u8; 8] = *b"latscell";

/// Returns the bytes behind a value in its file: a number for its type, and the mark. Types have the same number in all
/// processes of a program.
fn stamp<T: 'static>() -> [u8; 16] {
    let mut hasher = DefaultHasher::new();
    TypeId::of::<T>().hash(&mut hasher);
    let mut stamp = [0; 16];
    stamp[..8].copy_from_slice(&hasher.finish().to_ne_bytes());
    stamp[8..].copy_from_slice(&MARK);
    stamp
}

/// Refuses a file that holds a [`SharedCell`], on behalf of all functions whose callers may write any bytes.
pub(crate) fn refuse(file: impl AsFd) -> io::Result<()> {
    // All cells are sealed. A device is not, and is not to be read for this.
    let Ok(length) = mapping::sealed_length(&file) else { return Ok(()) };
    let mut end = MARK.map(|_| 0);
    pread(&file, &mut end, length.saturating_sub(MARK.len()) as u64)?;
    if end != MARK {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "the memory of a shared cell"))
}

#[derive(Debug)]
struct SharedCellMemory<T> {
    mapping: MemoryMapping,
    descriptor: OwnedFd,
    value: PhantomData<T>,
}

/// A handle on a shared value; clones refer to the same memory.
#[derive(Debug)]
pub struct SharedCell<T: Shareable>(Arc<SharedCellMemory<T>>);

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
    pub fn create_zeroed(scope: SharingScope) -> io::Result<Self> {
        let descriptor = mapping::sealed("latscope-cell", size_of::<T>() + stamp::<T>().len())?;
        pwrite(&descriptor, &stamp::<T>(), size_of::<T>() as u64)?;
        let cell = map_cell::<T>(descriptor)?;
        // SAFETY: nothing else has the descriptor so far, nor the cell.
        unsafe { cell.initialise(scope)? };
        Ok(cell)
    }

    /// Maps the value another holder has made.
    ///
    /// # Errors
    /// The descriptor is not a cell of this type, or mapping fails.
    pub fn map_existing(descriptor: OwnedFd) -> io::Result<Self> {
        let mut found = [0; 16];
        let length = mapping::sealed_length(&descriptor)?;
        pread(&descriptor, &mut found, size_of::<T>() as u64)?;
        if length != size_of::<T>() + found.len() || found != stamp::<T>() {
            let name = std::any::type_name::<T>();
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a shared cell of {name}")));
        }
        map_cell(descriptor)
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
        // and lives as long as self; it was made for a T, and Shareable makes
        // every content a valid one.
        unsafe { self.0.mapping.start.cast().as_ref() }
    }
}

fn map_cell<T: Shareable>(descriptor: OwnedFd) -> io::Result<SharedCell<T>> {
    assert!(align_of::<T>() <= 4096, "a mapping is only page-aligned");
    let mapping = MemoryMapping::shared(&descriptor, 0, size_of::<T>(), MapFlags::POPULATE)?;
    Ok(SharedCell(Arc::new(SharedCellMemory { mapping, descriptor, value: PhantomData })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::SharedMailbox;
    use crate::monitor::Mutex;
    use crate::page;
    use crate::ring::{UringLayout, UringMessageRing};
    use crate::shared::SharedCounters;
    use crate::window::MemoryWindow;
    use rustix::fs::MemfdFlags;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_second_mapping_sees_the_same_value() {
        let first = SharedCell::<[AtomicU64; 3]>::create_zeroed(SharingScope::Processes).unwrap();
        let second =
            SharedCell::<[AtomicU64; 3]>::map_existing(first.descriptor().try_clone_to_owned().unwrap())
                .unwrap();
        first[2].store(7, Relaxed);
        assert_eq!(second[2].load(Relaxed), 7);
        drop(first);
        assert_eq!(second[2].load(Relaxed), 7);
    }

    #[test]
    fn another_type_or_an_unsealed_file_is_refused() {
        let cell = SharedCell::<Mutex>::create_zeroed(SharingScope::Threads).unwrap();
        let descriptor = || cell.descriptor().try_clone_to_owned().unwrap();
        assert!(SharedCell::<Mutex>::map_existing(descriptor()).is_ok());
        // The size is the same, the type is not.
        const WORDS: usize = size_of::<Mutex>() / 8;
        assert_eq!(size_of::<[AtomicU64; WORDS]>(), size_of::<Mutex>());
        assert!(SharedCell::<[AtomicU64; WORDS]>::map_existing(descriptor()).is_err());
        assert!(SharedCell::<AtomicU32>::map_existing(descriptor()).is_err());
        let plain = SharedCell::<[AtomicU64; WORDS]>::create_zeroed(SharingScope::Threads).unwrap();
        assert!(SharedCell::<Mutex>::map_existing(plain.descriptor().try_clone_to_owned().unwrap()).is_err());
        let loose = rustix::fs::memfd_create("loose", MemfdFlags::ALLOW_SEALING).unwrap();
        pwrite(&loose, &[&[0; 8], &stamp::<AtomicU64>()[..]].concat(), 0).unwrap();
        assert!(SharedCell::<AtomicU64>::map_existing(loose).is_err());
    }

    #[test]
    fn nothing_else_maps_a_cell_for_writing() {
        let cell = SharedCell::<[AtomicU64; 14]>::create_zeroed(SharingScope::Threads).unwrap();
        let descriptor = || cell.descriptor().try_clone_to_owned().unwrap();
        assert_eq!(mapping::length(descriptor()).unwrap(), 128, "that of a mailbox");
        assert!(SharedMailbox::map_existing(descriptor(), 64).is_err());
        assert!(SharedCounters::map_memfd(descriptor(), 1).is_err());
        assert!(
            MemoryWindow::map_file(descriptor()).is_err()
                && MemoryWindow::map_part(descriptor(), 0, 8).is_err()
        );
        let layout = UringLayout::from_words([0, 4, 8, 12, 16]).unwrap();
        assert!(UringMessageRing::map_ring(descriptor(), layout, descriptor()).is_err());
        assert!(
            page::PageMapping::shared(descriptor(), 8).unwrap().protect(page::Access::ReadWrite).is_err()
        );
    }

    #[test]
    fn lanes_do_not_share_lines() {
        assert_eq!(align_of::<Lane<AtomicU32>>(), 128);
        assert_eq!(size_of::<[Lane<AtomicU32>; 2]>(), 256);
    }
}
