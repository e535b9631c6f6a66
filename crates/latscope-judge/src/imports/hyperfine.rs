//! The JSON of hyperfine. Each time is that of a separate process: a round of one event.

use super::report::{Source, finish, measurement};
use super::{from_json, has_names};
use latscope_core::histogram::Histogram;
use latscope_core::plan::{USER_PARAMETER, params};
use latscope_core::quality::{Level, Reason};
use latscope_core::report::{Measurement, Report, Semantics};
use latscope_core::rounds::Round;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Returns true if a text has names that together no other program has.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["results", "command", "stddev", "user", "system"])
}

#[derive(Deserialize)]
struct File {
    results: Vec<Command>,
}

#[derive(Deserialize)]
struct Command {
    command: String,
    /// Times of the runs, in seconds.
    times: Option<Vec<f64>>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

const UNKNOWN: &[&str] = &["options: shell, warm-up runs, preparation"];

/// Reads the commands of a run.
///
/// # Errors
/// The text has no times of the single runs, or is damaged.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let file: File = from_json(text)?;
    let report = Source { program: "hyperfine", version: None, text, unknown: UNKNOWN }.report();
    let measured = file
        .results
        .iter()
        .map(|command| command.measurement().map_err(|why| format!("{:?}: {why}", command.command)));
    finish(report, measured.collect::<Result<_, _>>()?)
}

impl Command {
    fn measurement(&self) -> Result<Measurement, String> {
        let times = self.times.as_deref().filter(|times| !times.is_empty());
        let times = times.ok_or("it has no times of the single runs")?;
        let mut histogram = Histogram::new(1_000);
        let mut rounds = Vec::new();
        for seconds in times {
            // A negative time cannot be; one that is longer than 30 years is damage.
            if !(0.0..=1e9).contains(seconds) {
                return Err(format!("{seconds} s is no time of a run: it is damaged"));
            }
            // It is printed with more digits than it was measured with.
            let ns = (seconds * 1e9).round();
            histogram.record(ns as u64);
            rounds.push(Round { count: 1, min: Some(ns), p50: Some(ns), max: Some(ns), ..Round::default() });
        }
        let mut params = params([("command", self.command.as_str().into())]);
        for (name, value) in &self.parameters {
            params.insert(format!("{USER_PARAMETER}{name}"), value.as_str().into());
        }
        let mut m =
            measurement("imported.hyperfine", params, self.command.clone(), Semantics::Operation, histogram);
        if rounds.len() > 1 {
            m.rounds = rounds;
        }
        let failed = self.exit_codes.iter().filter(|code| **code != Some(0)).count();
        if failed > 0 {
            let text = format!("{failed} of {} runs failed, or were ended by a signal", times.len());
            m.lower(Reason::new(Level::Degraded, "calls-failed", text, ""));
        }
        Ok(m)
    }
}
