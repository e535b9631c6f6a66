//! The longest events and their causes.

use super::super::blame;
use super::super::column::ColumnBuilder;
use super::super::document::{DocumentBlock, INDENTED, ViewDocument};
use super::super::styled::Text;
use latscope_core::events::ProbeEventGroup;
use latscope_core::param;
use latscope_core::report::{Cause, Outlier, Report};
use latscope_core::units::{format_count, format_share, format_time};
use latscope_judge::causes::{CauseSum, sum_causes};
use latscope_judge::patterns::patterns;

/// Number of outliers shown.
pub(in super::super) const SHOWN: usize = 10;

/// Number of causes that are shown; the others are summed up.
const CAUSES: usize = 8;

/// The outliers of all probes, the longest first.
pub(in super::super) fn of_groups<'a>(groups: &[ProbeEventGroup<'a>]) -> Vec<&'a Outlier> {
    let rows = groups.iter().flat_map(|group| group.whole_probe_rows());
    let mut outliers: Vec<&Outlier> = rows.flat_map(|row| &row.m.outliers).collect();
    outliers.sort_by_key(|outlier| (std::cmp::Reverse(outlier.value), outlier.at));
    outliers
}

/// Returns the table of the time of all late events by cause; `None` if no event was traced.
pub(in super::super) fn causes_table(groups: &[ProbeEventGroup]) -> Option<ViewDocument> {
    let outliers = of_groups(groups);
    let traced = outliers.iter().filter(|outlier| outlier.is_traced()).count();
    if traced == 0 {
        return None;
    }
    let mut sums = sum_causes(outliers.iter().copied());
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
    let rows = ColumnBuilder(&sums);
    let columns = vec![
        rows.left_aligned("cause", |sum| blame::describe_cause(&sum.cause)),
        rows.right("events", |sum| format_count(sum.mainly)),
        rows.right("total", |sum| format_time(sum.total as f64)),
        rows.right("longest", |sum| format_time(sum.longest as f64)),
        rows.right("share", |sum| format_share(sum.share)),
    ];
    let about = format!(
        "Of the {} longest events. events: of which it took the most; longest: the most it took of one.",
        format_count(traced as u64)
    );
    Some(ViewDocument::of_table("What took the time of late events", columns, about))
}

/// Returns the patterns in the instants of late events of a report, in sentences.
pub(in super::super) fn pattern_sentences(report: &Report, groups: &[ProbeEventGroup]) -> Vec<String> {
    let mut sentences = Vec::new();
    for group in groups {
        let interval = group.singles.first().and_then(|row| row.m.numeric_param(param::INTERVAL));
        let outliers = of_groups(std::slice::from_ref(group));
        let patterns = patterns(outliers.iter().copied(), interval.unwrap_or(0));
        let account = report.activity.as_ref();
        sentences.extend(patterns.iter().map(|pattern| blame::pattern(pattern, account)));
    }
    sentences
}

/// Returns the longest outliers of all probes, a line of `width` columns each, and patterns in all of them.
pub(super) fn longest(report: &Report, groups: &[ProbeEventGroup], width: usize) -> ViewDocument {
    let mut document = ViewDocument::default();
    let outliers = of_groups(groups);
    let sentences = pattern_sentences(report, groups);
    if !sentences.is_empty() {
        document.add_heading(2, "Patterns");
    }
    document.items(INDENTED, sentences);
    if !outliers.is_empty() {
        document.add_heading(2, "Longest events");
    }
    for outlier in outliers.iter().take(SHOWN) {
        let lead = format_time(outlier.value as f64);
        let place = format!("CPU {}, {:.3} s: ", outlier.cpu, outlier.at as f64 / 1e9);
        let room = width.saturating_sub(Text::plain(&lead).display_width() + 4 + place.len());
        document.add_block(DocumentBlock::Led(lead, place + &blame::brief(outlier, room)));
    }
    let more = outliers.len().checked_sub(SHOWN + 1);
    let more = more.map(|more| format!("and {} more in the result", format_count(more as u64 + 1)));
    document.items(INDENTED, more);
    document
}

/// Returns the causes of an outlier, in words: `342 µs (83 %) thread stress-ng (pid 4211) held the CPU, 49.4 µs
/// (12 %) interrupt eth0`.
pub fn causes(outlier: &Outlier) -> String {
    blame::shares(outlier) + &blame::format_details(outlier)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DisplayOptions;
    use latscope_core::events::event_groups;
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
        let text = causes_table(&event_groups(&report))
            .unwrap()
            .to_text(&DisplayOptions { width: 200, ..DisplayOptions::default() });
        let row = text.lines().find(|line| line.starts_with("thread stress-ng-cpu (pid 4211) held the CPU "));
        let cells: Vec<&str> =
            row.unwrap().split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!((cells[1], cells[2], cells[4]), ("1", "2.83 ms", "83 %"), "{text}");
        let mut untraced = report;
        untraced.measurements.iter_mut().flat_map(|m| &mut m.outliers).for_each(|o| o.cause.clear());
        assert!(causes_table(&event_groups(&untraced)).is_none());
        let reason = Cause { kind: Cause::NOT_TRACED.to_owned(), name: "no trace".to_owned(), pid: 0, ns: 7 };
        let outliers = untraced.measurements.iter_mut().flat_map(|m| &mut m.outliers);
        outliers.for_each(|outlier| outlier.cause = vec![reason.clone()]);
        assert!(causes_table(&event_groups(&untraced)).is_none());
        let text = longest(&untraced, &event_groups(&untraced), 200)
            .to_text(&DisplayOptions { width: 200, ..DisplayOptions::default() });
        assert!(text.contains(" s: not traced: no trace") && !text.contains('%'), "{text}");
        assert_eq!(causes(&untraced.measurements[2].outliers[1]), "not traced: no trace");
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
        let text = longest(&report, &event_groups(&report), 200)
            .to_text(&DisplayOptions { width: 200, ..DisplayOptions::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Longest events");
        assert!(
            lines[1].starts_with("  3.41 ms  CPU 1, 20.006 s: 83 % thread stress-ng-cpu (pid 4211)"),
            "{text}"
        );
        assert_eq!(lines.len(), 12);
        assert_eq!(lines[11], "  and 3 more in the result");
    }
}
