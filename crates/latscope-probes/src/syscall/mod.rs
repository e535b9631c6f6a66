//! Costs of requests to the kernel: system calls, signals, page faults and mappings.

pub(crate) mod calls;
mod connect;
mod contended_fault;
mod figures;
mod getrandom;
mod mapping;
mod page_fault;
mod ready;
mod seccomp;
mod shootdown;
mod signal;
mod sleep;
mod timer;
mod traced;
mod uring;

use super::{Condition, Family, FamilyFacts, Probe};

/// The family of the kernel's own cost.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "syscall",
        about: "The kernel's own cost: system calls, signals, page faults, mappings",
        sensitive_to: &[
            Condition::Speed,
            Condition::ClockRate,
            Condition::CallFilter,
            Condition::Mitigations,
        ],
        curves: figures::CURVES,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &calls::GETPPID,
    &calls::READ,
    &calls::WRITE,
    &calls::STAT,
    &calls::FSTAT,
    &calls::OPEN_CLOSE,
    &calls::YIELD,
    &getrandom::GETRANDOM,
    &ready::SELECT,
    &ready::POLL,
    &ready::EPOLL,
    &signal::INSTALL,
    &signal::DELIVER,
    &signal::FAULT,
    &page_fault::PAGE_FAULT,
    &contended_fault::CONTENDED_FAULT,
    &mapping::MMAP,
    &mapping::MUNMAP,
    &mapping::MPROTECT,
    &shootdown::SHOOTDOWN,
    &shootdown::GAP,
    &uring::NOP,
    &connect::ESTABLISH,
    &seccomp::FILTERED,
    &traced::EVENTS,
    &timer::SET,
    &sleep::SLACK,
];
