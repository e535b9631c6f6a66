//! Events above a limit: those that were timed, and messages that were lost.

use latscope_core::catalogue::ids;
use latscope_core::histogram::{Histogram, Span};
use latscope_core::param;
use latscope_core::report::Measurement;
use latscope_core::units::{count_with_noun, format_apart, format_count, format_time, were};

/// Messages without a valid reply. Each lost message is above every limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageLosses {
    /// Number of messages without a reply in time.
    pub count: u64,
    /// Replies with other content: their messages may be among the lost ones, or have no time.
    pub wrong: u64,
    /// Timeout, ns; 0 if it is not known.
    timeout: f64,
}

impl MessageLosses {
    /// Returns the lost messages of a measurement.
    pub fn from_measurement(m: &Measurement) -> MessageLosses {
        let timeout = m.numeric_param(param::TIMEOUT).unwrap_or(0) as f64;
        MessageLosses { count: m.losses(), wrong: m.wrong_replies(), timeout }
    }

    /// Returns true if no message lacks a valid reply.
    pub fn is_none(self) -> bool {
        self.count + self.wrong == 0
    }

    /// Number of messages of which `timed` had a valid reply.
    pub fn among(self, timed: u64) -> u64 {
        timed.saturating_add(self.count).saturating_add(self.wrong)
    }

    /// Adds the lost messages to the values above a limit.
    pub fn added_to(self, above: &Above) -> Above {
        let [least, most] = [self.count, self.count + self.wrong];
        Above { least: above.least + least, most: above.most + most, ..*above }
    }

    /// ` (with the 106 lost messages, which had no reply within 50.0 ms)`; empty without lost messages.
    pub fn format_losses(self) -> String {
        let mut parts = Vec::new();
        if self.count > 0 {
            let within = match self.timeout {
                0.0 => String::new(),
                timeout => format!(", which had no reply within {}", format_time(timeout)),
            };
            parts.push(format!("the {}{within}", count_with_noun(self.count, "lost message")));
        }
        if self.wrong > 0 {
            parts.push(format!(
                "up to {} answered with other content",
                count_with_noun(self.wrong, "message")
            ));
        }
        if parts.is_empty() { String::new() } else { format!(" (with {})", parts.join(" and ")) }
    }
}

/// Bounds on the number of values above a limit: the bin or bucket around the limit holds values on either side of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Above {
    /// Values that are above for sure.
    pub least: u64,
    /// Values that may be above.
    pub most: u64,
    /// Interval of the values around the limit that may be on either side of it.
    pub within: Option<Span>,
    /// Values beyond the last bin that may be on either side of the limit.
    pub beyond: u64,
}

impl Above {
    /// Counts the values of a histogram.
    pub fn from_histogram(histogram: &Histogram, limit: f64) -> Above {
        let Some((smallest, largest)) = histogram.smallest().zip(histogram.largest()) else {
            return Above::default();
        };
        if largest.high <= limit {
            return Above::default();
        }
        if smallest.low > limit {
            return Above { least: histogram.count(), most: histogram.count(), ..Above::default() };
        }
        let mut above = Above::default();
        let overflow = histogram.overflow();
        match histogram.overflow_from().is_some_and(|from| from > limit) {
            true => above.least = overflow,
            // Imported values without a bin are only known to be longer than all that have one.
            false => above.beyond = overflow,
        }
        above.most = overflow;
        for (span, n) in histogram.spans() {
            above.least += if span.low > limit { n } else { 0 };
            above.most += if span.high > limit { n } else { 0 };
            if span.is_cut_by(limit) {
                let known = above.within.unwrap_or(span);
                above.within = Some(Span { low: known.low.min(span.low), high: known.high.max(span.high) });
            }
        }
        above.least = above.least.max(u64::from(largest.low > limit));
        above.most = above.most.min(histogram.count() - u64::from(smallest.high <= limit));
        above
    }

    /// Words such as `12 of 60,000 were above 50 µs`, with the certainty; `limit` is written.
    pub fn format_exceedances(&self, n: u64, limit: &str) -> String {
        let count = match self.most {
            most if most == self.least => format_count(most),
            most => format!("{} to {}", format_count(self.least), format_count(most)),
        };
        let n = format_count(n);
        format!("{count} of {n} {} above {limit}", were(self.most))
    }

