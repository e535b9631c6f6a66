//! Table of the survey on a terminal: fastest row to slowest, beside the reference devices. Columns that do not
//! fit are left out, the least useful first.

use super::bar::Scale as BarScale;
use super::cells::{Cells, Slot};
use super::document::{Document, Table};
use super::footnotes::{Footnotes, superscript};
use super::grid::{Column, Text, grid, wrap};
use super::legend::{Signs, next_run};
use super::rows::{ReferenceCell, Row, nothing_in_common, reference_names, sorted_rows};
use super::style::{DIM, PLAIN, WARNING};
use super::{Options, Scale, Sort, human, unmeasured};
use crate::devices::DEVICES;
use latscope_core::report::Report;
use std::collections::HashMap;

/// Minimum width of the name of an operation, whatever columns could stand beside it.
const LABEL: usize = 33;

/// The table with its footnotes, then what could not be measured.
pub fn table(report: &Report, beside: &[&Report], options: &Options) -> String {
    let rows = sorted_rows(report, beside, options.sort);
    let mut out = String::new();
    if rows.is_empty() {
        out += "No row has a number.\n";
    } else if options.scale == Scale::Human {
        human::document(report, &rows).write(&mut out, options);
    } else {
        out += &measured(report, &rows, &reference_names(report, beside), options);
    }
    for text in nothing_in_common(&rows, beside) {
        out += &wrap(&Text::styled(WARNING, "note  "), &text, PLAIN, options.width, options.color);
    }
    unmeasured::lists(report).write(&mut out, options);
    out
}

fn measured(report: &Report, rows: &[Row], references: &[(String, String)], options: &Options) -> String {
    let gap = if options.width >= 150 { 2 } else { 1 };
    let mut cells = Cells { rows, references, scale: BarScale::of(rows), notes: Footnotes::default() };
    let (slots, room) = choose(&mut cells, options, gap);
    // Anew, so that notes are numbered from the top and only those of columns
    // that are shown.
    cells.notes = Footnotes::default();
    cells.number_notes(&slots);
    let mut columns = vec![cells.labels(room)];
    columns.extend(slots.iter().map(|slot| cells.column(*slot)));
    let mut out = grid(&columns, gap, options.width, options.color);
    out += &legend(report, &cells, &slots, options);
    out
}

/// Returns the table with all columns and its footnotes, for Markdown.
pub(super) fn document(report: &Report, rows: &[Row], references: &[(String, String)]) -> Document {
    let mut cells = Cells { rows, references, scale: BarScale::of(rows), notes: Footnotes::default() };
    let mut slots = vec![Slot::Time, Slot::Marks, Slot::Next, Slot::Cycles];
    slots.extend((0..references.len()).map(|at| Slot::Reference { at, ratio: true }));
    cells.number_notes(&slots);
    slots.retain(|slot| !cells.column(*slot).is_empty());
    let mut notes = vec![signs(report, &cells, &slots, "").join(" · ")];
    let columns = cells.in_full();
    notes.extend(cells.notes.iter().map(|(number, text)| format!("{} {text}", superscript(number))));
    let mut document = Document::default();
    document.table(Table { notes, ..Table::new(columns) });
    document
}

/// Rows without references: name, figure, doubt, next run and bar, with their legend.
pub(super) fn short(report: &Report, rows: &[Row], options: &Options) -> String {
    let scale = BarScale::of(rows);
    let mut cells = Cells { rows, references: &[], scale, notes: Footnotes::default() };
    let slots = [Slot::Time, Slot::Marks, Slot::Next, Slot::Bar(BAR)];
    let mut columns: Vec<(Slot, Column)> = slots.iter().map(|slot| (*slot, cells.column(*slot))).collect();
    columns.retain(|(_, column)| !column.is_empty());
    let sum =
        |columns: &[(Slot, Column)]| columns.iter().map(|(_, column)| 1 + column.width()).sum::<usize>();
    // A bar is the first to go; a doubt stays with its figure.
    let is_spare = |columns: &[(Slot, Column)]| {
        columns.last().is_some_and(|(slot, _)| !matches!(slot, Slot::Time | Slot::Marks))
    };
    while is_spare(&columns) && cells.longest_label().min(LABEL) + sum(&columns) > options.width {
        columns.pop();
    }
    let room = options.width.saturating_sub(sum(&columns)).clamp(1, cells.longest_label().max(1));
    let (slots, columns): (Vec<Slot>, Vec<Column>) = columns.into_iter().unzip();
    let columns: Vec<Column> = std::iter::once(cells.labels(room)).chain(columns).collect();
    grid(&columns, 1, options.width, options.color) + &legend(report, &cells, &slots, options)
}

