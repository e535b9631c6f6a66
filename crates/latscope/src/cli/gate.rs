//! `latscope gate`: do saved results hold a budget?

use super::input::{InputArguments, check_once};
use super::judged::percent;
use super::options::JsonArgument;
use super::output::{
    check_distinct, is_stdout, requested_files, show_text, unless_unread, write_json, write_requested,
};
use super::results::{self, Results};
use super::{CommandExit, budget, exit, redact};
use anyhow::{Result, bail, ensure};
use clap::Args;
use latscope_core::report::VerdictStatus;
use latscope_judge::gate::{self, Accepted, GateBudget, GateResult};
use latscope_judge::runs::RunResult;
use latscope_process::stdout;
use latscope_views::gate as views;
use std::path::{Path, PathBuf};

/// Judges saved results by those of a baseline, or by a budget of limits: pass, exceeded or inconclusive
///
/// Against a baseline at least five results a side are judged together: is a point slower beyond chance, or lost? A
/// limit of a budget holds if it holds in every result. Nights are judged together after `latscope merge`.
///
/// Exit codes: 0 nothing is slower and every limit holds, 1 error, 2 a point is slower or a limit is exceeded, 3 it
/// cannot be decided, or a point of the baseline is lost or degraded.
#[derive(Debug, Args)]
#[command(override_usage = "latscope gate [OPTIONS] --baseline DIR RESULT…
       latscope gate [OPTIONS] --budget FILE RESULT…
       latscope gate --learn RESULT… > budget.toml")]
pub struct GateArguments {
    /// Files or directories of results; - for stdin
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Limits that are to hold, in TOML
    #[arg(long, value_name = "FILE")]
    budget: Option<PathBuf>,
    /// Results to compare with, at least five: every point, or only those that the budget limits by "+5%"
    #[arg(long, value_name = "FILE|DIR")]
    baseline: Vec<PathBuf>,
    /// Compare with the baseline also where other processes used far more of the CPUs on one side
    #[arg(long, requires = "baseline")]
    accept_busy: bool,
    /// Compare with a baseline of another machine
    #[arg(long, requires = "baseline")]
    accept_machine: bool,
    /// Write a budget that these results hold to stdout
    #[arg(long, conflicts_with_all = ["budget", "baseline", "all", "json", "junit", "markdown", "github"])]
    learn: bool,
    /// Smallest distance of a learnt limit from the largest figure
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "25%", requires = "learn")]
    margin: f64,
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
pub fn run_gate(asked: &GateArguments) -> Result<CommandExit> {
    asked.input.set_size_limit();
    let files = requested_files(&[
        ("json", &asked.json.json),
        ("junit", &asked.junit),
        ("markdown", &asked.markdown),
    ]);
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
    // What was learnt, and what a baseline is compared with, are runs.
    let of_runs = asked.learn || !asked.baseline.is_empty();
    let results =
        if of_runs { results::load_results(&asked.results)? } else { results::load_judged(&asked.results)? };
    if asked.learn {
        return learn(&results, asked.margin);
    }
    let baseline = baseline(asked, &results)?;
    let mut gate = judge_results(asked, &results, &baseline)?;
    gate.remarks.extend(results.skipped);
    results.lost.into_iter().for_each(|(file, why)| gate.add_unreadable(file, why));
    gate.remarks.extend(baseline.skipped.iter().map(|text| format!("baseline: {text}")));
    unless_unread(show_gate(asked, &gate, asked.quiet || taken.is_some()))?;
    Ok(CommandExit::of_status(gate.status, || exit::first_of(&unmet(&gate))))
}

/// The results, judged by the budget, or without one by the baseline.
fn judge_results(asked: &GateArguments, results: &Results, baseline: &Results) -> Result<GateResult> {
    let accepted = Accepted { busy: asked.accept_busy, machine: asked.accept_machine };
    let Some(path) = &asked.budget else { return Ok(gate::against(&baseline.runs, &results.runs, accepted)) };
    let mut budget = budget(asked, path, results, baseline)?;
    budget.accepted = accepted;
    let hides = redact::applies() && !budget.machines.is_empty();
    if hides {
        budget.machines.clear();
    }
    let mut gate = gate::judge_runs(&budget, &results.runs, &baseline.runs);
    if hides {
        let text = "redacted: whether the budget was learnt on these machines is not said";
        gate.warnings.push(text.to_owned());
    }
    Ok(gate)
}

/// The checks that decide the status, each in a line, if not all pass.
pub fn unmet(gate: &GateResult) -> Vec<String> {
    let decisive =
        gate.checks.iter().filter(|check| check.status == gate.status && gate.status != VerdictStatus::Pass);
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
    let mut baseline = results::load_results(&asked.baseline)?;
    baseline.leave_out(results, ", which is judged", "of the baseline is judged")?;
    Ok(baseline)
}

fn budget(asked: &GateArguments, path: &Path, results: &Results, baseline: &Results) -> Result<GateBudget> {
    let budget = budget::load_budget(path, results.runs.iter().chain(&baseline.runs).map(|(_, run)| run))?;
    if let Some(limit) = budget.relative().filter(|_| asked.baseline.is_empty()) {
        bail!(
            "{}: limit {} ({}) is relative to a baseline: name results with --baseline",
            path.display(),
            limit.number,
            limit.name()
        );
    }
    Ok(budget)
}

fn show_gate(asked: &GateArguments, gate: &GateResult, taken: bool) -> Result<()> {
    let text = show_text(taken, |options| views::format_text(gate, asked.all, options));
    let github = if asked.github { stdout::write_data(views::annotations(gate).as_bytes()) } else { Ok(()) };
    let json = write_json(&asked.json, gate);
    let junit = write_requested(&asked.junit, || views::junit(gate));
    let markdown = write_requested(&asked.markdown, || views::format_markdown(gate));
    text.and(github.map_err(Into::into)).and(json).and(junit).and(markdown)
}

fn learn(results: &Results, margin: f64) -> Result<CommandExit> {
    let runs: Vec<&RunResult> = results.runs.iter().map(|(_, run)| run).collect();
    let learnt = gate::learn(&runs, margin);
    for text in &results.skipped {
        latscope_process::eprintln!("{text}");
    }
    if learnt.points.is_empty() {
        let why = learnt.left_out.first().map_or("they have no points", |point| point.why.as_str());
        bail!("nothing can be learnt from these results: {why}");
    }
    let fewest = learnt.points.iter().map(|point| point.runs).min().unwrap_or(0);
    if fewest < gate::ENOUGH {
        latscope_process::eprintln!("{}", views::few_runs(fewest));
    }
    if let Some(text) = views::one_day(&learnt) {
        latscope_process::eprintln!("{text}");
    }
    let catalogue = latscope_probes::catalogue();
    latscope_process::eprintln!("{}", views::learnt_summary(&learnt, &runs[0].report, &catalogue));
    stdout::write_text(&views::budget(&learnt, env!("CARGO_PKG_VERSION")))?;
    Ok(CommandExit::Done)
}
