//! Bins of other programs, and the intervals in which their values lie.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bins in which another program counted. The counts of a bin are in the bucket of the value by which the program names
/// the bin: its lower end, or where the width grows its middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistogramBinning {
    /// Width of every bin, in ticks: at least 1.
    pub width: u64,
    /// Bins in each power of two, where their width grows with the value: at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_octave: Option<u64>,
    /// True if the smallest and the largest value are also named by their bins. Otherwise they are known to a tick.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extremes: bool,
    /// End of the last bin, in ticks, if it is known: values beyond the last bin are not below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

impl HistogramBinning {
    /// Bins of a width in ticks, at least 1, with extremes that are known to a tick.
    pub const fn of_width(width: u64) -> HistogramBinning {
        HistogramBinning { width, per_octave: None, extremes: false, end: None }
    }

    /// Width of the bin of a value, in ticks.
    pub(super) fn width_at(self, value: u64) -> u64 {
        let octave = 1u64 << value.max(1).ilog2();
        self.width.max(self.per_octave.map_or(0, |bins| octave / bins))
    }

    /// First and last tick of the bins that a program names by the values `low` to `high`.
    pub fn tick_range(self, low: u64, high: u64) -> (u64, u64) {
        let (width, below) = (self.width_at(low), self.below(low));
        let (first, last) = self.name_range(low, high);
        (first.saturating_sub(below), last.saturating_add(width - below - 1))
    }

    /// First and last name of a bin from `low` to `high`: names are multiples of the width, or the middles between
    /// them. Both ends, where none is between them.
    pub(super) fn name_range(self, low: u64, high: u64) -> (u64, u64) {
        let (width, below) = (self.width_at(low), self.below(low));
        let first = low.saturating_sub(below).div_ceil(width).saturating_mul(width).saturating_add(below);
        let last = high - high.saturating_sub(below) % width;
        if first <= last && last >= low { (first, last) } else { (low, high) }
    }

    /// Ticks of a bin below its name.
    fn below(self, value: u64) -> u64 {
        if self.per_octave.is_some() { self.width_at(value) / 2 } else { 0 }
    }
}

/// Interval in which values lie, ns; both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Lower end of the interval, ns.
    pub low: f64,
    /// Upper end of the interval, ns.
    pub high: f64,
}

impl Span {
    /// Returns the part of the span from `low` to `high`, ns; the whole span if it has no such part.
    pub(super) fn clip_range(self, low: f64, high: f64) -> Span {
        let part = Span { low: self.low.max(low), high: self.high.min(high) };
        if part.low <= part.high { part } else { self }
    }

    /// Returns true if a limit divides the span: some of its values may be above, and some not.
    pub fn is_cut_by(self, limit: f64) -> bool {
        self.low <= limit && limit < self.high
    }
}
