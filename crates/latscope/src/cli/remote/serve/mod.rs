//! `latscope remote serve`: serves another process until Ctrl-C.

mod openamp;
mod pty;

use super::options::TransportOptions;
use crate::cli::CommandExit;
use crate::cli::options::word_parser;
use crate::cli::options::{Dynamic, cpu_list};
use anyhow::Result;
use clap::Args;
use latscope_core::units::CpuList;
use latscope_exchange::remote::WAITS;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct ServeArguments {
    #[command(flatten)]
    what: WhatArguments,
    /// How one waits for the other side; asleep if it is not said
    #[arg(long, value_name = "WORD", value_parser = word_parser(WAITS.iter().copied()), conflicts_with = "vhost_user")]
    wait: Option<String>,
    /// CPUs of this process and of the remote, such as 0,1
    #[arg(long, value_name = "LIST", value_parser = cpu_list, conflicts_with = "vhost_user")]
    cpus: Option<CpuList>,
    #[command(flatten, next_help_heading = "With --pty")]
    pty: pty::PtyArguments,
    #[command(flatten)]
    options: Dynamic<TransportOptions>,
}

// One option for each that it can be.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct WhatArguments {
    /// A pseudo terminal, whose path is printed: what is written to it goes to a remote, and what comes from there can
    /// be read from it
    #[arg(long)]
    pty: bool,
    /// The remote of --transport openamp, or of OpenAMP's own ping
    #[arg(long)]
    openamp: bool,
    /// The remote of a virtual machine's guest, whose monitor connects to SOCKET (device ID 7)
    #[arg(long, value_name = "SOCKET")]
    vhost_user: Option<PathBuf>,
}

/// Serves until it is ended.
///
/// # Errors
/// The remote cannot be set up, or an option is not for it.
pub fn serve_remote(asked: &ServeArguments) -> Result<CommandExit> {
    if let Some(socket) = &asked.what.vhost_user {
        asked.options.check_used("serve --vhost-user", |_| false)?;
        return vhost_user(socket).map(|()| CommandExit::Done);
    }
    if asked.what.pty { pty::serve_pty(asked) } else { openamp::serve_openamp(asked) }
}

#[cfg(feature = "vhost-user")]
fn vhost_user(socket: &Path) -> Result<()> {
    latscope_exchange::remote::vhost_user::serve_guest(socket)
}

#[cfg(not(feature = "vhost-user"))]
fn vhost_user(_: &Path) -> Result<()> {
    anyhow::bail!("this latscope was built without it: cargo build --features vhost-user")
}
