//! Picking measurements out of a report, and telling whether two differ.

use crate::plan::ParamValue;
use crate::report::{Measurement, Report, Support, Times};
use crate::statistics::{Interval, median_ranks};

/// The measurements of a probe that have a number.
pub(super) fn measured<'a>(report: &'a Report, probe: &'a str) -> impl Iterator<Item = &'a Measurement> {
    report.of_probe(probe).filter(|m| is_measured(m))
}

/// Whether the point has a number at all.
pub(super) fn is_measured(m: &Measurement) -> bool {
    m.support != Support::Unsupported && typical(m) > 0.0
}

/// The median, ns; 0 where there is none, which [`measured`] excludes.
pub(super) fn typical(m: &Measurement) -> f64 {
    m.typical().filter(|ns| ns.is_finite()).unwrap_or(0.0)
}

/// A numeric parameter.
pub(super) fn number(m: &Measurement, name: &str) -> Option<u64> {
    match m.params.get(name)? {
        ParamValue::Number(number) => Some(*number),
        ParamValue::Text(_) => None,
    }
}

/// A textual parameter.
pub(super) fn text<'a>(m: &'a Measurement, name: &str) -> Option<&'a str> {
    match m.params.get(name)? {
        ParamValue::Text(text) => Some(text),
        ParamValue::Number(_) => None,
    }
}

/// Whether a textual parameter has this value.
pub(super) fn is(m: &Measurement, name: &str, value: &str) -> bool {
    text(m, name) == Some(value)
}

/// A named value that is no duration.
pub(super) fn value(m: &Measurement, name: &str) -> Option<f64> {
    m.values.get(name).map(|v| v.value).filter(|v| v.is_finite())
}

/// Time from one party to the other: half of a round trip.
pub(super) fn one_way(m: &Measurement) -> f64 {
    if m.times == Times::RoundTrip { typical(m) / 2.0 } else { typical(m) }
}

/// Whether the first is slower than the second: by a tenth at least, and the
/// confidence intervals of the medians apart.
pub(super) fn is_slower(a: &Measurement, b: &Measurement) -> bool {
    let apart = match (median_interval(a), median_interval(b)) {
        (Some(a), Some(b)) => a.is_apart_from(&b),
        _ => false,
    };
    apart && typical(a) >= 1.1 * typical(b)
}

/// The 95 % confidence interval of the median; `None` below six samples.
fn median_interval(m: &Measurement) -> Option<Interval> {
    let count = m.histogram.count();
    let (low, high) = median_ranks(count)?;
    let at = |rank: u64| m.histogram.quantile(rank as f64 / count as f64);
    Some(Interval { low: at(low)?, high: at(high)? })
}

/// A ratio as people say it: `×1.2`, `×170`, `×15,000`, `×2.0 million`.
pub(super) fn times(ratio: f64) -> String {
    format!("×{}", many(ratio))
}

/// A large count in a few digits.
pub(super) fn many(count: f64) -> String {
    match count {
        c if c < 9.95 => format!("{c:.1}"),
        c if c < 999.5 => format!("{c:.0}"),
        // Two digits are enough of what carries a percent of noise.
        c if c < 999_500.0 => {
            let unit = 10f64.powf(c.log10().floor() - 1.0);
            let rounded = ((c / unit).round() * unit) as u64;
            format!("{},{:03}", rounded / 1000, rounded % 1000)
        }
        c if c < 9.95e6 => format!("{:.1} million", c / 1e6),
        c => format!("{:.0} million", c / 1e6),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(items: &[String]) -> String {
    listed_with(items, "and")
}

/// `a`, `a or b`, `a, b or c`, with this word before the last.
pub(super) fn listed_with(items: &[String], word: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}
