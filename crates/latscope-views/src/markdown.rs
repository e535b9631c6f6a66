//! The survey as Markdown, fit to paste into an issue.

use super::cells::{aside, between, cycles, doubt, published, remark, times_as_long, times_mark};
use super::footnotes::Footnotes;
use super::grid::{Side, clean};
use super::groups::{self, Table};
use super::legend::{Signs, next_run};
use super::rows::{ReferenceCell, Row, family, nothing_in_common, reference_names, sorted_rows};
use super::{Options, Scale, head, human, machine_state, text, unmeasured, verdicts};
use crate::devices::DEVICES;
use latscope_core::report::Report;
use latscope_core::units::format_time;
use latscope_judge::verdict::report_status;

/// Returns title, machine, table with footnotes, single events, missing points and findings; with `in_full`
/// also every point. The width and the colour of `options` do not matter.
pub fn markdown(report: &Report, beside: &[&Report], in_full: bool, options: &Options) -> String {
    let mut out = top(report);
    let rows = sorted_rows(report, beside, options);
    match options.scale {
        Scale::Time => out += &table(report, &rows, &reference_names(report, beside)),
        Scale::Human => out += &human_table(report, &rows),
    }
    for text in nothing_in_common(&rows, beside) {
        out += &format!("\n- note: {}\n", escape(&text));
    }
    groups::tables(report).iter().for_each(|table| out += &section(table));
    if in_full {
        points(report).iter().for_each(|table| out += &section(table));
    }
    if let Some(status) = report_status(report) {
        out += &format!("\n### Verdict: {}\n\n", verdicts::word(status));
        for (_, line) in verdicts::lines(report) {
            out += &format!("- {}\n", escape(&line));
        }
    }
    let lists = if groups::is_of_events(report) { groups::lists(report) } else { Vec::new() };
    for (heading, lines) in lists {
        out += &format!("\n### {}\n\n", escape(&heading));
        lines.iter().for_each(|line| out += &format!("- {}\n", escape(line)));
    }
    let lists = [
        ("Not measured", unmeasured::missing(report)),
        (unmeasured::ASIDE, unmeasured::degraded_aside(report)),
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
            out += &format!("- {}\n", escape(&finding.in_words()));
        }
    }
    let tool = &report.tool;
    out += &format!("\n<sub>{} {}</sub>\n", escape(&tool.name), escape(&tool.version));
    out
}

/// Returns the title, the machine, and the facts that a reader needs before the figures.
fn top(report: &Report) -> String {
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
    for text in machine_state::sentence(report).into_iter().chain(machine_state::counts(report)) {
        out += &format!("- {}\n", escape(&text));
    }
    out + "\n"
}

/// Every point, family by family; those of single events have their own tables.
fn points(report: &Report) -> Vec<Table> {
    let mut families: Vec<&str> = report.measurements.iter().map(|m| family(&m.probe)).collect();
    families.dedup();
    let table = |family: &str| {
        let columns = text::points(report, family);
        let about = text::meanings(report, &columns).join(" · ");
        Table { heading: family.to_owned(), columns, about }
    };
    let events = groups::is_of_events(report);
    let tables = families.into_iter().filter(|_| !events).map(table);
    tables.filter(|table| !table.columns.is_empty()).collect()
}

/// A heading, the side of its column, and the cells.
type Piped = (String, Side, Vec<String>);

/// Returns a table of columns with escaped texts, without the columns that are empty in every row.
fn piped(mut columns: Vec<Piped>) -> String {
    columns.retain(|(_, _, cells)| cells.iter().any(|cell| !cell.is_empty()));
    let line =
        |cell: &dyn Fn(&Piped) -> String| format!("|{}\n", columns.iter().map(cell).collect::<String>());
    let rule = |side| if side == Side::Right { "--:|" } else { ":--|" };
    let mut out = line(&|(heading, ..)| format!(" {heading} |"));
    out += &line(&|(_, side, _)| rule(*side).to_owned());
    for row in 0..columns.first().map_or(0, |(_, _, cells)| cells.len()) {
        out += &line(&|(_, _, cells)| format!(" {} |", cells[row]));
    }
    out
}

/// Returns a heading, a table of all columns, and the notes on it.
fn section(table: &Table) -> String {
    let columns = table.columns.iter().map(|column| {
        let cells = column.cells.iter().map(|cell| escape(cell.content().trim()));
        (escape(&column.heading.content()), column.side, cells.collect())
    });
    let out = format!("\n### {}\n\n{}", escape(&table.heading), piped(columns.collect()));
    if table.about.is_empty() { out } else { out + &format!("\n{}\n", escape(&table.about)) }
}

