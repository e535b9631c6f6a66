//! `latscope remote serve`: is there for somebody else, until Ctrl-C.

mod openamp;
mod pty;

use super::options::{self, check_used};
use crate::cli::Exit;
use crate::cli::options::{cpu_list, flag};
use anyhow::Result;
use clap::{Arg, ArgGroup, ArgMatches, Command, value_parser};
use latscope_exchange::remote::WAITS;
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
        .arg(flag("openamp", "The remote of --transport openamp, or of OpenAMP's own ping"))
        .arg(
            Arg::new("vhost-user")
                .long("vhost-user")
                .value_name("SOCKET")
                .value_parser(value_parser!(PathBuf))
                .help("The remote of a virtual machine's guest, whose monitor connects to SOCKET (device ID 7)"),
        )
        .args(pty::arguments())
        .args(both())
        .args(options::arguments())
        .group(ArgGroup::new("what").args(["pty", "openamp", "vhost-user"]).required(true))
}

/// Options of `--pty` and `--openamp`.
fn both() -> [Arg; 2] {
    [
        Arg::new("wait")
            .long("wait")
            .value_name("WORD")
            .value_parser(WAITS.to_vec())
            .help("How one waits for the other side; asleep if it is not said"),
        Arg::new("cpus")
            .long("cpus")
            .value_name("LIST")
            .value_parser(cpu_list)
            .help("CPUs of this process and of the remote, such as 0,1"),
    ]
    .map(|arg| arg.conflicts_with("vhost-user"))
}

/// Serves until it is ended.
///
/// # Errors
/// What is to be served cannot be had.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    if let Some(socket) = matches.get_one::<PathBuf>("vhost-user") {
        check_used(matches, "serve --vhost-user", |_| false)?;
        return vhost_user(socket).map(|()| Exit::Done);
    }
    if matches.get_flag("pty") { pty::run(matches) } else { openamp::run(matches) }
}

#[cfg(feature = "vhost-user")]
fn vhost_user(socket: &Path) -> Result<()> {
    latscope_exchange::remote::vhost_user::serve(socket)
}

#[cfg(not(feature = "vhost-user"))]
fn vhost_user(_: &Path) -> Result<()> {
    anyhow::bail!("this latscope was built without it: cargo build --features vhost-user")
}
