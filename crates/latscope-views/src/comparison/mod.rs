//! Two sides of results beside each other: as text, Markdown, CSV and a page.

pub(crate) mod figures;
mod head;
mod pictures;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use head::{difference, runs};
#[cfg(test)]
pub(crate) use pictures::by_percentile;

use crate::Options;
use crate::column::{Column, FILES, MARKDOWN, PAGE, Rows, TERMINAL};
use crate::csv::name;

use crate::document::{self, Block, DIFFERS, Document, FACT, Mark, NOTE, Table};
use crate::html::{ratio_legend, ratio_strip};
use crate::style::{ALARM, DIM, GOOD, PLAIN, WARNING};
use crate::styled::Text;
use anstyle::Style;
use figures::{Figure, figures, interval, is_tail, is_telling, median, quantity, ratio, verdict_words};
use latscope_core::quality::Level;
use latscope_core::units::format_share;
use latscope_judge::compare::{Comparison, Contrast, Point, Verdict};

/// Number of rows of a table that a terminal shows, unless all are asked for.
const MOST: usize = 30;

/// Forms that are read from top to bottom: the page shows the findings in other sections.
const LINES: crate::column::Forms = TERMINAL.and(MARKDOWN);

const SIDES: [Mark; 2] =
    [Mark { sign: "A  ", word: "A: ", style: PLAIN }, Mark { sign: "B  ", word: "B: ", style: PLAIN }];

/// Returns a comparison on a terminal: the points that differ, or with `all` every point.
pub fn text(comparison: &Comparison, all: bool, options: &Options) -> String {
    document(comparison, all).written(options)
}

/// Returns a comparison as Markdown: the points that differ, or with `all` every point.
pub fn markdown(comparison: &Comparison, all: bool) -> String {
    titled(comparison, all).markdown()
}

/// Returns the page: the sides, their differences, how far the verdicts can be trusted, the points that differ,
/// then every point.
pub fn html(comparison: &Comparison) -> String {
    titled(comparison, false).page("latscope compare")
}

/// Returns every figure of each point that was compared as CSV.
pub fn csv(comparison: &Comparison) -> Vec<u8> {
    let rows = of(&comparison.points.iter().collect::<Vec<_>>(), |_| true);
    document::csv(&columns(comparison, "title", &rows))
}

fn titled(comparison: &Comparison, all: bool) -> Document {
    let mut document = Document::default();
    document.heading(1, "latscope compare");
    document.append(self::document(comparison, all));
    document
}

/// Returns the parts of a comparison, without a title.
pub(crate) fn document(comparison: &Comparison, all: bool) -> Document {
    let mut document = Document::default();
    for (mark, side) in SIDES.into_iter().zip([&comparison.a, &comparison.b]) {
        document.items_on(PAGE, mark, [head::side_and_machine(side)]);
        document.items_on(LINES, mark, [head::side(side)]);
    }
    document.on(PAGE, Block::heading(2, "How far to trust it"));
    document.items(DIFFERS, head::differences(comparison));
    document.items(NOTE, comparison.remarks.iter().cloned());
    document.on(TERMINAL, Block::Gap);
    document.items(FACT, head::verdicts(comparison));
    let after: Vec<String> =
        head::would_tell(comparison).into_iter().chain(head::apart(comparison)).collect();
    document.items_on(PAGE, FACT, after.clone());
    document.on(PAGE, Block::heading(2, "What differs"));
    let every: Vec<&Point> = comparison.points.iter().collect();
    let found: Vec<&Point> = every.iter().copied().filter(|point| is_finding(point)).collect();
    let is_shown = |point: &&Point| all || is_finding(point) || point.beyond.is_some();
    let shown: Vec<&Point> = every.iter().copied().filter(is_shown).collect();
    tables(comparison, &shown, all, &mut document);
    if found.is_empty() {
        document.on(PAGE, Block::Text(PLAIN, "No point is slower, faster or differs.".to_owned()));
    } else {
        document.on(PAGE, Block::Table(medians(comparison, &found)));
        document.on(PAGE, Block::Text(DIM, ratio_legend("B/A", &format_share(comparison.margin))));
    }
    let figures = pictures::by_percentile(comparison);
    if !figures.is_empty() {
        document.on(PAGE, Block::heading(2, "Single events, by percentile"));
    }
    figures.into_iter().for_each(|figure| document.on(PAGE, Block::Figure(figure)));
    document.append(every_point(comparison, &every));
    if !after.is_empty() {
        document.on(TERMINAL, Block::Gap);
    }
    document.items_on(LINES, FACT, after);
    document
}

