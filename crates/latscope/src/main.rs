//! The latscope command.
#![forbid(unsafe_code)]
fn main() {}
