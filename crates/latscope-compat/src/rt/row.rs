//! Figures in the status line of a thread, and their unit.

use latscope_bench::recorder::Snapshot;

/// Unit of all figures. Figures are cut off, not rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RtFigureUnit {
    /// Figures in microseconds (µs).
    #[default]
    Us,
    /// Figures in nanoseconds (ns).
    Ns,
}

impl RtFigureUnit {
    /// Number of nanoseconds in this unit.
    pub fn size_ns(self) -> u64 {
        match self {
            RtFigureUnit::Us => 1000,
            RtFigureUnit::Ns => 1,
        }
    }

    /// Converts a duration in ns to this unit, cut off.
    pub fn whole_units(self, ns: u64) -> u64 {
        ns / self.size_ns()
    }
}

/// Value printed for Min before the first sample, in either unit.
pub(crate) const NO_MIN: u64 = 1_000_000;

/// Figures of a thread so far, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RtThreadRow {
    /// Thread id; 0 before the thread runs.
    pub thread: u32,
    /// Number of recorded activations.
    pub cycles: u64,
    /// Least value; `None` before the first sample.
    pub min: Option<u64>,
    /// Value of the last activation.
    pub last: u64,
    /// Exact mean of all values.
    pub mean: f64,
    /// Largest value so far.
    pub max: u64,
}

impl RtThreadRow {
    /// Returns the figures in a snapshot of events.
    pub fn from_snapshot(snapshot: &Snapshot) -> RtThreadRow {
        let histogram = &snapshot.histogram;
        let whole = |ns: Option<f64>| ns.map(|ns| ns as u64);
        RtThreadRow {
            thread: snapshot.thread,
            cycles: histogram.count(),
            min: whole(histogram.min()),
            last: snapshot.last,
            mean: histogram.mean().unwrap_or(0.0),
            max: whole(histogram.max()).unwrap_or(0),
        }
    }

    /// Min in this unit; [`NO_MIN`] before the first sample.
    pub(crate) fn min_in(&self, unit: RtFigureUnit) -> u64 {
        self.min.map_or(NO_MIN, |min| unit.whole_units(min))
    }

    /// Avg in this unit, cut off.
    pub(crate) fn average_in(&self, unit: RtFigureUnit) -> u64 {
        unit.whole_units(self.mean as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_cut_off() {
        let row = RtThreadRow { min: Some(3999), mean: 13_999.9, ..RtThreadRow::default() };
        assert_eq!((row.min_in(RtFigureUnit::Us), row.average_in(RtFigureUnit::Us)), (3, 13));
        assert_eq!((row.min_in(RtFigureUnit::Ns), row.average_in(RtFigureUnit::Ns)), (3999, 13_999));
    }

    #[test]
    fn before_a_sample_the_least_is_a_million() {
        assert_eq!(RtThreadRow::default().min_in(RtFigureUnit::Us), 1_000_000);
        assert_eq!(RtThreadRow::default().min_in(RtFigureUnit::Ns), 1_000_000);
    }
}
