//! Costs of the interaction of threads: locks, atomics, cache lines, hand-offs.

mod all_pairs;
mod atomic;
mod bandwidth;
mod context_switch;
mod core_to_core;
mod figures;
mod futex_crowd;
mod hand_off;
mod line_state;
mod lines;
mod lock;
mod membarrier;
mod mutex;
mod network;
mod pipes;
mod placement;
mod rwlock;
mod thread_group;
mod udp;

use super::{Condition, Family, FamilyFacts, Probe};

/// The family of locks, cache lines and hand-offs.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "sync",
        about: "Locks, atomics, cache lines and hand-offs between threads",
        sensitive_to: &[
            Condition::Speed,
            Condition::ClockRate,
            Condition::Virtualisation,
            Condition::TwoCpus,
            Condition::CallFilter,
            Condition::Mitigations,
            Condition::ClockSource,
            Condition::WakeUp,
            Condition::Fairness,
        ],
        curves: figures::CURVES,
        bars: figures::BARS,
        on_time_line: true,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &mutex::MUTEX,
    &rwlock::RWLOCK,
    &atomic::ATOMIC,
    &core_to_core::CORE_TO_CORE,
    &line_state::LINE_STATE,
    &hand_off::SEMAPHORE,
    &hand_off::FUTEX,
    &hand_off::CONDVAR,
    &hand_off::EVENTFD,
    &hand_off::PIPE,
    &hand_off::UNIX_STREAM,
    &lock::LOCK,
    &membarrier::MEMBARRIER,
    &futex_crowd::FUTEX_CROWD,
    &context_switch::CONTEXT_SWITCH,
    &context_switch::RING,
    &bandwidth::PIPE,
    &bandwidth::UNIX,
    &bandwidth::TCP,
    &udp::UDP,
];
