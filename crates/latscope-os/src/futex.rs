//! A count in memory with sleeping and waking by futex(2) directly.

use crate::shared_cell::{Shareable, SharingScope};
use crate::syscall::check_errno;
use rustix::io::Errno;
use rustix::thread::{Timespec, futex};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Counter of tokens to be taken; a taker sleeps in the kernel while there are none.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Tokens {
    count: AtomicU32,
    /// FUTEX_PRIVATE_FLAG or 0; on the line the count brings in anyway.
    flags: AtomicU32,
}

// SAFETY: atomic integers accept every bit pattern and any concurrent use;
// foreign bits in `flags` are cut off where they are used.
unsafe impl Shareable for Tokens {
    unsafe fn initialise(&self, scope: SharingScope) -> io::Result<()> {
        let flags = match scope {
            SharingScope::Threads => futex::Flags::PRIVATE,
            SharingScope::Processes => futex::Flags::empty(),
        };
        self.flags.store(flags.bits(), Ordering::Relaxed);
        Ok(())
    }
}

impl Tokens {
    /// Adds one and wakes one sleeper (FUTEX_WAKE), with a system call whether
    /// a thread sleeps or not.
    #[inline]
    pub fn give_token(&self) {
        self.count.fetch_add(1, Ordering::Release);
        // It fails only for an address that is none.
        let _ = futex::wake(&self.count, self.flags(), 1);
    }

    /// Takes a token; sleeps (FUTEX_WAIT) while there is none.
    #[inline]
    pub fn take_token(&self) {
        while !self.try_take() {
            // EAGAIN (a token came in between) and EINTR lead to another try.
            let _ = futex::wait(&self.count, self.flags(), 0, None);
        }
    }

