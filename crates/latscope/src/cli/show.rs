//! `latscope show`: any view of a saved result.

use super::criteria::Judging;
use super::input::InputArguments;
use super::judged::ComparisonFiles;
use super::options::{Dynamic, ExplicitOptions, JsonArgument, ViewArguments};
use super::output::{ReportOutput, check_distinct};
use super::trial::{TrialOutputOptions, saved};
use super::{CommandExit, criteria, results};
use anyhow::{Result, ensure};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ShowArguments {
    #[command(flatten)]
    given: Dynamic<ExplicitOptions>,
    /// The file of a result, or of another program's output; - for stdin; or the directory of a trial
    result: PathBuf,
    /// Every point in full, not only the table
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    views: ViewArguments,
    #[command(flatten)]
    judging: Dynamic<Judging>,
}

/// Shows what came of a trial.
fn directory(asked: &ShowArguments) -> Result<CommandExit> {
    let path = asked.result.display();
    ensure!(
        saved::is_trial(&asked.result),
        "cannot read {path}: it is a directory, and none of a trial: choose a file in it, or `latscope history {path}`"
    );
    let of_results: Vec<&str> = OF_RESULTS.into_iter().chain(Judging::option_ids()).collect();
    asked.given.refuse(&of_results, "is for a single result: choose a file of the directory")?;
    let to = &asked.views;
    let files = ComparisonFiles {
        json: JsonArgument { json: to.json.json.clone() },
        csv: to.csv.clone(),
        markdown: to.markdown.clone(),
        html: to.html.clone(),
    };
    check_distinct(&files.named_files(), [asked.result.as_path(), &asked.result.join(results::TRIAL)])?;
    saved::show_saved(&asked.result, TrialOutputOptions { files: &files, all: asked.all, quiet: to.quiet })
}

/// Options that a trial has no view for.
const OF_RESULTS: [&str; 12] = [
    "csv_long", "openmetrics", "lava", "without", "csv_histogram", "svg", "svg_percentiles", "beside",
    "references", "contribute", "table", "sort",
];

/// Shows a saved result.
///
/// # Errors
/// The file cannot be read or is not a result, or a view cannot be written.
pub fn show_result(asked: &ShowArguments) -> Result<CommandExit> {
    asked.input.set_size_limit();
    if asked.result.is_dir() {
        return directory(asked);
    }
    let output = ReportOutput::from_arguments(&asked.views, &[&asked.result])?;
    ensure!(!asked.all || !asked.views.table, "--all shows every point, and --table the rows: choose one");
    ensure!(!asked.all || output.shows_table(), "--all is for the table, and it is not shown");
    let load = if output.uses_blocks() { results::load_one } else { results::load_without_blocks };
    let mut report = load(&asked.result)?;
    asked.judging.apply_criteria(&mut report);
    output.show_report(&report, asked.all, Some(&asked.result))?;
    if let Some(path) = output.json_file() {
        latscope_engine::saver::save_report(path, &output.saved_form(&report))?;
    }
    // A result that was judged is as good as when it was measured: also one of a run that was killed.
    Ok(criteria::of_verdict(&report))
}
