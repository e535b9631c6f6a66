//! The machine on which latscope runs: description ([`snapshot`]), permissions ([`Trials`]), sources of latency
//! ([`checks`]), and the account of whose time it was ([`account`]).
//!
//! Files of the kernel are read through a [`SystemRoot`], so that a directory of small text files can stand for any
//! machine in a test.
#![forbid(unsafe_code)]

pub mod account;
pub mod binder_presence;
mod control_group;
mod doctor;
mod facts;
mod freezer;
mod held_back;
mod identity;
mod kernel_log;
mod ledger;
mod root;
mod snapshot;
pub mod starvation;
mod steal;
mod task_limit;
mod topology;
mod trials;

pub use control_group::{RealTimeBudget, real_time_budget};
pub use doctor::checks;
pub use facts::MachineFacts;
pub use freezer::Freezer;
pub use held_back::HeldBack;
pub use root::SystemRoot;
pub use snapshot::{describe_machine, snapshot};
pub use steal::Steal;
pub use task_limit::{TaskLimit, more_tasks};
pub use trials::{ThisMachine, Trials};

use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::machine::Machine;
use latscope_core::units::CpuList;

/// Repeats those checks of this machine that depend on the measured CPUs.
pub fn measured_on(machine: &mut Machine, cpus: &CpuList, catalogue: &ProbeCatalogue) {
    doctor::measured_on(&SystemRoot::real(), machine, cpus, catalogue);
}

/// CPUs of this machine that share a last-level cache, a list for each such cache; empty where sysfs does not say.
pub fn last_caches() -> Vec<CpuList> {
    let root = SystemRoot::real();
    topology::last_caches(&root, &topology::online(&root))
}

/// This machine, with all checks. Permissions are tried, in some 30 ms.
pub fn this_machine(catalogue: &ProbeCatalogue) -> Machine {
    let root = SystemRoot::real();
    let mut machine = snapshot(&root);
    machine.checks = checks(&root, &machine, &mut ThisMachine, catalogue);
    machine
}
