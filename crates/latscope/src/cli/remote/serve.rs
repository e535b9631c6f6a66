//! `latscope remote serve`: plays the remote for somebody else.

use crate::cli::Exit;
use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

/// The command.
pub fn command() -> Command {
    Command::new("serve").about("Plays the remote: answers pings until Ctrl-C").arg(
        Arg::new("vhost-user")
            .long("vhost-user")
            .value_name("SOCKET")
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help("For the guest of a virtual machine, whose monitor connects to SOCKET (device ID 7)"),
    )
}

/// Answers until it is ended.
///
/// # Errors
/// The path is taken, or the other side speaks another protocol.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    if let Some(socket) = matches.get_one::<PathBuf>("vhost-user") {
        vhost_user(socket)?;
    }
    Ok(Exit::Done)
}

#[cfg(feature = "vhost-user")]
fn vhost_user(socket: &Path) -> Result<()> {
    crate::exchange::remote::vhost_user::serve(socket)
}

#[cfg(not(feature = "vhost-user"))]
fn vhost_user(_: &Path) -> Result<()> {
    anyhow::bail!("this latscope was built without it: cargo build --features vhost-user")
}
