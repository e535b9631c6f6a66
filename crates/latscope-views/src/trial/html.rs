//! HTML page with the results of a trial or a plan.

use super::acceptance;
use crate::column::PAGE;
use crate::comparison;
use crate::document::{Block, Document, FACT, NOTE};
use crate::style::{ALARM, GOOD, PLAIN, WARNING};
use latscope_core::units::counted;
use latscope_judge::acceptance::Acceptance;
use latscope_judge::compare::Comparison;
use latscope_judge::trial::{Answer, Cell};

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

/// Returns the page: the verdicts first, then what was run, the table of measurements, and each comparison in full.
pub fn html(page: &Page) -> String {
    let mut document = Document::default();
    document.heading(1, page.title);
    document.items(FACT, page.facts.iter().cloned());
    if let Some(record) = page.record {
        document.heading(2, "Acceptance");
        document.append(acceptance::document(record));
    }
    if !page.parts.is_empty() {
        document.heading(2, "Verdict");
    }
    for part in &page.parts {
        let heading = part.heading.as_ref().map(|text| format!("{text}: ")).unwrap_or_default();
        document.add(Block::Text(style(part.answer), format!("{heading}{}", part.words)));
    }
    document.heading(2, "What was run");
    document.items(NOTE, page.against.iter().cloned());
    document.items(FACT, page.commands.iter().chain(&page.arms).cloned());
    if !page.cells.is_empty() {
        document.heading(2, "Measurements");
        let rows: usize = page.cells.iter().map(|cell| cell.rows.len().max(1)).sum();
        let tables = super::document(page.cells, true);
        match page.is_table {
            true => document.append(tables),
            false => document.on(PAGE, Block::Details(counted(rows as u64, "row"), tables)),
        }
    }
    for part in &page.parts {
        document.heading(2, part.heading.as_deref().unwrap_or("The arms compared"));
        document.append(comparison::document(part.comparison, false));
    }
    document.page(page.title)
}

fn style(answer: Answer) -> anstyle::Style {
    match answer {
        Answer::Helps => GOOD,
        Answer::Hurts => ALARM,
        Answer::Mixed | Answer::Differs => WARNING,
        Answer::Same | Answer::CannotTell => PLAIN,
    }
}
