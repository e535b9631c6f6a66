//! The few statistics that conclusions rest on: order statistics and
//! resampling. No distribution is assumed anywhere: latencies have none.

use statrs::distribution::{ContinuousCDF, StudentsT};
use std::sync::LazyLock;

/// A range that holds the true value with a stated confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end of the range.
    pub low: f64,
    /// Upper end of the range.
    pub high: f64,
}

impl ConfidenceInterval {
    /// Returns true if `value` lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns true if the two intervals have no value in common.
    pub fn is_apart_from(&self, other: &ConfidenceInterval) -> bool {
        self.high < other.low || other.high < self.low
    }
}

/// Median of `values`; `None` if there are no values. NaN is ignored.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Value at quantile `q` of `values`, in any order, interpolated between neighbours (Hyndman and Fan's type 7); `None`
/// if there are no values. NaN is ignored, `q` is clamped to 0..1.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted_quantile(&sorted, q)
}

fn sorted_quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    // Equal neighbours first: infinity times nothing is no number.
    Some(if below == above { below } else { below + (above - below) * place.fract() })
}

/// The ranks, from 1, of the order statistics that enclose the median of a
/// population of which `count` independent samples were taken, with at least
/// 95 % confidence; `None` below six samples, where no two ranks do.
///
/// From the binomial distribution: the number of samples below the median is
/// that of heads in `count` throws of a coin.
pub(crate) fn median_ranks(count: u64) -> Option<(u64, u64)> {
    if count < 6 {
        return None;
    }
    if count > 1000 {
        // The normal approximation is within a rank from far below this on.
        let half_width = 1.96 * (count as f64).sqrt() / 2.0;
        let low = ((count as f64 / 2.0 - half_width).floor() as u64).max(1);
        return Some((low, count + 1 - low));
    }
    let mut probability = 0.5f64.powi(count as i32); // of exactly `below` heads
    let (mut tail, mut below) = (probability, 0);
    loop {
        probability *= (count - below) as f64 / (below + 1) as f64;
        if tail + probability > 0.025 {
            // P(fewer than `below + 1` heads) = tail is at most 2.5 % on each side.
            return Some((below + 1, count - below));
        }
        tail += probability;
        below += 1;
    }
}

/// The 95 % confidence interval of the median of what `samples` were drawn
/// from; `None` below six samples.
pub fn median_interval(samples: &[f64]) -> Option<ConfidenceInterval> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = median_ranks(sorted.len() as u64)?;
    Some(ConfidenceInterval { low: sorted[low as usize - 1], high: sorted[high as usize - 1] })
}

/// The median of the ratios `a / b` of pairs measured one after the other, and
/// its 95 % confidence interval by the percentile bootstrap. The same seed
/// gives the same interval.
///
/// `None` when no pair has two positive numbers. With fewer than three pairs
/// the interval is no narrower than the ratios themselves.
pub fn ratio_of_medians(pairs: &[(f64, f64)], seed: u64) -> Option<(f64, ConfidenceInterval)> {
    const RESAMPLES: usize = 2000;
    let usable = |v: f64| v.is_finite() && v > 0.0;
    let ratios: Vec<f64> =
        pairs.iter().filter(|(a, b)| usable(*a) && usable(*b)).map(|(a, b)| a / b).collect();
    let centre = median(&ratios)?;
    let mut random = SplitMix::new(seed);
    let mut medians: Vec<f64> = Vec::with_capacity(RESAMPLES);
    let mut resample = vec![0.0; ratios.len()];
    for _ in 0..RESAMPLES {
        for place in &mut resample {
            *place = ratios[random.below(ratios.len() as u64) as usize];
        }
        resample.sort_unstable_by(f64::total_cmp);
        medians.extend(sorted_quantile(&resample, 0.5));
    }
    medians.sort_unstable_by(f64::total_cmp);
    let (low, high) = match ratios.len() {
        0..3 => (quantile(&ratios, 0.0)?, quantile(&ratios, 1.0)?),
        _ => (sorted_quantile(&medians, 0.025)?, sorted_quantile(&medians, 0.975)?),
    };
    Some((centre, ConfidenceInterval { low, high }))
}

/// The standard normal quantile of a two-sided 95 % interval.
pub const NORMAL_95: f64 = 1.959_963_984_540_054;

/// Student's quantile of a two-sided 95 % interval at so many degrees of freedom: that of the
/// nearest one known below 1 and above 200.
pub fn student_95(degrees: usize) -> f64 {
    static KNOWN: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let quantile = |degrees: u32| StudentsT::new(0.0, 1.0, degrees.into()).map(|t| t.inverse_cdf(0.975));
        (1..=200).filter_map(|degrees| quantile(degrees).ok()).collect()
    });
    KNOWN.get(degrees.saturating_sub(1)).or(KNOWN.last()).copied().unwrap_or(NORMAL_95)
}

/// Student's quantile of a share at so many degrees of freedom, at least 1.
pub fn student(degrees: usize, share: f64) -> f64 {
    let degrees = degrees.max(1) as f64;
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| t.inverse_cdf(share))
}

/// A small seeded generator of random numbers: SplitMix64 (Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct SplitMix {
    state: u64,
}

