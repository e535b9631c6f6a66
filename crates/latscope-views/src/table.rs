//! Table of the survey on a terminal: fastest row to slowest, beside the reference devices. Columns that do not
//! fit are left out, the least useful first.

use super::bar::Scale as BarScale;
use super::cells::{Cells, Slot};
use super::column::Column;
use super::document::{Document, Table};
use super::footnotes::{Footnotes, superscript};
use super::grid::{fitting, grid};
use super::legend::{Signs, next_run};
use super::rows::{ReferenceCell, Row, nothing_in_common, reference_names, sorted_rows};
use super::style::{DIM, PLAIN, WARNING};
use super::styled::{Text, filled, wrap};
use super::{Options, Scale, Sort, human, unmeasured};
use crate::devices::DEVICES;
use latscope_core::report::Report;

/// Minimum width of the name of an operation, whatever columns could stand beside it.
const LABEL: usize = 33;

/// The table with its footnotes, then what could not be measured.
pub fn table(report: &Report, beside: &[&Report], options: &Options) -> String {
    let rows = sorted_rows(report, beside, options);
    let mut out = String::new();
    if rows.is_empty() {
        out += "No row has a number.\n";
    } else if options.scale == Scale::Human {
        human::document(report, &rows).write(&mut out, options);
    } else {
        let references = reference_names(report, beside);
        let wanted = wanted(references.len(), options.sort);
        let gap = if options.width >= 150 { 2 } else { 1 };
        out += &laid_out(report, &rows, &references, &wanted, gap, options);
    }
    for text in nothing_in_common(&rows, beside) {
        out += &wrap(&Text::styled(WARNING, "note  "), &text, PLAIN, options);
    }
    unmeasured::lists(report).write(&mut out, options);
    out
}

/// Column with its rank, and true if it is a wider form of the one before it.
type Wanted = (Slot, usize, bool);

/// Returns the columns beside the operation's name, each with its rank: reports beside come first.
fn wanted(references: usize, sort: Sort) -> Vec<Wanted> {
    let [classic, iphone_5s, iphone_6s_plus, iphone_x] = [1, 4, 5, 3].map(|rank| references + rank);
    let devices = [classic, iphone_5s, iphone_6s_plus, iphone_x].into_iter().enumerate();
    let devices = devices.flat_map(|(at, rank)| {
        let reference = |ratio| Slot::Reference { at, ratio };
        [(reference(false), rank, false), (reference(true), references + 7, true)]
    });
    let beside = (DEVICES.len()..references).map(|at| (Slot::Reference { at, ratio: true }, at, false));
    let columns = [
        (Slot::Family, if sort == Sort::Family { 0 } else { references + 8 }, false),
        (Slot::Time, 0, false),
        (Slot::Marks, 0, false),
        (Slot::Next, references, false),
        (Slot::Cycles, references + 6, false),
        (Slot::Bar(8), references + 2, false),
        (Slot::Bar(12), references + 9, true),
        (Slot::Bar(20), references + 10, true),
        (Slot::Bar(32), references + 11, true),
    ];
    columns.into_iter().chain(devices).chain(beside).collect()
}

/// Returns the table with all columns and its footnotes, for Markdown.
pub(super) fn document(report: &Report, rows: &[Row], references: &[(String, String)]) -> Document {
    let mut cells = Cells { rows, references, scale: BarScale::of(rows), notes: Footnotes::default() };
    let slots = wanted(references.len(), Sort::Value).into_iter().map(|(slot, ..)| slot);
    let is_text = |slot: &Slot| !matches!(slot, Slot::Bar(_) | Slot::Reference { ratio: false, .. });
    let mut slots: Vec<Slot> = slots.filter(is_text).collect();
    cells.number_notes(&slots);
    slots.retain(|slot| !cells.column(*slot).is_empty());
    let mut columns = vec![cells.labels_in_full()];
    columns.extend(slots.iter().map(|slot| cells.column_in_full(*slot)));
    let mut signs = signs(report, &cells, &slots, "");
    signs.extend(cells.words_aside(usize::MAX));
    let mut notes = vec![signs.join(" · ")];
    notes.extend(cells.notes.iter().map(|(number, text)| format!("{} {text}", superscript(number))));
    let mut document = Document::default();
    document.table(Table { notes, ..Table::new(columns) });
    document
}

