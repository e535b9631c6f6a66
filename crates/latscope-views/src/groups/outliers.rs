//! The longest events and their causes.

use super::super::Options;
use super::super::blame;
use super::super::grid::{Column, Side, Text, wrap};
use super::super::style::{BOLD, HEADING, PLAIN};
use super::section;
use super::transactions::Table;
use latscope_core::events::Group;
use latscope_core::plan::ParamValue;
use latscope_core::report::{Cause, Outlier};
use latscope_core::units::{format_count, format_share, format_time};
use latscope_judge::causes::{CauseSum, sums};
use latscope_judge::patterns::patterns;

/// Number of outliers shown.
pub(in super::super) const SHOWN: usize = 10;

/// Number of causes that are shown; the others are summed up.
const CAUSES: usize = 8;

/// The outliers of all probes, the longest first.
pub(in super::super) fn of_groups<'a>(groups: &[Group<'a>]) -> Vec<&'a Outlier> {
    let rows = groups.iter().flat_map(|group| group.whole());
    let mut outliers: Vec<&Outlier> = rows.flat_map(|row| &row.m.outliers).collect();
    outliers.sort_by_key(|outlier| (std::cmp::Reverse(outlier.value), outlier.at));
    outliers
}

/// Returns the time of all late events by cause; `None` if no event was traced.
pub(in super::super) fn causes_table(groups: &[Group]) -> Option<Table> {
    let outliers = of_groups(groups);
    let traced = outliers.iter().filter(|outlier| !outlier.cause.is_empty()).count();
    if traced == 0 {
        return None;
    }
    let mut sums = sums(outliers.iter().copied());
    if sums.len() > CAUSES {
        let rest = sums.split_off(CAUSES - 1);
        let sum = |each: &dyn Fn(&CauseSum) -> u64| rest.iter().map(each).sum();
        let (mainly, total) = (sum(&|sum| sum.mainly), sum(&|sum| sum.total));
        let longest = rest.iter().map(|sum| sum.longest).max().unwrap_or(0);
        let share = rest.iter().map(|sum| sum.share).sum();
        let name = format!("{} others", rest.len());
        let cause = Cause { kind: name, name: String::new(), pid: 0, ns: total };
        sums.push(CauseSum { cause, mainly, total, longest, share });
    }
    let column = |heading: &str, side, cell: &dyn Fn(&CauseSum) -> String| {
        let cells = sums.iter().map(|sum| Text::plain(cell(sum))).collect();
        Column::new(Text::styled(HEADING, heading), side, cells)
    };
    Some(Table {
        heading: "What took the time of late events".to_owned(),
        columns: vec![
            column("cause", Side::Left, &|sum| blame::words(&sum.cause)),
            column("events", Side::Right, &|sum| format_count(sum.mainly)),
            column("total", Side::Right, &|sum| format_time(sum.total as f64)),
            column("longest", Side::Right, &|sum| format_time(sum.longest as f64)),
            column("share", Side::Right, &|sum| format_share(sum.share)),
        ],
        about: format!(
            "Of the {} longest events. events: of which it took the most; longest: the most it took of one.",
            format_count(traced as u64)
        ),
    })
}

/// Returns the patterns in the instants of late events, in sentences.
pub(in super::super) fn pattern_sentences(groups: &[Group]) -> Vec<String> {
    let of_group = |group: &Group| {
        let interval = group.singles.first().and_then(|row| row.m.params.get("interval"));
        let resolution = match interval {
            Some(ParamValue::Number(ns)) => *ns,
            _ => 0,
        };
        let outliers = of_groups(std::slice::from_ref(group));
        patterns(outliers.iter().copied(), resolution).iter().map(blame::pattern).collect::<Vec<_>>()
    };
    groups.iter().flat_map(of_group).collect()
}

/// The longest outliers of all probes, a line each, and patterns in all of them.
pub(super) fn longest(groups: &[Group], options: &Options) -> String {
    let outliers = of_groups(groups);
    if outliers.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let sentences = pattern_sentences(groups);
    if !sentences.is_empty() {
        out += &section("Patterns", options);
    }
    for sentence in sentences {
        out += &wrap(&Text::plain("  "), &sentence, PLAIN, options.width, options.color);
    }
    out += &section("Longest events", options);
    for outlier in outliers.iter().take(SHOWN) {
        let first = Text::plain("  ").with(BOLD, format_time(outlier.value as f64)).with(PLAIN, "  ");
        let place = format!("CPU {}, {:.3} s: ", outlier.cpu, outlier.at as f64 / 1e9);
        let room = options.width.saturating_sub(first.width() + place.len());
        let line = place + &blame::brief(outlier, room);
        out += &wrap(&first, &line, PLAIN, options.width, options.color);
    }
    if let Some(more) = outliers.len().checked_sub(SHOWN + 1) {
        let text = format!("and {} more in the result", format_count(more as u64 + 1));
        out += &wrap(&Text::plain("  "), &text, PLAIN, options.width, options.color);
    }
    out
}

/// Returns the causes of an outlier, in words: `342 µs (83 %) thread stress-ng (pid 4211) held the CPU, 49.4 µs
/// (12 %) interrupt eth0`.
pub fn causes(outlier: &Outlier) -> String {
    match outlier.cause.is_empty() {
        true => "not traced".to_owned(),
        false => blame::shares(outlier) + &blame::details(outlier),
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
        assert_eq!(causes(&outliers[0]), "not traced");
        let text = causes(&outliers[1]);
        assert!(text.contains("(83 %) thread stress-ng-cpu (pid 4211) held the CPU, "), "{text}");
        assert!(
            text.contains("(12 %) interrupt virtio0-input.0, ") && text.contains("(5 %) unknown"),
            "{text}"
        );
    }

    #[test]
    fn causes_of_all_events_stand_in_one_table() {
        let report = fixture::wake();
        let table = causes_table(&groups(&report)).unwrap();
        let cells: Vec<Vec<String>> =
            table.columns.iter().map(|column| column.cells.iter().map(Text::content).collect()).collect();
        assert_eq!(cells[0].len(), 3);
        assert_eq!(cells[0][0], "thread stress-ng-cpu (pid 4211) held the CPU");
        assert_eq!(
            (cells[1][0].as_str(), cells[2][0].as_str(), cells[4][0].as_str()),
            ("1", "2.83 ms", "83 %")
        );
        let mut untraced = report;
        untraced.measurements.iter_mut().flat_map(|m| &mut m.outliers).for_each(|o| o.cause.clear());
        assert!(causes_table(&groups(&untraced)).is_none());
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
        assert!(
            lines[2].starts_with("  3.41 ms  CPU 1, 20.006 s: 83 % thread stress-ng-cpu (pid 4211)"),
            "{text}"
        );
        assert_eq!(lines.len(), 13);
        assert_eq!(lines[12], "  and 3 more in the result");
    }
}
