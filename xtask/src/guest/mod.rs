//! `cargo xtask guest`, which runs latscope in a machine whose Linux uses its own drivers for RPMsg.
//!
//! An unmodified Debian kernel for ARM boots in QEMU. Its remote processor is `latscope remote serve --vhost-user` on
//! this machine. A latscope built for ARM sends pings from the guest. Only Debian's kernels for armhf have the drivers,
//! and only new QEMUs lend a device to another process. It is the static binary for ARM that runs in the guest.

mod checks;
mod machine;

use crate::debian::AVAILABLE;
use anyhow::Result;
use machine::Machine;
use std::thread::{self, JoinHandle};

/// Thread that fetches and builds the guest's programs.
pub struct Preparing(Option<JoinHandle<Result<Machine>>>);

/// Begins to fetch and build at a low priority.
pub fn prepare() -> Preparing {
    let prepared = || {
        // Of this thread and what it starts; a machine that refuses is only busier.
        let _ = rustix::process::nice(19);
        Machine::prepared()
    };
    Preparing(AVAILABLE.then(|| thread::spawn(prepared)))
}

impl Preparing {
    /// Runs every check, and reports each outcome.
    ///
    /// # Errors
    /// The error is the reason why the checks cannot run on this machine.
    pub fn run_all(self, mut report: impl FnMut(&str, Result<()>)) -> Result<(), &'static str> {
        let Some(preparing) = self.0 else {
            return Err("RPMsg in a guest: QEMU and the compiler are fetched for x86-64, this is not");
        };
        match preparing.join().expect("it does not panic") {
            Ok(machine) => checks::run(&machine, report),
            Err(error) => report("guest: it can be set up", Err(error)),
        }
        Ok(())
    }
}

/// Runs the command: every check by name.
///
/// # Errors
/// The errors are those of [`Preparing::run_all`].
pub fn run() -> Result<bool> {
    crate::each_told(|each| prepare().run_all(each))
}
