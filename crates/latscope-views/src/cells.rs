//! Contents of the columns in the survey's table.

use super::bar::DecadeScale;
use super::column::{CellAlignment, ColumnBuilder, TableColumn};
use super::footnotes::Footnotes;
use super::head::with_remedy;
use super::legend::{BLOCKED, REJECTED};
use super::rows::{ReferenceCell, SurveyRow};
use super::style::{self, BOLD, DIM, HEADING, PLAIN, WARNING, magnitude};
use super::styled::Text;
use crate::devices::DEVICES;
use latscope_core::catalogue::families;
use latscope_core::report::Semantics;
use latscope_core::units::{format_percent, format_rate, format_share, format_time, three_digits};

/// Share of rejected samples from which on a row mentions it.
const MANY_REJECTED: f64 = 0.1;

/// A column beside the operation's name. `table::wanted` has their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SurveyColumnKind {
    Family,
    Time,
    Marks,
    /// Interval in which the median of the next run is expected.
    Next,
    Cycles,
    /// Bar on a logarithmic scale, of this many columns.
    Bar(usize),
    /// A reference's number, perhaps with its ratio to this machine's number.
    Reference {
        at: usize,
        ratio: bool,
    },
}

/// The rows of a table, ready to be set in columns.
pub(super) struct SurveyTableCells<'a> {
    pub rows: &'a [SurveyRow],
    /// Short and full name of each reference.
    pub references: &'a [(String, String)],
    pub scale: DecadeScale,
    pub notes: Footnotes,
}

impl SurveyTableCells<'_> {
    /// Numbers the notes of the columns shown from the top row down.
    pub(crate) fn number_notes(&mut self, slots: &[SurveyColumnKind]) {
        let shown = self.shown_references(slots);
        for row in self.rows {
            if let Some(doubt) = doubt_reason(row) {
                self.notes.number_note(&doubt);
            }
            for note in shown.iter().filter_map(|at| row.references[*at].as_ref().and_then(reference_note)) {
                self.notes.number_note(note);
            }
        }
    }

    /// The references that have a column.
    pub fn shown_references(&self, slots: &[SurveyColumnKind]) -> Vec<usize> {
        let at = |slot: &SurveyColumnKind| match slot {
            SurveyColumnKind::Reference { at, .. } => Some(*at),
            _ => None,
        };
        slots.iter().filter_map(at).collect()
    }

    /// Width of the longest name with the text beside it.
    pub(crate) fn longest_label(&self) -> usize {
        let width = |row: &SurveyRow| {
            let aside = aside(row);
            let gap = if aside.is_empty() { 0 } else { 2 };
            Text::plain(&row.label).display_width() + gap + Text::plain(aside).display_width()
        };
        self.rows.iter().map(width).max().unwrap_or(0).max("operation".len())
    }

    /// The names of the operations, `width` columns wide, with rates and the like
    /// at the right of them.
    pub fn label_column(&self, width: usize) -> TableColumn {
        let cell = |row: &SurveyRow| match shown_aside(row, width) {
            Some(aside) => Text::plain(&row.label).with_aside(DIM, &aside, width),
            None => Text::plain(&row.label).wrap_to_width(width),
        };
        ColumnBuilder(self.rows).left_aligned("operation", cell)
    }

    /// Returns the meanings of the words beside names in `width` columns.
    pub fn words_aside(&self, width: usize) -> Vec<String> {
        let asides: Vec<String> = self.rows.iter().filter_map(|row| shown_aside(row, width)).collect();
        let used = |meaning: &&str| {
            let word = meaning.split(':').next().unwrap_or_default();
            asides.iter().any(|aside| aside.contains(word))
        };
        [BLOCKED, REJECTED].into_iter().filter(used).map(str::to_owned).collect()
    }

    /// Returns the names of the operations with rates and the like, for Markdown.
    pub fn labels_in_full(&self) -> TableColumn {
        ColumnBuilder(self.rows).left_aligned("operation", |row| match aside(row) {
            aside if aside.is_empty() => row.label.clone(),
            aside => format!("{} ({aside})", row.label),
        })
    }

    /// Returns a column with its unit in each cell, for Markdown.
    pub fn column_in_full(&mut self, slot: SurveyColumnKind) -> TableColumn {
        let next = |row: &SurveyRow| row.next.map(|(low, high)| format_range(low, high));
        match slot {
            SurveyColumnKind::Next => ColumnBuilder(self.rows).optional_column("next run", next),
            SurveyColumnKind::Reference { .. } => {
                let mut column = self.build_column(slot);
                column.cells.iter_mut().for_each(|cell| *cell = collapse_blanks(cell).into());
                TableColumn { side: CellAlignment::Right, ..column }
            }
            _ => self.build_column(slot),
        }
    }

    /// A column of the table.
    pub fn build_column(&mut self, slot: SurveyColumnKind) -> TableColumn {
        let rows = ColumnBuilder(self.rows);
        match slot {
            SurveyColumnKind::Family => rows.left_aligned("family", |row| Text::in_style(DIM, &row.family)),
            SurveyColumnKind::Time => rows.right("here", |row| {
                let longer = if row.longer { "> " } else { "" };
                Text::in_style(BOLD, format!("{longer}{}", format_duration(row.ns)))
            }),
            SurveyColumnKind::Next => rows.right("next run", |row| {
                let next = row.next.map(|(low, high)| in_unit_of(row.ns, low, high));
                Text::in_style(DIM, next.unwrap_or_default())
            }),
            SurveyColumnKind::Cycles => rows.optional_column("cycles", |row| row.cycles.map(cycles)),
            SurveyColumnKind::Bar(width) => {
                let column = rows.left_aligned("", |row| {
                    let (filled, rest) = self.scale.bar(row.ns, width);
                    Text::in_style(magnitude(row.ns), filled).with_piece(DIM, rest)
                });
                TableColumn { heading: Text::in_style(DIM, self.scale.format_heading(width)), ..column }
            }
            SurveyColumnKind::Marks => {
                let cells = self.rows.iter().map(|row| marks_cell(row, &mut self.notes)).collect();
                TableColumn::new(Text::default(), CellAlignment::Left, cells)
            }
            SurveyColumnKind::Reference { at, ratio } => self.reference(at, ratio),
        }
    }

    /// Number, ratio and mark of a reference, each in a column of its own
    /// within the column.
    fn reference(&mut self, at: usize, ratio: bool) -> TableColumn {
        let device = at < DEVICES.len();
        let parts: Vec<Option<[Text; 3]>> = self
            .rows
            .iter()
            .map(|row| {
                let cell = row.references[at].as_ref()?;
                Some(reference_parts(cell, device, ratio, &mut self.notes))
            })
            .collect();
        let widest = |part: usize| parts.iter().flatten().map(|p| p[part].display_width()).max().unwrap_or(0);
        let widths = [widest(0), widest(1), widest(2)];
        let cells =
            parts.into_iter().map(|parts| parts.map_or_else(Text::default, |p| join_cells(p, widths)));
        let name = Text::in_style(HEADING, &self.references[at].0);
        let before = widths[0].saturating_sub(name.display_width());
        TableColumn::new(
            Text::plain(" ".repeat(before)).append_text(name),
            CellAlignment::Left,
            cells.collect(),
        )
    }
}

