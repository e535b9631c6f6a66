//! Developer commands of latscope: `cargo xtask test`, `dist`, `peers`.
#![forbid(unsafe_code)]

mod bans;
mod dist;
mod peers;
mod setup;
mod shell;
mod test;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of latscope")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs what tests need (as root; else names the command), then runs every test
    Test,
    /// Builds static, stripped binaries into dist/
    Dist,
    /// Compares latscope with other tools; checks its limits under load, of time and of size
    Peers(peers::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the command succeeded.
fn run(command: &Command) -> Result<bool> {
    std::env::set_current_dir(shell::workspace())?;
    match command {
        Command::Test => test::run(),
        Command::Dist => dist::run().map(|_| true),
        Command::Peers(arguments) => peers::run(arguments),
    }
}
