//! `latscope compare`: are two sides of saved results different?

use super::Exit;
use super::judged::JudgedArguments;
use super::output::{check_distinct, is_stdout, unless_unread, width, write, write_json};
use super::results::{self, Results};
use anyhow::{Result, bail, ensure};
use clap::Args;
use latscope_core::report::Status;
use latscope_judge::compare::{self, Comparison};
use latscope_judge::runs::Run;
use latscope_process::stdout;
use latscope_views::{Options, comparison as views};
use std::path::{Path, PathBuf};

/// Compares two sides of saved results point by point: slower, faster, the same, or not to be decided
///
/// The run is the unit: nine runs a side, made in random order, decide about one point among a whole survey. With one
/// run a side it says at most that these two runs differ.
///
/// Exit codes: 0 done, 1 error, with --fail-on slower 2 where a point is slower, and 3 where the runs are too few to call
/// one slower, nothing was compared, or a point named by --only cannot be decided.
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
    #[arg(long, value_name = "VERDICT", value_parser = ["slower"])]
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
pub fn run(asked: &CompareArguments) -> Result<Exit> {
    asked.judged.input.apply();
    let files = asked.judged.files.named();
    if let Some(option) = asked.b.iter().find(|path| is_option(path)) {
        bail!("{} is an option: options stand before --, and only results of B behind it", option.display());
    }
    check_distinct(&files, asked.a.iter().chain(&asked.b).map(PathBuf::as_path))?;
    let (a, b) = sides(asked)?;
    let (of_a, of_b) = (references(&a), references(&b));
    let measured = of_a.iter().chain(&of_b).flat_map(|run| &run.report.measurements);
    let probes = measured.map(|m| m.probe.as_str()).collect();
    results::check_only(&asked.judged.only, &probes, "neither side has")?;
    let options = compare::Options {
        same: asked.judged.same,
        only: asked.judged.only.clone(),
        seed: asked.judged.seed,
        accept_busy: asked.judged.accept_busy,
    };
    let mut found = compare::compare(&of_a, &of_b, &options);
    for (name, side) in [("A", &a), ("B", &b)] {
        found.remarks.extend(side.skipped.iter().map(|text| format!("{name}: {text}")));
    }
    let taken = asked.quiet || files.iter().any(|(_, path)| is_stdout(path));
    unless_unread(show(asked, &found, taken))?;
    Ok(exit(asked, &found))
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
    let inputs = a.iter().chain(b).filter(|path| is_stdout(path)).count();
    ensure!(inputs < 2, "standard input can be read once: choose a file for one of both");
    let (a, mut b) = (results::load(a)?, results::load(b)?);
    let is_in_a = |run: &Run| a.runs.iter().find(|(_, other)| other.is_same(run)).map(|(name, _)| name);
    let mut kept = Vec::new();
    for (name, run) in std::mem::take(&mut b.runs) {
        match is_in_a(&run) {
            Some(other) => b.skipped.push(format!("{name} is the same run as {other} of A: it is left out")),
            None => kept.push((name, run)),
        }
    }
    b.runs = kept;
    ensure!(
        !b.runs.is_empty(),
        "every run of B is in A, too: there is nothing to compare (choose other results)"
    );
    Ok((a, b))
}

fn references(side: &Results) -> Vec<&Run> {
    side.runs.iter().map(|(_, run)| run).collect()
}

fn show(asked: &CompareArguments, found: &Comparison, taken: bool) -> Result<()> {
    let options = Options { width: width(), color: true, ..Options::default() };
    let text = || stdout::write_styled(&views::text(found, asked.all, &options));
    let text = if taken { Ok(()) } else { text() };
    let json = write_json(asked.judged.files.json.json.as_deref(), found);
    let csv = write(asked.judged.files.csv.as_deref(), || Some(views::csv(found)));
    let markdown = write(asked.judged.files.markdown.as_deref(), || {
        Some(views::markdown(found, asked.all).into_bytes())
    });
    let html = write(asked.judged.files.html.as_deref(), || Some(views::html(found).into_bytes()));
    Ok(text?).and(json).and(csv).and(markdown).and(html)
}

/// The exit code by `--fail-on`, with the reason on stderr where it is inconclusive.
fn exit(asked: &CompareArguments, found: &Comparison) -> Exit {
    if asked.fail_on.is_none() {
        return Exit::Done;
    }
    match found.none_slower(!asked.judged.only.is_empty()) {
        (Status::Pass, _) => Exit::Done,
        (Status::Exceeded, _) => Exit::Exceeded,
        (Status::Inconclusive, why) => {
            latscope_process::eprintln!("--fail-on slower: inconclusive: {why}");
            Exit::Inconclusive
        }
    }
}
