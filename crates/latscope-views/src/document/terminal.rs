//! A document on a terminal.

use super::{DocumentBlock, DocumentTable, ViewDocument, left_out};
use crate::column::{TERMINAL, TableColumn};
use crate::grid::{fit_columns, format_omitted, grid};
use crate::style::{BOLD, DIM, PLAIN};
use crate::styled::{Text, wrap};
use crate::{DisplayOptions, figure};

/// Columns of a name up to which it stays on one line on any terminal.
const NAME: usize = 34;

/// Maximum width of a plot; a wider plot is no easier to read.
const PLOT_WIDTH: usize = 110;
const PLOT_HEIGHT: u16 = 20;

impl ViewDocument {
    /// Returns the document as lines of at most `options.width` columns.
    pub fn to_text(&self, options: &DisplayOptions) -> String {
        let mut out = String::new();
        self.write_text(&mut out, options);
        out
    }

    /// Adds the document to a text.
    pub fn write_text(&self, out: &mut String, options: &DisplayOptions) {
        for part in self.blocks_in(TERMINAL) {
            write_block(out, part, options);
        }
    }
}

fn write_block(out: &mut String, part: &DocumentBlock, options: &DisplayOptions) {
    let prose = |first: &Text, text: &str, style| wrap(first, text, style, options);
    match part {
        DocumentBlock::Heading(1, ..) => {}
        DocumentBlock::Heading(_, text, about) => {
            add_blank_line(out);
            *out += &match about.pieces().next() {
                None => prose(&Text::default(), text, BOLD),
                Some((style, _)) => {
                    prose(&Text::in_style(BOLD, format!("{text}  ")), &about.plain_text(), style)
                }
            };
        }
        DocumentBlock::Text(style, text) => *out += &prose(&Text::default(), text, *style),
        DocumentBlock::Item(mark, text) => {
            *out += &prose(&Text::in_style(mark.style, mark.sign), text, PLAIN)
        }
        DocumentBlock::Led(lead, text) => {
            let first = Text::plain("  ").with_piece(BOLD, lead).with_piece(PLAIN, "  ");
            *out += &prose(&first, text, PLAIN);
        }
        DocumentBlock::Table(table) => *out += &table.to_text(options),
        DocumentBlock::Figure(figure) => {
            add_blank_line(out);
            *out += &figure::format_figure(figure, options.width.min(PLOT_WIDTH) as u16, PLOT_HEIGHT);
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
        DocumentBlock::Details(_, parts) => parts.write_text(out, options),
        DocumentBlock::Gap => add_blank_line(out),
    }
}

/// Adds an empty line, unless there is one or the text begins.
fn add_blank_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

impl DocumentTable {
    /// Returns the table in as many columns as fit.
    pub fn to_text(&self, options: &DisplayOptions) -> String {
        let mut columns: Vec<TableColumn> = self.columns_in(TERMINAL).cloned().collect();
        let rows = columns.first().map_or(0, |column| column.cells.len());
        columns.iter_mut().for_each(|column| column.cells.truncate(self.most));
        columns.retain(|column| !column.is_empty());
        let Some(first) = columns.first_mut() else { return String::new() };
        let name = NAME.max(options.width / 3);
        first
            .cells
            .iter_mut()
            .filter(|_| self.least < name)
            .for_each(|cell| *cell = cell.wrap_to_width(name));
        let places = fit_columns(&columns, 2, options.width, self.least);
        let (shown, rest): (Vec<_>, Vec<_>) =
            columns.into_iter().enumerate().partition(|(at, _)| places.contains(at));
        let [shown, rest] =
            [shown, rest].map(|part| part.into_iter().map(|(_, column)| column).collect::<Vec<_>>());
        let mut out = grid(&shown, 2, options);
        let meanings: Vec<&str> =
            shown.iter().map(|column| column.meaning.as_str()).filter(|text| !text.is_empty()).collect();
        let meanings = Some(meanings.join(" · ")).filter(|text| !text.is_empty());
        let more = left_out(rows.saturating_sub(self.most));
        for text in more.into_iter().chain(self.notes.iter().cloned()).chain(meanings) {
            out += &wrap(&Text::default(), &text, DIM, options);
        }
        match self.wider {
            "" => out += &format_omitted(&rest, options),
            text if !rest.is_empty() => out += &wrap(&Text::default(), text, DIM, options),
            _ => {}
        }
        out
    }
}
