//! Tests by ranks of whether the largest values are the same over the whole run; they assume no distribution.

use latscope_core::histogram::Histogram;
use latscope_core::report::{Measurement, SampleBlock};
use latscope_core::statistics::quantile;
use statrs::function::erf::erfc;

/// Probabilities by chance of the pattern of the maxima of the blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// Number of blocks examined.
    pub blocks: usize,
    /// Probability by chance of a trend as strong, up or down (Mann, 1945; Kendall, 1975).
    pub trend: f64,
    /// True if the trend is upwards.
    pub rising: bool,
    /// Probability by chance of halves as different (Mann and Whitney, 1947).
    pub halves: f64,
    /// Probability by chance of neighbours as alike (von Neumann's ratio of ranks: Bartels, 1982).
    pub bouts: f64,
}

impl Steadiness {
    /// Looks at blocks in order of time.
    pub(super) fn from_blocks(blocks: &[SampleBlock]) -> Steadiness {
        let maxima: Vec<f64> = blocks.iter().map(|block| block.max as f64).collect();
        let (trend, rising) = mann_kendall(&maxima);
        let ranks = ranks(&maxima);
        Steadiness { blocks: blocks.len(), trend, rising, halves: halves(&ranks), bouts: bouts(&ranks) }
    }
}

/// The blocks of the usual length: all but the last one, if that is not full.
pub(super) fn full_blocks(blocks: &[SampleBlock]) -> &[SampleBlock] {
    match blocks {
        [first, .., last] if last.count < first.count => &blocks[..blocks.len() - 1],
        _ => blocks,
    }
}

/// Windows of time that an estimate of how events cluster needs.
const LEAST_WINDOWS: usize = 32;

/// The share of the large values of concurrent threads that are independent of each other: the values of one bout, on
/// any CPU, count once. 1 if there are too few blocks.
pub(crate) fn independent_share(parts: &[&Measurement]) -> f64 {
    let maxima = maxima(parts);
    let n: u64 = parts.iter().map(|part| part.histogram.count()).sum();
    if maxima.len() < LEAST_WINDOWS || n == 0 {
        return 1.0;
    }
    let histograms: Vec<&Histogram> = parts.iter().map(|part| &part.histogram).collect();
    cluster_index(&maxima, n as f64 / maxima.len() as f64, &histograms)
}

/// The largest value of each window of time, of all parts together.
fn maxima(parts: &[&Measurement]) -> Vec<f64> {
    let blocks: Vec<&[SampleBlock]> = parts.iter().map(|part| full_blocks(&part.blocks)).collect();
    let Some(shortest) = blocks.iter().min_by_key(|blocks| blocks.len()) else { return Vec::new() };
    // The blocks of several threads begin at different times: two of them are a window.
    let each = if parts.len() > 1 { 2 } else { 1 };
    let begins: Vec<u64> = shortest.iter().step_by(each).map(|block| block.from).collect();
    let mut maxima = vec![0.0f64; begins.len()];
    for block in blocks.iter().copied().flatten() {
        let window = begins.partition_point(|begin| *begin <= block.from).saturating_sub(1);
        if let Some(max) = maxima.get_mut(window) {
            *max = max.max(block.max as f64);
        }
    }
    maxima
}

/// The share of large values that are independent of each other, of one thread.
pub(super) fn extremal_index(blocks: &[SampleBlock], histogram: &Histogram) -> f64 {
    let maxima: Vec<f64> = blocks.iter().map(|block| block.max as f64).collect();
    let length = blocks.first().map_or(0, |block| block.count);
    cluster_index(&maxima, length as f64, &[histogram])
}

/// Extremal index by the blocks estimator (Embrechts, Klüppelberg and Mikosch, "Modelling Extremal Events", 8.1): the
/// rate of windows that have a large value, divided by the rate if large values came singly. A window has `length`
/// values.
fn cluster_index(maxima: &[f64], length: f64, histograms: &[&Histogram]) -> f64 {
    let Some(level) = quantile(maxima, 0.5) else { return 1.0 };
    let quiet = maxima.iter().filter(|max| **max <= level).count() as f64 / maxima.len() as f64;
    let (mut n, mut above) = (0, 0);
    for histogram in histograms {
        let level_ns = level * histogram.tick_ps() as f64 / 1e3;
        above += histogram.buckets_ns().filter(|(low, ..)| *low > level_ns).map(|(.., n)| n).sum::<u64>();
        above += histogram.overflow();
        n += histogram.count();
    }
    let expected = length * above as f64 / n as f64;
    if expected <= 0.0 {
        return 1.0;
    }
    (-quiet.ln() / expected).clamp(0.0, 1.0)
}

/// Probability by chance of a standard normal variable as far out as `z`, on
/// either side.
fn two_sided(z: f64) -> f64 {
    erfc(z.abs() / std::f64::consts::SQRT_2)
}

/// Ranks from 1; equal values share a rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let before = order.partition_point(|at| values[*at] < values[equal[0]]);
        let shared = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        for at in equal {
            ranks[*at] = shared;
        }
    }
    ranks
}

