//! Pseudo terminals for exchanges.

use crate::modes::Modes;
use anyhow::{Context, Result};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Pseudo terminal in raw mode.
#[derive(Debug)]
pub struct PseudoTerminal {
    /// Master end, which this process uses.
    pub master: OwnedFd,
    /// Slave end. While it is open, reads of the master do not fail when another process closes its own descriptor.
    pub slave: OwnedFd,
    /// Path of the slave for other processes.
    pub path: PathBuf,
}

impl PseudoTerminal {
    /// Opens a new pseudo terminal.
    ///
    /// # Errors
    /// The system has no more pseudo terminals, or none at all.
    pub fn open() -> Result<PseudoTerminal> {
        Self::create_pair().context("no pseudo terminal can be had")
    }

    fn create_pair() -> io::Result<PseudoTerminal> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(ptsname(&master, [])?.into_bytes()));
        Modes::of_terminal(&slave)?.raw().apply_to(&slave)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(PseudoTerminal { master, slave, path })
    }

    /// The number of the master's descriptor.
    pub fn master_descriptor(&self) -> i32 {
        self.master.as_raw_fd()
    }
}
