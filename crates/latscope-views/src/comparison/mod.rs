//! Two sides of results beside each other: as text, Markdown, CSV and a page.

pub(crate) mod figures;
mod head;
mod pictures;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use head::{difference, runs};
#[cfg(test)]
pub(crate) use pictures::by_percentile;

use crate::DisplayOptions;
use crate::column::{ColumnBuilder, FILES, MARKDOWN, PAGE, TERMINAL, TableColumn};
use crate::csv::name;

use crate::document::{self, DIFFERS, DocumentBlock, DocumentTable, FACT, ListMarker, NOTE, ViewDocument};
use crate::html::{ratio_legend, ratio_strip};
use crate::style::{ALARM, DIM, GOOD, PLAIN, WARNING};
use crate::styled::Text;
use anstyle::Style;
use figures::{
    ComparisonFigure, format_ratio, interval, is_tail, is_telling, median, point_figures, quantity,
    verdict_words,
};
use latscope_core::quality::QualityLevel;
use latscope_core::units::format_share;
use latscope_judge::compare::{ComparisonPoint, ComparisonResult, ComparisonVerdict, Contrast};

/// Number of rows of a table that a terminal shows, unless all are asked for.
const MOST: usize = 30;

/// Forms that are read from top to bottom: the page shows the findings in other sections.
const LINES: crate::column::Forms = TERMINAL.and(MARKDOWN);

const SIDES: [ListMarker; 2] = [
    ListMarker { sign: "A  ", word: "A: ", style: PLAIN },
    ListMarker { sign: "B  ", word: "B: ", style: PLAIN },
];

/// Returns a comparison on a terminal: the points that differ, or with `all` every point.
pub fn format_text(comparison: &ComparisonResult, all: bool, options: &DisplayOptions) -> String {
    document(comparison, all).to_text(options)
}

/// Returns a comparison as Markdown: the points that differ, or with `all` every point.
pub fn format_markdown(comparison: &ComparisonResult, all: bool) -> String {
    titled(comparison, all).to_markdown()
}

/// Returns the page: the sides, their differences, how far the verdicts can be trusted, the points that differ,
/// then every point.
pub fn html(comparison: &ComparisonResult) -> String {
    titled(comparison, false).to_page("latscope compare")
}

/// Returns every figure of each point that was compared as CSV.
pub fn format_csv(comparison: &ComparisonResult) -> Vec<u8> {
    let rows = select_figures(&comparison.points.iter().collect::<Vec<_>>(), |_| true);
    document::columns_csv(&figure_columns(comparison, "title", &rows))
}

fn titled(comparison: &ComparisonResult, all: bool) -> ViewDocument {
    let mut document = ViewDocument::default();
    document.add_heading(1, "latscope compare");
    document.append(self::document(comparison, all));
    document
}

/// Returns the parts of a comparison, without a title.
pub(crate) fn document(comparison: &ComparisonResult, all: bool) -> ViewDocument {
    let mut document = ViewDocument::default();
    for (mark, side) in SIDES.into_iter().zip([&comparison.a, &comparison.b]) {
        document.items_on(PAGE, mark, [head::side_and_machine(side)]);
        document.items_on(LINES, mark, [head::side(side)]);
    }
    document.add_in_forms(PAGE, DocumentBlock::heading(2, "How far to trust it"));
    document.items(DIFFERS, head::difference_lines(comparison));
    document.items(NOTE, comparison.remarks.iter().cloned());
    document.add_in_forms(TERMINAL, DocumentBlock::Gap);
    document.items(FACT, head::verdict_count_lines(comparison));
    let after: Vec<String> =
        head::would_tell(comparison).into_iter().chain(head::point_remarks(comparison)).collect();
    document.items_on(PAGE, FACT, after.clone());
    document.add_in_forms(PAGE, DocumentBlock::heading(2, "What differs"));
    let every: Vec<&ComparisonPoint> = comparison.points.iter().collect();
    let found: Vec<&ComparisonPoint> = every.iter().copied().filter(|point| is_finding(point)).collect();
    let is_shown = |point: &&ComparisonPoint| all || is_finding(point) || point.beyond.is_some();
    let shown: Vec<&ComparisonPoint> = every.iter().copied().filter(is_shown).collect();
    tables(comparison, &shown, all, &mut document);
    if found.is_empty() {
        document.add_in_forms(
            PAGE,
            DocumentBlock::Text(PLAIN, "No point is slower, faster or differs.".to_owned()),
        );
    } else {
        document.add_in_forms(PAGE, DocumentBlock::Table(median_table(comparison, &found)));
        document.add_in_forms(
            PAGE,
            DocumentBlock::Text(DIM, ratio_legend("B/A", &format_share(comparison.margin))),
        );
    }
    let figures = pictures::by_percentile(comparison);
    if !figures.is_empty() {
        document.add_in_forms(PAGE, DocumentBlock::heading(2, "Single events, by percentile"));
    }
    figures.into_iter().for_each(|figure| document.add_in_forms(PAGE, DocumentBlock::Figure(figure)));
    document.append(every_point(comparison, &every));
    if !after.is_empty() {
        document.add_in_forms(TERMINAL, DocumentBlock::Gap);
    }
    document.items_on(LINES, FACT, after);
    document
}

