//! The arguments that both commands take.

use super::super::compare::percent;
use super::super::options::JsonArgument;
use clap::{Args, value_parser};
use latscope_core::json;
use std::path::PathBuf;

// What both take.
#[derive(Debug, Args)]
pub struct SharedArguments {
    /// Directory of the results: a new or an empty one (default: one in the current directory, named after the time)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Runs of each arm, or repetitions of a plan
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Seed of the order of the runs
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=json::LARGEST))]
    pub seed: Option<u64>,
    /// What differs by less is the same
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%")]
    pub same: f64,
    /// Every point, not only those that differ
    #[arg(long)]
    pub all: bool,
    /// Show the runs in their order, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub json: JsonArgument,
    /// Write every figure as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// No tables and no progress
    #[arg(long, short)]
    pub quiet: bool,
}
