//! The JSON of Google Benchmark. A repetition is the mean of many iterations. Repetitions become rounds; values that
//! are computed from them (mean, median, complexity) are left out.

use super::checks::{KnownValues, StatedFigures, StatedNumber, deviation};
use super::report::{ImportSource, check_length, finish_report, number_alike, sampled_point};
use super::{from_json, has_names, time};
use latscope_core::histogram::Histogram;
use latscope_core::ordered::entry;
use latscope_core::plan::params;
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Better, MeasuredQuantity, Measurement, Report, Sampling, Semantics};
use latscope_core::rounds::RoundSummary;
use latscope_core::units::count_with_noun;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Returns true if a text has names that together no other program has.
pub(super) fn recognises(text: &str) -> bool {
    has_names(text, &["context", "benchmarks"])
}

#[derive(Deserialize)]
struct GoogleBenchmarkFile {
    context: GoogleBenchmarkContext,
    benchmarks: Vec<GoogleBenchmarkEntry>,
}

#[derive(Deserialize)]
struct GoogleBenchmarkContext {
    date: Option<String>,
    #[serde(default)]
    host_name: String,
    library_version: Option<String>,
    library_build_type: Option<String>,
    cpu_scaling_enabled: Option<bool>,
}

#[derive(Deserialize)]
struct GoogleBenchmarkEntry {
    name: String,
    run_name: Option<String>,
    run_type: Option<String>,
    family_index: Option<u64>,
    per_family_instance_index: Option<u64>,
    repetition_index: Option<u64>,
    repetitions: Option<u64>,
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
pub(super) fn read_output(text: &str) -> Result<Report, String> {
    let file: GoogleBenchmarkFile = from_json(text)?;
    check_length(file.benchmarks.len(), "lines of benchmarks")?;
    let version = file.context.library_version.clone();
    let mut report =
        ImportSource { program: "Google Benchmark", version, text, unknown: UNKNOWN }.empty_report();
    report.machine.name = file.context.host_name;
    report.started = time::read_date(file.context.date.as_deref())?.unwrap_or_default();
    if file.context.library_build_type.as_deref() == Some("debug") {
        report.plan.notes.push("the benchmark library is a debug build".to_owned());
    }
    if file.context.cpu_scaling_enabled == Some(true) {
        report.plan.notes.push("frequency scaling was on".to_owned());
    }
    let mut measured = Benchmarks::from_entries(&file.benchmarks)?.measurements()?;
    number_alike(&mut measured);
    finish_report(report, measured)
}

/// The lines of each benchmark.
#[derive(Default)]
struct Benchmarks<'a> {
    /// Repetitions, by the benchmark's place in the program, if that is stated, and its name.
    repetitions: Vec<((GoogleBenchmarkIndex, &'a str), Vec<&'a GoogleBenchmarkEntry>)>,
    /// Computed figures of a benchmark that are checked.
    computed: Vec<(&'a str, &'a GoogleBenchmarkEntry)>,
}

/// Place of a benchmark in its program: two of one name differ in it.
type GoogleBenchmarkIndex = (Option<u64>, Option<u64>);

impl<'a> Benchmarks<'a> {
    fn from_entries(lines: &'a [GoogleBenchmarkEntry]) -> Result<Benchmarks<'a>, String> {
        let mut all = Benchmarks::default();
        let is_old = lines.iter().any(|line| line.run_type.is_none());
        if is_old && has_computed(lines) {
            return Err("it does not say which lines are aggregates: it is of a version before 1.5 \
                        (run it with one repetition)"
                .to_owned());
        }
        for line in lines {
            match line.run_type.as_deref() {
                None | Some("iteration") => {
                    let place = (line.family_index, line.per_family_instance_index);
                    let name = line.run_name.as_deref().unwrap_or(&line.name);
                    entry(&mut all.repetitions, (place, name)).push(line);
                }
                // A complexity is one of several benchmarks.
                Some("aggregate") => {
                    let of_one = line.aggregate_name.as_deref().is_some_and(|name| CHECKED.contains(&name));
                    all.computed.extend(line.run_name.as_deref().filter(|_| of_one).map(|name| (name, line)));
                }
                Some(other) => return Err(format!("{}: its run_type, {other:?}, is not known", line.name)),
            }
        }
        let is_known = |name: &str| all.repetitions.iter().any(|((_, known), _)| *known == name);
        match all.computed.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => Err(format!(
                "of {name} it has aggregates only: run it without --benchmark_report_aggregates_only"
            )),
            None => check_aggregates(lines).map(|()| all),
        }
    }

