//! Runs against the runs of a baseline, without a budget: is a point slower beyond chance, or no longer measured?
//!
//! The figures and their spread are those of [`compare`]; one level of error is for the whole report. docs/gate.md has
//! the rule and its calibration.

use super::lost::{FEWEST, find_losses, of_sides, points_by_id};
use super::{GateCheck, GateResult, Unjudged, assemble_result};
use crate::compare::contrast::contrast;
use crate::compare::environment::{EnvironmentDifference, differences};
use crate::compare::ranks::MannWhitney;
use crate::compare::{self, ComparisonPoint, ComparisonResult, Contrast, Levels, variance};
use crate::imports::runs_in;
use crate::runs::{RunResult, extremes, machine_name};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Sampling, VerdictStatus};
use latscope_core::rounds::BETWEEN_RUNS;
use latscope_core::statistics::{median, student};
use latscope_core::units::{count_with_noun, format_time};
use std::collections::BTreeSet;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Probability that chance makes a point of the whole report slower.
const ERROR: f64 = 0.01;

/// Smallest slowdown beyond the margin, in standard deviations between runs. Runs in a row are more alike than runs
/// that lie apart, as a host changes: their deviation is too small by a factor that more runs do not change.
const DEVIATIONS: f64 = 5.5;

/// The same for the largest events, which scatter by no normal distribution.
const DEVIATIONS_OF_MAXIMA: f64 = 8.0;

/// Maxima that are less than twice as large are the same.
const MARGIN_OF_MAXIMA: f64 = 1.0;

/// What is accepted of runs and their baseline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accepted {
    /// True if sides beside which other processes used very different shares of the CPUs are judged.
    pub busy: bool,
    /// True if a baseline of another machine is used.
    pub machine: bool,
}

/// Judges runs by those of a baseline: exceeded if a point is slower beyond chance and beyond its smallest effect,
/// inconclusive if a side has too few runs, is of another machine, or lost what the baseline has.
pub fn against(
    baseline: &[(String, RunResult)],
    runs: &[(String, RunResult)],
    accepted: Accepted,
) -> GateResult {
    let Against { checks, unjudged, said } = of_all_points(baseline, runs, accepted);
    let mut gate = assemble_result(checks, [baseline, runs]);
    gate.remarks.insert(0, said);
    GateResult { unjudged, ..gate }
}

/// The runs against a baseline.
pub(super) struct Against {
    pub checks: Vec<GateCheck>,
    /// Points that no check judges.
    pub unjudged: Vec<Unjudged>,
    /// A sentence about the baseline.
    pub said: String,
}

/// Judges every point of the runs by the runs of a baseline.
pub(super) fn of_all_points(
    baseline: &[(String, RunResult)],
    runs: &[(String, RunResult)],
    accepted: Accepted,
) -> Against {
    let sides = [baseline, runs].map(|side| side.iter().map(|(_, run)| run).collect::<Vec<&RunResult>>());
    let [a, b] = &sides;
    let mut checks: Vec<GateCheck> = too_few([a, b]).into_iter().collect();
    checks.extend(other_machine(a, b).filter(|_| !accepted.machine).map(|text| of_sides("machine", text)));
    let mut unjudged = Vec::new();
    if checks.is_empty() {
        let options = compare::ComparisonOptions {
            accept_busy: accepted.busy,
            ..compare::ComparisonOptions::default()
        };
        let compared = compare::compare_runs(a, b, &options);
        let gone = find_losses(a, b, &compared);
        unjudged = gone.unjudged;
        checks = gone.checks;
        match &compared.unlike {
            Some(unlike) => checks.push(of_sides("other processes", unlike.clone())),
            None => checks.extend(of_points([a, b], &compared, &mut unjudged)),
        }
    }
    Against { checks, unjudged, said: describe_baseline([a, b]) }
}

/// Number of runs of a side.
fn runs(side: &[&RunResult]) -> usize {
    side.iter().map(|run| runs_in(&run.report)).sum()
}

