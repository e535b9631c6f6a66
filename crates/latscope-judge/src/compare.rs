//! Comparison of two sides. Each side is the runs of one thing, of one kernel or one day. Each point that both sides
//! have is judged: slower, faster, the same, or cannot tell.
//!
//! The run is the unit and the round the level below; samples are never counted as independent. docs/compare.md has
//! the method.

pub(crate) mod contrast;
mod distribution;
pub mod environment;
mod pair;
mod quantiles;
pub mod ranks;
mod verdict;

pub use contrast::{ASSUMED_BETWEEN_RUNS, Contrast, Levels, Range};
pub use pair::{Refused, is_wanted};
pub use quantiles::{Quantile, Quantiles};
pub use verdict::{Undecided, Verdict, WouldTell};

use crate::runs::{Run, point_id};
use contrast::contrast;
use distribution::{distance, exceedances};
use environment::{Difference, differences, remarks};
use latscope_core::merged::without_pairs;
use latscope_core::plan::Params;
use latscope_core::quality::Level;
use latscope_core::report::{Better, Measurement, Sampling, Semantics, Status, Value, adds_up};
use latscope_core::rounds;
use latscope_core::statistics::median;
use latscope_core::units::counted;
use pair::{Pair, pair};
use ranks::{FALSE_DISCOVERIES, MannWhitney};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use verdict::{SUPERIOR, reach};
use verdict::{adjust, advice, verdict};

/// Name of the form in which comparisons are written.
pub const SCHEMA: &str = "latscope-compare/1";

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Margin as a share: figures that differ by less are the same. 0.05 is 5 %.
    pub same: f64,
    /// Families and probes to compare; empty for all.
    pub only: Vec<String>,
    /// Seed of the resampling.
    pub seed: u64,
    /// True if sides beside which other processes used very different shares of the CPUs are judged all the same.
    pub accept_busy: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { same: 0.05, only: Vec::new(), seed: 1, accept_busy: false }
    }
}

/// Tails whose rates differ by less are the same.
pub const TAIL_MARGIN: f64 = 0.25;

/// Comparison of two sides, point by point.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Name of the schema of the file.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The runs of A.
    pub a: Side,
    /// The runs of B.
    pub b: Side,
    /// Facts, beside the figures, in which the sides differ.
    pub differences: Vec<Difference>,
    /// Reasons why a side is less than runs of one thing.
    pub remarks: Vec<String>,
    /// The reason why a point is at most `differs`, if other processes used far more of the CPUs beside one side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlike: Option<String>,
    /// Margin as a share: figures that differ by less are the same.
    pub margin: f64,
    /// Margin of the rates of tails, as a share: rates that differ by less are the same.
    pub tail_margin: f64,
    /// Number of points of each verdict, and how many of them may be false.
    pub counts: Counts,
    /// The points: those that can be trusted first, and of these those first whose distributions are furthest apart.
    pub points: Vec<Point>,
    /// The points of single events that differ, or else are furthest apart, quantile by quantile: for pictures.
    #[serde(skip)]
    pub quantiles: Vec<Quantiles>,
    /// Points of both that are not the same work.
    pub refused: Vec<Refused>,
    /// Stable names of the points that only A has.
    pub only_a: Vec<String>,
    /// Stable names of the points that only B has.
    pub only_b: Vec<String>,
}

/// The runs of a side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Side {
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
pub struct Counts {
    /// Number of points compared.
    pub compared: usize,
    /// Number of compared points with runs enough for the test.
    pub tested: usize,
    /// Number of points of each verdict.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// Upper bound on the expected number of false verdicts among those that are slower or faster.
    pub expected_false: f64,
    /// Number of points that are degraded or unstable: they are judged apart and are no findings.
    pub marked: usize,
    /// Number of tails compared.
    pub tails: usize,
    /// Number of tails of each verdict: `slower` tails are reached more often in B.
    pub tail_verdicts: BTreeMap<Verdict, usize>,
}

