//! Developer commands of latscope: `cargo xtask setup`, `test`, `dist`, `packages`, `guest`, `image`, `peers`, `vm`,
//! `wheel`.
#![forbid(unsafe_code)]

mod advisories;
mod bans;
mod debian;
mod dist;
mod growth;
mod guest;
mod image;
mod injected_preemptions;
mod packages;
mod peers;
mod python;
mod setup;
mod shell;
mod test;
mod vm;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use test::TestDeadline;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of latscope")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs what the tests need (as root; else names the command)
    Setup,
    /// Runs the tests that need no virtual machine and no second architecture
    Test {
        /// Installs what is missing, and runs those tests too
        #[arg(long)]
        all: bool,
        /// Begins no step after this time, and ends the parts that still run: the end names them as skipped
        #[arg(long, value_name = "N", default_value_t = 24 * 60)]
        minutes: u64,
        /// Runs only a part, as `test --all` does in a process of its own
        #[arg(long, hide = true)]
        part: Option<test::TestPart>,
    },
    /// Builds static, stripped binaries into dist/
    Dist,
    /// Makes packages and a container image of the static binaries into dist/, and runs them in roots of their own
    Packages,
    /// Runs latscope in an ARM machine whose remote processor it is, too
    Guest,
    /// Builds the remote processor for QEMU, boots it and talks to it
    Image,
    /// Compares latscope with other tools; checks its limits under load, of time and of size
    Peers(peers::PeersArguments),
    /// Runs a command under another kernel, in an emulated machine
    Vm(Box<vm::VmArguments>),
    /// Builds the Python package with the static binary into dist/
    Wheel,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run_subcommand(&arguments.command).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn run_subcommand(command: &Command) -> Result<ExitCode> {
    std::env::set_current_dir(shell::workspace())?;
    let succeeded = match command {
        Command::Setup => setup::install_missing().map(|()| true)?,
        Command::Test { part: Some(part), minutes, .. } => {
            part.run_in_process(TestDeadline::minutes(*minutes))?
        }
        Command::Test { all, minutes, .. } => test::run_steps(*all, TestDeadline::minutes(*minutes))?,
        Command::Dist => dist::build_binaries(dist::PROFILE).map(|_| true)?,
        Command::Packages => packages::build_and_check()?,
        Command::Guest => guest::report_checks()?,
        Command::Image => image::report_checks()?,
        Command::Peers(arguments) => peers::run_experiment(arguments)?,
        Command::Vm(arguments) => return vm::run_or_test(arguments),
        Command::Wheel => python::wheel(dist::PROFILE).map(|_| true)?,
    };
    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs checks and prints the outcome of each. Returns true if all passed.
fn each_told<E>(run_all: impl FnOnce(&mut dyn FnMut(&str, Result<()>)) -> Result<(), E>) -> Result<bool>
where
    E: std::fmt::Display + std::fmt::Debug + Send + Sync + 'static,
{
    let mut passed = true;
    let mut told = |name: &str, outcome: Result<()>| {
        passed &= outcome.is_ok();
        match outcome {
            Ok(()) => println!("ok      {name}"),
            Err(error) => println!("failed  {name}: {error:#}"),
        }
    };
    run_all(&mut told).map_err(anyhow::Error::msg)?;
    Ok(passed)
}
