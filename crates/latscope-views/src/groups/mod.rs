//! Single events in full, as `wake`, `noise`, `ipc` and `remote` measure them: a row for each thread, the
//! verdict on the criteria and how sure it is, the longest events and their causes.

mod conditions;
mod outliers;
mod table;
mod transactions;

pub(super) use conditions::conditions;
pub(super) use outliers::SHOWN;
pub use outliers::causes;
pub(super) use outliers::{causes_table, of_groups, pattern_sentences};
pub(super) use table::{group_table, worst};
pub(super) use transactions::describe_hop;

use super::column::{FILES, TERMINAL};
use super::document::{DocumentBlock, INDENTED, ListMarker, ViewDocument};
use super::head::head;
use super::rows::family;
use super::style::{DIM, WARNING};
use super::styled::Text;
use super::verdicts::{row_name, verdicts_document};
use super::{DisplayOptions, survey, unmeasured};
use crate::published::{self, Published};
use latscope_core::catalogue::{ProbeCatalogue, ids};
use latscope_core::events::{ProbeEventGroup, event_groups};
use latscope_core::report::Report;
use latscope_core::units::format_count;
use latscope_judge::transactions::mode;
use latscope_judge::verdict::{HOW_SURE, confidence_of};

/// Returns true if a report has single events only, so that this view suits it better than the table of the
/// survey.
pub fn is_of_events(report: &Report, catalogue: &ProbeCatalogue) -> bool {
    let ours = |probe: &str| catalogue.has_single_events(family(probe));
    !report.measurements.is_empty() && report.measurements.iter().all(|m| ours(&m.probe))
}

/// Returns the whole view: machine and conditions, a table for each probe, verdict, confidence, the longest
/// events, published figures for reference, findings, and the points that could not be measured.
pub fn format_events(report: &Report, options: &DisplayOptions) -> String {
    let mut out = head(report, options);
    let mut document = tables(report);
    document.append(verdicts_document(report));
    document.append(sections(report, options));
    document.append(survey::conclusions(report, false));
    let mut families: Vec<&str> = report.measurements.iter().map(|m| family(&m.probe)).collect();
    families.dedup();
    families.into_iter().for_each(|family| document.append(unmeasured::family_lists(report, family)));
    document.write_text(&mut out, options);
    out
}

/// Returns the tables of all probes of single events, then transports and payloads beside each other.
pub(super) fn tables(report: &Report) -> ViewDocument {
    let mut document = ViewDocument::default();
    let groups = event_groups(report);
    for group in &groups {
        let forms = if is_shown(group, groups.len()) { TERMINAL.and(FILES) } else { FILES };
        let about = Text::in_style(DIM, conditions(report, group));
        document.add_in_forms(forms, DocumentBlock::Heading(2, group.probe.to_owned(), about));
        document.add_in_forms(forms, DocumentBlock::Table(group_table(group)));
    }
    transactions::comparison(report).into_iter().for_each(|table| document.append(table));
    transactions::throughput_document(report).into_iter().for_each(|table| document.append(table));
    document.append(transactions::hops(report));
    document
}

/// Returns the sections below the tables: causes and, in a report of single events alone, confidence, the longest
/// events in lines of the width of `options`, and published figures.
pub(super) fn sections(report: &Report, options: &DisplayOptions) -> ViewDocument {
    let groups = event_groups(report);
    let mut document = outliers::causes_table(&groups).unwrap_or_default();
    if !is_of_events(report, options.catalogue) {
        return document;
    }
    let sure: Vec<ProbeEventGroup> =
        groups.iter().filter(|group| is_shown(group, groups.len())).cloned().collect();
    document.append(confidence(report, &sure));
    document.append(outliers::longest(report, &groups, options.width));
    document.append(reference_section(report, &groups));
    document
}

/// Returns true if a probe has a table of its own. Transports that are only compared with each other, and
/// payloads, share a table.
fn is_shown(group: &ProbeEventGroup, groups: usize) -> bool {
    let transactions = group.singles.first().and_then(|row| mode(row.m));
    transactions.is_none_or(|mode| mode != "throughput" && groups < transactions::MANY)
}

/// Returns the section on whether the rows ran long enough; empty if nothing is known.
fn confidence(report: &Report, groups: &[ProbeEventGroup]) -> ViewDocument {
    let mut lines = Vec::new();
    for group in groups {
        // The rows that the table shows.
        let shown = worst(group.whole_probe_rows());
        for row in &shown {
            let name = row_name(groups, group, &row.label);
            lines.extend(confidence_of(report, row.m).map(|sure| format!("{name}: {sure}.")));
        }
        let left = group.whole_probe_rows().len() - shown.len();
        if left > 0 {
            lines.push(format!("{} more of {}: CSV has each.", format_count(left as u64), group.probe));
        }
    }
    let mut document = ViewDocument::default();
    if !lines.is_empty() {
        document.add_heading(2, "How sure");
        document.items(INDENTED, [HOW_SURE.to_owned()]);
    }
    document.items(INDENTED, lines);
    document
}

