//! Table of the survey on a terminal: fastest row to slowest, beside the reference devices. Columns that do not
//! fit are left out, the least useful first.

use super::bar::DecadeScale as BarScale;
use super::cells::{SurveyColumnKind, SurveyTableCells};
use super::column::TableColumn;
use super::document::{DocumentTable, ViewDocument};
use super::footnotes::{Footnotes, superscript};
use super::grid::{fit_columns, grid};
use super::legend::{Signs, next_run};
use super::rows::{ReferenceCell, SurveyRow, nothing_in_common, reference_names, sorted_rows};
use super::style::{DIM, PLAIN, WARNING};
use super::styled::{Text, fill_lines, wrap};
use super::{DisplayOptions, Sort, unmeasured};
use crate::devices::DEVICES;
use latscope_core::report::Report;

/// Minimum width of the name of an operation, whatever columns could stand beside it.
const LABEL: usize = 33;

/// The table with its footnotes, then what could not be measured.
pub fn format_table(report: &Report, beside: &[&Report], options: &DisplayOptions) -> String {
    let rows = sorted_rows(report, beside, options);
    let mut out = String::new();
    if rows.is_empty() {
        out += "No row has a number.\n";
    } else {
        let references = reference_names(report, beside);
        let wanted = wanted(references.len(), options.sort);
        let gap = if options.width >= 150 { 2 } else { 1 };
        out += &laid_out(report, &rows, &references, &wanted, gap, options);
    }
    for text in nothing_in_common(&rows, beside) {
        out += &wrap(&Text::in_style(WARNING, "note  "), &text, PLAIN, options);
    }
    unmeasured::lists(report).write_text(&mut out, options);
    out
}

/// Column with its rank, and true if it is a wider form of the one before it.
type RankedColumn = (SurveyColumnKind, usize, bool);

/// Returns the columns beside the operation's name, each with its rank: reports beside come first.
fn wanted(references: usize, sort: Sort) -> Vec<RankedColumn> {
    let [classic, iphone_5s, iphone_6s_plus, iphone_x] = [1, 4, 5, 3].map(|rank| references + rank);
    let devices = [classic, iphone_5s, iphone_6s_plus, iphone_x].into_iter().enumerate();
    let devices = devices.flat_map(|(at, rank)| {
        let reference = |ratio| SurveyColumnKind::Reference { at, ratio };
        [(reference(false), rank, false), (reference(true), references + 7, true)]
    });
    let beside =
        (DEVICES.len()..references).map(|at| (SurveyColumnKind::Reference { at, ratio: true }, at, false));
    let columns = [
        (SurveyColumnKind::Family, if sort == Sort::Family { 0 } else { references + 8 }, false),
        (SurveyColumnKind::Time, 0, false),
        (SurveyColumnKind::Marks, 0, false),
        (SurveyColumnKind::Next, references, false),
        (SurveyColumnKind::Cycles, references + 6, false),
        (SurveyColumnKind::Bar(8), references + 2, false),
        (SurveyColumnKind::Bar(12), references + 9, true),
        (SurveyColumnKind::Bar(20), references + 10, true),
        (SurveyColumnKind::Bar(32), references + 11, true),
    ];
    columns.into_iter().chain(devices).chain(beside).collect()
}

/// Returns the table with all columns and its footnotes, for Markdown.
pub(super) fn build_document(
    report: &Report,
    rows: &[SurveyRow],
    references: &[(String, String)],
) -> ViewDocument {
    let mut cells =
        SurveyTableCells { rows, references, scale: BarScale::for_rows(rows), notes: Footnotes::default() };
    let slots = wanted(references.len(), Sort::Value).into_iter().map(|(slot, ..)| slot);
    let is_text = |slot: &SurveyColumnKind| {
        !matches!(slot, SurveyColumnKind::Bar(_) | SurveyColumnKind::Reference { ratio: false, .. })
    };
    let mut slots: Vec<SurveyColumnKind> = slots.filter(is_text).collect();
    cells.number_notes(&slots);
    slots.retain(|slot| !cells.build_column(*slot).is_empty());
    let mut columns = vec![cells.labels_in_full()];
    columns.extend(slots.iter().map(|slot| cells.column_in_full(*slot)));
    let mut signs = signs(report, &cells, &slots, "");
    signs.extend(cells.words_aside(usize::MAX));
    let mut notes = vec![signs.join(" · ")];
    notes.extend(cells.notes.iter().map(|(number, text)| format!("{} {text}", superscript(number))));
    let mut document = ViewDocument::default();
    document.add_table(DocumentTable { notes, ..DocumentTable::new(columns) });
    document
}

