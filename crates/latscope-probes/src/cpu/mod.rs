//! Operations of the core itself, which take nanoseconds: a cycle, arithmetic, branches, calls, and readings of
//! a clock.

mod arithmetic;
mod branch;
mod call;
mod clock;
mod cycle;

use super::Probe;

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
    &clock::RDTSC,
    &clock::VDSO,
    &clock::SYSCALL,
];
