//! Interface between a probe and a run: the two measuring loops with their clock and gate, the histograms that they
//! fill, and the worker process around them.
#![forbid(unsafe_code)]

pub mod alarm;
pub mod bench;
mod blocks;
pub mod gate;
pub mod hold;
pub mod kernel_clock;
mod live;
pub mod param;
pub mod probe;
pub mod protocol;
pub mod recorder;
pub mod sampler;
pub mod settings;
#[cfg(test)]
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;
pub mod threads;
pub mod timebase;
pub mod waits;
pub mod worker;