    /// Words on the values of which it is not known whether they are above; empty without any.
    pub fn unsure(&self, histogram: &Histogram) -> String {
        if self.least == self.most {
            return String::new();
        }
        let mut parts = Vec::new();
        if let Some(span) = self.within {
            let what = if histogram.bins().is_some() { "bin" } else { "bucket" };
            parts.push(format!("the {what} {} counts against both verdicts", ends(span)));
        }
        if self.beyond > 0 {
            let beyond = format_count(self.beyond);
            let last = histogram.last_bin().map_or("the last bin".to_owned(), format_time);
            parts.push(format!("of the {beyond} beyond {last} only the largest is known"));
        }
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
    }
}

/// `from 40.0 µs to 60.0 µs`.
pub(super) fn ends(span: Span) -> String {
    let [low, high] = format_apart([span.low, span.high], "ns");
    format!("from {low} to {high}")
}

/// Returns what would decide a limit that a bin, or the values beyond the last bin, leave undecided, in words.
pub(super) fn suggest_remedy(m: &Measurement, above: &Above, limit: f64) -> String {
    let histogram = &m.histogram;
    let width = histogram.bins().map_or(1, |bins| bins.width);
    let tick = histogram.tick_ps() as f64 / 1e3;
    let option = |text: String| if m.is_imported() { format!(" ({text})") } else { String::new() };
    let is_of_rtla = [ids::WAKE_TIMERLAT, ids::NOISE_OSNOISE].contains(&&*m.probe);
    if above.beyond > 0 {
        let finer = if width > 1 { "-b 1 " } else { "" };
        // What is beyond the limit needs no bin of its own.
        let entries = (limit / tick) as u64 + 1;
        let longer = match &*m.probe {
            _ if is_of_rtla => option(format!("{finer}-E {entries}")),
            ids::WAKE_TIMER => option(format!("-h {entries}")),
            _ => String::new(),
        };
        return format!("no number of samples decides it, a longer histogram would{longer}");
    }
    if is_of_rtla && m.is_imported() && width > 1 {
        return "no number of samples decides it, finer bins would (-b 1)".to_owned();
    }
    let finer = match &*m.probe {
        _ if !m.is_imported() || tick < 1e3 => "",
        _ if is_of_rtla => ", or figures in ns (-n)",
        ids::WAKE_TIMER => ", or figures in ns (-N)",
        _ => "",
    };
    format!("no number of samples decides it, a limit outside of this interval would{finer}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::histogram::HistogramBinning;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bounds_hold_for_all_values_that_may_be_in_the_bins(
            values in proptest::collection::vec(0u64..400_000, 1..60), width in 1u64..40, entries in 1u64..40,
            limit in 0u64..420_000, extremes: bool,
        ) {
            let (histogram, exact) = counted_in_bins(&values, width, entries, extremes);
            let above = Above::from_histogram(&histogram, limit as f64);
            let really = exact.iter().filter(|ns| **ns > limit).count() as u64;
            prop_assert!(above.least <= really && really <= above.most, "{:?}, but {}", above, really);
            prop_assert!(above.least == above.most || above.within.is_some() || above.beyond > 0);
        }
    }

    /// A histogram with so many bins of so many µs, and the values as their program states them.
    fn counted_in_bins(values: &[u64], width: u64, entries: u64, extremes: bool) -> (Histogram, Vec<u64>) {
        use latscope_core::histogram::{Totals, bucket_of};
        let name = |ns: u64| ns / 1000 / width * width;
        let inside = |ns: &&u64| extremes || **ns / 1000 < width * entries;
        let mut counts = std::collections::BTreeMap::new();
        values
            .iter()
            .filter(inside)
            .for_each(|ns| *counts.entry(bucket_of(name(*ns)).unwrap()).or_insert(0) += 1);
        let end = |ns: Option<&u64>| ns.map_or(0, |ns| if extremes { name(*ns) } else { ns / 1000 });
        let totals = Totals {
            overflow: values.iter().filter(|ns| !inside(ns)).count() as u64,
            min: end(values.iter().min()),
            max: end(values.iter().max()),
            sum: values.iter().sum::<u64>() / 1000,
        };
        let bins = HistogramBinning { extremes, ..HistogramBinning::of_width(width) };
        // In whole µs, unless the bins are of ns.
        let exact = values.iter().map(|ns| if extremes { *ns } else { ns / 1000 * 1000 }).collect();
        (Histogram::from_counts(1_000_000, counts, totals).in_bins(bins), exact)
    }
}
