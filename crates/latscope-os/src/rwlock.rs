//! The pthread read-write lock (pthread_rwlock_rdlock(3p), pthread_rwlock_wrlock(3p)), as
//! applications use it: with default attributes, so that readers go first.

use crate::monitor::initialise;
use crate::shared_cell::{Shareable, SharingScope};
use crate::syscall::check_number;
use std::cell::UnsafeCell;
use std::io;

/// A default pthread read-write lock.
#[derive(Debug)]
#[repr(transparent)]
pub struct RwLock(UnsafeCell<libc::pthread_rwlock_t>);

// SAFETY: a lock is made to be used by several threads.
unsafe impl Sync for RwLock {}
// SAFETY: it is bound to no thread while unlocked, and moving needs ownership.
unsafe impl Send for RwLock {}

// SAFETY: a read-write lock holds futex words, counters, an owner and flags, and no address.
unsafe impl Shareable for RwLock {
    unsafe fn initialise(&self, scope: SharingScope) -> io::Result<()> {
        // SAFETY: the lock is valid, and the caller is its only holder.
        unsafe {
            initialise!(
                self.0,
                scope,
                pthread_rwlockattr_init,
                pthread_rwlockattr_setpshared,
                pthread_rwlock_init,
                pthread_rwlockattr_destroy
            )
        }
    }
}

impl RwLock {
    /// Locks for reading, runs `inside` and unlocks; other readers may do so at the same time.
    ///
    /// # Panics
    /// libc refuses: this thread holds the lock for writing, or there are too many readers.
    #[inline]
    pub fn with_read_lock<R>(&self, inside: impl FnOnce() -> R) -> R {
        // SAFETY: the lock is initialised and valid as long as self.
        let result = unsafe { libc::pthread_rwlock_rdlock(self.0.get()) };
        assert_eq!(result, 0, "pthread_rwlock_rdlock");
        let _held = Held(self);
        inside()
    }

    /// Locks for writing, runs `inside` and unlocks.
    ///
    /// # Panics
    /// libc refuses: this thread holds the lock already.
    #[inline]
    pub fn with_write_lock<R>(&self, inside: impl FnOnce() -> R) -> R {
        // SAFETY: the lock is initialised and valid as long as self.
        let result = unsafe { libc::pthread_rwlock_wrlock(self.0.get()) };
        assert_eq!(result, 0, "pthread_rwlock_wrlock");
        let _held = Held(self);
        inside()
    }
}

/// Proof that this thread holds the lock, for reading or for writing.
struct Held<'a>(&'a RwLock);

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread locked it before it made this.
        unsafe { libc::pthread_rwlock_unlock(self.0.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_cell::SharedCell;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn readers_share_and_writers_exclude() {
        for scope in [SharingScope::Threads, SharingScope::Processes] {
            let lock = SharedCell::<RwLock>::create_zeroed(scope).unwrap();
            assert_eq!(lock.with_read_lock(|| lock.with_read_lock(|| 7)), 7);
            let total = AtomicU32::new(0);
            std::thread::scope(|threads| {
                for _ in 0..2 {
                    threads.spawn(|| {
                        for _ in 0..10_000 {
                            lock.with_write_lock(|| total.store(total.load(Relaxed) + 1, Relaxed));
                        }
                    });
                }
            });
            assert_eq!(total.into_inner(), 20_000);
        }
    }

    #[test]
    #[should_panic(expected = "pthread_rwlock_wrlock")]
    fn a_writer_that_writes_again_is_refused() {
        let lock = SharedCell::<RwLock>::create_zeroed(SharingScope::Threads).unwrap();
        lock.with_write_lock(|| lock.with_write_lock(|| ()));
    }
}
