//! The survey as Markdown, fit to paste into an issue.

use super::cells::{aside, between, cycles, doubt, published, remark, times_as_long, times_mark};
use super::footnotes::Footnotes;
use super::grid::clean;
use super::rows::{ReferenceCell, Row, Spread, nothing_in_common, reference_names, rows};
use super::{Options, Scale, head, human, unmeasured, verdicts};
use crate::devices::DEVICES;
use latscope_core::report::{Report, Support};
use latscope_core::units::format_time;
use latscope_judge::verdict::report_status;

/// Title, machine, table with footnotes, what is missing, findings. The width
/// and the colour of `options` do not matter.
pub fn markdown(report: &Report, beside: &[&Report], options: &Options) -> String {
    let (what, processor) = head::title(report);
    let separator = if processor.is_empty() { "" } else { ": " };
    let mut out = format!("## {}{separator}{}\n\n", escape(&what), escape(&processor));
    for line in head::facts(report) {
        out += &format!("- {}\n", escape(&line));
    }
    if let Some(text) = head::unfinished(report) {
        out += &format!("- **incomplete:** {}\n", escape(&text));
    }
    for text in head::warnings(report) {
        out += &format!("- **warning:** {}\n", escape(&text));
    }
    for note in &report.plan.notes {
        out += &format!("- note: {}\n", escape(note));
    }
    out.push('\n');
    let rows = rows(report, beside);
    match options.scale {
        Scale::Time => out += &table(&rows, &reference_names(report, beside)),
        Scale::Human => out += &human_table(report, &rows),
    }
    for text in nothing_in_common(&rows, beside) {
        out += &format!("\n- note: {}\n", escape(&text));
    }
    if let Some(status) = report_status(report) {
        out += &format!("\n### Verdict: {}\n\n", verdicts::word(status));
        for (_, line) in verdicts::lines(report) {
            out += &format!("- {}\n", escape(&line));
        }
    }
    let lists = [
        ("Not measured", unmeasured::missing(report)),
        ("Degraded points without a row", unmeasured::degraded_aside(report)),
    ];
    for (heading, groups) in lists.iter().filter(|(_, groups)| !groups.is_empty()) {
        out += &format!("\n### {heading}\n\n");
        for group in groups {
            out += &format!("- {}: {}\n", escape(&group.what), escape(&group.why));
        }
    }
    if !report.findings.is_empty() {
        out += "\n### Findings\n\n";
        for finding in &report.findings {
            out += &format!("- {}\n", escape(&finding.text));
        }
    }
    let tool = &report.tool;
    out += &format!("\n<sub>{} {}</sub>\n", escape(&tool.name), escape(&tool.version));
    out
}

fn table(rows: &[Row], references: &[(String, String)]) -> String {
    let mut notes = Footnotes::default();
    let mut out = String::from("| operation | family | this machine | | spread | cycles |");
    for (short, full) in references {
        // A device's full name is a fine heading; a report's holds a date.
        let device = DEVICES.iter().any(|device| device.name == full);
        out += &format!(" {} |", escape(if device { full } else { short }));
    }
    out += "\n|:--|:--|--:|:--|--:|--:|";
    out += &"--:|".repeat(references.len());
    out.push('\n');
    for row in rows {
        out += &line(row, &mut notes);
    }
    out += "\nRT: round trip. →: one way. Spread: where the median of the next run is expected (95 %), else p10 to p90 of batch means, or a high quantile of single events. \
            ×: how many times as long as on this machine. ½: one way, compared with half the round trip. \
            ≠: not the same thing. !: degraded or unstable. ~: ended early.\n";
    // What speaks against a report as a whole; see the sign in its heading.
    for (short, full) in references.iter().filter(|(short, _)| short.ends_with(['~', '!'])) {
        out += &format!("\n{}: {}\n", escape(short), escape(full));
    }
    for (number, text) in notes.iter() {
        out += &format!("\n{number}. {}", escape(text));
    }
    if notes.iter().next().is_some() {
        out.push('\n');
    }
    out
}

fn line(row: &Row, notes: &mut Footnotes) -> String {
    let aside = aside(row);
    let label = if aside.is_empty() { row.label.clone() } else { format!("{} ({aside})", row.label) };
    let times = times_mark(row.times);
    let sign = if row.support == Support::Degraded { "!" } else { "~" };
    let doubt = doubt(row).map(|doubt| format!("{sign}{}", notes.mark(&doubt))).unwrap_or_default();
    let spread = match row.spread {
        None => String::new(),
        Some(Spread::NextRun(low, high) | Spread::Between(low, high)) => {
            between(low, high).trim_end().to_owned()
        }
        Some(Spread::Tail(name, ns)) => format!("{name} {}", format_time(ns)),
    };
    let mut out = format!(
        "| {} | {} | **{}** | {times}{doubt} | {spread} | {} |",
        escape(&label),
        escape(&row.family),
        format_time(row.ns),
        row.cycles.map(cycles).unwrap_or_default(),
    );
    for (at, cell) in row.references.iter().enumerate() {
        let text = cell.as_ref().map(|cell| reference(cell, at < DEVICES.len(), notes));
        out += &format!(" {} |", text.unwrap_or_default());
    }
    out.push('\n');
    out
}

fn reference(cell: &ReferenceCell, device: bool, notes: &mut Footnotes) -> String {
    let number = if device { published(cell.ns) } else { format_time(cell.ns) };
    let note = remark(cell).map(|note| notes.mark(note)).unwrap_or_default();
    match (cell.same, cell.part == 0.5) {
        (false, _) => format!("{number} {}{note}", cell.sign),
        (true, true) => format!("{number} {}½", times_as_long(cell.ratio)),
        (true, false) => format!("{number} {}{note}", times_as_long(cell.ratio)),
    }
}

fn human_table(report: &Report, rows: &[Row]) -> String {
    let second = human::second(report);
    let mut out =
        String::from("| operation | family | this machine | if L1 took 1 s | in a frame (1/60 s) |\n");
    out += "|:--|:--|--:|--:|--:|\n";
    for row in rows {
        out += &format!(
            "| {} | {} | {} | **{}** | {} |\n",
            escape(&row.label),
            escape(&row.family),
            format_time(row.ns),
            human::human(row.ns / second),
            human::per_frame(row.ns)
        );
    }
    out
}

/// Text without what Markdown or HTML would take for markup, or a site for a
/// mention.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '@' => out += "&#64;",
            '|' | '*' | '_' | '`' | '\\' | '[' | ']' | '~' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn every_line_of_the_table_has_the_same_columns() {
        let (report, other) = (fixture::report(), fixture::other());
        let text = markdown(&report, &[&other], &Options::default());
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        let table: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(table.len() > 20);
        assert!(table.iter().all(|line| bars(line) == bars(table[0])), "{text}");
    }

    #[test]
    fn markup_in_a_title_stays_text() {
        assert_eq!(escape("a|b <c> *d*\n@e"), "a\\|b &lt;c&gt; \\*d\\* &#64;e");
    }
}
