//! `latscope doctor`: what on this machine distorts latency.

use super::options::JsonArgument;
use super::{Exit, output};
use anyhow::Result;
use clap::Args;
use latscope_core::json;
use latscope_host::machine;
use latscope_host::stdout;
use std::path::Path;

#[derive(Debug, Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    to: JsonArgument,
}

/// Checks the machine and shows what was found.
///
/// # Errors
/// The output cannot be written.
pub fn run(asked: &DoctorArguments) -> Result<Exit> {
    let machine = machine::this_machine();
    if let Some(path) = &asked.to.json {
        let text = json::pretty(&machine);
        if path == Path::new("-") {
            stdout::write(&text)?;
            return Ok(Exit::Done);
        }
        latscope_engine::saver::replace(path, text.as_bytes())?;
    }
    let text = latscope_views::doctor::text(&machine, true, output::width());
    stdout::write_styled(&text)?;
    Ok(Exit::Done)
}
