//! Extrapolation of the tail: the longest of many more activations, with diagnostics. It is refused if they fail.
//!
//! The method is peaks over threshold. The excesses of values over a high threshold have, in the limit, a generalised
//! Pareto distribution for any distribution of the values (Balkema and de Haan, 1974; Pickands, 1975). It is fitted by
//! [probability-weighted moments](Pareto) to the histogram's tail. The blocks of the measurement, in order of time,
//! show if there is a single tail: a trend, two halves that differ, or bouts of large values refuse the extrapolation.
//! It is also refused for a shape near 0.5 or above (the tail has hardly a variance), and for a shape that depends on
//! the threshold.

mod pareto;
mod steadiness;
#[cfg(test)]
mod tests;

pub use pareto::Pareto;
pub use steadiness::Steadiness;
pub(crate) use steadiness::independent_share;

use crate::findings::evidence::FindingBuilder;
use latscope_core::histogram::Histogram;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Finding, Measurement, Report, Sampling};
use latscope_core::statistics::{ConfidenceInterval, SplitMix, quantile};
use latscope_core::units::{count_with_noun, format_count, format_span, format_time};
use std::collections::BTreeMap;

/// Most values in the tail, which begins at the highest values. At most one of [`TAIL_SHARE`] values is in it.
const MOST_PEAKS: u64 = 2000;
const TAIL_SHARE: u64 = 50;

/// Independent peaks that a fit needs.
const LEAST_PEAKS: usize = 50;

/// Blocks that a judgement over time needs.
const LEAST_BLOCKS: usize = 32;

/// Farthest extrapolation, in lengths of the run.
const FARTHEST: u64 = 1000;

/// A shape from which on there is no extrapolation.
const HEAVY: f64 = 0.5;

/// Probability by chance below which a diagnostic fails.
const UNLIKELY: f64 = 0.01;

const RESAMPLES: usize = 400;

/// The fit of the tail above one threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParetoTailFit {
    /// Threshold of the tail, ns.
    pub threshold: f64,
    /// Number of values above the threshold.
    pub peaks: u64,
    /// Distribution of the excesses over the threshold.
    pub pareto: Pareto,
    /// 95 % interval of the shape.
    pub shape: ConfidenceInterval,
}

/// A value that is expected to be exceeded once in so many activations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReturnLevel {
    pub activations: u64,
    /// Value of the level, ns.
    pub level: f64,
    /// The 95 % interval of the level, by a parametric bootstrap, ns.
    pub interval: ConfidenceInterval,
    /// Diagnostics of the estimate.
    pub diagnostics: Diagnostics,
}

/// Evidence for or against an extrapolation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnostics {
    /// The behaviour over time; `None` where there are too few blocks.
    pub steadiness: Option<Steadiness>,
    /// The share of peaks that are independent of each other (the extremal
    /// index), 1 without clusters.
    pub independent: Option<f64>,
    /// The tail above rising thresholds: the first one is extrapolated, the
    /// others must agree.
    pub tails: Vec<ParetoTailFit>,
}

/// Reason why there is no extrapolation, with the diagnostics.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("no extrapolation: {reason}")]
pub struct ExtrapolationRefusal {
    /// The reason in words.
    pub reason: String,
    /// Diagnostics, as far as they were computed.
    pub diagnostics: Diagnostics,
}

/// The value that one of so many activations is expected to exceed if all
/// stays as it was. The same seed gives the same interval.
///
/// # Errors
/// The measurement does not allow it; the reason is in words.
pub(crate) fn return_level(
    m: &Measurement,
    activations: u64,
    seed: u64,
) -> Result<ReturnLevel, ExtrapolationRefusal> {
    let mut diagnostics = Diagnostics::default();
    match extrapolate(m, activations, seed, &mut diagnostics) {
        Ok((level, interval)) => Ok(ReturnLevel { activations, level, interval, diagnostics }),
        Err(reason) => Err(ExtrapolationRefusal { reason, diagnostics }),
    }
}

/// Returns a finding, `return-level` or `no-return-level`, for each measurement of a report that has its events in
/// order of time.
pub fn extrapolation_findings(report: &Report, activations: u64, seed: u64) -> Vec<Finding> {
    let events = report.measurements.iter().filter(|m| m.sampling == Sampling::Event && !m.blocks.is_empty());
    events.map(|m| finding(m, activations, seed)).collect()
}

fn extrapolate(
    m: &Measurement,
    activations: u64,
    seed: u64,
    found: &mut Diagnostics,
) -> Result<(f64, ConfidenceInterval), String> {
    let n = m.histogram.count();
    suitable(m, n, activations)?;
    let blocks = steadiness::full_blocks(&m.blocks);
    if blocks.len() < LEAST_BLOCKS {
        let (there, least) = (blocks.len(), LEAST_BLOCKS);
        return Err(format!("there are {there} blocks of time, and it takes {least} to see a trend"));
    }
    let steadiness = found.steadiness.insert(Steadiness::from_blocks(blocks));
    steady(steadiness)?;
    let independent = *found.independent.insert(steadiness::extremal_index(blocks, &m.histogram));
    let mut random = SplitMix::new(seed);
    let target = (n / TAIL_SHARE).min(MOST_PEAKS);
    let first = Fit::fit_highest(&m.histogram, target, independent, &mut random)?;
    found.tails.push(first.tail);
    for part in [2, 4] {
        // A tail of few buckets, and so of hardly any length, has no higher part.
        if let Ok(higher) = Fit::fit_highest(&m.histogram, target / part, independent, &mut random) {
            found.tails.push(higher.tail);
        }
    }
    first.reaches(m.histogram.max().unwrap_or_default(), independent, &mut random)?;
    trustworthy(&found.tails)?;
    Ok(first.level(activations as f64 * first.tail.peaks as f64 / n as f64))
}

