//! Conversion of counts by bin, as other programs write them, to a histogram.

use latscope_core::histogram::{Bins, Histogram, Totals, bucket_of};
use latscope_core::json;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// Counts by the values that name their bins, in ascending order: a JSON object with numbers as names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counts(pub Vec<(u64, u64)>);

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counts, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Counts;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("counts by value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counts, A::Error> {
                let mut counts = Vec::new();
                while let Some((name, count)) = map.next_entry::<String, u64>()? {
                    let value = name.parse().map_err(|_| A::Error::custom(format!("{name:?} is no bin")))?;
                    counts.push((value, count));
                }
                counts.sort_unstable();
                match counts.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                    Some(pair) => Err(A::Error::custom(format!("bin {} is there twice", pair[0].0))),
                    None => Ok(Counts(counts)),
                }
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// Counts of a program, with their unit.
pub(super) struct Counted<'a> {
    /// Length of a tick, ps.
    pub tick_ps: u64,
    /// The bins, in ticks, if they are wider than one tick.
    pub bins: Option<Bins>,
    /// Values, in ticks, that name the bins, ascending, and their counts.
    pub counts: &'a [(u64, u64)],
    /// Values beyond the last bin.
    pub overflow: u64,
    /// Smallest value, in ticks.
    pub min: u64,
    /// Largest value, in ticks.
    pub max: u64,
    /// Mean, in ticks, if it is more exact than the bins.
    pub mean: Option<f64>,
}

impl Counted<'_> {
    /// Returns the counts as a histogram.
    ///
    /// # Errors
    /// The counts, the extremes and the mean cannot be of the same values, or there are none.
    pub(super) fn histogram(&self) -> Result<Histogram, String> {
        let Counted { tick_ps, counts, overflow, min, max, .. } = *self;
        let filled = || counts.iter().filter(|(_, n)| *n > 0);
        let sum = |start: u64, add: &dyn Fn(u64, u64) -> Option<u64>| {
            filled().try_fold(start, |sum, (value, n)| sum.checked_add(add(*value, *n)?))
        };
        let count = sum(overflow, &|_, n| Some(n)).filter(|count| *count <= json::LARGEST);
        let count = count.ok_or("its counts are larger than any can be")?;
        if count == 0 {
            return Err("nothing was counted".to_owned());
        }
        self.check_extremes()?;
        if self.mean.is_some_and(|mean| !(mean >= min as f64 - 1.0 && mean <= max as f64 + 1.0)) {
            return Err(
                "its mean is not between its smallest and its largest value: it is damaged".to_owned()
            );
        }
        self.check_mean(count)?;
        let exact = sum(0, &|value, n| value.checked_mul(n)).filter(|_| overflow == 0);
        let of_mean = self.mean.map(|mean| (mean * count as f64).round() as u64);
        let total = of_mean.or(exact).ok_or("its counts do not give a mean: it is damaged")?;
        let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
        let mut beyond = overflow;
        for (value, n) in filled() {
            match bucket_of(*value) {
                Some(bucket) => *buckets.entry(bucket).or_insert(0) += n,
                None => beyond += n,
            }
        }
        let histogram =
            Histogram::from_counts(tick_ps, buckets, Totals { overflow: beyond, min, max, sum: total });
        Ok(histogram.in_bins(self.bins.unwrap_or(Bins { width: 1, per_octave: None })))
    }

    /// Checks that the mean of `count` values is possible with so many beyond the last bin, each of which is above all in
    /// bins and at most the largest. Means may be rounded to a tick, and bins that are wider say less than that.
    fn check_mean(&self, count: u64) -> Result<(), String> {
        let Some(mean) = self.mean.filter(|_| self.bins.is_none() && self.overflow > 0) else {
            return Ok(());
        };
        let mut in_bins = 0.0;
        let mut last = 0;
        for (value, n) in self.counts.iter().filter(|(_, n)| *n > 0) {
            in_bins += *value as f64 * *n as f64;
            last = *value;
        }
        let (beyond, all) = (self.overflow as f64, count as f64);
        let least = in_bins + beyond * (last + 1) as f64 - all;
        let most = in_bins + beyond * self.max as f64 + all;
        if mean * all < least || mean * all > most {
            return Err(format!(
                "its mean of {mean} is none of {count} values, of which {} are beyond its histogram: it is damaged",
                self.overflow
            ));
        }
        Ok(())
    }

    /// Checks that the smallest and the largest value are in the first and in the last bin, or beyond the last.
    fn check_extremes(&self) -> Result<(), String> {
        let Counted { min, max, overflow, bins, .. } = *self;
        let bins = bins.unwrap_or(Bins { width: 1, per_octave: None });
        let width = |value: u64| bins.width.max(bins.per_octave.map_or(0, |bins| value / bins + 1));
        let is_near = |value: u64, bin: u64| value.abs_diff(bin) <= width(bin);
        let filled: Vec<u64> = self.counts.iter().filter(|(_, n)| *n > 0).map(|(value, _)| *value).collect();
        let first = filled.first().is_none_or(|first| is_near(min, *first));
        let last = filled.last().is_none_or(|last| match overflow {
            0 => is_near(max, *last),
            // Values beyond the last bin are larger than all in bins.
            _ => max > *last,
        });
        if min > max || !first || !last {
            return Err(format!(
                "its smallest and largest value ({min}, {max}) are not those of its histogram: it is damaged or cut off"
            ));
        }
        Ok(())
    }
}
