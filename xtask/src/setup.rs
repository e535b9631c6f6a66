//! Requirements of the tests beside Rust and its linker.

use crate::shell;
use anyhow::{Result, bail};
use std::process::Command;

/// Requirement of tests: a program, a package or a component.
struct TestRequirement {
    /// Name of the requirement.
    name: &'static str,
    /// Debian package, component of Rust's toolchain, or npm package that provides it.
    source: RequirementSource,
    /// Consequence of its absence.
    without: &'static str,
    /// True if `cargo xtask test` uses it without `--all`.
    quick: bool,
}

enum RequirementSource {
    Debian(&'static str),
    Rustup(&'static str),
    /// Package of npm that provides the program. Setup continues without it.
    Npm(&'static str),
    /// Module of Go that is the program. Setup continues without it.
    Go(&'static str),
}

use RequirementSource::{Debian, Go, Npm, Rustup};

const fn need(
    name: &'static str,
    source: RequirementSource,
    without: &'static str,
    quick: bool,
) -> TestRequirement {
    TestRequirement { name, source, without, quick }
}

const NEEDED: [TestRequirement; 34] = [
    need("cargo-clippy", Rustup("clippy"), "the check of lints fails", true),
    need("cargo-fmt", Rustup("rustfmt"), "the check of the format fails", true),
    need("objdump", Debian("binutils"), "the tests of the timed loops fail", true),
    need(
        "setpriv",
        Debian("util-linux"),
        "tests without root's rights and of the virtual machine fail",
        true,
    ),
    need(PROFILE, Debian("golang-github-containers-common"), "tests in a container are skipped", true),
    need("trace-cmd", Debian("trace-cmd"), "tests that open a trace in it are skipped", true),
    need("cyclictest", Debian("rt-tests"), "tests against the real programs are skipped", true),
    need("qemu-system-x86_64", Debian("qemu-system-x86"), "tests of the remote in QEMU are skipped", true),
    need("chromium", Debian("chromium"), "tests of the page in a browser are skipped", false),
    need("xmllint", Debian("libxml2-utils"), "the test of well-formed pages and pictures is skipped", false),
    need("java", Debian("default-jre-headless"), VALIDATOR, false),
    need("npm", Debian("npm"), VALIDATOR, false),
    need("vnu", Npm("vnu-jar"), VALIDATOR, false),
    need("node", Debian("nodejs"), "tests of time lines in Perfetto are skipped", false),
    need(PIP, Debian("python3 python3-pip"), "tests of time lines in Perfetto are skipped", false),
    need(VENV, Debian("python3-venv"), "the tests of the Python package fail", false),
    need("java", Debian("openjdk-17-jre-headless"), "the tests with Spark are skipped", false),
    need(
        "qemu-riscv64-static",
        Debian("qemu-user-static"),
        "tests of binaries for other machines fail",
        false,
    ),
    need("mmdebstrap", Debian("mmdebstrap"), "the tests of the packages fail", false),
    need("rpm", Debian("rpm"), "the tests of the packages fail", false),
    need("bsdtar", Debian("libarchive-tools"), "the tests of the packages fail", false),
    need("buildah", Debian("buildah"), "the packages cannot be made", false),
    need("promtool", Debian("prometheus"), "tests of OpenMetrics and of dashboards are skipped", false),
    need(
        "prometheus-node-exporter",
        Debian("prometheus-node-exporter"),
        "the test of OpenMetrics by node_exporter is skipped",
        false,
    ),
    need(
        "versitygw",
        Go("github.com/versity/versitygw/cmd/versitygw@v1.8.0"),
        "the tests of a lake in S3 are skipped",
        false,
    ),
    need("sshd", Debian("openssh-server"), DEPLOY, false),
    need("clush", Debian("clustershell"), DEPLOY, false),
    need("rsync", Debian("rsync"), DEPLOY, false),
    need("curl", Debian("curl"), DEPLOY, false),
    need("slurmctld", Debian("slurmctld slurmd slurm-client"), DEPLOY, false),
    need("munged", Debian("munge"), DEPLOY, false),
    need("lava-run", Debian("lava-dispatcher"), DEPLOY, false),
    need("systemd-analyze", Debian("systemd"), DEPLOY, false),
    need("valgrind", Debian("valgrind"), "tests under Valgrind are skipped", false),
];

/// Consequence of the absence of the Nu HTML Checker.
const VALIDATOR: &str = "the test of valid HTML is skipped";

/// Consequence of the absence of a program that starts others on machines.
const DEPLOY: &str = "its test of deploy/ is skipped";

/// Program that fetches Perfetto's importer.
const PIP: &str = "python3 -m pip";

/// Program that makes environments for the Python package.
const VENV: &str = "python3 -m venv";

/// Seccomp filter of containers.
const PROFILE: &str = "/usr/share/containers/seccomp.json";

impl TestRequirement {
    fn is_there(&self) -> bool {
        let succeeds = |program: &str, words: &[&str]| {
            Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
        };
        match self.name {
            PIP => succeeds("python3", &["-m", "pip", "--version"]),
            VENV => succeeds("python3", &["-c", "import ensurepip, venv"]),
            PROFILE => std::path::Path::new(PROFILE).exists(),
            name => shell::is_on_path(name),
        }
    }

    fn missing(quick: bool) -> impl Iterator<Item = &'static TestRequirement> {
        NEEDED.iter().filter(move |need| (need.quick || !quick) && !need.is_there())
    }
}

/// `cargo xtask setup`, which installs what is missing, as root.
///
/// # Errors
/// Something is missing and this process is not root, or it cannot be installed. The text names the exact command.
pub fn install_missing() -> Result<()> {
    components()?;
    let mut packages = Vec::new();
    for need in TestRequirement::missing(false) {
        if let Debian(package) = need.source {
            packages.extend(package.split(' '));
        }
    }
    if !packages.is_empty() {
        install_packages(&packages)?;
    }
    // npm itself may just have been installed. Where it reaches no registry, tests name what they lack.
    for need in TestRequirement::missing(false) {
        let (mut install, package) = match need.source {
            Npm(package) => (npm(), package),
            Go(module) => (go(), module),
            Debian(_) | Rustup(_) => continue,
        };
        if let Err(error) = shell::run_command(install.arg(package)) {
            println!("missing: {} ({package}): {}: {error:#}", need.name, need.without);
        }
    }
    Ok(())
}

/// Installs the missing components of the Rust toolchain.
///
/// # Errors
/// rustup cannot install one.
pub fn components() -> Result<()> {
    for need in TestRequirement::missing(false) {
        if let Rustup(component) = need.source {
            shell::run_command(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.args(["install", "--global", "--ignore-scripts", "--no-audit", "--no-fund"]);
    npm
}

/// Installation of a module of Go, which Debian's Go 1.19 is too old for.
fn go() -> Command {
    let mut go = Command::new("go");
    go.arg("install").env("GOBIN", "/usr/local/bin");
    go
}

/// Prints the missing requirements, and the consequences of their absence.
pub fn name_missing(quick: bool) {
    for need in TestRequirement::missing(quick) {
        let (Debian(package) | Rustup(package) | Npm(package) | Go(package)) = need.source;
        println!("missing: {} ({package}): {}; `cargo xtask setup` installs it", need.name, need.without);
    }
}

/// Checks that a program is installed.
///
/// # Errors
/// The program is not installed.
pub fn check_program(program: &str, package: &str) -> Result<()> {
    if shell::is_on_path(program) {
        return Ok(());
    }
    bail!("{program} ({package}) is not installed: `cargo xtask setup` installs what tests need");
}

fn install_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    let root = rustix::process::geteuid().is_root();
    if !root || !shell::is_on_path("apt-get") {
        bail!(
            "the tests need {list}: install them, on Debian with `sudo apt-get install {list}`, and run again"
        );
    }
    shell::run_command(Command::new("apt-get").arg("update"))?;
    shell::run_command(
        Command::new("apt-get").args(["install", "-y", "--no-install-recommends"]).args(packages),
    )
}
