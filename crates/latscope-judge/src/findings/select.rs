//! Picking measurements out of a report.

use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report};

/// The measurements of a probe that have a number.
pub(super) fn measured_points<'a>(
    report: &'a Report,
    probe: &'a str,
) -> impl Iterator<Item = &'a Measurement> {
    report.of_probe(probe).filter(|m| is_measured(m))
}

/// Returns true if the point has a number.
pub(super) fn is_measured(m: &Measurement) -> bool {
    m.quality.level != QualityLevel::Unsupported && m.typical().is_some_and(|ns| ns.is_finite() && ns > 0.0)
}

/// A named value that is no duration.
pub(super) fn finite_value(m: &Measurement, name: &str) -> Option<f64> {
    m.values.get(name).map(|v| v.value).filter(|v| v.is_finite())
}

/// A large count in a few digits.
pub(super) fn format_large_count(count: f64) -> String {
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
pub(super) fn join_list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
