//! How a receiver waits.

use std::hint::spin_loop;

/// A way to wait for something.
pub trait Wait: Send + 'static {
    /// Its name in results: `block`, `spin`, `spin-then-park`.
    const NAME: &'static str;

    /// Waits: `attempt` tries once and never sleeps, `block` sleeps in the
    /// kernel until it has what is waited for.
    fn wait<R>(attempt: impl FnMut() -> Option<R>, block: impl FnOnce() -> R) -> R;
}

/// Sleeps in the kernel at once.
#[derive(Debug, Clone, Copy)]
pub enum Block {}

/// Never sleeps: tries until it succeeds, and keeps its CPU busy meanwhile.
#[derive(Debug, Clone, Copy)]
pub enum Spin {}

/// Tries for some microseconds, then sleeps.
#[derive(Debug, Clone, Copy)]
pub enum SpinThenPark {}

/// Attempts of [`SpinThenPark`] before it sleeps: about what a sleep and a
/// wake-up cost when an attempt is a look at memory.
const ATTEMPTS: u32 = 500;

impl Wait for Block {
    const NAME: &'static str = "block";

    #[inline]
    fn wait<R>(_: impl FnMut() -> Option<R>, block: impl FnOnce() -> R) -> R {
        block()
    }
}

impl Wait for Spin {
    const NAME: &'static str = "spin";

    #[inline]
    fn wait<R>(mut attempt: impl FnMut() -> Option<R>, _: impl FnOnce() -> R) -> R {
        loop {
            if let Some(done) = attempt() {
                return done;
            }
            spin_loop();
        }
    }
}

impl Wait for SpinThenPark {
    const NAME: &'static str = "spin-then-park";

    #[inline]
    fn wait<R>(mut attempt: impl FnMut() -> Option<R>, block: impl FnOnce() -> R) -> R {
        for _ in 0..ATTEMPTS {
            if let Some(done) = attempt() {
                return done;
            }
            spin_loop();
        }
        block()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts made and sleeps begun until something comes at attempt `at`.
    fn counted<W: Wait>(at: u32) -> (u32, u32) {
        let (mut attempts, mut sleeps) = (0, 0);
        W::wait(
            || {
                attempts += 1;
                (attempts == at).then_some(())
            },
            || sleeps += 1,
        );
        (attempts, sleeps)
    }

    #[test]
    fn each_policy_tries_and_sleeps_as_it_says() {
        assert_eq!(counted::<Block>(3), (0, 1));
        assert_eq!(counted::<Spin>(3), (3, 0));
        assert_eq!(counted::<SpinThenPark>(3), (3, 0));
        assert_eq!(counted::<SpinThenPark>(ATTEMPTS + 1), (ATTEMPTS, 1));
    }
}
