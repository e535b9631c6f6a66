//! Costs of making a process and of running a program in it.

mod fork;
mod program;
mod tiny_program;

use super::Probe;

/// The probes of the family.
pub static PROBES: &[&Probe] = &[&fork::FORK, &fork::VFORK, &program::SPAWN, &program::EXEC, &program::SHELL];
