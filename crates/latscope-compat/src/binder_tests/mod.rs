//! AOSP's performance tests of binder: `schd-dbg`, `libhwbinder_latency`, `libbinder_benchmark`,
//! `libhwbinder_benchmark`, `binderThroughputTest`. They take the arguments of the originals, measure with latscope's
//! client and server processes, and print the text of the originals.
//!
//! Reading the arguments, planning and rendering are pure functions; each program's `carry_out` joins them. The
//! differences from the originals are in `docs/binder-tests.md`.

pub mod benchmark;
pub mod latency;
pub mod number;
pub mod throughput;
pub mod words;

mod measure;

use crate::personality::Personality;

/// All of AOSP's tests, by name.
pub static PROGRAMS: &[&dyn Personality] = &[
    &throughput::THROUGHPUT,
    &benchmark::LIBBINDER_BENCHMARK,
    &benchmark::LIBHWBINDER_BENCHMARK,
    &latency::LIBHWBINDER_LATENCY,
    &latency::SCHD_DBG,
];