/// Columns of a bar of a table of few columns.
const BAR: usize = 16;

/// The columns that fit beside the operation's name, and the room left for it.
fn choose(cells: &mut Cells, options: &Options, gap: usize) -> (Vec<Slot>, usize) {
    let longest = cells.longest_label();
    let mut widths: HashMap<Slot, usize> = HashMap::new();
    let mut total = |slots: &[Slot], cells: &mut Cells| -> usize {
        let width = |slot: &Slot| gap + *widths.entry(*slot).or_insert_with(|| cells.column(*slot).width());
        slots.iter().map(width).sum()
    };
    let mut chosen = vec![Slot::Time];
    if !cells.column(Slot::Marks).is_empty() {
        chosen.push(Slot::Marks);
    }
    if options.sort == Sort::Family {
        chosen.push(Slot::Family);
    }
    for extra in extras(cells.references.len()) {
        if matches!(extra, Extra::Add(slot) if chosen.contains(&slot) || cells.column(slot).is_empty()) {
            continue;
        }
        let widened = extra.granted(&chosen);
        if longest.min(LABEL) + total(&widened, cells) <= options.width {
            chosen = widened;
        }
    }
    chosen.sort();
    let room = options.width.saturating_sub(total(&chosen, cells)).clamp(1, longest.max(1));
    (chosen, room)
}

/// Addition that makes a table better and wider.
enum Extra {
    Add(Slot),
    /// Ratios beside the numbers of the devices.
    Ratios,
    /// Longer bar, of this many columns.
    Bar(usize),
}

/// Extras for a wider table, the most useful first.
fn extras(references: usize) -> Vec<Extra> {
    let [classic, iphone_5s, iphone_6s_plus, iphone_x] = [0, 1, 2, 3];
    let device = |at: usize| Extra::Add(Slot::Reference { at, ratio: false });
    let beside = (DEVICES.len()..references).map(|at| Extra::Add(Slot::Reference { at, ratio: true }));
    let rest = [
        Extra::Add(Slot::Next),
        device(classic),
        Extra::Add(Slot::Bar(8)),
        device(iphone_x),
        device(iphone_5s),
        device(iphone_6s_plus),
        Extra::Add(Slot::Cycles),
        Extra::Ratios,
        Extra::Add(Slot::Family),
        Extra::Bar(12),
        Extra::Bar(20),
        Extra::Bar(32),
    ];
    beside.chain(rest).collect()
}

impl Extra {
    /// The columns with the extra.
    fn granted(&self, chosen: &[Slot]) -> Vec<Slot> {
        let mut slots = chosen.to_vec();
        match *self {
            Extra::Add(slot) => slots.push(slot),
            Extra::Ratios => {
                for slot in &mut slots {
                    if let Slot::Reference { ratio, .. } = slot {
                        *ratio = true;
                    }
                }
            }
            Extra::Bar(width) => {
                for slot in &mut slots {
                    if let Slot::Bar(narrow) = slot {
                        *narrow = width;
                    }
                }
            }
        }
        slots
    }
}

/// Returns the meanings of the signs that occur in the table, and the footnotes.
fn legend(report: &Report, cells: &Cells, slots: &[Slot], options: &Options) -> String {
    let mut out = String::new();
    for line in filled(signs(report, cells, slots, ", in the unit of the row"), options.width) {
        out += &wrap(&Text::default(), &line, DIM, options.width, options.color);
    }
    for (number, text) in cells.notes.iter() {
        let mark = Text::styled(DIM, format!("{:>3} ", superscript(number)));
        out += &wrap(&mark, text, DIM, options.width, options.color);
    }
    out
}

/// Lines of as many parts as `width` allows.
fn filled(parts: Vec<String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines
            .last_mut()
            .filter(|line| Text::plain(&**line).width() + 3 + Text::plain(&part).width() <= width)
        {
            Some(line) => *line += &format!(" · {part}"),
            None => lines.push(part),
        }
    }
    lines
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
