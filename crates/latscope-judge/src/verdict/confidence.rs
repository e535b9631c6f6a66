//! "Did I run long enough?" in words.

use super::criterion::limit_in_words;
use super::{QUANTILES, tested};
use latscope_core::report::{Measurement, Report, Sampling, Tested};
use latscope_core::units::{format_count, format_span, format_time};

/// Number of values above a quantile from which on it is stated.
const TOLD_FROM: f64 = 10.0;

/// Fewest events from which the rate of unseen events is bounded.
const FEWEST: u64 = 10;

/// Explanation of [`confidence_of`] for a reader.
pub const HOW_SURE: &str = "What recurs at random more often than once in the time stated would have been seen, with 95 % confidence \
    (rule of three: that time is a third of the run); rarer things were not tested. \
    A quantile takes 10 events above it: p99 1,000, p99.9 10,000.";

/// Certainty of a measurement in words: the highest rate of anything longer than its maximum, and the quantiles that
/// can be stated. `None` without single events.
pub fn confidence_of(report: &Report, m: &Measurement) -> Option<String> {
    let (n, longest) = (m.histogram.count(), m.histogram.largest()?.high);
    if m.sampling != Sampling::Event {
        return None;
    }
    // The median of a few is shown all the same: it says where they lie, not how far a tail reaches.
    let tails = QUANTILES.iter().filter(|quantile| quantile.above < 0.5);
    // Where the longest values were only counted, the quantiles among them are not known.
    let known = tails.filter(|quantile| m.histogram.quantile(1.0 - quantile.above).is_some());
    let last = known.rev().find(|quantile| n as f64 * quantile.above >= TOLD_FROM);
    let max = format_time(longest);
    let rare = match m.tested.or_else(|| tested::compute_evidence(report, m)) {
        _ if n < FEWEST => format!("too few to say how rare one above {max} is"),
        None => format!("observation time unknown, so no bound on how often {max} is exceeded"),
        // What lasts as long as that cannot recur so often.
        Some(Tested { time_ns, .. }) if longest > time_ns as f64 / 3.0 => {
            format!("in {}, too short a time to say how rare one of {max} is", format_span(time_ns as f64))
        }
        Some(Tested { time_ns, .. }) => {
            let (time, often) = (format_span(time_ns as f64), format_span(time_ns as f64 / 3.0));
            format!(
                "in {time}, what exceeds {max} at random more often than once in {often} would have been seen"
            )
        }
    };
    let quantiles = match last {
        Some(quantile) => format!("quantiles up to {}", quantile.name.replace('_', ".")),
        None if m.summary.p50.is_none() => "no quantile".to_owned(),
        None => "no quantile beyond p50".to_owned(),
    };
    Some(format!("{rare}; {quantiles}"))
}

/// Explains the result that none of `n` was above a limit.
pub(super) fn none_seen(n: u64, limit: f64, tested: Option<Tested>) -> String {
    let (count, limit) = (format_count(n), limit_in_words(limit));
    match tested {
        _ if n < FEWEST => format!("none of {count} was above {limit}: too few to say how rare one is"),
        None => {
            format!(
                "none of {count} was above {limit}; observation time unknown, so no bound on how often it is exceeded"
            )
        }
        Some(tested) => {
            let time = format_span(tested.time_ns as f64);
            format!("none of {count} in {time} was above {limit}: {}", what_was_tested(tested))
        }
    }
}

/// Words for the rule of three by time. If an event recurred at random more often than three times in as long a run, it
/// would be missing in fewer than one of twenty such runs. The number of watching threads and their rate do not matter.
pub(super) fn what_was_tested(tested: Tested) -> String {
    let often = format_span(tested.time_ns as f64 / 3.0);
    format!(
        "what recurs at random more often than once in {often} would have been seen (95 % confidence); rarer things \
         were not tested"
    )
}

/// `as long as it stays as in these 20 s`.
pub(super) fn condition(tested: Option<Tested>) -> String {
    match tested {
        Some(tested) => format!("as long as it stays as in these {}", format_span(tested.time_ns as f64)),
        None => "as long as it stays as it was".to_owned(),
    }
}
