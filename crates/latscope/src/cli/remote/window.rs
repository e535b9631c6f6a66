//! `latscope remote window`: the shared memory of a port that makes none itself.

use crate::cli::CommandExit;
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
pub fn create_window(WindowArguments { create: path, size }: &WindowArguments) -> Result<CommandExit> {
    let sizes = openamp::SIZES;
    let [given, least, most, step] = [*size, *sizes.start(), *sizes.end(), openamp::PAGE].map(format_size);
    ensure!(
        sizes.contains(size) && size.is_multiple_of(openamp::PAGE),
        "--size {given}: choose {least} to {most}, in steps of {step}"
    );
    let window = openamp::create_window(path, *size as usize)?;
    let (ring, pool, file) = (&window.table.rings[0], &window.pools[0], path.display());
    latscope_process::stdout::write_text(&format!(
        "{file}: {given}, rings of {} entries, {} buffers of {} bytes for each direction\n",
        ring.num, pool.count, pool.buffer
    ))?;
    Ok(CommandExit::Done)
}
