//! The directory of one step, empty at first and removed after it. Files are
//! opened relative to it: one name is looked up, whatever the path above.

use super::directory::waits_for_others;
use crate::engine::bench::Bench;
use crate::engine::gate::Gate;
use anyhow::{Context, Result};
use latscope_core::plan::Point;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;

/// Bytes of one read or write of a large file: what programs that copy files
/// commonly use.
pub const CHUNK: usize = 64 << 10;

/// An open scratch directory.
pub struct Scratch(OwnedFd);

/// A file made for reading.
pub struct Filled {
    /// Open for reading.
    pub file: OwnedFd,
    /// Bytes that could be written.
    pub bytes: u64,
    /// Why not all could.
    pub error: Option<Errno>,
}

impl Scratch {
    /// Opens the scratch directory of the step.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub fn open(bench: &Bench) -> Result<Scratch> {
        let path = bench.scratch()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty());
        Ok(Scratch(directory.with_context(|| format!("cannot open {}", path.display()))?))
    }

    /// The open directory.
    pub fn directory(&self) -> &OwnedFd {
        &self.0
    }

    /// Opens a file in the directory; a new one belongs to this user only.
    ///
    /// # Errors
    /// Those of open(2).
    #[inline]
    pub fn file(&self, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        openat(&self.0, name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// Those of unlink(2).
    #[inline]
    pub fn remove(&self, name: &CStr) -> rustix::io::Result<()> {
        unlinkat(&self.0, name, AtFlags::empty())
    }

    /// Makes a file of `bytes`, or as many as the file system takes.
    ///
    /// # Errors
    /// The file cannot be made at all.
    pub fn filled(&self, name: &CStr, bytes: u64) -> rustix::io::Result<Filled> {
        let writer = self.file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        let content: Vec<u8> = (0..CHUNK).map(|at| at as u8).collect();
        let (mut written, mut error) = (0, None);
        while written < bytes && error.is_none() {
            let chunk = CHUNK.min((bytes - written) as usize);
            match rustix::io::write(&writer, &content[..chunk]) {
                Ok(0) => error = Some(Errno::NOSPC),
                Ok(count) => written += count as u64,
                Err(Errno::INTR) => {}
                Err(failure) => error = Some(failure),
            }
        }
        Ok(Filled { file: self.file(name, OFlags::RDONLY)?, bytes: written, error })
    }
}

/// The gate for operations that are served from memory: strict where only this
/// thread is at work, open where the file system waits for others.
pub fn gate(point: &Point) -> Gate {
    if waits_for_others(point.text("filesystem")) { Gate::Open } else { Gate::Thread }
}
