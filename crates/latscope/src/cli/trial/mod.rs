//! `latscope trial` and `latscope run`: many runs in turns, and what comes of them.

mod arguments;
mod carry_out;
mod executor;
mod hashes;
mod order;
mod outcome;
mod plan_file;
mod progress;
mod redacted;
pub mod saved;
mod settings;
mod shared;
mod shipped;
mod show;
mod traced;

pub use arguments::{PlanArguments, TrialArguments, run, trial};
#[cfg(test)]
pub use outcome::{SCHEMA, TrialOutcome};
pub use shared::TrialOutputOptions;
