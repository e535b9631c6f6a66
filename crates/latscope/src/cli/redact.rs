//! `--redact`: results without what says whose machine it is, for the whole process.

use anyhow::{Context, Result, ensure};
use latscope_core::machine::Machine;
use latscope_core::ordered::index_or_push;
use latscope_core::plan::Plan;
use latscope_core::redact::Redactor;
use latscope_core::report::Report;
use latscope_judge::runs::RunResult;
use latscope_process::stderr;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Mutex;

/// Set once, by the option, before anything is read or printed. The names of the files that were read are in their
/// order.
static REDACTOR: Mutex<Option<(Redactor, Vec<String>)>> = Mutex::new(None);

/// Name of the option.
pub const OPTION: &str = "--redact";

/// Has this process redact if the option is among its arguments, wherever it stands: also what it prints on stderr,
/// from the first message on. The arguments are not repeated either.
pub fn enable_if_asked(arguments: &[OsString]) {
    if !arguments.iter().any(|word| word == OPTION) {
        return;
    }
    let words: Vec<String> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut redactor = Redactor::default();
    redactor.know_host(&rustix::system::uname().nodename().to_string_lossy());
    redactor.arguments(&words);
    *lock() = Some((redactor, Vec::new()));
    stderr::filter(message);
}

/// Returns a message as it may be printed.
pub fn message(text: &str) -> String {
    with_redactor(|redactor| redactor.sentence(text)).unwrap_or_else(|| text.to_owned())
}

/// Returns the words of a command line as they may be shown and written.
pub fn redact_words(words: &[String]) -> Vec<String> {
    with_redactor(|redactor| redactor.arguments(words)).unwrap_or_else(|| words.to_vec())
}

/// Returns a command of the user as it may be shown and written: another word for each.
pub fn redact_command(command: &str) -> String {
    with_redactor(|redactor| redactor.redact_command(command)).unwrap_or_else(|| command.to_owned())
}

fn lock() -> std::sync::MutexGuard<'static, Option<(Redactor, Vec<String>)>> {
    REDACTOR.lock().expect("redacting does not panic")
}

/// Applies a function to the redactor; `None` if this process does not redact.
fn with_redactor<T>(apply: impl FnOnce(&mut Redactor) -> T) -> Option<T> {
    lock().as_mut().map(|(redactor, _)| apply(redactor))
}

/// Returns true if this process redacts.
pub fn applies() -> bool {
    lock().is_some()
}

/// Returns the report as it may be shown and written.
///
/// # Errors
/// A text that decides how the result is read would change.
pub fn redact_report(report: Report) -> Result<Report> {
    with_redactor(|redactor| redactor.redact_report(&report))
        .unwrap_or(Ok(report))
        .context("cannot redact this result")
}

/// Returns the run as it may be shown and written.
///
/// # Errors
/// As [`report`].
pub fn redact_run(mut run: RunResult) -> Result<RunResult> {
    run.report = redact_report(run.report)?;
    Ok(run)
}

/// Returns the machine as it may be shown and written.
///
/// # Errors
/// As [`report`].
pub fn redact_machine(machine: Machine) -> Result<Machine> {
    with_redactor(|redactor| redactor.redact_machine(&machine))
        .unwrap_or(Ok(machine))
        .context("cannot redact this machine")
}

/// Returns the name of a file as it may be shown and written.
pub fn redact_file_name(name: String) -> String {
    let Some((_, files)) = &mut *lock() else { return name };
    format!("result-{}", index_or_push(files, name) + 1)
}

/// Returns a remark on a file as it may be shown and written.
pub fn remark(text: String, path: &Path) -> String {
    if !applies() {
        return text;
    }
    let name = path.display().to_string();
    let redacted = redact_file_name(name.clone());
    text.replace(&name, &redacted)
}

/// Checks that a run that redacts writes nothing else.
///
/// # Errors
/// The plan has a file that is not redacted.
pub fn check_plan_files(plan: &Plan) -> Result<()> {
    let trace = plan.on_threshold.as_ref().and_then(|rules| rules.trace_file.as_ref());
    let option = if plan.timeline.is_some() { "--timeline" } else { "a trace of outliers" };
    ensure!(
        !applies() || trace.is_none() && plan.timeline.is_none(),
        "--redact does not cover {option}, which names every process: leave out one of both"
    );
    Ok(())
}