/// Returns rows without references: name, figure, doubt, next run and bar, with their legend.
pub(super) fn format_short(report: &Report, rows: &[SurveyRow], options: &DisplayOptions) -> String {
    let wanted = [
        (SurveyColumnKind::Time, 0),
        (SurveyColumnKind::Marks, 0),
        (SurveyColumnKind::Next, 1),
        (SurveyColumnKind::Bar(BAR), 2),
    ];
    laid_out(report, rows, &[], &wanted.map(|(slot, rank)| (slot, rank, false)), 1, options)
}

/// Columns of a bar of a table of few columns.
const BAR: usize = 16;

/// Returns the columns that fit beside the operation's name, and their legend.
fn laid_out(
    report: &Report,
    rows: &[SurveyRow],
    references: &[(String, String)],
    wanted: &[RankedColumn],
    gap: usize,
    options: &DisplayOptions,
) -> String {
    let mut cells =
        SurveyTableCells { rows, references, scale: BarScale::for_rows(rows), notes: Footnotes::default() };
    let longest = cells.longest_label();
    let mut columns = vec![cells.label_column(longest)];
    for (slot, rank, is_wider) in wanted {
        columns.push(TableColumn { rank: *rank, is_wider: *is_wider, ..cells.build_column(*slot) });
    }
    let places = fit_columns(&columns, gap, options.width, longest.min(LABEL));
    let slots: Vec<SurveyColumnKind> = places[1..].iter().map(|at| wanted[at - 1].0).collect();
    // Anew, so that notes are numbered from the top and only those of columns
    // that are shown.
    cells.notes = Footnotes::default();
    cells.number_notes(&slots);
    let mut columns: Vec<TableColumn> = slots.iter().map(|slot| cells.build_column(*slot)).collect();
    let taken: usize = columns.iter().map(|column| gap + column.width()).sum();
    let room = options.width.saturating_sub(taken).clamp(1, longest.max(1));
    columns.insert(0, cells.label_column(room));
    let mut signs = signs(report, &cells, &slots, ", in the unit of the row");
    signs.extend(cells.words_aside(room));
    grid(&columns, gap, options) + &format_legend(signs, &cells, options)
}

/// Returns the meanings of the signs and words that occur in the table, and the footnotes.
fn format_legend(signs: Vec<String>, cells: &SurveyTableCells, options: &DisplayOptions) -> String {
    let mut out = String::new();
    for line in fill_lines(signs, " · ", options.width) {
        out += &wrap(&Text::default(), &line, DIM, options);
    }
    for (number, text) in cells.notes.iter() {
        let mark = Text::in_style(DIM, format!("{:>3} ", superscript(number)));
        out += &wrap(&mark, text, DIM, options);
    }
    out
}

/// Returns the meanings of the signs in these columns; `unit` says in which unit the next run is.
fn signs(report: &Report, cells: &SurveyTableCells, slots: &[SurveyColumnKind], unit: &str) -> Vec<String> {
    let shown = cells.shown_references(slots);
    let cell = |holds: &dyn Fn(&ReferenceCell) -> bool| {
        cells.rows.iter().any(|row| shown.iter().filter_map(|at| row.references[*at].as_ref()).any(holds))
    };
    let headed = |sign: char| shown.iter().any(|at| cells.references[*at].0.ends_with(sign));
    let signed = |sign: &str| cell(&|cell| cell.sign == sign) || sign.parse().is_ok_and(headed);
    let mut rows = Signs { doubtful: signed("!"), early: signed("~"), ..Signs::default() };
    cells.rows.iter().for_each(|row| rows.add_signs(row.times, row.level, row.incomplete));
    let mut signs = rows.meanings();
    let mut say = |holds: bool, text: &str| {
        if holds {
            signs.push(text.to_owned());
        }
    };
    let next = slots.contains(&SurveyColumnKind::Next);
    let empty = cells.rows.iter().any(|row| row.next.is_none());
    say(next, &next_run(report, unit, empty));
    say(slots.contains(&SurveyColumnKind::Cycles), "cycles of the core");
    if slots.iter().any(|slot| matches!(slot, SurveyColumnKind::Bar(_))) {
        say(true, &format!("bars: logarithmic, {}", cells.scale.format_range()));
    }
    let names = |at: &usize| format!("{} = {}", cells.references[*at].0, cells.references[*at].1);
    let odd = |at: &&usize| cells.references[**at].0 != cells.references[**at].1;
    let ratio = slots.iter().any(|slot| matches!(slot, SurveyColumnKind::Reference { ratio: true, .. }));
    say(ratio, "× times as long as here");
    say(signed("≠"), "≠ not the same thing");
    say(cell(&|cell| cell.same && cell.part == 0.5), "½ one way, to compare with half the round trip");
    signs.extend(shown.iter().filter(odd).map(names));
    signs
}
