//! The JSON of hyperfine. Each time is that of a separate process: a round of one event.

use super::checks::{KnownValues, StatedFigures, StatedNumber, deviation};
use super::report::{ImportSource, check_length, finish_report, number_alike, sampled_point};
use super::{from_json, has_names};
use latscope_core::histogram::Histogram;
use latscope_core::plan::{USER_PARAMETER, params};
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Measurement, Report, Semantics};
use latscope_core::rounds::RoundSummary;
use latscope_core::units::count_with_noun;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Id of the probe of its measurements.
pub(super) const PROBE: &str = "imported.hyperfine";

/// Returns true if a text has names that together no other program has.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["results", "command", "stddev", "user", "system"]) || is_empty(text)
}

/// Returns true for the JSON of no command.
fn is_empty(text: &str) -> bool {
    let dense: String = text.chars().filter(|c| !c.is_whitespace()).take(20).collect();
    dense == "{\"results\":[]}"
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
    mean: Option<f64>,
    median: Option<f64>,
    stddev: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

const UNKNOWN: &str = "options: shell, warm-up runs, preparation";

/// Reads the commands of a run.
///
/// # Errors
/// The text has no times of the single runs, or is damaged.
pub(super) fn read_output(text: &str) -> Result<Report, String> {
    let file: File = from_json(text)?;
    if file.results.is_empty() {
        return Err("it has no command: hyperfine ended before it measured one".to_owned());
    }
    let lack = file.results.iter().any(|command| command.exit_codes.is_empty());
    let unknown: Vec<&str> = [UNKNOWN].into_iter().chain(lack.then_some("exit codes of the runs")).collect();
    let mut report =
        ImportSource { program: "hyperfine", version: None, text, unknown: &unknown }.empty_report();
    let measured = file
        .results
        .iter()
        .map(|command| command.to_measurement().map_err(|why| format!("{:?}: {why}", command.command)));
    let mut measured = measured.collect::<Result<Vec<_>, _>>()?;
    for m in measured.iter().filter(|m| m.histogram.min() == Some(0.0)) {
        let note = format!("{}: a run took 0 s: hyperfine takes the time of its shell off", m.title);
        report.plan.notes.push(note);
    }
    number_alike(&mut measured);
    finish_report(report, measured)
}

/// Returns true if a number is the standard deviation of these times, as far as it has digits.
fn is_deviation(stated: f64, times: &[f64]) -> bool {
    let own = deviation(times).unwrap_or(0.0);
    let text = stated.to_string();
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len().min(300));
    let step = 0.1f64.powi(digits as i32).min(own / 2.0);
    (stated - own).abs() <= step.max(1e-9 * own)
}

impl Command {
    /// Checks the figures of the command against the times of its runs.
    fn check_times(&self, times: &[f64]) -> Result<(), String> {
        let step = |value: f64| StatedNumber::to_step(value, 1e-9 * value.abs());
        let stated = StatedFigures { count: None, min: self.min, max: self.max, mean: self.mean.map(step) };
        stated.check_values(&KnownValues::single(times))?;
        let median = latscope_core::statistics::median(times).map(step);
        if self.median.map(step).zip(median).is_some_and(|(stated, median)| !stated.agrees(median)) {
            return Err("its median is not that of its times: it is damaged".to_owned());
        }
        if self.stddev.is_some_and(|stated| !is_deviation(stated, times)) {
            return Err("its stddev is not that of its times: it is damaged".to_owned());
        }
        let codes = self.exit_codes.len();
        if codes > 0 && codes != times.len() {
            let codes = count_with_noun(codes as u64, "exit code");
            return Err(format!("it has {} times and {codes}: it is damaged", times.len()));
        }
        Ok(())
    }

    fn to_measurement(&self) -> Result<Measurement, String> {
        let times = self.times.as_deref().filter(|times| !times.is_empty());
        let times = times.ok_or("it has no times of the single runs")?;
        check_length(times.len(), "runs")?;
        self.check_times(times)?;
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
            rounds.push(RoundSummary {
                count: 1,
                min: Some(ns),
                p50: Some(ns),
                max: Some(ns),
                ..RoundSummary::default()
            });
        }
        let mut params = params([("command", self.command.as_str().into())]);
        for (name, value) in &self.parameters {
            params.insert(format!("{USER_PARAMETER}{name}"), value.as_str().into());
        }
        let mut m = sampled_point(PROBE, params, self.command.clone(), Semantics::Operation, histogram);
        if rounds.len() > 1 {
            m.rounds = rounds;
        }
        let failed = self.exit_codes.iter().filter(|code| **code != Some(0)).count();
        if failed > 0 {
            let text = format!("{failed} of {} runs failed, or were ended by a signal", times.len());
            m.lower(Reason::new(QualityLevel::Degraded, "calls-failed", text, ""));
        }
        Ok(m)
    }
}
