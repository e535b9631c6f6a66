//! Kernels, unpacked from Debian's packages and never installed.

use super::modules;
use crate::debian::{self, CACHE, DebianSuite};
use crate::shell;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, fs};

/// A kernel of Debian 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VmKernel {
    /// 6.1, PREEMPT_RT
    Rt,
    /// 6.1, as most machines run it: no timerlat and osnoise tracers
    Std,
    /// 6.12, PREEMPT_RT
    Rt612,
}

/// Directories of modules that no test in an emulated machine needs, which are most of a kernel's size.
const HARDWARE: [&str; 9] = [
    "sound", "drivers/gpu", "drivers/hwmon", "drivers/iio", "drivers/infiniband", "drivers/media",
    "drivers/net", "drivers/scsi", "drivers/usb",
];

impl fmt::Display for VmKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VmKernel::Rt => "rt",
            VmKernel::Std => "std",
            VmKernel::Rt612 => "rt612",
        })
    }
}

impl VmKernel {
    /// Suite of Debian, and the package that depends on the newest such kernel of the suite.
    fn source(self) -> (&'static str, &'static str) {
        match self {
            VmKernel::Rt => ("bookworm", "linux-image-rt-amd64"),
            VmKernel::Std => ("bookworm", "linux-image-amd64"),
            VmKernel::Rt612 => ("bookworm-backports", "linux-image-rt-amd64"),
        }
    }

    /// Fetches and unpacks the kernel, once.
    ///
    /// # Errors
    /// The kernel cannot be fetched, or its package has an unknown layout.
    pub fn unpack_once(self) -> Result<Unpacked> {
        let (suite, package) = self.source();
        fetch_kernel(&self.to_string(), || DebianSuite::new(suite), package)
    }
}

/// Fetches and unpacks the kernel of a metapackage of a suite, once under a name.
///
/// # Errors
/// The errors are those of [`VmKernel::unpack_once`].
pub fn fetch_kernel(
    name: &str,
    suite: impl FnOnce() -> Result<DebianSuite>,
    metapackage: &str,
) -> Result<Unpacked> {
    let dir = Path::new(CACHE).join(name);
    debian::create_dir_once(&dir, |dir| {
        let suite = suite()?;
        suite.unpack(&suite.kernel_package(metapackage)?, dir)?;
        prepare_modules(dir)
    })?;
    Unpacked::from_dir(dir)
}

/// Removes the modules that are not needed, and lists the dependencies of the modules.
fn prepare_modules(dir: &Path) -> Result<()> {
    let kernel = Unpacked::from_dir(dir.to_owned())?;
    for hardware in HARDWARE {
        let _ = fs::remove_dir_all(kernel.modules().join("kernel").join(hardware));
    }
    let mut depmod = Command::new(debian::busybox()?);
    shell::output(depmod.args(["depmod", "-b"]).arg(dir).arg(&kernel.release)).map(drop)
}

/// Files of an unpacked kernel.
pub struct Unpacked {
    dir: PathBuf,
    /// Release as `uname -r` prints it.
    pub release: String,
}

impl Unpacked {
    fn from_dir(dir: PathBuf) -> Result<Unpacked> {
        let modules = dir.join("lib/modules");
        let entry = fs::read_dir(&modules).ok().and_then(|mut entries| entries.next());
        let Some(Ok(entry)) = entry else { bail!("no kernel in {}", dir.display()) };
        Ok(Unpacked { dir, release: entry.file_name().to_string_lossy().into_owned() })
    }

    /// Path of the image that boots.
    pub fn image_path(&self) -> PathBuf {
        self.dir.join("boot").join(format!("vmlinuz-{}", self.release))
    }

    fn modules(&self) -> PathBuf {
        self.dir.join("lib/modules").join(&self.release)
    }

    /// Paths of the files to load for these modules, in this order.
    ///
    /// # Errors
    /// The kernel has no such module.
    pub fn load_order(&self, names: &[String]) -> Result<Vec<PathBuf>> {
        let read = |name| fs::read_to_string(self.modules().join(name)).with_context(|| format!("no {name}"));
        let (separate, built_in) = (read("modules.dep")?, read("modules.builtin")?);
        let files = modules::load_order(&separate, &built_in, names)
            .with_context(|| format!("in Linux {}", self.release))?;
        Ok(files.into_iter().map(|file| self.modules().join(file)).collect())
    }
}
