//! "Did I run long enough?" in words.

use super::{QUANTILES, subjects};
use latscope_core::report::{Measurement, Report, Sampling};
use latscope_core::units::{format_count, format_time};

/// A quantile is told from so many values above it.
const TOLD_FROM: f64 = 10.0;

/// What the number of samples of each [subject](subjects) of a report is good
/// for: its title and the sentence, where single events were timed.
pub fn confidence(report: &Report) -> Vec<(&Measurement, String)> {
    let judged = subjects(report).into_iter().map(|at| &report.measurements[at]);
    judged.filter_map(|m| Some((m, confidence_of(m)?))).collect()
}

/// What the number of samples of a measurement is good for: how rare anything
/// longer than its maximum is, and which quantiles can be told. `None` without
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
    let next = tails().find(|quantile| n as f64 * quantile.above < TOLD_FROM);
    let longest = format!("the longest of {} took {}", format_count(n), format_time(max));
    let mut text = match rare(n) {
        None => format!("{longest}: too few to say how rare a longer one is"),
        Some(rare) => format!("{longest}: {rare} takes longer, with 95 % confidence"),
    };
    if let Some(quantile) = told {
        text += &format!(". Quantiles up to {} can be stated", quantile.name.replace('_', "."));
    }
    if let Some(quantile) = next {
        let needed = (TOLD_FROM / quantile.above).ceil() as u64;
        let comma = if told.is_some() { ", for" } else { ". For" };
        text += &format!("{comma} {} it takes {}", quantile.name.replace('_', "."), format_count(needed));
    }
    Some(text)
}

/// What it means that none of `n` was above a limit.
pub(super) fn rule_of_three(n: u64, limit: f64) -> String {
    let (count, limit) = (format_count(n), format_time(limit));
    match rare(n) {
        None => format!("none of {count} was above {limit}: too few to say how rare one is"),
        Some(rare) => format!("none of {count} was above {limit}: {rare} is, with 95 % confidence"),
    }
}

/// How rare something is at most that did not occur in `n` samples: were a
/// larger share than 3/n of all so, it would be missing in fewer than one of
/// twenty runs. `None` where that says next to nothing.
fn rare(n: u64) -> Option<String> {
    (n >= 10).then(|| format!("at most 1 in {} (3/n)", format_count(n / 3)))
}