    /// Takes one if there is one.
    #[inline]
    pub fn try_take(&self) -> bool {
        let mut count = self.count.load(Ordering::Relaxed);
        while count > 0 {
            match self.count.compare_exchange_weak(count, count - 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }

    /// Returns the number of tokens that can be taken at this moment.
    #[inline]
    pub fn token_count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    #[inline]
    fn flags(&self) -> futex::Flags {
        futex::Flags::from_bits_truncate(self.flags.load(Ordering::Relaxed)) & futex::Flags::PRIVATE
    }
}

/// A count of kicks on which one side of a link sleeps: how many there were between two looks does not matter.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FutexBell(AtomicU32);

// SAFETY: as for AtomicU32.
unsafe impl Shareable for FutexBell {
    unsafe fn initialise(&self, _: SharingScope) -> io::Result<()> {
        Ok(())
    }
}

impl FutexBell {
    /// Kicks: counts, and wakes the sleeper (FUTEX_WAKE), with a system call whether a thread sleeps or not.
    #[inline]
    pub fn ring_bell(&self) {
        self.0.fetch_add(1, Ordering::Release);
        // It fails only for an address that is none.
        let _ = futex::wake(&self.0, futex::Flags::empty(), 1);
    }

    /// Returns the number of rings so far, modulo 2^32.
    pub fn ring_count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Sleeps (FUTEX_WAIT) while it has rung `seen` times, at most for the time given; how often it has rung then.
    #[inline]
    pub fn wait_for_ring(&self, seen: u32, timeout: Option<Duration>) -> u32 {
        if self.ring_count() == seen && timeout != Some(Duration::ZERO) {
            let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
            // EAGAIN (it rang in between), EINTR and ETIMEDOUT: the count tells.
            let _ = futex::wait(&self.0, futex::Flags::empty(), seen, timeout.as_ref());
        }
        self.ring_count()
    }
}

/// A lock in one word.
pub trait OneWordLock: Sync {
    /// Takes the lock; waits while another thread has it.
    fn lock(&self);

    /// Takes the lock if it is free; returns false otherwise.
    fn try_lock(&self) -> bool;

    /// Gives the lock back; only by the thread that took it.
    fn unlock(&self);
}

/// A lock that knows nothing of priorities: 0 free, 1 taken, 2 taken and
/// another thread may sleep.
#[derive(Debug, Default)]
pub struct PlainLock(AtomicU32);

impl OneWordLock for PlainLock {
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn lock(&self) {
        if self.try_lock() {
            return;
        }
        while self.0.swap(2, Ordering::Acquire) != 0 {
            // EAGAIN and EINTR lead to another try.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, 2, None);
        }
    }

    fn unlock(&self) {
        if self.0.swap(0, Ordering::Release) == 2 {
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }
}

/// A lock whose owner inherits the priority of its waiters (FUTEX_LOCK_PI):
/// the word is 0 or the id of the owner.
#[derive(Debug, Default)]
pub struct PiLock(AtomicU32);

impl PiLock {
    /// Checks by a try that this kernel has priority-inheriting locks (`CONFIG_FUTEX_PI`).
    ///
    /// # Errors
    /// ENOSYS without them.
    pub fn supported() -> io::Result<()> {
        let word = AtomicU32::new(0);
        futex::lock_pi(&word, futex::Flags::PRIVATE, None)?;
        Ok(futex::unlock_pi(&word, futex::Flags::PRIVATE)?)
    }
}

impl OneWordLock for PiLock {
    fn try_lock(&self) -> bool {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        self.0.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn lock(&self) {
        if self.try_lock() {
            return;
        }
        while let Err(error) = futex::lock_pi(&self.0, futex::Flags::PRIVATE, None) {
            assert!(error == Errno::INTR || error == Errno::AGAIN, "FUTEX_LOCK_PI: {error}");
        }
    }

    fn unlock(&self) {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        if self.0.compare_exchange(own, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            // It fails only for one who does not have the lock.
            let _ = futex::unlock_pi(&self.0, futex::Flags::PRIVATE);
        }
    }
}

/// A lock whose takers try again until they have it, without the kernel.
#[derive(Debug, Default)]
pub struct SpinLock(AtomicBool);

impl OneWordLock for SpinLock {
    fn try_lock(&self) -> bool {
        !self.0.swap(true, Ordering::Acquire)
    }

    fn lock(&self) {
        while !self.try_lock() {
            while self.0.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }
    }

    fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Threads that sleep until all of them are woken at once, and a second word to which they can be requeued.
#[derive(Debug, Default)]
pub struct FutexWaiterGroup {
    gate: AtomicU32,
    lane: AtomicU32,
}

impl FutexWaiterGroup {
    /// Returns the number of openings so far.
    pub fn openings(&self) -> u32 {
        self.gate.load(Ordering::Acquire)
    }

    /// Sleeps until the crowd was opened more than `seen` times, or is woken after a requeue.
    pub fn wait_for_opening(&self, seen: u32) {
        while self.openings() == seen {
            // EAGAIN and EINTR lead to another look.
            let _ = futex::wait(&self.gate, futex::Flags::PRIVATE, seen, None);
        }
    }

    /// Opens it and wakes all that sleep by one call. Returns how many slept.
    #[inline]
    pub fn wake_all(&self) -> usize {
        self.gate.fetch_add(1, Ordering::Release);
        // It fails only for an address that is none.
        futex::wake(&self.gate, futex::Flags::PRIVATE, i32::MAX as u32).unwrap_or(0)
    }

    /// Opens it, wakes one and requeues all others to the second word by one call (FUTEX_CMP_REQUEUE). Returns how many
    /// were woken or requeued.
    #[inline]
    pub fn requeue_all(&self) -> usize {
        let opened = self.gate.fetch_add(1, Ordering::Release) + 1;
        let (flags, all) = (futex::Flags::PRIVATE, i32::MAX as u32);
        // EAGAIN takes another thread that opens, and there is one.
        futex::cmp_requeue(&self.gate, flags, 1, all, &self.lane, opened).unwrap_or(0)
    }

    /// Wakes one of those that were requeued.
    #[inline]
    pub fn wake_requeued(&self) {
        let _ = futex::wake(&self.lane, futex::Flags::PRIVATE, 1);
    }
}

const PR_FUTEX_HASH: libc::c_int = 78;
const SET_SLOTS: libc::c_ulong = 1;
const GET_SLOTS: libc::c_ulong = 2;

/// Returns the slots of this process's own hash table of futexes, 0 while it uses the global one.
///
/// # Errors
/// EINVAL: the kernel has no such tables (before Linux 6.16, or without `CONFIG_FUTEX_PRIVATE_HASH`).
pub fn hash_slots() -> io::Result<u32> {
    // SAFETY: the call takes numbers only.
    check_errno(unsafe { libc::prctl(PR_FUTEX_HASH, GET_SLOTS, 0, 0, 0) }).map(|slots| slots as u32)
}

/// Gives this process its own hash table of futexes with so many slots, a power of two; 0 for the global one, which it
/// then keeps.
///
/// # Errors
/// As [`hash_slots`]; EBUSY, if the process uses the global table for good.
pub fn set_hash_slots(slots: u32) -> io::Result<()> {
    // SAFETY: the call takes numbers only.
    check_errno(unsafe { libc::prctl(PR_FUTEX_HASH, SET_SLOTS, libc::c_ulong::from(slots), 0, 0) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_cell::SharedCell;

    #[test]
    fn counts_what_is_given_and_taken() {
        for scope in [SharingScope::Threads, SharingScope::Processes] {
            let tokens = SharedCell::<Tokens>::create_zeroed(scope).unwrap();
            assert!(!tokens.try_take());
            tokens.give_token();
            tokens.give_token();
            tokens.take_token();
            assert_eq!(tokens.token_count(), 1);
            assert!(tokens.try_take());
            assert!(!tokens.try_take());
        }
    }

    #[test]
    fn two_takers_get_each_token_once() {
        let tokens = SharedCell::<Tokens>::create_zeroed(SharingScope::Threads).unwrap();
        let taken = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        tokens.take_token();
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..2_000 {
                tokens.give_token();
            }
        });
        assert_eq!((taken.into_inner(), tokens.token_count()), (2_000, 0));
    }

    #[test]
    fn a_bell_wakes_its_sleeper_and_is_heard_by_one_who_comes_later() {
        let bell = SharedCell::<FutexBell>::create_zeroed(SharingScope::Processes).unwrap();
        assert_eq!(bell.wait_for_ring(0, Some(Duration::from_micros(1))), 0, "it was not rung");
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| bell.wait_for_ring(0, Some(Duration::from_secs(20))));
            bell.ring_bell();
            assert_eq!(sleeper.join().unwrap(), 1);
        });
        bell.ring_bell();
        assert_eq!((bell.wait_for_ring(1, None), bell.ring_count()), (2, 2));
    }

    #[test]
    fn a_crowd_is_woken_at_once_or_one_after_the_other() {
        for requeue in [false, true] {
            let crowd = FutexWaiterGroup::default();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        crowd.wait_for_opening(0);
                        crowd.wake_requeued();
                    });
                }
                // Those that do not sleep yet see that it was opened.
                let _ = if requeue { crowd.requeue_all() } else { crowd.wake_all() };
            });
            assert_eq!(crowd.openings(), 1);
        }
    }

    fn excludes(lock: &impl OneWordLock) {
        let inside = AtomicU32::new(0);
        let turns = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        lock.lock();
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        turns.fetch_add(1, Ordering::Relaxed);
                        inside.fetch_sub(1, Ordering::Relaxed);
                        lock.unlock();
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 6_000);
    }

    #[test]
    fn only_one_has_a_lock() {
        excludes(&PlainLock::default());
        excludes(&SpinLock::default());
        match PiLock::supported() {
            Ok(()) => excludes(&PiLock::default()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
        }
    }
}
