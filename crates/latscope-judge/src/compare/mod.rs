//! Comparison of two sides. Each side is the runs of one thing, of one kernel or one day. Each point that both sides
//! have is judged: slower, faster, the same, or cannot tell.
//!
//! The run is the unit and the round the level below; samples are never counted as independent. docs/compare.md has
//! the method.

mod beyond;
pub(crate) mod contrast;
mod distribution;
pub mod environment;
mod losses;
mod pair;
mod quantiles;
pub mod ranks;
mod settings;
mod verdict;

pub use beyond::Beyond;
pub use contrast::{ASSUMED_BETWEEN_RUNS, Contrast, Levels, Range};
pub use pair::{IncomparablePoint, is_wanted};
pub use quantiles::{QuantileComparison, Quantiles};
pub use verdict::{ComparisonVerdict, Undecided, WouldTell};

use crate::halves::in_halves;
use crate::imports::has_runs;
use crate::runs::{RunResult, extremes, machine_name, point_id};
use contrast::contrast;
pub(crate) use contrast::variance;
use distribution::{Exceedances, distance, exceedances};
use environment::{EnvironmentDifference, differences, remarks};
use latscope_core::merged::without_pairs;
use latscope_core::ordered::unique_items;
use latscope_core::plan::Params;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{
    Better, MeasuredQuantity, Measurement, Sampling, Semantics, VerdictStatus, adds_up,
};
use latscope_core::rounds;
use latscope_core::statistics::median;
use latscope_core::units::count_with_noun;
use pair::{ComparisonPair, pair_points};
use ranks::{FALSE_DISCOVERIES, MannWhitney};
use schemars::JsonSchema;
use serde::Serialize;
use smart_default::SmartDefault;
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use verdict::{SUPERIOR, reach};
use verdict::{adjust, suggest_measurement, verdict};

/// Name of the form in which comparisons are written.
pub const SCHEMA: &str = "latscope-compare/1";

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct ComparisonOptions {
    /// Margin as a share: figures that differ by less are the same. 0.05 is 5 %.
    #[default(0.05)]
    pub same: f64,
    /// Families and probes to compare; empty for all.
    pub only: Vec<String>,
    /// Seed of the resampling.
    #[default(1)]
    pub seed: u64,
    /// True if sides beside which other processes used very different shares of the CPUs are judged all the same.
    pub accept_busy: bool,
}

/// Tails whose rates differ by less are the same.
pub const TAIL_MARGIN: f64 = 0.25;

/// Comparison of two sides, point by point.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonResult {
    /// Name of the schema of the file.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The runs of A.
    pub a: ComparisonSide,
    /// The runs of B.
    pub b: ComparisonSide,
    /// Facts, beside the figures, in which the sides differ.
    pub differences: Vec<EnvironmentDifference>,
    /// Reasons why a side is less than runs of one thing.
    pub remarks: Vec<String>,
    /// The reason why a point is at most `differs`, if other processes used far more of the CPUs beside one
    /// side, or nearly all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlike: Option<String>,
    /// Margin as a share: figures that differ by less are the same.
    pub margin: f64,
    /// Margin of the rates of tails, as a share: rates that differ by less are the same.
    pub tail_margin: f64,
    /// Number of points of each verdict, and how many of them may be false.
    pub counts: ComparisonCounts,
    /// The points: those that can be trusted first, and of these those first whose distributions are furthest apart.
    pub points: Vec<ComparisonPoint>,
    /// The points of single events that differ, or else are furthest apart, quantile by quantile: for pictures.
    #[serde(skip)]
    pub quantiles: Vec<Quantiles>,
    /// Points of both that are not the same work.
    pub refused: Vec<IncomparablePoint>,
    /// Stable names of the points that only A has.
    pub only_a: Vec<String>,
    /// Stable names of the points that only B has.
    pub only_b: Vec<String>,
}

/// The runs of a side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonSide {
    /// Random names of the runs; those of imported results are empty.
    pub run_ids: Vec<String>,
    /// Name and processor of each machine, as far as known.
    pub machines: Vec<String>,
    /// The programs that measured, with version and commit, each once.
    pub tools: Vec<String>,
    /// Number of runs of the side.
    pub runs: usize,
    /// Fewest and most rounds of a run.
    pub rounds: [u32; 2],
    /// Start of the first and of the last run, RFC 3339; empty if no run has one.
    pub started: [String; 2],
}

