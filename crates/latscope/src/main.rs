//! Entry point of the latscope command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    if latscope::cli::has_stack() { latscope::cli::main() } else { latscope::cli::refuse_stack() }
}
