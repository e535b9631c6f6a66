//! "Did I run long enough?" in words.

use super::QUANTILES;
use latscope_core::report::{Measurement, Sampling};
use latscope_core::units::{format_count, format_time};

/// A quantile is stated from so many values above it.
const TOLD_FROM: f64 = 10.0;

/// How to read [`confidence_of`].
pub const HOW_SURE: &str = "With 95 % confidence at most so many are above the longest (3/n). \
    A quantile takes 10 events above it: p99 1,000, p99.9 10,000.";

/// What the number of samples of a measurement is good for: how rare anything
/// longer than its maximum is, and which quantiles can be stated. `None` without
/// single events.
pub fn confidence_of(m: &Measurement) -> Option<String> {
    let (n, max) = (m.histogram.count(), m.histogram.max()?);
    if m.sampling != Sampling::Event {
        return None;
    }
    // The median of a few is shown all the same: it says where they lie, not how far a tail reaches.
    let tails = || QUANTILES.iter().filter(|quantile| quantile.above < 0.5);
    // Where the longest values were only counted, the quantiles among them are not known.
    let known = |above: f64| m.histogram.quantile(1.0 - above).is_some();
    let told = tails().rev().find(|quantile| n as f64 * quantile.above >= TOLD_FROM && known(quantile.above));
    let max = format_time(max);
    let rare = match rare(n) {
        None => format!("too few to say how rare one above {max} is"),
        Some(rare) => format!("{rare} above {max}"),
    };
    let quantiles = told.map_or("no quantile beyond p50".to_owned(), |quantile| {
        format!("quantiles up to {}", quantile.name.replace('_', "."))
    });
    Some(format!("{rare}; {quantiles}"))
}

/// What it means that none of `n` was above a limit.
pub(super) fn rule_of_three(n: u64, limit: f64) -> String {
    let (count, limit) = (format_count(n), format_time(limit));
    match rare(n) {
        None => format!("none of {count} was above {limit}: too few to say how rare one is"),
        Some(rare) => format!("none of {count} was above {limit}: {rare} (3/n) is, with 95 % confidence"),
    }
}

/// How rare something is at most that did not occur in `n` samples: were a
/// larger share than 3/n of all so, it would be missing in fewer than one of
/// twenty runs. `None` where that says next to nothing.
fn rare(n: u64) -> Option<String> {
    (n >= 10).then(|| format!("at most 1 in {}", format_count(n / 3)))
}
