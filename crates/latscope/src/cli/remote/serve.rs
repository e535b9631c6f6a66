//! `latscope remote serve`: is there for somebody else, until Ctrl-C.

mod openamp;

use crate::cli::Exit;
use crate::cli::arguments::flag;
use anyhow::Result;
use clap::{Arg, ArgGroup, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

/// The command: one argument for each that it can be.
pub fn command() -> Command {
    Command::new("serve")
        .about("Is there for others until Ctrl-C: the remote of somebody else's driver")
        .arg(flag("openamp", "The remote of --transport openamp, or of OpenAMP's own ping"))
        .args(openamp::arguments())
        .arg(
            Arg::new("vhost-user")
                .long("vhost-user")
                .value_name("SOCKET")
                .value_parser(value_parser!(PathBuf))
                .help("For the guest of a virtual machine, whose monitor connects to SOCKET (device ID 7)"),
        )
        .group(ArgGroup::new("what").args(["openamp", "vhost-user"]).required(true))
}

/// Serves until it is ended.
///
/// # Errors
/// What is to be served cannot be had.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    match matches.get_one::<PathBuf>("vhost-user") {
        Some(socket) => vhost_user(socket).map(|()| Exit::Done),
        None => openamp::run(matches),
    }
}

#[cfg(feature = "vhost-user")]
fn vhost_user(socket: &Path) -> Result<()> {
    crate::exchange::remote::vhost_user::serve(socket)
}

#[cfg(not(feature = "vhost-user"))]
fn vhost_user(_: &Path) -> Result<()> {
    anyhow::bail!("this latscope was built without it: cargo build --features vhost-user")
}