    fn measurements(&self) -> Result<Vec<Measurement>, String> {
        let measured = self.repetitions.iter().map(|((place, name), lines)| {
            let alone = self.repetitions.iter().filter(|((_, other), _)| other == name).count() == 1;
            let is_of = |line: &GoogleBenchmarkEntry| {
                let of = (line.family_index, line.per_family_instance_index);
                alone || of.0.is_some() && of == *place
            };
            let computed =
                self.computed.iter().filter(|(of, line)| of == name && is_of(line)).map(|(_, line)| *line);
            let m = benchmark_point(name, lines, &computed.collect::<Vec<_>>());
            m.map_err(|why| format!("benchmark {name}: {why}"))
        });
        measured.collect()
    }
}

/// Ends of the names of computed figures.
const COMPUTED: [&str; 6] = ["_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS"];

/// Computed figures that are checked against the repetitions.
const CHECKED: [&str; 6] = ["mean", "median", "stddev", "cv", "min", "max"];

/// Returns true if lines that do not say what they are have computed figures. Before version 1.5 only the name says
/// that; it is the name of another benchmark, or of another computed figure, with another end.
fn has_computed(lines: &[GoogleBenchmarkEntry]) -> bool {
    let names: BTreeSet<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let has_end = |name: &str| {
        let mut starts = COMPUTED.iter().filter_map(|end| name.strip_suffix(end));
        starts.any(|start| {
            let others = COMPUTED.iter().map(|end| format!("{start}{end}"));
            names.contains(start) || others.filter(|other| names.contains(other.as_str())).count() > 1
        })
    };
    names.iter().any(|name| has_end(name))
}

/// Checks that what is computed, also of several benchmarks, is of as many repetitions as one of them has.
fn check_aggregates(lines: &[GoogleBenchmarkEntry]) -> Result<(), String> {
    let (computed, measured): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.run_type.as_deref() == Some("aggregate"));
    let known: BTreeSet<u64> = measured.iter().filter_map(|line| line.repetitions).collect();
    let is_other =
        |line: &&&GoogleBenchmarkEntry| line.repetitions.is_some_and(|number| !known.contains(&number));
    match computed.iter().find(is_other) {
        Some(line) if known.last() > Some(&0) => {
            Err(format!("{}: no benchmark has as many repetitions as it states: it is damaged", line.name))
        }
        _ => Ok(()),
    }
}

/// Checks how many repetitions of a benchmark there are.
fn check_repetitions(
    lines: &[&GoogleBenchmarkEntry],
    computed: &[&GoogleBenchmarkEntry],
) -> Result<(), String> {
    let mut once = BTreeSet::new();
    let mut numbers = lines.iter().filter_map(|line| line.repetition_index);
    if let Some(number) = numbers.find(|number| !once.insert(*number)) {
        return Err(format!("repetition {number} is there twice"));
    }
    let stated = lines.iter().chain(computed).filter_map(|line| line.repetitions);
    let stated: BTreeSet<u64> = stated.collect();
    let Some(first) = stated.first() else { return Ok(()) };
    if stated.last() == Some(&0) && lines.iter().all(|line| line.family_index.is_none()) {
        // Before 1.5.5 it is the number in the source, 0 where there is none. These versions number no families.
        return Ok(());
    }
    if stated.len() > 1 {
        return Err(format!("its lines state {stated:?} repetitions: it is damaged"));
    }
    if *first != lines.len() as u64 {
        return Err(format!(
            "it has {} of its {}: it is damaged",
            lines.len(),
            count_with_noun(*first, "repetition")
        ));
    }
    match once.last() {
        Some(last) if last >= first => Err(format!(
            "it has a repetition {last}, and {}: it is damaged",
            count_with_noun(*first, "repetition")
        )),
        _ => Ok(()),
    }
}

/// Checks the repetitions of a benchmark that were measured, and the figures that are computed from them.
fn check_benchmark(
    done: &[&GoogleBenchmarkEntry],
    times: &[f64],
    computed: &[&GoogleBenchmarkEntry],
) -> Result<(), String> {
    if times.is_empty() {
        return Ok(());
    }
    if done.iter().any(|line| line.iterations == Some(0)) {
        return Err("it has a time of no iteration: it is damaged".to_owned());
    }
    let cpu: Vec<f64> = done.iter().filter_map(|line| line.time_in_ns(Some(line.cpu_time?)).ok()).collect();
    for line in computed {
        let figure = line.aggregate_name.as_deref().unwrap_or_default();
        // The coefficient of variation has no unit.
        let stated = |time: Option<f64>| {
            if figure == "cv" { Ok(time) } else { time.map(|_| line.time_in_ns(time)).transpose() }
        };
        let pairs = [(stated(line.real_time)?, times), (stated(line.cpu_time)?, &cpu)];
        for (stated, values) in pairs {
            let Some(stated) = stated.filter(|_| values.len() == times.len()) else { continue };
            check_computed(figure, stated, values)?;
        }
    }
    StatedFigures::default().check_values(&KnownValues::single(times)).map(drop)
}

