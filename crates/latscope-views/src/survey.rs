//! The survey on a terminal: header, table, plot, findings.

use super::document::{DocumentBlock, FACT, ListMarker, ViewDocument};
use super::head::head;
use super::style::PLAIN;
use super::verdicts::verdicts_document;
use super::{DisplayOptions, machine_state, table};
use crate::figure;
use latscope_core::report::Report;

/// Returns everything a survey prints: machine and conditions, the table beside the reference devices and other
/// reports, memory latency against size, and the findings.
pub fn survey(report: &Report, beside: &[&Report], options: &DisplayOptions) -> String {
    let mut out = head(report, options);
    out.push('\n');
    out += &table::format_table(report, beside, options);
    verdicts_document(report).write_text(&mut out, options);
    conclusions(report, true).write_text(&mut out, options);
    out
}

/// Returns the findings in plain words, and the state of the machine; before them the plot of memory latency, if it
/// is wanted and there is one.
pub(super) fn conclusions(report: &Report, plot: bool) -> ViewDocument {
    let mut document = ViewDocument::default();
    if let Some(figure) = figure::latency_figure(report).filter(|_| plot) {
        document.add_block(DocumentBlock::Figure(figure));
    }
    document.append(findings_document(report));
    if let Some(sentence) = machine_state::sentence(report) {
        document.add_block(DocumentBlock::Gap);
        document.add_block(DocumentBlock::Text(PLAIN, sentence));
    }
    document
}

/// Returns the findings in plain words; empty without any.
pub(super) fn findings_document(report: &Report) -> ViewDocument {
    let mut document = ViewDocument::default();
    if !report.findings.is_empty() {
        document.add_heading(2, "Findings");
    }
    let mark = ListMarker { sign: "  • ", ..FACT };
    document.items(mark, report.findings.iter().map(|finding| finding.in_words()));
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn the_parts_stand_in_order() {
        let mut report = fixture::report();
        report.findings = latscope_judge::findings::collect_findings(&report, crate::golden::catalogue());
        let text = survey(&report, &[], &DisplayOptions::default());
        let places: Vec<_> = ["latscope survey", "operation", "Not measured", "Findings"]
            .map(|part| text.find(part).unwrap_or_else(|| panic!("{part} in\n{text}")))
            .to_vec();
        assert!(places.is_sorted());
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn transactions_stand_beside_those_of_another_report() {
        let report = fixture::ipc::latency();
        let text = survey(&report, &[&report], &DisplayOptions::default());
        assert!(text.contains("1.0×") && !text.contains("No row has a number"), "{text}");
    }

    #[test]
    fn a_report_that_has_no_point_in_common_is_named_and_has_no_column() {
        let (wake, report) = (fixture::wake(), fixture::report());
        let wide = DisplayOptions { width: 200, ..DisplayOptions::default() };
        for (one, other) in [(&wake, &report), (&report, &wake)] {
            let text = survey(one, &[other], &wide);
            let said =
                format!("no point is both here and in latscope {} of {}", other.plan.job, other.started);
            let (notes, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(&said));
            assert_eq!((notes.len(), rest), (1, survey(one, &[], &wide).lines().collect()), "{text}");
            assert!(!survey(one, &[one], &wide).contains("nothing to compare"));
        }
    }

    #[test]
    fn colour_changes_no_character() {
        let report = fixture::report();
        let plain = survey(&report, &[], &DisplayOptions { width: 120, ..DisplayOptions::default() });
        let color =
            survey(&report, &[], &DisplayOptions { width: 120, color: true, ..DisplayOptions::default() });
        let mut stripped = String::new();
        for (at, part) in color.split('\u{1b}').enumerate() {
            stripped += if at == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) };
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn a_report_without_anything_is_shown_too() {
        let mut report = fixture::report();
        report.measurements.clear();
        report.findings.clear();
        assert!(survey(&report, &[], &DisplayOptions::default()).contains("No row has a number."));
    }
}
