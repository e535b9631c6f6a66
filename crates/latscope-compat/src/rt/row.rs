//! What the status line of a thread states, and in which unit.

use latscope_bench::recorder::Snapshot;

/// The unit of all figures: cut off, not rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unit {
    /// µs.
    #[default]
    Us,
    /// ns.
    Ns,
}

impl Unit {
    /// Nanoseconds in one.
    pub fn ns(self) -> u64 {
        match self {
            Unit::Us => 1000,
            Unit::Ns => 1,
        }
    }

    /// A duration in this unit.
    pub fn cut(self, ns: u64) -> u64 {
        ns / self.ns()
    }
}

/// What Min shows before there is a sample, in either unit.
pub(crate) const NO_MIN: u64 = 1_000_000;

/// The figures of a thread so far, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Row {
    /// Thread id; 0 before it runs.
    pub thread: u32,
    /// Activations recorded.
    pub cycles: u64,
    /// The least; `None` before the first.
    pub min: Option<u64>,
    /// The last.
    pub last: u64,
    /// The exact mean.
    pub mean: f64,
    /// The largest.
    pub max: u64,
}

impl Row {
    /// The figures of a snapshot of events.
    pub fn of(snapshot: &Snapshot) -> Row {
        let histogram = &snapshot.histogram;
        let whole = |ns: Option<f64>| ns.map(|ns| ns as u64);
        Row {
            thread: snapshot.thread,
            cycles: histogram.count(),
            min: whole(histogram.min()),
            last: snapshot.last,
            mean: histogram.mean().unwrap_or(0.0),
            max: whole(histogram.max()).unwrap_or(0),
        }
    }

    /// Min in a unit.
    pub(crate) fn min_in(&self, unit: Unit) -> u64 {
        self.min.map_or(NO_MIN, |min| unit.cut(min))
    }

    /// Avg in a unit, cut off.
    pub(crate) fn average_in(&self, unit: Unit) -> u64 {
        unit.cut(self.mean as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_cut_off() {
        let row = Row { min: Some(3999), mean: 13_999.9, ..Row::default() };
        assert_eq!((row.min_in(Unit::Us), row.average_in(Unit::Us)), (3, 13));
        assert_eq!((row.min_in(Unit::Ns), row.average_in(Unit::Ns)), (3999, 13_999));
    }

    #[test]
    fn before_a_sample_the_least_is_a_million() {
        assert_eq!(Row::default().min_in(Unit::Us), 1_000_000);
        assert_eq!(Row::default().min_in(Unit::Ns), 1_000_000);
    }
}
