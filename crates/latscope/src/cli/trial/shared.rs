//! The arguments that both commands take.

use super::super::judged::{ComparisonFiles, percent};
use super::super::live::LiveArguments;
use super::super::options::{STYLES, one_of, some_time, word_parser};
use clap::{Args, value_parser};
use latscope_core::json;
use latscope_engine::observers::ProgressStyle;
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
    // Without a default: a plan has a seed of its own.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=json::LARGEST))]
    pub seed: Option<u64>,
    /// What differs by less is the same
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%")]
    pub same: f64,
    /// Every point, not only those that differ
    #[arg(long)]
    pub all: bool,
    /// Exit with 2 where an arm is worse than the first, with 3 where the runs do not decide it
    #[arg(long, value_name = "WHAT", value_parser = word_parser([("worse", "an arm is worse than the first")]))]
    pub fail_on: Option<String>,
    /// Longest time of each command of the shell: before a run, to restore, to see what a plan needs
    #[arg(long, value_name = "T", value_parser = some_time, default_value = "1m")]
    pub hook_timeout: u64,
    /// Leave out of the results, their files and stderr what says whose machine it is; the runs get this option, too
    #[arg(long)]
    redact: bool,
    /// Wait for the end of other latscopes on this host, at most so long, such as 5m
    #[arg(long, value_name = "T", value_parser = some_time)]
    pub wait: Option<u64>,
    /// How progress is shown on stderr
    #[arg(long, value_name = "WORD", value_parser = one_of(&STYLES), default_value = "auto")]
    pub progress: ProgressStyle,
    /// Show the runs in their order, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub files: ComparisonFiles,
    #[command(flatten)]
    pub live: LiveArguments,
    /// No tables and no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Destination of an outcome, and its amount of text.
#[derive(Debug, Clone, Copy)]
pub struct TrialOutputOptions<'a> {
    pub files: &'a ComparisonFiles,
    /// Every point, not only those that differ.
    pub all: bool,
    /// True if no text is wanted.
    pub quiet: bool,
}

impl SharedArguments {
    /// Returns the destination of the outcome.
    pub fn output_options(&self) -> TrialOutputOptions<'_> {
        TrialOutputOptions { files: &self.files, all: self.all, quiet: self.quiet }
    }
}