/// Checks that a measurement allows an extrapolation.
fn suitable(m: &Measurement, n: u64, activations: u64) -> Result<(), String> {
    let least = TAIL_SHARE * 4 * LEAST_PEAKS as u64;
    if m.sampling != Sampling::Event {
        return Err("many operations were timed at once".to_owned());
    }
    if m.quality.level != QualityLevel::Ok || m.incomplete {
        let why =
            m.joined_reasons().unwrap_or_else(|| "the run ended before this measurement did".to_owned());
        return Err(format!("it was not measured under proper conditions ({why})"));
    }
    if n < least {
        return Err(format!(
            "{} is too few, it takes {}",
            count_with_noun(n, "activation"),
            format_count(least)
        ));
    }
    if activations <= n {
        return Err(format!("this run itself had {}", count_with_noun(n, "activation")));
    }
    if activations / FARTHEST > n {
        let (all, n) = (format_count(activations), format_count(n));
        return Err(format!("from {n} to {all} activations is too far"));
    }
    Ok(())
}

/// Checks that the run was in one steady state.
fn steady(steadiness: &Steadiness) -> Result<(), String> {
    let Steadiness { trend, rising, halves, bouts, .. } = *steadiness;
    if trend < UNLIKELY {
        let way = if rising { "rise" } else { "fall" };
        return Err(format!("the maxima {way} over the run (Mann-Kendall, p = {})", chance(trend)));
    }
    if halves < UNLIKELY {
        return Err(format!("the halves of the run differ (Mann-Whitney, p = {})", chance(halves)));
    }
    if bouts < UNLIKELY {
        let p = chance(bouts);
        return Err(format!(
            "large values come in bouts: the tail is not stationary (von Neumann's ratio of ranks, p = {p})"
        ));
    }
    Ok(())
}

/// Checks that the tail can be extrapolated.
fn trustworthy(tails: &[ParetoTailFit]) -> Result<(), String> {
    let (first, higher) = tails.split_first().ok_or("there is no tail")?;
    if first.shape.high >= HEAVY {
        return Err(format!(
            "the tail is too heavy: its shape may be {:.2} (95 %), and from {HEAVY} on a level says nothing",
            first.shape.high
        ));
    }
    let shape = first.pareto.shape;
    match higher.iter().find(|tail| !tail.shape.contains(shape)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "the tail is not of one kind: its shape is {shape:.2} above {}, but {:.2} above {}",
            format_time(first.threshold),
            other.pareto.shape,
            format_time(other.threshold)
        )),
    }
}

/// A tail, and the distributions that samples of it lead to.
struct Fit {
    tail: ParetoTailFit,
    resampled: Vec<Pareto>,
}

impl Fit {
    /// Fits the highest `target` values at most.
    fn fit_highest(
        histogram: &Histogram,
        target: u64,
        independent: f64,
        random: &mut SplitMix,
    ) -> Result<Fit, String> {
        let (threshold, excesses, buckets) = peaks(histogram, target);
        // What is left of the clusters is as good as so many independent peaks.
        let effective = (excesses.len() as f64 * independent).round() as usize;
        if effective < LEAST_PEAKS / 2 {
            let threshold = format_time(threshold);
            return Err(format!("there are only {effective} independent peaks above {threshold}"));
        }
        if buckets < 3 {
            return Err("the tail is thinner than the buckets of the histogram".to_owned());
        }
        let pareto = Pareto::fit(&excesses).ok_or("the tail is too heavy: it has no mean")?;
        let resampled: Vec<Pareto> =
            (0..RESAMPLES).filter_map(|_| Pareto::fit(&pareto.sorted_sample(effective, random))).collect();
        let shapes: Vec<f64> = resampled.iter().map(|pareto| pareto.shape).collect();
        let [low, high] = [0.025, 0.975].map(|q| quantile(&shapes, q).unwrap_or(f64::NAN));
        let shape = ConfidenceInterval { low, high };
        let tail = ParetoTailFit { threshold, peaks: excesses.len() as u64, pareto, shape };
        Ok(Fit { tail, resampled })
    }

    /// Checks that the largest value may be of the tail.
    fn reaches(&self, max: f64, independent: f64, random: &mut SplitMix) -> Result<(), String> {
        let peaks = self.tail.peaks as f64 * independent;
        let mut largest = self.resampled.iter().map(|pareto| {
            let beyond = -(pareto::uniform(random).ln() / peaks).exp_m1();
            self.tail.threshold + pareto.exceeded_once_in(1.0 / beyond.max(f64::MIN_POSITIVE))
        });
        if largest.any(|largest| largest >= max) {
            return Ok(());
        }
        Err(format!("the longest event, {}, is not of the tail below it", format_time(max)))
    }

