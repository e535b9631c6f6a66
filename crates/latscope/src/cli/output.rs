//! Output of results: the table on stdout, and files.

use super::beside::References;
use super::options::{JsonArgument, ViewArguments};
pub use super::results::is_stdout;
use super::results::{load_one, load_without_blocks};
use super::{CommandExit, redact};
use anyhow::{Context, Result, bail, ensure};
use latscope_core::catalogue::{ProbeCatalogue, ProbeSampleKind, families, ids};
use latscope_core::json;
use latscope_core::plan::Plan;
use latscope_core::report::Report;
use latscope_engine::saver;
use latscope_judge::references;
use latscope_judge::verdict::describe_plan;
use latscope_process::{files, stdout};
use latscope_views::figure::{self, Picture};
use latscope_views::{self as views, DisplayOptions};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Options of the output, with the results to show beside.
pub struct ReportOutput<'a> {
    to: &'a ViewArguments,
    beside: Vec<Report>,
    catalogue: ProbeCatalogue,
    references: References,
}

impl<'a> ReportOutput<'a> {
    /// Reads the results to show beside.
    ///
    /// # Errors
    /// A result cannot be read, two outputs are to go to the same file or one to a file that is read, of which
    /// `inputs` are the others, or there is no table for an option of it.
    pub fn from_arguments(to: &'a ViewArguments, inputs: &[&Path]) -> Result<ReportOutput<'a>> {
        let (references, results) = References::from_arguments(&to.references, &to.beside)?;
        let beside = results.into_iter().map(load_without_blocks).collect::<Result<_>>()?;
        let output = ReportOutput { to, beside, catalogue: latscope_probes::catalogue(), references };
        check_distinct(
            &output.files(),
            inputs.iter().copied().chain(to.beside.iter().map(PathBuf::as_path)),
        )?;
        let of_table = [("beside", !to.beside.is_empty()), ("sort", to.sort.is_some())];
        if let Some((option, _)) = of_table.iter().find(|(_, given)| *given)
            && to.markdown.is_none()
            && !output.shows_table()
        {
            bail!("--{option} is for the table or --markdown, and neither is shown");
        }
        ensure!(!to.table || output.shows_table(), "--table is for the terminal, and nothing is shown there");
        ensure!(
            to.sort.is_none() || to.markdown.is_some() || output.shows_rows(),
            "--sort is for the table of all rows, or --markdown: add --table"
        );
        Ok(output)
    }

    /// Returns true if the table of rows is wanted: comparisons are columns of it.
    fn shows_rows(&self) -> bool {
        self.to.table || !self.beside.is_empty()
    }

    /// Returns true if neither a table nor progress is wanted.
    pub fn quiet(&self) -> bool {
        self.to.quiet
    }

    /// Returns true if the table is on stdout.
    pub fn shows_table(&self) -> bool {
        !self.to.quiet && !self.files().iter().any(|(_, path)| is_stdout(path))
    }

    /// Every option that names a file to write.
    fn files(&self) -> Vec<(&'static str, &'a Path)> {
        let to = self.to;
        requested_files(&[
            ("json", &to.json.json),
            ("csv", &to.csv),
            ("csv-long", &to.csv_long),
            ("csv-histogram", &to.csv_histogram),
            ("openmetrics", &to.openmetrics),
            ("lava", &to.lava),
            ("markdown", &to.markdown),
            ("html", &to.html),
            ("svg", &to.svg),
            ("svg-percentiles", &to.svg_percentiles),
            ("contribute", &to.contribute),
        ])
    }

    fn pictures(&self) -> impl Iterator<Item = (&'a Path, Picture)> {
        let (distribution, percentiles) = (self.to.svg.as_deref(), self.to.svg_percentiles.as_deref());
        let distribution = distribution.filter(|path| !is_directory(path));
        let all = [(distribution, Picture::Distribution), (percentiles, Picture::Percentiles)];
        all.into_iter().filter_map(|(path, picture)| Some((path?, picture)))
    }

    /// The directory for all pictures.
    fn gallery(&self) -> Option<&'a Path> {
        self.to.svg.as_deref().filter(|path| is_directory(path))
    }

