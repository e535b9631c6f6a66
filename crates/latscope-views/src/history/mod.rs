//! Histories of machines: as text, Markdown, CSV and a page.

mod time_lines;
mod words;

use crate::DisplayOptions;
use crate::column::{ColumnBuilder, FILES, PAGE, TERMINAL, TableColumn};
use crate::comparison::figures::{format_ratio, interval, quantity};
use crate::document::{self, DIFFERS, DocumentBlock, DocumentTable, FACT, ListMarker, NOTE, ViewDocument};
use crate::figure::timeline_figure;
use crate::html::{ratio_legend, ratio_strip};
use crate::style::{ALARM, DIM, GOOD, PLAIN};
use crate::styled::Text;
use latscope_core::units::format_share;
use latscope_judge::history::{Change, History, MachineHistory, Moved, PointHistory};

#[cfg(test)]
pub(crate) mod tests;

/// Number of figures of a change, of drifts and of odd runs that a terminal shows, unless all are asked for.
const MOST: usize = 8;

/// Number of pictures of a machine that the page shows at once; the reader can open further ones.
const SHOWN: usize = 12;

const DRIFT: ListMarker = ListMarker { sign: "~  drifts: ", word: "", style: PLAIN };
const SMALLER: ListMarker = ListMarker { sign: "<  smaller: ", word: "", style: PLAIN };
const REVISIONS: ListMarker =
    ListMarker { sign: "!  several revisions: ", word: "several revisions: ", style: PLAIN };
const ODD: ListMarker = ListMarker { sign: "·  odd: ", word: "", style: PLAIN };

/// Returns each machine with its changes on a terminal; with `all` every figure of them, with `lines` the time line of
/// each point.
pub fn format_text(history: &History, all: bool, lines: bool, options: &DisplayOptions) -> String {
    build_document(history, all, lines.then_some(options.width)).to_text(options)
}

/// Returns each machine with its changes as Markdown.
pub fn format_markdown(history: &History) -> String {
    build_document(history, false, None).to_markdown()
}

/// Returns the page of each machine, with a picture for each point that changed; with `all` for every point.
pub fn html(history: &History, all: bool) -> String {
    build_document(history, all, None).to_page("latscope history")
}

/// Returns every figure of every change as CSV.
pub fn format_csv(history: &History) -> Vec<u8> {
    let changes = history.machines.iter().flat_map(|m| m.changes.iter().map(move |change| (m, change)));
    let rows: Vec<HistoryChangeRow> = changes.flat_map(|(m, change)| of_change(m, change)).collect();
    document::columns_csv(&change_columns(history, &rows))
}

/// Figure that moved, with its change and its machine.
type HistoryChangeRow<'a> = (&'a MachineHistory, &'a Change, &'a Moved);

fn of_change<'a>(machine: &'a MachineHistory, change: &'a Change) -> Vec<HistoryChangeRow<'a>> {
    change.moved.iter().map(|moved| (machine, change, moved)).collect()
}

fn change_columns(history: &History, rows: &[HistoryChangeRow]) -> Vec<TableColumn> {
    let rows = ColumnBuilder(rows);
    let range = |moved: &Moved| moved.size.interval.as_ref().map(|range| (range.low, range.high));
    let end = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let value = |moved: &Moved, value: f64| {
        Text::plain(quantity(Some(value), words::unit(moved.figure))).exact(value)
    };
    let by = |moved: &Moved| {
        let style = if moved.size.ratio > 1.0 { ALARM } else { GOOD };
        Text::in_style(style, format_ratio(Some(&moved.size))).exact(moved.size.ratio)
    };
    let strip = |moved: &Moved| {
        let is_share = words::unit(moved.figure) == "share";
        let margin = if is_share { history.tail_margin } else { history.margin };
        Some(ratio_strip(moved.size.ratio, range(moved), margin))
    };
    vec![
        rows.left_aligned("changed", |(.., moved)| &moved.title),
        rows.field("machine", |(machine, ..)| &machine.id),
        rows.field("change", |(_, change, _)| &change.id),
        rows.field("started", |(_, change, _)| &change.first.started),
        rows.field("run", |(_, change, _)| (change.run + 1).to_string()),
        rows.field("run_id", |(_, change, _)| &change.first.run_id),
        rows.field("file", |(_, change, _)| &change.first.name),
        rows.field("id", |(.., moved)| &moved.id),
        rows.field("probe", |(.., moved)| &moved.probe),
        rows.field("title", |(.., moved)| &moved.title),
        rows.left_aligned("figure", |(.., moved)| {
            Text::plain(words::figure_name(moved)).exact(words::figure_kind_name(moved.figure))
        })
        .with_csv_field("figure"),
        rows.field("unit", |(.., moved)| words::unit(moved.figure)),
        rows.field("beyond", |(.., moved)| end(moved.beyond)),
        rows.right("before", |(.., moved)| value(moved, moved.size.a)).with_csv_field("before"),
        rows.right("after", |(.., moved)| value(moved, moved.size.b)).with_csv_field("after"),
        rows.right("ratio", |(.., moved)| by(moved)).with_csv_field("ratio"),
        rows.left_aligned("95 %", |(.., moved)| interval(Some(&moved.size))),
        rows.field("low", |(.., moved)| end(range(moved).map(|(low, _)| low))),
        rows.field("high", |(.., moved)| end(range(moved).map(|(_, high)| high))),
        rows.drawing("½× … 2×", |(.., moved)| strip(moved)),
    ]
}

