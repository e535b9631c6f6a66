//! Latency of periodic wake-ups.

pub mod activations;
mod periodic_threads;
pub mod setup;
pub mod thread;
pub mod timer;
pub mod timerlat;
pub mod waiter;

pub use timer::{RESPONSE, TIMER};
pub use timerlat::TIMERLAT;

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&TIMER, &RESPONSE, &TIMERLAT];
