//! Checks of the packages: each is installed or unpacked into a root directory, and measures there.

use super::{IMAGE, Storage};
use crate::debian::{CACHE, KEYS, create_dir_once, machine_mirror};
use crate::{setup, shell};
use anyhow::{Context, Result, ensure};
use latscope_core::report::Report;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Suites of Debian into which the package is installed.
const SUITES: [&str; 3] = ["bookworm", "trixie", "sid"];

/// Mounts the file systems of the kernel in a root directory, and runs a command in it. The mounts end with the
/// command.
const ENTER: &str = r#"cd "$1"; shift; mkdir -p proc sys dev; mount -t proc proc proc; mount --rbind /sys sys
    mount --rbind /dev dev; exec chroot . "$@""#;

/// Does the same in a root directory as a shell of Android has it at the worst: no `/tmp`, and no `/dev` at all.
const ENTER_ANDROID: &str = r#"cd "$1"; shift; mkdir proc sys; mount -t proc proc proc; mount --rbind /sys sys
    exec chroot . "$@""#;

/// Directory of Android in which a shell may run programs.
const ANDROID_PLACE: &str = "data/local/tmp";

/// Unpackers into the current directory, by the ending of the package's name. Debian has no other program for these.
const UNPACKED: [(&str, &str); 3] = [
    ("x86_64.apk", r#"bsdtar -xf "$1""#),
    ("x86_64.ipk", r#"bsdtar -xOf "$1" ./data.tar.gz | bsdtar -x"#),
    ("x86_64.pkg.tar.zst", r#"bsdtar -xf "$1""#),
];

/// Runs every check and reports its outcome.
///
/// # Errors
/// The error is the reason why the checks cannot run on this machine.
pub fn run_all(mut report: impl FnMut(&str, Result<()>)) -> Result<(), &'static str> {
    if !rustix::process::geteuid().is_root() || !cfg!(target_arch = "x86_64") {
        return Err(
            "packages in roots: only root installs packages and changes roots, and they are for x86-64",
        );
    }
    for suite in SUITES {
        report(&format!("packages: the deb is installed in {suite}, measures and is removed"), deb(suite));
    }
    report("packages: the rpm is installed by rpm and measures", rpm());
    for (ending, unpack) in UNPACKED {
        report(
            &format!("packages: the file …{ending} is unpacked and measures"),
            check_unpacked(ending, unpack),
        );
    }
    report("packages: the binary for arm64 measures in a root like Android's", android());
    report("packages: the image of all architectures runs a survey", check_image());
    Ok(())
}

/// Only file in dist/ whose name ends so.
fn package(ending: &str) -> Result<PathBuf> {
    let entries = fs::read_dir("dist")?.collect::<Result<Vec<_>, _>>()?;
    let found =
        entries.iter().map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with(ending));
    Ok(std::path::absolute(found.with_context(|| format!("no file …{ending} in dist/"))?)?)
}

/// Command in a root directory, in a mount namespace of its own.
fn command_in_root(script: &str, root: &Path, words: &[&str]) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-ec", script, "sh"]).arg(root).args(words);
    unshare
}

/// Checks that the latscope in a root directory runs a quick survey.
fn measures(root: &Path) -> Result<()> {
    survey(&mut command_in_root(ENTER, root, &["/usr/bin/latscope"]))
}

/// Checks that a latscope runs a quick survey to its end, and that it measured.
///
/// # Errors
/// It fails, or its result has no figure of a cycle or of a system call.
pub fn survey(latscope: &mut Command) -> Result<()> {
    // Rounds that are asked for have no limit of time, which an emulated binary exceeds.
    let words = ["survey", "--quick", "--rounds", "1", "--quiet", "--json", "-"];
    let json = shell::output(latscope.args(words))?;
    let report = Report::from_json(json.as_bytes())?;
    for probe in ["cpu.cycle", "syscall.getppid"] {
        let measured = report.of_probe(probe).next().with_context(|| format!("no {probe} in the result"))?;
        ensure!(measured.summary.count > 0, "{probe} was not measured: {:?}", measured.joined_reasons());
    }
    Ok(())
}

