//! Results from files: those of latscope, and the outputs of other programs, which are recognised by their content.

use super::input;
pub use super::input::{input_name, is_stdout};
use super::redact;
use super::usage::did_you_mean;
use anyhow::{Context, Result, ensure};
use latscope_core::report::Report;
use latscope_judge::compare::is_wanted;
use latscope_judge::imports::{self, ReadError};
use latscope_judge::runs::{self, RunResult};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;
use std::{fs, thread};

/// Runs with the names of their files, and remarks on the other files.
#[derive(Debug, Default)]
pub struct Results {
    /// The runs, in the order of the arguments, then by name.
    pub runs: Vec<(String, RunResult)>,
    /// Skipped files, each with the reason.
    pub skipped: Vec<String>,
    /// Skipped files that are results, or may be: their names, and why they cannot be read.
    pub lost: Vec<(String, String)>,
}

impl Results {
    /// Leaves out the runs that are among others, too: `whose` says what those are, and `all` what holds of every run
    /// if none is left.
    ///
    /// # Errors
    /// No run is left.
    pub fn leave_out(&mut self, others: &Results, whose: &str, all: &str) -> Result<()> {
        for (name, run) in std::mem::take(&mut self.runs) {
            match others.runs.iter().find(|(_, other)| other.is_same(&run)) {
                Some((other, _)) => {
                    self.skipped.push(format!("{name} is the same run as {other}{whose}: it is left out"));
                }
                None => self.runs.push((name, run)),
            }
        }
        let left = !self.runs.is_empty();
        ensure!(left, "every run {all}, too: there is nothing to compare (choose other results)");
        Ok(())
    }
}

/// Reads results: files, `-` for stdin, and directories, whose files that are no results are skipped. A run that is
/// there twice is counted once.
///
/// # Errors
/// A named file cannot be read or is no result, or there is no result at all; the text names the file.
pub fn load_results(paths: &[PathBuf]) -> Result<Results> {
    load_by(paths, imports::read_run)
}

/// Reads results as [`load`] does, and of files that are named also several runs merged into one.
///
/// # Errors
/// The errors of [`load`].
pub fn load_judged(paths: &[PathBuf]) -> Result<Results> {
    load_by(paths, imports::read_runs)
}

/// Reads results; named files are read by `of_named`.
fn load_by(paths: &[PathBuf], of_named: fn(&[u8]) -> Result<RunResult, ReadError>) -> Result<Results> {
    let mut results = Results::default();
    let mut files: Vec<(PathBuf, bool)> = Vec::new();
    for path in paths {
        if !is_stdout(path) && path.is_dir() {
            let found = of_directory(path, &mut results.skipped)?;
            files.extend(found.into_iter().map(|file| (file, false)));
        } else {
            files.push((path.clone(), true));
        }
    }
    let read = each_in_turn(&files, |(path, named)| {
        let run = if *named { read_result(path, of_named) } else { read_listed(path, imports::read_run) };
        run.and_then(redact::redact_run)
    });
    for ((path, named), run) in files.iter().zip(read) {
        match run {
            Ok(run) => results.runs.push((redact::redact_file_name(input_name(path)), run)),
            Err(error) if *named => return Err(error),
            Err(error) => {
                if let Some(said) = skipped(path, &error) {
                    results.skipped.push(redact::remark(said, path));
                }
                if is_lost(path, &error) {
                    results.lost.push((
                        redact::redact_file_name(input_name(path)),
                        format!("{:#}", error.root_cause()),
                    ));
                }
            }
        }
    }
    let (runs, twice) = runs::remove_duplicates(results.runs);
    (results.runs, results.skipped) = (runs, results.skipped.into_iter().chain(twice).collect());
    let lost = || results.lost.iter().map(|(file, why)| format!("{file}: {why}")).collect();
    ensure!(!results.runs.is_empty(), "{}", nothing_in(paths, lost()));
    Ok(results)
}

/// Most damaged files that an error names.
const NAMED: usize = 3;

/// The error of paths without a result, with their files that cannot be read, and why.
pub fn nothing_in(paths: &[PathBuf], mut lost: Vec<String>) -> String {
    let names: Vec<String> = paths.iter().map(|path| input_name(path)).collect();
    let there = format!("there is no result in {}", names.join(", "));
    if lost.is_empty() {
        return there + " (choose files that --json wrote)";
    }
    if let Some(more) = lost.len().checked_sub(NAMED).filter(|more| *more > 0) {
        lost.splice(NAMED.., [format!("{more} more cannot be read")]);
    }
    format!("{there} that can be read: {}", lost.join("; "))
}

/// Remark on a file of a directory that is no result; `None` for the files that latscope itself leaves beside results.
pub fn skipped(path: &Path, error: &anyhow::Error) -> Option<String> {
    let log = path.extension().is_some_and(|name| name == "log");
    let beside = match error.downcast_ref::<ReadError>() {
        Some(ReadError::Other(_)) => true,
        Some(ReadError::Load(_) | ReadError::Unread(_)) => {
            log && as_kept(path.with_file_name(TRIAL)).exists()
        }
        _ => false,
    };
    (!beside).then(|| format!("skipped: {error:#}"))
}