/// Checks a computed figure against the times of which it is.
fn check_computed(figure: &str, stated: f64, values: &[f64]) -> Result<(), String> {
    let number = StatedNumber::to_step(stated, 1e-6 * stated.abs());
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let spread = deviation(values).unwrap_or(0.0);
    let figures = match figure {
        "mean" => StatedFigures { mean: Some(number), ..StatedFigures::default() },
        "min" => StatedFigures { min: Some(stated), ..StatedFigures::default() },
        "max" => StatedFigures { max: Some(stated), ..StatedFigures::default() },
        "median" => return is_own(figure, is_median(stated, values)),
        // It is the difference of sums of squares, with the error of these.
        "stddev" => return is_own(figure, (stated - spread).abs() <= 1e-3 * spread + 1e-6 * mean),
        "cv" => return is_own(figure, (stated * mean - spread).abs() <= 1e-3 * spread + 1e-6 * mean),
        _ => return Ok(()),
    };
    figures.check_values(&KnownValues::single(values)).map(drop)
}

/// Returns true if a figure may be the median of values. Of an even number of them 1.4.1 to 1.8.2 took the lower middle
/// one, and any that is not below the upper one.
fn is_median(stated: f64, values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let longest = if sorted.len().is_multiple_of(2) { sorted[sorted.len() - 1] } else { upper };
    let slack = 1e-6 * stated.abs();
    (lower + upper) / 2.0 - slack <= stated && stated <= (lower + longest) / 2.0 + slack
}

fn is_own(figure: &str, is_right: bool) -> Result<(), String> {
    match is_right {
        true => Ok(()),
        false => Err(format!("its {figure} is not that of its repetitions: it is damaged")),
    }
}

/// A benchmark with its repetitions.
fn benchmark_point(
    name: &str,
    lines: &[&GoogleBenchmarkEntry],
    computed: &[&GoogleBenchmarkEntry],
) -> Result<Measurement, String> {
    let params = params([("benchmark", name.into())]);
    let mut m = sampled_point(
        "imported.google-benchmark",
        params,
        name.to_owned(),
        Semantics::Operation,
        Histogram::new(1),
    );
    let (failed, done): (Vec<&GoogleBenchmarkEntry>, Vec<&GoogleBenchmarkEntry>) =
        lines.iter().partition(|line| line.error_occurred || line.skipped);
    m.sampling = Sampling::Batch { ops: done.first().and_then(|line| line.iterations).unwrap_or(0) };
    if let Some(line) = failed.first() {
        let level = if done.is_empty() { QualityLevel::Unsupported } else { QualityLevel::Degraded };
        let said = format!("{}{}", line.error_message, line.skip_message);
        let text =
            if said.trim().is_empty() { "the benchmark skipped it, and does not say why" } else { &said };
        m.lower(Reason::new(level, "not-possible-here", text, ""));
    }
    let times: Vec<f64> =
        done.iter().map(|line| line.time_in_ns(line.real_time)).collect::<Result<_, _>>()?;
    check_repetitions(lines, computed)?;
    check_benchmark(&done, &times, computed)?;
    // Of what is short more digits are known than of a ns.
    let tick_ps = if times.iter().all(|ns| *ns < 1e6) { 1 } else { 1_000 };
    m.histogram = Histogram::new(tick_ps);
    for (line, ns) in done.iter().zip(times) {
        m.histogram.record((ns * 1e3 / tick_ps as f64).round() as u64);
        let cpu = line.cpu_time.map(|_| line.time_in_ns(line.cpu_time)).transpose()?;
        let values: BTreeMap<String, f64> = cpu.into_iter().map(|cpu| (CPU_TIME.to_owned(), cpu)).collect();
        m.rounds.push(RoundSummary {
            count: 1,
            min: Some(ns),
            p50: Some(ns),
            max: Some(ns),
            values,
            ..RoundSummary::default()
        });
    }
    let cpu: Vec<f64> = m.rounds.iter().filter_map(|round| round.values.get(CPU_TIME).copied()).collect();
    if let Some(value) = latscope_core::statistics::median(&cpu) {
        m.values.insert(
            CPU_TIME.to_owned(),
            MeasuredQuantity { value, unit: "ns".to_owned(), better: Better::Less },
        );
    }
    if m.rounds.len() < 2 {
        m.rounds.clear();
    }
    Ok(m)
}

/// Name of the value with the CPU time of an iteration.
const CPU_TIME: &str = "cpu-time";

impl GoogleBenchmarkEntry {
    fn time_in_ns(&self, time: Option<f64>) -> Result<f64, String> {
        let unit = match self.time_unit.as_deref() {
            Some("ns") => 1.0,
            Some("us") => 1e3,
            Some("ms") => 1e6,
            Some("s") => 1e9,
            Some(other) => return Err(format!("its time_unit is {other:?}, and ns, us, ms and s are known")),
            None => return Err("it has no time_unit".to_owned()),
        };
        let ns = time.ok_or("it has no real_time")? * unit;
        // Longer than 30 years is damage.
        Some(ns)
            .filter(|ns| (0.0..=1e18).contains(ns))
            .ok_or_else(|| format!("{ns} ns is no time: it is damaged"))
    }
}
