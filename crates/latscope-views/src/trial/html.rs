//! HTML page with the results of a trial or a plan.

use super::{Line, acceptance, by_measurement, reasons};
use crate::comparison;
use crate::grid::Side;
use crate::html::{cell, details, document, list, table};
use crate::markup::{Element, element};
use anstyle::Style;
use latscope_core::units::{counted, format_time};
use latscope_judge::acceptance::Acceptance;
use latscope_judge::compare::Comparison;
use latscope_judge::trial::{Answer, Cell, Row};

/// Content of the page of a trial.
#[derive(Debug)]
pub struct Page<'a> {
    /// Question that the page answers.
    pub title: &'a str,
    /// Facts on the trial, a line each: its time, its number of runs.
    pub facts: Vec<String>,
    /// Description of each arm: its letter, its name and its commands.
    pub arms: Vec<String>,
    /// Objections to the result: runs that do not count, warnings, parts that were left out.
    pub against: Vec<String>,
    /// The command lines of the measurements.
    pub commands: Vec<String>,
    /// The record of runs that were judged.
    pub record: Option<&'a Acceptance>,
    /// The measurements under loads.
    pub cells: &'a [Cell],
    /// True if the table of measurements was asked for; otherwise the reader has to open it.
    pub is_table: bool,
    /// Comparisons of two arms each.
    pub parts: Vec<Part<'a>>,
}

/// Comparison of two arms.
#[derive(Debug)]
pub struct Part<'a> {
    /// Names of the two arms, if there are several comparisons.
    pub heading: Option<String>,
    /// Answer to whether the change helps.
    pub answer: Answer,
    /// The answer in words.
    pub words: String,
    /// The comparison in full.
    pub comparison: &'a Comparison,
}

/// The page: the verdicts first, then what was run, the table of measurements, and each comparison in full.
pub fn html(page: &Page) -> String {
    let header = element("header")
        .child(element("h1").text(page.title))
        .children(list(page.facts.iter().cloned()).map(|list| list.with("class", "facts")));
    let main = element("main")
        .children(page.record.map(acceptance::section))
        .children(verdicts(page))
        .child(what_was_run(page))
        .children(measurements(page))
        .children(page.parts.iter().map(part));
    document(page.title, [header, main])
}

fn verdicts(page: &Page) -> Option<Element> {
    let verdict = |part: &Part| {
        let class = match part.answer {
            Answer::Helps => "good",
            Answer::Hurts => "bad",
            Answer::Mixed | Answer::Differs => "doubt",
            Answer::Same | Answer::CannotTell => "asked",
        };
        let heading = part.heading.as_ref().map(|text| format!("{text}: ")).unwrap_or_default();
        let words = element("b").with("class", class).text(&part.words);
        element("p").text(heading).child(words)
    };
    let section = element("section").child(element("h2").text("Verdict"));
    (!page.parts.is_empty()).then(|| section.children(page.parts.iter().map(verdict)))
}

fn what_was_run(page: &Page) -> Element {
    let commands = page.commands.iter().map(|line| element("li").child(element("code").text(line)));
    element("section")
        .child(element("h2").text("What was run"))
        .children(list(page.against.iter().cloned()).map(|list| list.with("class", "bad")))
        .child(element("ul").with("class", "plain").children(commands))
        .children(list(page.arms.iter().cloned()))
}

const COLUMNS: [(&str, Side); 9] = [
    ("point", Side::Left),
    ("load", Side::Left),
    ("arm", Side::Left),
    ("runs", Side::Right),
    ("p50", Side::Right),
    ("p99", Side::Right),
    ("max", Side::Right),
    ("missed", Side::Right),
    ("verdict", Side::Left),
];

/// Returns a table with every row for each measurement.
fn measurements(page: &Page) -> Option<Element> {
    let tables = by_measurement(page.cells, true).into_iter().flat_map(|lines| {
        let name = lines.first().map(|line| line.cell.measurement.clone()).unwrap_or_default();
        [element("h3").text(name), table(&COLUMNS, lines.iter().map(row))]
    });
    let content = element("div")
        .children(tables)
        .children(list(reasons(page.cells)).map(|list| list.with("class", "bad")));
    let section = element("section").child(element("h2").text("Measurements"));
    let rows: usize = page.cells.iter().map(|cell| cell.rows.len().max(1)).sum();
    (!page.cells.is_empty()).then(|| match page.is_table {
        true => section.child(content),
        false => section.child(details(&counted(rows as u64, "row"), content)),
    })
}

fn row(line: &Line) -> Element {
    let time = |of: fn(&Row) -> Option<f64>| line.row.and_then(of).map(format_time).unwrap_or_default();
    let (words, style) = line.words();
    element("tr")
        .child(cell(line.title(), Side::Left))
        .child(cell(line.load(), Side::Left))
        .child(cell(&line.cell.arm, Side::Left))
        .child(cell(line.runs().to_string(), Side::Right))
        .child(cell(time(|row| row.p50), Side::Right))
        .child(cell(time(|row| row.p99), Side::Right))
        .child(cell(time(|row| row.max), Side::Right))
        .child(cell(line.missed(), Side::Right))
        .child(
            element("td").child(element("span").with("class", class(style)).text(words)).text(line.marked()),
        )
}

/// The class of a page for a style of the terminal.
fn class(style: Style) -> &'static str {
    use crate::style::{ALARM, GOOD, WARNING};
    match style {
        ALARM => "bad",
        WARNING => "doubt",
        GOOD => "good",
        _ => "asked",
    }
}

fn part(part: &Part) -> Element {
    let heading = part.heading.clone().unwrap_or_else(|| "The arms compared".to_owned());
    element("section")
        .child(element("h2").text(heading))
        .children(comparison::document(part.comparison, false).elements())
}
