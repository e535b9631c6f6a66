//! `latscope doctor`: what on this machine distorts latency.

use super::{Exit, output};
use crate::machine;
use crate::stdout;
use anyhow::Result;
use clap::ArgMatches;
use latscope_core::json;
use std::path::{Path, PathBuf};

/// Checks the machine and shows what was found.
///
/// # Errors
/// The output cannot be written.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let machine = machine::this_machine();
    if let Some(path) = matches.get_one::<PathBuf>("json") {
        let text = json::pretty(&machine);
        if path == Path::new("-") {
            stdout::write(&text)?;
            return Ok(Exit::Done);
        }
        crate::engine::saver::replace(path, text.as_bytes())?;
    }
    let text = latscope_core::doctor::text(&machine, true, output::width());
    stdout::write_styled(&text)?;
    Ok(Exit::Done)
}