/// Numbers of points of each verdict, without marked points.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonCounts {
    /// Number of points compared.
    pub compared: usize,
    /// Number of compared points with runs enough for the test.
    pub tested: usize,
    /// Number of points of each verdict.
    pub verdicts: BTreeMap<ComparisonVerdict, usize>,
    /// Upper bound on the expected number of false verdicts among those that are slower or faster.
    pub expected_false: f64,
    /// Number of points that are degraded or unstable: they are judged apart and are no findings.
    pub marked: usize,
    /// Number of tails compared.
    pub tails: usize,
    /// Number of tails of each verdict: `slower` tails are reached more often in B.
    pub tail_verdicts: BTreeMap<ComparisonVerdict, usize>,
}

/// A point that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonPoint {
    /// Stable name: probe and parameters.
    pub id: String,
    /// Id of the probe.
    pub probe: String,
    /// Parameters of the point.
    pub params: Params,
    /// Title of the point for a reader.
    pub title: String,
    /// True if the survey's table has a row for the point.
    pub row: bool,
    /// Kind of time measured: one way, round trip or operation.
    pub semantics: Semantics,
    /// Trust level of at least half of the runs of each side.
    pub level: QualityLevel,
    /// Reasons why the level is not better, each once.
    pub reasons: Vec<String>,
    /// Verdict on the medians.
    pub verdict: ComparisonVerdict,
    /// Margin of this point: the margin of the comparison, or one step of the recorded figures. Figures that differ by
    /// less are the same.
    pub margin: f64,
    /// Further measurement that would decide; `None` if the point is decided, or nothing within reach would decide.
    pub would_tell: Option<WouldTell>,
    /// Hellinger's distance of the samples, 0 to 1.
    pub distance: Option<f64>,
    /// Bounds of the medians, if the median of a run is beyond its last bin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<Beyond>,
    /// The median, ns; `None` where it is not above 0, or is [beyond](Beyond) the last bin.
    pub p50: Option<Contrast>,
    /// The 99th percentile of single events, ns; not tested.
    pub p99: Option<Contrast>,
    /// The 99.9th percentile of single events, ns; not tested.
    pub p99_9: Option<Contrast>,
    /// Comparison of how often the tails of single events are reached.
    pub tails: Vec<TailComparison>,
    /// Largest sample of all runs of a side, ns; never compared.
    pub max: [Option<f64>; 2],
    /// Activations that did not take place, of all runs of a side; `None` if another program does not record them.
    pub missed: [Option<u64>; 2],
    /// Named quantities; not tested.
    pub values: BTreeMap<String, NamedValue>,
}

/// Comparison of how often the runs go beyond a high quantile of both sides together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TailComparison {
    /// The quantile of all samples of both sides: `p99`, `p99.9`.
    pub quantile: &'static str,
    /// Value of the quantile, ns.
    pub beyond: f64,
    /// The share of samples beyond it; `slower` means more of them.
    pub rate: Contrast,
    /// Verdict on the rates, by the margin of tails and among all tails.
    pub verdict: ComparisonVerdict,
    /// Further measurement that would decide; `None` if the tail is decided, or nothing within reach would decide.
    pub would_tell: Option<WouldTell>,
}

/// A named quantity of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NamedValue {
    /// Unit of the figures.
    pub unit: String,
    /// Direction that is better.
    pub better: Better,
    /// The figure of A: that of its ratio; without a ratio the median over its runs.
    pub a: f64,
    /// The figure of B.
    pub b: f64,
    /// Ratio of the figures; `None` if a figure behind it is missing or not above 0.
    pub ratio: Option<Contrast>,
}

