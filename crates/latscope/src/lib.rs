//! The latscope command.
#![forbid(unsafe_code)]
pub mod exchange;
