//! Learns a budget from results: limits that the results hold, with a margin from the scatter of their figures.

use crate::runs::{RunResult, extremes};
use crate::titles::title_or_id;
use crate::verdict::{CriterionQuantile, QUANTILES, is_cut_short, passes_from, subjects};
use latscope_core::catalogue::families;
use latscope_core::plan::Params;
use latscope_core::quality::QualityLevel;
use latscope_core::redact::is_redacted_machine;
use latscope_core::report::{Measurement, Sampling};
use latscope_core::rounds::{self, BETWEEN_RUNS, RoundSummary};
use latscope_core::statistics::{NORMAL_95, student};
use std::collections::BTreeSet;

/// Limits learnt from runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Learnt {
    /// Runs from which all limits were learnt.
    pub basis: Basis,
    /// The points that have limits.
    pub points: Vec<LearntPoint>,
    /// The points without limits, each with the reason.
    pub left_out: Vec<NotLearnt>,
    /// Smallest margin of a limit, as a share of the largest figure.
    pub least: f64,
}

/// A point without a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct NotLearnt {
    /// Id of the probe.
    pub probe: String,
    /// Parameters of the point.
    pub params: Params,
    /// Title of the point for a reader.
    pub title: String,
    /// Reason why it has no limit.
    pub why: String,
}

/// The runs from which limits are learnt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// Number of runs used.
    pub runs: usize,
    /// Fewest and most rounds of a run.
    pub rounds: [u32; 2],
    /// Start of the first and of the last run, RFC 3339.
    pub started: [String; 2],
    /// The machines with their kernels, each once.
    pub machines: Vec<String>,
    /// Names of the machines, each once.
    pub names: Vec<String>,
    /// CPU models, each once.
    pub cpu_models: Vec<String>,
}

/// A point with its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct LearntPoint {
    /// Id of the probe.
    pub probe: String,
    /// Revision of the probe.
    pub revision: u32,
    /// Parameters of the point.
    pub params: Params,
    /// Title of the point for a reader.
    pub title: String,
    /// Number of runs that have the point.
    pub runs: usize,
    /// Samples of all runs.
    pub samples: u64,
    /// Limits of the point.
    pub limits: Vec<LearntLimit>,
    /// Figures without a limit, each with the reason.
    pub without: Vec<(&'static str, NoLimit)>,
}

/// Reason why a figure has no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoLimit {
    /// A run does not state the figure: it has too few samples, or another program did not record it.
    NotStated,
    /// So many runs do not bound the scatter of the figures, the smallest and the largest in ns.
    FewRuns(usize, [f64; 2]),
    /// The figures scatter too much, the smallest and the largest in ns.
    Scatter([f64; 2]),
}

/// A limit and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct LearntLimit {
    /// The figure: `max`, `p50`, `p99`, `p99_9`, `missed`.
    pub metric: &'static str,
    /// The limit, ns; of `missed` a number.
    pub limit: f64,
    /// The smallest and the largest figure of the runs, or the only one.
    pub seen: [f64; 2],
    /// The limit divided by the largest of `seen`.
    pub margin: f64,
    /// Origin of the margin.
    pub spread: Spread,
}

/// Origin of a margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// The figures of so many runs.
    Runs(usize),
    /// The figures of so many rounds of the only run.
    Rounds(usize),
    /// No figures: the margin of a single run of one round is assumed.
    Assumed,
    /// A count, which has no scatter.
    Exact,
}

const NOT_IN_EVERY_RUN: &str = "not measured in every run (learn from results of one command)";

/// Largest ratio of a limit to the measured figure: a wider limit would pass a regression of that size.
const MOST: f64 = 2.0;

/// Number of runs below which the limits predict further runs poorly.
pub const ENOUGH: usize = 5;

/// Share of further figures of one point that may be above the limit. Few points of a plan are above, and a limit is
/// exceeded only if most results of a measurement exceed it: docs/gate.md has the calibration.
const ABOVE: f64 = 0.01;

