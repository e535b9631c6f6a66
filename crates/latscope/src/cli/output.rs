//! Where results go: the table on stdout, files, people's words to stderr.

use super::Exit;
use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use latscope_core::json;
use latscope_core::plan::Plan;
use latscope_core::report::Report;
use latscope_engine::saver;
use latscope_host::stdout;
use latscope_views::figure::{self, Picture};
use latscope_views::{self as views, Options, Scale};
use std::io::{IsTerminal, Read};
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
    /// A result beside cannot be read, or two outputs are to go to the same file.
    pub fn from(matches: &ArgMatches) -> Result<Output> {
        check_distinct(matches)?;
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

    /// Tries whether all files can be written, and whether the plan has something for
    /// them, so that nobody measures for a minute to learn it then.
    ///
    /// # Errors
    /// One of them cannot, or is to hold what is not measured; the text names it.
    pub fn check_files(&self, plan: &Plan) -> Result<()> {
        let points = || plan.steps.iter().flat_map(|step| &step.points);
        let events = points().any(|point| !BATCHES.iter().any(|probe| point.probe.starts_with(probe)));
        let curve = points().filter(|point| point.probe == "memory.latency").count() > 1;
        let drawn = |picture: &Picture| events || curve && *picture == Picture::Distribution;
        let empty = self.pictures.iter().find(|(_, picture)| !drawn(picture)).map(|(path, _)| path);
        if let Some(path) = empty.or(self.buckets.as_ref().filter(|_| !events)) {
            bail!("{}", nothing_for(path));
        }
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
        let text = if views::groups::is_of_events(report) && !compared {
            views::groups::events(report, &options)
        } else if in_full && !(compared && rows) || without_rows(report) {
            views::text::all(report, &options)
        } else {
            views::survey::survey(report, beside, &options)
        };
        Ok(stdout::write_styled(&text)?)
    }
}

/// Whether all that was measured is in curves, of which a table of rows has nothing.
fn without_rows(report: &Report) -> bool {
    report.measurements.iter().any(|m| m.typical().is_some()) && views::rows::rows(report, &[]).is_empty()
}

/// Writes a view that was asked for; a report may have nothing for it.
fn write(path: Option<&Path>, view: impl FnOnce() -> Option<Vec<u8>>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let content = view().with_context(|| nothing_for(path))?;
    if is_stdout(path) {
        Ok(stdout::write(&String::from_utf8_lossy(&content))?)
    } else {
        saver::replace(path, &content)
    }
}

fn nothing_for(path: &Path) -> String {
    format!("nothing to write to {}: there are no single events, and no curve for it", path.display())
}

/// Probes, by the begin of their ids, that time many operations at once: they have no single events.
const BATCHES: [&str; 5] = ["cpu.", "memory.", "sync.mutex", "sync.atomic", "sync.core-to-core"];

/// Every option that names a file to write.
const FILES: [&str; 8] =
    ["json", "csv", "csv-buckets", "markdown", "svg", "svg-percentiles", "trace", "timeline"];

/// Checks that no output replaces another one.
fn check_distinct(matches: &ArgMatches) -> Result<()> {
    let given = |name| Some((name, matches.try_get_one::<PathBuf>(name).ok()??));
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for (name, path) in FILES.into_iter().filter_map(given) {
        let place = if is_stdout(path) { path.clone() } else { saver::place(path) };
        match known.iter().find(|(_, other)| *other == place) {
            Some((other, _)) if !saver::is_special(path) => {
                let to =
                    if is_stdout(path) { "standard output".to_owned() } else { path.display().to_string() };
                bail!("--{other} and --{name} both write to {to}: choose another file for one of them")
            }
            _ => known.push((name, place)),
        }
    }
    Ok(())
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a saved result, `-` from standard input.
///
/// # Errors
/// The file cannot be read, or is not a result of ours; the text names it.
pub fn load(path: &Path) -> Result<Report> {
    let (text, name) = if is_stdout(path) {
        let mut text = Vec::new();
        (std::io::stdin().lock().read_to_end(&mut text).map(|_| text), "standard input".to_owned())
    } else {
        (std::fs::read(path), path.display().to_string())
    };
    let text = text.with_context(|| format!("cannot read {name}"))?;
    Report::from_json(&text).with_context(|| format!("cannot use {name}"))
}

/// Columns of the terminal; 100 where there is none.
pub fn width() -> usize {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let found = terminal.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
    found.or(columns).unwrap_or(100).max(40)
}