/// Checks that a latscope says what is wrong with its arguments and exits with 1, also where errors have backtraces.
///
/// # Errors
/// It ends in another way, or without these words.
pub fn refuses(latscope: &mut Command) -> Result<()> {
    let ended = latscope.args(["cpu", "--no-such-option"]).env("RUST_BACKTRACE", "1").output()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let is_refused = ended.status.code() == Some(1) && said.contains("--no-such-option");
    ensure!(is_refused, "an unknown option ended it with {}: {said}", ended.status);
    Ok(())
}

/// Checks that latscope without a command prints ten numbers, in a root where nobody configured anything.
fn first_contact(root: &Path) -> Result<()> {
    let shown = shell::output(&mut command_in_root(ENTER, root, &["/usr/bin/latscope", "--quick"]))?;
    let has_number = |line: &&str| [" ns ", " µs ", " ms "].iter().any(|unit| line.contains(unit));
    let numbers = shown.lines().filter(has_number).count();
    ensure!(numbers >= 10, "only {numbers} lines with a number:\n{shown}");
    Ok(())
}

fn deb(suite: &str) -> Result<()> {
    let root = Path::new(CACHE).join(format!("root-{suite}"));
    create_dir_once(&root, |new| {
        let mut bootstrap = Command::new("mmdebstrap");
        bootstrap.args(["--quiet", "--variant=essential", &format!("--keyring={KEYS}"), suite]);
        // A mirror may lag behind: what it has is signed all the same, and new enough to install a package into.
        bootstrap.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
        shell::run_command(bootstrap.arg(new).arg(machine_mirror()?))
    })?;
    fs::copy(package("_amd64.deb")?, root.join("latscope.deb"))?;
    shell::output(&mut command_in_root(ENTER, &root, &["dpkg", "--install", "/latscope.deb"]))?;
    let outcome = measures(&root).and_then(|()| first_contact(&root));
    shell::output(&mut command_in_root(ENTER, &root, &["dpkg", "--purge", "latscope"]))?;
    outcome?;
    ensure!(!root.join("usr/bin/latscope").exists(), "the removed package left its program");
    Ok(())
}

fn rpm() -> Result<()> {
    let root = tempfile::tempdir()?;
    let mut rpm = Command::new("rpm");
    rpm.args(["--force-debian", "--dbpath", "/var/lib/rpm", "--root"]).arg(root.path());
    shell::output(rpm.arg("--install").arg(package("x86_64.rpm")?))?;
    measures(root.path())
}

fn check_unpacked(ending: &str, unpack: &str) -> Result<()> {
    let root = tempfile::tempdir()?;
    let mut sh = Command::new("sh");
    shell::output(sh.args(["-ec", unpack, "sh"]).arg(package(ending)?).current_dir(root.path()))?;
    measures(root.path())
}

fn android() -> Result<()> {
    setup::check_program("qemu-aarch64-static", "qemu-user-static")?;
    let root = tempfile::tempdir()?;
    let place = root.path().join(ANDROID_PLACE);
    fs::create_dir_all(&place)?;
    shell::copy_program(Path::new("dist/latscope-aarch64"), &place.join("latscope"))?;
    shell::copy_program(Path::new("/usr/bin/qemu-aarch64-static"), &place.join("emulator"))?;
    let path = |name| format!("/{ANDROID_PLACE}/{name}");
    let mut command = command_in_root(ENTER_ANDROID, root.path(), &[&path("emulator"), &path("latscope")]);
    ["TMPDIR", "HOME", "XDG_RUNTIME_DIR"].iter().for_each(|name| {
        command.env_remove(name);
    });
    survey(command.env("LATSCOPE_RUNNER", path("emulator")))
}

fn check_image() -> Result<()> {
    let storage = Storage::new()?;
    let archive = format!("oci-archive:{}", package(IMAGE)?.display());
    let container = shell::output(storage.buildah().args(["from", "--quiet", &archive]))?;
    survey(storage.buildah().args(["run", container.trim(), "--", "/latscope"]))
}