/// A point that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
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
    pub level: Level,
    /// Reasons why the level is not better, each once.
    pub reasons: Vec<String>,
    /// Verdict on the medians.
    pub verdict: Verdict,
    /// Margin of this point: the margin of the comparison, or one step of the recorded figures. Figures that differ by
    /// less are the same.
    pub margin: f64,
    /// Further measurement that would decide; `None` if the point is decided, or nothing within reach would decide.
    pub would_tell: Option<WouldTell>,
    /// Hellinger's distance of the samples, 0 to 1.
    pub distance: Option<f64>,
    /// The median, ns; `None` where it is not above 0.
    pub p50: Option<Contrast>,
    /// The 99th percentile of single events, ns; not tested.
    pub p99: Option<Contrast>,
    /// The 99.9th percentile of single events, ns; not tested.
    pub p99_9: Option<Contrast>,
    /// Comparison of how often the tails of single events are reached.
    pub tails: Vec<Tail>,
    /// Largest sample of all runs of a side, ns; never compared.
    pub max: [Option<f64>; 2],
    /// Activations that did not take place, of all runs of a side; `None` if another program does not record them.
    pub missed: [Option<u64>; 2],
    /// Named quantities; not tested.
    pub values: BTreeMap<String, NamedValue>,
}

/// Comparison of how often the runs go beyond a high quantile of both sides together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Tail {
    /// The quantile of all samples of both sides: `p99`, `p99.9`.
    pub quantile: &'static str,
    /// Value of the quantile, ns.
    pub beyond: f64,
    /// The share of samples beyond it; `slower` means more of them.
    pub rate: Contrast,
    /// Verdict on the rates, by the margin of tails and among all tails.
    pub verdict: Verdict,
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

impl Comparison {
    /// Status of the claim that no point is slower, and the reason if it is inconclusive. The status is exceeded if a
    /// point is slower. It is inconclusive if the runs are too few to call a point slower, if a point in which these
    /// runs differ may be slower, if nothing was compared, or if points were `named` and a point is not decided. Marked
    /// points decide nothing.
    pub fn none_slower(&self, named: bool) -> (Status, String) {
        let trusted: Vec<&Point> = self.points.iter().filter(|point| point.level == Level::Ok).collect();
        let of = |verdict| trusted.iter().filter(move |point| point.verdict == verdict);
        let longer = of(Verdict::Differs).filter(|one| one.p50.as_ref().is_some_and(|p50| p50.ratio > 1.0));
        let untestable = of(Verdict::CannotTell).filter(|point| !point.may_be_slower()).count();
        let undecided = of(Verdict::CannotTell).count() + of(Verdict::Differs).count();
        let apart = self.points.len() - trusted.len() + self.refused.len();
        let unpaired = apart + self.only_a.len() + self.only_b.len();
        let points = |number: usize| counted(number as u64, "point");
        let inconclusive = |why: String| (Status::Inconclusive, why);
        match (of(Verdict::Slower).count(), longer.count()) {
            (1.., _) => (Status::Exceeded, String::new()),
            _ if trusted.is_empty() => inconclusive("nothing was compared".to_owned()),
            (0, longer @ 1..) if self.unlike.is_some() => inconclusive(format!(
                "{} of B took longer in these runs; {}",
                points(longer),
                self.unlike.as_deref().unwrap_or_default()
            )),
            (0, longer @ 1..) => inconclusive(format!(
                "{} of B took longer in these runs, which are too few to say slower",
                points(longer)
            )),
            _ if untestable > 0 => inconclusive(format!(
                "{} cannot be told, with too few runs to call any slower (at least four a side)",
                points(untestable)
            )),
            _ if named && undecided + unpaired > 0 => {
                inconclusive(format!("{} named by --only cannot be decided", points(undecided + unpaired)))
            }
            _ => (Status::Pass, String::new()),
        }
    }
}

impl Point {
    /// Returns true if the point has runs enough to be called slower, even if every other compared point is slower,
    /// too.
    fn may_be_slower(&self) -> bool {
        let runs = self.p50.as_ref().map_or([0; 2], |p50| p50.runs);
        runs[0] > 0 && runs[1] > 0 && ranks::smallest_p(runs[0], runs[1]) <= FALSE_DISCOVERIES
    }
}

