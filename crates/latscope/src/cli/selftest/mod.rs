//! `latscope selftest`: known truths that the instrument must find.

mod survey;
mod wake;

use super::Exit;
use anyhow::{Result, bail};
use clap::ArgMatches;
use latscope_core::report::Report;
use latscope_engine::runner::{self, Run};

/// One known truth and what was found.
struct Verdict {
    holds: bool,
    text: String,
}

/// Measures the known truths and judges.
///
/// # Errors
/// No worker can be started.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let verdicts = match matches.get_one::<String>("what").map(String::as_str) {
        Some("wake") => wake::verdicts()?,
        _ => survey::verdicts()?,
    };
    for verdict in &verdicts {
        let word = if verdict.holds { "pass" } else { "FAIL" };
        latscope_host::stdout::write(&format!("{word}  {}\n", verdict.text))?;
    }
    Ok(if verdicts.iter().all(|verdict| verdict.holds) { Exit::Done } else { Exit::Error })
}

/// Measures all of a plan: what was cut short proves nothing.
///
/// # Errors
/// No worker can be started, or the run was told to end.
fn measured(run: Run) -> Result<Report> {
    let report = runner::run(run)?;
    match &report.interrupted {
        Some(told) => bail!("interrupted by {}: nothing is judged", told.by),
        None => Ok(report),
    }
}