/// Adds the tables of some points for a terminal and Markdown.
fn tables(
    comparison: &ComparisonResult,
    points: &[&ComparisonPoint],
    all: bool,
    document: &mut ViewDocument,
) {
    let most = if all { usize::MAX } else { MOST };
    let mut add = |table: DocumentTable| {
        document.add_in_forms(TERMINAL, DocumentBlock::Gap);
        document.add_in_forms(LINES, DocumentBlock::Table(DocumentTable { most, ..table }));
    };
    if !points.is_empty() {
        add(median_table(comparison, points));
    }
    let single = |point: &&&ComparisonPoint| {
        point.p99.is_some() || point_figures(point).iter().any(|f| is_telling(f) && f.name != "max")
    };
    let single: Vec<&ComparisonPoint> = points.iter().filter(single).copied().collect();
    let beside = select_figures(&single, is_telling);
    if !beside.is_empty() {
        add(figure_table(comparison, "beside the median, not tested", &beside));
    }
    if comparison.counts.tails > 0 {
        document.add_in_forms(TERMINAL, DocumentBlock::Gap);
        document.add_in_forms(LINES, DocumentBlock::Text(PLAIN, head::tails(comparison)));
        let judged: Vec<&ComparisonPoint> =
            comparison.points.iter().filter(|point| point.level == QualityLevel::Ok).collect();
        let differs = |figure: &ComparisonFigure| {
            !matches!(figure.verdict, Some(ComparisonVerdict::Same | ComparisonVerdict::CannotTell))
        };
        let tails = select_figures(&judged, |figure| is_tail(figure) && (all || differs(figure)));
        if !tails.is_empty() {
            let table = DocumentTable { most, ..figure_table(comparison, "tail", &tails) };
            document.add_in_forms(LINES, DocumentBlock::Table(table));
        }
    }
}

/// Returns the section of the page with all figures of every point.
fn every_point(comparison: &ComparisonResult, points: &[&ComparisonPoint]) -> ViewDocument {
    let mut document = ViewDocument::default();
    document.add_in_forms(PAGE, DocumentBlock::heading(2, "Every point"));
    let mut details = |name: String, table: DocumentTable| document.add_details(PAGE, name, table);
    details(format!("Medians of all {} points", points.len()), median_table(comparison, points));
    if comparison.counts.tails > 0 {
        details(
            "All tails".to_owned(),
            figure_table(comparison, "figure of", &select_figures(points, is_tail)),
        );
    }
    details(
        "Other figures, not tested".to_owned(),
        figure_table(comparison, "figure of", &select_figures(points, is_telling)),
    );
    document
}

fn is_finding(point: &ComparisonPoint) -> bool {
    point.level == QualityLevel::Ok
        && !matches!(point.verdict, ComparisonVerdict::Same | ComparisonVerdict::CannotTell)
}

/// Figure of a point.
type ComparisonPointFigure<'a> = (&'a ComparisonPoint, ComparisonFigure<'a>);

/// Returns the figures of points that are wanted.
fn select_figures<'a>(
    points: &[&'a ComparisonPoint],
    wanted: impl Fn(&ComparisonFigure) -> bool,
) -> Vec<ComparisonPointFigure<'a>> {
    let of_point = |point: &&'a ComparisonPoint| {
        let point = *point;
        point_figures(point)
            .into_iter()
            .filter(&wanted)
            .map(move |figure| (point, figure))
            .collect::<Vec<_>>()
    };
    points.iter().flat_map(of_point).collect()
}

fn figure_table(
    comparison: &ComparisonResult,
    heading: &str,
    rows: &[ComparisonPointFigure],
) -> DocumentTable {
    DocumentTable::new(figure_columns(comparison, heading, rows))
}

/// Returns the table of the medians with their verdicts.
fn median_table(comparison: &ComparisonResult, points: &[&ComparisonPoint]) -> DocumentTable {
    let rows: Vec<ComparisonPointFigure> = points.iter().map(|point| (*point, median(point))).collect();
    let mut columns = figure_columns(comparison, "p50", &rows);
    columns.retain(|column| column.field != "figure");
    DocumentTable::new(columns)
}

