//! Whole distributions of two sides: their distance, and the rates at which runs go beyond a high quantile of both
//! together.

use super::contrast::Levels;
use latscope_core::histogram::Histogram;
use latscope_core::report::Measurement;
use std::collections::BTreeMap;

/// Bins per octave: values in one bin count as equal, so that the noise of few samples does not add to the distance.
const PER_OCTAVE: f64 = 16.0;

/// Hellinger's distance of the samples of two sides, each run counted alike: 0 where both are the same, 1 where
/// they have nothing in common. `None` where a side has no samples.
pub(crate) fn distance(a: &[&Measurement], b: &[&Measurement]) -> Option<f64> {
    let (a, b) = (shares(a)?, shares(b)?);
    let common: f64 = a.iter().filter_map(|(bin, share)| Some((share * b.get(bin)?).sqrt())).sum();
    Some((1.0 - common).max(0.0).sqrt())
}

/// The share of samples in each bin.
fn shares(side: &[&Measurement]) -> Option<BTreeMap<i32, f64>> {
    let mut shares = BTreeMap::new();
    let mut runs = 0.0;
    for m in side.iter().filter(|m| m.histogram.count() > 0) {
        runs += 1.0;
        let count = m.histogram.count() as f64;
        let mut beyond = 1.0;
        for (low, high, n) in m.histogram.buckets_ns() {
            let share = n as f64 / count;
            beyond -= share;
            let middle = (low + high) / 2.0;
            *shares.entry((middle.max(1e-6).log2() * PER_OCTAVE).floor() as i32).or_insert(0.0) += share;
        }
        // What overflowed is in no bucket.
        *shares.entry(i32::MAX).or_insert(0.0) += beyond.max(0.0);
    }
    for share in shares.values_mut() {
        *share /= runs;
    }
    (runs > 0.0).then_some(shares)
}

/// Rates at which the runs of both sides went beyond a quantile of all of them together.
pub(crate) struct Exceedances {
    /// Value of the quantile, ns.
    pub beyond: f64,
    /// The share of samples beyond it, of each run.
    pub rates: [Levels; 2],
}

/// Least number of samples expected beyond the quantile: with fewer, no run is compared.
const ENOUGH: f64 = 10.0;

/// Counts the samples beyond the quantile `q` of all runs together, with the activations that were missed where every
/// run records those: a run that misses many has few others. `None` where a run has too few samples.
pub(crate) fn exceedances(a: &[&Measurement], b: &[&Measurement], q: f64) -> Option<Exceedances> {
    let known = a.iter().chain(b).all(|m| m.corrected.is_some());
    let sides: [Vec<&Histogram>; 2] =
        [a, b].map(|side| side.iter().map(|m| if known { m.with_missed() } else { &m.histogram }).collect());
    let all = sides.concat();
    if all.iter().any(|h| h.count() as f64 * (1.0 - q) < ENOUGH) {
        return None;
    }
    let mut buckets: Vec<(f64, f64)> =
        all.iter().flat_map(|h| h.buckets_ns().map(|(_, high, n)| (high, n as f64))).collect();
    buckets.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let total: f64 = all.iter().map(|h| h.count() as f64).sum();
    let mut seen = 0.0;
    let place = buckets.iter().find(|(_, n)| {
        seen += n;
        seen >= q * total
    });
    let beyond = place?.0;
    // Another program may not say how long the values beyond its last bin are.
    if all.iter().filter_map(|h| h.overflow_from()).any(|from| from <= beyond) {
        return None;
    }
    let coarsest = all.iter().map(|h| h.resolution(beyond)).fold(0.0, f64::max);
    if all.iter().any(|h| is_blurred(h, beyond, coarsest)) {
        return None;
    }
    let rates = sides.each_ref().map(|side| side.iter().map(|h| vec![rate_beyond(h, beyond)]).collect());
    Some(Exceedances { beyond, rates })
}

/// Share of the samples beyond a place; half a sample more, since none beyond is no rate of 0.
fn rate_beyond(histogram: &Histogram, beyond: f64) -> f64 {
    let within = histogram.buckets_ns().filter(|(_, high, _)| *high <= beyond).map(|(.., n)| n as f64);
    let count = histogram.count() as f64;
    ((count - within.sum::<f64>()).max(0.0) + 0.5) / (count + 1.0)
}

/// A share of samples beyond a place that differs by more from one end of a bin to the other depends on the bin.
const BLURRED: f64 = 0.1;

