//! The generalised Pareto distribution, which the excesses of values over a high threshold have.
//!
//! It is fitted by probability-weighted moments (Hosking and Wallis, "Parameter and quantile estimation for the
//! generalized Pareto distribution", Technometrics 29, 1987), which are steady for samples of some hundreds, and need
//! no iteration. They exist for shapes below 1 and have a variance below 0.5.

use latscope_core::statistics::SplitMix;

/// A generalised Pareto distribution that begins at 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pareto {
    /// Shape of the tail: below 0 it has an end, at 0 it is exponential, above 0 it falls like a power.
    pub shape: f64,
    /// Scale of the distribution, ns.
    pub scale: f64,
}

impl Pareto {
    /// The distribution that ascending values come from; `None` where they are
    /// fewer than two, all the same, or have no mean.
    pub fn fit(ascending: &[f64]) -> Option<Pareto> {
        let n = ascending.len() as f64;
        let mean = ascending.iter().sum::<f64>() / n;
        // The mean of values weighted by the share of those above them.
        let weights = (1..=ascending.len()).map(|rank| 1.0 - (rank as f64 - 0.35) / n);
        let weighted = ascending.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>() / n;
        let spread = mean - 2.0 * weighted;
        let fitted = Pareto { shape: 2.0 - mean / spread, scale: 2.0 * mean * weighted / spread };
        let usable = ascending.len() > 1 && spread > 0.0 && fitted.shape.is_finite() && fitted.scale > 0.0;
        usable.then_some(fitted)
    }

    /// The probability of a value above `value`.
    pub fn tail_probability(&self, value: f64) -> f64 {
        let scaled = value.max(0.0) / self.scale;
        if self.shape.abs() < 1e-9 {
            return (-scaled).exp();
        }
        let base = 1.0 + self.shape * scaled;
        if base <= 0.0 { 0.0 } else { base.powf(-1.0 / self.shape) }
    }

    /// The value that one of `count` is expected to exceed; `count` at least 1.
    pub(crate) fn exceeded_once_in(&self, count: f64) -> f64 {
        let logarithm = count.ln();
        if self.shape.abs() < 1e-9 {
            return self.scale * logarithm;
        }
        self.scale * (self.shape * logarithm).exp_m1() / self.shape
    }

    /// Random values of it, ascending.
    pub(super) fn sorted_sample(&self, count: usize, random: &mut SplitMix) -> Vec<f64> {
        let mut sample: Vec<f64> = (0..count).map(|_| self.exceeded_once_in(1.0 / uniform(random))).collect();
        sample.sort_unstable_by(f64::total_cmp);
        sample
    }
}

/// A random number above 0 and at most 1.
pub(super) fn uniform(random: &mut SplitMix) -> f64 {
    ((random.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_finds_the_shape_it_was_drawn_from() {
        for shape in [-1.0, -0.3, 0.0, 0.2, 0.4] {
            let known = Pareto { shape, scale: 5_000.0 };
            let sample = known.sorted_sample(20_000, &mut SplitMix::new(7));
            let fitted = Pareto::fit(&sample).unwrap();
            assert!((fitted.shape - shape).abs() < 0.05, "{shape}: {fitted:?}");
            assert!((fitted.scale / 5_000.0 - 1.0).abs() < 0.05, "{shape}: {fitted:?}");
        }
    }

    #[test]
    fn moments_of_evenly_spread_values_are_those_of_the_uniform_distribution() {
        let values: Vec<f64> = (0..10_000).map(|i| f64::from(i) + 0.5).collect();
        let fitted = Pareto::fit(&values).unwrap();
        assert!((fitted.shape + 1.0).abs() < 1e-3 && (fitted.scale - 10_000.0).abs() < 10.0, "{fitted:?}");
    }

    #[test]
    fn probability_and_value_are_inverse() {
        for shape in [-0.5, 0.0, 0.3] {
            let pareto = Pareto { shape, scale: 3.0 };
            for count in [1.0, 2.0, 1e6] {
                let back = 1.0 / pareto.tail_probability(pareto.exceeded_once_in(count));
                assert!((back / count - 1.0).abs() < 1e-6, "{shape} {count} {back}");
            }
        }
        assert_eq!(Pareto { shape: -1.0, scale: 2.0 }.tail_probability(2.5), 0.0, "beyond its end");
    }

    #[test]
    fn what_has_no_spread_has_no_fit() {
        assert_eq!(Pareto::fit(&[]), None);
        assert_eq!(Pareto::fit(&[1.0]), None);
        assert_eq!(Pareto::fit(&[0.0, 0.0, 0.0]), None);
    }
}
