//! A log-linear histogram with exact count, minimum, maximum and sum.
//!
//! A value below 128 ticks has a bucket of its own; above, each power of two
//! is cut into 128 equal buckets, so that a bucket is never wider than 1/128
//! (0.8 %) of what it holds. Values of 2^48 ticks and more (39 hours of
//! nanoseconds) are counted in `overflow` and still enter count, maximum and
//! sum: nothing saturates silently.

mod bins;
#[cfg(test)]
mod tests;

pub use bins::{HistogramBinning, Span};

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
#[serde(try_from = "SerializedHistogram", into = "SerializedHistogram")]
pub struct Histogram {
    tick_ps: u64,
    /// Ascending in bucket; counts are positive.
    buckets: Vec<(u16, u64)>,
    overflow: u64,
    count: u64,
    min: u64,
    max: u64,
    sum: u64,
    bins: Option<HistogramBinning>,
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
    pub fn in_bins(self, bins: HistogramBinning) -> Self {
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
            (Some(a), Some(b)) => Some(HistogramBinning {
                width: a.width.max(b.width),
                per_octave: a.per_octave.into_iter().chain(b.per_octave).min(),
                extremes: a.extremes || b.extremes,
                end: a.end.zip(b.end).map(|(a, b)| a.min(b)),
            }),
            (a, b) => a.or(b),
        };
    }

    /// Bins in which another program counted; `None` if none did.
    pub fn bins(&self) -> Option<HistogramBinning> {
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
    fn ticks_to_ns(&self, ticks: f64) -> f64 {
        ticks * self.tick_ps as f64 / 1e3
    }

    /// Smallest value, exact, in ns; `None` when empty.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ticks_to_ns(self.min as f64))
    }

    /// Largest value, exact, in ns; `None` when empty.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ticks_to_ns(self.max as f64))
    }

    /// Mean of all values, exact, in ns; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ticks_to_ns(self.sum as f64 / self.count as f64))
    }

    /// The value at quantile `q` by nearest rank, in ns, within 0.4 % (the
    /// middle of its bucket; first and last rank are exact); `None` when empty, and where
    /// the value is one of those beyond the last bucket, of which only the largest is known.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.at_rank(rank(q, self.count))
    }

    /// The quantile `q` of these values and of `further` ones, all of which are larger, ns. `None` where it is one of
    /// those, and above the median also with fewer than ten values above it.
    pub fn quantile_with(&self, q: f64, further: u64) -> Option<f64> {
        let count = self.count.saturating_add(further);
        let rank = rank(q, count);
        (q <= 0.5 || count - rank.min(count) >= 10).then(|| self.at_rank(rank)).flatten()
    }

    /// The value of a rank from 1, ns.
    fn at_rank(&self, rank: u64) -> Option<f64> {
        if self.count == 0 || rank > self.count {
            return None;
        }
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
                let (low, high) = self.bins.map_or((low, high), |bins| bins.name_range(low, high));
                let middle = (low as f64 + high as f64) / 2.0;
                return Some(self.ticks_to_ns(middle.clamp(self.min as f64, self.max as f64)));
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
        let own = self.ticks_to_ns((high - low + 1) as f64);
        let Some(HistogramBinning { width, per_octave, .. }) = self.bins else { return own };
        let growing = per_octave.map_or(0.0, |bins| ns / bins as f64);
        own.max(self.ticks_to_ns(width as f64)).max(growing)
    }

    /// The end of the last bin of another program, ns, or the value by which it names the last bin with values, if no
    /// end is known. `None` without such a bin.
    pub fn last_bin(&self) -> Option<f64> {
        let (last, _) = self.buckets.last().filter(|_| self.bins.is_some())?;
        let end = self.bins.and_then(|bins| bins.end);
        Some(self.ticks_to_ns(end.unwrap_or_else(|| bounds(*last as usize).0) as f64))
    }

    /// Lower bound of the values beyond the last bucket, ns; `None` if there are no such values. In an imported
    /// histogram it is only known that they are longer than all values counted in a bin.
    pub fn overflow_from(&self) -> Option<f64> {
        let last = || self.buckets.last().map(|(bucket, _)| bounds(*bucket as usize).0);
        let from = match self.bins {
            None => 1 << RANGE_BITS,
            Some(HistogramBinning { end: Some(end), .. }) => end,
            // Where a bin ends is not known for sure if its width is taken from the distances of the others.
            Some(HistogramBinning { per_octave: None, .. }) => last().map_or(self.min, |name| name + 1),
            Some(bins) => last().map_or(self.min, |name| bins.tick_range(name, name).1.saturating_add(1)),
        };
        (self.overflow > 0).then(|| self.ticks_to_ns(from as f64))
    }

    /// The ends of the values from tick `first` to the end of tick `last`, ns, both inclusive: another program cuts its
    /// values to whole ticks.
    fn span(&self, (first, last): (u64, u64)) -> Span {
        let rest = if self.bins.is_some() { (self.ticks_to_ns(1.0) - 1.0).max(0.0) } else { 0.0 };
        Span { low: self.ticks_to_ns(first as f64), high: self.ticks_to_ns(last as f64) + rest }
    }

    /// The span of an extreme: a tick, unless the program names it by its bin.
    fn extreme(&self, value: u64) -> Option<Span> {
        let bins = self.bins.filter(|bins| bins.extremes);
        (self.count > 0).then(|| self.span(bins.map_or((value, value), |bins| bins.tick_range(value, value))))
    }

    /// Span of the smallest value; `None` when empty.
    pub fn smallest(&self) -> Option<Span> {
        self.extreme(self.min)
    }

    /// Span of the largest value; `None` when empty.
    pub fn largest(&self) -> Option<Span> {
        self.extreme(self.max)
    }

    /// The intervals in which values were counted, with their number: buckets, or the bins of another program. Values
    /// beyond the last one are in none.
    pub fn intervals(&self) -> impl Iterator<Item = (Span, u64)> {
        self.buckets.iter().map(|&(bucket, n)| {
            let (low, high) = bounds(bucket as usize);
            (self.span(self.bins.map_or((low, high), |bins| bins.tick_range(low, high))), n)
        })
    }

    /// Spans of the counted values, with their number: the [intervals](Histogram::intervals) from the smallest value to
    /// the largest.
    pub fn spans(&self) -> impl Iterator<Item = (Span, u64)> {
        let ends = self.smallest().zip(self.largest());
        self.intervals().map(move |(span, n)| {
            (ends.map_or(span, |(smallest, largest)| span.clip_range(smallest.low, largest.high)), n)
        })
    }

    /// The buckets as low bound, high bound (ns, inclusive) and count.
    pub fn buckets_ns(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        self.buckets.iter().map(|&(bucket, n)| {
            let (low, high) = bounds(bucket as usize);
            (self.ticks_to_ns(low as f64), self.ticks_to_ns(high as f64), n)
        })
    }
}

/// The nearest rank (from 1) of quantile `q` among `count` values.
fn rank(q: f64, count: u64) -> u64 {
    // 0.9 * 100 is 90.00000000000001: without the slack p90 would be rank 91.
    ((q * count as f64 - 1e-6).ceil() as u64).clamp(1, count.max(1))
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct SerializedHistogram {
    tick_ps: u64,
    min: Option<u64>,
    max: Option<u64>,
    sum: u64,
    buckets: Vec<(u64, u64, u64)>,
    overflow: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<HistogramBinning>,
}

impl From<Histogram> for SerializedHistogram {
    fn from(h: Histogram) -> SerializedHistogram {
        let filled = h.count > 0;
        let buckets = h.buckets.iter().map(|&(bucket, n)| {
            let (low, high) = bounds(bucket as usize);
            (low, high, n)
        });
        SerializedHistogram {
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

impl TryFrom<SerializedHistogram> for Histogram {
    type Error = String;

    /// Trusts nothing: bounds must be those of the layout, ascending, and the
    /// exact extremes must lie where the counts say.
    fn try_from(wire: SerializedHistogram) -> Result<Self, String> {
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
