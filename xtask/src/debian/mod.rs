//! Packages of Debian, unpacked without being installed.
//!
//! apt gets a configuration and a state of its own in the cache, so that the
//! machine's sources stay as they are; only its mirror, proxies and keys are
//! used.

pub mod sid;

use crate::{setup, shell};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory of unpacked packages, which may be removed at any time.
pub const CACHE: &str = "target/vm";

/// True if this machine runs the programs of the packages of Debian's amd64 architecture.
pub const AVAILABLE: bool = cfg!(target_arch = "x86_64");

/// Mirror of Debian that is used if this machine names none.
const MIRROR: &str = "http://deb.debian.org/debian";

/// Path of the keys that Debian's suites are signed with.
pub const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Makes a directory unless it exists: complete, or not at all.
///
/// # Errors
/// The errors are those of `make`, or the directory cannot be created.
pub fn create_dir_once(dir: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if dir.exists() {
        return Ok(());
    }
    fs::create_dir_all(CACHE)?;
    let unfinished = tempfile::tempdir_in(CACHE)?;
    let new = unfinished.path().join("new");
    fs::create_dir(&new)?;
    make(&new)?;
    match fs::rename(&new, dir) {
        // Another run was faster.
        Err(_) if dir.exists() => Ok(()),
        renamed => Ok(renamed?),
    }
}

/// Path of the static busybox, which runs in the VM and makes its initial file system.
///
/// # Errors
/// The package cannot be fetched.
pub fn busybox() -> Result<PathBuf> {
    let dir = Path::new(CACHE).join("busybox");
    create_dir_once(&dir, |dir| DebianSuite::new("bookworm")?.unpack("busybox-static", dir))?;
    let programs = [dir.join("bin/busybox"), dir.join("usr/bin/busybox")];
    let program = programs.into_iter().find(|program| program.exists());
    Ok(std::path::absolute(program.context("no busybox in busybox-static")?)?)
}

/// Suite of Debian, with its own configuration of apt.
pub struct DebianSuite {
    /// Options that confine apt to the suite.
    options: Vec<String>,
}

impl DebianSuite {
    /// Fetches the list of packages of the suite.
    ///
    /// # Errors
    /// This is not a machine with apt, or the mirror cannot be reached.
    pub fn new(name: &str) -> Result<DebianSuite> {
        DebianSuite::for_architectures(name, &["amd64"])
    }

    /// Fetches the list of packages for these architectures. `package:armhf` is a package of the second.
    ///
    /// # Errors
    /// The errors are those of [`DebianSuite::new`].
    pub fn for_architectures(name: &str, architectures: &[&str]) -> Result<DebianSuite> {
        setup::check_program("dpkg-deb", "dpkg")?;
        ensure!(
            shell::is_on_path("apt-get"),
            "kernels come from Debian's packages: this needs a machine with apt"
        );
        let state = std::path::absolute(
            Path::new(CACHE).join("apt").join(format!("{name}-{}", architectures.join("-"))),
        )?;
        fs::create_dir_all(state.join("lists/partial"))?;
        fs::create_dir_all(state.join("archives/partial"))?;
        let keys = if Path::new(KEYS).exists() { format!("[signed-by={KEYS}] ") } else { String::new() };
        let mirror = machine_mirror()?;
        fs::write(state.join("sources.list"), format!("deb {keys}{mirror} {name} main\n"))?;
        let suite = DebianSuite { options: options(&state, architectures) };
        shell::output(suite.apt("apt-get").args(["-qq", "update"]))?;
        Ok(suite)
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options).env("LC_ALL", "C");
        command
    }

    /// Name of the kernel package that a metapackage depends on.
    ///
    /// # Errors
    /// The metapackage depends on no kernel.
    pub fn kernel_package(&self, metapackage: &str) -> Result<String> {
        self.dependency(metapackage, "linux-image-")
    }

    /// Name of the package with this beginning that another package depends on.
    ///
    /// # Errors
    /// The package depends on no such package.
    pub fn dependency(&self, package: &str, beginning: &str) -> Result<String> {
        let text = shell::output(self.apt("apt-cache").args(["depends", package]))?;
        let found = dependency(&text, beginning);
        found.with_context(|| format!("{package} depends on no {beginning}…: {text}"))
    }

    /// Names of a package and all packages that it depends on, as an empty machine would need them.
    ///
    /// # Errors
    /// There is no such package.
    pub fn with_dependencies(&self, package: &str) -> Result<Vec<String>> {
        let mut simulation = self.apt("apt-get");
        simulation.args(["--simulate", "--no-install-recommends", "install", package]);
        Ok(to_install(&shell::output(&mut simulation)?))
    }

    /// Downloads a package and unpacks it into a directory.
    ///
    /// # Errors
    /// There is no such package, or it cannot be fetched.
    pub fn unpack(&self, package: &str, to: &Path) -> Result<()> {
        self.unpack_all(&[package], to)
    }

    /// Downloads packages and unpacks them into a directory.
    ///
    /// # Errors
    /// The errors are those of [`DebianSuite::unpack`].
    pub fn unpack_all(&self, packages: &[impl AsRef<str>], to: &Path) -> Result<()> {
        let packages: Vec<&str> = packages.iter().map(AsRef::as_ref).collect();
        eprintln!("fetching {}", packages.join(" "));
        let place = tempfile::tempdir_in(CACHE)?;
        let mut download = self.apt("apt-get");
        shell::output(download.args(["-qq", "download"]).args(&packages).current_dir(place.path()))?;
        let files: Vec<_> = fs::read_dir(place.path())?.collect::<Result<_, _>>()?;
        ensure!(files.len() == packages.len(), "apt fetched {} of {} packages", files.len(), packages.len());
        files.iter().try_for_each(|file| {
            shell::output(Command::new("dpkg-deb").arg("-x").arg(file.path()).arg(to)).map(drop)
        })
    }
}

