//! Real-time threads of a pair.

use latscope_os::sched::{self, Policy};

/// Puts the calling thread under SCHED_FIFO; returns the reason if that fails.
pub fn fifo(priority: u32) -> Option<String> {
    if let Err(error) = sched::set_policy(Policy::Fifo(priority)) {
        return Some(format!("ran as SCHED_OTHER, not SCHED_FIFO {priority}: {error}"));
    }
    match sched::policy() {
        Ok(Policy::Fifo(got)) if got == priority => None,
        Ok(other) => Some(format!("ran as {other}, not SCHED_FIFO {priority}")),
        Err(error) => {
            Some(format!("asked for SCHED_FIFO {priority}, and what was granted is unknown: {error}"))
        }
    }
}
