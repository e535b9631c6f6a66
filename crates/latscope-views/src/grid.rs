//! Columns side by side on a terminal.

use super::DisplayOptions;
use super::column::{CellAlignment, TableColumn};
use super::style::DIM;
use super::styled::{Text, wrap};

/// Minimum width of the first column of a grid.
pub(super) const SHORTEST: usize = 14;

/// Returns columns side by side with `gap` blanks between them, and a rule under the headings. No line is wider
/// than the terminal: the names in the first column are broken into lines, and if that is not enough, the last
/// columns are left out. A line below says so.
pub(super) fn grid(columns: &[TableColumn], gap: usize, options: &DisplayOptions) -> String {
    let DisplayOptions { width, color, .. } = *options;
    let mut widths: Vec<usize> = columns.iter().map(TableColumn::width).collect();
    let sum = |widths: &[usize]| widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1);
    while widths.len() > 1 && sum(&widths) - widths[0] + widths[0].min(SHORTEST) > width {
        widths.pop();
    }
    let (columns, left_out) = columns.split_at(widths.len());
    let total = sum(&widths);
    if let Some(first) = widths.first_mut() {
        *first = first.saturating_sub(total.saturating_sub(width)).max(1);
    }
    let mut out = String::new();
    let headings: Vec<&Text> = columns.iter().map(|c| &c.heading).collect();
    write_row(&mut out, &headings, columns, &widths, gap, color);
    let rule = Text::in_style(DIM, "─".repeat(total.min(width)));
    rule.write_pieces(&mut out, color);
    out.push('\n');
    for at in 0..columns.first().map_or(0, |c| c.cells.len()) {
        let cells: Vec<&Text> = columns.iter().map(|c| &c.cells[at]).collect();
        write_row(&mut out, &cells, columns, &widths, gap, color);
    }
    out += &format_omitted(left_out, options);
    out
}

/// Returns the line that names columns without room; empty without such columns.
pub(super) fn format_omitted(left_out: &[TableColumn], options: &DisplayOptions) -> String {
    let names: Vec<String> = left_out.iter().map(|column| column.heading.plain_text()).collect();
    let names: Vec<&str> = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    match names.is_empty() {
        true => String::new(),
        false => {
            let text = format!("In a wider terminal also: {}.", names.join(", "));
            wrap(&Text::default(), &text, DIM, options)
        }
    }
}

/// Returns the places of the columns that fit beside the first, which may shrink to `least`: columns are added in the
/// order of their ranks, all those of a rank or none.
pub(super) fn fit_columns(columns: &[TableColumn], gap: usize, width: usize, least: usize) -> Vec<usize> {
    let taken = |at: usize| {
        let own = columns[at].width();
        if at == 0 { own.min(least) } else { gap + own }
    };
    let mut ranks: Vec<usize> = columns.iter().map(|column| column.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut kept = vec![0];
    for rank in ranks {
        let mut more = kept.clone();
        for at in (1..columns.len()).filter(|at| columns[*at].rank == rank && !columns[*at].is_empty()) {
            let is_same = |kept: &usize| *kept < at && columns[*kept + 1..=at].iter().all(|c| c.is_wider);
            match more.iter_mut().find(|kept| is_same(kept)) {
                Some(narrower) => *narrower = at,
                None if columns[at].is_wider => {}
                None => more.push(at),
            }
        }
        if rank == 0 || more.iter().map(|at| taken(*at)).sum::<usize>() <= width {
            kept = more;
        }
    }
    kept.sort_unstable();
    kept
}

/// Writes a row of cells, in as many lines as the cell with the most lines has.
fn write_row(
    out: &mut String,
    cells: &[&Text],
    columns: &[TableColumn],
    widths: &[usize],
    gap: usize,
    color: bool,
) {
    let cells: Vec<Vec<Text>> =
        cells.iter().zip(widths).map(|(cell, width)| cell.wrap_to_width(*width).split_lines()).collect();
    for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
        let cells: Vec<Text> = cells.iter().map(|lines| lines.get(at).cloned().unwrap_or_default()).collect();
        write_line(out, cells, columns, widths, gap, color);
    }
}

fn write_line(
    out: &mut String,
    cells: Vec<Text>,
    columns: &[TableColumn],
    widths: &[usize],
    gap: usize,
    color: bool,
) {
    let mut blanks = 0;
    let last = cells.iter().rposition(|cell| !cell.is_blank());
    for (at, ((mut cell, column), width)) in cells.into_iter().zip(columns).zip(widths).enumerate() {
        let free = width.saturating_sub(cell.display_width());
        if Some(at) >= last {
            cell.trim_end();
        }
        let (before, after) = if column.side == CellAlignment::Right { (free, 0) } else { (0, free) };
        blanks += before;
        if cell.display_width() > 0 {
            out.push_str(&" ".repeat(blanks));
            cell.write_pieces(out, color);
            blanks = 0;
        }
        blanks += after + gap;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_broken_between_words_and_cells_stand_on_their_side() {
        let columns = [
            TableColumn::new(
                Text::plain("operation"),
                CellAlignment::Left,
                vec![Text::plain("a rather long label, 1 ms")],
            ),
            TableColumn::new(Text::plain("ns"), CellAlignment::Right, vec![Text::plain("1")]),
        ];
        let text = grid(&columns, 1, &DisplayOptions { width: 17, ..DisplayOptions::default() });
        assert_eq!(text, "operation      ns\n─────────────────\na rather long   1\n  label, 1 ms\n");
    }

    #[test]
    fn a_column_that_finds_no_room_is_named() {
        let column = |name: &str, cell: &str| {
            TableColumn::new(Text::plain(name), CellAlignment::Left, vec![Text::plain(cell)])
        };
        let columns = [
            column("operation", "a name of some length"),
            column("p50", "1.00 ns"),
            column("max", "2.00 ns"),
        ];
        let text = grid(&columns, 1, &DisplayOptions { width: 24, ..DisplayOptions::default() });
        assert!(text.ends_with("In a wider terminal\nalso: max.\n"), "{text}");
    }
}
