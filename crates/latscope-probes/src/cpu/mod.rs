//! Operations of the core itself, which take nanoseconds: a cycle, arithmetic, branches, calls, and readings of
//! a clock.

mod arithmetic;
mod branch;
mod call;
mod clock;
mod cycle;
mod forward;
mod indirect;
mod jump;
mod returns;

use super::{Condition, Family, FamilyFacts, Probe};

/// The family.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "cpu",
        about: "The core: cycle, arithmetic, branches, calls, reading a clock",
        sensitive_to: &[Condition::Speed, Condition::ClockRate, Condition::SharedCore],
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &cycle::CYCLE,
    &arithmetic::ADD,
    &arithmetic::SUB,
    &arithmetic::MUL,
    &arithmetic::DIV,
    &arithmetic::MOD,
    &arithmetic::AND,
    &arithmetic::OR,
    &arithmetic::XOR,
    &arithmetic::SHIFT,
    &arithmetic::ROTATE,
    &arithmetic::POPCOUNT,
    &arithmetic::FMA,
    &branch::BRANCH,
    &call::CALL,
    &forward::FORWARD,
    &jump::JUMP,
    &indirect::INDIRECT,
    &returns::RETURNS,
    &clock::RDTSC,
    &clock::VDSO,
    &clock::SYSCALL,
];
