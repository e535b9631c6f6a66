//! `latscope compare`: are two sides of saved results different?

use super::CommandExit;
use super::input::check_once;
use super::judged::JudgedArguments;
use super::options::word_parser;
use super::output::{check_distinct, unless_unread};
use super::results::{self, Results};
use anyhow::{Result, bail};
use clap::Args;
use latscope_core::redact::machines_not_known;
use latscope_core::report::VerdictStatus;
use latscope_judge::compare::{self, ComparisonResult};
use latscope_judge::runs::RunResult;
use latscope_views::{DisplayOptions, comparison as views};
use std::path::{Path, PathBuf};

/// Compares two sides of saved results point by point: slower, faster, the same, or not to be decided
///
/// The run is the unit: nine runs a side, made in random order, decide about one point among a whole survey. With one
/// run a side it says at most that these two runs differ.
///
/// Exit codes: 0 done, 1 error, with --fail-on slower 2 where a point is slower, and 3 where the runs are too few to
/// call one slower, nothing was compared, or a point named by --only cannot be decided.
#[derive(Debug, Args)]
#[command(override_usage = "latscope compare [OPTIONS] A B\n       latscope compare [OPTIONS] A… -- B…")]
pub struct CompareArguments {
    /// Files or directories of results: A and B, or all of A; - for stdin
    #[arg(required = true, value_name = "A")]
    a: Vec<PathBuf>,
    /// All of B
    #[arg(last = true, value_name = "B")]
    b: Vec<PathBuf>,
    /// Exit with 2 where a point is slower
    #[arg(long, value_name = "VERDICT", value_parser = word_parser([("slower", "a point of B is slower than in A")]))]
    fail_on: Option<String>,
    /// Every point, not only those that differ
    #[arg(long)]
    all: bool,
    /// No text
    #[arg(short, long, conflicts_with = "all")]
    quiet: bool,
    #[command(flatten)]
    judged: JudgedArguments,
}

/// Compares, shows, and judges by `--fail-on`.
///
/// # Errors
/// A result cannot be read, `--only` names what no result has, or a view cannot be written.
pub fn compare_results(asked: &CompareArguments) -> Result<CommandExit> {
    asked.judged.input.set_size_limit();
    if let Some(option) = asked.b.iter().find(|path| is_option(path)) {
        bail!("{} is an option: options stand before --, and only results of B behind it", option.display());
    }
    check_distinct(&asked.judged.files.named_files(), asked.a.iter().chain(&asked.b).map(PathBuf::as_path))?;
    let (a, b) = sides(asked)?;
    let (of_a, of_b) = (result_refs(&a), result_refs(&b));
    let measured = of_a.iter().chain(&of_b).flat_map(|run| &run.report.measurements);
    let probes = measured.map(|m| m.probe.as_str()).collect();
    results::check_only(&asked.judged.only, &probes, "neither side has")?;
    let mut found = compare::compare_runs(&of_a, &of_b, &asked.judged.options());
    let machines = of_a.iter().chain(&of_b).map(|run| run.report.machine.name.as_str());
    found.remarks.extend(machines_not_known(machines));
    for (name, side) in [("A", &a), ("B", &b)] {
        found.remarks.extend(side.skipped.iter().map(|text| format!("{name}: {text}")));
    }
    unless_unread(show_comparison(asked, &found))?;
    Ok(comparison_exit(asked, &found))
}

/// Returns true if a name that cannot be read was meant as an option.
fn is_option(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(b"--") && !path.exists()
}

/// The results of both sides. A run that is in both would be compared with itself.
fn sides(asked: &CompareArguments) -> Result<(Results, Results)> {
    let (a, b) = match (&asked.a[..], &asked.b[..]) {
        ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
        (_, []) => bail!("which of these are A, and which B? Write A… -- B… (see `latscope compare --help`)"),
        (a, b) => (a, b),
    };
    check_once(a.iter().chain(b), "a file for one of both")?;
    let (a, mut b) = (results::load_results(a)?, results::load_results(b)?);
    b.leave_out(&a, " of A", "of B is in A")?;
    Ok((a, b))
}

fn result_refs(side: &Results) -> Vec<&RunResult> {
    side.runs.iter().map(|(_, run)| run).collect()
}

fn show_comparison(asked: &CompareArguments, found: &ComparisonResult) -> Result<()> {
    let files = &asked.judged.files;
    let text = |options: &DisplayOptions| views::format_text(found, asked.all, options);
    let markdown = || views::format_markdown(found, asked.all);
    files.show_and_write(
        asked.quiet,
        found,
        text,
        || views::format_csv(found),
        markdown,
        || views::html(found),
    )
}

/// The end by `--fail-on`.
fn comparison_exit(asked: &CompareArguments, found: &ComparisonResult) -> CommandExit {
    if asked.fail_on.is_none() {
        return CommandExit::Done;
    }
    let (status, why) = found.none_slower(!asked.judged.only.is_empty());
    CommandExit::of_status(status, || match status {
        VerdictStatus::Exceeded => format!("--fail-on slower: {why}"),
        _ => format!("--fail-on slower: inconclusive: {why}"),
    })
}
