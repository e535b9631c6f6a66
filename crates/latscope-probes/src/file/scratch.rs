//! The directory of one step, empty at first and removed after it. Files are opened relative to it: only one
//! name is looked up, independent of the path above.

use super::FileProbeDirectory;
use super::directory::waits_for_others;
use crate::prelude::*;
use anyhow::ensure;
use latscope_os::memory::available_memory;
use rustix::fs::{AtFlags, CWD, Mode, fstat, fstatvfs, openat, unlinkat};
use rustix::process::geteuid;

/// Bytes of one read or write of a large file, a usual number in programs that copy files.
pub const CHUNK: usize = 64 << 10;

/// An open scratch directory.
pub(crate) struct Scratch(OwnedFd);

/// A file made for reading.
pub(crate) struct Filled {
    /// Descriptor that is open for reading.
    pub file: OwnedFd,
    /// Bytes that could be written.
    pub bytes: u64,
    /// Error that ended the writing early.
    pub error: Option<Errno>,
}

impl Scratch {
    /// Opens the scratch directory of the step.
    ///
    /// # Errors
    /// The step has no scratch directory, it cannot be opened, or another user put one in its place.
    pub fn open_for_step(bench: &Bench) -> Result<Scratch> {
        Scratch::open_at(bench.scratch()?)
    }

    fn open_at(path: &Path) -> Result<Scratch> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty());
        let directory = directory.with_context(|| format!("cannot open {}", path.display()))?;
        let about = fstat(&directory)?;
        let is_ours = about.st_uid == geteuid().as_raw() && about.st_mode & 0o077 == 0;
        ensure!(is_ours, "{} is not the directory any more that was made there", path.display());
        Ok(Scratch(directory))
    }

    /// Returns the descriptor of the directory.
    pub fn directory(&self) -> &OwnedFd {
        &self.0
    }

    /// Opens a file in the directory; a new one belongs to this user only.
    ///
    /// # Errors
    /// The errors of open(2).
    #[inline]
    pub fn file(&self, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        openat(&self.0, name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
    }

    /// Removes a file from the directory.
    ///
    /// # Errors
    /// The errors of unlink(2).
    #[inline]
    pub fn remove(&self, name: &CStr) -> rustix::io::Result<()> {
        unlinkat(&self.0, name, AtFlags::empty())
    }

    /// Bytes that files here may take: part of the free space and of the
    /// available memory, so that neither runs out for others meanwhile.
    pub fn usable_bytes(&self) -> u64 {
        let memory = available_memory() / 2;
        match fstatvfs(&self.0) {
            // Some file systems do not know how large they are.
            Ok(space) if space.f_blocks > 0 => {
                let free = space.f_bavail.saturating_mul(space.f_frsize);
                memory.min(free - free / 16)
            }
            _ => memory,
        }
    }

    /// Makes a file of `bytes`, or as many as the file system takes.
    ///
    /// # Errors
    /// The file cannot be made at all.
    pub fn create_filled(&self, name: &CStr, bytes: u64) -> rustix::io::Result<Filled> {
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

/// Returns the reason why a file of `needed` bytes is not made where `room` bytes may be filled, and the
/// remedy.
pub(crate) fn too_large(needed: u64, room: u64) -> (String, &'static str) {
    let (needed, room) = (format_size(needed), format_size(room));
    let reason = format!(
        "it needs a file of {needed}, and only {room} may be filled: half of the available memory, 15/16 of the free space"
    );
    (reason, "free some space or memory, or choose another directory (--dir)")
}

/// The gate for operations that are served from memory: strict where only this
/// thread is at work, open where the file system waits for others.
pub(super) fn gate(place: &FileProbeDirectory) -> SampleGate {
    if waits_for_others(&place.filesystem) { SampleGate::Open } else { SampleGate::Thread }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    #[test]
    fn a_directory_that_took_the_place_of_the_scratch_directory_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("own");
        std::fs::DirBuilder::new().mode(0o700).create(&own).unwrap();
        assert!(Scratch::open_at(&own).is_ok());
        std::os::unix::fs::symlink(&own, place.path().join("link")).unwrap();
        assert!(Scratch::open_at(&place.path().join("link")).is_err());
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Scratch::open_at(&own).is_err());
    }

    #[test]
    fn what_is_too_large_says_how_much_there_is_and_what_to_do() {
        let (reason, remedy) = too_large(64 << 20, 1 << 20);
        assert!(
            reason.contains("64 MiB") && reason.contains("1 MiB") && remedy.contains("--dir"),
            "{reason}"
        );
    }
}
