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
    ComparisonFigure, figures, interval, is_tail, is_telling, median, quantity, ratio, verdict_words,
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
pub fn text(comparison: &ComparisonResult, all: bool, options: &DisplayOptions) -> String {
    document(comparison, all).written(options)
}

/// Returns a comparison as Markdown: the points that differ, or with `all` every point.
pub fn markdown(comparison: &ComparisonResult, all: bool) -> String {
    titled(comparison, all).markdown()
}

/// Returns the page: the sides, their differences, how far the verdicts can be trusted, the points that differ,
/// then every point.
pub fn html(comparison: &ComparisonResult) -> String {
    titled(comparison, false).page("latscope compare")
}

/// Returns every figure of each point that was compared as CSV.
pub fn csv(comparison: &ComparisonResult) -> Vec<u8> {
    let rows = of(&comparison.points.iter().collect::<Vec<_>>(), |_| true);
    document::csv(&columns(comparison, "title", &rows))
}

fn titled(comparison: &ComparisonResult, all: bool) -> ViewDocument {
    let mut document = ViewDocument::default();
    document.heading(1, "latscope compare");
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
    document.on(PAGE, DocumentBlock::heading(2, "How far to trust it"));
    document.items(DIFFERS, head::differences(comparison));
    document.items(NOTE, comparison.remarks.iter().cloned());
    document.on(TERMINAL, DocumentBlock::Gap);
    document.items(FACT, head::verdicts(comparison));
    let after: Vec<String> =
        head::would_tell(comparison).into_iter().chain(head::apart(comparison)).collect();
    document.items_on(PAGE, FACT, after.clone());
    document.on(PAGE, DocumentBlock::heading(2, "What differs"));
    let every: Vec<&ComparisonPoint> = comparison.points.iter().collect();
    let found: Vec<&ComparisonPoint> = every.iter().copied().filter(|point| is_finding(point)).collect();
    let is_shown = |point: &&ComparisonPoint| all || is_finding(point) || point.beyond.is_some();
    let shown: Vec<&ComparisonPoint> = every.iter().copied().filter(is_shown).collect();
    tables(comparison, &shown, all, &mut document);
    if found.is_empty() {
        document.on(PAGE, DocumentBlock::Text(PLAIN, "No point is slower, faster or differs.".to_owned()));
    } else {
        document.on(PAGE, DocumentBlock::Table(medians(comparison, &found)));
        document.on(PAGE, DocumentBlock::Text(DIM, ratio_legend("B/A", &format_share(comparison.margin))));
    }
    let figures = pictures::by_percentile(comparison);
    if !figures.is_empty() {
        document.on(PAGE, DocumentBlock::heading(2, "Single events, by percentile"));
    }
    figures.into_iter().for_each(|figure| document.on(PAGE, DocumentBlock::Figure(figure)));
    document.append(every_point(comparison, &every));
    if !after.is_empty() {
        document.on(TERMINAL, DocumentBlock::Gap);
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
        document.on(TERMINAL, DocumentBlock::Gap);
        document.on(LINES, DocumentBlock::Table(DocumentTable { most, ..table }));
    };
    if !points.is_empty() {
        add(medians(comparison, points));
    }
    let single = |point: &&&ComparisonPoint| {
        point.p99.is_some() || figures(point).iter().any(|f| is_telling(f) && f.name != "max")
    };
    let single: Vec<&ComparisonPoint> = points.iter().filter(single).copied().collect();
    let beside = of(&single, is_telling);
    if !beside.is_empty() {
        add(table(comparison, "beside the median, not tested", &beside));
    }
    if comparison.counts.tails > 0 {
        document.on(TERMINAL, DocumentBlock::Gap);
        document.on(LINES, DocumentBlock::Text(PLAIN, head::tails(comparison)));
        let judged: Vec<&ComparisonPoint> =
            comparison.points.iter().filter(|point| point.level == QualityLevel::Ok).collect();
        let differs = |figure: &ComparisonFigure| {
            !matches!(figure.verdict, Some(ComparisonVerdict::Same | ComparisonVerdict::CannotTell))
        };
        let tails = of(&judged, |figure| is_tail(figure) && (all || differs(figure)));
        if !tails.is_empty() {
            let table = DocumentTable { most, ..table(comparison, "tail", &tails) };
            document.on(LINES, DocumentBlock::Table(table));
        }
    }
}