    /// The JSON file, unless it is stdout.
    pub fn json_file(&self) -> Option<&'a Path> {
        self.to.json.json.as_deref().filter(|path| !is_stdout(path))
    }

    /// Checks that no file that the run itself writes replaces another one.
    ///
    /// # Errors
    /// A file would replace another.
    pub fn check_distinct(&self, plan: &Plan) -> Result<()> {
        let files: Vec<_> = self.files().into_iter().chain(files_of(plan)).collect();
        check_distinct(&files, self.to.beside.iter().map(PathBuf::as_path))
    }

    /// Tries whether all files can be written, and whether the plan has something for
    /// them, before anything is measured.
    ///
    /// # Errors
    /// A file cannot be written, or is for something that is not measured; the text names it.
    pub fn check_files(&self, plan: &Plan) -> Result<()> {
        let points = || plan.steps.iter().flat_map(|step| &step.points);
        let events = points().any(|point| self.has_events(&point.probe));
        let curve = points().filter(|point| point.probe == ids::MEMORY_LATENCY).count() > 1;
        let drawn = |picture: Picture| events || curve && picture == Picture::Distribution;
        let empty = self.pictures().find(|(_, picture)| !drawn(*picture)).map(|(path, _)| path);
        if let Some(path) = empty.or(self.to.csv_histogram.as_deref().filter(|_| !events)) {
            bail!("{}", nothing_for(path));
        }
        if let Some(path) = self.gallery() {
            ensure!(points().any(|point| self.has_picture(&point.probe)), nothing_for(path));
            create_directory(path)?;
            saver::check_writable(&path.join(PROBED))?;
        }
        let files = self.files().into_iter().map(|(_, path)| path);
        let files = files.filter(|path| !is_stdout(path) && Some(*path) != self.gallery());
        files.chain(files_of(plan).map(|(_, path)| path)).try_for_each(saver::check_writable)
    }

    /// Shows a plan instead of carrying it out.
    ///
    /// # Errors
    /// Stdout is closed.
    pub fn show_plan(&self, plan: &Plan) -> Result<CommandExit> {
        let text = match &self.to.json.json {
            Some(path) if is_stdout(path) => json::pretty(plan),
            _ => describe_plan(plan),
        };
        stdout::write_text(&text)?;
        Ok(CommandExit::Done)
    }

    /// Shows a report, which `saved` holds already: on stdout what was asked to go there, else the table.
    /// Every file is tried, whatever becomes of the others.
    ///
    /// # Errors
    /// The first one that failed.
    pub fn show_report(&self, report: &Report, in_full: bool, saved: Option<&Path>) -> Result<()> {
        let to = self.to;
        let beside: Vec<&Report> = self.beside.iter().collect();
        let table =
            if self.shows_table() { self.write_table(report, &beside, in_full, saved) } else { Ok(()) };
        let draw = |(path, picture)| write_any(Some(path), || figure::svg_document(report, picture));
        let written = [
            table,
            write_requested(&to.csv, || views::csv::report_csv(report)),
            write_requested(&to.csv_long, || views::csv::long(report)),
            write_requested(&to.openmetrics, || views::openmetrics::openmetrics(report)),
            write_signals(to.lava.as_deref(), || views::lava::format_report(report)),
            write_any(to.csv_histogram.as_deref(), || views::csv::buckets(report)),
            write_requested(&to.markdown, || self.render_markdown(report, &beside, in_full)),
            write_requested(&to.html, || {
                views::html::report_page(report, self.references.all(), &self.catalogue)
            }),
            write_requested(&to.contribute, || references::contribution(report)),
            self.gallery().map_or(Ok(()), |path| gallery(path, report, &self.catalogue, to.quiet)),
            self.pictures().map(draw).fold(Ok(()), Result::and),
            match to.json.takes_stdout() {
                true => write_requested(&to.json.json, || self.saved_form(report).to_json()),
                false => Ok(()),
            },
        ];
        written.into_iter().collect()
    }

    fn render_markdown(&self, report: &Report, beside: &[&Report], in_full: bool) -> String {
        views::markdown::format_report(report, beside, in_full, &self.options(false))
            + &self.references.render_markdown(report)
    }

    /// Returns the report as it is written to `--json`: with the parts that are wanted.
    pub fn saved_form<'r>(&self, report: &'r Report) -> Cow<'r, Report> {
        if self.leaves_out_blocks() { Cow::Owned(report.without_blocks()) } else { Cow::Borrowed(report) }
    }

    /// Returns true if the samples in order of time are not written to `--json`.
    pub fn leaves_out_blocks(&self) -> bool {
        self.to.without.is_some()
    }

    /// Returns true if the samples in order of time are drawn, or written to `--json`.
    pub fn uses_blocks(&self) -> bool {
        let writes = self.to.json.json.is_some() && !self.leaves_out_blocks();
        writes || self.to.html.is_some() || self.gallery().is_some()
    }

    fn options(&self, color: bool) -> DisplayOptions<'_> {
        let sort = self.to.sort.unwrap_or_default();
        DisplayOptions { width: terminal_width(), color, sort, catalogue: &self.catalogue }
    }

    fn write_table(
        &self,
        report: &Report,
        beside: &[&Report],
        in_full: bool,
        saved: Option<&Path>,
    ) -> Result<()> {
        let options = self.options(true);
        let wanted = self.shows_rows();
        let rows = report.measurements.iter().any(|m| m.row && m.summary.count > 0);
        let text = if views::groups::is_of_events(report, &self.catalogue) && !wanted {
            views::groups::format_events(report, &options)
        } else if in_full && !(wanted && rows) || self.without_rows(report) {
            views::text::format_families(report, &options)
        } else if !wanted && views::overview::is_wanted(report, &self.catalogue) {
            let rest = view_hints(saved.or(self.json_file()));
            views::overview::overview(report, &self.references.standing_sentences(report), &rest, &options)
        } else {
            views::survey::survey(report, beside, &options)
        };
        Ok(stdout::write_styled(&(text + &self.references.render_text(report, &options)))?)
    }

    /// Returns true if all measurements are in curves, which have no rows in a table.
    fn without_rows(&self, report: &Report) -> bool {
        report.measurements.iter().any(|m| m.typical().is_some())
            && views::rows::survey_rows(report, &[], &self.catalogue).is_empty()
    }

    /// Returns true if a point of a probe may have a picture: of its events, or one of its family.
    fn has_picture(&self, probe: &str) -> bool {
        let family = self.catalogue.family(families::of_probe(probe));
        self.has_events(probe)
            || family.is_some_and(|facts| !facts.curves.is_empty() || !facts.bars.is_empty())
    }

    /// Returns true unless the samples of a probe are known to be batches, which have no single events.
    fn has_events(&self, probe: &str) -> bool {
        self.catalogue.find_probe(probe).is_none_or(|facts| facts.samples != ProbeSampleKind::Batches)
    }
}