/// Returns the figures that others published on timer wake-ups; empty without such wake-ups, or if no figure can be
/// compared with these.
fn reference_section(report: &Report, groups: &[ProbeEventGroup]) -> ViewDocument {
    let mut document = ViewDocument::default();
    let Some(group) = groups.iter().find(|group| group.probe == ids::WAKE_TIMER) else { return document };
    let (others, same): (Vec<&Published>, Vec<&Published>) =
        published::WAKE_UPS.iter().partition(|published| published.is_incomparable(report, group));
    if same.is_empty() {
        return document;
    }
    document.add_heading(2, "For reference");
    let here = published::local_conditions(report, group);
    let here = format!("Published elsewhere; here: {here}. The load is a different one in each.");
    document.items(INDENTED, [here]);
    let words = |one: &Published| format!("{}, {}: {}", one.figure, one.name, one.format_conditions());
    document.items(ListMarker { sign: "    ", ..INDENTED }, same.into_iter().map(words));
    if !others.is_empty() {
        let text = "more are of another interval, policy or kernel and cannot be compared.";
        let mark = ListMarker { sign: "  ≠ ", word: "≠ ", style: WARNING };
        document.items(mark, [format!("{} {text}", others.len())]);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{self, catalogue};
    use latscope_core::fixture;
    use latscope_core::quality::{QualityLevel, Reason};
    use latscope_judge::verdict::{MetricCriterion, judge_report};

    fn judged(criteria: &[(&str, f64)]) -> Report {
        let mut report = fixture::wake();
        let criteria: Vec<MetricCriterion> =
            criteria.iter().map(|(name, limit)| MetricCriterion::new(name, *limit).unwrap()).collect();
        judge_report(&mut report, &criteria);
        report
    }

    #[test]
    fn published_figures_are_shown_only_if_some_can_be_compared() {
        let mut report = fixture::wake();
        let shown = |report: &Report| reference_section(report, &event_groups(report)).to_text(&wide());
        let text = shown(&report);
        assert!(text.contains("LAVA gate") && text.contains("≠ 9 more"), "{text}");
        for m in &mut report.measurements {
            m.params.insert("policy".to_owned(), "other".into());
        }
        assert_eq!(shown(&report), "");
    }

    #[test]
    fn confidence_has_the_rows_of_the_table_and_no_more() {
        let lines = |threads: u64| {
            let report = table::tests::report_of_threads(threads);
            let section = confidence(&report, &event_groups(&report)).to_text(&wide());
            section.lines().filter(|line| line.contains("CPU ")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!((lines(64).len(), lines(65).len(), lines(1_024).len()), (64, 8, 8));
        assert!(lines(1_024)[0].contains("CPU 1023"));
        let report = table::tests::report_of_threads(1_024);
        let section = confidence(&report, &event_groups(&report)).to_text(&wide());
        assert!(section.contains("1,016 more of wake.timer: CSV has each."), "{section}");
    }

    fn wide() -> DisplayOptions<'static> {
        golden::wide(200)
    }

    #[test]
    fn verdicts_have_a_sign_a_word_and_a_reason() {
        let report = judged(&[("p99_9", 60_000.0), ("max", 50_000.0), ("p99_9999", 5e6), ("missed", 3.0)]);
        let text = format_events(&report, &wide());
        for part in [
            "\nVerdict: exceeded\n",
            "  ✔ p99.9 ≤ 60.0 µs pass: ",
            "  ✘ max ≤ 50.0 µs exceeded: 5 of 60,003 were above 50.0 µs (with the 3 missed activations); the longest took 3.41 ms",
            "  ? p99.9999 ≤ 5.00 ms inconclusive: ",
            "  ✔ missed ≤ 3 pass: missed 3, at most 3 allowed",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn without_criteria_there_is_no_verdict() {
        assert!(!format_events(&fixture::wake(), &wide()).contains("Verdict"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let report = judged(&[("max", 50_000.0)]);
        for width in [40, 60, 80, 100, 200] {
            for line in format_events(&report, &golden::wide(width)).lines() {
                assert!(Text::plain(line).display_width() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn the_view_is_for_reports_of_events_alone() {
        assert!(is_of_events(&fixture::wake(), catalogue()));
        assert!(!is_of_events(&fixture::report(), catalogue()));
        let nothing = Report { measurements: Vec::new(), ..fixture::wake() };
        assert!(!is_of_events(&nothing, catalogue()));
        assert!(format_events(&nothing, &wide()).starts_with("latscope wake"));
    }

    #[test]
    fn doubtful_rows_are_marked_and_explained() {
        let mut report = fixture::wake();
        for m in &mut report.measurements {
            m.lower(Reason::new(QualityLevel::Degraded, "not-as-asked", "ran as SCHED_OTHER", ""));
        }
        let text = format_events(&report, &wide());
        assert!(text.contains("CPU 0 !") && text.contains("! Degraded or unstable"), "{text}");
        assert!(text.contains("ran as SCHED_OTHER"));
    }
}
