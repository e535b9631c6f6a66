//! Arguments to request, and the commands.

use crate::conditions::{guardian, load};
use crate::engine::worker;
use std::process::ExitCode;

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("__worker") => worker::main(),
        Some("__guardian") => guardian::main(),
        Some("__load") => load::main(&arguments[1..]),
        _ => Ok(()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("latscope: {error:#}");
            ExitCode::FAILURE
        }
    }
}
