//! `latscope doctor`: what on this machine distorts latency.

use super::{Exit, output};
use crate::machine;
use anyhow::Result;
use clap::ArgMatches;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Checks the machine and shows what was found.
///
/// # Errors
/// The output cannot be written.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let machine = machine::this_machine();
    if let Some(path) = matches.get_one::<PathBuf>("json") {
        let text = serde_json::to_string_pretty(&machine)? + "\n";
        if path == Path::new("-") {
            output::write_stdout(&text)?;
            return Ok(Exit::Done);
        }
        crate::engine::saver::replace(path, text.as_bytes())?;
    }
    let text = latscope_core::doctor::text(&machine, true, output::width());
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())?;
    Ok(Exit::Done)
}