/// Verdicts on figures of two sides that are compared together: the judging of [`compare`] without results.
pub fn verdicts(sides: &[(Levels, Levels)], margin: f64, seed: u64) -> Vec<Verdict> {
    let mut test = MannWhitney::default();
    let contrasts = sides.iter().map(|(a, b)| contrast(a, b, 0.0, seed, &mut test));
    let mut contrasts: Vec<Option<Contrast>> = contrasts.collect();
    let mut known: Vec<&mut Contrast> = contrasts.iter_mut().flatten().collect();
    adjust(&mut known);
    let compared = known.len();
    let judged = |contrast: Contrast| verdict(&contrast, margin, compared);
    contrasts.into_iter().map(|contrast| contrast.map_or(Verdict::CannotTell, judged)).collect()
}

/// Compares the runs of two sides point by point.
pub fn compare(a: &[&Run], b: &[&Run], options: &Options) -> Comparison {
    let paired = pair(a, b, &options.only);
    let mut points = measured(&paired.pairs, options);
    let unlike = if options.accept_busy { None } else { environment::unlike(a, b) };
    let counts = judge(&mut points, unlike.is_some());
    let weight = |point: &Point| (point.level, -(point.distance.unwrap_or(0.0) * 1e9) as i64);
    points.sort_by_cached_key(|point| (weight(point), point.id.clone()));
    let remarks = unlike.iter().cloned().chain(remarks(a, b)).chain(paired.assumed).collect();
    let [only_a, only_b] = paired.lacking;
    Comparison {
        schema: SCHEMA,
        a: side(a),
        b: side(b),
        differences: differences(a, b),
        remarks,
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

fn side(runs: &[&Run]) -> Side {
    let machine = |run: &&Run| {
        let machine = &run.report.machine;
        let parts = [machine.name.as_str(), &machine.cpu_model];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let machines: BTreeSet<String> = runs.iter().map(machine).filter(|name| !name.is_empty()).collect();
    let tools: BTreeSet<String> = runs.iter().map(|run| environment::tool(&run.report)).collect();
    let rounds = || runs.iter().map(|run| run.report.plan.rounds);
    let started = || runs.iter().map(|run| run.report.started.clone()).filter(|time| !time.is_empty());
    Side {
        run_ids: runs.iter().map(|run| run.report.run_id.clone()).collect(),
        machines: machines.into_iter().collect(),
        tools: tools.into_iter().filter(|tool| !tool.is_empty()).collect(),
        runs: runs.len(),
        rounds: [rounds().min().unwrap_or(0), rounds().max().unwrap_or(0)],
        started: [started().min().unwrap_or_default(), started().max().unwrap_or_default()],
    }
}

/// Smallest number of pairs for which a second thread is used.
const SHARE: usize = 64;

/// The figures of all pairs; two threads share them.
fn measured(pairs: &[Pair], options: &Options) -> Vec<Point> {
    let of = |pairs: &[Pair]| -> Vec<Point> {
        let mut test = MannWhitney::default();
        pairs.iter().map(|pair| point(pair, options, &mut test)).collect()
    };
    if pairs.len() < SHARE {
        return of(pairs);
    }
    let (first, second) = pairs.split_at(pairs.len() / 2);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| of(second));
        let mut points = of(first);
        points.extend(second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        points
    })
}

fn point(pair: &Pair, options: &Options, test: &mut MannWhitney) -> Point {
    let m = pair.a[0];
    let id = point_id(&m.probe, &m.params);
    // A seed of its own: no point depends on which others there are.
    let seed = id.bytes().fold(options.seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut contrast = |of: &dyn Fn(&Measurement) -> Vec<f64>| {
        let levels = |side: &[&Measurement]| -> Levels { side.iter().map(|m| of(m)).collect() };
        contrast(&levels(&pair.a), &levels(&pair.b), step(pair), seed, test)
    };
    let events = m.sampling == Sampling::Event;
    let single = pair.a.len().min(pair.b.len()) < 2;
    let mut quantile = |of_round: fn(&rounds::Round) -> Option<f64>,
                        of_run: fn(&Measurement) -> Option<f64>| {
        // The quantile of a whole run is the better figure, but of one run only its rounds say how far it moves.
        let figures = |m: &Measurement| {
            let rounds: Vec<f64> = m.rounds.iter().filter_map(of_round).collect();
            if single && rounds.len() > 1 { rounds } else { of_run(m).into_iter().collect() }
        };
        events.then(|| contrast(&figures)).flatten().map(|untested| Contrast { p: None, ..untested })
    };
    let p99 = quantile(|round| round.p99, |m| m.summary.p99);
    let p99_9 = quantile(|round| round.p99_9, |m| m.summary.p99_9);
    let p50 = contrast(&medians);
    let tails = if events { tails(pair, seed, test) } else { Vec::new() };
    let (level, reasons) = trust(pair);
    let max = |side: &[&Measurement]| side.iter().filter_map(|m| m.summary.max).reduce(f64::max);
    let missed =
        |side: &[&Measurement]| side.iter().try_fold(0u64, |sum, m| Some(sum.saturating_add(m.missed()?)));
    Point {
        probe: m.probe.clone(),
        params: m.params.clone(),
        title: title(pair, &id),
        id,
        row: m.row,
        semantics: m.times,
        level,
        reasons,
        verdict: Verdict::CannotTell,
        margin: options.same.max(step(pair)),
        would_tell: None,
        distance: distance(&pair.a, &pair.b),
        p50,
        p99,
        p99_9,
        tails,
        max: [max(&pair.a), max(&pair.b)],
        missed: [missed(&pair.a), missed(&pair.b)],
        values: values(pair, seed),
    }
}

/// Title of a point for a reader, or its id; a point of a single pair of endpoints is titled without the pair.
fn title(pair: &Pair, id: &str) -> String {
    let title = &pair.a[0].title;
    match pair.of_one {
        _ if title.is_empty() => id.to_owned(),
        true => without_pairs(title).to_owned(),
        false => title.clone(),
    }
}

/// The figures of the rounds of a run; of a run without rounds, its own figure.
fn medians(m: &Measurement) -> Vec<f64> {
    let figures = rounds::figures(&m.rounds);
    if figures.is_empty() { m.typical().into_iter().collect() } else { figures }
}

/// Least difference of recorded medians, as a share of them.
fn step(pair: &Pair) -> f64 {
    let step = |m: &&Measurement| {
        let ns = m.typical().filter(|ns| *ns > 0.0)?;
        Some(m.histogram.resolution(ns) / ns)
    };
    pair.a.iter().chain(&pair.b).filter_map(step).fold(0.0, f64::max)
}

/// Trust level of at least half of the runs of each side, the worse of both sides, and the reasons against the runs
/// that are less than ok.
fn trust(pair: &Pair) -> (Level, Vec<String>) {
    let level = |side: &[&Measurement]| {
        let mut levels: Vec<Level> = side.iter().map(|m| m.quality.level).collect();
        levels.sort_unstable();
        levels[(levels.len() - 1) / 2]
    };
    let level = level(&pair.a).max(level(&pair.b));
    let mut reasons: Vec<String> = Vec::new();
    if level > Level::Ok {
        let all = pair.a.iter().chain(&pair.b).flat_map(|m| &m.quality.reasons);
        for reason in all.filter(|reason| reason.level == level).map(|reason| &reason.id) {
            if !reasons.contains(reason) {
                reasons.push(reason.clone());
            }
        }
    }
    (level, reasons)
}

fn tails(pair: &Pair, seed: u64, test: &mut MannWhitney) -> Vec<Tail> {
    let quantiles = [("p99", 0.99), ("p99.9", 0.999)];
    let tail = |(quantile, q): (&'static str, f64)| {
        let found = exceedances(&pair.a, &pair.b, q)?;
        let [a, b] = &found.rates;
        let rate = contrast(a, b, 0.0, seed, test)?;
        Some(Tail { quantile, beyond: found.beyond, rate, verdict: Verdict::CannotTell, would_tell: None })
    };
    quantiles.into_iter().filter_map(tail).collect()
}

/// The named values that both sides have in one unit.
fn values(pair: &Pair, seed: u64) -> BTreeMap<String, NamedValue> {
    let named = |(name, value): (&String, &Value)| {
        let of = |side: &[&Measurement]| -> Option<f64> {
            let all = side.iter().filter_map(|m| m.values.get(name).filter(|its| its.unit == value.unit));
            median(&all.map(|value| value.value).collect::<Vec<f64>>())
        };
        let levels = |side: &[&Measurement]| -> Levels {
            side.iter().map(|m| value_levels(m, name, &value.unit)).collect()
        };
        let ratio = contrast(&levels(&pair.a), &levels(&pair.b), 0.0, seed, &mut MannWhitney::default());
        let ratio = ratio.map(|untested| Contrast { p: None, ..untested });
        let (a, b) = (of(&pair.a)?, of(&pair.b)?);
        // A run's own figure is of all its events, the ratio of its rounds: the sides shown are those of the ratio.
        let (a, b) = ratio.as_ref().map_or((a, b), |ratio| (ratio.a, ratio.b));
        Some((name.clone(), NamedValue { unit: value.unit.clone(), better: value.better, a, b, ratio }))
    };
    pair.a[0].values.iter().filter_map(named).collect()
}

/// A value of each round; a value that adds up over the rounds is that of the run. Empty if it has another unit.
fn value_levels(m: &Measurement, name: &str, unit: &str) -> Vec<f64> {
    let Some(value) = m.values.get(name).filter(|value| value.unit == unit) else { return Vec::new() };
    let rounds: Vec<f64> = m.rounds.iter().filter_map(|round| round.values.get(name).copied()).collect();
    if rounds.len() < 2 || adds_up(&value.unit) { vec![value.value] } else { rounds }
}

/// Judges all points: those that can be trusted as one family, the marked ones as another, and the tails of the former.
fn judge(points: &mut [Point], unlike: bool) -> Counts {
    let mut counts = Counts::default();
    let trusted = |point: &Point| point.level == Level::Ok;
    for marked in [false, true] {
        let family = |point: &&mut Point| trusted(point) != marked;
        let mut figures: Vec<&mut Contrast> =
            points.iter_mut().filter(family).filter_map(|point| point.p50.as_mut()).collect();
        let tested = adjust(&mut figures);
        let compared = figures.len();
        points.iter_mut().filter(family).for_each(|point| judge_point(point, compared, unlike));
        counts.tested += if marked { 0 } else { tested };
    }
    judge_tails(points, &mut counts, unlike);
    for point in points.iter().filter(|point| trusted(point)) {
        counts.compared += 1;
        *counts.verdicts.entry(point.verdict).or_insert(0) += 1;
    }
    counts.marked = points.len() - counts.compared;
    let found = |verdict| counts.verdicts.get(&verdict).copied().unwrap_or(0);
    counts.expected_false = FALSE_DISCOVERIES * (found(Verdict::Slower) + found(Verdict::Faster)) as f64;
    counts
}

/// Weakens the verdict on sides that are unlike: at most, they differ.
fn weakened(verdict: Verdict, unlike: bool) -> Verdict {
    match verdict {
        Verdict::Slower | Verdict::Faster if unlike => Verdict::Differs,
        verdict => verdict,
    }
}

fn judge_point(point: &mut Point, compared: usize, unlike: bool) {
    let Some(p50) = &point.p50 else { return };
    point.verdict = verdict(p50, point.margin, compared);
    point.would_tell = advice(p50, point.margin, compared, point.verdict);
    point.verdict = weakened(point.verdict, unlike);
}

fn judge_tails(points: &mut [Point], counts: &mut Counts, unlike: bool) {
    let trusted = |point: &&mut Point| point.level == Level::Ok;
    let tails = points.iter_mut().filter(trusted).flat_map(|point| &mut point.tails);
    let mut rates: Vec<&mut Contrast> = tails.map(|tail| &mut tail.rate).collect();
    adjust(&mut rates);
    let compared = rates.len();
    for tail in points.iter_mut().filter(trusted).flat_map(|point| &mut point.tails) {
        tail.verdict = verdict(&tail.rate, TAIL_MARGIN, compared);
        tail.would_tell = advice(&tail.rate, TAIL_MARGIN, compared, tail.verdict);
        tail.verdict = weakened(tail.verdict, unlike);
        counts.tails += 1;
        *counts.tail_verdicts.entry(tail.verdict).or_insert(0) += 1;
    }
}
