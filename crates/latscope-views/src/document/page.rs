//! A document as an HTML page.

use super::{DocumentBlock, DocumentTable, ListMarker, ViewDocument};
use crate::column::{CellAlignment, PAGE, TableColumn};
use crate::figure::plot_element;
use crate::markup::{Element, element};
use crate::page::{details_element, html_document};
use crate::style::{ALARM, BOLD, DIM, GOOD, WARNING};
use crate::styled::Text;
use anstyle::Style;

/// Maximum number of columns of a readable table; further ones are in tables of their own.
const MOST_COLUMNS: usize = 14;

impl ViewDocument {
    /// Returns the document as a page. What is before the first heading of level 2 is its header.
    pub fn to_page(&self, title: &str) -> String {
        let mut parts: Vec<&DocumentBlock> = self.blocks_in(PAGE).collect();
        let is_section = |part: &&DocumentBlock| matches!(part, DocumentBlock::Heading(2, ..));
        let rest = parts.split_off(parts.iter().position(is_section).unwrap_or(parts.len()));
        let mut sections: Vec<Vec<&DocumentBlock>> = Vec::new();
        for part in rest {
            match sections.last_mut().filter(|_| !is_section(&part)) {
                Some(section) => section.push(part),
                None => sections.push(vec![part]),
            }
        }
        let sections = sections.into_iter().map(|parts| element("section").children(elements(parts, 1)));
        let header = element("header").children(elements(parts, 1));
        html_document(title, [header, element("main").children(sections)])
    }

    /// Returns the elements of the document below a heading of level 2.
    pub fn elements(&self) -> Vec<Element> {
        elements(self.blocks_in(PAGE), 3)
    }
}

/// Returns the elements of parts, with headings of `level` at most.
fn elements<'a>(parts: impl IntoIterator<Item = &'a DocumentBlock>, level: u8) -> Vec<Element> {
    let mut all: Vec<Element> = Vec::new();
    let mut list: Option<(ListMarker, Element)> = None;
    for part in parts {
        if let DocumentBlock::Item(mark, text) = part {
            let (_, items) = list.take_if(|(last, _)| last.style == mark.style).unwrap_or_else(|| {
                all.extend(list.take().map(|(_, items)| items));
                (*mark, add_class(element("ul"), mark.style))
            });
            list = Some((*mark, items.child(element("li").with_text(format!("{}{text}", mark.word)))));
            continue;
        }
        all.extend(list.take().map(|(_, items)| items));
        match part {
            DocumentBlock::Heading(own, text, about) => {
                let name = ["h1", "h2", "h3"][usize::from(level.max(*own)) - 1];
                all.push(element(name).with_text(text));
                all.extend((!about.is_empty()).then(|| element("p").with_text(about.plain_text())));
            }
            DocumentBlock::Text(style, text) => all.push(add_class(element("p"), *style).with_text(text)),
            DocumentBlock::Table(table) => all.extend(table.elements()),
            DocumentBlock::Figure(figure) => all.push(element("figure").child(plot_element(figure))),
            DocumentBlock::Details(name, parts) => {
                all.push(details_element(name, element("div").children(parts.elements())));
            }
            DocumentBlock::Item(..) | DocumentBlock::Led(..) | DocumentBlock::Gap => {}
        }
    }
    all.extend(list.map(|(_, items)| items));
    all
}

fn add_class(element: Element, style: Style) -> Element {
    match class(style) {
        "" => element,
        class => element.with_attr("class", class),
    }
}

/// Returns the class of a style.
pub(crate) fn class(style: Style) -> &'static str {
    match style {
        ALARM => "bad",
        WARNING => "doubt",
        GOOD => "good",
        DIM => "legend",
        _ => "",
    }
}

impl DocumentTable {
    /// Returns the table, with the notes on it below.
    pub fn elements(&self) -> Vec<Element> {
        let columns: Vec<&TableColumn> = self.columns_in(PAGE).collect();
        let meanings = columns.iter().map(|column| &column.meaning).filter(|text| !text.is_empty());
        let notes =
            self.notes.iter().chain(meanings).map(|text| add_class(element("p"), DIM).with_text(text));
        let tables = match columns.split_first() {
            Some((first, rest)) => {
                rest.chunks(MOST_COLUMNS - 1).map(|part| [&[*first], part].concat()).collect()
            }
            None => Vec::new(),
        };
        tables.iter().map(|columns| table_element(columns)).chain(notes).collect()
    }
}

/// Returns columns as a table. A wide table scrolls within itself and does not widen the page.
pub(crate) fn table_element(columns: &[&TableColumn]) -> Element {
    let head =
        columns.iter().map(|column| aligned("th", column.side).with_text(column.heading.plain_text().trim()));
    let rows = (0..columns.first().map_or(0, |column| column.cells.len()))
        .map(|row| element("tr").children(columns.iter().map(|column| cell_element(column, row))));
    let table = element("table")
        .child(element("thead").child(element("tr").children(head)))
        .child(element("tbody").children(rows));
    element("div").with_attr("class", "scrolled").child(table)
}

fn aligned(name: &'static str, side: CellAlignment) -> Element {
    if side == CellAlignment::Right { element(name).with_attr("class", "n") } else { element(name) }
}

fn cell_element(column: &TableColumn, row: usize) -> Element {
    let cell = aligned("td", column.side);
    match column.drawings.get(row) {
        Some(drawing) => cell.children(drawing.clone()),
        None => add_text(cell, &column.cells[row]),
    }
}

fn add_text(cell: Element, text: &Text) -> Element {
    text.pieces().fold(cell, |cell, (style, text)| match style {
        BOLD => cell.child(element("b").with_text(text)),
        ALARM | WARNING | GOOD => cell.child(add_class(element("span"), style).with_text(text)),
        _ => cell.with_text(text),
    })
}
