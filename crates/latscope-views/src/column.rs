//! Columns of tables: what stands in them, and in which forms of a document they stand.

use super::markup::Element;
use super::style::HEADING;
use super::styled::Text;

/// Forms in which a part of a document stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forms(u8);

pub(super) const TERMINAL: Forms = Forms(1);
pub(super) const MARKDOWN: Forms = Forms(2);
pub(super) const PAGE: Forms = Forms(4);
pub(super) const CSV: Forms = Forms(8);
/// Files for a reader, which have room.
pub(super) const FILES: Forms = MARKDOWN.and(PAGE);
/// Every form for a reader.
pub(super) const SHOWN: Forms = TERMINAL.and(FILES);

impl Forms {
    /// Returns these forms and others.
    pub const fn and(self, other: Forms) -> Forms {
        Forms(self.0 | other.0)
    }

    /// Returns true if a form is among these.
    pub fn has_form(self, form: Forms) -> bool {
        self.0 & form.0 != 0
    }
}

/// Side of its column on which a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellAlignment {
    Left,
    Right,
}

/// Column of a table: its heading and a cell for each row.
#[derive(Debug, Clone)]
pub(super) struct TableColumn {
    pub heading: Text,
    pub side: CellAlignment,
    pub cells: Vec<Text>,
    /// Drawings in the place of texts; the page alone has them.
    pub drawings: Vec<Option<Element>>,
    /// Order in which columns are added to a terminal while they fit. Columns of one rank stand or fall together, those
    /// of rank 0 always stand.
    pub rank: usize,
    /// True for a wider form of the column before it, which it replaces if there is room.
    pub is_wider: bool,
    /// Forms in which the column stands.
    pub forms: Forms,
    /// Name of the column in CSV.
    pub field: &'static str,
    /// Explanation of the heading; may be empty.
    pub meaning: String,
}

impl TableColumn {
    pub fn new(heading: Text, side: CellAlignment, cells: Vec<Text>) -> TableColumn {
        let (drawings, meaning) = (Vec::new(), String::new());
        TableColumn {
            heading,
            side,
            cells,
            drawings,
            rank: 0,
            is_wider: false,
            forms: SHOWN,
            field: "",
            meaning,
        }
    }

    /// Returns the column with a rank among those that are added while they fit.
    pub fn rank(self, rank: usize) -> TableColumn {
        TableColumn { rank, ..self }
    }

    /// Returns the column in these forms alone.
    pub fn for_forms(self, forms: Forms) -> TableColumn {
        TableColumn { forms, ..self }
    }

    /// Returns the column with a name in CSV, where it stands, too.
    pub fn with_csv_field(self, field: &'static str) -> TableColumn {
        TableColumn { field, forms: self.forms.and(CSV), ..self }
    }

    /// Returns the column with an explanation of its heading.
    pub fn meaning(self, meaning: impl Into<String>) -> TableColumn {
        TableColumn { meaning: meaning.into(), ..self }
    }

    /// Returns the columns that the widest cell or the heading takes.
    pub fn width(&self) -> usize {
        let cells = self.cells.iter().map(Text::display_width).max().unwrap_or(0);
        cells.max(self.heading.display_width())
    }

    /// Returns true if all cells of the column are empty.
    pub fn is_empty(&self) -> bool {
        self.cells.iter().all(Text::is_empty) && self.drawings.iter().all(Option::is_none)
    }
}

/// Rows of a table, from which its columns are made.
pub(super) struct ColumnBuilder<'a, R>(pub &'a [R]);

impl<'a, R> ColumnBuilder<'a, R> {
    fn build_column<T: Into<Text>>(
        &self,
        heading: &str,
        side: CellAlignment,
        cell: impl Fn(&'a R) -> T,
    ) -> TableColumn {
        let cells = self.0.iter().map(|row| cell(row).into()).collect();
        TableColumn::new(Text::in_style(HEADING, heading), side, cells)
    }

    /// Returns a column with its cells at the left.
    pub fn left_aligned<T: Into<Text>>(&self, heading: &str, cell: impl Fn(&'a R) -> T) -> TableColumn {
        self.build_column(heading, CellAlignment::Left, cell)
    }

    /// Returns a column with its cells at the right.
    pub fn right<T: Into<Text>>(&self, heading: &str, cell: impl Fn(&'a R) -> T) -> TableColumn {
        self.build_column(heading, CellAlignment::Right, cell)
    }

    /// Returns a column of figures that some rows lack.
    pub fn optional_column(&self, heading: &str, cell: impl Fn(&'a R) -> Option<String>) -> TableColumn {
        self.right(heading, |row| cell(row).unwrap_or_default())
    }

    /// Returns a column that only CSV has.
    pub fn field<T: Into<Text>>(&self, name: &'static str, cell: impl Fn(&'a R) -> T) -> TableColumn {
        self.left_aligned("", cell).with_csv_field(name).for_forms(CSV)
    }

    /// Returns a column of drawings, which the page has.
    pub fn drawing(&self, heading: &str, cell: impl Fn(&'a R) -> Option<Element>) -> TableColumn {
        let drawings = self.0.iter().map(cell).collect();
        TableColumn { drawings, ..self.left_aligned(heading, |_| "").for_forms(PAGE) }
    }
}
