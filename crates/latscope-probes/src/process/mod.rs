//! Costs of making a process and of running a program in it.

mod clone;
mod figures;
mod fork;
mod pidfd;
mod program;
mod tiny_program;

use super::{Condition, Family, FamilyFacts, Probe};

/// The family of starts of processes.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "process",
        about: "Processes: fork, spawn, exec, the shell",
        sensitive_to: &[
            Condition::Speed,
            Condition::ClockRate,
            Condition::CallFilter,
            Condition::Mitigations,
            Condition::UnaskedHugePages,
            Condition::Swap,
        ],
        curves: figures::CURVES,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &fork::FORK,
    &fork::VFORK,
    &program::SPAWN,
    &program::EXEC,
    &program::SHELL,
    &clone::CHILD,
    &pidfd::OPEN,
    &pidfd::POLL,
];
