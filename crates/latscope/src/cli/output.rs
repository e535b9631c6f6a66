//! Where results go: the table on stdout, files, people's words to stderr.

use super::Exit;
use crate::engine::saver;
use crate::stdout;
use anyhow::{Context, Result};
use clap::ArgMatches;
use latscope_core::figure::{self, Picture};
use latscope_core::json;
use latscope_core::plan::Plan;
use latscope_core::report::Report;
use latscope_core::views::{self, Options, Scale};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Without [`Output::save_every`]: a night's run loses little by a crash, and is hardly disturbed.
const SAVE_EVERY: Duration = Duration::from_secs(600);

/// The options that ask for a picture, and the picture.
const PICTURES: [(&str, Picture); 2] =
    [("svg", Picture::Distribution), ("svg-percentiles", Picture::Percentiles)];

/// What was asked about output.
pub struct Output {
    json: Option<PathBuf>,
    csv: Option<PathBuf>,
    buckets: Option<PathBuf>,
    markdown: Option<PathBuf>,
    pictures: Vec<(PathBuf, Picture)>,
    beside: Vec<Report>,
    scale: Scale,
    /// How often the JSON file is written while a row lasts.
    pub save_every: Duration,
    /// No table and no progress.
    pub quiet: bool,
}

impl Output {
    /// Reads the arguments, and the results to show beside.
    ///
    /// # Errors
    /// A result beside cannot be read.
    pub fn from(matches: &ArgMatches) -> Result<Output> {
        let path = |name| matches.get_one::<PathBuf>(name).cloned();
        let beside = matches.get_many::<PathBuf>("beside").into_iter().flatten();
        Ok(Output {
            json: path("json"),
            csv: path("csv"),
            buckets: path("csv-buckets"),
            markdown: path("markdown"),
            pictures: PICTURES
                .iter()
                .filter_map(|(option, picture)| Some((path(option)?, *picture)))
                .collect(),
            beside: beside.map(|path| load(path)).collect::<Result<_>>()?,
            scale: match matches.get_one::<String>("scale").map(String::as_str) {
                Some("human") => Scale::Human,
                _ => Scale::Time,
            },
            save_every: matches.try_get_one("save-every").ok().flatten().copied().unwrap_or(SAVE_EVERY),
            quiet: matches.get_flag("quiet"),
        })
    }

    /// The JSON file, unless it is stdout.
    pub fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|path| !is_stdout(path))
    }

    /// Tries whether all files can be written, so that nobody measures for a
    /// minute to learn it then.
    ///
    /// # Errors
    /// One of them cannot; the text names it.
    pub fn check_files(&self) -> Result<()> {
        let files = [&self.json, &self.csv, &self.buckets, &self.markdown].into_iter().flatten();
        let files = files.chain(self.pictures.iter().map(|(path, _)| path));
        files.filter(|path| !is_stdout(path)).try_for_each(|path| saver::check(path))
    }

    /// Shows a plan instead of carrying it out.
    ///
    /// # Errors
    /// Stdout is closed.
    pub fn plan(&self, plan: &Plan) -> Result<Exit> {
        let text = match &self.json {
            Some(path) if is_stdout(path) => json::pretty(plan),
            _ => plan.describe(),
        };
        stdout::write(&text)?;
        Ok(Exit::Done)
    }

    /// Shows a report: on stdout what was asked to go there, else the table.
    /// Every file is tried, whatever becomes of the others.
    ///
    /// # Errors
    /// The first one that failed.
    pub fn show(&self, report: &Report, in_full: bool) -> Result<()> {
        let beside: Vec<&Report> = self.beside.iter().collect();
        let json = self.json.as_deref().filter(|path| is_stdout(path));
        let to_stdout = [json, self.csv.as_deref(), self.buckets.as_deref(), self.markdown.as_deref()]
            .into_iter()
            .flatten();
        let to_stdout = to_stdout.chain(self.pictures.iter().map(|(path, _)| path.as_path())).any(is_stdout);
        let table = if self.quiet || to_stdout { Ok(()) } else { self.table(report, &beside, in_full) };
        let csv = write(self.csv.as_deref(), || Some(views::csv::csv(report)));
        let buckets = write(self.buckets.as_deref(), || views::csv::buckets(report));
        let markdown = write(self.markdown.as_deref(), || {
            Some(views::markdown::markdown(report, &beside, &self.options(false)).into_bytes())
        });
        let draw = |picture| figure::document(report, picture).map(String::into_bytes);
        let drawn = self.pictures.iter().map(|(path, picture)| write(Some(path), || draw(*picture)));
        let drawn = drawn.fold(Ok(()), Result::and);
        let json = write(json, || Some(report.to_json().into_bytes()));
        table.and(csv).and(buckets).and(markdown).and(drawn).and(json)
    }

    fn options(&self, color: bool) -> Options {
        Options { width: width(), color, scale: self.scale }
    }

    fn table(&self, report: &Report, beside: &[&Report], in_full: bool) -> Result<()> {
        let options = self.options(true);
        // Comparisons and the human scale are columns of the table of rows.
        let compared = !beside.is_empty() || self.scale == Scale::Human;
        let rows = report.measurements.iter().any(|m| m.row && m.summary.count > 0);
        let text = if views::events::is_of_events(report) && !compared {
            views::events::events(report, &options)
        } else if in_full && !(compared && rows) {
            views::text::all(report, &options)
        } else {
            views::survey::survey(report, beside, &options)
        };
        Ok(stdout::write_styled(&text)?)
    }
}

/// Writes a view that was asked for; a report may have nothing for it.
fn write(path: Option<&Path>, view: impl FnOnce() -> Option<Vec<u8>>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let nothing =
        || format!("nothing to write to {}: the result has no single events and no curve", path.display());
    let content = view().with_context(nothing)?;
    if is_stdout(path) {
        Ok(stdout::write(&String::from_utf8_lossy(&content))?)
    } else {
        saver::replace(path, &content)
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a saved result.
///
/// # Errors
/// The file cannot be read, or is not a result of ours; the text names it.
pub fn load(path: &Path) -> Result<Report> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Report::from_json(&text).with_context(|| format!("cannot use {}", path.display()))
}

/// Columns of the terminal; 100 where there is none.
pub fn width() -> usize {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let found = terminal.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
    found.or(columns).unwrap_or(100).max(40)
}
