//! Fitting plateaus to log2 latency over log2 size.

use latscope_core::statistics::median;

/// log2 of the smallest ratio that makes two levels (LMbench's `cache` takes
/// 1.35).
pub(super) const MINIMUM_RATIO: f64 = 0.378_511_623_253_729_8; // log2(1.3)

/// A plateau covers at least half an octave of sizes.
const MINIMUM_OCTAVES: f64 = 0.5;

/// Largest number of plateaus: no machine has more than four caches and memory.
const MOST_PLATEAUS: usize = 5;

/// Least assumed noise of measurements, in log2: 3.5 %.
const NOISE_FLOOR: f64 = 0.05;

/// Least ratio of the slope of an edge to those of the plateaus beside it.
const EDGE_STEEPNESS: f64 = 2.0;

/// Slope below which a plateau is flat, in log2 an octave.
const FLAT: f64 = 0.15;

/// Points `first..=last` of about the same latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plateau {
    pub first: usize,
    pub last: usize,
    /// log2 of its latency.
    pub height: f64,
}

fn median_of_three(a: f64, b: f64, c: f64) -> f64 {
    a.max(b).min(a.min(b).max(c))
}

/// Running median of three (Tukey's rule at the ends): removes single
/// outliers, leaves edges and everything monotone as it is.
pub(super) fn without_spikes(y: &[f64]) -> Vec<f64> {
    let mut smooth = y.to_vec();
    for (middle, window) in smooth[1.min(y.len())..].iter_mut().zip(y.windows(3)) {
        *middle = median_of_three(window[0], window[1], window[2]);
    }
    if let [first, second, third, ..] = y.len().checked_sub(3).map_or(&[][..], |_| &smooth[..]) {
        let (first, second, third) = (*first, *second, *third);
        let n = y.len();
        let end = median_of_three(y[n - 1], smooth[n - 2], 3.0 * smooth[n - 2] - 2.0 * smooth[n - 3]);
        smooth[0] = median_of_three(first, second, 3.0 * second - 2.0 * third);
        smooth[n - 1] = end;
    }
    smooth
}

/// The closest non-decreasing sequence in the sense of least squares, by
/// pooling adjacent violators.
pub(super) fn isotonic(y: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new(); // mean, members
    for &value in y {
        let (mut mean, mut members) = (value, 1);
        while let Some(&(before, count)) = pools.last().filter(|(before, _)| *before > mean) {
            let total = members + count;
            mean = (mean * members as f64 + before * count as f64) / total as f64;
            members = total;
            pools.pop();
        }
        pools.push((mean, members));
    }
    pools.into_iter().flat_map(|(mean, members)| std::iter::repeat_n(mean, members)).collect()
}

/// The plateaus of a curve: `x` log2 sizes, `raw` log2 latencies as measured,
/// `y` the same made monotone. Ascending, and each at least 1.3 times as slow
/// as the one before. None at all when the curve is one slope.
pub(super) fn plateaus(x: &[f64], raw: &[f64], y: &[f64]) -> Vec<Plateau> {
    let curve = PlateauFitCurve { x, raw, y };
    let mut found = curve.best_plateaus();
    if found.is_empty() {
        // Too few points for a plateau, or nothing but slope.
        let narrow = curve.octaves(0, x.len() - 1) < 2.0 * MINIMUM_OCTAVES || x.len() < 4;
        return if narrow { vec![curve.plateau(0, x.len() - 1)] } else { Vec::new() };
    }
    curve.merge_alike(&mut found);
    curve.drop_slopes(&mut found);
    curve.merge_alike(&mut found);
    found
}

struct PlateauFitCurve<'a> {
    x: &'a [f64],
    raw: &'a [f64],
    y: &'a [f64],
}

