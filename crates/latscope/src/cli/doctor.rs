//! `latscope doctor`: what on this machine distorts latency.

use super::options::JsonArgument;
use super::output::{show_text, write_json};
use super::{CommandExit, redact};
use anyhow::Result;
use clap::Args;
use latscope_views::DisplayOptions;

#[derive(Debug, Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    to: JsonArgument,
    /// Leave out the host name, the machine id, the command line of the kernel, paths and processes
    #[arg(long)]
    redact: bool,
}

/// Checks the machine and shows what was found.
///
/// # Errors
/// The output cannot be written.
pub fn run_doctor(asked: &DoctorArguments) -> Result<CommandExit> {
    let catalogue = latscope_probes::catalogue();
    let machine = redact::redact_machine(latscope_machine::this_machine(&catalogue))?;
    write_json(&asked.to, &machine)?;
    show_text(asked.to.takes_stdout(), |options| {
        latscope_views::doctor::format_checks(&machine, &DisplayOptions { catalogue: &catalogue, ..*options })
    })?;
    Ok(CommandExit::Done)
}
