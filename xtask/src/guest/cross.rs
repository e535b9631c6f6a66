//! Build of latscope for ARM.
//!
//! The compiler is Debian's, whose standard library for armhf has exactly the same version. The linker comes with Rust,
//! and links Debian's C library.

use super::sid::Root;
use crate::vm::CACHE;
use crate::vm::initramfs::quoted;
use crate::{setup, shell};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "armv7-unknown-linux-gnueabihf";

/// Package of the standard library, which depends on the library that the compiler is linked to.
const LIBRARY: &str = "libstd-rust-dev";
/// Beginning of the name of the library that the compiler is linked to.
const RUNTIME: &str = "libstd-rust-1";

/// Packages with the compiler, its libraries for both machines, and the C library to link.
const PACKAGES: [&str; 4] = ["rustc", LIBRARY, "libstd-rust-dev:armhf", "libc6-dev:armhf"];

/// Builds the static latscope, and returns its path. The build is for debugging, since the figures of an emulator mean
/// nothing.
///
/// # Errors
/// A package cannot be fetched, or the build fails.
pub fn latscope() -> Result<PathBuf> {
    let compiler = compiler()?;
    let wrapper = wrapper(&compiler)?;
    let target = shell::target().join("armhf");
    let mut cargo = shell::cargo("build --package latscope --locked --target");
    cargo.arg(TARGET).arg("--target-dir").arg(&target).env("RUSTC", std::path::absolute(wrapper)?);
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_PROFILE_DEV_STRIP", "true");
    let variable = |name| format!("CARGO_TARGET_{}_{name}", TARGET.to_uppercase().replace('-', "_"));
    cargo.env(variable("LINKER"), linker()?).env(variable("RUSTFLAGS"), flags(&compiler)?);
    ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTUP_TOOLCHAIN"].iter().for_each(|name| {
        cargo.env_remove(name);
    });
    shell::run(&mut cargo)?;
    Ok(target.join(TARGET).join("debug/latscope"))
}

fn compiler() -> Result<Root> {
    Root::unpacked("rust-armhf", |suite| {
        let mut packages = suite.with_dependencies(&suite.dependency(LIBRARY, RUNTIME)?)?;
        // The start-up files and the unwinder come with the version of gcc that all of the suite is built by.
        let gcc = packages.iter().find_map(|name| name.strip_prefix("gcc-")?.strip_suffix("-base"));
        packages.push(format!("libgcc-{}-dev:armhf", gcc.context("the compiler depends on no gcc-N-base")?));
        packages.extend(PACKAGES.map(str::to_owned));
        Ok(packages)
    })
}

/// Writes a program that cargo takes for the compiler.
fn wrapper(compiler: &Root) -> Result<PathBuf> {
    let words: Vec<String> = compiler.program("usr/bin/rustc").iter().map(|word| quoted(word)).collect();
    let root = quoted(&compiler.path("usr").display().to_string());
    let path = Path::new(CACHE).join("rustc-armhf");
    let script = format!("#!/bin/sh\nexec {} --sysroot {root} \"$@\"\n", words.join(" "));
    // Cargo builds all anew when its compiler is newer than before.
    if fs::read_to_string(&path).is_ok_and(|before| before == script) {
        return Ok(path);
    }
    shell::write_script(&path, &script)?;
    Ok(path)
}

/// Path of the linker that comes with Rust. It links for any machine.
fn linker() -> Result<PathBuf> {
    setup::program("rustc", "rustc")?;
    let root = shell::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let path = Path::new(root.trim()).join("lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
    ensure!(path.exists(), "no rust-lld at {}: it comes with the Rust of rustup", path.display());
    Ok(path)
}

/// Flags that gcc would pass to the linker of a static program.
fn flags(compiler: &Root) -> Result<String> {
    let libraries = compiler.path("usr/lib/arm-linux-gnueabihf");
    let gcc = compiler.only("usr/lib/gcc/arm-linux-gnueabihf")?;
    let files = [
        libraries.join("crt1.o"),
        libraries.join("crti.o"),
        gcc.join("crtbeginT.o"),
        gcc.join("crtend.o"),
        libraries.join("crtn.o"),
    ];
    let places = [&libraries, &gcc].map(|place| format!("-L{}", place.display()));
    let link = files.iter().map(|file| file.display().to_string()).chain(places);
    let link: Vec<String> = link.map(|word| format!("-Clink-arg={word}")).collect();
    Ok(format!(
        "-Ctarget-feature=+crt-static -Crelocation-model=static -Clinker-flavor=ld.lld {}",
        link.join(" ")
    ))
}