    /// The value that one of so many peaks exceeds, and its interval.
    fn level(&self, peaks: f64) -> (f64, ConfidenceInterval) {
        let value = |pareto: &Pareto| self.tail.threshold + pareto.exceeded_once_in(peaks);
        let level = value(&self.tail.pareto);
        let levels: Vec<f64> = self.resampled.iter().map(value).collect();
        let [low, high] = [0.025, 0.975].map(|q| quantile(&levels, q).unwrap_or(level));
        (level, ConfidenceInterval { low: low.min(level), high: high.max(level) })
    }
}

/// The threshold above which at most the highest `target` values are, their excesses, ascending, and the number of
/// buckets that hold them. Values of a bucket are taken to be spread evenly; the maximum is exact.
fn peaks(histogram: &Histogram, target: u64) -> (f64, Vec<f64>, usize) {
    let max = histogram.max().unwrap_or_default();
    let buckets: Vec<(f64, f64, u64)> = histogram.buckets_ns().collect();
    let mut count = histogram.overflow();
    let tail = buckets.iter().rev().take_while(|(_, _, n)| {
        count += n;
        count <= target
    });
    let tail = &buckets[buckets.len() - tail.count()..];
    let below = buckets.len() - tail.len();
    let threshold = below.checked_sub(1).map_or(0.0, |last| buckets[last].1);
    let mut excesses = Vec::new();
    for &(low, high, n) in tail {
        // A bucket holds the whole ticks from its low to its high bound.
        let (low, high) = (low - 0.5, high.min(max) + 0.5);
        let value = |i: u64| low + (high - low) * (i as f64 + 0.5) / n as f64;
        excesses.extend((0..n).map(|i| value(i) - threshold));
    }
    excesses.extend((0..histogram.overflow()).map(|_| max - threshold));
    if let Some(last) = excesses.last_mut() {
        *last = max - threshold;
    }
    (threshold, excesses, tail.len())
}

/// A probability with one digit.
fn chance(p: f64) -> String {
    if p < 1e-4 { "0.0001 or less".to_owned() } else { format!("{p:.4}") }
}

fn finding(m: &Measurement, activations: u64, seed: u64) -> Finding {
    let result = return_level(m, activations, seed);
    let (id, words, diagnostics) = match &result {
        Ok(level) => ("return-level", format_level(level), &level.diagnostics),
        Err(refusal) => ("no-return-level", refusal.to_string(), &refusal.diagnostics),
    };
    // An extrapolation carries its interval and its tests; without them there is none.
    let told = FindingBuilder::claim(id).points([m]).value("activations", activations as f64);
    let mut told =
        told.values(diagnostic_values(diagnostics).iter().map(|(name, value)| (name.as_str(), *value)));
    if let Ok(level) = &result {
        told =
            told.values([("level", level.level), ("low", level.interval.low), ("high", level.interval.high)]);
    }
    // What a verdict says was not tested is not extrapolated either.
    let cause = match (&result, m.tested) {
        (Ok(_), Some(tested)) => format!(
            "; a cause that recurs more rarely than once in {} is not in it",
            format_span(tested.time_ns as f64 / 3.0)
        ),
        _ => String::new(),
    };
    told.into_finding(format!("{}: {words}{cause}", m.title))
}

fn format_level(level: &ReturnLevel) -> String {
    let tail = &level.diagnostics.tails[0];
    format!(
        "one of {} activations is expected to take longer than {} ({} to {}, 95 %), if all stays as it was: \
         extrapolated from {} values above {} (generalised Pareto, shape {:.2}, {:.2} to {:.2})",
        format_count(level.activations),
        format_time(level.level),
        format_time(level.interval.low),
        format_time(level.interval.high),
        format_count(tail.peaks),
        format_time(tail.threshold),
        tail.pareto.shape,
        tail.shape.low,
        tail.shape.high,
    )
}

/// The diagnostics by name: times in ns.
fn diagnostic_values(diagnostics: &Diagnostics) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    let mut put = |name: &str, value: f64| values.insert(name.to_owned(), value);
    if let Some(steadiness) = &diagnostics.steadiness {
        put("trend_p", steadiness.trend);
        put("halves_p", steadiness.halves);
        put("bouts_p", steadiness.bouts);
    }
    if let Some(independent) = diagnostics.independent {
        put("extremal_index", independent);
    }
    for (place, tail) in ["", "_higher", "_highest"].iter().zip(&diagnostics.tails) {
        put(&format!("threshold{place}"), tail.threshold);
        put(&format!("peaks{place}"), tail.peaks as f64);
        put(&format!("scale{place}"), tail.pareto.scale);
        put(&format!("shape{place}"), tail.pareto.shape);
        put(&format!("shape_low{place}"), tail.shape.low);
        put(&format!("shape_high{place}"), tail.shape.high);
    }
    values
}
