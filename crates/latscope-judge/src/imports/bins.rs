//! Conversion of counts by bin, as other programs write them, to a histogram.

use super::checks::{KnownValues, StatedFigures, StatedNumber};
use latscope_core::histogram::{Histogram, HistogramBinning, Totals, bucket_of};
use latscope_core::json;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Counts by the values that name their bins, in ascending order: a JSON object with numbers as names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct BinCounts(pub Vec<(u64, u64)>);

impl<'de> Deserialize<'de> for BinCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BinCounts, D::Error> {
        Numbered::deserialize(deserializer).map(|Numbered(counts)| BinCounts(counts))
    }
}

/// The members of a JSON object whose names are numbers, in ascending order.
#[derive(Debug)]
pub(super) struct Numbered<T>(pub Vec<(u64, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Numbered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numbered<T>, D::Error> {
        deserializer.deserialize_map(ReadNumbered(PhantomData)).map(Numbered)
    }
}

struct ReadNumbered<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ReadNumbered<T> {
    type Value = Vec<(u64, T)>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object whose names are numbers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<(u64, T)>, A::Error> {
        let mut members: BTreeMap<u64, T> = BTreeMap::new();
        while let Some((name, member)) = map.next_entry::<String, T>()? {
            let number = name.parse().map_err(|_| A::Error::custom(format!("{name:?} is not a number")))?;
            if members.insert(number, member).is_some() {
                return Err(A::Error::custom(format!("{number} is there twice")));
            }
        }
        Ok(members.into_iter().collect())
    }
}

/// The least that a program has as its smallest value before it counts one: a million by cyclictest.
const INITIAL_MIN: u64 = 1_000_000;

/// Counts of a program, with their unit.
pub(super) struct ImportHistogram<'a> {
    /// Length of a tick, ps.
    pub tick_ps: u64,
    /// The bins, in ticks, if they are wider than one tick.
    pub bins: Option<HistogramBinning>,
    /// Values, in ticks, that name the bins, ascending, and their counts.
    pub counts: &'a [(u64, u64)],
    /// Values beyond the last bin.
    pub overflow: u64,
    /// Least value beyond the last bin, in ticks, where the length of the histogram is known.
    pub overflow_from: Option<u64>,
    /// Number of all values as stated, if it is.
    pub count: Option<u64>,
    /// Smallest value, in ticks.
    pub min: u64,
    /// Largest value, in ticks.
    pub max: u64,
    /// Mean as stated, in ticks.
    pub mean: Option<StatedNumber>,
}

impl ImportHistogram<'_> {
    /// Returns the counts as a histogram, which is empty where nothing was counted.
    ///
    /// # Errors
    /// The counts, the extremes and the mean cannot be of the same values.
    pub(super) fn histogram(&self) -> Result<Histogram, String> {
        let ImportHistogram { tick_ps, overflow, min, max, .. } = *self;
        if overflow == 0 && self.count.unwrap_or(0) == 0 && self.filled_bins().next().is_none() {
            self.check_nothing()?;
            return Ok(Histogram::new(tick_ps));
        }
        let stated = StatedFigures {
            count: self.count,
            min: Some(min as f64),
            max: Some(max as f64),
            mean: self.mean,
        };
        let (count, mean) = stated.check_values(&self.values())?;
        if count > json::LARGEST {
            return Err("its counts are larger than any can be".to_owned());
        }
        let exact = self
            .filled_bins()
            .try_fold(0u64, |sum, (value, n)| sum.checked_add(value.checked_mul(n)?))
            .filter(|_| overflow == 0 && self.bins.is_none());
        let of_mean = mean.map(|mean| (mean * count as f64).round() as u64);
        let total = exact.or(of_mean).ok_or("its counts do not give a mean: it is damaged")?;
        let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
        let mut beyond = overflow;
        for (value, n) in self.filled_bins() {
            match bucket_of(value) {
                Some(bucket) => *buckets.entry(bucket).or_insert(0) += n,
                None => beyond += n,
            }
        }
        let histogram =
            Histogram::from_counts(tick_ps, buckets, Totals { overflow: beyond, min, max, sum: total });
        let last = self.filled_bins().last().map_or(0, |(value, _)| value);
        let end = self.overflow_from.filter(|end| beyond > 0 && (last + 1..=max).contains(end));
        Ok(histogram.in_bins(HistogramBinning { end, ..self.bins.unwrap_or(HistogramBinning::of_width(1)) }))
    }

    /// Checks that no figure is stated of nothing. The smallest one is that with which the program began.
    fn check_nothing(&self) -> Result<(), String> {
        let is_initial = |min: u64| min == 0 || min >= INITIAL_MIN;
        let mean = self.mean.map_or(0.0, |mean| mean.value);
        if self.max == 0 && mean == 0.0 && is_initial(self.min) {
            return Ok(());
        }
        let ImportHistogram { min, max, .. } = self;
        Err(format!("it counted nothing, and states {min}, {mean} and {max}: it is damaged"))
    }

    /// The bins that are not empty.
    fn filled_bins(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().copied().filter(|(_, n)| *n > 0)
    }

    /// The values as far as they are known. Where a program knows of each only the lower end of its bin, its figures
    /// are those of the lower ends.
    fn values(&self) -> KnownValues {
        let bins = self.bins.unwrap_or(HistogramBinning::of_width(1));
        let bin = |(value, n): (u64, u64)| {
            let (low, high) = if bins.extremes { (value, value) } else { bins.tick_range(value, value) };
            (low as f64, high as f64, n)
        };
        let known: Vec<(f64, f64, u64)> = self.filled_bins().map(bin).collect();
        let behind = known.last().map_or(0.0, |(low, _, _)| low + 1.0);
        let beyond_from = self.overflow_from.map_or(behind, |from| from as f64);
        KnownValues { bins: known, beyond: self.overflow, beyond_from }
    }
}
