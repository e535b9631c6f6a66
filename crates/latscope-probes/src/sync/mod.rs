//! Costs of the interaction of threads: locks, atomics, cache lines, hand-offs.

mod atomic;
mod bandwidth;
mod context_switch;
mod core_to_core;
mod hand_off;
mod mutex;
mod pipes;
mod placement;
mod rwlock;
mod thread_group;

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &mutex::MUTEX,
    &rwlock::RWLOCK,
    &atomic::ATOMIC,
    &core_to_core::CORE_TO_CORE,
    &hand_off::SEMAPHORE,
    &hand_off::FUTEX,
    &hand_off::CONDVAR,
    &hand_off::EVENTFD,
    &hand_off::PIPE,
    &hand_off::UNIX_STREAM,
    &context_switch::CONTEXT_SWITCH,
    &context_switch::RING,
    &bandwidth::PIPE,
    &bandwidth::UNIX,
    &bandwidth::TCP,
];
