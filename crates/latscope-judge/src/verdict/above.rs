//! Events above a limit: those that were timed, and messages that were lost.

use latscope_core::histogram::Histogram;
use latscope_core::param;
use latscope_core::report::Measurement;
use latscope_core::units::{counted, format_count, format_time, were};

/// Messages without a reply within the timeout. Each took longer than the timeout; how much longer is not known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lost {
    /// Number of messages without a reply in time.
    pub count: u64,
    /// Timeout, ns; 0 if it is not known.
    pub timeout: f64,
}

impl Lost {
    /// Returns the lost messages of a measurement.
    pub fn of(m: &Measurement) -> Lost {
        Lost { count: m.losses(), timeout: m.number(param::TIMEOUT).unwrap_or(0) as f64 }
    }

    /// Adds the lost messages to the values above a limit: for sure if the timeout is not shorter than the limit.
    pub fn added_to(self, above: Above, limit: f64) -> Above {
        let sure = if self.timeout >= limit { self.count } else { 0 };
        Above { least: above.least + sure, most: above.most + self.count }
    }

    /// ` (with the 106 losses, each longer than 50.0 ms)`; empty without losses.
    pub fn words(self) -> String {
        match (self.count, self.timeout > 0.0) {
            (0, _) => String::new(),
            (count, false) => format!(" (with the {})", counted(count, "lost message")),
            (count, true) => {
                let (lost, timeout) = (counted(count, "lost message"), format_time(self.timeout));
                format!(" (with the {lost}, which took longer than the timeout of {timeout})")
            }
        }
    }
}

/// Bounds on the number of values above a limit: the bucket around the limit holds values on either side of it.
pub(super) struct Above {
    /// Values that are above for sure.
    pub least: u64,
    /// Values that may be above.
    pub most: u64,
}

impl Above {
    /// Counts the values of a histogram.
    pub fn of(histogram: &Histogram, limit: f64) -> Above {
        let Some((min, max)) = histogram.min().zip(histogram.max()) else {
            return Above { least: 0, most: 0 };
        };
        if max <= limit || min > limit {
            let all = if min > limit { histogram.count() } else { 0 };
            return Above { least: all, most: all };
        }
        // Imported samples without a bin are only known to be longer than all that have one.
        let beyond = histogram.overflow_from().is_some_and(|from| from > limit);
        let mut above =
            Above { least: if beyond { histogram.overflow() } else { 0 }, most: histogram.overflow() };
        for (low, high, n) in histogram.buckets_ns() {
            above.least += if low > limit { n } else { 0 };
            above.most += if high > limit { n } else { 0 };
        }
        // The maximum is exact, and it is above.
        above.least = above.least.max(1);
        above
    }

    /// Words such as `12 of 60,000 were above 50 µs`, with the certainty; `limit` is written.
    pub fn words(&self, n: u64, limit: &str) -> String {
        let count = match self.most {
            most if most == self.least => format_count(most),
            most => format!("{} to {}", format_count(self.least), format_count(most)),
        };
        let n = format_count(n);
        format!("{count} of {n} {} above {limit}", were(self.most))
    }

    /// Words on the values of which it is not known.
    pub fn unsure(&self) -> &'static str {
        if self.least == self.most {
            return "";
        }
        " (the histogram's bucket around the limit counts against both verdicts)"
    }
}