/// Smallest margin of a quantile, unless another is requested.
pub const MARGIN: f64 = 0.25;

/// Smallest factor of maxima, which are single events.
const LEAST_OF_MAXIMA: f64 = 1.5;

/// Factors for figures whose spread is not known: of quantiles, and of maxima.
const ASSUMED: [f64; 2] = [1.5, 3.0];

/// Learns limits for the points whose figures can be trusted in every run, at least `least` (0.25: 25 %) above them.
pub fn learn(runs: &[&RunResult], least: f64) -> Learnt {
    let mut learnt = Learnt { basis: basis(runs), points: Vec::new(), left_out: Vec::new(), least };
    let mut seen = BTreeSet::new();
    for run in runs {
        for at in subjects(&run.report) {
            let m = &run.report.measurements[at];
            if !seen.insert((&m.probe, &m.params)) {
                continue;
            }
            match of_point(m, runs, least) {
                Ok(point) => learnt.points.push(point),
                Err(why) => {
                    let (probe, params) = (m.probe.clone(), m.params.clone());
                    learnt.left_out.push(NotLearnt { probe, params, title: title_or_id(m), why });
                }
            }
        }
    }
    learnt
}

fn basis(runs: &[&RunResult]) -> Basis {
    let machines = runs.iter().map(|run| &run.report.machine);
    let names = machines.clone().map(|machine| {
        let name = Some(machine.name.as_str()).filter(|name| !name.is_empty()).unwrap_or("not named");
        let kernel = Some(machine.kernel.as_str()).filter(|kernel| !kernel.is_empty());
        format!("{name}, Linux {}", kernel.unwrap_or("of unknown version"))
    });
    Basis {
        runs: runs.len(),
        rounds: extremes(runs.iter().map(|run| run.report.plan.rounds)),
        started: extremes(runs.iter().map(|run| run.report.started.clone())),
        machines: distinct(names),
        names: distinct(
            machines.clone().map(|machine| machine.name.clone()).filter(|name| !is_redacted_machine(name)),
        ),
        cpu_models: distinct(machines.map(|machine| machine.cpu_model.clone())),
    }
}

/// The texts that are not empty in order, each once.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.filter(|text| !text.is_empty()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn of_point(m: &Measurement, runs: &[&RunResult], least: f64) -> Result<LearntPoint, String> {
    let mut all = Vec::new();
    for run in runs {
        let of_probe: Vec<&Measurement> =
            run.report.measurements.iter().filter(|other| other.probe == m.probe).collect();
        // The results of a plan are of several commands: those of others say nothing of this point.
        if of_probe.is_empty() {
            let mut planned = run.report.plan.steps.iter().flat_map(|step| &step.points);
            if planned.any(|point| point.probe == m.probe) {
                return Err(NOT_IN_EVERY_RUN.to_owned());
            }
            continue;
        }
        let of_run = of_probe.iter().find(|other| other.params == m.params).ok_or(NOT_IN_EVERY_RUN)?;
        if of_run.revision != m.revision {
            return Err("the runs are of different revisions of the probe".to_owned());
        }
        all.push(trusted(of_run, run)?);
        // A limit is for all points that have these parameters, others or not.
        let mut larger = of_probe.iter().filter(|other| other.params.len() > m.params.len());
        if larger.any(|other| m.params.iter().all(|(name, value)| other.params.get(name) == Some(value))) {
            return Err("its parameters are among those of another point".to_owned());
        }
    }
    let (limits, without) = limits(&all, least);
    if limits.is_empty() {
        let is_known = without.iter().any(|(_, why)| *why != NoLimit::NotStated);
        let why = match all.len() {
            _ if !is_known => "too few samples for a limit",
            2..ENOUGH => "too few runs for a limit",
            _ => "the figures scatter too much",
        };
        return Err(why.to_owned());
    }
    Ok(LearntPoint {
        probe: m.probe.clone(),
        revision: m.revision,
        params: m.params.clone(),
        title: title_or_id(m),
        runs: all.len(),
        samples: all.iter().fold(0, |sum, m| sum.saturating_add(m.summary.count)),
        limits,
        without,
    })
}

