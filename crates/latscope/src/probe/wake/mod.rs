//! Periodic wake-up latency.

pub mod activations;
mod crew;
pub mod setup;
pub mod thread;
pub mod timer;
mod waiter;

pub use timer::{RESPONSE, TIMER};

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&TIMER, &RESPONSE];
