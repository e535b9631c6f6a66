//! Pseudo terminals.

use crate::modes::Modes;
use anyhow::{Context, Result};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A pseudo terminal of our own, raw.
#[derive(Debug)]
pub struct Terminal {
    /// Our end.
    pub master: OwnedFd,
    /// The other end. While it is open, reads of the master do not fail when another process closes
    /// its own.
    pub slave: OwnedFd,
    /// Its name for others.
    pub path: PathBuf,
}

impl Terminal {
    /// Opens one.
    ///
    /// # Errors
    /// There are no more of them, or none at all.
    pub fn open() -> Result<Terminal> {
        let open = || -> io::Result<Terminal> {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let master = openpt(flags)?;
            grantpt(&master)?;
            unlockpt(&master)?;
            let slave = ioctl_tiocgptpeer(&master, flags)?;
            let path = PathBuf::from(std::ffi::OsString::from_vec(ptsname(&master, [])?.into_bytes()));
            Modes::of(&slave)?.raw().apply(&slave)?;
            rustix::io::ioctl_fionbio(&master, true)?;
            Ok(Terminal { master, slave, path })
        };
        open().context("no pseudo terminal can be had")
    }

    /// The number of the master, as a descriptor.
    pub fn descriptor(&self) -> i32 {
        self.master.as_raw_fd()
    }
}
