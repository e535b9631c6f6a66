//! How the image is built: by latscope, which carries it, and by `cargo xtask image`.
//! Each of them has this file as a module.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The target it is built for, that of a PC's `core`: nothing but the compiler is needed.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Variables that would add to how it is linked, or replace it.
const VARIABLES: [&str; 6] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
    "RUSTC_WORKSPACE_WRAPPER",
];

/// Where its package is, in the workspace that it is no member of.
pub fn package(workspace: &Path) -> PathBuf {
    workspace.join("responders/image")
}

/// Cargo in the directory of the image, whose configuration it reads there.
pub fn cargo(workspace: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(package(workspace));
    VARIABLES.iter().for_each(|variable| {
        cargo.env_remove(variable);
    });
    cargo
}

/// The command that builds it, and where the image is then.
pub fn build(workspace: &Path, directory: &Path) -> (Command, PathBuf) {
    // The same bytes wherever the sources are: messages of panics have their paths.
    let place = workspace.display();
    let remap = format!("target.{TARGET}.rustflags=['--remap-path-prefix={place}=latscope']");
    let mut cargo = cargo(workspace);
    cargo
        .args(["build", "--release", "--locked", "--offline", "--config", &remap, "--target-dir"])
        .arg(directory);
    (cargo, directory.join(TARGET).join("release/latscope-image"))
}
