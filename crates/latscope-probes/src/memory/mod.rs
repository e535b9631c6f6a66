//! Memory: the latency of a load from each level, the bandwidth of the levels, and their dependence on each
//! other.

mod bandwidth;
mod copies;
mod figures;
mod latency;
mod loaded;
mod nodes;
mod parallelism;
mod regions;
mod sequential_sum;
mod sizes;
mod stream;
mod thread_group;
mod tlb;
mod traffic;

pub use nodes::nodes;
pub(crate) use regions::page_size_doubt;

use super::{Condition, Family, FamilyFacts, Probe};

/// Reason why large buffers are measured in fewer rounds.
const LARGE: &str = "memory larger than the caches is filled first";

/// The family of caches and memory.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "memory",
        about: "Caches and memory: latency by size, bandwidth, parallelism, latency under load",
        sensitive_to: &[
            Condition::Speed,
            Condition::ClockRate,
            Condition::SharedCore,
            Condition::Swap,
            Condition::MovedPages,
        ],
        curves: figures::CURVES,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &latency::LATENCY,
    &latency::SINGLE_LOAD,
    &sequential_sum::SEQUENTIAL_SUM,
    &bandwidth::BANDWIDTH,
    &copies::COPY,
    &stream::STREAM,
    &parallelism::PARALLELISM,
    &loaded::LOADED,
    &tlb::TLB,
];