fn too_few(sides: [&[&RunResult]; 2]) -> Option<GateCheck> {
    let missing = sides.map(|side| FEWEST.saturating_sub(runs(side)) as u64);
    let missing =
        missing.into_iter().zip(["of the baseline", "to be judged"]).filter(|(missing, _)| *missing > 0);
    let missing: Vec<String> =
        missing.map(|(missing, name)| format!("{} {name}", count_with_noun(missing, "run"))).collect();
    let verb =
        if missing == ["1 run of the baseline"] || missing == ["1 run to be judged"] { "is" } else { "are" };
    let text =
        format!("cannot tell: {FEWEST} runs a side are needed, and {} {verb} missing", missing.join(" and "));
    (!missing.is_empty()).then(|| of_sides("runs", text))
}

/// Facts by which two sides are of two machines.
const MACHINE: [&str; 4] = ["machine", "host", "architecture", "CPU model"];

/// A sentence that names both machines, if the sides are of different ones.
pub(super) fn other_machine(a: &[&RunResult], b: &[&RunResult]) -> Option<String> {
    let differ = differences(a, b);
    let is_known = |what: &str| {
        let known = |run: &&RunResult| match what {
            "machine" => run.report.machine.id.is_some(),
            _ => true,
        };
        a.iter().chain(b).all(known)
    };
    // The name of a host changes with its address; an id does not.
    let facts: Vec<&str> = if is_known("machine") {
        MACHINE.iter().copied().filter(|fact| *fact != "host").collect()
    } else {
        MACHINE.to_vec()
    };
    let fact: &EnvironmentDifference = differ.iter().find(|one| facts.contains(&one.what.as_str()))?;
    let names = [a, b].map(machines).map(|names| names.join("; "));
    Some(format!(
        "the baseline is of another machine ({} differs): {}, and these runs are of {} (--accept-machine judges all the \
         same)",
        fact.what, names[0], names[1]
    ))
}