fn trusted<'a>(m: &'a Measurement, run: &RunResult) -> Result<&'a Measurement, String> {
    let why = match m.quality.level {
        _ if m.incomplete || is_cut_short(&run.report) => "a run ended early",
        QualityLevel::Ok if m.summary.count == 0 => "nothing was measured",
        QualityLevel::Ok => return Ok(m),
        level => level.level_name(),
    };
    Err(why.to_owned())
}

type OfRound = fn(&RoundSummary) -> Option<f64>;

/// The figure of a quantile that a run states, ns.
fn stated(m: &Measurement, quantile: CriterionQuantile) -> Option<f64> {
    if quantile.name == "p50" {
        return m.typical().filter(|_| m.summary.p50.is_some());
    }
    m.with_missed().tail_quantile(1.0 - quantile.above)
}

/// A limit with a margin that is small enough, or the reason why there is none.
fn narrow(limit: LearntLimit) -> Result<LearntLimit, NoLimit> {
    match limit.spread {
        _ if limit.margin <= MOST => Ok(limit),
        Spread::Runs(runs) if runs < ENOUGH && limit.seen[1] <= MOST * limit.seen[0] => {
            Err(NoLimit::FewRuns(runs, limit.seen))
        }
        _ => Err(NoLimit::Scatter(limit.seen)),
    }
}

/// The limits that the runs of a point hold, and the figures without one.
fn limits(all: &[&Measurement], least: f64) -> (Vec<LearntLimit>, Vec<(&'static str, NoLimit)>) {
    let wakes = families::of_probe(&all[0].probe) == families::WAKE && all[0].sampling == Sampling::Event;
    let mut learnt: Vec<(&'static str, Option<LearntLimit>)> = Vec::new();
    let of_rounds: [(&str, OfRound); 3] =
        [("p50", |round| round.p50), ("p99", |round| round.p99), ("p99_9", |round| round.p99_9)];
    for quantile in QUANTILES {
        let Some((name, of_round)) = of_rounds.iter().find(|(name, _)| *name == quantile.name) else {
            continue;
        };
        let figures: Option<Vec<f64>> = all.iter().map(|m| stated(m, quantile)).collect();
        let held: Option<Vec<f64>> = all.iter().map(|m| passes_from(m, quantile)).collect();
        let found = figures.zip(held);
        let found =
            found.filter(|(_, held)| *name == "p50" || !is_of_events(all[0]) || holds_in_turns(held, least));
        let found = found.and_then(|(figures, held)| limit(name, [&figures, &held], all, *of_round, least));
        // Batches have no known quantile but the median.
        if found.is_some() || *name == "p50" || all[0].sampling == Sampling::Event {
            learnt.push((name, found));
        }
    }
    if wakes {
        let maxima: Option<Vec<f64>> = all.iter().map(|m| m.histogram.max()).collect();
        let held: Vec<f64> = all.iter().filter_map(|m| Some(m.histogram.largest()?.high)).collect();
        let found = maxima.and_then(|maxima| limit("max", [&maxima, &held], all, |round| round.max, least));
        learnt.push(("max", found));
    }
    let (mut limits, mut without) = (Vec::new(), Vec::new());
    for (name, found) in learnt {
        match found.ok_or(NoLimit::NotStated).and_then(narrow) {
            Ok(limit) => limits.push(limit),
            Err(why) => without.push((name, why)),
        }
    }
    if wakes && all.iter().all(|m| m.missed() == Some(0)) {
        let (seen, spread) = ([0.0; 2], Spread::Exact);
        limits.push(LearntLimit { metric: "missed", limit: 0.0, seen, margin: 1.0, spread });
    }
    (limits, without)
}

/// Returns true for events of files and noise, whose tails are what other work of the machine makes them.
fn is_of_events(m: &Measurement) -> bool {
    [families::FILE, families::NOISE].contains(&families::of_probe(&m.probe))
}

/// Returns true if each run holds the limit that the other runs teach; false of fewer than three runs.
fn holds_in_turns(held: &[f64], least: f64) -> bool {
    let each = (0..held.len()).all(|at| {
        let rest: Vec<f64> =
            held.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, held)| *held).collect();
        let largest = rest.iter().copied().fold(0.0, f64::max);
        held[at] <= largest * margin(&rest).map_or(1.0, |margin| margin.max(1.0 + least))
    });
    held.len() > 2 && each
}

