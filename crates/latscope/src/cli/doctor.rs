//! `latscope doctor`: what on this machine distorts latency.

use super::options::JsonArgument;
use super::{Exit, output, redact};
use anyhow::Result;
use clap::Args;
use latscope_process::stdout;
use latscope_views::Options;

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
pub fn run(asked: &DoctorArguments) -> Result<Exit> {
    let catalogue = latscope_probes::catalogue();
    let machine = redact::machine(latscope_machine::this_machine(&catalogue))?;
    if let Some(path) = &asked.to.json {
        output::write_json(Some(path), &machine)?;
        if output::is_stdout(path) {
            return Ok(Exit::Done);
        }
    }
    let options =
        Options { width: output::width(), color: true, catalogue: &catalogue, ..Options::default() };
    let text = latscope_views::doctor::text(&machine, &options);
    stdout::write_styled(&text)?;
    Ok(Exit::Done)
}