fn table(report: &Report, rows: &[Row], references: &[(String, String)]) -> String {
    let mut notes = Footnotes::default();
    let named = [("operation", Side::Left), ("family", Side::Left), ("this machine", Side::Right)];
    let more = [("", Side::Left), ("next run", Side::Right), ("cycles", Side::Right)];
    let headings = named.into_iter().chain(more).map(|(heading, side)| (heading.to_owned(), side));
    // A device's full name is a fine heading; a report's holds a date.
    let is_device = |full: &String| DEVICES.iter().any(|device| device.name == full);
    let beside = references
        .iter()
        .map(|(short, full)| (escape(if is_device(full) { full } else { short }), Side::Right));
    let lines: Vec<Vec<String>> = rows.iter().map(|row| line(row, &mut notes)).collect();
    let column = |(at, (heading, side)): (usize, (String, Side))| {
        (heading, side, lines.iter().map(|line| line[at].clone()).collect())
    };
    let mut out = piped(headings.chain(beside).enumerate().map(column).collect());
    out += &format!("\n{}\n", escape(&legend(report, rows, references)));
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

/// Returns the meanings of the signs that are used.
fn legend(report: &Report, rows: &[Row], references: &[(String, String)]) -> String {
    let cell = |holds: fn(&ReferenceCell) -> bool| {
        rows.iter().flat_map(|row| row.references.iter().flatten()).any(holds)
    };
    let headed = |sign| references.iter().any(|(short, _)| short.ends_with(sign));
    let mut signs = Signs {
        doubtful: cell(|cell| cell.sign == "!") || headed('!'),
        early: cell(|cell| cell.sign == "~") || headed('~'),
        ..Signs::default()
    };
    rows.iter().for_each(|row| signs.note(row.times, row.level, row.incomplete));
    let next = next_run(report, "", rows.iter().any(|row| row.next.is_none()));
    let more = [
        (rows.iter().any(|row| row.next.is_some()), &*next),
        (cell(|cell| cell.same), "× times as long as on this machine"),
        (cell(|cell| cell.same && cell.part == 0.5), "½ one way, compared with half the round trip"),
        (cell(|cell| cell.sign == "≠"), "≠ not the same thing"),
    ];
    let more = more.into_iter().filter(|(used, _)| *used).map(|(_, text)| text.to_owned());
    signs.meanings().into_iter().chain(more).collect::<Vec<_>>().join(" · ")
}

/// The cells of a row.
fn line(row: &Row, notes: &mut Footnotes) -> Vec<String> {
    let aside = aside(row);
    let label = if aside.is_empty() { row.label.clone() } else { format!("{} ({aside})", row.label) };
    let times = times_mark(row.times);
    let sign = if row.level.is_doubtful() { "!" } else { "~" };
    let doubt = doubt(row).map(|doubt| format!("{sign}{}", notes.mark(&doubt))).unwrap_or_default();
    let mut line = vec![
        escape(&label),
        escape(&row.family),
        format!("**{}**", format_time(row.ns)),
        format!("{times}{doubt}"),
        row.next.map_or(String::new(), |(low, high)| between(low, high)),
        row.cycles.map(cycles).unwrap_or_default(),
    ];
    for (at, cell) in row.references.iter().enumerate() {
        let text = cell.as_ref().map(|cell| reference(cell, at < DEVICES.len(), notes));
        line.push(text.unwrap_or_default());
    }
    line
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

/// Returns a text in which nothing is markup for Markdown or HTML, or a mention for a site.
pub fn escape(text: &str) -> String {
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
        let text = markdown(&report, &[&other], false, &Options::default());
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
        let text = markdown(&report, &[], true, &Options::default());
        let mut tables = text.split("\n\n").filter(|part| part.trim_start().starts_with('|'));
        assert!(tables.clone().count() > 1, "{text}");
        assert!(tables.all(|table| {
            let lines: Vec<Vec<&str>> =
                table.trim().lines().skip(2).map(|line| line.split(" |").map(str::trim).collect()).collect();
            let filled = |at: usize| lines.iter().any(|line| !line[at].trim_matches('|').trim().is_empty());
            (0..lines[0].len() - 1).all(filled)
        }));
    }

    #[test]
    fn markup_in_a_title_stays_text() {
        assert_eq!(escape("a|b <c> *d*\n@e"), "a\\|b &lt;c&gt; \\*d\\* &#64;e");
    }
}
