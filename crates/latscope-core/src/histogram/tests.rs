use super::*;
use proptest::prelude::*;

fn of(values: &[u64]) -> Histogram {
    let mut h = Histogram::new(1000);
    values.iter().for_each(|v| h.record(*v));
    h
}

#[test]
fn buckets_tile_the_range_without_gap_or_overlap() {
    let mut next = 0;
    for bucket in 0..BUCKETS {
        let (low, high) = bounds(bucket);
        assert_eq!(low, next, "bucket {bucket}");
        assert_eq!(bucket_of(low), Some(bucket));
        assert_eq!(bucket_of(high), Some(bucket));
        next = high + 1;
    }
    assert_eq!(next, 1 << RANGE_BITS);
    assert_eq!(bucket_of(1 << RANGE_BITS), None);
}

#[test]
fn overflow_is_counted_and_keeps_the_exact_maximum() {
    let h = of(&[5, u64::MAX / 4]);
    assert_eq!((h.overflow(), h.count()), (1, 2));
    assert_eq!(h.max(), Some((u64::MAX / 4) as f64));
}

#[test]
fn a_tail_quantile_needs_ten_values_above_it() {
    let h = of(&(1..=100).collect::<Vec<_>>());
    assert_eq!(h.tail_quantile(0.90), Some(90.0));
    assert_eq!(h.tail_quantile(0.95), None);
}

#[test]
fn an_empty_histogram_has_no_numbers() {
    let h = Histogram::new(1);
    assert_eq!((h.min(), h.quantile(0.5), h.mean(), h.tail_quantile(0.9)), (None, None, None, None));
}

#[test]
fn of_values_beyond_the_last_bucket_only_the_largest_is_known() {
    let mut h = of(&[5, 6, 7]);
    (0..7).for_each(|_| h.record(1 << 50));
    assert_eq!((h.quantile(0.2), h.quantile(0.5), h.quantile(1.0)), (Some(6.0), None, h.max()));
    assert_eq!(h.overflow_from(), Some((1u64 << 48) as f64));
    assert_eq!(h.in_bins(HistogramBinning::of_width(1)).overflow_from(), Some(8.0));
    assert_eq!(of(&[5]).overflow_from(), None);
}

#[test]
fn values_that_no_histogram_has_rank_at_the_top() {
    let h = of(&(1..=1_999).collect::<Vec<_>>());
    assert_eq!(h.quantile_with(0.99, 0), h.tail_quantile(0.99));
    assert_eq!((h.quantile_with(0.99, 1), h.quantile_with(0.5, 1)), (h.quantile(0.99), h.quantile(0.5)));
    assert!(h.quantile_with(0.99, 10).unwrap() > h.quantile_with(0.99, 0).unwrap());
    assert_eq!(h.quantile_with(0.99, 30), None, "it is one of them");
    assert_eq!(h.quantile_with(0.999, 1), None, "too few are above");
}

#[test]
fn bins_of_another_program_are_the_resolution() {
    let h = of(&[1000]).in_bins(HistogramBinning::of_width(100));
    assert_eq!((h.resolution(1000.0), of(&[1000]).resolution(1000.0)), (100.0, 4.0));
    let growing =
        of(&[6400]).in_bins(HistogramBinning { per_octave: Some(64), ..HistogramBinning::of_width(1) });
    assert_eq!(growing.resolution(6400.0), 100.0);
    let text = serde_json::to_string(&growing).unwrap();
    assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), growing);
    assert!(serde_json::from_str::<Histogram>(&text.replace("\"width\":1", "\"width\":0")).is_err());
}

#[test]
fn a_bin_is_the_interval_of_the_values_that_it_is_named_for() {
    let spans = |h: &Histogram| h.spans().map(|(span, n)| (span.low, span.high, n)).collect::<Vec<_>>();
    let in_micros = |values: &[u64], bins: HistogramBinning| {
        let mut h = Histogram::new(1_000_000);
        values.iter().for_each(|value| h.record(*value));
        h.in_bins(bins)
    };
    // An extreme that is known to a µs cuts its bin off.
    let mut exact = in_micros(&[20, 180, 200], HistogramBinning::of_width(20));
    exact.max = 203;
    assert_eq!(
        spans(&exact),
        [(20_000.0, 39_999.0, 1), (180_000.0, 199_999.0, 1), (200_000.0, 203_999.0, 1)]
    );
    assert_eq!(exact.largest(), Some(Span { low: 203_000.0, high: 203_999.0 }));
    let named = in_micros(&[20, 200], HistogramBinning { extremes: true, ..HistogramBinning::of_width(20) });
    assert_eq!(named.largest(), Some(Span { low: 200_000.0, high: 219_999.0 }));
    assert_eq!(spans(&named)[1], (200_000.0, 219_999.0, 1));
    // Values are cut to whole ticks.
    assert_eq!(
        spans(&in_micros(&[5, 9], HistogramBinning::of_width(1))),
        [(5_000.0, 5_999.0, 1), (9_000.0, 9_999.0, 1)]
    );
    assert_eq!(
        spans(&in_micros(&[5], HistogramBinning { extremes: true, ..HistogramBinning::of_width(1) }))[0].1,
        5_999.0
    );
    // A quantile is the name of its bin, not the middle of the bucket.
    assert_eq!(
        of(&[3000, 3000, 3000, 3001]).in_bins(HistogramBinning::of_width(1000)).quantile(0.5),
        Some(3000.0)
    );
    let growing = HistogramBinning { per_octave: Some(64), ..HistogramBinning::of_width(1) };
    assert_eq!(of(&[9024, 9024, 9024]).in_bins(growing).quantile(0.4), Some(9024.0));
    // fio names the bins 6,400 to 6,463 ns and 130 to 131 ns by their middles.
    let mut fio =
        of(&[131, 6_432]).in_bins(HistogramBinning { per_octave: Some(64), ..HistogramBinning::of_width(1) });
    (fio.min, fio.max) = (130, 6_450);
    assert_eq!(spans(&fio), [(130.0, 131.0, 1), (6_400.0, 6_450.0, 1)]);
}

