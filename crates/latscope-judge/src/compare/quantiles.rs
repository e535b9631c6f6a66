//! Whole distributions of two sides, quantile by quantile: for pictures, never tested.

use super::contrast::{Contrast, contrast};
use super::pair::ComparisonPair;
use super::ranks::MannWhitney;
use super::{ComparisonPoint, ComparisonVerdict};
use crate::runs::point_id;
use latscope_core::quality::QualityLevel;
use latscope_core::report::Sampling;
use std::collections::HashMap;

/// Points that are compared quantile by quantile, at most.
const POINTS: usize = 6;

/// Quantiles as 1 / (1 - q) below 90 %; from there on three a decade.
const BODY: [f64; 6] = [1.05, 1.25, 1.5, 2.0, 3.0, 5.0];
const TAIL: [f64; 3] = [10.0, 20.0, 50.0];
const DECADES: i32 = 7;

/// A point of single events at each quantile that every run of both sides has.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantiles {
    /// Stable name of the point.
    pub id: String,
    /// Samples of all runs of A, and of B.
    pub samples: [u64; 2],
    /// The quantiles, in ascending order.
    pub quantiles: Vec<QuantileComparison>,
}

/// A quantile of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileComparison {
    /// Probability of the quantile, 0 to 1.
    pub q: f64,
    /// Value of the quantile in each run of A and of B, ns.
    pub runs: [Vec<f64>; 2],
    /// Difference of the sides in this quantile; not tested.
    pub contrast: Contrast,
}

/// The points of single events that differ, then those that are furthest apart.
pub(super) fn quantiles(pairs: &[ComparisonPair], points: &[ComparisonPoint], seed: u64) -> Vec<Quantiles> {
    let mut order: Vec<&ComparisonPoint> = points.iter().collect();
    order.sort_by_key(|point| {
        (
            point.level != QualityLevel::Ok,
            matches!(point.verdict, ComparisonVerdict::Same | ComparisonVerdict::CannotTell),
        )
    });
    let of_events = pairs.iter().filter(|pair| pair.a[0].sampling == Sampling::Event);
    let by_id: HashMap<String, &ComparisonPair> =
        of_events.map(|pair| (point_id(&pair.a[0].probe, &pair.a[0].params), pair)).collect();
    let mut kept: Vec<Quantiles> = Vec::new();
    for point in order {
        let Some(quantiles) = by_id.get(&point.id).and_then(|pair| of_pair(pair, point, seed)) else {
            continue;
        };
        // The point of all CPUs of a run on one CPU has the same samples as the point of that CPU.
        if !kept.iter().any(|known| known.quantiles == quantiles.quantiles) {
            kept.push(quantiles);
        }
        if kept.len() == POINTS {
            break;
        }
    }
    kept
}

fn of_pair(pair: &ComparisonPair, point: &ComparisonPoint, seed: u64) -> Option<Quantiles> {
    let decades = (0..DECADES).flat_map(|decade| TAIL.map(|first| first * 10f64.powi(decade)));
    let places = BODY.into_iter().chain(decades).map(|x| 1.0 - 1.0 / x);
    let quantiles: Vec<QuantileComparison> = places.map_while(|q| quantile(pair, point, q, seed)).collect();
    let samples = [&pair.a, &pair.b].map(|side| side.iter().map(|m| m.histogram.count()).sum());
    (quantiles.len() > 2).then(|| Quantiles { id: point.id.clone(), samples, quantiles })
}

/// Compares one quantile; `None` if fewer than ten samples of a run lie beyond it.
fn quantile(pair: &ComparisonPair, point: &ComparisonPoint, q: f64, seed: u64) -> Option<QuantileComparison> {
    let [a, b] = [&pair.a, &pair.b]
        .map(|side| side.iter().map(|m| m.histogram.tail_quantile(q)).collect::<Option<Vec<f64>>>());
    let runs = [a?, b?];
    let [a, b] = runs.each_ref().map(|side| side.iter().map(|ns| vec![*ns]).collect());
    let untested = contrast(&a, &b, super::step(pair), seed, &mut MannWhitney::default())?;
    // Of one run only its rounds say how far a figure moves, and they have these three.
    let known = [(0.5, &point.p50), (0.99, &point.p99), (0.999, &point.p99_9)];
    let known = known.into_iter().find(|(known, _)| (known - q).abs() < 1e-9);
    let known = known.and_then(|(_, contrast)| contrast.clone()).filter(|_| untested.interval.is_none());
    let contrast = known.unwrap_or(untested).without_test();
    Some(QuantileComparison { q, runs, contrast })
}