/// Returns a text with one blank between its words.
fn collapse_blanks(text: &Text) -> String {
    text.plain_text().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A duration whose unit takes two columns, so that units stand in line.
fn format_duration(ns: f64) -> String {
    let text = format_time(ns);
    if text.ends_with(" s") { text + " " } else { text }
}

/// Returns the facts beside a name in `width` columns; `None` where they have no room.
fn shown_aside(row: &SurveyRow, width: usize) -> Option<String> {
    let aside = aside(row);
    // A bandwidth as the figure, or many rejected samples, are worth a further line.
    let needed = row.rate.is_some() && row.family != families::FILE || row.rejected >= MANY_REJECTED;
    let taken = Text::plain(&row.label).display_width() + 2 + Text::plain(&aside).display_width();
    (needed || taken <= width).then_some(aside)
}

/// Returns the facts of a row that have no column: the rate, the blocked share, and a high share of rejected
/// samples.
pub(super) fn aside(row: &SurveyRow) -> String {
    let mut parts = Vec::new();
    parts.extend(row.rate.map(format_rate));
    parts.extend(row.blocked.map(|share| format!("blocked {}", format_percent(share))));
    if row.rejected >= MANY_REJECTED {
        parts.push(format!("rejected {}", format_share(row.rejected)));
    }
    parts.join(", ")
}

/// Returns the reason to doubt a row, with its remedy; `None` if there is no doubt.
pub(super) fn doubt_reason(row: &SurveyRow) -> Option<String> {
    let early = row.incomplete.then_some("the run ended before it was measured in full");
    let doubtful =
        row.level.is_doubtful().then(|| row.reason.as_deref().unwrap_or("degraded, no reason is given"));
    let text = [doubtful, early].into_iter().flatten().collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then(|| with_remedy(&text, row.remedy.as_deref()))
}

/// Returns the note on a reference's number; `None` if the number compares in the usual way.
pub(super) fn reference_note(cell: &ReferenceCell) -> Option<&str> {
    let usual = cell.same && (cell.part == 1.0 || cell.part == 0.5);
    cell.note.as_deref().filter(|_| !usual)
}

/// Returns the sign for the meaning of a duration.
pub(super) fn times_mark(times: Semantics) -> &'static str {
    match times {
        Semantics::RoundTrip => "RT",
        Semantics::OneWay => "→",
        Semantics::Operation => "",
    }
}

