//! `latscope remote serve`: is there for somebody else, until Ctrl-C.

mod openamp;

use super::super::Exit;
use super::super::arguments::flag;
use anyhow::Result;
use clap::{ArgGroup, ArgMatches, Command};

/// The command: one argument for each that it can be.
pub fn command() -> Command {
    Command::new("serve")
        .about("Is there for others until Ctrl-C: a terminal that leads to a remote, or the remote itself")
        .arg(flag("pty", "A pseudo terminal; what is written to it goes to a remote, and back"))
        .arg(flag("openamp", "The remote of --transport openamp, or of OpenAMP's own ping"))
        .args(openamp::arguments())
        .group(ArgGroup::new("what").args(["pty", "openamp"]).required(true))
}

/// Serves until it is ended.
///
/// # Errors
/// What is to be served cannot be had.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    match () {
        () if matches.get_flag("pty") => anyhow::bail!("--pty is not there yet"),
        () => openamp::run(matches),
    }
}
