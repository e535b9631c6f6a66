//! Published figures of other machines: the list of all, and those beside the rows of a report.

use super::cells::{published, times_as_long};
use super::column::ColumnBuilder;
use super::document::escape;
use super::grid::grid;
use super::style::{BOLD, DIM, PLAIN, WARNING};
use super::styled::{Text, wrap};
use super::{DisplayOptions, style};
use latscope_core::units::format_time;
use latscope_judge::references::{Likeness, Reference, ReferenceComparison, ReferenceRowGroup};

/// Returns the list of figures as a table for a terminal.
pub fn listing(references: &[&Reference], options: &DisplayOptions) -> String {
    let rows = ColumnBuilder(references);
    let columns = [
        rows.left_aligned("machine", |one| &one.machine),
        rows.left_aligned("figure", |one| &one.figure),
        rows.right("value", |one| published(one.ns)),
        rows.left_aligned("definition", |one| one.format_definition()),
        rows.left_aligned("tool", |one| one.tool()),
        rows.left_aligned("date", |one| &one.definition.date),
    ];
    let width = columns.iter().map(|column| column.width() + 2).sum::<usize>();
    if width <= options.width {
        return grid(&columns, 2, options);
    }
    let mut out = String::new();
    for one in references {
        let first =
            Text::plain(format!("{}, {} ", one.machine, one.figure)).with_piece(BOLD, published(one.ns));
        let rest = format!("{}; {}, {}", one.format_definition(), one.tool(), one.definition.date);
        let first = first.with_piece(PLAIN, "  ");
        out += &wrap(&Text::default(), &first.plain_text(), PLAIN, options);
        out += &wrap(&Text::plain("    "), &rest, DIM, options);
    }
    out
}

/// Returns published figures beside the rows of a report, for a terminal.
pub fn format_comparison(groups: &[ReferenceRowGroup], options: &DisplayOptions) -> String {
    let mut out = format!("\n{}", wrap(&Text::default(), "Published beside this machine", BOLD, options));
    if groups.is_empty() {
        return out + &wrap(&Text::plain("  "), NOTHING, PLAIN, options);
    }
    for group in groups {
        out += &wrap(&Text::default(), &group.row, PLAIN, options);
        let name = |one: &ReferenceComparison| Text::plain(&one.reference.machine).display_width();
        let widest = group.all.iter().map(name).max().unwrap_or(0).min(options.width / 3);
        for one in &group.all {
            out += &format_line(one, widest, options);
        }
    }
    out + &wrap(&Text::default(), SIGNS, DIM, options)
}

/// Sentence where no row has a published figure of the machines asked for.
const NOTHING: &str = "no row here has a published figure of these machines";

/// Meanings of the signs.
const SIGNS: &str = "ratio: published, divided by this machine's figure of the same kind · ½ half the round trip, \
                     compared with half of this machine's · ≠ another definition, no ratio · ! unstable or degraded here";

fn format_line(one: &ReferenceComparison, widest: usize, options: &DisplayOptions) -> String {
    let machine = Text::plain(&one.reference.machine);
    let machine = machine.wrap_to_width(widest);
    let gap = " ".repeat(widest.saturating_sub(machine.display_width()) + 2);
    let sign = if one.sign().is_empty() { " " } else { one.sign() };
    let first = Text::plain("  ").append_text(machine).with_piece(PLAIN, gap);
    let first = first.with_piece(BOLD, format!("{:>7}", published(one.reference.ns)));
    let first = match one.likeness {
        Likeness::Differs(_) => first.with_piece(WARNING, sign).with_piece(PLAIN, " ".repeat(7)),
        _ => first
            .with_piece(DIM, sign)
            .with_piece(style::ratio_style(one.ratio()), format!("{:>6} ", times_as_long(one.ratio()))),
    };
    wrap(&first.with_piece(PLAIN, " "), &explain_reference(one), DIM, options)
}

/// Returns the definition of a published figure, this machine's figure, and how the two differ.
fn explain_reference(one: &ReferenceComparison) -> String {
    let doubt = if one.is_doubtful { " !" } else { "" };
    let (from, date) = (one.reference.tool(), &one.reference.definition.date);
    match &one.likeness {
        Likeness::Differs(how) => format!("{}; {how}; {from}, {date}", one.reference.format_definition()),
        _ => format!(
            "here {}{doubt}; {}; {from}, {date}",
            format_time(one.here),
            one.reference.format_definition()
        ),
    }
}

/// Returns published figures beside the rows of a report, as Markdown.
pub fn beside_markdown(groups: &[ReferenceRowGroup]) -> String {
    let mut out = "\n## Published beside this machine\n\n".to_owned();
    if groups.is_empty() {
        return out + &format!("{NOTHING}\n");
    }
    out += "| row | machine | published | ratio | definition |\n|:--|:--|--:|--:|:--|\n";
    for (group, one) in groups.iter().flat_map(|group| group.all.iter().map(move |one| (group, one))) {
        let ratio = match one.likeness {
            Likeness::Differs(_) => String::new(),
            _ => times_as_long(one.ratio()),
        };
        let [row, machine, words] =
            [&group.row, &one.reference.machine, &explain_reference(one)].map(|text| escape(text));
        out += &format!(
            "| {row} | {machine} | {} {} | {ratio} | {words} |\n",
            published(one.reference.ns),
            one.sign()
        );
    }
    out + &format!("\n{}\n", escape(SIGNS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_judge::references::built_in;

    #[test]
    fn no_line_is_wider_than_the_terminal_and_all_differences_are_marked() {
        let report = fixture::report();
        let groups = ReferenceRowGroup::for_report(&report, built_in());
        for width in [60, 80, 200] {
            let options = DisplayOptions { width, ..DisplayOptions::default() };
            let text = format_comparison(&groups, &options);
            assert!(text.lines().all(|line| Text::plain(line).display_width() <= width), "{text}");
            assert!(text.contains("≠") && text.contains("½") && text.contains("iPhone X"), "{text}");
            let all: Vec<&Reference> = built_in().iter().collect();
            let list = listing(&all, &options);
            assert!(list.lines().all(|line| Text::plain(line).display_width() <= width), "{list}");
        }
        let markdown = beside_markdown(&groups);
        for line in markdown.lines().filter(|line| line.contains('≠') && line.starts_with('|')) {
            assert!(line.contains("≠ |  |"), "no ratio: {line}");
        }
        assert!(format_comparison(&[], &DisplayOptions::default()).contains(NOTHING));
    }
}