impl SplitMix {
    /// A generator whose numbers depend on `seed` alone.
    pub fn new(seed: u64) -> Self {
        SplitMix { state: seed }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; 0 when the bound is 0. The bias of at most
    /// `bound` in 2^64 is of no account here.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

/// Ratio of the medians of two groups from which they count as two modes.
const MODES_APART: f64 = 1.15;

/// Returns how many of the values are in the higher of two modes; `None` if there is only one. The widest gap between
/// neighbours separates two modes if it is wider than both of them, each has two values or more, and the median of the
/// higher is at least 15 % above that of the lower.
pub fn higher_mode(values: &[f64]) -> Option<usize> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gap = |at: usize| sorted[at] - sorted[at - 1];
    let split = (1..sorted.len()).max_by(|a, b| gap(*a).total_cmp(&gap(*b)))?;
    let (low, high) = sorted.split_at(split);
    let width = |group: &[f64]| group[group.len() - 1] - group[0];
    let apart = gap(split) > width(low).max(width(high)) && median(high)? >= MODES_APART * median(low)?;
    (apart && low.len() > 1 && high.len() > 1).then_some(high.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (degrees, known) in [(1, 12.706), (2, 4.303), (7, 2.365), (30, 2.042), (100, 1.984)] {
            assert!((student_95(degrees) - known).abs() < 5e-4, "{degrees}");
        }
        assert_eq!((student_95(0), student_95(10_000)), (student_95(1), student_95(200)));
    }

    #[test]
    fn medians_and_quantiles_of_known_slices() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[f64::NAN, 5.0]), Some(5.0));
        assert_eq!(quantile(&[0.0, 10.0], 0.25), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 7.0), Some(3.0));
        assert_eq!(quantile(&[f64::INFINITY, f64::INFINITY], 0.3), Some(f64::INFINITY));
    }

    /// Against the table of order-statistic intervals of the median
    /// (Conover, "Practical Nonparametric Statistics").
    #[test]
    fn median_ranks_are_those_of_the_table() {
        let table = [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (20, 6, 15), (30, 10, 21), (50, 18, 33)];
        for (count, low, high) in table {
            assert_eq!(median_ranks(count), Some((low, high)), "{count} samples");
        }
        assert_eq!(median_ranks(5), None);
        assert_eq!(median_ranks(10_000), Some((4902, 5099)));
    }

    #[test]
    fn the_approximation_continues_the_exact_ranks() {
        let (exact, approximate) = (median_ranks(1000).unwrap(), median_ranks(1001).unwrap());
        assert!(exact.0.abs_diff(approximate.0) <= 1, "{exact:?} {approximate:?}");
    }

    #[test]
    fn a_clear_ratio_is_told_from_one_and_an_equal_one_is_not() {
        let noise = |i: u64| 1.0 + (SplitMix::new(i).below(100) as f64 - 50.0) / 1000.0;
        let half: Vec<(f64, f64)> = (0..30).map(|i| (noise(i), 2.0 * noise(i + 100))).collect();
        let (centre, interval) = ratio_of_medians(&half, 1).unwrap();
        assert!((centre - 0.5).abs() < 0.03 && interval.contains(centre) && !interval.contains(1.0));
        let same: Vec<(f64, f64)> = (0..30).map(|i| (noise(i), noise(i + 100))).collect();
        assert!(ratio_of_medians(&same, 1).unwrap().1.contains(1.0));
    }

    #[test]
    fn ratios_need_positive_numbers() {
        assert_eq!(ratio_of_medians(&[], 1), None);
        assert_eq!(ratio_of_medians(&[(1.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0)], 1), None);
        let (centre, interval) = ratio_of_medians(&[(2.0, 1.0), (4.0, 1.0)], 1).unwrap();
        assert_eq!((centre, interval), (3.0, ConfidenceInterval { low: 2.0, high: 4.0 }));
    }

    #[test]
    fn the_generator_gives_its_published_numbers() {
        let mut random = SplitMix::new(1234567);
        let published = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!([random.bits(), random.bits(), random.bits()], published);
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn two_modes_have_a_gap_between_them() {
        assert_eq!(higher_mode(&[131.0, 133.0, 249.0, 132.0, 244.0]), Some(2));
        assert_eq!(higher_mode(&[100.0, 100.0, 114.0, 114.0]), None);
        assert_eq!(higher_mode(&[100.0, 100.0, 115.0, 115.0]), Some(2));
        // Neither an outlier nor half of a wide mode is a mode.
        assert_eq!(higher_mode(&[100.0, 101.0, 102.0, 300.0]), None);
        assert_eq!(higher_mode(&[100.0, 110.0, 121.0, 133.0, 146.0, 160.0]), None);
        assert_eq!([higher_mode(&[]), higher_mode(&[1.0])], [None; 2]);
    }

    proptest! {
        #[test]
        fn the_same_seed_gives_the_same_interval(pairs in proptest::collection::vec((0.1f64..10.0, 0.1f64..10.0), 1..20),
                                                 seed: u64) {
            let first = ratio_of_medians(&pairs, seed);
            prop_assert_eq!(first, ratio_of_medians(&pairs, seed));
            let (centre, interval) = first.unwrap();
            prop_assert!(interval.contains(centre));
        }

        #[test]
        fn ranks_are_symmetric_and_in_range(count in 6u64..100_000) {
            let (low, high) = median_ranks(count).unwrap();
            prop_assert!(low >= 1 && low <= high && high == count + 1 - low);
        }

        #[test]
        fn quantiles_never_leave_the_values(values in proptest::collection::vec(any::<f64>(), 0..40), q in -1.0f64..2.0) {
            if let Some(value) = quantile(&values, q) {
                let inside = |bound: fn(f64, f64) -> f64| values.iter().copied().reduce(bound).unwrap();
                prop_assert!(value.is_nan() || (inside(f64::min) <= value && value <= inside(f64::max)));
            }
        }
    }
}
