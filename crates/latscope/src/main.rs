//! Entry point of the latscope command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    latscope::cli::main()
}
