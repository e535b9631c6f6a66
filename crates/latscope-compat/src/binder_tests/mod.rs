//! AOSP's performance tests of binder: `schd-dbg`, `libhwbinder_latency`,
//! `libbinder_benchmark`, `libhwbinder_benchmark`, `binderThroughputTest`. Their
//! arguments in, our client and server processes, their text out.
//!
//! Reading the arguments, planning and rendering are pure functions; each
//! program's `run` joins them. What differs is in `docs/binder-tests.md`.

pub mod benchmark;
pub mod latency;
pub mod number;
pub mod throughput;
pub mod words;

mod measure;

use super::rt::Tool;

/// All of them, by name.
pub static TOOLS: &[Tool] = &[
    Tool {
        name: throughput::NAME,
        summary: "binder transactions a second, by processes that call each other",
        run: throughput::run,
    },
    Tool {
        name: benchmark::BINDER.name,
        summary: "binder round trips by payload, as Google Benchmark",
        run: |arguments| benchmark::run(&benchmark::BINDER, arguments),
    },
    Tool {
        name: benchmark::HWBINDER.name,
        summary: "hwbinder round trips by payload, as Google Benchmark",
        run: |arguments| benchmark::run(&benchmark::HWBINDER, arguments),
    },
    Tool {
        name: latency::HWBINDER.name,
        summary: "hwbinder latency, deadline, sync and inheritance",
        run: |arguments| latency::run(&latency::HWBINDER, arguments),
    },
    Tool {
        name: latency::BINDER.name,
        summary: "binder latency, deadline, sync and inheritance",
        run: |arguments| latency::run(&latency::BINDER, arguments),
    },
];

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}
