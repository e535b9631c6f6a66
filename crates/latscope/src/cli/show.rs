//! `latscope show`: any view of a saved result.

use super::Exit;
use super::options::ViewArguments;
use super::output::Output;
use super::results;
use anyhow::{Result, ensure};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The file of a result, or of another program's output; - for stdin
    result: PathBuf,
    /// Every point in full, not only the table
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    views: ViewArguments,
}

/// Shows a saved result.
///
/// # Errors
/// It cannot be read or is not a result, or a view cannot be written.
pub fn run(asked: &ShowArguments) -> Result<Exit> {
    let output = Output::of(&asked.views, &[&asked.result])?;
    ensure!(!asked.all || output.shows_table(), "--all is for the table, and it is not shown");
    let report = results::load_one(&asked.result)?;
    output.show(&report, asked.all)?;
    if let Some(path) = output.json_file() {
        latscope_engine::saver::save(path, &report)?;
    }
    Ok(Exit::Done)
}
