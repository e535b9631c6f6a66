//! The processes of a run: what starts them ([`role`]), the load beside a measurement, what each may print, and the
//! undoing of all that a run changed.
#![forbid(unsafe_code)]

pub mod clean;
pub mod cpu_hog;
pub mod files;
pub mod guardian;
pub mod halted;
pub mod leftover;
pub mod load;
pub mod made_name;
pub mod message_groups;
pub mod modes;
pub mod not_restored;
pub mod openers;
pub mod output;
mod process_group;
pub mod pseudo_terminal;
pub mod role;
pub mod stderr;
pub mod stdout;
pub mod terminal;
pub mod turn;
pub mod undo;

/// The roles of processes that this crate starts.
pub const ROLES: &[role::ProcessRole] = &[guardian::ROLE, cpu_hog::ROLE, load::ROLE];
