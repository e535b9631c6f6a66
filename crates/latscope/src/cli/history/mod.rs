//! `latscope history`: what machines did over the results of a directory.

mod index;

use super::Exit;
use super::judged::JudgedArguments;
use super::output::{check_distinct, is_stdout, unless_unread, width, write, write_json};
use super::results;
use anyhow::{Result, bail, ensure};
use clap::Args;
use index::Directory;
use latscope_judge::history::{self as judge, Entry, History};
use latscope_process::stdout;
use latscope_views::{Options, history as views};
use std::collections::HashMap;
use std::path::PathBuf;

/// Shows when the figures of a machine changed over the results of a directory, and what changed with them
///
/// A change takes ten runs, four before and four after it at least, and is judged among all figures of the machine: of a
/// single one among a hundred it takes about seventeen. Degraded and unstable rows are shown and make no change. Directories within are read, too; files and directories whose names
/// begin with a dot are not.
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
    #[arg(long, value_name = "WHAT", value_parser = ["change"])]
    fail_on: Option<String>,
    /// Every figure that changed, every odd run and every skipped file, not only the first ones
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
pub fn run(asked: &HistoryArguments) -> Result<Exit> {
    asked.judged.input.apply();
    let files = asked.judged.files.named();
    check_distinct(&files, [asked.directory.as_path()])?;
    let mut found = look(asked, index::read(&asked.directory)?)?;
    if let Some(id) = &asked.since {
        let last = found.ids().last().map_or_else(String::new, |id| format!(", the last change is {id}"));
        ensure!(
            found.since(id),
            "--since {id}: no run has this id{last} (ids are those of changes as shown)"
        );
    }
    let taken = asked.quiet || files.iter().any(|(_, path)| is_stdout(path));
    unless_unread(show(asked, &found, taken))?;
    let judged = found.machines.iter().any(|machine| machine.judged > 0);
    let changes = || found.machines.iter().flat_map(|machine| &machine.changes);
    let changed = changes().any(|change| change.unlike.is_none());
    Ok(match &asked.fail_on {
        Some(_) if changed => Exit::Exceeded,
        Some(_) if !judged || changes().next().is_some() => Exit::Inconclusive,
        _ => Exit::Done,
    })
}

fn look(asked: &HistoryArguments, read: Directory) -> Result<History> {
    let Directory { archive, runs, mut remarks } = read;
    let runs = once(&runs, &mut remarks);
    if runs.is_empty() {
        let lost = remarks.iter().filter_map(|text| text.strip_prefix("skipped: ").map(str::to_owned));
        bail!("{}", results::nothing_in(std::slice::from_ref(&asked.directory), lost.collect()));
    }
    let probes = archive.works.iter().map(|work| work.probe.as_str()).collect();
    results::check_only(&asked.judged.only, &probes, "no result has")?;
    let options = judge::Options {
        same: asked.judged.same,
        only: asked.judged.only.clone(),
        seed: asked.judged.seed,
        accept_busy: asked.judged.accept_busy,
    };
    let mut found = judge::history(&archive, &runs, &options);
    found.remarks = remarks;
    Ok(found)
}

/// Returns the runs without duplicates. Each duplicate gives a remark.
fn once<'a>(runs: &'a [(String, Entry)], remarks: &mut Vec<String>) -> Vec<(&'a str, &'a Entry)> {
    let mut kept: HashMap<(&str, &str), Vec<(&str, &Entry)>> = HashMap::new();
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

fn show(asked: &HistoryArguments, found: &History, taken: bool) -> Result<()> {
    let options = Options { width: width(), color: true, ..Options::default() };
    let lines = !asked.judged.only.is_empty();
    let text = || stdout::write_styled(&views::text(found, asked.all, lines, &options));
    let text = if taken { Ok(()) } else { text() };
    let json = write_json(asked.judged.files.json.json.as_deref(), found);
    let csv = write(asked.judged.files.csv.as_deref(), || Some(views::csv(found)));
    let markdown =
        write(asked.judged.files.markdown.as_deref(), || Some(views::markdown(found).into_bytes()));
    let html = write(asked.judged.files.html.as_deref(), || {
        Some(views::html(found, asked.all || lines).into_bytes())
    });
    Ok(text?).and(json).and(csv).and(markdown).and(html)
}
