//! A log-linear histogram with exact count, minimum, maximum and sum.
//!
//! A value below 128 ticks has a bucket of its own; above, each power of two
//! is cut into 128 equal buckets, so that a bucket is never wider than 1/128
//! (0.8 %) of what it holds. Values of 2^48 ticks and more (39 hours of
//! nanoseconds) are counted in `overflow` and still enter count, maximum and
//! sum: nothing saturates silently.

use crate::json::LARGEST;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;
const RANGE_BITS: u32 = 48;

/// Number of buckets of the full layout, overflow not included.
pub const BUCKETS: usize = (RANGE_BITS - SUB_BITS + 1) as usize * SUB;

/// The bucket a value belongs to; `None` when it is beyond the layout.
#[inline]
pub fn bucket_of(value: u64) -> Option<usize> {
    if value >> RANGE_BITS != 0 {
        return None;
    }
    let shift = (u64::BITS - (value | (SUB as u64 - 1)).leading_zeros()).saturating_sub(SUB_BITS + 1);
    let offset = (value >> shift) as usize;
    Some(shift as usize * SUB + offset)
}

/// The lowest and the highest value of a bucket, both inclusive.
///
/// # Panics
/// If `bucket` is not below [`BUCKETS`].
pub const fn bounds(bucket: usize) -> (u64, u64) {
    assert!(bucket < BUCKETS);
    let shift = (bucket / SUB).saturating_sub(1) as u32;
    let low = ((bucket - shift as usize * SUB) as u64) << shift;
    (low, low + (1 << shift) - 1)
}

/// Counts of durations, in ticks of `tick_ps` picoseconds.
///
/// In a result file the buckets are sparse: `[low, high, count]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Histogram {
    tick_ps: u64,
    /// Ascending in bucket; counts are positive.
    buckets: Vec<(u16, u64)>,
    overflow: u64,
    count: u64,
    min: u64,
    max: u64,
    sum: u64,
    bins: Option<Bins>,
}

/// Width of the bins in which another program counted, where they are wider than the buckets of a [`Histogram`]. The
/// counts of a bin are in the bucket of the value by which the program names the bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bins {
    /// Width of every bin, in ticks: at least 1.
    pub width: u64,
    /// Bins in each power of two, where their width grows with the value: at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_octave: Option<u64>,
}

/// Totals that a recorder counted, to build a [`Histogram`] from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Values beyond the last bucket.
    pub overflow: u64,
    /// Smallest value, in ticks.
    pub min: u64,
    /// Largest value, in ticks.
    pub max: u64,
    /// Sum of all values, in ticks.
    pub sum: u64,
}

impl Default for Histogram {
    /// An empty histogram of ticks of a nanosecond.
    fn default() -> Self {
        Histogram::new(1000)
    }
}

impl Histogram {
    /// An empty histogram of ticks of `tick_ps` picoseconds.
    pub fn new(tick_ps: u64) -> Self {
        Histogram {
            tick_ps,
            buckets: Vec::new(),
            overflow: 0,
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            bins: None,
        }
    }

    /// Builds a histogram from bucket counts recorded elsewhere with
    /// [`bucket_of`]; zero counts are dropped.
    pub fn from_counts(tick_ps: u64, counts: impl IntoIterator<Item = (usize, u64)>, totals: Totals) -> Self {
        let buckets: Vec<(u16, u64)> =
            counts.into_iter().filter(|(_, n)| *n > 0).map(|(b, n)| (b as u16, n)).collect();
        let count = buckets.iter().map(|(_, n)| n).sum::<u64>() + totals.overflow;
        if count == 0 {
            return Histogram::new(tick_ps);
        }
        Histogram {
            tick_ps,
            buckets,
            overflow: totals.overflow,
            count,
            min: totals.min,
            max: totals.max,
            sum: totals.sum,
            bins: None,
        }
    }

    /// Returns the histogram as counted by another program in `bins`.
    pub fn in_bins(self, bins: Bins) -> Self {
        Histogram { bins: Some(bins), ..self }
    }

