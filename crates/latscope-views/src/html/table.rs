//! Tables of the page.

use crate::grid::{Column, Side};
use crate::markup::{Element, element};

/// Returns a table with these headings. A wide table scrolls within itself and does not widen the page. Columns
/// without content are left out.
pub(crate) fn table(headings: &[(&str, Side)], rows: impl IntoIterator<Item = Element>) -> Element {
    let heading = |(text, side): &(&str, Side)| aligned(element("th"), *side).text(*text);
    let mut head = element("tr").children(headings.iter().map(heading));
    let mut rows: Vec<Element> = rows.into_iter().collect();
    let mut filled = vec![rows.is_empty(); headings.len()];
    for row in &rows {
        filled.iter_mut().zip(row.empty_ones()).for_each(|(filled, empty)| *filled |= !empty);
    }
    std::iter::once(&mut head).chain(&mut rows).for_each(|row| row.retain(&filled));
    let head = element("thead").child(head);
    let table = element("table").child(head).child(element("tbody").children(rows));
    element("div").with("class", "scrolled").child(table)
}

/// Returns a cell of a table, aligned to `side`.
pub(crate) fn cell(text: impl Into<String>, side: Side) -> Element {
    aligned(element("td"), side).text(text)
}

fn aligned(cell: Element, side: Side) -> Element {
    if side == Side::Right { cell.with("class", "n") } else { cell }
}

/// Returns the columns of a terminal's table that have content.
pub(super) fn of_columns(columns: &[Column]) -> Element {
    let headings: Vec<(String, Side)> =
        columns.iter().map(|column| (column.heading.content(), column.side)).collect();
    let headings: Vec<(&str, Side)> = headings.iter().map(|(text, side)| (text.as_str(), *side)).collect();
    let rows = (0..columns.first().map_or(0, |column| column.cells.len())).map(|row| {
        let cells = columns.iter().map(|column| cell(column.cells[row].content(), column.side));
        element("tr").children(cells)
    });
    table(&headings, rows)
}