fn build_document(history: &History, all: bool, lines: Option<usize>) -> ViewDocument {
    let most = if all { usize::MAX } else { MOST };
    let mut document = ViewDocument::default();
    document.add_heading(1, "latscope history");
    document.most_items(NOTE, history.remarks.clone(), most);
    for machine in &history.machines {
        document.add_heading(2, words::describe_machine(machine));
        document.items(FACT, words::changes(history, machine, all));
        document.most_items(REVISIONS, words::revisions(machine), most);
        for change in &machine.changes {
            let place = Text::plain(words::describe_place(machine, change));
            document.add_block(DocumentBlock::Heading(3, format!("change {}", change.id), place));
            document.items(DIFFERS, words::changed_facts(change));
            document.add_table(DocumentTable {
                most,
                ..DocumentTable::new(change_columns(history, &of_change(machine, change)))
            });
        }
        let [same, tails] = [history.margin, history.tail_margin].map(format_share);
        if !machine.changes.is_empty() {
            let same = format!("{same} (of how often tails are reached ±{tails})");
            document.add_in_forms(PAGE, DocumentBlock::Text(DIM, ratio_legend("ratio", &same)));
        }
        let smaller = if all { words::unreported_changes(machine) } else { Vec::new() };
        for (mark, heading, texts) in [
            (SMALLER, "Smaller changes, or of unsure direction", smaller),
            (DRIFT, "Drifts", words::drifts(machine)),
            (ODD, "Odd runs", words::unusual_runs(machine, all)),
        ] {
            if !texts.is_empty() {
                document.add_in_forms(TERMINAL, DocumentBlock::Gap);
                document.add_in_forms(FILES, DocumentBlock::heading(3, heading));
                document.most_items(mark, texts, most);
            }
        }
        if let Some(width) = lines.filter(|_| !machine.points.is_empty()) {
            document.add_in_forms(TERMINAL, DocumentBlock::Gap);
            document.add_in_forms(
                TERMINAL,
                DocumentBlock::Table(time_lines::build_table(machine, history.margin, width)),
            );
        }
        document.append(pictures(machine, all));
    }
    document
}

/// Returns pictures of the points that changed, in the order of the changes; with `all` of every point.
fn pictures(machine: &MachineHistory, all: bool) -> ViewDocument {
    let moved: Vec<&str> =
        machine.changes.iter().flat_map(|change| &change.moved).map(|moved| moved.id.as_str()).collect();
    let place = |point: &&PointHistory| moved.iter().position(|id| *id == point.id).unwrap_or(usize::MAX);
    let mut points: Vec<&PointHistory> =
        machine.points.iter().filter(|point| all || place(point) < usize::MAX).collect();
    points.sort_by_key(place);
    let rest = points.split_off(points.len().min(SHOWN));
    let [mut document, mut more] = [ViewDocument::default(), ViewDocument::default()];
    if !points.is_empty() {
        document.add_in_forms(PAGE, DocumentBlock::heading(3, "Over the runs"));
    }
    for (document, points) in [(&mut document, points), (&mut more, rest)] {
        for point in points {
            document.add_in_forms(PAGE, DocumentBlock::Figure(timeline_figure(machine, point)));
        }
    }
    if !more.is_empty() {
        document.add_in_forms(PAGE, DocumentBlock::Details(format!("{} more", more.len()), more));
    }
    document
}