fn marks_cell(row: &SurveyRow, notes: &mut Footnotes) -> Text {
    let mut cell = Text::in_style(DIM, times_mark(row.times));
    if let Some(doubt) = doubt_reason(row) {
        let sign = if row.level.is_doubtful() { "!" } else { "~" };
        cell = cell.with_piece(WARNING, format!("{sign}{}", notes.note_mark(&doubt)));
    }
    cell
}

/// A range in the unit of the row's own duration, without naming it.
fn in_unit_of(ns: f64, low: f64, high: f64) -> String {
    let unit = [1e9, 1e6, 1e3].into_iter().find(|unit| ns >= 0.9995 * unit).unwrap_or(1.0);
    format!("{}-{}", three_digits(low / unit), three_digits(high / unit))
}

/// Formats a range: `1.67-1.93 ns`, or `980 ns-1.20 µs` where the ends have different units.
pub(super) fn format_range(low: f64, high: f64) -> String {
    let (from, to) = (format_time(low), format_time(high));
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}-{to}"),
        _ => format!("{from}-{to}"),
    }
}

/// Cycles with as many digits as the method is good for: `0.25`, `16.1`,
/// `1420`, `118k`, `21M`.
pub(super) fn cycles(cycles: f64) -> String {
    match cycles {
        c if c < 0.995 => format!("{c:.2}"),
        c if c < 99.95 => format!("{c:.1}"),
        c if c < 9999.5 => format!("{c:.0}"),
        c if c < 999.5e3 => format!("{:.0}k", c / 1e3),
        c => format!("{:.0}M", c / 1e6),
    }
}

/// Formats a ratio of durations: `0.04×`, `3.8×`, `124×`, `12k×`.
pub(super) fn times_as_long(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "-".to_owned(),
        r if r < 0.0995 => format!("{r:.2}×"),
        r if r < 9.95 => format!("{r:.1}×"),
        r if r < 9999.5 => format!("{r:.0}×"),
        r => format!("{:.0}k×", r / 1e3),
    }
}

/// A published duration, as short as it is precise: `1.3µs`. It has one or two
/// digits, so no zeros are added.
pub(super) fn published(ns: f64) -> String {
    let text = format_time(ns);
    let Some((number, unit)) = text.split_once(' ') else { return text };
    let short =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{short}{unit}")
}

fn reference_parts(cell: &ReferenceCell, device: bool, ratio: bool, notes: &mut Footnotes) -> [Text; 3] {
    let number = if device { published(cell.ns) } else { format_duration(cell.ns) };
    let note = reference_note(cell).map(|note| notes.note_mark(note)).unwrap_or_default();
    if !cell.same {
        let mark = Text::in_style(WARNING, format!("{}{note}", cell.sign));
        let number = Text::in_style(DIM, number);
        return if ratio { [number, mark, Text::default()] } else { [number, Text::default(), mark] };
    }
    let mark = if cell.part == 0.5 { "½" } else { &note };
    if !ratio {
        return [Text::plain(number), Text::default(), Text::in_style(DIM, mark)];
    }
    let factor = Text::in_style(style::ratio_style(cell.ratio), times_as_long(cell.ratio));
    [Text::plain(number).with_piece(DIM, mark), factor, Text::default()]
}

/// Number and ratio to the right, mark to the left.
fn join_cells([number, ratio, mark]: [Text; 3], widths: [usize; 3]) -> Text {
    let blanks = |count: usize| " ".repeat(count);
    let mut cell = Text::plain(blanks(widths[0] - number.display_width())).append_text(number);
    if widths[1] > 0 {
        cell = cell.with_piece(PLAIN, blanks(1 + widths[1] - ratio.display_width())).append_text(ratio);
    }
    let after = widths[2] - mark.display_width();
    cell.append_text(mark).with_piece(PLAIN, blanks(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_published_numbers_are_short() {
        for (ratio, text) in [(0.04, "0.04×"), (1.0, "1.0×"), (124.4, "124×"), (12_345.0, "12k×")] {
            assert_eq!(times_as_long(ratio), text);
        }
        assert_eq!(times_as_long(f64::INFINITY), "-");
        for (ns, text) in [(1.0, "1ns"), (3.2e3, "3.2µs"), (150e3, "150µs"), (1e6, "1ms")] {
            assert_eq!(published(ns), text);
        }
    }

    #[test]
    fn a_spread_names_its_unit_once_where_it_can() {
        assert_eq!(format_range(1.67, 1.93), "1.67-1.93 ns");
        assert_eq!(format_range(980.0, 1_200.0), "980 ns-1.20 µs");
        assert_eq!(in_unit_of(1_010.0, 980.0, 1_200.0), "0.98-1.20");
        assert_eq!(in_unit_of(1.0, 0.9, 1.2e3), "0.90-1200");
    }

    #[test]
    fn cycles_keep_the_digits_that_mean_something() {
        assert_eq!([0.25, 5.0, 230.4, 118e3, 21e6].map(cycles), ["0.25", "5.0", "230", "118k", "21M"]);
    }
}
