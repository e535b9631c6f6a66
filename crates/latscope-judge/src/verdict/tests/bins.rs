//! Criteria on values that another program counted in bins.

use super::*;
use latscope_core::histogram::{HistogramBinning, Totals, bucket_of};
use latscope_core::quality::IMPORTED;
use proptest::prelude::*;

/// A row of rtla with these counts in bins of so many µs; its largest value is exact, or named by its bin.
fn in_bins(
    probe: &str,
    counts: &[(u64, u64)],
    bins: HistogramBinning,
    overflow: u64,
    max: u64,
) -> Measurement {
    let mut m = of(&[]);
    let buckets = counts.iter().map(|(name, n)| (bucket_of(*name).unwrap(), *n));
    let totals = Totals { overflow, min: counts[0].0, max, sum: 0 };
    m.histogram = Histogram::from_counts(1_000_000, buckets, totals).in_bins(bins);
    m.probe = probe.to_owned();
    m.summary = Summary::from_histogram(&m.histogram, &Summary::default());
    m.lower(Reason::new(QualityLevel::Ok, IMPORTED, "measured by rtla", ""));
    m
}

#[test]
fn a_limit_inside_of_a_bin_is_not_decided() {
    let named = HistogramBinning { extremes: true, ..HistogramBinning::of_width(10) };
    let osnoise = in_bins("noise.osnoise", &[(0, 700), (20, 299), (30, 1)], named, 0, 30);
    let check = one(&osnoise, "max", 35_000.0);
    assert_eq!(
        (check.status, check.value, check.above),
        (VerdictStatus::Inconclusive, Some(30_000.0), Some(1))
    );
    assert_eq!(
        check.text,
        "0 to 1 of 1,000 was above 35.0 µs (the bin from 30.0 µs to 40.0 µs counts against both verdicts); the longest \
         is in the bin from 30.0 µs to 40.0 µs: no number of samples decides it, finer bins would (-b 1)"
    );
    assert_eq!(one(&osnoise, "max", 40_000.0).status, VerdictStatus::Pass);
    let check = one(&osnoise, "max", 29_000.0);
    assert_eq!(check.status, VerdictStatus::Exceeded);
    assert!(check.text.contains("; the longest is in the bin from 30.0 µs to 40.0 µs"), "{check:?}");
    // An exact maximum is one, whatever the bins.
    let timerlat =
        in_bins("wake.timerlat", &[(0, 700), (20, 299), (30, 1)], HistogramBinning::of_width(10), 0, 33);
    assert_eq!(one(&timerlat, "max", 35_000.0).status, VerdictStatus::Pass);
    assert_eq!(one(&timerlat, "max", 32_000.0).status, VerdictStatus::Exceeded);
    let spread =
        in_bins("wake.timerlat", &[(0, 134), (10, 863), (20, 3)], HistogramBinning::of_width(10), 0, 27);
    let check = one(&spread, "p50", 15_000.0);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(
        check
            .text
            .starts_with("3 to 866 of 1,000 were above 15.0 µs (the bin from 10.0 µs to 20.0 µs counts"),
        "{check:?}"
    );
    assert!(check.text.ends_with("finer bins would (-b 1)"), "{check:?}");
    assert_eq!(one(&spread, "p50", 20_000.0).status, VerdictStatus::Pass);
    assert_eq!(one(&spread, "p50", 9_500.0).status, VerdictStatus::Exceeded);
    assert_eq!(passes_from(&spread, QUANTILES[0]), Some(19_999.0));
}

#[test]
fn activations_that_another_program_may_have_missed_decide_a_quantile() {
    // 20 ms pulses beside an interval of 1 ms, as cyclictest prints them: seven samples stand for 140 activations.
    let pulses = in_bins("wake.timer", &[(20, 3_970)], HistogramBinning::of_width(1), 7, 19_800);
    let check = one(&pulses, "p99", 1_000_000.0);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(check.text.starts_with("activations longer than the interval swallowed others"), "{check:?}");
    assert_eq!(
        one(&pulses, "p90", 1_000_000.0).status,
        VerdictStatus::Pass,
        "all that were missed are too few"
    );
    // An interval that cannot be, as a hostile file may state it.
    let mut none = pulses;
    none.params.insert("interval".to_owned(), 0.into());
    assert_eq!(one(&none, "p90", 1_000_000.0).status, VerdictStatus::Inconclusive);
}