impl ComparisonResult {
    /// Status of the claim that no point is slower, and the reason if it is inconclusive. The status is exceeded if a
    /// point is slower. It is inconclusive if the runs are too few to call a point slower, if a point in which these
    /// runs differ may be slower, if nothing was compared, if most points are marked, or if points were `named` and a
    /// point is not decided. Marked points decide nothing.
    pub fn none_slower(&self, named: bool) -> (VerdictStatus, String) {
        let trusted = self.trusted();
        let [slower, differing, open] =
            [ComparisonVerdict::Slower, ComparisonVerdict::Differs, ComparisonVerdict::CannotTell]
                .map(|verdict| trusted.iter().filter(|point| point.verdict == verdict).collect::<Vec<_>>());
        let longer = differing.iter().filter(|point| point.contrast().is_some_and(|p50| p50.ratio > 1.0));
        let without_ratio =
            open.iter().filter(|point| point.contrast().is_none() && point.beyond.is_none()).count();
        let untestable = open.iter().filter(|point| !point.may_be_slower()).count() - without_ratio;
        let beyond = open.iter().find(|point| point.beyond.is_some());
        let marked = self.points.len() - trusted.len();
        let unpaired = marked + self.refused.len() + self.only_a.len() + self.only_b.len();
        let undecided = open.len() + differing.len() + unpaired;
        let why = match (longer.count(), self.unlike.as_deref()) {
            _ if !slower.is_empty() => {
                return (
                    VerdictStatus::Exceeded,
                    format!("{} slower in B than in A", counted_points(slower.len())),
                );
            }
            _ if trusted.is_empty() => "nothing was compared".to_owned(),
            (longer @ 1.., Some(unlike)) => {
                format!("{} of B took longer in these runs; {unlike}", counted_points(longer))
            }
            (_, Some(unlike)) => unlike.to_owned(),
            (longer @ 1.., None) => format!(
                "{} of B took longer in these runs, which are too few to say slower",
                counted_points(longer)
            ),
            _ if beyond.is_some() => format!(
                "{} cannot be decided, with a median beyond the last bin",
                beyond.map_or("", |point| &point.title)
            ),
            _ if untestable > 0 => format!(
                "{} cannot be decided, with too few runs to call any slower (at least four a side)",
                counted_points(untestable)
            ),
            _ if without_ratio > 0 => {
                format!("{} cannot be decided: a median of 0 has no ratio", counted_points(without_ratio))
            }
            _ if trusted.len() * 2 < self.points.len() => format!(
                "{marked} of {} are unstable or degraded: no regression would be seen in them",
                counted_points(self.points.len())
            ),
            _ if named && undecided > 0 => {
                format!("{} named by --only cannot be decided", counted_points(undecided))
            }
            _ => return (VerdictStatus::Pass, String::new()),
        };
        (VerdictStatus::Inconclusive, why)
    }

    /// The points that can be trusted: the others are judged apart.
    pub(crate) fn trusted(&self) -> Vec<&ComparisonPoint> {
        self.points.iter().filter(|point| point.is_trusted()).collect()
    }
}

fn counted_points(number: usize) -> String {
    count_with_noun(number as u64, "point")
}

impl ComparisonPoint {
    fn is_trusted(&self) -> bool {
        self.level == QualityLevel::Ok
    }

    /// Comparison of the medians, or of the least that they can be.
    pub fn contrast(&self) -> Option<&Contrast> {
        self.p50.as_ref().or_else(|| self.beyond.as_ref()?.least.as_ref())
    }

    /// The [contrast](ComparisonPoint::contrast), to adjust its p value.
    fn contrast_to_adjust(&mut self) -> Option<&mut Contrast> {
        self.p50.as_mut().or_else(|| self.beyond.as_mut()?.least.as_mut())
    }

    /// Returns true if the point has runs enough to be called slower, even if every other compared point is slower,
    /// too.
    fn may_be_slower(&self) -> bool {
        let runs = self.contrast().map_or([0; 2], |p50| p50.runs);
        runs[0] > 0 && runs[1] > 0 && ranks::smallest_p(runs[0], runs[1]) <= FALSE_DISCOVERIES
    }
}

/// Verdicts on figures of two sides that are compared together: the judging of [`compare_runs`] without results.
pub fn verdicts(sides: &[(Levels, Levels)], margin: f64, seed: u64) -> Vec<ComparisonVerdict> {
    let mut test = MannWhitney::default();
    let contrasts = sides.iter().map(|(a, b)| contrast(a, b, 0.0, seed, &mut test));
    let mut contrasts: Vec<Option<Contrast>> = contrasts.collect();
    let mut known: Vec<&mut Contrast> = contrasts.iter_mut().flatten().collect();
    adjust(&mut known);
    let compared = known.len();
    let verdicts = contrasts.iter().map(|contrast| Some(verdict(contrast.as_ref()?, margin, compared)));
    verdicts.map(|verdict| verdict.unwrap_or(ComparisonVerdict::CannotTell)).collect()
}

