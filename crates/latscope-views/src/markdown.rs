//! The survey as Markdown, fit to paste into an issue.

pub use super::document::escape;

use super::document::{FACT, ListMarker, NOTE, ViewDocument};
use super::rows::{family, nothing_in_common, reference_names, sorted_rows};
use super::{DisplayOptions, groups, head, machine_state, survey, table, text, unmeasured};
use crate::verdicts::verdicts_document;
use latscope_core::report::Report;

/// Returns title, machine, table with footnotes, single events, missing points and findings; with `in_full`
/// also every point. The width and the colour of `options` do not matter.
pub fn format_report(report: &Report, beside: &[&Report], in_full: bool, options: &DisplayOptions) -> String {
    let mut document = build_header(report);
    let rows = sorted_rows(report, beside, options);
    document.append(table::build_document(report, &rows, &reference_names(report, beside)));
    document.items(NOTE, nothing_in_common(&rows, beside));
    document.append(groups::tables(report));
    if in_full && !groups::is_of_events(report, options.catalogue) {
        document.append(point_tables(report));
    }
    document.append(verdicts_document(report));
    document.append(groups::sections(report, &DisplayOptions { width: usize::MAX, ..*options }));
    document.append(unmeasured::lists(report));
    document.append(survey::findings_document(report));
    let tool = &report.tool;
    document.to_markdown() + &format!("\n<sub>{} {}</sub>\n", escape(&tool.name), escape(&tool.version))
}

/// Returns the title, the machine, and the facts that a reader needs before the figures.
fn build_header(report: &Report) -> ViewDocument {
    let (what, processor) = head::report_title(report);
    let separator = if processor.is_empty() { "" } else { ": " };
    let mut document = ViewDocument::default();
    document.add_heading(1, format!("{what}{separator}{processor}"));
    document.items(FACT, head::fact_lines(report));
    document.items(ListMarker { word: "**incomplete:** ", ..FACT }, head::measured_part(report));
    document.items(ListMarker { word: "**warning:** ", ..FACT }, head::warning_lines(report));
    document.items(NOTE, report.plan.notes.iter().cloned());
    document.items(
        FACT,
        machine_state::sentence(report).into_iter().chain(machine_state::format_quality_counts(report)),
    );
    document
}

/// Every point, family by family; those of single events have their own tables.
fn point_tables(report: &Report) -> ViewDocument {
    let mut families: Vec<&str> = report.measurements.iter().map(|m| family(&m.probe)).collect();
    families.dedup();
    let mut document = ViewDocument::default();
    for family in families {
        if let Some(table) = text::points(report, family) {
            document.add_heading(2, family);
            document.add_table(table);
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn every_line_of_the_table_has_the_same_columns() {
        let (report, other) = (fixture::report(), fixture::other());
        let text = format_report(&report, &[&other], false, &DisplayOptions::default());
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        let lines = text.lines().skip_while(|line| !line.starts_with('|'));
        let table: Vec<_> = lines.take_while(|line| line.starts_with('|')).collect();
        assert!(table.len() > 20);
        assert!(table.iter().all(|line| bars(line) == bars(table[0])), "{text}");
    }

    /// Checks that a column is left out if no device has a figure for it, as for a program's own pages.
    #[test]
    fn a_column_of_nothing_is_left_out() {
        let mut report = fixture::report();
        report.measurements.retain(|m| family(&m.probe) == "process");
        let text = format_report(&report, &[], true, &DisplayOptions::default());
        let mut tables = text.split("\n\n").filter(|part| part.trim_start().starts_with('|'));
        assert!(tables.clone().count() > 1, "{text}");
        assert!(tables.all(|table| {
            let lines: Vec<Vec<&str>> =
                table.trim().lines().skip(2).map(|line| line.split(" |").map(str::trim).collect()).collect();
            let filled = |at: usize| lines.iter().any(|line| !line[at].trim_matches('|').trim().is_empty());
            (0..lines[0].len() - 1).all(filled)
        }));
    }
}
