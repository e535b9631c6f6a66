//! The options of commands that set runs against each other.

use super::input::InputArguments;
use super::options::JsonArgument;
use super::output::{is_stdout, requested_files, show_text, write_json, write_requested};
use super::results;
use anyhow::Result;
use clap::Args;
use latscope_core::json;
use latscope_judge::compare;
use latscope_views::DisplayOptions;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How runs are set against each other, and where what was found is written.
#[derive(Debug, Args)]
pub struct JudgedArguments {
    /// What differs by less is the same
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%")]
    pub same: f64,
    /// Only these families or probes
    #[arg(long, value_name = "FAMILY|PROBE,…", value_delimiter = ',', value_parser = results::parse_filter_name)]
    pub only: Vec<String>,
    /// Seed of the resampling
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=json::LARGEST), default_value_t = 1)]
    pub seed: u64,
    /// Judge also where other processes used far more of the CPUs on one side
    #[arg(long)]
    pub accept_busy: bool,
    #[command(flatten)]
    pub input: InputArguments,
    #[command(flatten)]
    pub files: ComparisonFiles,
}

impl JudgedArguments {
    /// Returns how the runs are compared.
    pub fn options(&self) -> compare::ComparisonOptions {
        let JudgedArguments { same, ref only, seed, accept_busy, .. } = *self;
        compare::ComparisonOptions { same, only: only.clone(), seed, accept_busy }
    }
}

/// The files that a comparison is written to.
#[derive(Debug, Args)]
pub struct ComparisonFiles {
    #[command(flatten)]
    pub json: JsonArgument,
    /// Write every figure as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a page, readable offline in any browser
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl ComparisonFiles {
    /// The files to write, with the names of their options.
    pub fn named_files(&self) -> Vec<(&'static str, &Path)> {
        requested_files(&[
            ("json", &self.json.json),
            ("csv", &self.csv),
            ("markdown", &self.markdown),
            ("html", &self.html),
        ])
    }

    /// Shows the text unless standard output is taken or `quiet`, and writes the files; every file is tried.
    ///
    /// # Errors
    /// The first one that failed.
    pub fn show_and_write(
        &self,
        quiet: bool,
        found: &impl Serialize,
        text: impl FnOnce(&DisplayOptions) -> String,
        csv: impl FnOnce() -> Vec<u8>,
        markdown: impl FnOnce() -> String,
        html: impl FnOnce() -> String,
    ) -> Result<()> {
        let is_taken = quiet || self.named_files().iter().any(|(_, path)| is_stdout(path));
        let text = show_text(is_taken, text);
        let json = write_json(&self.json, found);
        let csv = write_requested(&self.csv, csv);
        let markdown = write_requested(&self.markdown, markdown);
        text.and(json).and(csv).and(markdown).and(write_requested(&self.html, html))
    }
}

/// A percentage above 0, as a share.
pub fn percent(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    let share = number.map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| format!("{text:?} is no percentage above 0 % and below 100 %, such as 2%"))
}
