//! Traces of the kernel: instances of our own in tracefs, and what is recorded in them.
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