/// Returns the files that a run itself writes, with the names of their options.
fn files_of(plan: &Plan) -> impl Iterator<Item = (&'static str, &Path)> {
    let trace = plan.on_threshold.as_ref().and_then(|rules| rules.trace_file.as_deref());
    let files = [("trace", trace), ("timeline", plan.timeline.as_deref())];
    files.into_iter().filter_map(|(option, path)| Some((option, path?)))
}

/// Hints on how to see the rest of a result, by the file that it was saved in, if it was saved.
fn view_hints(saved: Option<&Path>) -> Vec<String> {
    let Some(path) = saved.filter(|path| !is_stdout(path)) else {
        return vec![
            "All rows: --table. A page with pictures: --html report.html. To save the result: --json result.json".to_owned(),
        ];
    };
    // The name of the user's file is redacted, too.
    let path = if redact::applies() { "RESULT".into() } else { path.to_string_lossy() };
    let show = format!("latscope show {}", shlex::try_quote(&path).unwrap_or_else(|_| path.clone()));
    vec![format!("All rows: {show} --table"), format!("A page with pictures: {show} --html report.html")]
}

/// Shows a text made for the terminal, unless stdout is taken.
///
/// # Errors
/// Stdout is closed.
pub fn show_text(is_taken: bool, text: impl FnOnce(&DisplayOptions) -> String) -> Result<()> {
    if !is_taken {
        let options = DisplayOptions { width: terminal_width(), color: true, ..DisplayOptions::default() };
        stdout::write_styled(&text(&options))?;
    }
    Ok(())
}

/// Returns the files that were asked for, with the names of their options.
pub fn requested_files<'a>(files: &[(&'static str, &'a Option<PathBuf>)]) -> Vec<(&'static str, &'a Path)> {
    files.iter().filter_map(|(option, path)| Some((*option, path.as_deref()?))).collect()
}

/// Writes a view that was asked for.
///
/// # Errors
/// The file or stdout cannot be written.
pub fn write_requested<T: Into<Vec<u8>>>(path: &Option<PathBuf>, view: impl FnOnce() -> T) -> Result<()> {
    write_any(path.as_deref(), || Some(view()))
}

/// Writes a view that was asked for; a report may have nothing for it.
fn write_any<T: Into<Vec<u8>>>(path: Option<&Path>, view: impl FnOnce() -> Option<T>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let content = view().with_context(|| nothing_for(path))?.into();
    if is_stdout(path) { Ok(stdout::write_view(&content)?) } else { saver::replace(path, &content) }
}

