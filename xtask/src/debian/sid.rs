//! Programs of Debian's unstable suite, which need the C library of that suite. They are unpacked, never installed, and
//! started by the loader of that suite.

use super::{CACHE, DebianSuite, create_dir_once};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Suite of Debian with the newest QEMU and Rust.
const SUITE: &str = "sid";

/// Directory of the libraries, below a root.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Root directory with programs and all libraries that they are linked to.
pub struct DebianRoot(PathBuf);

impl DebianRoot {
    /// Unpacks the chosen packages once under a name. They are of this machine's architecture and of further ones.
    ///
    /// # Errors
    /// The packages cannot be fetched.
    pub fn unpack_once(
        name: &str,
        further: &[&str],
        choose: impl FnOnce(&DebianSuite) -> Result<Vec<String>>,
    ) -> Result<DebianRoot> {
        let dir = std::path::absolute(Path::new(CACHE).join(name))?;
        create_dir_once(&dir, |dir| {
            let suite = DebianSuite::for_architectures(SUITE, &[&["amd64"], further].concat())?;
            suite.unpack_all(&choose(&suite)?, dir)
        })?;
        Ok(DebianRoot(dir))
    }

    /// Path in the root.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// Words that start a program of the root.
    pub fn program_words(&self, path: &str) -> Vec<String> {
        let libraries = self.path(LIBRARIES);
        let more = libraries.join("systemd");
        let loader = libraries.join("ld-linux-x86-64.so.2");
        let path = self.path(path);
        [
            loader.display().to_string(),
            "--library-path".to_owned(),
            format!("{}:{}", libraries.display(), more.display()),
            path.display().to_string(),
        ]
        .to_vec()
    }

    /// Path of the only entry in a directory of the root.
    ///
    /// # Errors
    /// The directory is empty or missing.
    pub fn only(&self, path: &str) -> Result<PathBuf> {
        let place = self.path(path);
        let entry = fs::read_dir(&place).ok().and_then(|mut entries| entries.next());
        Ok(entry.with_context(|| format!("nothing in {}", place.display()))??.path())
    }
}

/// QEMU for ARM, in a version with `vhost-user-test-device`.
pub struct Emulator(DebianRoot);

impl Emulator {
    /// Fetches the emulator, once.
    ///
    /// # Errors
    /// The errors are those of [`DebianRoot::unpack_once`].
    pub fn fetch_once() -> Result<Emulator> {
        let choose = |suite: &DebianSuite| suite.with_dependencies("qemu-system-arm");
        Ok(Emulator(DebianRoot::unpack_once("qemu-arm", &[], choose)?))
    }

    /// Command that starts the emulator, which ends when this process ends.
    pub fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(self.0.program_words("usr/bin/qemu-system-arm"));
        // Else it loads the modules of a QEMU that is installed, which is another one.
        command.env("QEMU_MODULE_DIR", self.0.path(LIBRARIES).join("qemu"));
        command.arg("-L").arg(self.0.path("usr/share/qemu"));
        command
    }
}
