//! Periodic wake-up latency.

pub mod thread;
mod timer;

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&timer::TIMER];
