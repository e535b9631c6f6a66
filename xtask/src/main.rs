//! Developer commands.
#![forbid(unsafe_code)]
fn main() {}
