//! Static binaries: single files that run on any machine of an architecture.

mod debian;
mod sbom;

use crate::debian::AVAILABLE;
use crate::shell;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Stripped size that a binary must not exceed, in bytes.
const LIMIT: u64 = 10 << 20;

/// Cargo profile with which the binaries are built.
pub const PROFILE: &str = "dist";

/// Cargo profile with which the tests build those that only an emulator runs.
pub const EMULATED: &str = "emulated";

/// Compiler flags that make a program static.
const STATIC: &str = "-C target-feature=+crt-static -C relocation-model=static";

/// Target to build for.
pub struct Target {
    /// Name of the target.
    pub triple: &'static str,
    /// Linker for the target; `None` if the host's compiler can link for it.
    linker: Option<&'static str>,
    /// Prefix of the linker's own flags, where a compiler calls the linker. Both targets have lld.
    through: &'static str,
}

const TARGETS: [Target; 2] = [
    Target { triple: "x86_64-unknown-linux-gnu", linker: None, through: "-Wl," },
    Target { triple: "aarch64-unknown-linux-musl", linker: Some("rust-lld"), through: "" },
];

/// Builds the binary of each architecture into dist/, with the list of what is in them and their checksums. The first
/// binary is that of this machine. `others` is the profile of the other ones.
///
/// # Errors
/// A build fails, or a binary is larger than the limit.
pub fn build_binaries(others: &str) -> Result<Vec<PathBuf>> {
    let binaries = [of_rustup(others)?, of_debian(others)?].concat();
    sbom::write_cyclonedx()?;
    write_checksums()?;
    Ok(binaries)
}

/// Builds the binaries for targets whose standard library rustup has. The first is that of this machine. `others` is
/// the profile of the other ones.
///
/// # Errors
/// A build fails, or a binary is larger than the limit.
pub fn of_rustup(others: &str) -> Result<Vec<PathBuf>> {
    let targets = available();
    let profiles = BTreeSet::from_iter(targets.iter().map(|target| target.profile(others)));
    for profile in profiles {
        let of_profile: Vec<_> =
            targets.iter().copied().filter(|target| target.profile(others) == profile).collect();
        // In one go: optimising a whole program keeps one CPU busy for each.
        shell::run_command(&mut compile(&of_profile, profile))?;
    }
    let deliver = |target: &&Target| {
        let profile = target.profile(others);
        copy_to_dist(&output_dir(target, profile).join("latscope"), target.architecture(), profile)
    };
    targets.iter().map(deliver).collect()
}

/// Builds the binaries for architectures whose standard library Debian has.
///
/// # Errors
/// A package cannot be fetched, a build fails, or a binary is larger than the limit.
pub fn of_debian(profile: &str) -> Result<Vec<PathBuf>> {
    if !AVAILABLE {
        return Ok(Vec::new());
    }
    let others = debian::architectures();
    let programs = debian::latscope(&others, profile)?;
    programs.iter().zip(others).map(|(program, other)| copy_to_dist(program, other.name, profile)).collect()
}

/// Writes the checksums of all files in dist/.
///
/// # Errors
/// A file cannot be read.
pub fn write_checksums() -> Result<()> {
    const SUM: &str = "rm -f SHA256SUMS && find * -type f | LC_ALL=C sort | xargs sha256sum > ../SHA256SUMS.new \
        && mv ../SHA256SUMS.new SHA256SUMS";
    shell::output(Command::new("sh").args(["-ec", SUM]).current_dir("dist")).map(drop)
}

/// Builds the binary for 32-bit ARM that the tests run.
///
/// # Errors
/// The compiler cannot be fetched, or the build fails.
pub fn for_arm() -> Result<PathBuf> {
    let arm: Vec<_> = debian::architectures().into_iter().filter(|found| found.name == "armv7").collect();
    debian::latscope(&arm, EMULATED)?.pop().context("no build for ARM")
}

/// Targets whose standard library is installed. Prints the other targets.
pub fn available() -> Vec<&'static Target> {
    let (there, missing): (Vec<_>, Vec<_>) = TARGETS.iter().partition(|target| is_available(target.triple));
    for Target { triple, .. } in missing {
        eprintln!("{triple}: its standard library is not installed: `rustup target add {triple}`");
    }
    there
}

impl Target {
    /// Profile to build with: `others` for another architecture than that of this machine.
    pub fn profile<'a>(&self, others: &'a str) -> &'a str {
        if self.architecture() == std::env::consts::ARCH { PROFILE } else { others }
    }

    /// Name of the architecture, with which the name of a binary ends.
    fn architecture(&self) -> &'static str {
        self.triple.split('-').next().unwrap_or_default()
    }

    /// Flags with which the linker keeps a single copy of functions with the same code, and no index of the unwinding
    /// tables. The tables themselves stay: without them an error aborts where `RUST_BACKTRACE` is set.
    fn size_flags(&self) -> String {
        let flags = ["--icf=all", "--no-eh-frame-hdr"];
        flags.map(|flag| format!("-C link-arg={}{flag}", self.through)).join(" ")
    }
}

