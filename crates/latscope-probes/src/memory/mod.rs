//! Memory: how long a load takes from each level, how much the levels carry,
//! and how both depend on each other.

mod bandwidth;
mod latency;
mod loaded;
mod parallelism;
mod regions;
mod sequential_sum;
mod sizes;
mod stream;
mod thread_group;
mod tlb;

pub(crate) use regions::PageSize;

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &latency::LATENCY,
    &sequential_sum::SEQUENTIAL_SUM,
    &bandwidth::BANDWIDTH,
    &stream::STREAM,
    &parallelism::PARALLELISM,
    &loaded::LOADED,
    &tlb::TLB,
];
