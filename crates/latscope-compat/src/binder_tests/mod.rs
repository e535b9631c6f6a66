//! AOSP's performance tests of binder: `schd-dbg`, `libhwbinder_latency`, `libbinder_benchmark`,
//! `libhwbinder_benchmark`, `binderThroughputTest`. They take the arguments of the originals, measure with latscope's
//! client and server processes, and print the text of the originals.
//!
//! Reading the arguments, planning and rendering are pure functions; each program's `run` joins them. The differences
//! from the originals are in `docs/binder-tests.md`.

pub mod benchmark;
pub mod latency;
pub mod number;
pub mod throughput;
pub mod words;

mod measure;

use super::rt::Tool;

/// All of AOSP's tests, by name.
pub static TOOLS: &[Tool] = &[
    Tool::new(
        throughput::NAME,
        "binder transactions a second, by processes that call each other",
        throughput::run,
    ),
    Tool::new(benchmark::BINDER.name, "binder round trips by payload, as Google Benchmark", |arguments| {
        benchmark::run(&benchmark::BINDER, arguments)
    }),
    Tool::new(
        benchmark::HWBINDER.name,
        "hwbinder round trips by payload, as Google Benchmark",
        |arguments| benchmark::run(&benchmark::HWBINDER, arguments),
    ),
    Tool::new(latency::HWBINDER.name, "hwbinder latency, deadline, sync and inheritance", |arguments| {
        latency::run(&latency::HWBINDER, arguments)
    }),
    Tool::new(latency::BINDER.name, "binder latency, deadline, sync and inheritance", |arguments| {
        latency::run(&latency::BINDER, arguments)
    }),
];