/// Returns true if Rust's standard library for a target is installed.
pub fn is_available(triple: &str) -> bool {
    let libraries =
        shell::output(Command::new("rustc").args(["--print", "target-libdir", "--target", triple]));
    libraries.is_ok_and(|path| fs::read_dir(path.trim()).is_ok_and(|mut entries| entries.next().is_some()))
}

/// Builds for this machine only, without a copy in dist/.
///
/// # Errors
/// The build fails.
pub fn for_this_machine(profile: &str) -> Result<PathBuf> {
    let target = this_target()?;
    let mut cargo = compile(&[target], profile);
    shell::output(cargo.arg("--quiet"))?;
    Ok(output_dir(target, profile).join("latscope"))
}

/// Builds an example of the command for this machine.
///
/// # Errors
/// The build fails.
pub fn example(name: &str, profile: &str) -> Result<PathBuf> {
    let target = this_target()?;
    let mut cargo = compile(&[target], profile);
    shell::output(cargo.args(["--quiet", "--example", name]))?;
    Ok(output_dir(target, profile).join("examples").join(name))
}

/// Builds a package outside of the workspace as a static program for this machine. Returns the directory of its
/// programs.
///
/// # Errors
/// The build fails.
pub fn package(directory: &Path, to: &Path) -> Result<PathBuf> {
    let target = this_target()?;
    let mut cargo = shell::cargo("build --release --locked --manifest-path");
    cargo.arg(directory.join("Cargo.toml")).args(["--target", target.triple, "--target-dir"]).arg(to);
    shell::run_command(cargo.env("RUSTFLAGS", STATIC))?;
    Ok(to.join(target.triple).join("release"))
}

fn this_target() -> Result<&'static Target> {
    let target = TARGETS.iter().find(|target| target.triple.starts_with(std::env::consts::ARCH));
    target.context("no static binary is built for this architecture")
}

/// Copies a built binary to dist/.
fn copy_to_dist(from: &Path, architecture: &str, profile: &str) -> Result<PathBuf> {
    fs::create_dir_all("dist")?;
    let to = PathBuf::from("dist").join(format!("latscope-{architecture}"));
    shell::copy_program(from, &to).with_context(|| format!("no binary at {}", from.display()))?;
    let size = fs::metadata(&to)?.len();
    eprintln!("{}: {:.2} MB", to.display(), size as f64 / 1e6);
    if profile == PROFILE && size > LIMIT {
        bail!("{} has {size} bytes, more than the limit of {LIMIT}", to.display());
    }
    Ok(to)
}

fn compile(targets: &[&Target], profile: &str) -> Command {
    let mut cargo = build(profile);
    for target in targets {
        cargo.args(["--target", target.triple]);
    }
    configure(&mut cargo, targets, profile);
    cargo
}

/// Command that builds latscope from this commit.
fn build(profile: &str) -> Command {
    let mut cargo = shell::cargo("build --package latscope --locked");
    cargo.args(["--profile", profile]);
    prepare_environment(&mut cargo);
    cargo
}

/// Sets the variables with which a command, or the cargo that it calls, compiles static programs.
pub fn configure(cargo: &mut Command, targets: &[&Target], profile: &str) {
    prepare_environment(cargo);
    for target in targets {
        let mut flags = vec![STATIC.to_owned()];
        if profile == PROFILE {
            flags.push(target.size_flags());
        }
        cargo.env(variable(target.triple, "RUSTFLAGS"), flags.join(" "));
        if let Some(linker) = target.linker {
            cargo.env(variable(target.triple, "LINKER"), linker);
        }
    }
}

/// Takes the flags away that would replace those of the targets, and names the commit for the result file.
fn prepare_environment(cargo: &mut Command) {
    // It would replace those of the targets.
    cargo.env_remove("RUSTFLAGS");
    // The result file names the commit; an archive without history has none.
    if let Ok(commit) = shell::output(Command::new("git").args(["rev-parse", "HEAD"])) {
        cargo.env("LATSCOPE_COMMIT", commit.trim());
    }
}

/// Name of a variable of cargo for a target.
fn variable(triple: &str, name: &str) -> String {
    format!("CARGO_TARGET_{}_{name}", triple.to_uppercase().replace('-', "_"))
}

fn output_dir(target: &Target, profile: &str) -> PathBuf {
    let directory = if profile == "dev" { "debug" } else { profile };
    shell::target().join(target.triple).join(directory)
}
