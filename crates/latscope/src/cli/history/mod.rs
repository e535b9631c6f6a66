//! `latscope history`: what machines did over the results of a directory.

mod index;

use super::judged::JudgedArguments;
use super::options::word_parser;
use super::output::{check_distinct, unless_unread};
use super::{CommandExit, results};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use index::ResultDirectory;
use latscope_core::units::count_with_noun;
use latscope_judge::history::{self as judge, ArchiveRun, Change, History};
use latscope_views::{DisplayOptions, history as views};
use std::collections::HashMap;
use std::path::PathBuf;

/// Shows when the figures of a machine changed over the results of a directory, and what changed with them
///
/// A change takes ten runs, four before and four after it at least, and is judged among all figures of the machine: of
/// a single one among a hundred it takes about seventeen. Degraded and unstable rows are shown and make no change.
/// Directories within are read, too; files and directories whose names begin with a dot are not.
///
/// Exit codes: 0 done, 1 error, with --fail-on change 2 where there is a change (after that of --since), and 3 where
/// no figure has runs enough to be judged, or others used
/// far more of the CPUs before or after each change.
#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// A directory of results
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Only changes after the one with this id, as it is shown
    #[arg(long, value_name = "ID")]
    since: Option<String>,
    /// Exit with 2 where there is a change
    #[arg(long, value_name = "WHAT", value_parser = word_parser([("change", "a figure changed")]))]
    fail_on: Option<String>,
    /// Every figure that changed, every smaller change, every odd run and every skipped file, not only the first ones
    #[arg(long)]
    all: bool,
    /// No text
    #[arg(short, long, conflicts_with = "all")]
    quiet: bool,
    #[command(flatten)]
    judged: JudgedArguments,
}

/// Reads, judges, shows, and ends by `--fail-on`.
///
/// # Errors
/// There is no result, `--only` or `--since` name what no result has, or a view cannot be written.
pub fn run_history(asked: &HistoryArguments) -> Result<CommandExit> {
    asked.judged.input.set_size_limit();
    check_distinct(&asked.judged.files.named_files(), [asked.directory.as_path()])?;
    let mut found = judge_history(asked, index::read_directory(&asked.directory)?)?;
    if let Some(id) = &asked.since {
        let last = found.ids().last().map_or_else(String::new, |id| format!(", the last change is {id}"));
        let named = found.since(id);
        named.map_err(|why| anyhow!("--since {id}: {why}{last} (ids are those of changes as shown)"))?;
    }
    unless_unread(show_history(asked, &found))?;
    Ok(if asked.fail_on.is_some() { none_changed(&found) } else { CommandExit::Done })
}

/// The end by `--fail-on change`.
fn none_changed(found: &History) -> CommandExit {
    let changes: Vec<&Change> = found.machines.iter().flat_map(|machine| &machine.changes).collect();
    let known: Vec<&str> =
        changes.iter().filter(|change| change.unlike.is_none()).map(|change| change.id.as_str()).collect();
    let unlike = changes.iter().find_map(|change| change.unlike.as_deref());
    if let [first, ..] = known[..] {
        let changes = count_with_noun(known.len() as u64, "change");
        return CommandExit::Exceeded(format!("--fail-on change: {changes}, the first is {first}"));
    }
    let why = match unlike {
        Some(why) => format!("no change can be told from the load: {why}"),
        None if found.machines.iter().any(|machine| machine.judged > 0) => return CommandExit::Done,
        None => "no figure has enough runs to be judged (ten, of one machine)".to_owned(),
    };
    CommandExit::Inconclusive(format!("--fail-on change: inconclusive: {why}"))
}

fn judge_history(asked: &HistoryArguments, read: ResultDirectory) -> Result<History> {
    let ResultDirectory { archive, runs, mut remarks } = read;
    let runs = unique_runs(&runs, &mut remarks);
    if runs.is_empty() {
        let lost = remarks.iter().filter_map(|text| text.strip_prefix("skipped: ").map(str::to_owned));
        bail!("{}", results::nothing_in(std::slice::from_ref(&asked.directory), lost.collect()));
    }
    let probes = archive.works.iter().map(|work| work.probe.as_str()).collect();
    results::check_only(&asked.judged.only, &probes, "no result has")?;
    let mut found = judge::history(&archive, &runs, &asked.judged.options());
    found.remarks = remarks;
    Ok(found)
}

/// Returns the runs without duplicates. Each duplicate gives a remark.
fn unique_runs<'a>(
    runs: &'a [(String, ArchiveRun)],
    remarks: &mut Vec<String>,
) -> Vec<(&'a str, &'a ArchiveRun)> {
    let mut kept: HashMap<(&str, &str), Vec<(&str, &ArchiveRun)>> = HashMap::new();
    let mut all = Vec::new();
    for (name, entry) in runs {
        // Runs without a name, as imported ones, are looked for among those that began at the same time.
        let began = if entry.run_id.is_empty() { entry.started.as_str() } else { "" };
        let alike = kept.entry((&entry.run_id, began)).or_default();
        match alike.iter().find(|(_, other)| other.is_same(entry)) {
            Some((other, _)) => {
                remarks.push(format!("{name} is the same run as {other}: it is counted once"))
            }
            None => {
                alike.push((name, entry));
                all.push((name.as_str(), entry));
            }
        }
    }
    all
}

fn show_history(asked: &HistoryArguments, found: &History) -> Result<()> {
    let (files, all, lines) = (&asked.judged.files, asked.all, !asked.judged.only.is_empty());
    let text = |options: &DisplayOptions| views::format_text(found, all, lines, options);
    let html = || views::html(found, all || lines);
    files.show_and_write(
        asked.quiet,
        found,
        text,
        || views::format_csv(found),
        || views::format_markdown(found),
        html,
    )
}