/// Sizes of the groups of equal values.
fn tie_sizes(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64).collect()
}

/// The probability of a trend as strong by chance, and whether it is upwards.
fn mann_kendall(values: &[f64]) -> (f64, bool) {
    let n = values.len() as f64;
    let mut s = 0.0;
    for (at, earlier) in values.iter().enumerate() {
        s +=
            values[at + 1..].iter().map(|later| (later - earlier).total_cmp(&0.0) as i32).sum::<i32>() as f64;
    }
    let part = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let variance = (part(n) - tie_sizes(values).into_iter().map(part).sum::<f64>()) / 18.0;
    if variance <= 0.0 {
        return (1.0, false);
    }
    // The sum moves in steps of two: half a step is continuity.
    let z = (s.abs() - 1.0).max(0.0) / variance.sqrt();
    (two_sided(z), s > 0.0)
}

/// The probability of a difference between the halves as large by chance.
fn halves(ranks: &[f64]) -> f64 {
    let half = ranks.len() / 2;
    let (first, second) = (half as f64, (ranks.len() - half) as f64);
    let n = first + second;
    let u = ranks[..half].iter().sum::<f64>() - first * (first + 1.0) / 2.0;
    let tied: f64 = tie_sizes(ranks).into_iter().map(|t| t * t * t - t).sum();
    let variance = first * second / 12.0 * (n + 1.0 - tied / (n * (n - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    two_sided(((u - first * second / 2.0).abs() - 0.5).max(0.0) / variance.sqrt())
}

/// The probability of neighbours as alike by chance.
fn bouts(ranks: &[f64]) -> f64 {
    let n = ranks.len() as f64;
    let mean = (n + 1.0) / 2.0;
    let total: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if total <= 0.0 {
        return 1.0;
    }
    let steps: f64 = ranks.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let variance =
        4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0).powi(2));
    let z = (steps / total - 2.0) / variance.sqrt();
    erfc(-z / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 2e-4, "{a} is not {b}");
    }

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert!(ranks(&[]).is_empty());
    }

    /// S is 45 of ten rising values, its variance 125: z = 44 / √125 = 3.935.
    #[test]
    fn a_trend_is_as_unlikely_as_worked_out_by_hand() {
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        let (p, up) = mann_kendall(&rising);
        near(p * 1e3, 0.0831);
        assert!(up);
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        assert_eq!(mann_kendall(&falling), (p, false));
        assert_eq!(mann_kendall(&[5.0; 10]).0, 1.0);
        let (p, _) = mann_kendall(&[1.0, 3.0, 2.0, 4.0]);
        near(p, 0.3082); // S = 4, variance 8.667, z = 3 / 2.944
    }

    /// U is 0 of 25, its variance 22.92: z = 12 / 4.787 = 2.507.
    #[test]
    fn halves_are_told_apart() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        near(halves(&values), 0.0122);
        near(halves(&[1.0, 4.0, 5.0, 8.0, 2.0, 3.0, 6.0, 7.0]), 1.0);
        assert_eq!(halves(&[2.5; 4]), 1.0);
    }

    #[test]
    fn bouts_are_seen_where_a_trend_is_not() {
        let up_and_down: Vec<f64> = (0..64)
            .map(|i| if (16..48).contains(&i) { 100.0 } else { 1.0 } + f64::from(i * 7 % 64) / 64.0)
            .collect();
        assert!(mann_kendall(&up_and_down).0 > 0.01 && halves(&ranks(&up_and_down)) > 0.01);
        assert!(bouts(&ranks(&up_and_down)) < 1e-6);
        let alternating: Vec<f64> = (0..64).map(|i| f64::from(i % 2) + f64::from(i) / 1e3).collect();
        assert!(bouts(&ranks(&alternating)) > 0.99, "these are no bouts");
    }

    #[test]
    fn a_last_block_that_is_not_full_is_left_out() {
        let block = |count| SampleBlock { count, max: 1, ..SampleBlock::default() };
        assert_eq!(full_blocks(&[block(8), block(8), block(3)]).len(), 2);
        assert_eq!(full_blocks(&[block(8), block(8)]).len(), 2);
        assert_eq!(full_blocks(&[]).len(), 0);
    }

    #[test]
    fn values_in_clusters_are_fewer_than_they_look() {
        let of = |cluster: u64| {
            let mut histogram = Histogram::new(1000);
            let mut blocks = Vec::new();
            for block in 0..100u64 {
                let busy = block % 2 == 0;
                (0..1000).for_each(|i| histogram.record(if busy && i < cluster { 9_000 } else { 1_000 }));
                blocks.push(SampleBlock {
                    from: block,
                    count: 1000,
                    max: if busy { 9_000 } else { 1_000 },
                    ..SampleBlock::default()
                });
            }
            extremal_index(&blocks, &histogram)
        };
        assert_eq!(of(1), 1.0);
        near(of(10), std::f64::consts::LN_2 / 5.0);
    }
}