/// Returns the section of the page with all figures of every point.
fn every_point(comparison: &ComparisonResult, points: &[&ComparisonPoint]) -> ViewDocument {
    let mut document = ViewDocument::default();
    document.on(PAGE, DocumentBlock::heading(2, "Every point"));
    let mut details = |name: String, table: DocumentTable| document.details(PAGE, name, table);
    details(format!("Medians of all {} points", points.len()), medians(comparison, points));
    if comparison.counts.tails > 0 {
        details("All tails".to_owned(), table(comparison, "figure of", &of(points, is_tail)));
    }
    details("Other figures, not tested".to_owned(), table(comparison, "figure of", &of(points, is_telling)));
    document
}

fn is_finding(point: &ComparisonPoint) -> bool {
    point.level == QualityLevel::Ok
        && !matches!(point.verdict, ComparisonVerdict::Same | ComparisonVerdict::CannotTell)
}

/// Figure of a point.
type ComparisonPointFigure<'a> = (&'a ComparisonPoint, ComparisonFigure<'a>);

/// Returns the figures of points that are wanted.
fn of<'a>(
    points: &[&'a ComparisonPoint],
    wanted: impl Fn(&ComparisonFigure) -> bool,
) -> Vec<ComparisonPointFigure<'a>> {
    let of_point = |point: &&'a ComparisonPoint| {
        let point = *point;
        figures(point).into_iter().filter(&wanted).map(move |figure| (point, figure)).collect::<Vec<_>>()
    };
    points.iter().flat_map(of_point).collect()
}

fn table(comparison: &ComparisonResult, heading: &str, rows: &[ComparisonPointFigure]) -> DocumentTable {
    DocumentTable::new(columns(comparison, heading, rows))
}

/// Returns the table of the medians with their verdicts.
fn medians(comparison: &ComparisonResult, points: &[&ComparisonPoint]) -> DocumentTable {
    let rows: Vec<ComparisonPointFigure> = points.iter().map(|point| (*point, median(point))).collect();
    let mut columns = columns(comparison, "p50", &rows);
    columns.retain(|column| column.field != "figure");
    DocumentTable::new(columns)
}

fn columns(comparison: &ComparisonResult, heading: &str, rows: &[ComparisonPointFigure]) -> Vec<TableColumn> {
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
        Text::plain(ratio(figure.contrast)).exact(number(figure.contrast.map(|contrast| contrast.ratio)))
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
        rows.left(heading, |(point, _)| &point.title),
        rows.field("id", |(point, _)| &point.id),
        rows.field("probe", |(point, _)| &point.probe),
        rows.field("title", |(point, _)| &point.title),
        rows.left("figure", |(_, figure)| &figure.name).csv("figure"),
        rows.field("unit", |(_, figure)| figure.unit),
        rows.field("better", |(_, figure)| name(&figure.better)),
        rows.right("A", |(_, figure)| quantity(figure.a, figure.beyond[0], figure.unit)).rank(3).csv("a"),
        rows.right("B", |(_, figure)| quantity(figure.b, figure.beyond[1], figure.unit)).rank(3).csv("b"),
        rows.right("B/A", |(_, figure)| by(figure)).rank(1).csv("ratio"),
        rows.left("95 %", |(_, figure)| interval(figure.contrast)).rank(2),
        contrast("low", |c| c.interval.map(|range| range.low)),
        contrast("high", |c| c.interval.map(|range| range.high)),
        rows.drawing("½× … 2×", |(point, figure)| strip(point, figure)),
        rows.left("verdict", |(point, figure)| verdict(point, figure)).csv("verdict"),
        rows.left("why", |(point, _)| point.reasons.join("; ")).on(FILES),
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
        rows.field("quality", |(point, _)| point.level.word()),
    ]
}

/// Returns the verdict on a figure, and beside it how far its point can be trusted; empty for a figure that was not
/// judged.
fn verdict(point: &ComparisonPoint, figure: &ComparisonFigure) -> Text {
    let Some(verdict) = figure.verdict else { return Text::default() };
    let mark = match point.level {
        QualityLevel::Ok => "",
        QualityLevel::Unstable => " (unstable)",
        _ => " (degraded)",
    };
    Text::styled(style(verdict), verdict_words(figure)).with(WARNING, mark).exact(name(&verdict))
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
