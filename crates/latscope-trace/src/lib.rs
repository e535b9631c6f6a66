//! Traces of the kernel: latscope's own instances in tracefs, and their recordings.
#![forbid(unsafe_code)]

pub mod blame;
pub mod events;
pub mod instance;
pub mod kernel_tracer;
#[cfg(test)]
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;
mod symbols;
pub mod timeline;
pub mod tracefs;
pub mod tracer;
