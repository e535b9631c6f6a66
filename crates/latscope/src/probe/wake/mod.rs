//! Periodic wake-up latency.

mod timer;

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&timer::TIMER];