/// Returns true if the samples of a run near `place` fall on either side of it because of the width of a bin, not
/// because of their length. Runs of one resolution are all binned alike; runs of several resolutions must not be
/// compared there.
fn is_blurred(histogram: &Histogram, place: f64, coarsest: f64) -> bool {
    if histogram.resolution(place) * 2.0 >= coarsest {
        return false;
    }
    let [low, high] = [place - coarsest, place + coarsest].map(|place| {
        let buckets = histogram.buckets_ns().filter(|(_, high, _)| *high > place);
        buckets.map(|(.., n)| n as f64).sum::<f64>() + histogram.overflow() as f64
    });
    low > high * (1.0 + BLURRED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::histogram::HistogramBinning;

    fn of(values: impl IntoIterator<Item = u64>) -> Measurement {
        let mut m = fixture::report().measurements.remove(0);
        m.histogram = Histogram::new(1000);
        values.into_iter().for_each(|value| m.histogram.record(value));
        m
    }

    #[test]
    fn equal_distributions_are_at_no_distance_and_separate_ones_at_one() {
        let (low, high) = (of(1000..2000), of(100_000..101_000));
        assert!(distance(&[&low], &[&low, &low]).unwrap() < 1e-6);
        assert!((distance(&[&low], &[&high]).unwrap() - 1.0).abs() < 1e-9);
        let near = distance(&[&low], &[&of(1100..2100)]).unwrap();
        assert!(near > 0.1 && near < 0.5, "{near}");
        assert_eq!(distance(&[], &[&low]), None);
        let beyond = of([u64::MAX / 2; 4]);
        assert!(distance(&[&beyond], &[&beyond]).unwrap() < 1e-6);
    }

    #[test]
    fn runs_go_beyond_the_common_quantile_as_often_as_they_do() {
        let usual = of((0..2000).map(|i| if i < 1990 { 100 } else { 5000 }));
        let worse = of((0..2000).map(|i| if i < 1950 { 100 } else { 5000 }));
        let found = exceedances(&[&usual], &[&worse], 0.98).unwrap();
        assert!((100.0..5000.0).contains(&found.beyond));
        assert!((found.rates[0][0][0] - 10.5 / 2001.0).abs() < 1e-9);
        assert!((found.rates[1][0][0] - 50.5 / 2001.0).abs() < 1e-9);
        assert!(exceedances(&[&usual], &[&worse], 0.999).is_none());
    }

    #[test]
    fn missed_activations_count_in_tails() {
        // A run that misses three of four activations has few samples, and each missed one was late.
        let run = |late: u64| {
            let mut m = of((0..1_200 - late).map(|i| 3_000 + i % 900));
            let mut all = m.histogram.clone();
            (0..late).for_each(|i| all.record(1_000_000 + i * 1_000));
            m.corrected = Some(all);
            m
        };
        let (good, bad) = (run(2), run(900));
        let Exceedances { rates: [a, b], .. } = exceedances(&[&good], &[&bad], 0.99).unwrap();
        assert!(a[0][0] < 0.01 && b[0][0] > 0.01, "{a:?} {b:?}");
        let uncorrected = |m: &Measurement| Measurement { corrected: None, ..m.clone() };
        assert!(exceedances(&[&uncorrected(&good)], &[&bad], 0.99).is_none());
    }

    #[test]
    fn tails_of_other_resolutions_are_compared_only_where_the_bins_do_not_matter() {
        // The same values, as ns and in bins of 1 µs that are named by their lower ends.
        let values =
            |tail: u64| (0..20_000u64).map(move |i| 3_000 + i % 2_900 + if i % 60 == 0 { tail } else { 0 });
        let in_bins = |tail: u64| {
            let mut m = of(values(tail).map(|ns| ns / 1000 * 1000));
            m.histogram = m.histogram.in_bins(HistogramBinning::of_width(1000));
            m
        };
        let mixed =
            |tail| exceedances(&[&in_bins(tail)], &[&of(values(tail))], 0.99).map(|found| found.rates);
        // Bins of both sides and of one cut the same values elsewhere.
        assert_eq!(mixed(0), None);
        assert_eq!(mixed(1_000), None);
        let [a, b] = exceedances(&[&in_bins(0)], &[&in_bins(0)], 0.99).unwrap().rates;
        assert_eq!(a, b);
    }
}