/// Adds the tables of some points for a terminal and Markdown.
fn tables(comparison: &Comparison, points: &[&Point], all: bool, document: &mut Document) {
    let most = if all { usize::MAX } else { MOST };
    let mut add = |table: Table| {
        document.on(TERMINAL, Block::Gap);
        document.on(LINES, Block::Table(Table { most, ..table }));
    };
    if !points.is_empty() {
        add(medians(comparison, points));
    }
    let single = |point: &&&Point| {
        point.p99.is_some() || figures(point).iter().any(|f| is_telling(f) && f.name != "max")
    };
    let single: Vec<&Point> = points.iter().filter(single).copied().collect();
    let beside = of(&single, is_telling);
    if !beside.is_empty() {
        add(table(comparison, "beside the median, not tested", &beside));
    }
    if comparison.counts.tails > 0 {
        document.on(TERMINAL, Block::Gap);
        document.on(LINES, Block::Text(PLAIN, head::tails(comparison)));
        let judged: Vec<&Point> = comparison.points.iter().filter(|point| point.level == Level::Ok).collect();
        let differs = |figure: &Figure| !matches!(figure.verdict, Some(Verdict::Same | Verdict::CannotTell));
        let tails = of(&judged, |figure| is_tail(figure) && (all || differs(figure)));
        if !tails.is_empty() {
            let table = Table { most, ..table(comparison, "tail", &tails) };
            document.on(LINES, Block::Table(table));
        }
    }
}

/// Returns the section of the page with all figures of every point.
fn every_point(comparison: &Comparison, points: &[&Point]) -> Document {
    let mut document = Document::default();
    document.on(PAGE, Block::heading(2, "Every point"));
    let mut details = |name: String, table: Table| document.details(PAGE, name, table);
    details(format!("Medians of all {} points", points.len()), medians(comparison, points));
    if comparison.counts.tails > 0 {
        details("All tails".to_owned(), table(comparison, "figure of", &of(points, is_tail)));
    }
    details("Other figures, not tested".to_owned(), table(comparison, "figure of", &of(points, is_telling)));
    document
}

fn is_finding(point: &Point) -> bool {
    point.level == Level::Ok && !matches!(point.verdict, Verdict::Same | Verdict::CannotTell)
}

/// Figure of a point.
type Of<'a> = (&'a Point, Figure<'a>);

/// Returns the figures of points that are wanted.
fn of<'a>(points: &[&'a Point], wanted: impl Fn(&Figure) -> bool) -> Vec<Of<'a>> {
    let of_point = |point: &&'a Point| {
        let point = *point;
        figures(point).into_iter().filter(&wanted).map(move |figure| (point, figure)).collect::<Vec<_>>()
    };
    points.iter().flat_map(of_point).collect()
}

fn table(comparison: &Comparison, heading: &str, rows: &[Of]) -> Table {
    Table::new(columns(comparison, heading, rows))
}

/// Returns the table of the medians with their verdicts.
fn medians(comparison: &Comparison, points: &[&Point]) -> Table {
    let rows: Vec<Of> = points.iter().map(|point| (*point, median(point))).collect();
    let mut columns = columns(comparison, "p50", &rows);
    columns.retain(|column| column.field != "figure");
    Table::new(columns)
}

fn columns(comparison: &Comparison, heading: &str, rows: &[Of]) -> Vec<Column> {
    let rows = Rows(rows);
    let margin = |point: &Point, figure: &Figure| {
        if is_tail(figure) { comparison.tail_margin } else { point.margin }
    };
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let quantity = |value: Option<f64>, beyond: Option<f64>, unit: &str| {
        let beyond = beyond.map(|last| format!("> {}", quantity(Some(last), unit)));
        Text::plain(beyond.unwrap_or_else(|| quantity(value, unit))).exact(number(value))
    };
    let by = |figure: &Figure| {
        Text::plain(ratio(figure.contrast)).exact(number(figure.contrast.map(|contrast| contrast.ratio)))
    };
    let strip = |point: &Point, figure: &Figure| {
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
fn verdict(point: &Point, figure: &Figure) -> Text {
    let Some(verdict) = figure.verdict else { return Text::default() };
    let mark = match point.level {
        Level::Ok => "",
        Level::Unstable => " (unstable)",
        _ => " (degraded)",
    };
    Text::styled(style(verdict), verdict_words(figure)).with(WARNING, mark).exact(name(&verdict))
}

/// The style of a verdict, and its name in CSV.
fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Slower => ALARM,
        Verdict::Faster => GOOD,
        Verdict::Differs => WARNING,
        Verdict::Same => PLAIN,
        Verdict::CannotTell => DIM,
    }
}

fn would_tell(point: &Point, figure: &Figure) -> String {
    let advice = point.would_tell.filter(|_| figure.name == "p50");
    advice.map(|advice| advice.to_string()).unwrap_or_default()
}
