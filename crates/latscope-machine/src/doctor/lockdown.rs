//! Row of the kernel's lockdown (kernel_lockdown(7)). A locked-down kernel refuses writable files of debugfs, to root
//! as well.

use super::{DoctorContext, DoctorFinding, boot_option, good, note_finding, unknown_finding};
use crate::kernel_log::KernelLog;

/// A lockdown in force.
pub(super) struct Lockdown {
    /// Level `integrity` or `confidentiality`; empty if only the fact is known.
    level: String,
    /// Source of the fact.
    source: &'static str,
}

impl Lockdown {
    /// Looks in securityfs, else in the log, which states the fact, and in the options, which state the level.
    pub fn find_active(context: &DoctorContext) -> Option<Lockdown> {
        if let Some(level) = context.root.choice(FILE) {
            return (level != "none").then_some(Lockdown { level, source: FILE });
        }
        let booted = boot_option(context.root, "lockdown");
        let source =
            if booted.is_some() { "the kernel's command line" } else { "the kernel's configuration" };
        let level = booted.or_else(|| forced(context).map(str::to_owned));
        if context.log().is_some_and(|log| log.find_message("Kernel is locked down from ").is_some()) {
            return Some(Lockdown { level: level.unwrap_or_default(), source: "the kernel's log" });
        }
        Some(Lockdown { level: level?, source })
    }

    /// Returns true if traces and performance counters of the kernel are refused, too.
    pub fn is_confidential(&self) -> bool {
        self.level == "confidentiality"
    }
}

/// The level that the kernel was built to have at each boot.
fn forced(context: &DoctorContext) -> Option<&'static str> {
    let configuration = context.configuration()?;
    ["integrity", "confidentiality"]
        .into_iter()
        .find(|level| configuration.is_set(&format!("LOCK_DOWN_KERNEL_FORCE_{}", level.to_uppercase())))
}

const FILE: &str = "/sys/kernel/security/lockdown";

/// Checks the lockdown and lists the refused files.
pub(super) fn lockdown(context: &DoctorContext) -> DoctorFinding {
    let Some(lockdown) = context.lockdown() else {
        let stated = context.root.exists(FILE)
            || context.configuration().is_some()
            || context.log().is_some_and(KernelLog::is_whole);
        return if stated { good("off") } else { unknown_finding(format!("{FILE} cannot be read")) };
    };
    let level = if lockdown.level.is_empty() { "on" } else { &lockdown.level };
    let traces = if lockdown.is_confidential() { ", traces, performance counters of the kernel" } else { "" };
    note_finding(
        format!(
            "{level}, says {}: settings in debugfs, machine-specific registers, unsigned modules{traces} are \
             refused, to root as well",
            lockdown.source
        ),
        None,
    )
}
