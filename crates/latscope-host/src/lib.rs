//! The machine on which latscope runs: its description, sources of latency, other processes, load beside a measurement,
//! and the undoing of all changes of a run.
#![forbid(unsafe_code)]

pub mod account;
pub mod clean;
pub mod cpu_hog;
pub mod guardian;
pub mod leftover;
pub mod load;
pub mod machine;
pub mod message_groups;
pub mod modes;
pub mod not_restored;
mod process_group;
pub mod pseudo_terminal;
pub mod role;
pub mod stderr;
pub mod stdout;
pub mod terminal;
pub mod turn;
pub mod undo;

/// The roles of processes that this crate starts.
pub const ROLES: &[role::Role] = &[guardian::ROLE, cpu_hog::ROLE, load::ROLE];
