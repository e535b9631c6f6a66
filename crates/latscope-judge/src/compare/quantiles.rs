//! Whole distributions of two sides, quantile by quantile: for pictures, never tested.

use super::contrast::{Contrast, contrast};
use super::pair::Pair;
use super::ranks::MannWhitney;
use super::{Point, Verdict};
use crate::runs::point_id;
use latscope_core::quality::Level;
use latscope_core::report::{Measurement, Sampling};

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
    pub quantiles: Vec<Quantile>,
}

/// A quantile of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantile {
    /// Probability of the quantile, 0 to 1.
    pub q: f64,
    /// Value of the quantile in each run of A and of B, ns.
    pub runs: [Vec<f64>; 2],
    /// Difference of the sides in this quantile; not tested.
    pub contrast: Contrast,
}

/// The points of single events that differ, then those that are furthest apart.
pub(super) fn quantiles(pairs: &[Pair], points: &[Point], seed: u64) -> Vec<Quantiles> {
    let differs = |point: &&Point| !matches!(point.verdict, Verdict::Same | Verdict::CannotTell);
    let mut order: Vec<&Point> = points.iter().filter(differs).collect();
    order.extend(points.iter().filter(|point| !differs(point)));
    order.sort_by_key(|point| point.level != Level::Ok);
    let found = order.into_iter().filter_map(|point| {
        let of_point = |pair: &&Pair| {
            let m = pair.a[0];
            m.sampling == Sampling::Event && point_id(&m.probe, &m.params) == point.id
        };
        of_pair(pairs.iter().find(of_point)?, point, seed)
    });
    let mut kept: Vec<Quantiles> = Vec::new();
    for one in found {
        // The point of all CPUs of a run on one CPU has the same samples as the point of that CPU.
        let is_known = kept.iter().any(|known| known.quantiles == one.quantiles);
        if kept.len() < POINTS && !is_known {
            kept.push(one);
        }
    }
    kept
}

fn of_pair(pair: &Pair, point: &Point, seed: u64) -> Option<Quantiles> {
    let decades = (0..DECADES).flat_map(|decade| TAIL.map(|first| first * 10f64.powi(decade)));
    let wanted = BODY.into_iter().chain(decades).map(|x| 1.0 - 1.0 / x);
    let quantiles: Vec<Quantile> = wanted.map_while(|q| quantile(pair, point, q, seed)).collect();
    let samples = |side: &[&Measurement]| side.iter().map(|m| m.histogram.count()).sum();
    let (a, b) = (samples(&pair.a), samples(&pair.b));
    (quantiles.len() > 2).then(|| Quantiles { id: point.id.clone(), samples: [a, b], quantiles })
}

/// Compares one quantile; `None` if fewer than ten samples of a run lie beyond it.
fn quantile(pair: &Pair, point: &Point, q: f64, seed: u64) -> Option<Quantile> {
    let of = |side: &[&Measurement]| -> Option<Vec<f64>> {
        side.iter().map(|m| m.histogram.tail_quantile(q)).collect()
    };
    let runs = [of(&pair.a)?, of(&pair.b)?];
    let levels = |side: &[f64]| side.iter().map(|ns| vec![*ns]).collect::<Vec<_>>();
    let step = super::step(pair);
    let found = contrast(&levels(&runs[0]), &levels(&runs[1]), step, seed, &mut MannWhitney::default())?;
    // Of one run only its rounds say how far a figure moves, and they have these three.
    let known = [(0.5, &point.p50), (0.99, &point.p99), (0.999, &point.p99_9)];
    let known = known.into_iter().find(|(known, _)| (known - q).abs() < 1e-9);
    let known = known.and_then(|(_, contrast)| contrast.clone()).filter(|_| found.interval.is_none());
    let contrast = Contrast { p: None, ..known.unwrap_or(found) };
    Some(Quantile { q, runs, contrast })
}
