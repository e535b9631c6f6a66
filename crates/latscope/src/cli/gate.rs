//! `latscope gate`: do saved results hold a budget?

use super::input::{InputArguments, check_once};
use super::options::JsonArgument;
use super::output::{check_distinct, is_stdout, named, show_text, unless_unread, write, write_json};
use super::results::{self, Results};
use super::{Exit, budget, exit, redact};
use anyhow::{Result, bail, ensure};
use clap::Args;
use latscope_core::report::Status;
use latscope_judge::compare;
use latscope_judge::gate::{self, Budget, Gate};
use latscope_judge::runs::Run;
use latscope_process::stdout;
use latscope_views::gate as views;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Judges saved results by a budget of limits, or by how they were before: pass, exceeded or inconclusive
///
/// A limit holds if it holds in every result. What is relative to a baseline is judged over all results together.
///
/// Exit codes: 0 every limit holds, 1 error, 2 a limit is exceeded, 3 a limit is inconclusive.
#[derive(Debug, Args)]
#[command(override_usage = "latscope gate [OPTIONS] --budget FILE RESULT…
       latscope gate [OPTIONS] --baseline DIR RESULT…
       latscope gate --learn RESULT… > budget.toml")]
pub struct GateArguments {
    /// Files or directories of results; - for stdin
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Limits that are to hold, in TOML
    #[arg(long, value_name = "FILE")]
    budget: Option<PathBuf>,
    /// Results that limits such as "+5%" are relative to; without --budget no median may be 5 % above theirs
    #[arg(long, value_name = "FILE|DIR")]
    baseline: Vec<PathBuf>,
    /// Judge limits relative to the baseline also where other processes used far more of the CPUs on one side
    #[arg(long, requires = "baseline")]
    accept_busy: bool,
    /// Write a budget that these results hold to stdout
    #[arg(long, conflicts_with_all = ["budget", "baseline", "all", "json", "junit", "markdown", "github"])]
    learn: bool,
    /// Every check, and why, not only those that do not pass
    #[arg(long)]
    all: bool,
    /// No text
    #[arg(short, long, conflicts_with_all = ["learn", "all"])]
    quiet: bool,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    json: JsonArgument,
    /// Write the checks as tests in a JUnit file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the checks as Markdown, for the summary of a step
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also print annotations for a workflow of GitHub
    #[arg(long)]
    github: bool,
}

/// Judges, shows, and ends as the worst check.
///
/// # Errors
/// A result or the budget cannot be read, the budget names what does not exist, or a view cannot be written.
pub fn run(asked: &GateArguments) -> Result<Exit> {
    asked.input.apply();
    let files = named(&[("json", &asked.json.json), ("junit", &asked.junit), ("markdown", &asked.markdown)]);
    let taken = files.iter().find(|(_, path)| is_stdout(path));
    if let Some((name, _)) = taken.filter(|_| asked.github || asked.all) {
        let option = if asked.github { "github" } else { "all" };
        bail!("--{option} is for standard output, and --{name} writes there: choose a file for it");
    }
    let named = asked.budget.is_some() || !asked.baseline.is_empty() || asked.learn;
    ensure!(named, without_limits(&asked.results));
    let inputs = || asked.results.iter().chain(&asked.baseline).chain(&asked.budget);
    check_distinct(&files, inputs().map(PathBuf::as_path))?;
    check_once(inputs(), "files for the others")?;
    let results = results::load(&asked.results)?;
    if asked.learn {
        return learn(&results);
    }
    let baseline = baseline(asked, &results)?;
    let mut budget = budget(asked, &results, &baseline)?;
    budget.accept_busy = asked.accept_busy;
    let hides = redact::applies() && !budget.machines.is_empty();
    if hides {
        budget.machines.clear();
    }
    let mut gate = gate::judge(&budget, &results.runs, &baseline.runs);
    if hides {
        let text = "redacted: whether the budget was learnt on these machines is not said";
        gate.warnings.push(text.to_owned());
    }
    gate.remarks.extend(results.skipped);
    results.lost.into_iter().for_each(|(file, why)| gate.lose(file, why));
    gate.remarks.extend(baseline.skipped.iter().map(|text| format!("baseline: {text}")));
    unless_unread(show(asked, &gate, asked.quiet || taken.is_some()))?;
    Ok(Exit::of_status(gate.status, || exit::first_of(&unmet(&gate))))
}