    /// Adds one value, in ticks.
    pub fn record(&mut self, value: u64) {
        match bucket_of(value) {
            None => self.overflow += 1,
            Some(bucket) => {
                let bucket = bucket as u16;
                match self.buckets.binary_search_by_key(&bucket, |(b, _)| *b) {
                    Ok(at) => self.buckets[at].1 += 1,
                    Err(at) => self.buckets.insert(at, (bucket, 1)),
                }
            }
        }
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum = self.sum.saturating_add(value);
    }

    /// Adds the counts of another histogram of the same tick. An empty `other` adds nothing. An empty `self` becomes
    /// `other`, whatever its tick: a writer that has not begun has not set its tick yet.
    ///
    /// # Panics
    /// If both have counts and the ticks differ: such histograms count different things.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            let bins = other.bins.or(self.bins);
            *self = Histogram { bins, ..other.clone() };
            return;
        }
        assert_eq!(self.tick_ps, other.tick_ps, "histograms of different ticks do not add");
        for &(bucket, n) in &other.buckets {
            match self.buckets.binary_search_by_key(&bucket, |(b, _)| *b) {
                Ok(at) => self.buckets[at].1 += n,
                Err(at) => self.buckets.insert(at, (bucket, n)),
            }
        }
        self.overflow += other.overflow;
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.bins = match (self.bins, other.bins) {
            (Some(a), Some(b)) => Some(Bins {
                width: a.width.max(b.width),
                per_octave: a.per_octave.into_iter().chain(b.per_octave).min(),
            }),
            (a, b) => a.or(b),
        };
    }

    /// Bins in which another program counted; `None` if none did.
    pub fn bins(&self) -> Option<Bins> {
        self.bins
    }

    /// Length of a tick, ps.
    pub fn tick_ps(&self) -> u64 {
        self.tick_ps
    }

    /// Number of values, overflow included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Values beyond the last bucket.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Converts `ticks` to nanoseconds.
    fn ns(&self, ticks: f64) -> f64 {
        ticks * self.tick_ps as f64 / 1e3
    }

    /// Smallest value, exact, in ns; `None` when empty.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ns(self.min as f64))
    }

    /// Largest value, exact, in ns; `None` when empty.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ns(self.max as f64))
    }

    /// Mean of all values, exact, in ns; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ns(self.sum as f64 / self.count as f64))
    }

    /// The value at quantile `q` by nearest rank, in ns, within 0.4 % (the
    /// middle of its bucket; first and last rank are exact); `None` when empty, and where
    /// the value is one of those beyond the last bucket, of which only the largest is known.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = rank(q, self.count);
        if rank == 1 {
            return self.min();
        }
        if rank == self.count {
            return self.max();
        }
        let mut seen = 0;
        for &(bucket, n) in &self.buckets {
            seen += n;
            if seen >= rank {
                let (low, high) = bounds(bucket as usize);
                let middle = (low as f64 + high as f64) / 2.0;
                return Some(self.ns(middle.clamp(self.min as f64, self.max as f64)));
            }
        }
        None
    }

    /// Like [`quantile`](Self::quantile), but `None` when fewer than ten
    /// values lie above it, for then it says little about the tail.
    pub fn tail_quantile(&self, q: f64) -> Option<f64> {
        (self.count - rank(q, self.count).min(self.count) >= 10).then(|| self.quantile(q)).flatten()
    }

    /// By how much values near `ns` have to differ to be distinguished, ns: the width of a bucket, or of a bin of the
    /// program that counted.
    pub fn resolution(&self, ns: f64) -> f64 {
        let ticks = (ns * 1e3 / self.tick_ps as f64).max(0.0) as u64;
        let (low, high) = bounds(bucket_of(ticks).unwrap_or(BUCKETS - 1));
        let own = self.ns((high - low + 1) as f64);
        let Some(Bins { width, per_octave }) = self.bins else { return own };
        let growing = per_octave.map_or(0.0, |bins| ns / bins as f64);
        own.max(self.ns(width as f64)).max(growing)
    }

    /// Lower bound of the values beyond the last bucket, ns; `None` if there are no such values. In an imported
    /// histogram it is only known that they are longer than all values counted in a bin.
    pub fn overflow_from(&self) -> Option<f64> {
        let counted = || self.buckets.last().map_or(0, |(bucket, _)| bounds(*bucket as usize).1 + 1);
        let from = if self.bins.is_some() { counted() } else { 1 << RANGE_BITS };
        (self.overflow > 0).then(|| self.ns(from as f64))
    }

    /// The buckets as low bound, high bound (ns, inclusive) and count.
    pub fn buckets_ns(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        self.buckets.iter().map(|&(bucket, n)| {
            let (low, high) = bounds(bucket as usize);
            (self.ns(low as f64), self.ns(high as f64), n)
        })
    }
}