/// Compares the runs of two sides point by point.
pub fn compare_runs(a: &[&RunResult], b: &[&RunResult], options: &ComparisonOptions) -> ComparisonResult {
    let paired = pair_points(a, b, &options.only);
    let mut points = compare_pairs(&paired.pairs, options);
    let unlike = if options.accept_busy { None } else { environment::incomparable_reason(a, b) };
    let counts = judge_points(&mut points, unlike.is_some());
    points.sort_by_cached_key(|point| {
        (point.level, -(point.distance.unwrap_or(0.0) * 1e9) as i64, point.id.clone())
    });
    let remarks = unlike
        .iter()
        .cloned()
        .chain(remarks(a, b))
        .chain(losses::remark(&paired.pairs))
        .chain(paired.assumed);
    let [only_a, only_b] = paired.lacking;
    ComparisonResult {
        schema: SCHEMA,
        a: side(a),
        b: side(b),
        differences: differences(a, b),
        remarks: remarks.collect(),
        unlike,
        margin: options.same,
        tail_margin: TAIL_MARGIN,
        counts,
        quantiles: quantiles::quantiles(&paired.pairs, &points, options.seed),
        points,
        refused: paired.refused,
        only_a,
        only_b,
    }
}

fn side(runs: &[&RunResult]) -> ComparisonSide {
    let machines: BTreeSet<String> = runs.iter().map(|run| machine_name(&run.report.machine)).collect();
    let tools: BTreeSet<String> = runs.iter().map(|run| environment::tool(&run.report)).collect();
    let started = runs.iter().map(|run| run.report.started.clone()).filter(|time| !time.is_empty());
    ComparisonSide {
        run_ids: runs.iter().map(|run| run.report.run_id.clone()).collect(),
        machines: machines.into_iter().filter(|name| !name.is_empty()).collect(),
        tools: tools.into_iter().filter(|tool| !tool.is_empty()).collect(),
        runs: runs.len(),
        rounds: extremes(runs.iter().map(|run| run.report.plan.rounds)),
        started: extremes(started),
    }
}

/// Smallest number of pairs for which a second thread is used.
const SHARE: usize = 64;

/// The figures of all pairs; two threads share them.
fn compare_pairs(pairs: &[ComparisonPair], options: &ComparisonOptions) -> Vec<ComparisonPoint> {
    in_halves(pairs, SHARE, |_, pairs| {
        let mut test = MannWhitney::default();
        pairs.iter().map(|pair| compare_point(pair, options, &mut test)).collect()
    })
}

/// Contrast of the figures that `figures` takes of each run.
fn contrast_of(
    pair: &ComparisonPair,
    figures: impl Fn(&Measurement) -> Vec<f64>,
    step: f64,
    seed: u64,
    test: &mut MannWhitney,
) -> Option<Contrast> {
    let [a, b] =
        [&pair.a, &pair.b].map(|side| side.iter().flat_map(|m| runs_of(m, figures(m))).collect::<Levels>());
    contrast(&a, &b, step, seed, test)
}

/// The figures of a measurement by run. Its rounds are one run, except where each was a process of its own.
fn runs_of(m: &Measurement, figures: Vec<f64>) -> Levels {
    if has_runs(m) { figures.into_iter().map(|figure| vec![figure]).collect() } else { vec![figures] }
}

/// Contrast of a quantile of single events, without a test.
fn quantile_contrast(
    pair: &ComparisonPair,
    of_round: fn(&rounds::RoundSummary) -> Option<f64>,
    of_run: fn(&Measurement) -> Option<f64>,
    seed: u64,
    test: &mut MannWhitney,
) -> Option<Contrast> {
    // Without a run whose quantile may be beyond its last bin, the figures are not those of the side.
    let may_be_beyond = |m: &&Measurement| m.histogram.overflow() > 0 && of_run(m).is_none();
    if pair.a.iter().chain(&pair.b).any(may_be_beyond) {
        return None;
    }
    // The quantile of a whole run is the better figure, but of one run only its rounds say how far it moves.
    let single = pair.a.len().min(pair.b.len()) < 2;
    let contrast = contrast_of(
        pair,
        |m| {
            let rounds: Vec<f64> = m.rounds.iter().filter_map(of_round).collect();
            if single && rounds.len() > 1 { rounds } else { of_run(m).into_iter().collect() }
        },
        step(pair),
        seed,
        test,
    );
    contrast.map(Contrast::without_test)
}

