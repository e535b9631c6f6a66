//! The median of a point whose values may be beyond the last bin of a histogram.

use super::Measurement;
use crate::units::format_time;

impl Measurement {
    /// The last bin, ns, if the median is one of the values beyond it: it is longer than that. `None` if the median is
    /// known, or if there are no values.
    pub fn median_beyond(&self) -> Option<f64> {
        let from = self.histogram.overflow_from().filter(|_| self.typical().is_none())?;
        Some(self.histogram.last_bin().unwrap_or(from))
    }

    /// Returns true if the median is known, or is known to be beyond the last bin.
    pub fn is_timed(&self) -> bool {
        self.typical().is_some() || self.median_beyond().is_some()
    }

    /// The median in words: `5.00 µs`, or `> 30.0 µs` if it is beyond the last bin; `None` without values.
    pub fn median_in_words(&self) -> Option<String> {
        let beyond = || self.median_beyond().map(|last| format!("> {}", format_time(last)));
        self.typical().map(format_time).or_else(beyond)
    }
}

#[cfg(test)]
mod tests {
    use crate::histogram::{Histogram, HistogramBinning, Totals};
    use crate::report::Semantics;
    use crate::testing::point;

    #[test]
    fn a_median_beyond_the_last_bin_is_longer_than_that() {
        let mut m = point("wake.timerlat", Default::default(), Semantics::OneWay, 1.0);
        assert_eq!((m.median_beyond(), m.is_timed()), (None, true));
        let of = |overflow| Totals { overflow, min: 5, max: 900, sum: 9_000 };
        let counted = |overflow| {
            Histogram::from_counts(1_000_000, [(5, 4), (6, 6)], of(overflow))
                .in_bins(HistogramBinning::of_width(1))
        };
        for (overflow, beyond, words) in [(9, None, "6.00 µs"), (20, Some(6_000.0), "> 6.00 µs")] {
            (m.histogram, m.rounds) = (counted(overflow), Vec::new());
            m.derive_results();
            assert_eq!((m.median_beyond(), m.is_timed()), (beyond, true));
            assert_eq!(m.median_in_words().as_deref(), Some(words));
        }
        m.histogram = Histogram::new(1000);
        m.derive_results();
        assert_eq!((m.median_in_words(), m.is_timed()), (None, false));
    }
}
