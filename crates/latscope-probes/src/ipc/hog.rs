//! Priority inversion: the priorities and CPU times of its threads, and the hog, the thread of middle
//! priority that takes the CPU from the owner of the lock.

use crate::prelude::*;
use latscope_bench::hold::apply_policy;
use latscope_os::usage::thread_cpu_ns;
use std::sync::mpsc::channel;

/// CPU time for which the owner keeps the lock, ns.
pub(crate) const HOLD: u64 = 1_000_000;

/// CPU time of the hog, ns.
pub(crate) const HOG: u64 = 10_000_000;

/// Calls in a second: each round is followed by a rest of the same length, since real-time threads are
/// throttled otherwise.
pub(crate) const ROUNDS_A_SECOND: u64 = 1_000_000_000 / (3 * (HOLD + HOG));

/// Priority of the owner of the lock.
pub(crate) const LOW: u32 = 10;
/// Priority of the hog.
pub const MIDDLE: u32 = 20;
/// Priority of the waiter.
pub(crate) const HIGH: u32 = 30;

/// Puts the calling thread under SCHED_FIFO; returns the reason if that fails.
pub(crate) fn fifo(priority: u32) -> Option<String> {
    apply_policy(sched::ThreadSchedPolicy::Fifo(priority)).map(|shortfall| shortfall.reason)
}

/// A thread of middle priority beside the server of a transaction.
pub(crate) struct Hog(Arc<Tokens>);

impl Hog {
    /// Starts the hog, on the CPUs of the calling thread.
    ///
    /// # Errors
    /// The thread is not started, or gets no real-time priority.
    pub fn start_thread() -> Result<Hog> {
        let cue = Arc::new(Tokens::default());
        let (heard, (tell, told)) = (cue.clone(), channel());
        std::thread::Builder::new().name("hog".to_owned()).spawn(move || {
            let shortfall = fifo(MIDDLE);
            if tell.send(shortfall).is_err() {
                return;
            }
            loop {
                heard.take_token();
                consume_cpu_time(HOG);
            }
        })?;
        match told.recv()? {
            None => Ok(Hog(cue)),
            Some(shortfall) => bail!("the hog {shortfall}"),
        }
    }

    /// Works for a round: the hog takes the CPU of a server that has some work left.
    pub(crate) fn disturb(&self) {
        self.0.give_token();
        consume_cpu_time(HOLD);
    }
}

/// Computes until the calling thread has used `ns` more of CPU time.
pub(crate) fn consume_cpu_time(ns: u64) {
    let until = thread_cpu_ns() + ns;
    while thread_cpu_ns() < until {
        std::hint::spin_loop();
    }
}