fn compare_point(
    pair: &ComparisonPair,
    options: &ComparisonOptions,
    test: &mut MannWhitney,
) -> ComparisonPoint {
    let m = pair.a[0];
    let id = point_id(&m.probe, &m.params);
    // A seed of its own: no point depends on which others there are.
    let seed = id.bytes().fold(options.seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let (mut p99, mut p99_9, mut tails) = (None, None, Vec::new());
    if m.sampling == Sampling::Event {
        p99 = quantile_contrast(pair, |round| round.p99, |m| m.summary.p99, seed, test);
        p99_9 = quantile_contrast(pair, |round| round.p99_9, |m| m.summary.p99_9, seed, test);
        tails = compare_tails(pair, seed, test);
    }
    let (level, reasons) = trust(pair);
    let sides = [&pair.a, &pair.b];
    let beyond = Beyond::from_pair(pair, seed, test);
    let p50 = if beyond.is_none() { contrast_of(pair, round_medians, step(pair), seed, test) } else { None };
    ComparisonPoint {
        probe: m.probe.clone(),
        params: m.params.clone(),
        title: title(pair, &id),
        id,
        row: m.row,
        semantics: m.times,
        level,
        reasons,
        verdict: if are_zero(pair) { ComparisonVerdict::Same } else { ComparisonVerdict::CannotTell },
        margin: options.same.max(step(pair)),
        would_tell: None,
        distance: distance(&pair.a, &pair.b),
        beyond,
        p50,
        p99,
        p99_9,
        tails,
        max: sides.map(|side| side.iter().filter_map(|m| m.summary.max).reduce(f64::max)),
        missed: sides.map(|side| side.iter().try_fold(0u64, |sum, m| Some(sum.saturating_add(m.missed()?)))),
        values: values(pair, seed),
    }
}

/// Returns true if the medians of all runs are 0: as short as the program that counted can tell.
fn are_zero(pair: &ComparisonPair) -> bool {
    pair.a.iter().chain(&pair.b).all(|m| m.typical() == Some(0.0))
}

/// Title of a point for a reader, or its id; a point of a single pair of endpoints is titled without the pair.
fn title(pair: &ComparisonPair, id: &str) -> String {
    let title = &pair.a[0].title;
    if title.is_empty() {
        return id.to_owned();
    }
    if pair.of_one { without_pairs(title).to_owned() } else { title.clone() }
}

/// The figures of the rounds of a run; of a run without rounds, its own figure.
fn round_medians(m: &Measurement) -> Vec<f64> {
    let figures = rounds::round_figures(&m.rounds);
    if figures.is_empty() { m.typical().into_iter().collect() } else { figures }
}

/// Least difference of recorded medians, as a share of them.
fn step(pair: &ComparisonPair) -> f64 {
    let figures = pair.a.iter().chain(&pair.b).filter_map(|m| Some((m, m.typical()?)));
    let steps = figures.filter(|(_, ns)| *ns > 0.0).map(|(m, ns)| m.histogram.resolution(ns) / ns);
    steps.fold(0.0, f64::max)
}

/// Trust level of at least half of the runs of each side, the worse of both sides, and the reasons against the runs
/// that are less than ok.
fn trust(pair: &ComparisonPair) -> (QualityLevel, Vec<String>) {
    let [a, b] = [&pair.a, &pair.b].map(|side| {
        let mut levels: Vec<QualityLevel> = side.iter().map(|m| m.quality.level).collect();
        levels.sort_unstable();
        levels[(levels.len() - 1) / 2]
    });
    let level = a.max(b);
    let all = pair.a.iter().chain(&pair.b).flat_map(|m| &m.quality.reasons);
    let against = all.filter(|reason| level > QualityLevel::Ok && reason.level == level);
    (level, unique_items(against.map(|reason| reason.id.clone())))
}

fn compare_tails(pair: &ComparisonPair, seed: u64, test: &mut MannWhitney) -> Vec<TailComparison> {
    let tails = [("p99", 0.99), ("p99.9", 0.999)].into_iter().filter_map(|(quantile, q)| {
        let Exceedances { beyond, rates: [a, b] } = exceedances(&pair.a, &pair.b, q)?;
        let rate = contrast(&a, &b, 0.0, seed, test)?;
        Some(TailComparison {
            quantile,
            beyond,
            rate,
            verdict: ComparisonVerdict::CannotTell,
            would_tell: None,
        })
    });
    tails.collect()
}

/// The named values that both sides have in one unit.
fn values(pair: &ComparisonPair, seed: u64) -> BTreeMap<String, NamedValue> {
    let values = &pair.a[0].values;
    values
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), named_value(pair, name, value, seed)?)))
        .collect()
}

