//! What it costs when threads meet: locks, atomics, cache lines, hand-offs.

pub mod company;
mod hand_off;

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &hand_off::SEMAPHORE,
    &hand_off::FUTEX,
    &hand_off::CONDVAR,
    &hand_off::EVENTFD,
    &hand_off::PIPE,
    &hand_off::UNIX_STREAM,
];
