//! `latscope import`: converts outputs of other programs to results of latscope.

use super::CommandExit;
use super::input::{InputArguments, check_once};
use super::options::JsonArgument;
use super::output::{check_distinct, is_stdout};
use super::results::{input_name, load_one};
use anyhow::{Context, Result, ensure};
use clap::Args;
use latscope_core::quality::QualityLevel;
use latscope_core::report::Report;
use latscope_core::units::count_with_noun;
use latscope_engine::saver;
use latscope_judge::imports::{FORMATS, ReadError};
use latscope_process::{files, stdout};
use std::path::{Path, PathBuf};

/// Reads outputs of other programs as results: what each is, and what it does not say
///
/// cyclictest (--json, -h), jitterdebugger (-o), fio (--output-format=json+), rtla (timerlat hist, osnoise hist),
/// Google Benchmark (--benchmark_format=json), hyperfine (--export-json), lat_mem_rd. Every command that reads
/// results takes these files directly.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// Outputs of other programs; - for stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    json: JsonArgument,
}

/// Reads each file, and writes it as a result if that is asked for: one to the file of `--json`, several into its
/// directory.
///
/// # Errors
/// A file is of no program that is known, or damaged, or a result cannot be written. Nothing is written unless all
/// can be read.
pub fn import_files(asked: &ImportArguments) -> Result<CommandExit> {
    asked.input.set_size_limit();
    check_once(&asked.files, "files for the others")?;
    let mut reports = Vec::new();
    for path in &asked.files {
        let report = load_one(path).map_err(|error| unknown_file_error(path, error))?;
        ensure!(report.imported.is_some(), "{} is a result of latscope already", input_name(path));
        reports.push(report);
    }
    let to = destinations(asked)?;
    if to.iter().any(|path| is_stdout(path)) {
        stdout::write_data(reports[0].to_json().as_bytes())?;
        return Ok(CommandExit::Done);
    }
    let lines: Vec<String> = asked
        .files
        .iter()
        .zip(&reports)
        .map(|(path, report)| describe_import(&input_name(path), report))
        .collect();
    to.iter().zip(&reports).try_for_each(|(path, report)| saver::save_report(path, report))?;
    stdout::write_text(&lines.concat())?;
    Ok(CommandExit::Done)
}

/// The error of a file of an unknown program: which programs' files are read.
fn unknown_file_error(path: &Path, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<ReadError>() {
        Some(ReadError::Load(_)) => of_none(path, "it is no output that latscope reads"),
        Some(ReadError::Unread(what)) => of_none(path, what),
        _ => error,
    }
}

fn of_none(path: &Path, why: &str) -> anyhow::Error {
    let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    anyhow::anyhow!("cannot use {}: {why} (choose one of {})", input_name(path), known.join(", "))
}

/// The files to write: none, the one that was named, or one for each input in the directory that was named.
fn destinations(asked: &ImportArguments) -> Result<Vec<PathBuf>> {
    let Some(to) = &asked.json.json else { return Ok(Vec::new()) };
    let named_directory = to.as_os_str().as_encoded_bytes().ends_with(b"/");
    if asked.files.len() == 1 && !to.is_dir() && !named_directory {
        check_distinct(&[("json", to)], asked.files.iter().map(PathBuf::as_path))?;
        return Ok(vec![to.clone()]);
    }
    ensure!(
        to.is_dir() || named_directory,
        "--json {}: several files need a directory (end its name with / to make it)",
        to.display()
    );
    let in_directory = |path: &PathBuf| -> Result<PathBuf> {
        let stem = path.file_stem().filter(|_| !is_stdout(path));
        let written = to.join(stem.unwrap_or("stdin".as_ref())).with_extension("json");
        ensure!(!written.exists(), "{} exists already: choose another directory", written.display());
        Ok(written)
    };
    let files: Vec<PathBuf> = asked.files.iter().map(in_directory).collect::<Result<_>>()?;
    check_distinct(&files.iter().map(|path| ("json", path.as_path())).collect::<Vec<(&str, &Path)>>(), [])?;
    files::create_directories(to).with_context(|| format!("cannot make the directory {}", to.display()))?;
    Ok(files)
}

/// `a.json: fio 3.33, 4 points; not known: …`.
fn describe_import(file: &str, report: &Report) -> String {
    let Some(imported) = &report.imported else { return String::new() };
    let points = count_with_noun(report.measurements.len() as u64, "point");
    let warnings = report.warnings.iter().map(|warning| format!("  warning: {}\n", warning.text));
    let notes = report.plan.notes.iter().map(|note| format!("  note: {note}\n"));
    let empty = report.measurements.iter().filter(|m| m.quality.level == QualityLevel::Unsupported);
    let empty: Vec<&str> = empty.map(|m| m.title.as_str()).collect();
    let empty = Some(empty).filter(|titles| !titles.is_empty());
    let empty = empty.map(|titles| format!("  without a figure: {}\n", titles.join("; ")));
    format!(
        "{file}: {}, {points}\n{}  not known: {}\n",
        imported.name(),
        warnings.chain(notes).chain(empty).collect::<String>(),
        imported.unknown.join(", ")
    )
}
