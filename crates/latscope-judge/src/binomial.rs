//! Exact tails of the binomial distribution, and bounds of a true share from a count of events.
//!
//! The bounds are those of Clopper and Pearson ("The use of confidence or
//! fiducial limits", 1934): exact for independent samples, and never too
//! narrow. Samples of one stall are not independent; a limit that several
//! stalls break in few samples is judged with that in mind.

use latscope_core::statistics::ConfidenceInterval;
use statrs::function::erf::erfc;
use statrs::function::gamma::ln_gamma;

/// The confidence of every statement: one in twenty is wrong.
const CONFIDENCE: f64 = 0.95;

/// Variance from which on the normal distribution replaces the binomial one. The number of binomial terms that count is
/// about the root of the variance; the two distributions differ by less than a ten thousandth there.
const NORMAL_ABOVE: f64 = 1e8;

/// The probability that at most `k` of `n` independent samples are above a
/// limit, if the share `p` of all is.
pub fn at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n || p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    let variance = n as f64 * p * (1.0 - p);
    if variance > NORMAL_ABOVE {
        let above = k as f64 + 0.5 - n as f64 * p;
        return erfc(-above / (2.0 * variance).sqrt()) / 2.0;
    }
    // The terms on the side of `k` that is away from the most likely number
    // fall monotonously: few of them count.
    let odds = p / (1.0 - p);
    if (k as f64) < n as f64 * p {
        sum_series(probability(k, n, p), (0..k).rev().map(|i| (i + 1) as f64 / ((n - i) as f64 * odds)))
    } else {
        (1.0 - upper_tail(k, n, p)).max(0.0)
    }
}

/// The probability of more than `k` of `n`, for `k` not below the most likely number: the terms fall from there.
fn upper_tail(k: u64, n: u64, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    sum_series(probability(k + 1, n, p), (k + 1..n).map(|i| (n - i) as f64 * odds / (i + 1) as f64))
}

/// The probability that at least `k` of `n` independent samples are above a
/// limit, if the share `p` of all is.
pub fn at_least(k: u64, n: u64, p: f64) -> f64 {
    let Some(below) = k.checked_sub(1) else { return 1.0 };
    // A chance below 1e-16 would be 0 as a difference from 1.
    let is_tail = below < n && (0.0..1.0).contains(&p) && below as f64 >= n as f64 * p;
    if is_tail && n as f64 * p * (1.0 - p) <= NORMAL_ABOVE {
        return upper_tail(below, n, p);
    }
    1.0 - at_most(below, n, p)
}

/// The probability of exactly `k` of `n`.
fn probability(k: u64, n: u64, p: f64) -> f64 {
    let [all, chosen, others] = [n, k, n - k].map(|i| ln_gamma(i as f64 + 1.0));
    let ways = all - chosen - others;
    (ways + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
}

/// The sum of a term and the terms that follow from it by these ratios, up to the last one that counts.
fn sum_series(mut term: f64, ratios: impl Iterator<Item = f64>) -> f64 {
    let mut sum = term;
    for ratio in ratios {
        term *= ratio;
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
    }
    sum
}

/// Returns bounds of the share of all samples that is above a limit, if `k` of `n` samples are: with 95 % confidence
/// the share is not below `low`, and with 95 % confidence it is not above `high` (one-sided each). The bounds are 0 and
/// 1 if there is no sample.
pub fn share_bounds(k: u64, n: u64) -> ConfidenceInterval {
    if n == 0 {
        return ConfidenceInterval { low: 0.0, high: 1.0 };
    }
    let low = if k == 0 { 0.0 } else { solve(|p| at_least(k, n, p) > 1.0 - CONFIDENCE) };
    let high = if k >= n { 1.0 } else { solve(|p| at_most(k, n, p) <= 1.0 - CONFIDENCE) };
    ConfidenceInterval { low, high }
}

/// The least `p` in 0..1 from which on `holds`.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    // In logarithms: shares of one in a million are as precise as halves.
    let (mut low, mut high) = (-50.0f64, 0.0f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if holds(middle.exp()) { high = middle } else { low = middle }
    }
    high.exp()
}

/// Returns true if `k` of `n` prove, with 95 % confidence, that at most the share `p` of all is above the limit.
pub(crate) fn proves_at_most(k: u64, n: u64, p: f64) -> bool {
    n > 0 && at_most(k, n, p) <= 1.0 - CONFIDENCE
}

/// Returns true if `k` of `n` prove, with 95 % confidence, that more than the share `p` of all is above the limit.
pub(crate) fn proves_more(k: u64, n: u64, p: f64) -> bool {
    n > 0 && at_least(k, n, p) <= 1.0 - CONFIDENCE
}

