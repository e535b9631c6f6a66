//! POSIX unnamed semaphore (sem_overview(7)), in private or shared memory.

use crate::shared_cell::{Shareable, SharingScope};
use crate::syscall::check_errno;
use std::cell::UnsafeCell;
use std::io;

/// An unnamed semaphore. Made by [`Shareable::initialise`]; a zeroed one that
/// was not initialised counts from zero as well and is private.
#[derive(Debug)]
#[repr(transparent)]
pub struct Semaphore(UnsafeCell<libc::sem_t>);

// SAFETY: sem_t may be used by any thread at any time (sem_post(3): MT-Safe).
unsafe impl Sync for Semaphore {}
// SAFETY: a sem_t is bound to no thread.
unsafe impl Send for Semaphore {}

// SAFETY: sem_t consists of counters and flags, no pointers; all operations
// on it are atomic. It is never destroyed while mapped: on Linux
// sem_destroy(3) does nothing for an unnamed semaphore.
unsafe impl Shareable for Semaphore {
    unsafe fn initialise(&self, scope: SharingScope) -> io::Result<()> {
        let shared = i32::from(scope == SharingScope::Processes);
        // SAFETY: the pointer is valid, and the caller is the only holder.
        check_errno(unsafe { libc::sem_init(self.0.get(), shared, 0) }).map(drop)
    }
}

impl Semaphore {
    /// Adds one and wakes a waiter: sem_post(3).
    ///
    /// # Errors
    /// `EOVERFLOW` when the count is at its maximum.
    #[inline]
    pub fn post(&self) -> io::Result<()> {
        // SAFETY: the semaphore is valid as long as self.
        check_errno(unsafe { libc::sem_post(self.0.get()) }).map(drop)
    }

    /// Takes a token; sleeps while there is none: sem_wait(3). Signals do not end the wait.
    #[inline]
    pub fn wait(&self) {
        // SAFETY: the semaphore is valid as long as self. EINTR is its only
        // failure then.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
    }

    /// Takes one if there is one: sem_trywait(3).
    #[inline]
    pub fn try_wait(&self) -> bool {
        // SAFETY: the semaphore is valid as long as self.
        unsafe { libc::sem_trywait(self.0.get()) == 0 }
    }

    /// Returns the number of tokens that can be taken at this moment: sem_getvalue(3).
    pub fn value(&self) -> u32 {
        let mut value = 0;
        // SAFETY: both pointers are valid.
        unsafe { libc::sem_getvalue(self.0.get(), &mut value) };
        u32::try_from(value).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_cell::SharedCell;

    #[test]
    fn counts_what_is_posted_and_taken() {
        for scope in [SharingScope::Threads, SharingScope::Processes] {
            let semaphore = SharedCell::<Semaphore>::create_zeroed(scope).unwrap();
            assert!(!semaphore.try_wait());
            semaphore.post().unwrap();
            semaphore.post().unwrap();
            semaphore.wait();
            assert_eq!(semaphore.value(), 1);
            assert!(semaphore.try_wait());
            assert!(!semaphore.try_wait());
        }
    }
}
