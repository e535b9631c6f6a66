//! The pthread mutex and condition variable (pthread_mutex_lock(3),
//! pthread_cond_wait(3)), as applications use them: a mutex around a count,
//! and a condition that the count is not zero.

use crate::shared_cell::{Shareable, SharingScope};
use crate::syscall::check_number;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Makes a pthread object whose attributes name the scope that shares it.
///
/// To be called by the only holder of the object, which is valid.
macro_rules! initialise {
    ($object:expr, $scope:expr, $attributes:ident, $set_shared:ident, $init:ident, $destroy:ident) => {{
        let shared = match $scope {
            SharingScope::Threads => libc::PTHREAD_PROCESS_PRIVATE,
            SharingScope::Processes => libc::PTHREAD_PROCESS_SHARED,
        };
        let mut attributes = std::mem::MaybeUninit::uninit();
        // The attributes are filled before the other calls use them.
        check_number(libc::$attributes(attributes.as_mut_ptr()))?;
        let set = check_number(libc::$set_shared(attributes.as_mut_ptr(), shared));
        let made = set.and_then(|()| check_number(libc::$init($object.get(), attributes.as_ptr())));
        libc::$destroy(attributes.as_mut_ptr());
        made
    }};
}
pub(crate) use initialise;

/// A default (normal, neither robust nor priority-inheriting) pthread mutex.
#[derive(Debug)]
#[repr(transparent)]
pub struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is made to be used by several threads.
unsafe impl Sync for Mutex {}
// SAFETY: it is bound to no thread while unlocked, and moving needs ownership.
unsafe impl Send for Mutex {}

// SAFETY: a normal mutex holds a futex word, an owner and flags; the links it
// has room for are used by robust mutexes only, which this is not.
unsafe impl Shareable for Mutex {
    unsafe fn initialise(&self, scope: SharingScope) -> io::Result<()> {
        // SAFETY: the mutex is valid, and the caller is its only holder.
        unsafe {
            initialise!(
                self.0,
                scope,
                pthread_mutexattr_init,
                pthread_mutexattr_setpshared,
                pthread_mutex_init,
                pthread_mutexattr_destroy
            )
        }
    }
}

impl Mutex {
    /// Locks, runs `inside` and unlocks.
    ///
    /// # Panics
    /// If this thread holds the mutex already (it would wait for itself) or
    /// libc refuses, which a normal mutex gives it no reason for.
    #[inline]
    pub fn with_lock<R>(&self, inside: impl FnOnce() -> R) -> R {
        let held = self.lock();
        let result = inside();
        drop(held);
        result
    }

    #[inline]
    fn lock(&self) -> MonitorMutexGuard<'_> {
        // SAFETY: the mutex is initialised and valid as long as self.
        let result = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        assert_eq!(result, 0, "pthread_mutex_lock");
        MonitorMutexGuard(self)
    }
}

/// Proof that this thread holds the mutex.
struct MonitorMutexGuard<'a>(&'a Mutex);

impl Drop for MonitorMutexGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread locked it in `lock`; it cannot fail then.
        unsafe { libc::pthread_mutex_unlock(self.0.0.get()) };
    }
}

/// A count guarded by a mutex, with a condition variable to wait for it.
#[derive(Debug)]
#[repr(C)]
pub struct CondvarCounter {
    mutex: Mutex,
    condition: UnsafeCell<libc::pthread_cond_t>,
    /// Count of tokens, only touched under the mutex; atomic because other processes may write.
    count: AtomicU32,
}

// SAFETY: the condition is made to be used by several threads.
unsafe impl Sync for CondvarCounter {}
// SAFETY: as for Mutex.
unsafe impl Send for CondvarCounter {}

// SAFETY: as for Mutex; a condition variable holds counters only.
unsafe impl Shareable for CondvarCounter {
    unsafe fn initialise(&self, scope: SharingScope) -> io::Result<()> {
        // SAFETY: as the caller vouches.
        unsafe { self.mutex.initialise(scope)? };
        // SAFETY: the condition is valid, and the caller is its only holder.
        unsafe {
            initialise!(
                self.condition,
                scope,
                pthread_condattr_init,
                pthread_condattr_setpshared,
                pthread_cond_init,
                pthread_condattr_destroy
            )
        }
    }
}

impl CondvarCounter {
    /// Adds one under the mutex, unlocks, then signals the condition.
    #[inline]
    pub fn give_token(&self) {
        self.mutex.with_lock(|| self.count.store(self.count.load(Relaxed).wrapping_add(1), Relaxed));
        // SAFETY: the condition is initialised and valid as long as self; the
        // call has no failure then.
        unsafe { libc::pthread_cond_signal(self.condition.get()) };
    }

    /// Takes a token; waits on the condition while there is none.
    #[inline]
    pub fn take_token(&self) {
        self.mutex.with_lock(|| {
            while !self.take_locked() {
                // SAFETY: this thread holds the mutex, which is given up and
                // held again by the call; both are valid as long as self.
                unsafe { libc::pthread_cond_wait(self.condition.get(), self.mutex.0.get()) };
            }
        });
    }

    /// Returns the number of tokens that can be taken at this moment.
    pub fn token_count(&self) -> u32 {
        self.mutex.with_lock(|| self.count.load(Relaxed))
    }

    #[inline]
    fn take_locked(&self) -> bool {
        let count = self.count.load(Relaxed);
        if count > 0 {
            self.count.store(count - 1, Relaxed);
        }
        count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_cell::SharedCell;

    #[test]
    fn counts_what_is_given_and_taken() {
        for scope in [SharingScope::Threads, SharingScope::Processes] {
            let monitor = SharedCell::<CondvarCounter>::create_zeroed(scope).unwrap();
            assert_eq!(monitor.token_count(), 0);
            monitor.give_token();
            monitor.give_token();
            monitor.take_token();
            assert_eq!(monitor.token_count(), 1);
            monitor.take_token();
            assert_eq!(monitor.token_count(), 0);
        }
    }

    #[test]
    fn a_mutex_excludes() {
        let mutex = SharedCell::<Mutex>::create_zeroed(SharingScope::Threads).unwrap();
        let total = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        mutex.with_lock(|| total.store(total.load(Relaxed) + 1, Relaxed));
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 20_000);
    }
}