/// Returns rows without references: name, figure, doubt, next run and bar, with their legend.
pub(super) fn short(report: &Report, rows: &[Row], options: &Options) -> String {
    let wanted = [(Slot::Time, 0), (Slot::Marks, 0), (Slot::Next, 1), (Slot::Bar(BAR), 2)];
    laid_out(report, rows, &[], &wanted.map(|(slot, rank)| (slot, rank, false)), 1, options)
}

/// Columns of a bar of a table of few columns.
const BAR: usize = 16;

/// Returns the columns that fit beside the operation's name, and their legend.
fn laid_out(
    report: &Report,
    rows: &[Row],
    references: &[(String, String)],
    wanted: &[Wanted],
    gap: usize,
    options: &Options,
) -> String {
    let mut cells = Cells { rows, references, scale: BarScale::of(rows), notes: Footnotes::default() };
    let longest = cells.longest_label();
    let mut columns = vec![cells.labels(longest)];
    for (slot, rank, is_wider) in wanted {
        columns.push(Column { rank: *rank, is_wider: *is_wider, ..cells.column(*slot) });
    }
    let places = fitting(&columns, gap, options.width, longest.min(LABEL));
    let slots: Vec<Slot> = places[1..].iter().map(|at| wanted[at - 1].0).collect();
    // Anew, so that notes are numbered from the top and only those of columns
    // that are shown.
    cells.notes = Footnotes::default();
    cells.number_notes(&slots);
    let mut columns: Vec<Column> = slots.iter().map(|slot| cells.column(*slot)).collect();
    let taken: usize = columns.iter().map(|column| gap + column.width()).sum();
    let room = options.width.saturating_sub(taken).clamp(1, longest.max(1));
    columns.insert(0, cells.labels(room));
    let mut signs = signs(report, &cells, &slots, ", in the unit of the row");
    signs.extend(cells.words_aside(room));
    grid(&columns, gap, options) + &legend(signs, &cells, options)
}

/// Returns the meanings of the signs and words that occur in the table, and the footnotes.
fn legend(signs: Vec<String>, cells: &Cells, options: &Options) -> String {
    let mut out = String::new();
    for line in filled(signs, " · ", options.width) {
        out += &wrap(&Text::default(), &line, DIM, options);
    }
    for (number, text) in cells.notes.iter() {
        let mark = Text::styled(DIM, format!("{:>3} ", superscript(number)));
        out += &wrap(&mark, text, DIM, options);
    }
    out
}

/// Returns the meanings of the signs in these columns; `unit` says in which unit the next run is.
fn signs(report: &Report, cells: &Cells, slots: &[Slot], unit: &str) -> Vec<String> {
    let shown = cells.shown(slots);
    let cell = |holds: &dyn Fn(&ReferenceCell) -> bool| {
        cells.rows.iter().any(|row| shown.iter().filter_map(|at| row.references[*at].as_ref()).any(holds))
    };
    let headed = |sign: char| shown.iter().any(|at| cells.references[*at].0.ends_with(sign));
    let signed = |sign: &str| cell(&|cell| cell.sign == sign) || sign.parse().is_ok_and(headed);
    let mut rows = Signs { doubtful: signed("!"), early: signed("~"), ..Signs::default() };
    cells.rows.iter().for_each(|row| rows.note(row.times, row.level, row.incomplete));
    let mut signs = rows.meanings();
    let mut say = |holds: bool, text: &str| {
        if holds {
            signs.push(text.to_owned());
        }
    };
    let next = slots.contains(&Slot::Next);
    let empty = cells.rows.iter().any(|row| row.next.is_none());
    say(next, &next_run(report, unit, empty));
    say(slots.contains(&Slot::Cycles), "cycles of the core");
    if slots.iter().any(|slot| matches!(slot, Slot::Bar(_))) {
        say(true, &format!("bars: logarithmic, {}", cells.scale.words()));
    }
    let names = |at: &usize| format!("{} = {}", cells.references[*at].0, cells.references[*at].1);
    let odd = |at: &&usize| cells.references[**at].0 != cells.references[**at].1;
    let ratio = slots.iter().any(|slot| matches!(slot, Slot::Reference { ratio: true, .. }));
    say(ratio, "× times as long as here");
    say(signed("≠"), "≠ not the same thing");
    say(cell(&|cell| cell.same && cell.part == 0.5), "½ one way, to compare with half the round trip");
    signs.extend(shown.iter().filter(odd).map(names));
    signs
}