/// Writes the signals of a result for LAVA, which obeys them.
fn write_signals(path: Option<&Path>, signals: impl FnOnce() -> String) -> Result<()> {
    match path {
        Some(path) if is_stdout(path) => Ok(stdout::write_data(signals().as_bytes())?),
        path => write_any(path, || Some(signals())),
    }
}

/// Writes a value as JSON: on one line to a file, indented on stdout, where a person may read it.
///
/// # Errors
/// As of [`write()`].
pub fn write_json(to: &JsonArgument, value: &impl Serialize) -> Result<()> {
    if to.json.is_none() {
        return Ok(());
    }
    let text = if to.takes_stdout() { json::pretty(value).into_bytes() } else { json_line(value)? };
    write_requested(&to.json, || text)
}

/// Returns the JSON of a value on one line, with its end.
///
/// # Errors
/// The value has no JSON form.
pub fn json_line(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    json::write_value(&mut text, value)?;
    text.push(b'\n');
    Ok(text)
}

/// The name of a file that is tried in a directory for pictures.
const PROBED: &str = "picture.svg";

/// Returns true if a path is of a directory: it exists as a directory, or ends with `/`.
fn is_directory(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir()
}

fn create_directory(path: &Path) -> Result<()> {
    files::create_directories(path)
        .with_context(|| format!("cannot make the directory {}: choose another one", path.display()))
}

/// Writes all pictures of a report to a directory, and names the files on stderr.
fn gallery(path: &Path, report: &Report, catalogue: &ProbeCatalogue, quiet: bool) -> Result<()> {
    let pictures = figure::pictures(report, catalogue);
    if pictures.is_empty() {
        // What was measured is not lost for it.
        latscope_process::eprintln!("no picture for {}: {NO_PICTURE}", path.display());
        return Ok(());
    }
    create_directory(path)?;
    for picture in pictures {
        let file = path.join(picture.id).with_extension("svg");
        saver::replace_name(&file, figure::document_of(&picture.drawing).as_bytes())?;
        if !quiet {
            latscope_process::eprintln!("{}", file.display());
        }
    }
    Ok(())
}

/// Reason why a report may have no picture.
const NO_PICTURE: &str = "it takes single events, or points of several sizes, threads or other parameters";

fn nothing_for(path: &Path) -> String {
    format!("nothing to write to {}: there are no single events, and no curve for it", path.display())
}

/// Checks that no output replaces another one or an input: a file, or a result in a directory.
///
/// # Errors
/// An output would replace a file; the text names it.
pub fn check_distinct<'a>(files: &[(&str, &Path)], inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for (name, path) in files {
        let place = if is_stdout(path) { path.to_path_buf() } else { saver::absolute_path(path) };
        match known.iter().find(|(_, other)| *other == place) {
            Some((other, _)) if !saver::is_special(path) => {
                let to =
                    if is_stdout(path) { "standard output".to_owned() } else { path.display().to_string() };
                bail!("--{other} and --{name} both write to {to}: choose another file for one of them")
            }
            _ => known.push((name, place)),
        }
    }
    for input in inputs {
        if let Some((name, path)) = files.iter().find(|(_, path)| replaces(path, input)) {
            bail!("--{name} {} is the input itself: choose another file", path.display());
        }
    }
    Ok(())
}

/// Returns true if writing to `output` would replace data that is read from `input`, by whatever links they are named.
pub fn replaces(output: &Path, input: &Path) -> bool {
    if is_stdout(output) || is_stdout(input) || saver::is_special(output) {
        return false;
    }
    match (output.canonicalize(), input.canonicalize()) {
        (Ok(output), Ok(input)) if input.is_dir() => output.starts_with(&input) && load_one(&output).is_ok(),
        (Ok(output), Ok(input)) => output == input,
        _ => false,
    }
}

/// Number of columns of the terminal; 100 if there is no terminal.
pub fn terminal_width() -> usize {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let found = terminal.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
    found.or(columns).unwrap_or(100).max(40)
}

/// Ignores a failure to show something to a reader that went away: it must not hide a verdict, which the exit code
/// still has.
///
/// # Errors
/// Any other failure.
pub fn unless_unread(shown: Result<()>) -> Result<()> {
    match shown {
        Err(error) if is_unread(&error) => Ok(()),
        shown => shown,
    }
}

/// Returns true if an error is that of a reader that went away.
pub fn is_unread(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