fn named_value(pair: &ComparisonPair, name: &str, value: &MeasuredQuantity, seed: u64) -> Option<NamedValue> {
    let MeasuredQuantity { unit, better, .. } = value;
    let [a, b] = [&pair.a, &pair.b].map(|side| {
        let values = side.iter().filter_map(|m| m.values.get(name).filter(|other| other.unit == *unit));
        median(&values.map(|value| value.value).collect::<Vec<f64>>())
    });
    let (a, b) = (a?, b?);
    let levels = |m: &Measurement| value_levels(m, name, unit);
    let ratio = contrast_of(pair, levels, 0.0, seed, &mut MannWhitney::default()).map(Contrast::without_test);
    // A run's own figure is of all its events, the ratio of its rounds: the sides shown are those of the ratio.
    let (a, b) = ratio.as_ref().map_or((a, b), |ratio| (ratio.a, ratio.b));
    Some(NamedValue { unit: unit.clone(), better: *better, a, b, ratio })
}

/// A value of each round; a value that adds up over the rounds is that of the run. Empty if it has another unit.
fn value_levels(m: &Measurement, name: &str, unit: &str) -> Vec<f64> {
    let Some(value) = m.values.get(name).filter(|value| value.unit == unit) else { return Vec::new() };
    let rounds: Vec<f64> = m.rounds.iter().filter_map(|round| round.values.get(name).copied()).collect();
    if rounds.len() < 2 || adds_up(&value.unit) { vec![value.value] } else { rounds }
}

/// Judges all points: those that can be trusted as one family, the marked ones as another, and the tails of the former.
fn judge_points(points: &mut [ComparisonPoint], unlike: bool) -> ComparisonCounts {
    let mut counts = ComparisonCounts::default();
    for marked in [false, true] {
        let mut family: Vec<&mut ComparisonPoint> =
            points.iter_mut().filter(|point| point.is_trusted() != marked).collect();
        let mut figures: Vec<&mut Contrast> =
            family.iter_mut().filter_map(|point| point.contrast_to_adjust()).collect();
        let tested = adjust(&mut figures);
        let compared = figures.len();
        for point in family {
            judge_point(point, compared, unlike);
        }
        counts.tested += if marked { 0 } else { tested };
    }
    judge_tails(points, &mut counts, unlike);
    for point in points.iter().filter(|point| point.is_trusted()) {
        counts.compared += 1;
        *counts.verdicts.entry(point.verdict).or_insert(0) += 1;
    }
    counts.marked = points.len() - counts.compared;
    let decided = [ComparisonVerdict::Slower, ComparisonVerdict::Faster]
        .iter()
        .filter_map(|verdict| counts.verdicts.get(verdict));
    counts.expected_false = FALSE_DISCOVERIES * decided.sum::<usize>() as f64;
    counts
}

/// Weakens the verdict on sides that are unlike: at most, they differ, and that they are the same is not known.
fn weaken_verdict(verdict: ComparisonVerdict, unlike: bool) -> ComparisonVerdict {
    match verdict {
        ComparisonVerdict::Slower | ComparisonVerdict::Faster if unlike => ComparisonVerdict::Differs,
        ComparisonVerdict::Same if unlike => ComparisonVerdict::CannotTell,
        verdict => verdict,
    }
}

fn judge_point(point: &mut ComparisonPoint, compared: usize, unlike: bool) {
    let Some(p50) = point.contrast() else { return };
    let found = verdict(p50, point.margin, compared);
    let found = point.beyond.as_ref().map_or(found, |beyond| beyond.weaken_verdict(found));
    let is_told = point.beyond.is_none() || found == ComparisonVerdict::Differs;
    point.would_tell = suggest_measurement(p50, point.margin, compared, found).filter(|_| is_told);
    point.verdict = weaken_verdict(found, unlike);
}

fn judge_tails(points: &mut [ComparisonPoint], counts: &mut ComparisonCounts, unlike: bool) {
    let trusted = points.iter_mut().filter(|point| point.is_trusted());
    let mut tails: Vec<&mut TailComparison> = trusted.flat_map(|point| &mut point.tails).collect();
    let mut rates: Vec<&mut Contrast> = tails.iter_mut().map(|tail| &mut tail.rate).collect();
    adjust(&mut rates);
    let compared = rates.len();
    for tail in tails {
        tail.verdict = verdict(&tail.rate, TAIL_MARGIN, compared);
        tail.would_tell = suggest_measurement(&tail.rate, TAIL_MARGIN, compared, tail.verdict);
        tail.verdict = weaken_verdict(tail.verdict, unlike);
        counts.tails += 1;
        *counts.tail_verdicts.entry(tail.verdict).or_insert(0) += 1;
    }
}