/// The limit of a figure, from the figures of the runs and the smallest limits that the runs hold.
fn limit(
    metric: &'static str,
    [figures, held]: [&[f64]; 2],
    all: &[&Measurement],
    of_round: OfRound,
    least: f64,
) -> Option<LearntLimit> {
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let (largest, to_hold) = (most(figures), most(held));
    let smallest = figures.iter().copied().fold(f64::INFINITY, f64::min);
    if !(largest > 0.0 && to_hold.is_finite() && smallest > 0.0) {
        return None;
    }
    let rounds: Vec<f64> = match metric {
        "p50" => rounds::round_figures(&all[0].rounds),
        _ => all[0].rounds.iter().filter_map(of_round).collect(),
    };
    let (spread, of) = match (held.len(), rounds.len()) {
        (1, 0 | 1) => (Spread::Assumed, &rounds[..0]),
        (1, n) => (Spread::Rounds(n), &rounds[..]),
        (n, _) => (Spread::Runs(n), held),
    };
    let single = usize::from(metric == "max");
    let margin = margin(of).map_or(ASSUMED[single], |margin| {
        margin.max(if single == 1 { LEAST_OF_MAXIMA } else { 1.0 + least })
    });
    let limit = round_up(to_hold.max(largest) * margin);
    let (seen, margin) = ([smallest, largest], limit / largest);
    limit.is_finite().then_some(LearntLimit { metric, limit, seen, margin, spread })
}

/// Factor by which the next figure may be above these, from the end of Student's interval that 1 % of further figures
/// exceed.
fn margin(figures: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = figures.iter().filter(|figure| **figure > 0.0).map(|figure| figure.ln()).collect();
    if logs.len() < 2 {
        return None;
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = student(logs.len() - 1, 1.0 - ABOVE) * deviation * (1.0 + 1.0 / n).sqrt();
    Some(half.hypot(NORMAL_95 * BETWEEN_RUNS * 2f64.sqrt()).exp())
}

/// Rounds up to three significant digits.
fn round_up(ns: f64) -> f64 {
    let digits = 2 - ns.log10().floor() as i32;
    match digits {
        ..=0 => (ns / 10f64.powi(-digits)).ceil() * 10f64.powi(-digits),
        _ => (ns * 10f64.powi(digits)).ceil() / 10f64.powi(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_three_digits_and_are_no_smaller() {
        for (ns, up) in [(0.2701, 0.271), (1.0, 1.0), (12.31, 12.4), (4_210.0, 4_210.0), (4_211.0, 4_220.0)] {
            assert_eq!(round_up(ns), up, "{ns}");
        }
        assert_eq!(round_up(1e9 + 1.0), 1.01e9);
    }

    #[test]
    fn what_scatters_more_has_a_wider_margin() {
        assert_eq!(margin(&[5.0]), None);
        let (still, wild) = (margin(&[5.0; 9]).unwrap(), margin(&[5.0, 6.0, 5.5, 4.0]).unwrap());
        assert!(still < 1.05 && wild > 1.5, "{still} {wild}");
        assert!(margin(&[5.0, 5.2]).unwrap() > margin(&[5.0, 5.2, 5.1, 5.0]).unwrap());
    }
}
