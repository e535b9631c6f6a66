//! The longest events, and what took their time.

use super::super::Options;
use super::super::blame;
use super::super::grid::{Text, wrap};
use super::super::style::{BOLD, PLAIN};
use super::section;
use latscope_core::events::Group;
use latscope_core::report::Outlier;
use latscope_core::units::{format_count, format_time};

/// So many are shown.
pub(in super::super) const SHOWN: usize = 10;

/// The longest outliers of all probes, with their causes.
pub(super) fn longest(groups: &[Group], options: &Options) -> String {
    let rows = groups.iter().flat_map(|group| group.whole());
    let mut outliers: Vec<&Outlier> = rows.flat_map(|row| &row.m.outliers).collect();
    if outliers.is_empty() {
        return String::new();
    }
    outliers.sort_by_key(|outlier| (std::cmp::Reverse(outlier.value), outlier.at));
    let mut out = section("Longest events", options);
    for outlier in outliers.iter().take(SHOWN) {
        let first = Text::plain("  ").with(BOLD, format_time(outlier.value as f64)).with(PLAIN, "  ");
        let place = format!("CPU {}, {:.3} s after the start", outlier.cpu, outlier.at as f64 / 1e9);
        out += &wrap(&first, &format!("{place}: {}", causes(outlier)), PLAIN, options.width, options.color);
    }
    if let Some(more) = outliers.len().checked_sub(SHOWN + 1) {
        let text = format!("and {} more in the result", format_count(more as u64 + 1));
        out += &wrap(&Text::plain("  "), &text, PLAIN, options.width, options.color);
    }
    out
}

/// What took the time of an outlier, in words: `342 µs (83 %) thread stress-ng
/// (pid 4211) held the CPU, 49.4 µs (12 %) interrupt eth0`.
pub fn causes(outlier: &Outlier) -> String {
    match outlier.cause.is_empty() {
        true => "the cause is not known".to_owned(),
        false => blame::shares(outlier),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::groups;
    use latscope_core::fixture;

    #[test]
    fn causes_have_shares_and_names() {
        let report = fixture::wake();
        let outliers = &report.measurements[2].outliers;
        assert_eq!(causes(&outliers[0]), "the cause is not known");
        let text = causes(&outliers[1]);
        assert!(text.contains("(83 %) thread stress-ng-cpu (pid 4211) held the CPU, "), "{text}");
        assert!(
            text.contains("(12 %) interrupt virtio0-input.0, ") && text.contains("(5 %) unknown"),
            "{text}"
        );
    }

    #[test]
    fn the_longest_come_first_and_the_rest_is_counted() {
        let mut report = fixture::wake();
        let one = report.measurements[2].outliers[0].clone();
        report.measurements[2].outliers.extend((0..11).map(|at| Outlier {
            at,
            value: 90_000,
            ..one.clone()
        }));
        let text = longest(&groups(&report), &Options { width: 200, ..Options::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "Longest events");
        assert!(lines[2].starts_with("  3.41 ms  CPU 1, 20.006 s after the start: 2.8"), "{text}");
        assert_eq!(lines.len(), 13);
        assert_eq!(lines[12], "  and 3 more in the result");
    }
}
