//! `latscope show`: any view of a saved result.

use super::Exit;
use super::output::{self, Output};
use anyhow::Result;
use clap::ArgMatches;
use std::path::PathBuf;

/// Shows a saved result.
///
/// # Errors
/// It cannot be read or is not a result, or a view cannot be written.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let path: &PathBuf = matches.get_one("result").expect("clap requires it");
    let output = Output::from(matches)?;
    let report = output::load(path)?;
    output.show(&report, matches.get_flag("all"))?;
    if let Some(path) = output.json_file() {
        latscope_engine::saver::save(path, &report)?;
    }
    Ok(Exit::Done)
}
