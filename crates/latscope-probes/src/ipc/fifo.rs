//! Real-time threads of a pair.

use latscope_os::sched::{self, Policy};

/// Puts the calling thread under SCHED_FIFO; returns the reason if that fails.
pub fn fifo(priority: u32) -> Option<String> {
    if let Err(error) = sched::set_policy(Policy::Fifo(priority)) {
        return Some(format!("ran as SCHED_OTHER, not SCHED_FIFO {priority}: {error}"));
    }
    match sched::policy() {
        Ok(Policy::Fifo(got)) if got == priority => None,
        other => Some(format!("asked for SCHED_FIFO {priority}, but the kernel has {other:?}")),
    }
}
