//! `cargo xtask guest`, which runs latscope in a machine whose Linux uses its own drivers for RPMsg.
//!
//! An unmodified Debian kernel for ARM boots in QEMU. Its remote processor is `latscope remote serve --vhost-user` on
//! this machine. A latscope built for ARM sends pings from the guest. Only Debian's kernels for armhf have the drivers,
//! and only new QEMUs lend a device to another process. It is the static binary for ARM that runs in the guest.

mod checks;
mod machine;

use crate::debian::AVAILABLE;
use anyhow::Result;
use machine::GuestMachine;

/// Runs every check, and reports each outcome.
///
/// # Errors
/// The error is the reason why the checks cannot run on this machine.
pub fn run_all(mut report: impl FnMut(&str, Result<()>)) -> Result<(), &'static str> {
    if !AVAILABLE {
        return Err("RPMsg in a guest: QEMU and the compiler are fetched for x86-64, this is not");
    }
    match GuestMachine::prepare_machine() {
        Ok(machine) => checks::run_checks(&machine, report),
        Err(error) => report("guest: it can be set up", Err(error)),
    }
    Ok(())
}

/// Runs the command: every check by name.
///
/// # Errors
/// The errors are those of [`run_all`].
pub fn report_checks() -> Result<bool> {
    crate::each_told(|each| run_all(each))
}
