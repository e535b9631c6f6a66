//! `cargo xtask image`, which builds the remote processor for QEMU and talks to it.

#[path = "../../../responders/image/cargo.rs"]
mod cargo;
mod checks;
mod driver;
mod machine;

use crate::{setup, shell};
use anyhow::{Result, ensure};
use std::path::PathBuf;

/// Size that the image must not exceed, in bytes, since a program is to carry it.
const LIMIT: u64 = 60 << 10;

/// Builds the image, and returns its path.
///
/// # Errors
/// The build fails, or the image is too large.
pub fn build() -> Result<PathBuf> {
    let workspace = shell::workspace();
    let (mut cargo, image) = cargo::build(&workspace, &workspace.join("target/image"));
    shell::run_command(&mut cargo)?;
    let size = std::fs::metadata(&image)?.len();
    eprintln!("{}: {size} bytes", image.display());
    ensure!(size <= LIMIT, "the image has {size} bytes, more than {LIMIT}");
    Ok(image)
}

/// Checks formatting and lints, as for the workspace.
fn lint() -> Result<()> {
    let workspace = shell::workspace();
    shell::run_command(cargo::cargo(&workspace).args(["fmt", "--", "--check"]))?;
    let mut clippy = cargo::cargo(&workspace);
    clippy.args(["clippy", "--release", "--locked", "--offline", "--target-dir"]);
    shell::run_command(clippy.arg(workspace.join("target/image")).args(["--", "-D", "warnings"]))
}

/// Builds the image, boots it, and reports each check.
///
/// # Errors
/// The error is the reason why the checks cannot run on this machine.
pub fn run_all(mut report: impl FnMut(&str, Result<()>)) -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("the image for QEMU: it is built by the compiler of an x86-64 machine".into());
    }
    // Both sides poll: on one CPU each waits for the other's time slice.
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Err("the image for QEMU: it needs two CPUs".into());
    }
    report("image: formatting and lints", lint());
    match prepare_image() {
        Ok(image) => checks::run_all(&image, report),
        Err(error) => report("image: it is built", Err(error)),
    }
    Ok(())
}

fn prepare_image() -> Result<PathBuf> {
    setup::check_program(latscope_rpmsg::image::QEMU, "qemu-system-x86")?;
    build()
}

/// Runs the command: every check by name. Returns true if all passed.
///
/// # Errors
/// The errors are those of [`run_all`].
pub fn report_checks() -> Result<bool> {
    crate::each_told(|each| run_all(each))
}