/// The checks that decide the status, each in a line, if not all pass.
pub fn unmet(gate: &Gate) -> Vec<String> {
    let decisive =
        gate.checks.iter().filter(|check| check.status == gate.status && gate.status != Status::Pass);
    decisive.map(|check| check.sentence()).collect()
}

/// Message for results without limits: it lists the options that name limits.
fn without_limits(results: &[PathBuf]) -> String {
    if let Some(budget) = results.iter().find(|path| path.extension().is_some_and(|end| end == "toml")) {
        return format!("nothing says what is to hold: name the budget with --budget {}", budget.display());
    }
    let results: Vec<_> = results.iter().map(|path| path.to_string_lossy()).collect();
    let results = shlex::try_join(results.iter().map(|name| &**name)).unwrap_or_default();
    format!(
        "nothing says what is to hold: name limits with --budget FILE or earlier results with --baseline DIR. \
         A first budget: `latscope gate --learn {results} > budget.toml`, then \
         `latscope gate --budget budget.toml {results}`"
    )
}

/// The baseline without the runs that are judged.
fn baseline(asked: &GateArguments, results: &Results) -> Result<Results> {
    if asked.baseline.is_empty() {
        return Ok(Results::default());
    }
    let mut baseline = results::load(&asked.baseline)?;
    baseline.leave_out(results, ", which is judged", "of the baseline is judged")?;
    Ok(baseline)
}

fn budget(asked: &GateArguments, results: &Results, baseline: &Results) -> Result<Budget> {
    let runs = || results.runs.iter().chain(&baseline.runs).map(|(_, run)| run);
    let Some(path) = &asked.budget else {
        let probes: BTreeSet<&str> =
            runs().flat_map(|run: &Run| run.report.measurements.iter().map(|m| m.probe.as_str())).collect();
        let margin = compare::Options::default().same;
        return Ok(Budget::medians(probes.into_iter().map(str::to_owned), 1.0 + margin));
    };
    let budget = budget::load(path, runs())?;
    match budget.relative() {
        Some(limit) if asked.baseline.is_empty() => bail!(
            "{}: limit {} ({}) is relative to a baseline: name results with --baseline",
            path.display(),
            limit.number,
            limit.name()
        ),
        None if !asked.baseline.is_empty() => bail!(
            "--baseline is not used: no limit of {} is relative to it (write p50 = \"+5%\", or leave --budget out)",
            path.display()
        ),
        _ => Ok(budget),
    }
}

fn show(asked: &GateArguments, gate: &Gate, taken: bool) -> Result<()> {
    let text = show_text(taken, |options| views::text(gate, asked.all, options));
    let github = if asked.github { stdout::write_data(views::annotations(gate).as_bytes()) } else { Ok(()) };
    let json = write_json(&asked.json, gate);
    let junit = write(&asked.junit, || views::junit(gate));
    let markdown = write(&asked.markdown, || views::markdown(gate));
    text.and(github.map_err(Into::into)).and(json).and(junit).and(markdown)
}

fn learn(results: &Results) -> Result<Exit> {
    let runs: Vec<&Run> = results.runs.iter().map(|(_, run)| run).collect();
    let learnt = gate::learn(&runs);
    for text in &results.skipped {
        latscope_process::eprintln!("{text}");
    }
    if learnt.points.is_empty() {
        let why = learnt.left_out.first().map_or("they have no points", |(_, why)| why.as_str());
        bail!("nothing can be learnt from these results: {why}");
    }
    let fewest = learnt.points.iter().map(|point| point.runs).min().unwrap_or(0);
    if fewest < gate::ENOUGH {
        latscope_process::eprintln!("{}", views::few_runs(fewest));
    }
    stdout::write(&views::budget(&learnt, env!("CARGO_PKG_VERSION")))?;
    Ok(Exit::Done)
}
