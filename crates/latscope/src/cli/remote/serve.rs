//! `latscope remote serve`: is there for somebody else, until Ctrl-C.

use super::super::Exit;
use super::super::arguments::flag;
use anyhow::Result;
use clap::{ArgGroup, ArgMatches, Command};

/// The command: one argument for each that it can be.
pub fn command() -> Command {
    Command::new("serve")
        .about("Is there for others until Ctrl-C: a terminal that leads to a remote")
        .arg(flag("pty", "A pseudo terminal; what is written to it goes to a remote, and back"))
        .group(ArgGroup::new("what").args(["pty"]).required(true))
}

/// Serves until it is ended.
///
/// # Errors
/// What is to be served cannot be had.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    match () {
        () if matches.get_flag("pty") => anyhow::bail!("--pty is not there yet"),
        () => Ok(Exit::Done),
    }
}