/// The nearest rank (from 1) of quantile `q` among `count` values.
fn rank(q: f64, count: u64) -> u64 {
    // 0.9 * 100 is 90.00000000000001: without the slack p90 would be rank 91.
    ((q * count as f64 - 1e-6).ceil() as u64).clamp(1, count.max(1))
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Wire {
    tick_ps: u64,
    min: Option<u64>,
    max: Option<u64>,
    sum: u64,
    buckets: Vec<(u64, u64, u64)>,
    overflow: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Bins>,
}

impl From<Histogram> for Wire {
    fn from(h: Histogram) -> Wire {
        let filled = h.count > 0;
        let buckets = h.buckets.iter().map(|&(bucket, n)| {
            let (low, high) = bounds(bucket as usize);
            (low, high, n)
        });
        Wire {
            tick_ps: h.tick_ps,
            min: filled.then_some(h.min),
            max: filled.then_some(h.max),
            sum: h.sum,
            buckets: buckets.collect(),
            overflow: h.overflow,
            bins: h.bins,
        }
    }
}

impl TryFrom<Wire> for Histogram {
    type Error = String;

    /// Trusts nothing: bounds must be those of the layout, ascending, and the
    /// exact extremes must lie where the counts say.
    fn try_from(wire: Wire) -> Result<Self, String> {
        if wire.tick_ps == 0 {
            return Err("histogram: tick_ps is 0".to_owned());
        }
        if wire.bins.is_some_and(|bins| bins.width == 0 || bins.per_octave == Some(0)) {
            return Err("histogram: bins without width".to_owned());
        }
        let mut counts = Vec::with_capacity(wire.buckets.len());
        let mut total = wire.overflow;
        for (low, high, n) in wire.buckets {
            let bucket = bucket_of(low).filter(|b| bounds(*b) == (low, high));
            let bucket =
                bucket.ok_or_else(|| format!("histogram: no bucket has the bounds {low}..{high}"))?;
            if counts.last().is_some_and(|(last, _)| *last >= bucket) {
                return Err(format!("histogram: bucket {low}..{high} is out of order"));
            }
            total = n.checked_add(total).ok_or("histogram: counts overflow")?;
            counts.push((bucket, n));
        }
        if total > LARGEST {
            return Err(format!("histogram: {total} counts, more than 2^53"));
        }
        if total == 0 {
            return Ok(Histogram::new(wire.tick_ps));
        }
        let (Some(min), Some(max)) = (wire.min, wire.max) else {
            return Err("histogram: counts without min and max".to_owned());
        };
        let first = counts.iter().find(|(_, n)| *n > 0).map(|(b, _)| *b);
        // The smallest value of a wide bin may be in another of our buckets.
        let misplaced = |first| wire.bins.is_none() && bucket_of(min) != Some(first);
        if min > max || first.is_some_and(misplaced) {
            return Err(format!("histogram: min {min} and max {max} do not fit the buckets"));
        }
        let totals = Totals { overflow: wire.overflow, min, max, sum: wire.sum };
        Ok(Histogram { bins: wire.bins, ..Histogram::from_counts(wire.tick_ps, counts, totals) })
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(h.in_bins(Bins { width: 1, per_octave: None }).overflow_from(), Some(8.0));
        assert_eq!(of(&[5]).overflow_from(), None);
    }

    #[test]
    fn bins_of_another_program_are_the_resolution() {
        let h = of(&[1000]).in_bins(Bins { width: 100, per_octave: None });
        assert_eq!((h.resolution(1000.0), of(&[1000]).resolution(1000.0)), (100.0, 4.0));
        let growing = of(&[6400]).in_bins(Bins { width: 1, per_octave: Some(64) });
        assert_eq!(growing.resolution(6400.0), 100.0);
        let text = serde_json::to_string(&growing).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), growing);
        assert!(serde_json::from_str::<Histogram>(&text.replace("\"width\":1", "\"width\":0")).is_err());
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
}
