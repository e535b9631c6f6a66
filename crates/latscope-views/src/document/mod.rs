//! A view as a sequence of parts, of which each form of output has one writer.
//!
//! What a view shows, in which order and under which name is said once, in the function that makes its document. A
//! part or a column that some forms lack names those that have it.

mod csv;
mod markdown;
mod page;
mod terminal;

pub(crate) use csv::{columns_csv, records_csv};
pub use markdown::escape;
pub(crate) use page::class;

use crate::column::{CSV, FILES, Forms, SHOWN, TERMINAL, TableColumn};
use crate::figure::CurvePlot;
use crate::grid::SHORTEST;
use crate::style::{DIM, PLAIN, WARNING};
use crate::styled::Text;
use anstyle::Style;

/// Parts from top to bottom, with the forms in which each stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct ViewDocument(Vec<(Forms, DocumentBlock)>);

/// Block of a document.
#[derive(Debug, Clone)]
pub(crate) enum DocumentBlock {
    /// Heading with a text on its subject, which may be empty. One of level 1 is the title, which a terminal lacks.
    Heading(u8, String, Text),
    /// Paragraph in one style.
    Text(Style, String),
    /// Item of a list.
    Item(ListMarker, String),
    /// Item with its first words, which are bold.
    Led(String, String),
    /// Table of rows and columns.
    Table(DocumentTable),
    /// Figure: a drawing on the page, a plot on a terminal. Markdown has none.
    Figure(CurvePlot),
    /// Parts that a reader of the page has to open, with their name.
    Details(String, ViewDocument),
    /// Empty line on a terminal.
    Gap,
}

/// Kind of a list's item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ListMarker {
    /// Sign on a terminal.
    pub sign: &'static str,
    /// Word for it elsewhere.
    pub word: &'static str,
    pub style: Style,
}

/// Item without a sign.
pub(crate) const FACT: ListMarker = ListMarker { sign: "", word: "", style: PLAIN };
pub(crate) const DIFFERS: ListMarker = ListMarker { sign: "≠  ", word: "differs: ", style: WARNING };
pub(crate) const INDENTED: ListMarker = ListMarker { sign: "  ", word: "", style: PLAIN };
pub(crate) const NOTE: ListMarker = ListMarker { sign: "!  ", word: "note: ", style: WARNING };

/// Line below a table of a family that has not room for all columns.
pub(crate) const WIDER: &str = "More figures in a wider terminal, and all of them with --csv or --json.";

/// Columns with what is said below them.
#[derive(Debug, Clone)]
pub(crate) struct DocumentTable {
    pub columns: Vec<TableColumn>,
    /// Maximum number of rows on a terminal.
    pub most: usize,
    /// Columns that the names in the first column take at least.
    pub least: usize,
    /// Texts below the table.
    pub notes: Vec<String>,
    /// Line for a terminal that is too narrow for all columns; if it is empty, the line names the missing columns.
    pub wider: &'static str,
}

impl DocumentTable {
    /// Returns a table of all rows, without the columns that are empty in each of them.
    pub fn new(mut columns: Vec<TableColumn>) -> DocumentTable {
        columns.retain(|column| column.forms.has_form(CSV) || !column.is_empty());
        DocumentTable { columns, most: usize::MAX, least: SHORTEST, notes: Vec::new(), wider: "" }
    }

    /// Returns the columns of a form.
    fn columns_in(&self, form: Forms) -> impl Iterator<Item = &TableColumn> {
        self.columns.iter().filter(move |column| column.forms.has_form(form) && !column.is_empty())
    }
}

/// Returns the line on rows that are left out.
fn left_out(rows: usize) -> Option<String> {
    (rows > 0).then(|| format!("… and {rows} more: --all shows them"))
}

impl DocumentBlock {
    /// Returns a heading of a level, 1 for the title.
    pub fn heading(level: u8, text: impl Into<String>) -> DocumentBlock {
        DocumentBlock::Heading(level, text.into(), Text::default())
    }
}

impl ViewDocument {
    /// Returns a table with its heading and the note on it.
    pub fn of_table(heading: &str, columns: Vec<TableColumn>, about: String) -> ViewDocument {
        let table = DocumentTable { least: usize::MAX, notes: vec![about], ..DocumentTable::new(columns) };
        ViewDocument(vec![(SHOWN, DocumentBlock::heading(2, heading)), (SHOWN, DocumentBlock::Table(table))])
    }

    /// Adds a part to the forms for a reader.
    pub fn add_block(&mut self, part: DocumentBlock) {
        self.add_in_forms(SHOWN, part);
    }

    /// Adds a part to some forms.
    pub fn add_in_forms(&mut self, forms: Forms, part: DocumentBlock) {
        self.0.push((forms, part));
    }

    /// Adds a heading of a level, 1 for the title.
    pub fn add_heading(&mut self, level: u8, text: impl Into<String>) {
        self.add_block(DocumentBlock::heading(level, text));
    }

    /// Adds an item for each text.
    pub fn items(&mut self, mark: ListMarker, texts: impl IntoIterator<Item = String>) {
        self.items_on(SHOWN, mark, texts);
    }

    /// Adds an item for each text to some forms.
    pub fn items_on(&mut self, forms: Forms, mark: ListMarker, texts: impl IntoIterator<Item = String>) {
        self.0.extend(texts.into_iter().map(|text| (forms, DocumentBlock::Item(mark, text))));
    }

    /// Adds an item for each text: on a terminal at most so many.
    pub fn most_items(&mut self, mark: ListMarker, texts: Vec<String>, most: usize) {
        let more = left_out(texts.len().saturating_sub(most));
        for (at, text) in texts.into_iter().enumerate() {
            self.add_in_forms(if at < most { SHOWN } else { FILES }, DocumentBlock::Item(mark, text));
        }
        if let Some(text) = more {
            self.add_in_forms(TERMINAL, DocumentBlock::Item(ListMarker { style: DIM, ..mark }, text));
        }
    }

    /// Adds a table below what is there.
    pub fn add_table(&mut self, table: DocumentTable) {
        self.add_block(DocumentBlock::Table(table));
    }

    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the document has no part.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a table that a reader of the page has to open, if it has rows.
    pub fn add_details(&mut self, forms: Forms, name: String, table: DocumentTable) {
        if !table.columns.iter().all(TableColumn::is_empty) {
            let parts = ViewDocument(vec![(forms, DocumentBlock::Table(table))]);
            self.add_in_forms(forms, DocumentBlock::Details(name, parts));
        }
    }

    /// Adds the parts of another document.
    pub fn append(&mut self, other: ViewDocument) {
        self.0.extend(other.0);
    }

    /// Returns the parts of a form.
    fn blocks_in(&self, form: Forms) -> impl Iterator<Item = &DocumentBlock> {
        self.0.iter().filter(move |(forms, _)| forms.has_form(form)).map(|(_, part)| part)
    }
}
