//! Periodic wake-up latency.

pub mod setup;
pub mod thread;
mod timer;

pub use timer::TIMER;

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&TIMER];