#[test]
fn damaged_histograms_are_refused() {
    let damaged = [
        r#"{"tick_ps":0,"min":1,"max":1,"sum":1,"buckets":[[1,1,1]],"overflow":0}"#,
        r#"{"tick_ps":1,"min":1,"max":1,"sum":1,"buckets":[[1,2,1]],"overflow":0}"#,
        r#"{"tick_ps":1,"min":1,"max":2,"sum":3,"buckets":[[2,2,1],[1,1,1]],"overflow":0}"#,
        r#"{"tick_ps":1,"min":null,"max":null,"sum":3,"buckets":[[2,2,1]],"overflow":0}"#,
        r#"{"tick_ps":1,"min":1,"max":1,"sum":9,"buckets":[[1,1,9007199254740993]],"overflow":0}"#,
        r#"{"tick_ps":1,"min":9,"max":9,"sum":3,"buckets":[[2,2,1]],"overflow":0}"#,
    ];
    for text in damaged {
        assert!(serde_json::from_str::<Histogram>(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_bucket_is_within_one_percent(value in 0u64..1 << RANGE_BITS) {
        let (low, high) = bounds(bucket_of(value).unwrap());
        prop_assert!(low <= value && value <= high);
        prop_assert!((high - low) as f64 <= 0.01 * low as f64 || high == low);
    }

    #[test]
    fn every_value_lies_in_the_span_of_its_bin(values in proptest::collection::vec(0u64..300_000_000, 1..40),
                                               width in 1u64..50, extremes: bool) {
        let name = |ns: u64| ns / 1000 / width * width;
        let mut h = Histogram::new(1_000_000);
        values.iter().for_each(|ns| h.record(name(*ns)));
        if !extremes {
            (h.min, h.max) = (values.iter().min().unwrap() / 1000, values.iter().max().unwrap() / 1000);
        }
        let h = h.in_bins(HistogramBinning { extremes, ..HistogramBinning::of_width(width) });
        // Whole ticks count as stated, where figures are.
        let stated = |ns: u64| if extremes { ns } else { ns / 1000 * 1000 } as f64;
        for span in values.iter().map(|ns| stated(*ns)) {
            let holding = h.spans().filter(|(of, _)| of.low <= span && span <= of.high);
            prop_assert!(holding.count() > 0, "{} in {:?}", span, h.spans().collect::<Vec<_>>());
        }
        for (of, extreme) in [(h.smallest(), values.iter().min()), (h.largest(), values.iter().max())] {
            let (of, extreme) = (of.unwrap(), stated(*extreme.unwrap()));
            prop_assert!(of.low <= extreme && extreme <= of.high, "{:?} {}", of, extreme);
        }
    }

    #[test]
    fn merging_equals_recording_together(a in proptest::collection::vec(any::<u64>(), 0..50),
                                         b in proptest::collection::vec(0u64..100_000, 0..50)) {
        let mut merged = of(&a);
        merged.merge(&of(&b));
        prop_assert_eq!(merged, of(&[a, b].concat()));
    }

    #[test]
    fn quantiles_are_near_the_sorted_values(mut values in proptest::collection::vec(0u64..10_000_000, 1..200),
                                            q in 0.0f64..=1.0) {
        let h = of(&values);
        values.sort_unstable();
        let exact = values[rank(q, values.len() as u64) as usize - 1] as f64;
        let got = h.quantile(q).unwrap();
        prop_assert!((got - exact).abs() <= 0.005 * exact + 0.5, "{} vs {}", got, exact);
    }

    #[test]
    fn a_histogram_survives_its_file_form(values in proptest::collection::vec(any::<u64>(), 0..60)) {
        let h = of(&values);
        let text = serde_json::to_string(&h).unwrap();
        prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), h);
    }
}