#[test]
fn what_is_beyond_the_last_bin_takes_a_longer_histogram() {
    let m = in_bins("wake.timerlat", &[(15, 2)], HistogramBinning::of_width(1), 5_998, 240);
    let check = one(&m, "p99", 50_000.0);
    assert_eq!(
        (check.status, check.text.as_str()),
        (
            VerdictStatus::Inconclusive,
            "1 to 5,998 of 6,000 were above 50.0 µs (of the 5,998 beyond 15.0 µs only the largest is known), where 1 % may \
             be: no number of samples decides it, a longer histogram would (-E 51)"
        )
    );
    assert_eq!(one(&m, "max", 50_000.0).status, VerdictStatus::Exceeded);
    assert_eq!(one(&m, "p50", 15_000.0).status, VerdictStatus::Exceeded);
    assert_eq!(one(&m, "p99", 240_000.0).status, VerdictStatus::Inconclusive);
    assert_eq!(one(&m, "p99", 241_000.0).status, VerdictStatus::Pass);
    let few = in_bins("wake.timer", &[(15, 5_990)], HistogramBinning::of_width(1), 10, 3_000);
    assert_eq!(one(&few, "p99", 50_000.0).status, VerdictStatus::Pass);
    assert!(one(&few, "p99_9", 50_000.0).text.ends_with("a longer histogram would (-h 51)"));
}

/// The values in the bins of a program: wide ones of rtla, named by their lower ends, or growing ones of fio, named by
/// their middles.
fn counted(values: &[u64], bins: HistogramBinning, entries: u64) -> Measurement {
    let name = |ns: u64| match bins.per_octave {
        None => ns / bins.width * bins.width,
        Some(_) => {
            let width = ((1 << ns.max(1).ilog2()) / 64).max(1);
            ns / width * width + width / 2
        }
    };
    let mut m = of(&[]);
    let inside = |ns: &&u64| bins.extremes || name(**ns) < entries * bins.width.max(64);
    let mut counts = std::collections::BTreeMap::new();
    values
        .iter()
        .filter(inside)
        .for_each(|ns| *counts.entry(bucket_of(name(*ns)).unwrap()).or_insert(0) += 1);
    let [min, max] = [values.iter().min(), values.iter().max()].map(|ns| *ns.unwrap());
    let [min, max] = if bins.extremes { [name(min), name(max)] } else { [min, max] };
    let overflow = values.iter().filter(|ns| !inside(ns)).count() as u64;
    let totals = Totals { overflow, min, max, sum: values.iter().sum() };
    m.histogram = Histogram::from_counts(1000, counts, totals).in_bins(bins);
    m.summary = Summary::from_histogram(&m.histogram, &Summary::default());
    m
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_verdict_is_contradicted_by_values_that_may_be_in_the_bins(
        values in proptest::collection::vec(0u64..20_000, 1..400), width in 1u64..3_000, entries in 1u64..300,
        grows: bool, extremes: bool, limit in 1u64..21_000,
    ) {
        let bins = match grows {
            true => HistogramBinning { per_octave: Some(64), ..HistogramBinning::of_width(1) },
            false => HistogramBinning { extremes, ..HistogramBinning::of_width(width) },
        };
        let m = counted(&values, bins, entries);
        let (n, k) = (values.len() as u64, values.iter().filter(|ns| **ns > limit).count() as u64);
        let status = |metric| one(&m, metric, limit as f64).status;
        match status("max") {
            VerdictStatus::Pass => prop_assert_eq!(k, 0),
            VerdictStatus::Exceeded => prop_assert!(k > 0),
            VerdictStatus::Inconclusive => {}
        }
        for quantile in &QUANTILES[..4] {
            match status(quantile.name) {
                VerdictStatus::Pass => prop_assert!(Independent::from_measurement(&m).prove_at_most(k, n, quantile.above)),
                VerdictStatus::Exceeded => prop_assert!(Independent::from_measurement(&m).prove_more(k, n, quantile.above)),
                VerdictStatus::Inconclusive => {}
            }
            if let Some(least) = passes_from(&m, *quantile) {
                prop_assert_eq!(one(&m, quantile.name, least).status, VerdictStatus::Pass);
            }
        }
    }
}