impl PlateauFitCurve<'_> {
    /// Octaves that points `first..=last` stand for: each for half the way to
    /// its neighbours.
    fn octaves(&self, first: usize, last: usize) -> f64 {
        let end = self.x.len() - 1;
        let to_left = (self.x[first] - self.x[first.saturating_sub(1)]) / 2.0;
        let to_right = (self.x[(last + 1).min(end)] - self.x[last]) / 2.0;
        self.x[last] - self.x[first] + to_left + to_right
    }

    /// A plateau of these points. Its height is the median of its interior as
    /// measured: the outer quarters belong half to the edges.
    fn plateau(&self, first: usize, last: usize) -> Plateau {
        let trim = (last - first + 1) / 4;
        let interior = &self.raw[first + trim..=last - trim];
        Plateau { first, last, height: median(interior).unwrap_or(self.y[first]) }
    }

    /// The noise of the measurements: median absolute second difference, which
    /// edges and slopes hardly touch.
    fn noise(&self) -> f64 {
        let second: Vec<f64> = self.raw.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).collect();
        // For normal noise the second difference has sqrt(6) times its
        // deviation, and the median absolute value is 0.6745 deviations.
        let sigma = median(&second).unwrap_or(0.0) / (6f64.sqrt() * 0.6745);
        sigma.clamp(NOISE_FLOOR, 0.25)
    }

    /// The set of plateaus of least cost. A point on a plateau costs its squared distance in units of the noise. A
    /// point on none, and each plateau, cost as much as a free parameter in the BIC (ln n), but twice: a plateau has a
    /// height and a place, and a point has no better model.
    fn best_plateaus(&self) -> Vec<Plateau> {
        let n = self.x.len();
        let penalty = 2.0 * (n as f64).ln();
        let cost = Squares::new(self.y, self.noise());
        let mut best = vec![0.0; n + 1];
        let mut plateau_from: Vec<Option<usize>> = vec![None; n + 1];
        for end in 1..=n {
            best[end] = best[end - 1] + penalty;
            for start in 0..end.saturating_sub(1) {
                if self.octaves(start, end - 1) < MINIMUM_OCTAVES - 1e-6 {
                    break;
                }
                let total = best[start] + penalty + cost.segment_cost(start, end);
                if total < best[end] {
                    (best[end], plateau_from[end]) = (total, Some(start));
                }
            }
        }
        let (mut found, mut end) = (Vec::new(), n);
        while end > 0 {
            match plateau_from[end] {
                Some(start) => {
                    found.push(self.plateau(start, end - 1));
                    end = start;
                }
                None => end -= 1,
            }
        }
        found.reverse();
        found
    }

    /// Joins neighbours that are too alike to be two levels, the most alike
    /// first, and goes on while there are more than a machine has.
    fn merge_alike(&self, plateaus: &mut Vec<Plateau>) {
        loop {
            let steps = plateaus.windows(2).map(|pair| pair[1].height - pair[0].height);
            let Some((at, step)) = steps.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
            if step >= MINIMUM_RATIO && plateaus.len() <= MOST_PLATEAUS {
                return;
            }
            plateaus[at] = self.plateau(plateaus[at].first, plateaus[at + 1].last);
            plateaus.remove(at + 1);
        }
    }

    /// Removes plateaus that are part of a slope. An edge between two plateaus is steeper than both; without an edge,
    /// the steeper of the two is slope.
    fn drop_slopes(&self, plateaus: &mut Vec<Plateau>) {
        let mut at = 0;
        while at + 1 < plateaus.len() {
            let (low, high) = (&plateaus[at], &plateaus[at + 1]);
            let (below, above) = (self.slope(low), self.slope(high));
            let rise = self.y[high.first] - self.y[low.last];
            let edge = rise / (self.x[high.first] - self.x[low.last]);
            if edge >= FLAT.max(EDGE_STEEPNESS * below.max(above)) {
                at += 1;
                continue;
            }
            plateaus.remove(if below > above { at } else { at + 1 });
            at = at.saturating_sub(1);
        }
        // Alone, it has no edge to be compared with.
        if let [only] = plateaus[..] {
            let whole = only.first == 0 && only.last + 1 == self.x.len();
            if !whole && self.slope(&only) > FLAT {
                plateaus.clear();
            }
        }
    }

    /// Rise of the latency along a plateau, log2 an octave, by linear regression.
    fn slope(&self, plateau: &Plateau) -> f64 {
        let (x, y) = (&self.x[plateau.first..=plateau.last], &self.y[plateau.first..=plateau.last]);
        let [mean_x, mean_y] = [x, y].map(|values| values.iter().sum::<f64>() / values.len() as f64);
        let along: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
        let together: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        if along > 0.0 { together / along } else { 0.0 }
    }
}

/// Sums of squared distances from the mean of any stretch, in constant time.
struct Squares {
    sums: Vec<(f64, f64)>,
    variance: f64,
}

impl Squares {
    fn new(y: &[f64], sigma: f64) -> Self {
        let mut sums = vec![(0.0, 0.0)];
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in y {
            (sum, squares) = (sum + value, squares + value * value);
            sums.push((sum, squares));
        }
        Squares { sums, variance: sigma * sigma }
    }

    /// Cost of `start..end` around its mean, in units of the noise.
    fn segment_cost(&self, start: usize, end: usize) -> f64 {
        let sum = self.sums[end].0 - self.sums[start].0;
        let squares = self.sums[end].1 - self.sums[start].1;
        (squares - sum * sum / (end - start) as f64).max(0.0) / self.variance
    }
}
