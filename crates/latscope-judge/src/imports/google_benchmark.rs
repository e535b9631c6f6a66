//! The JSON of Google Benchmark. A repetition is the mean of many iterations. Repetitions become rounds; values that
//! are computed from them (mean, median, complexity) are left out.

use super::report::{Source, finish, measurement};
use super::{from_json, has_names, time};
use latscope_core::histogram::Histogram;
use latscope_core::ordered::entry;
use latscope_core::plan::params;
use latscope_core::quality::{Level, Reason};
use latscope_core::report::{Better, Measurement, Report, Sampling, Semantics, Value};
use latscope_core::rounds::Round;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Returns true if a text has names that together no other program has.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["context", "benchmarks"])
}

#[derive(Deserialize)]
struct File {
    context: Context,
    benchmarks: Vec<Line>,
}

#[derive(Deserialize)]
struct Context {
    date: Option<String>,
    #[serde(default)]
    host_name: String,
    library_version: Option<String>,
    library_build_type: Option<String>,
    cpu_scaling_enabled: Option<bool>,
}

#[derive(Deserialize)]
struct Line {
    name: String,
    run_name: Option<String>,
    run_type: Option<String>,
    aggregate_name: Option<String>,
    iterations: Option<u64>,
    real_time: Option<f64>,
    cpu_time: Option<f64>,
    time_unit: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    #[serde(default)]
    skipped: bool,
    #[serde(default)]
    error_message: String,
    #[serde(default)]
    skip_message: String,
}

const UNKNOWN: &[&str] = &["options of the program", "counters of the user, which are not read"];

/// Reads the benchmarks of a run.
///
/// # Errors
/// The text has aggregates only, is of an old version, or damaged.
pub(super) fn read(text: &str) -> Result<Report, String> {
    let file: File = from_json(text)?;
    let version = file.context.library_version.clone();
    let mut report = Source { program: "Google Benchmark", version, text, unknown: UNKNOWN }.report();
    report.machine.name = file.context.host_name;
    report.started = time::read(file.context.date.as_deref())?.unwrap_or_default();
    if file.context.library_build_type.as_deref() == Some("debug") {
        report.plan.notes.push("the benchmark library is a debug build".to_owned());
    }
    if file.context.cpu_scaling_enabled == Some(true) {
        report.plan.notes.push("frequency scaling was on".to_owned());
    }
    let mut benchmarks: Vec<(&str, Vec<&Line>)> = Vec::new();
    let mut computed: Vec<&str> = Vec::new();
    for line in &file.benchmarks {
        match line.run_type.as_deref() {
            Some("iteration") => {}
            Some("aggregate") => {
                // A complexity is one of several benchmarks.
                let of_one = ["mean", "median"].map(Some).contains(&line.aggregate_name.as_deref());
                computed.extend(line.run_name.as_deref().filter(|_| of_one));
                continue;
            }
            _ => {
                return Err(
                    "it does not say which lines are aggregates: it is of a version before 1.5".to_owned()
                );
            }
        }
        let name = line.run_name.as_deref().unwrap_or(&line.name);
        entry(&mut benchmarks, name).push(line);
    }
    if let Some(name) = computed.iter().find(|name| !benchmarks.iter().any(|(known, _)| known == *name)) {
        return Err(format!(
            "of {name} it has aggregates only: run it without --benchmark_report_aggregates_only"
        ));
    }
    let measured = benchmarks
        .iter()
        .map(|(name, lines)| point(name, lines).map_err(|why| format!("benchmark {name}: {why}")));
    finish(report, measured.collect::<Result<_, _>>()?)
}

/// A benchmark with its repetitions.
fn point(name: &str, lines: &[&Line]) -> Result<Measurement, String> {
    let params = params([("benchmark", name.into())]);
    let mut m = measurement(
        "imported.google-benchmark",
        params,
        name.to_owned(),
        Semantics::Operation,
        Histogram::new(1),
    );
    let (failed, done): (Vec<&Line>, Vec<&Line>) =
        lines.iter().partition(|line| line.error_occurred || line.skipped);
    m.sampling = Sampling::Batch { ops: done.first().and_then(|line| line.iterations).unwrap_or(0) };
    if let Some(line) = failed.first() {
        let level = if done.is_empty() { Level::Unsupported } else { Level::Degraded };
        let text = format!("{}{}", line.error_message, line.skip_message);
        m.lower(Reason::new(level, "not-possible-here", text, ""));
    }
    let times: Vec<f64> = done.iter().map(|line| line.ns(line.real_time)).collect::<Result<_, _>>()?;
    // Of what is short more digits are known than of a ns.
    let tick_ps = if times.iter().all(|ns| *ns < 1e6) { 1 } else { 1_000 };
    m.histogram = Histogram::new(tick_ps);
    for (line, ns) in done.iter().zip(times) {
        m.histogram.record((ns * 1e3 / tick_ps as f64).round() as u64);
        let cpu = line.cpu_time.map(|_| line.ns(line.cpu_time)).transpose()?;
        let values: BTreeMap<String, f64> = cpu.into_iter().map(|cpu| (CPU_TIME.to_owned(), cpu)).collect();
        m.rounds.push(Round {
            count: 1,
            min: Some(ns),
            p50: Some(ns),
            max: Some(ns),
            values,
            ..Round::default()
        });
    }
    let cpu: Vec<f64> = m.rounds.iter().filter_map(|round| round.values.get(CPU_TIME).copied()).collect();
    if let Some(value) = latscope_core::statistics::median(&cpu) {
        m.values.insert(CPU_TIME.to_owned(), Value { value, unit: "ns".to_owned(), better: Better::Less });
    }
    if m.rounds.len() < 2 {
        m.rounds.clear();
    }
    Ok(m)
}

/// Name of the value with the CPU time of an iteration.
const CPU_TIME: &str = "cpu-time";

impl Line {
    fn ns(&self, time: Option<f64>) -> Result<f64, String> {
        let unit = match self.time_unit.as_deref() {
            Some("ns") => 1.0,
            Some("us") => 1e3,
            Some("ms") => 1e6,
            Some("s") => 1e9,
            other => return Err(format!("its time_unit is {other:?}, and ns, us, ms and s are known")),
        };
        let ns = time.ok_or("it has no real_time")? * unit;
        // Longer than 30 years is damage.
        Some(ns)
            .filter(|ns| (0.0..=1e18).contains(ns))
            .ok_or_else(|| format!("{ns} ns is no time: it is damaged"))
    }
}