fn machines(runs: &[&RunResult]) -> Vec<String> {
    let names: BTreeSet<String> = runs.iter().map(|run| machine_name(&run.report.machine)).collect();
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

/// Returns a sentence about the baseline: number of runs, machine, kernel, times, and age at the first judged run.
fn describe_baseline([a, b]: [&[&RunResult]; 2]) -> String {
    let [first, last] =
        extremes(a.iter().map(|run| run.report.started.clone()).filter(|time| !time.is_empty()));
    let [judged, _] =
        extremes(b.iter().map(|run| run.report.started.clone()).filter(|time| !time.is_empty()));
    let kernels: BTreeSet<&str> = a.iter().map(|run| run.report.machine.kernel.as_str()).collect();
    let kernels = kernels.into_iter().filter(|kernel| !kernel.is_empty()).collect::<Vec<_>>().join(", ");
    let parts = [
        machines(a).join("; "),
        if kernels.is_empty() { kernels } else { format!("Linux {kernels}") },
        if first.is_empty() { first } else { format!("{first} to {last}") },
        age(&last, &judged).unwrap_or_default(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("baseline: {} of {}", count_with_noun(runs(a) as u64, "run"), parts.join(", "))
}

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Time from the last run of the baseline to the first judged one, in words.
fn age(last: &str, judged: &str) -> Option<String> {
    let time = |text: &str| humantime::parse_rfc3339(text).ok();
    let age = time(judged)?.duration_since(time(last)?).ok()?.as_secs();
    let days = age / DAY;
    if days > 30 {
        return Some(format!("{} old", count_with_noun(days, "day")));
    }
    let unit = [DAY, 3600, 60].into_iter().find(|unit| age >= 24 * unit).unwrap_or(1);
    Some(format!("{} old", humantime::format_duration(Duration::from_secs(age / unit * unit))))
}

/// The medians that are judged; points that are not go to `unjudged`.
fn judged_medians<'a>(
    compared: &'a ComparisonResult,
    unjudged: &mut Vec<Unjudged>,
) -> Vec<(&'a ComparisonPoint, &'a Contrast)> {
    let mut medians = Vec::new();
    for point in &compared.points {
        let why = match &point.p50 {
            _ if point.level > QualityLevel::Ok => {
                format!("{} ({})", point.level.level_name(), point.reasons.join(", "))
            }
            None => "a median is 0 or beyond the last bin".to_owned(),
            Some(p50) if p50.runs.iter().any(|runs| *runs < FEWEST) => "measured in too few runs".to_owned(),
            Some(p50) => {
                medians.push((point, p50));
                continue;
            }
        };
        unjudged.push(Unjudged { id: point.id.clone(), title: point.title.clone(), why });
    }
    medians
}

/// The largest events of the runs of both sides, at points of single events that are not degraded. A single maximum is
/// one event; those of several runs of one length have a median and a spread.
fn maxima<'a>(
    sides: [&[&RunResult]; 2],
    compared: &'a ComparisonResult,
) -> Vec<(&'a ComparisonPoint, Contrast)> {
    let [of_a, of_b] = sides.map(points_by_id);
    let mut test = MannWhitney::default();
    let sound = compared.points.iter().filter(|point| point.level < QualityLevel::Degraded);
    let maxima = sound.filter_map(|point| {
        let (a, b) = (of_a.get(&point.id)?, of_b.get(&point.id)?);
        let counts =
            [a, b].map(|side| median(&side.iter().map(|m| m.summary.count as f64).collect::<Vec<_>>()));
        let [count, other] = [counts[0]?, counts[1]?];
        let is_alike = (0.5..=2.0).contains(&(other / count));
        if !is_alike || a.iter().chain(b).any(|m| m.sampling != Sampling::Event) {
            return None;
        }
        let [a, b] =
            [a, b].map(|side| side.iter().filter_map(|m| Some(vec![m.summary.max?])).collect::<Levels>());
        let is_enough = a.len().min(b.len()) >= FEWEST;
        is_enough.then(|| contrast(&a, &b, 0.0, 1, &mut test)).flatten().map(|found| (point, found))
    });
    maxima.collect()
}

fn of_points(
    sides: [&[&RunResult]; 2],
    compared: &ComparisonResult,
    unjudged: &mut Vec<Unjudged>,
) -> Vec<GateCheck> {
    let medians = judged_medians(compared, unjudged);
    let maxima = maxima(sides, compared);
    let all = medians.len() + maxima.len();
    let medians = medians.into_iter().map(|(point, p50)| {
        check_contrast(point, "p50", p50, least_ratio(p50, point.margin, DEVIATIONS, all))
    });
    let maxima = maxima.iter().map(|(point, max)| {
        check_contrast(point, "max", max, least_ratio(max, MARGIN_OF_MAXIMA, DEVIATIONS_OF_MAXIMA, all))
    });
    medians.chain(maxima).collect()
}

/// Least ratio that is beyond chance among so many points, and beyond the smallest effect: the margin, and on top of it
/// so many deviations of the runs, or the quantile of Student's distribution that all points together exceed with the
/// probability [`ERROR`].
fn least_ratio(contrast: &Contrast, margin: f64, deviations: f64, all: usize) -> f64 {
    let [a, b] = contrast.logs.each_ref().map(|logs| logs.len() as f64);
    let degrees = a + b - 2.0;
    let squares = variance(&contrast.logs[0]) * (a - 1.0) + variance(&contrast.logs[1]) * (b - 1.0);
    let deviation = (squares / degrees).sqrt().max(BETWEEN_RUNS);
    let chance = student(degrees as usize, 1.0 - ERROR / all.max(1) as f64) * (1.0 / a + 1.0 / b).sqrt();
    (1.0 + margin) * (deviation * chance.max(deviations)).exp()
}

fn check_contrast(point: &ComparisonPoint, metric: &str, contrast: &Contrast, allowed: f64) -> GateCheck {
    let is_slower = contrast.ratio > allowed;
    let (status, why) = if is_slower { (VerdictStatus::Exceeded, "") } else { (VerdictStatus::Pass, "not ") };
    let [a, b] = [contrast.a, contrast.b].map(format_time);
    let text = format!(
        "{b} in {}, and {a} in {} of the baseline: ratio {:.3}; {why}slower beyond chance, which is {allowed:.3}",
        count_with_noun(contrast.runs[1] as u64, "run"),
        contrast.runs[0],
        contrast.ratio
    );
    GateCheck {
        id: format!("{} {metric} relative", point.id),
        limit: 1,
        probe: point.probe.clone(),
        params: point.params.clone(),
        title: point.title.clone(),
        metric: metric.to_owned(),
        relative: true,
        is_alone: true,
        allowed,
        value: Some(contrast.ratio),
        interval: contrast.interval,
        unit: "ratio".to_owned(),
        status,
        text,
        ..GateCheck::default()
    }
}