fn figure_columns(
    comparison: &ComparisonResult,
    heading: &str,
    rows: &[ComparisonPointFigure],
) -> Vec<TableColumn> {
    let rows = ColumnBuilder(rows);
    let margin = |point: &ComparisonPoint, figure: &ComparisonFigure| {
        if is_tail(figure) { comparison.tail_margin } else { point.margin }
    };
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let quantity = |value: Option<f64>, beyond: Option<f64>, unit: &str| {
        let beyond = beyond.map(|last| format!("> {}", quantity(Some(last), unit)));
        Text::plain(beyond.unwrap_or_else(|| quantity(value, unit))).exact(number(value))
    };
    let by = |figure: &ComparisonFigure| {
        Text::plain(format_ratio(figure.contrast))
            .exact(number(figure.contrast.map(|contrast| contrast.ratio)))
    };
    let strip = |point: &ComparisonPoint, figure: &ComparisonFigure| {
        let contrast = figure.contrast.filter(|_| figure.verdict.is_some())?;
        let range = contrast.interval.as_ref().map(|range| (range.low, range.high));
        Some(ratio_strip(contrast.ratio, range, margin(point, figure)))
    };
    let contrast = |name: &'static str, field: fn(&Contrast) -> Option<f64>| {
        rows.field(name, |(_, figure)| number(figure.contrast.and_then(field)))
    };
    let count = |name: &'static str, field: fn(&Contrast) -> usize| {
        rows.field(name, |(_, figure)| figure.contrast.map(|c| field(c).to_string()).unwrap_or_default())
    };
    vec![
        rows.left_aligned(heading, |(point, _)| &point.title),
        rows.field("id", |(point, _)| &point.id),
        rows.field("probe", |(point, _)| &point.probe),
        rows.field("title", |(point, _)| &point.title),
        rows.left_aligned("figure", |(_, figure)| &figure.name).with_csv_field("figure"),
        rows.field("unit", |(_, figure)| figure.unit),
        rows.field("better", |(_, figure)| name(&figure.better)),
        rows.right("A", |(_, figure)| quantity(figure.a, figure.beyond[0], figure.unit))
            .rank(3)
            .with_csv_field("a"),
        rows.right("B", |(_, figure)| quantity(figure.b, figure.beyond[1], figure.unit))
            .rank(3)
            .with_csv_field("b"),
        rows.right("B/A", |(_, figure)| by(figure)).rank(1).with_csv_field("ratio"),
        rows.left_aligned("95 %", |(_, figure)| interval(figure.contrast)).rank(2),
        contrast("low", |c| c.interval.map(|range| range.low)),
        contrast("high", |c| c.interval.map(|range| range.high)),
        rows.drawing("½× … 2×", |(point, figure)| strip(point, figure)),
        rows.left_aligned("verdict", |(point, figure)| verdict_text(point, figure)).with_csv_field("verdict"),
        rows.left_aligned("why", |(point, _)| point.reasons.join("; ")).for_forms(FILES),
        rows.field("margin", |(point, figure)| number(figure.verdict.map(|_| margin(point, figure)))),
        rows.field("would_tell", |(point, figure)| would_tell(point, figure)),
        contrast("p", |c| c.p),
        contrast("p_adjusted", |c| c.p_adjusted),
        contrast("superiority", |c| c.superiority),
        count("runs_a", |c| c.runs[0]),
        count("runs_b", |c| c.runs[1]),
        count("rounds_a", |c| c.rounds[0]),
        count("rounds_b", |c| c.rounds[1]),
        rows.field("distance", |(point, _)| number(point.distance)),
        rows.field("quality", |(point, _)| point.level.level_name()),
    ]
}

/// Returns the verdict on a figure, and beside it how far its point can be trusted; empty for a figure that was not
/// judged.
fn verdict_text(point: &ComparisonPoint, figure: &ComparisonFigure) -> Text {
    let Some(verdict) = figure.verdict else { return Text::default() };
    let mark = match point.level {
        QualityLevel::Ok => "",
        QualityLevel::Unstable => " (unstable)",
        _ => " (degraded)",
    };
    Text::in_style(style(verdict), verdict_words(figure)).with_piece(WARNING, mark).exact(name(&verdict))
}

/// The style of a verdict, and its name in CSV.
fn style(verdict: ComparisonVerdict) -> Style {
    match verdict {
        ComparisonVerdict::Slower => ALARM,
        ComparisonVerdict::Faster => GOOD,
        ComparisonVerdict::Differs => WARNING,
        ComparisonVerdict::Same => PLAIN,
        ComparisonVerdict::CannotTell => DIM,
    }
}

fn would_tell(point: &ComparisonPoint, figure: &ComparisonFigure) -> String {
    let advice = point.would_tell.filter(|_| figure.name == "p50");
    advice.map(|advice| advice.to_string()).unwrap_or_default()
}
