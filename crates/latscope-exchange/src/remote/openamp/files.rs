//! Files with names known to other programs: which of them this process made, and their removal at the end.

use anyhow::{Context, Result, bail};
use latscope_os::window::MemoryWindow as Memory;
use latscope_process::files::HeldDirectory;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, ftruncate, openat};
use rustix::process::geteuid;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A name that was made here; removed with this value, unless another file has it by then.
#[derive(Debug)]
pub(super) struct Own {
    path: PathBuf,
    identity: (u64, u64),
}

impl Own {
    /// Records the file that is at a path now.
    ///
    /// # Errors
    /// There is no file.
    pub(super) fn new(path: &Path) -> Result<Own> {
        Ok(Own { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Maps the memory that the other side made, of any size.
///
/// # Errors
/// There is no such memory, or it belongs to another user.
pub(super) fn existing(path: &Path) -> Result<Memory> {
    map(open_existing(path)?, path, 1)
}

/// The file of such memory.
///
/// # Errors
/// The errors of [`existing`].
pub(in crate::remote) fn open_existing(path: &Path) -> Result<OwnedFd> {
    open(path, OFlags::empty())
}

/// New memory, which stays.
///
/// # Errors
/// Something is there already, or there is no room.
pub(super) fn new(path: &Path, size: usize) -> Result<Memory> {
    if path.symlink_metadata().is_ok() {
        bail!("{} exists: remove it, if no process uses it", path.display());
    }
    let file = open(path, OFlags::CREATE | OFlags::EXCL)?;
    enlarge(&file, path, size)?;
    map(file, path, size)
}

/// The memory, made, or taken over from an earlier run.
///
/// # Errors
/// What is there is too short, or another user's.
pub(super) fn made(path: &Path, size: usize) -> Result<(Memory, Own)> {
    let file = open(path, OFlags::CREATE)?;
    if fstat(&file)?.st_size == 0 {
        enlarge(&file, path, size)?;
    }
    Ok((map(file, path, size)?, Own::new(path)?))
}

fn enlarge(file: &OwnedFd, path: &Path, size: usize) -> Result<()> {
    ftruncate(file, size as u64).with_context(|| format!("{}: no room for {size} bytes", path.display()))
}

fn open(path: &Path, how: OFlags) -> Result<OwnedFd> {
    // A link could lead to a file of ours that is no memory.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | how;
    let held = HeldDirectory::of(path);
    let file = held
        .and_then(|held| Ok(openat(CWD, held.at(path), flags, Mode::RUSR | Mode::WUSR)?))
        .with_context(|| format!("cannot open the shared memory {}", path.display()))?;
    let found = fstat(&file)?;
    let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_nlink == 1;
    if !regular || found.st_uid != geteuid().as_raw() {
        bail!("{} is not a regular file of this user with one name: give another one", path.display());
    }
    Ok(file)
}

fn map(file: OwnedFd, path: &Path, size: usize) -> Result<Memory> {
    let found = fstat(&file)?.st_size;
    if found < size as i64 {
        bail!("{} has {found} bytes and not {size}: remove it, if no process uses it", path.display());
    }
    Memory::map(file).with_context(|| format!("cannot map {}", path.display()))
}
