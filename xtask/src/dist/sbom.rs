//! Software bill of materials: the libraries that are in the binaries, with their licences.

use crate::shell;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of cargo-cyclonedx, which writes the list.
const VERSION: &str = "0.5.9";

/// Name of the list, without its last extension.
const NAME: &str = "latscope.cdx";

/// Writes `dist/latscope.cdx.json`, in the format CycloneDX.
///
/// # Errors
/// The program that writes it cannot be installed, or fails.
pub fn write_cyclonedx() -> Result<()> {
    let mut cargo = Command::new(install_cyclonedx()?);
    cargo.args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5", "--target", "all"]);
    cargo.args(["--manifest-path", "crates/latscope/Cargo.toml", "--override-filename", NAME]);
    let outcome = shell::run_command(&mut cargo);
    // It writes a list into each directory of a crate of the workspace.
    let list = take_list("crates/latscope")?;
    for entry in fs::read_dir("crates")? {
        let _ = take_list(entry?.path());
    }
    let _ = take_list("xtask");
    outcome?;
    // The list is the same wherever the workspace is.
    let here = shell::workspace().display().to_string();
    let list = list.context("cargo-cyclonedx wrote no list")?.replace(&here, "");
    Ok(fs::write(Path::new("dist").join(format!("{NAME}.json")), list)?)
}

/// Reads the list in a directory, and removes it. Returns nothing if there is no list.
fn take_list(directory: impl AsRef<Path>) -> Result<Option<String>> {
    let path = directory.as_ref().join(format!("{NAME}.json"));
    if !path.exists() {
        return Ok(None);
    }
    let list = fs::read_to_string(&path)?;
    fs::remove_file(&path)?;
    Ok(Some(list))
}

/// Path of the program, which is installed into the build directory.
fn install_cyclonedx() -> Result<PathBuf> {
    let root = std::path::absolute(shell::target().join("tools"))?;
    let mut install = shell::cargo("install cargo-cyclonedx --locked --debug --quiet --version");
    shell::run_command(install.arg(VERSION).arg("--root").arg(&root))?;
    Ok(root.join("bin/cargo-cyclonedx"))
}
