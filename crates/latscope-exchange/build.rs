//! Builds the image that QEMU runs for `latscope remote --transport ivshmem`.
//!
//! It takes the compiler of an x86-64 PC, which has all that is needed. Built elsewhere, or
//! without the sources beside, latscope has no image, says so when it is asked for, and why.

#[path = "../../responders/image/cargo.rs"]
mod image;

use std::env;
use std::path::{Path, PathBuf};

/// What the image is made of, from the workspace.
const SOURCES: [&str; 4] =
    ["responders/image", "crates/latscope-rpmsg/src", "crates/latscope-rpmsg/Cargo.toml", "Cargo.toml"];

fn main() {
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    let workspace = workspace.canonicalize().unwrap_or(workspace);
    let out = PathBuf::from(variable("OUT_DIR"));
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }
    let bytes = made(&workspace, &out).unwrap_or_else(|reason| {
        println!("cargo::warning=without the image for QEMU: {reason}");
        println!("cargo::rustc-env=LATSCOPE_NO_IMAGE={reason}");
        Vec::new()
    });
    let place = out.join("latscope-image");
    std::fs::write(&place, bytes).expect("the directory for output can be written");
    println!("cargo::rustc-env=LATSCOPE_IMAGE={}", place.display());
}

/// The image, or in one line why there is none.
fn made(workspace: &Path, out: &Path) -> Result<Vec<u8>, String> {
    let host = variable("HOST");
    if host != image::TARGET {
        return Err(format!("it takes the compiler of {}, and this is that of {host}", image::TARGET));
    }
    let (mut cargo, image) = image::build(workspace, &out.join("image"));
    let ran = cargo.output().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        let line = said.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
        return Err(line.to_owned());
    }
    std::fs::read(&image).map_err(|error| format!("{}: {error}", image.display()))
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
