//! `latscope remote serve`: is there for somebody else, until Ctrl-C.

mod pty;

use super::super::Exit;
use super::super::arguments::flag;
use anyhow::Result;
use clap::{Arg, ArgGroup, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

/// The command: one argument for each that it can be.
pub fn command() -> Command {
    Command::new("serve")
        .about("Is there for others until Ctrl-C: a terminal that leads to a remote, or the remote itself")
        .arg(flag(
            "pty",
            "A pseudo terminal, whose path is printed: what is written to it goes to a remote, and what comes from there \
             can be read from it",
        ))
        .arg(
            Arg::new("vhost-user")
                .long("vhost-user")
                .value_name("SOCKET")
                .value_parser(value_parser!(PathBuf))
                .help("The remote of a virtual machine's guest, whose monitor connects to SOCKET (device ID 7)"),
        )
        .args(pty::arguments())
        .group(ArgGroup::new("what").args(["pty", "vhost-user"]).required(true))
}

/// Serves until it is ended.
///
/// # Errors
/// What is to be served cannot be had.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    if let Some(socket) = matches.get_one::<PathBuf>("vhost-user") {
        vhost_user(socket)?;
        return Ok(Exit::Done);
    }
    pty::run(matches)
}

#[cfg(feature = "vhost-user")]
fn vhost_user(socket: &Path) -> Result<()> {
    crate::exchange::remote::vhost_user::serve(socket)
}

#[cfg(not(feature = "vhost-user"))]
fn vhost_user(_: &Path) -> Result<()> {
    anyhow::bail!("this latscope was built without it: cargo build --features vhost-user")
}
