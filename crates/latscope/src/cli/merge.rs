//! `latscope merge`: adds the results of several runs up to one.

use super::CommandExit;
use super::input::{InputArguments, check_once};
use super::options::JsonArgument;
use super::output::{check_distinct, is_stdout};
use super::results::{self, input_name, load_one};
use anyhow::{Context, Result, ensure};
use clap::Args;
use latscope_core::report::Report;
use latscope_core::units::count_with_noun;
use latscope_engine::saver;
use latscope_judge::merge::{MACHINE_NOT_KNOWN, merge};
use latscope_process::stdout;
use std::path::PathBuf;

/// Adds the results of several runs up to one, such as those of many nights or boards
///
/// Histograms of equal points are added. A point that only some runs have stays with these; a result without any point
/// of the others is refused. Each run is kept as a round, so that the spread between runs is shown; show and gate judge
/// the sum, compare and history take the runs themselves. Samples in order of time, outliers and verdicts are left out.
#[derive(Debug, Args)]
pub struct MergeArguments {
    /// Results, also merged ones, or directories of results; - for stdin
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    json: JsonArgument,
}

/// Reads the results, merges them, and says what differs between the runs.
///
/// # Errors
/// A result cannot be read, the results cannot be merged, or the file cannot be written.
pub fn merge_results(asked: &MergeArguments) -> Result<CommandExit> {
    asked.input.set_size_limit();
    let to = asked.json.json.as_deref().context("merge writes a result: add --json FILE")?;
    check_distinct(&[("json", to)], asked.results.iter().map(PathBuf::as_path))?;
    let whole = merge(read_results(&asked.results)?)?;
    if is_stdout(to) {
        stdout::write_data(whole.to_json().as_bytes())?;
        return Ok(CommandExit::Done);
    }
    saver::save_report(to, &whole)?;
    stdout::write_text(&describe_merge(&input_name(to), &whole))?;
    Ok(CommandExit::Done)
}

/// Reads files, and the results among those of directories. What grows with time is not kept.
fn read_results(paths: &[PathBuf]) -> Result<Vec<(String, Report)>> {
    check_once(paths, "files for the others")?;
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    for path in paths {
        if is_stdout(path) || !path.is_dir() {
            found.push((input_name(path), load_one(path)?.without_blocks()));
            continue;
        }
        for file in results::of_directory(path, &mut lost)? {
            match results::load_listed(&file) {
                Ok(report) => found.push((input_name(&file), report.without_blocks())),
                Err(error) => lost.extend(results::skipped(&file, &error)),
            }
        }
    }
    ensure!(!found.is_empty(), "{}", results::nothing_in(paths, lost));
    lost.iter().for_each(|said| latscope_process::eprintln!("latscope: {said}"));
    Ok(found)
}

/// `all.json: merged from 5 runs, 533 points, 12 of them not in all runs`, and a line for each fact that differs.
fn describe_merge(file: &str, whole: &Report) -> String {
    let Some(merged) = &whole.merged else { return String::new() };
    let [runs, points] = [merged.runs.len(), whole.measurements.len()].map(|number| number as u64);
    let partial = whole.measurements.iter().filter(|m| m.rounds.len() < merged.runs.len()).count();
    let noun = whole.merged_noun();
    let partial = if partial > 0 { format!(", {partial} of them not in all {noun}s") } else { String::new() };
    let points = count_with_noun(points, "point");
    let mut text = format!("{file}: merged from {}, {points}{partial}\n", count_with_noun(runs, noun));
    for warning in whole.warnings.iter().filter(|one| one.id == MACHINE_NOT_KNOWN) {
        text += &format!("  {}\n", warning.text);
    }
    for fact in &merged.differs {
        let values = fact
            .values
            .iter()
            .map(|(value, runs)| format!("{value} ({})", count_with_noun((*runs).into(), noun)));
        text += &format!("  differs: {}: {}\n", fact.what, values.collect::<Vec<_>>().join(", "));
    }
    text
}
