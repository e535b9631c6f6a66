//! `cargo xtask image`: builds the remote processor for QEMU, and talks to it.

mod checks;
mod driver;
mod machine;

use crate::{setup, shell};
use anyhow::{Result, ensure};
use std::path::PathBuf;

/// Where its package is: outside of the workspace, since it is linked as firmware.
const PACKAGE: &str = "responders/image";

/// The target it is built for, that of a PC's `core`: nothing but the compiler is needed.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Bytes that it must not exceed: it is to be carried by a program.
const LIMIT: u64 = 60 << 10;

/// Variables that would add to how it is linked, or replace it.
const VARIABLES: [&str; 4] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
];

/// Builds the image, and tells where it is.
///
/// # Errors
/// The build fails, or the image is too large.
pub fn build() -> Result<PathBuf> {
    let target = shell::workspace().join("target/image");
    // The same bytes wherever the sources are: messages of panics have their paths.
    let place = shell::workspace();
    let remap = format!("target.{TARGET}.rustflags=['--remap-path-prefix={}=latscope']", place.display());
    let mut cargo = cargo("build --release --locked --offline");
    shell::run(cargo.args(["--config", &remap, "--target-dir"]).arg(&target))?;
    let image = target.join(TARGET).join("release/latscope-image");
    let size = std::fs::metadata(&image)?.len();
    eprintln!("{}: {size} bytes", image.display());
    ensure!(size <= LIMIT, "the image has {size} bytes, more than {LIMIT}");
    Ok(image)
}

/// Cargo in the directory of the image, whose configuration it reads there.
fn cargo(words: &str) -> std::process::Command {
    let mut cargo = shell::cargo(words);
    cargo.current_dir(shell::workspace().join(PACKAGE));
    VARIABLES.iter().for_each(|variable| {
        cargo.env_remove(variable);
    });
    cargo
}

/// Formatting and lints, as of the workspace.
fn lint() -> Result<()> {
    shell::run(&mut cargo("fmt -- --check"))?;
    let target = shell::workspace().join("target/image");
    let mut clippy = cargo("clippy --release --locked --offline");
    shell::run(clippy.arg("--target-dir").arg(target).args(["--", "-D", "warnings"]))
}

/// Builds the image, boots it, and reports each check.
///
/// # Errors
/// Why this cannot be done on this machine.
pub fn run_all(mut report: impl FnMut(&str, Result<()>)) -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("the image for QEMU: it is built by the compiler of an x86-64 machine".into());
    }
    // Both sides poll: on one CPU each waits for the other's time slice.
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err("the image for QEMU: it needs two CPUs".into());
    }
    report("image: formatting and lints", lint());
    match prepare() {
        Ok(image) => checks::run_all(&image, report),
        Err(error) => report("image: it is built", Err(error)),
    }
    Ok(())
}

fn prepare() -> Result<PathBuf> {
    setup::program(latscope_rpmsg::image::QEMU, "qemu-system-x86")?;
    build()
}

/// The command: every check by name; whether all passed.
///
/// # Errors
/// As [`run_all`].
pub fn run() -> Result<bool> {
    let mut passed = true;
    let outcome = run_all(|name, outcome| {
        passed &= outcome.is_ok();
        match outcome {
            Ok(()) => println!("ok      {name}"),
            Err(error) => println!("failed  {name}: {error:#}"),
        }
    });
    outcome.map_err(anyhow::Error::msg)?;
    Ok(passed)
}
