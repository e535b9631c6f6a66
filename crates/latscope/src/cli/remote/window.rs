//! `latscope remote window`: the shared memory of a port that makes none itself.

use crate::cli::Exit;
use anyhow::{Result, ensure};
use clap::Args;
use latscope_core::units::{format_size, parse_size};
use latscope_exchange::remote::openamp;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct WindowArguments {
    /// A new file, in /dev/shm or another file system in memory
    #[arg(long, value_name = "FILE")]
    create: PathBuf,
    /// Bytes of it all; what is left behind the rings (64 KiB) is for buffers of 512 bytes
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "512KiB")]
    size: u64,
}

/// Creates the file of the shared memory.
///
/// # Errors
/// The file exists or cannot be made, or the size leaves no room.
pub fn run(WindowArguments { create: path, size }: &WindowArguments) -> Result<Exit> {
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
    latscope_process::stdout::write(&format!(
        "{}: {}, rings of {} entries, {} buffers of {} bytes for each direction\n",
        path.display(),
        format_size(*size),
        window.table.rings[0].num,
        window.pools[0].count,
        window.pools[0].buffer,
    ))?;
    Ok(Exit::Done)
}