/// Returns true if a file of a directory that cannot be read is a result, or may be: a crash leaves empty files, too.
fn is_lost(path: &Path, error: &anyhow::Error) -> bool {
    let empty = || {
        [".json", ".json.gz"].iter().any(|end| path.as_os_str().as_encoded_bytes().ends_with(end.as_bytes()))
            && fs::metadata(path).is_ok_and(|file| file.len() == 0)
    };
    error.downcast_ref::<ReadError>().is_none_or(|error| error.is_of_result() || empty())
}

/// The files of a directory by name; what is no plain file is skipped.
pub fn of_directory(path: &Path, skipped: &mut Vec<String>) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", path.display());
    let entries = fs::read_dir(path).with_context(cannot)?;
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .with_context(cannot)?;
    all.sort();
    // A file that cannot be looked at is tried, and said to be unreadable. Another user may have placed links in a
    // directory.
    let (files, others): (Vec<PathBuf>, Vec<PathBuf>) =
        all.into_iter().partition(|path| path.symlink_metadata().map_or(true, |about| about.is_file()));
    skipped.extend(others.iter().map(|other| format!("skipped: {} is no plain file", other.display())));
    Ok(files)
}

/// Reads files of a directory on two threads; what `each` makes of each, in order. Only that is kept.
pub fn read_each<T: Send>(files: &[&Path], each: impl Fn(&Path, Result<RunResult>) -> T + Sync) -> Vec<T> {
    each_in_turn(files, |path| each(path, read_listed(path, imports::read_run).and_then(redact::redact_run)))
}

/// Takes items on two threads; what `each` makes of each, in order.
fn each_in_turn<I: Sync, T: Send>(items: &[I], each: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, each(item)));
        }
    };
    let mut done = thread::scope(|scope| {
        let other = (items.len() > 1).then(|| scope.spawn(worker));
        let mut done = worker();
        done.extend(other.into_iter().flat_map(|other| other.join().expect("reading does not panic")));
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Reads a result in full, `-` from standard input.
///
/// # Errors
/// The file cannot be read, or is no result; the text names it.
pub fn load_one(path: &Path) -> Result<Report> {
    read_result(path, imports::read_report).map(add_doubts).and_then(redact::redact_report)
}

/// Reads a result that a directory lists as [`load_one`] does.
///
/// # Errors
/// The file cannot be read, is none any more, or is no result; the text names it.
pub fn load_listed(path: &Path) -> Result<Report> {
    read_listed(path, imports::read_report).map(add_doubts).and_then(redact::redact_report)
}

/// Reads a result in full but for its samples in order of time.
///
/// # Errors
/// The file cannot be read, or is no result: as for [`load_one`].
pub fn load_without_blocks(path: &Path) -> Result<Report> {
    read_result(path, imports::read_report_without_blocks).map(add_doubts).and_then(redact::redact_report)
}

/// Adds what speaks against the time of a result, and against its shares.
fn add_doubts(mut report: Report) -> Report {
    imports::warn_if_doubtful(&mut report, SystemTime::now());
    report
}

/// Makes a result of a file, also of one of another program.
fn read_result<T>(path: &Path, of: fn(&[u8]) -> Result<T, ReadError>) -> Result<T> {
    of(&input::result(path)?).with_context(|| format!("cannot use {}", input_name(path)))
}

/// Makes a result of a file that a directory lists.
fn read_listed<T>(path: &Path, of: fn(&[u8]) -> Result<T, ReadError>) -> Result<T> {
    of(&input::listed_result(path)?).with_context(|| format!("cannot use {}", input_name(path)))
}

/// The path of a file, or with `.gz` behind it if only that is there.
pub fn as_kept(path: PathBuf) -> PathBuf {
    let mut packed = path.clone().into_os_string();
    packed.push(".gz");
    if !path.exists() && Path::new(&packed).is_file() { packed.into() } else { path }
}

/// The file that `trial` and `run` leave beside their results.
pub const TRIAL: &str = "trial.json";

/// Reads a name in the list of `--only`, without the blanks around it.
///
/// # Errors
/// The name is empty.
pub fn parse_filter_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    let missing = || "a family or a probe is missing, such as sync or sync.mutex".to_owned();
    if name.is_empty() { Err(missing()) } else { Ok(name.to_owned()) }
}

/// Checks that each name of `--only` is that of something measured. `who` is the subject of the error's text: `neither
/// side has`.
///
/// # Errors
/// A name is of nothing that was measured; the text has the nearest name.
pub fn check_only(only: &[String], probes: &BTreeSet<&str>, who: &str) -> Result<()> {
    for name in only {
        let known = probes.iter().any(|probe| is_wanted(probe, std::slice::from_ref(name)));
        let families = probes.iter().filter_map(|probe| probe.split('.').next());
        let near = did_you_mean(name, families.chain(probes.iter().copied()));
        ensure!(known, "--only {name}: {who} such a family or probe{near}");
    }
    Ok(())
}
