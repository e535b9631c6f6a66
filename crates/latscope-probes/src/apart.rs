//! Measurements in a thread of their own, for what a thread cannot take back: a filter, a namespace.

use crate::prelude::*;

/// Measures in a new thread, which has the CPU and the policy of the calling one, and waits for its end.
///
/// # Errors
/// There is no thread; else that of `measure`.
///
/// # Panics
/// If `measure` panics.
pub fn measure_apart(bench: &mut Bench, measure: impl FnOnce(&mut Bench) -> Result<()> + Send) -> Result<()> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, move || measure(bench));
        match thread.context("no thread can be created")?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