fn options(state: &Path, architectures: &[&str]) -> Vec<String> {
    let state = state.display();
    let architectures = architectures.iter().map(|name| format!("APT::Architectures::={name}"));
    let confined = [
        format!("Dir::State={state}"),
        format!("Dir::Cache={state}"),
        "Dir::State::status=/dev/null".to_owned(),
        format!("Dir::Etc::sourcelist={state}/sources.list"),
        "Dir::Etc::sourceparts=-".to_owned(),
        "APT::Sandbox::User=root".to_owned(),
        // Whatever apt is asked for: nothing is ever installed into this machine by it.
        "Dir::Bin::dpkg=/bin/false".to_owned(),
    ];
    architectures.chain(confined).map(|option| format!("-o{option}")).collect()
}

/// Names of the packages that a simulation would install.
fn to_install(simulated: &str) -> Vec<String> {
    let lines = simulated.lines().filter_map(|line| line.strip_prefix("Inst "));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Mirror of Debian that this machine uses.
///
/// # Errors
/// This is not a machine with apt.
pub fn machine_mirror() -> Result<String> {
    let format = "$(ORIGIN)|$(LABEL)|$(REPO_URI)";
    let mut targets = Command::new("apt-get");
    let targets = shell::output(targets.args(["indextargets", "--format", format, "Identifier: Packages"]))?;
    Ok(mirror(&targets).to_owned())
}

/// Mirror of Debian, from lines of `origin|label|address`.
fn mirror(targets: &str) -> &str {
    targets.lines().find_map(|line| line.strip_prefix("Debian|Debian|")).unwrap_or(MIRROR)
}

/// Name of the package with this beginning that another package depends on, from the output of `apt-cache depends`.
fn dependency(text: &str, beginning: &str) -> Option<String> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("Depends: "));
    names.map(str::trim).find(|name| name.starts_with(beginning)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_metapackage_names_its_kernel() {
        let text = "linux-image-rt-amd64\n  Depends: linux-base\n  Depends: linux-image-6.1.0-56-rt-amd64\n";
        assert_eq!(dependency(text, "linux-image-").as_deref(), Some("linux-image-6.1.0-56-rt-amd64"));
        assert_eq!(dependency("linux-image-rt-amd64\n", "linux-image-"), None);
    }

    #[test]
    fn a_simulation_names_what_it_would_install() {
        let text = "Inst libc6 (2.43-7 Debian:unstable [amd64])\nInst qemu-system-arm:amd64 (1 [x])\nConf libc6 (2.43-7)\n";
        assert_eq!(to_install(text), ["libc6", "qemu-system-arm:amd64"]);
    }

    #[test]
    fn apt_can_install_nothing() {
        let options = options(Path::new("/state"), &["amd64", "armhf"]);
        assert!(options.contains(&"-oDir::Bin::dpkg=/bin/false".to_owned()), "{options:?}");
        assert!(options.contains(&"-oAPT::Architectures::=armhf".to_owned()), "{options:?}");
    }

    #[test]
    fn the_machines_own_mirror_is_used_but_not_that_of_security_updates() {
        let targets = "Debian|Debian-Security|http://a/security/\nDebian|Debian|http://a/debian/\n";
        assert_eq!(mirror(targets), "http://a/debian/");
        assert_eq!(mirror("Ubuntu|Ubuntu|http://b/ubuntu\n"), MIRROR);
    }

    #[test]
    fn what_is_made_once_is_whole_or_not_there() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("made");
        let failed = create_dir_once(&dir, |new| {
            fs::write(new.join("half"), "")?;
            bail!("no more")
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert!(!dir.exists());
        fs::create_dir(&dir).unwrap();
        create_dir_once(&dir, |_| bail!("made twice")).unwrap();
    }
}