/// The least number of samples of which `k` above the limit prove that at most the share `p` of all is; the largest
/// number of the type if no number that can be counted is enough.
pub(crate) fn samples_needed(k: u64, p: f64) -> u64 {
    let mut high = (3.0 / p).ceil().max(k as f64 + 1.0) as u64;
    while !proves_at_most(k, high, p) {
        match high.checked_mul(2) {
            Some(twice) => high = twice,
            // Of so many nothing is proved any more: no run has them.
            None => return u64::MAX,
        }
    }
    let mut low = k;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if proves_at_most(k, middle, p) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64, relative: f64) {
        assert!((a - b).abs() <= relative * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn tails_of_small_numbers_are_those_worked_out_by_hand() {
        near(at_most(0, 10, 0.5), 1.0 / 1024.0, 1e-12);
        near(at_most(1, 10, 0.5), 11.0 / 1024.0, 1e-12);
        near(at_most(9, 10, 0.5), 1023.0 / 1024.0, 1e-12);
        near(at_least(1, 3, 0.1), 1.0 - 0.9f64.powi(3), 1e-12);
        assert_eq!((at_most(10, 10, 0.5), at_most(0, 10, 0.0), at_most(0, 10, 1.0)), (1.0, 1.0, 0.0));
        assert_eq!((at_least(0, 10, 0.5), at_least(1, 10, 0.0), at_least(11, 10, 0.5)), (1.0, 0.0, 0.0));
        // Chances that a difference from 1 does not carry.
        near(at_least(9, 9, 0.005), 0.005f64.powi(9), 1e-12);
        near(at_least(19, 20, 1e-3), 20.0 * 1e-57 * 0.999 + 1e-60, 1e-12);
    }

    /// Compares the bounds with the limits of the Clopper-Pearson interval as tabulated (two-sided 90 %, which is 95 %
    /// on each side).
    #[test]
    fn bounds_are_those_of_the_tables() {
        for (k, n, low, high) in
            [(1, 10, 0.005116, 0.394163), (5, 10, 0.222441, 0.777559), (3, 100, 0.008229, 0.075708)]
        {
            let bounds = share_bounds(k, n);
            near(bounds.low, low, 1e-3);
            near(bounds.high, high, 1e-3);
        }
        assert_eq!(share_bounds(0, 0), ConfidenceInterval { low: 0.0, high: 1.0 });
        assert_eq!(share_bounds(4, 4).high, 1.0);
    }

    #[test]
    fn without_an_event_the_rule_of_three_holds() {
        for n in [1_000u64, 100_000_000] {
            let bounds = share_bounds(0, n);
            assert_eq!(bounds.low, 0.0);
            near(bounds.high, 2.9957 / n as f64, 2e-3);
        }
        assert_eq!(samples_needed(0, 0.001), 2995);
        assert!(proves_at_most(0, 2995, 0.001) && !proves_at_most(0, 2994, 0.001));
    }

    #[test]
    fn a_hundred_million_samples_are_judged_as_well() {
        // 100 000 are expected; the standard deviation is 316.
        assert!(proves_at_most(99_000, 100_000_000, 0.001));
        assert!(proves_more(101_000, 100_000_000, 0.001));
        assert!(!proves_at_most(100_000, 100_000_000, 0.001) && !proves_more(100_000, 100_000_000, 0.001));
    }

    #[test]
    fn counts_beyond_all_bounds_are_judged_at_once() {
        let n = 1_000_000_000_000_000_000;
        assert!(
            proves_at_most(n / 100 - 1_000_000_000, n, 0.01) && proves_more(n / 2 + 10_000_000_000, n, 0.5)
        );
        near(at_most(500_000_000, 1_000_000_000, 0.5), 0.5, 1e-4);
        near(at_most(499_990_000, 1_000_000_000, 0.5), 0.263_5, 1e-3);
        assert!(samples_needed(n / 1000, 1e-3) > n);
        assert_eq!(samples_needed(u64::MAX / 2, 0.5), u64::MAX);
        assert_eq!(samples_needed(u64::MAX, 1e-9), u64::MAX);
    }

    proptest! {
        #[test]
        fn bounds_enclose_what_was_seen(n in 1u64..1_000_000, part in 0.0f64..=1.0) {
            let k = (n as f64 * part) as u64;
            let bounds = share_bounds(k, n);
            let seen = k as f64 / n as f64;
            prop_assert!(bounds.low <= seen * (1.0 + 1e-9) && seen <= bounds.high * (1.0 + 1e-9), "{:?}", bounds);
        }

        #[test]
        fn what_is_needed_is_enough_and_no_less_is(k in 0u64..200, p in 1e-6f64..0.5) {
            let needed = samples_needed(k, p);
            prop_assert!(proves_at_most(k, needed, p));
            prop_assert!(!proves_at_most(k, needed - 1, p));
        }

        #[test]
        fn nothing_is_proved_both_ways(n in 1u64..10_000, part in 0.0f64..=1.0, p in 0.0001f64..0.9) {
            let k = (n as f64 * part) as u64;
            prop_assert!(!(proves_at_most(k, n, p) && proves_more(k, n, p)));
        }
    }
}
