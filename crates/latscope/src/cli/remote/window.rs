//! `latscope remote window`: the shared memory of a port that makes none itself.

use crate::cli::Exit;
use anyhow::{Result, ensure};
use clap::{Arg, ArgMatches, Command, value_parser};
use latscope_core::units::{format_size, parse_size};
use latscope_exchange::remote::openamp;
use std::path::PathBuf;

/// The command.
pub fn command() -> Command {
    Command::new("window")
        .about("Makes the memory that a responder and --transport openamp share, with its resource table")
        .arg(
            Arg::new("create")
                .long("create")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("A new file, in /dev/shm or another file system in memory"),
        )
        .arg(
            Arg::new("size")
                .long("size")
                .value_name("SIZE")
                .default_value("512KiB")
                .value_parser(|text: &str| parse_size(text))
                .help("Bytes of it all; what is left behind the rings (64 KiB) is for buffers of 512 bytes"),
        )
}

/// Makes it.
///
/// # Errors
/// The file exists or cannot be made, or a size that has no room.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let (Some(path), Some(size)) = (matches.get_one::<PathBuf>("create"), matches.get_one::<u64>("size"))
    else {
        return Ok(Exit::Error);
    };
    let sizes = openamp::SIZES;
    ensure!(
        sizes.contains(size) && size.is_multiple_of(openamp::PAGE),
        "--size {}: choose {} to {}, in steps of {}",
        format_size(*size),
        format_size(*sizes.start()),
        format_size(*sizes.end()),
        format_size(openamp::PAGE),
    );
    let window = openamp::create(path, *size as usize)?;
    latscope_host::stdout::write(&format!(
        "{}: {}, rings of {} entries, {} buffers of {} bytes for each direction\n",
        path.display(),
        format_size(*size),
        window.table.rings[0].num,
        window.pools[0].count,
        window.pools[0].buffer,
    ))?;
    Ok(Exit::Done)
}
