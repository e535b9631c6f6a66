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

use super::{Condition, Family, FamilyFacts, Probe};

/// The family of periodic wake-ups.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "wake",
        about: "Periodic wake-up: how late a sleeping thread runs",
        sensitive_to: &[
            Condition::Speed,
            Condition::ClockRate,
            Condition::SharedCore,
            Condition::Virtualisation,
            Condition::Mitigations,
            Condition::ClockSource,
            Condition::UnaskedHugePages,
            Condition::Swap,
            Condition::MovedPages,
            Condition::WakeUp,
            Condition::Isolation,
            Condition::RealTime,
            Condition::LockedMemory,
            Condition::Interrupts,
            Condition::Tick,
        ],
        single_events: true,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&TIMER, &RESPONSE, &TIMERLAT];
