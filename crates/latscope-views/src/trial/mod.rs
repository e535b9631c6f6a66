//! Trials: whether a change helps, and a table of measurements under loads.

mod acceptance;

use crate::column::{ColumnBuilder, FILES, Forms, PAGE, SHOWN, TERMINAL, TableColumn};
use crate::document::{self, DocumentBlock, DocumentTable, FACT, NOTE, ViewDocument, escape};
use crate::style::{ALARM, DIM, GOOD, PLAIN, WARNING};
use crate::styled::{Text, wrap};
use crate::{DisplayOptions, comparison};
use anstyle::Style;
use latscope_core::ordered::entry;
use latscope_core::units::{count_with_noun, format_count, format_share, format_time};
use latscope_judge::acceptance::Acceptance;
use latscope_judge::compare::ComparisonResult;
use latscope_judge::trial::{TrialArmCell, TrialArmEffect, TrialArmRow, TrialVerdict};

/// Maximum number of rows of a cell, unless all are asked for.
const MOST: usize = 12;

/// Returns the arms, a line each, with what they change: `A  without: CMD`. With more than two arms a dash
/// replaces the letter, since each is B in its turn.
pub fn arms(arms: &[(String, String)], options: &DisplayOptions) -> String {
    let letter = |at: usize| if arms.len() == 2 { ["A", "B"][at] } else { "–" };
    let line = |(at, (name, does)): (usize, &(String, String))| {
        let text = if does.is_empty() { name.clone() } else { format!("{name}: {does}") };
        wrap(&Text::plain(format!("{}  ", letter(at))), &text, PLAIN, options)
    };
    arms.iter().enumerate().map(line).collect()
}

/// Returns a text after its first words, in lines as wide as the terminal.
pub fn paragraph(first: &str, text: &str, options: &DisplayOptions) -> String {
    wrap(&Text::plain(first), text, PLAIN, options)
}

/// Returns how many medians and tails differ, and by how much.
fn describe_effect(judged: &TrialArmEffect, points: &str) -> String {
    let medians = format!("{} faster and {} slower of {points}", judged.faster, judged.slower);
    let ratios = judged.ratios.map_or(String::new(), |[low, high]| match low == high {
        true => format!(" ({low:.3} times as long)"),
        false => format!(" ({low:.3} to {high:.3} times as long)"),
    });
    let tails = match judged.less_often + judged.more_often {
        0 => String::new(),
        _ => format!("; tails reached less often: {}, more often: {}", judged.less_often, judged.more_often),
    };
    format!("{medians}{ratios}{tails}")
}

/// Returns a sentence or two on whether the change helps. Between two arms that are the same, a difference is a
/// false one.
pub fn answer(judged: &TrialArmEffect, name: &str, is_same: bool, margin: f64) -> String {
    let points = count_with_noun(judged.compared as u64, "point");
    let differs = matches!(judged.answer, TrialVerdict::Helps | TrialVerdict::Hurts | TrialVerdict::Mixed);
    if is_same && differs {
        return format!(
            "Both arms are the same, and yet {name} differs: {}. That is a false alarm, or this machine changes too \
             much for a trial.",
            describe_effect(judged, &points)
        );
    }
    match judged.answer {
        TrialVerdict::Helps => format!("Yes: {name} is better: {}.", describe_effect(judged, &points)),
        TrialVerdict::Hurts => format!("No: {name} is worse: {}.", describe_effect(judged, &points)),
        TrialVerdict::Mixed => format!("Better and worse: {}.", describe_effect(judged, &points)),
        TrialVerdict::Same => {
            let all = if judged.compared == 1 {
                "the median is the same".to_owned()
            } else {
                format!("the medians of all {points} are the same")
            };
            let tails = match judged.tails_unknown {
                0 => String::new(),
                unknown => format!("; {} cannot be decided", count_with_noun(unknown as u64, "tail")),
            };
            format!("No difference: {all} within ±{}{tails}.", format_share(margin))
        }
        TrialVerdict::Differs => format!(
            "Cannot tell: these runs differ in {}, and there are too few of them to say more.{}",
            match judged.differ {
                0 => "their tails".to_owned(),
                differ => format!("{differ} of {points}"),
            },
            more_runs(judged)
        ),
        TrialVerdict::CannotTell if judged.compared == 0 => {
            "Cannot tell: no point of both arms can be trusted (--all shows why).".to_owned()
        }
        TrialVerdict::CannotTell => format!(
            "Cannot tell: {} of {points} cannot be decided, {} the same.{}",
            judged.cannot_tell,
            judged.same,
            more_runs(judged)
        ),
    }
}

/// Returns advice on how many runs or rounds would decide the undecided points.
fn more_runs(judged: &TrialArmEffect) -> String {
    let would = |option: &str, number: Option<usize>, points: usize| {
        let points = count_with_noun(points as u64, if judged.told_is_of_tails() { "tail" } else { "point" });
        number.map(|number| format!(" {option} {number} may tell {points}, by the spread so far."))
    };
    let runs = would("--runs", judged.runs, judged.told_by_runs);
    let rounds = would("--rounds", judged.rounds, judged.told_by_rounds);
    let never = |number: usize, why: &str| {
        let all = runs.is_none() && rounds.is_none() && judged.too_near.min(judged.too_wide) == 0;
        let of = if all { "The ratio".to_owned() } else { format!("Of {number} the ratio") };
        (number > 0).then(|| format!(" {of} {why}: a hundred runs would not tell."))
    };
    let near = never(judged.too_near, "is too near to the margin");
    let wide = never(judged.too_wide, "scatters too far from run to run");
    runs.iter().chain(&rounds).chain(&near).chain(&wide).map(String::as_str).collect()
}

/// Returns the tables of measurements under loads, one a measurement; with `all` every row.
fn format_tables(cells: &[TrialArmCell], all: bool, options: &DisplayOptions) -> String {
    build_document(cells, all).to_text(options)
}

/// Returns the tables as Markdown with every row or, if runs were judged, the record of the verdicts instead.
fn record_or_tables(title: &str, cells: &[TrialArmCell], record: Option<&Acceptance>) -> String {
    let mut document = ViewDocument::default();
    document.add_heading(1, title);
    document.append(match record {
        Some(record) => acceptance::build_document(record),
        None => self::build_document(cells, true),
    });
    document.to_markdown()
}

/// Returns a line a row as CSV, times in ns; a cell without runs has one line.
pub fn format_csv(cells: &[TrialArmCell]) -> Vec<u8> {
    let lines: Vec<TrialTableRow> = by_measurement(cells, true).into_iter().flatten().collect();
    document::columns_csv(&trial_columns("", SHOWN, &lines))
}

fn build_document(cells: &[TrialArmCell], all: bool) -> ViewDocument {
    let mut document = ViewDocument::default();
    let arms = cells.iter().any(|cell| cell.arm != cells[0].arm);
    let arms = if arms { SHOWN } else { FILES };
    for (forms, all) in [(TERMINAL, all), (FILES, true)] {
        for lines in by_measurement(cells, all) {
            let name = &lines[0].cell.measurement;
            let mut table = DocumentTable::new(trial_columns(name, arms, &lines));
            let cut = lines.iter().filter(|line| line.more > 0);
            table.notes.extend(
                cut.map(|line| {
                    format!("… and {} more of {} runs: --all shows them", line.more, line.cell.arm)
                }),
            );
            document.add_in_forms(forms, DocumentBlock::Table(table));
            document.add_in_forms(forms, DocumentBlock::Gap);
        }
    }
    let rows = || cells.iter().flat_map(|cell| &cell.rows);
    for (is_needed, note) in
        [(rows().any(|row| row.runs > 1), AGGREGATED), (rows().any(|row| row.with_missed), WITH_MISSED)]
    {
        if is_needed {
            document.add_block(DocumentBlock::Text(DIM, note.to_owned()));
        }
    }
    document.items(NOTE, reasons(cells));
    document
}

fn trial_columns(measurement: &str, arms: Forms, lines: &[TrialTableRow]) -> Vec<TableColumn> {
    let rows = ColumnBuilder(lines);
    let count = |name: &'static str, field: fn(&TrialArmRow) -> usize| {
        rows.field(name, |line| line.row.map_or(0, field).to_string())
    };
    let time = |name: &'static str, field: fn(&TrialArmRow) -> Option<f64>| {
        let cell = |line: &TrialTableRow| {
            let ns = line.row.and_then(field);
            let exact = ns.map(|ns| ns.to_string()).unwrap_or_default();
            Text::plain(ns.map(format_time).unwrap_or_default()).exact(exact)
        };
        rows.right(name, cell).with_csv_field(name)
    };
    vec![
        rows.left_aligned(measurement, |line| line.row.map_or("–", |row| &row.title)),
        rows.field("measurement", |line| &line.cell.measurement),
        rows.left_aligned("load", |line| line.cell.load.as_deref().unwrap_or_default())
            .with_csv_field("load"),
        rows.left_aligned("arm", |line| &line.cell.arm).for_forms(arms).with_csv_field("arm"),
        rows.field("id", |line| line.row.map_or("", |row| &row.id)),
        rows.field("title", |line| line.row.map_or("", |row| &row.title)),
        rows.field("planned", |line| line.cell.planned.to_string()),
        rows.right("runs", |line| line.run_count()).with_csv_field("runs"),
        time("p50", |row| row.p50),
        time("p99", |row| row.p99),
        time("max", |row| row.max),
        rows.right("missed", |line| line.missed()).with_csv_field("missed"),
        rows.left_aligned("verdict", |line| line.verdict_text()),
        count("held", |row| row.held),
        count("exceeded", |row| row.exceeded),
        count("inconclusive", |row| row.inconclusive),
        count("marked", |row| row.marked),
        rows.field("why", |line| line.cell.why.as_deref().unwrap_or_default()),
    ]
}

/// Distribution of the figures, where activations were missed.
const WITH_MISSED: &str = "p50, p99: of all activations that were due, also those that were missed.";

/// Meaning of the figures of several runs.
const AGGREGATED: &str = "p50, p99: the median of the runs; max: the largest; missed: the sum.";

/// Returns the reasons for which cells have no runs, each reason once: `load vm: skipped: stress-ng is not
/// installed`.
fn reasons(cells: &[TrialArmCell]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&TrialArmCell>)> = Vec::new();
    for (cell, why) in cells.iter().filter_map(|cell| Some((cell, cell.why.as_deref()?))) {
        entry(&mut all, why).push(cell);
    }
    all.iter().map(|(why, found)| format!("{}: {why}", common_names(found, cells))).collect()
}

/// Returns what some cells have in common, if no other cell has it, else their names.
fn common_names(found: &[&TrialArmCell], cells: &[TrialArmCell]) -> String {
    let whole = |same: &dyn Fn(&TrialArmCell) -> bool| {
        let all = cells.iter().filter(|cell| same(cell)).count() == found.len();
        all && found.len() > 1 && found.iter().all(|cell| same(cell))
    };
    let first = found[0];
    if whole(&|cell| cell.measurement == first.measurement) {
        return first.measurement.clone();
    }
    if whole(&|cell| cell.load == first.load) {
        return format!("load {}", first.load.as_deref().unwrap_or_default());
    }
    if whole(&|cell| cell.arm == first.arm) {
        return format!("arm {}", first.arm);
    }
    found.iter().map(|cell| cell_name(cell)).collect::<Vec<_>>().join("; ")
}

/// A cell by its names: `wake, load network, arm with`.
fn cell_name(cell: &TrialArmCell) -> String {
    let load = cell.load.as_ref().map(|load| format!(", load {load}")).unwrap_or_default();
    let arm = if cell.arm.is_empty() { String::new() } else { format!(", arm {}", cell.arm) };
    format!("{}{load}{arm}", cell.measurement)
}

/// Line of the table: a row of a cell, or a cell without rows.
struct TrialTableRow<'a> {
    cell: &'a TrialArmCell,
    row: Option<&'a TrialArmRow>,
    /// Number of rows of the cell that are left out after this one.
    more: usize,
}

impl TrialTableRow<'_> {
    fn run_count(&self) -> Text {
        let runs = self.row.map_or(self.cell.runs, |row| row.runs);
        Text::plain(runs.to_string()).exact(self.row.map_or(0, |row| row.runs))
    }

    fn missed(&self) -> Text {
        let missed = self.row.map_or(0, |row| row.missed);
        let text = if missed > 0 { format_count(missed) } else { String::new() };
        Text::plain(text).exact(missed)
    }

    fn words(&self) -> (String, Style) {
        let Some(row) = self.row else { return ("not measured".to_owned(), WARNING) };
        let of = |number: usize| if row.runs == 1 { String::new() } else { format!(" in {number}") };
        match row {
            TrialArmRow { exceeded: 1.., .. } => (format!("exceeded{}", of(row.exceeded)), ALARM),
            TrialArmRow { inconclusive: 1.., .. } => {
                (format!("inconclusive{}", of(row.inconclusive)), WARNING)
            }
            TrialArmRow { held: 1.., .. } => ("holds".to_owned(), GOOD),
            _ => (String::new(), PLAIN),
        }
    }

    fn verdict_text(&self) -> Text {
        let (words, style) = self.words();
        Text::in_style(style, &words).with_piece(WARNING, self.quality_suffix())
    }

    /// Returns the text to add if runs are degraded or unstable: the largest figure may be of one of them. Otherwise it
    /// is empty.
    fn quality_suffix(&self) -> String {
        match self.row {
            Some(row) if row.marked == row.runs && row.runs > 0 => " (degraded or unstable)".to_owned(),
            Some(row) if row.marked > 0 => format!(" (degraded or unstable in {})", row.marked),
            _ => String::new(),
        }
    }
}

/// The lines of each measurement, in the order of the cells.
fn by_measurement(cells: &[TrialArmCell], all: bool) -> Vec<Vec<TrialTableRow<'_>>> {
    let mut found: Vec<Vec<TrialTableRow>> = Vec::new();
    for cell in cells {
        let kept = if all { cell.rows.len() } else { cell.rows.len().min(MOST) };
        let more = cell.rows.len() - kept;
        let mut lines: Vec<TrialTableRow> =
            cell.rows[..kept].iter().map(|row| TrialTableRow { cell, row: Some(row), more: 0 }).collect();
        if lines.is_empty() {
            lines.push(TrialTableRow { cell, row: None, more: 0 });
        }
        if let Some(last) = lines.last_mut() {
            last.more = more;
        }
        match found.last_mut().filter(|lines| lines[0].cell.measurement == cell.measurement) {
            Some(known) => known.extend(lines),
            None => found.push(lines),
        }
    }
    found
}

/// Content of what is shown of a trial.
#[derive(Debug)]
pub struct TrialPage<'a> {
    /// Question that the page answers; empty if it has none.
    pub title: &'a str,
    /// Number of the runs, their order and time.
    pub facts: String,
    /// Name of each arm, and what it changes.
    pub arms: Vec<(String, String)>,
    /// Objections to the result: runs that do not count, warnings.
    pub against: Vec<String>,
    /// Parts that were left out.
    pub skipped: Vec<String>,
    /// The command lines of the measurements.
    pub commands: Vec<String>,
    /// The record of runs that were judged.
    pub record: Option<&'a Acceptance>,
    /// The measurements under loads.
    pub cells: &'a [TrialArmCell],
    /// True if the table of measurements was asked for; otherwise the reader has to open it.
    pub is_table: bool,
    /// Comparisons of two arms each.
    pub parts: Vec<TrialComparison<'a>>,
}

/// Comparison of two arms.
#[derive(Debug)]
pub struct TrialComparison<'a> {
    /// Names of the two arms, if there are several comparisons.
    pub heading: Option<String>,
    /// Answer to whether the change helps.
    pub answer: TrialVerdict,
    /// The answer in words.
    pub words: String,
    /// The comparison in full.
    pub comparison: &'a ComparisonResult,
}

/// Maximum number of points of which all are shown, those that do not differ, too.
const FEW: usize = 10;

impl TrialComparison<'_> {
    fn shows_all(&self, all: bool) -> bool {
        all || self.comparison.points.len() <= FEW
    }
}

impl TrialPage<'_> {
    fn title_or_usual(&self) -> &str {
        if self.title.is_empty() { "latscope trial" } else { self.title }
    }
}

/// Returns the arms of a trial, what speaks against it, its table and comparisons for a terminal; with `all` every row.
pub fn format_text(page: &TrialPage, all: bool, options: &DisplayOptions) -> String {
    let title = if page.title.is_empty() { String::new() } else { format!("{}\n", page.title) };
    let mut out = title + &arms(&page.arms, options);
    if let Some(record) = page.record {
        out += &paragraph("", &record.sentence, options);
    }
    page.against.iter().for_each(|line| out += &paragraph("!  ", line, options));
    if page.is_table {
        out += &format!("\n{}", format_tables(page.cells, all, options));
    }
    for part in &page.parts {
        out += "\n";
        if let Some(heading) = &part.heading {
            out += &paragraph("", heading, options);
        }
        out += &comparison::format_text(part.comparison, part.shows_all(all), options);
        // One line, which scripts read.
        out += &format!("\n{}\n", part.words);
    }
    out
}

/// Returns the same as Markdown.
pub fn format_markdown(page: &TrialPage, all: bool) -> String {
    let mut out = String::new();
    let record = page.record.filter(|_| page.is_table);
    if page.is_table {
        out += &record_or_tables(page.title_or_usual(), page.cells, record);
    }
    if record.is_some() && !page.against.is_empty() {
        out += "\n#### What speaks against the runs\n\n";
    }
    page.against.iter().for_each(|line| out += &format!("- {}\n", escape(line)));
    for part in &page.parts {
        let heading = part.heading.as_ref().map(|text| format!("### {}\n\n", escape(text)));
        let body = comparison::format_markdown(part.comparison, part.shows_all(all));
        out += &format!("\n{}{body}\n**{}**\n", heading.unwrap_or_default(), escape(&part.words));
    }
    if record.is_some() {
        out += &format!("\n{}", acceptance::signature().to_markdown());
    }
    out
}

/// Returns the page: the verdicts first, then what was run, the table of measurements, and each comparison in full.
pub fn html(page: &TrialPage) -> String {
    let mut whole = ViewDocument::default();
    whole.add_heading(1, page.title_or_usual());
    whole.items(FACT, [page.facts.clone()]);
    if let Some(record) = page.record {
        whole.add_heading(2, "Acceptance");
        whole.append(acceptance::build_document(record));
    }
    if !page.parts.is_empty() {
        whole.add_heading(2, "Verdict");
    }
    for part in &page.parts {
        let heading = part.heading.as_ref().map(|text| format!("{text}: ")).unwrap_or_default();
        whole.add_block(DocumentBlock::Text(style(part.answer), format!("{heading}{}", part.words)));
    }
    whole.add_heading(2, "What was run");
    whole.items(NOTE, page.against.iter().chain(&page.skipped).cloned());
    let arms = arms(&page.arms, &DisplayOptions { width: 1000, ..DisplayOptions::default() });
    whole.items(FACT, page.commands.iter().cloned().chain(arms.lines().map(str::to_owned)));
    if !page.cells.is_empty() {
        whole.add_heading(2, "Measurements");
        let rows: usize = page.cells.iter().map(|cell| cell.rows.len().max(1)).sum();
        let tables = build_document(page.cells, true);
        match page.is_table {
            true => whole.append(tables),
            false => {
                whole.add_in_forms(PAGE, DocumentBlock::Details(count_with_noun(rows as u64, "row"), tables))
            }
        }
    }
    for part in &page.parts {
        whole.add_heading(2, part.heading.as_deref().unwrap_or("The arms compared"));
        whole.append(comparison::document(part.comparison, false));
    }
    if page.record.is_some() {
        whole.append(acceptance::signature());
    }
    whole.to_page(page.title_or_usual())
}

fn style(answer: TrialVerdict) -> Style {
    match answer {
        TrialVerdict::Helps => GOOD,
        TrialVerdict::Hurts => ALARM,
        TrialVerdict::Mixed | TrialVerdict::Differs => WARNING,
        TrialVerdict::Same | TrialVerdict::CannotTell => PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(answer: TrialVerdict) -> TrialArmEffect {
        TrialArmEffect {
            answer,
            compared: 12,
            faster: 3,
            slower: 0,
            differ: 0,
            same: 4,
            cannot_tell: 5,
            less_often: 0,
            more_often: 1,
            tails_unknown: 2,
            ratios: Some([0.8, 0.912]),
            runs: Some(20),
            told_by_runs: 4,
            rounds: None,
            told_by_rounds: 0,
            too_near: 0,
            too_wide: 0,
        }
    }

    #[test]
    fn the_last_line_says_whether_it_helps_and_on_what_that_rests() {
        let said = |of: TrialVerdict| answer(&judged(of), "B (with)", false, 0.05);
        let told = "3 faster and 0 slower of 12 points (0.800 to 0.912 times as long); tails reached less often: 0, \
                    more often: 1.";
        assert_eq!(said(TrialVerdict::Helps), format!("Yes: B (with) is better: {told}"));
        assert_eq!(said(TrialVerdict::Mixed), format!("Better and worse: {told}"));
        assert_eq!(
            said(TrialVerdict::CannotTell),
            "Cannot tell: 5 of 12 points cannot be decided, 4 the same. --runs 20 may tell 4 points, by the spread so far."
        );
        assert!(said(TrialVerdict::Same).starts_with("No difference: the medians of all 12 points"));
        assert!(answer(&judged(TrialVerdict::Hurts), "B (b)", true, 0.05).contains("a false alarm"));
        let none = TrialArmEffect { compared: 0, ..judged(TrialVerdict::CannotTell) };
        assert!(answer(&none, "B (with)", false, 0.05).contains("no point of both arms can be trusted"));
    }

    fn cells() -> Vec<TrialArmCell> {
        let row = |exceeded| TrialArmRow {
            id: "wake.timer".to_owned(),
            title: "timer wake-up".to_owned(),
            runs: 3,
            p50: Some(4_500.0),
            max: Some(120_000.0),
            held: 3 - exceeded,
            exceeded,
            ..TrialArmRow::default()
        };
        let cell = |measurement: &str, load: &str, rows: Vec<TrialArmRow>| TrialArmCell {
            measurement: measurement.to_owned(),
            load: Some(load.to_owned()),
            arm: "as-is".to_owned(),
            planned: 3,
            runs: if rows.is_empty() { 0 } else { 3 },
            why: rows.is_empty().then(|| "skipped: no such | device".to_owned()),
            rows,
        };
        vec![
            cell("wake", "idle", vec![row(0)]),
            cell("wake", "cpu", vec![row(2)]),
            cell("binder", "idle", vec![]),
            cell("many", "idle", vec![row(0); MOST + 3]),
        ]
    }

    #[test]
    fn a_table_has_a_line_for_each_row_and_names_what_is_skipped() {
        let text =
            format_tables(&cells(), false, &DisplayOptions { width: 100, ..DisplayOptions::default() });
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let line =
            |word: &str| text.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{text}"));
        assert!(line("idle").contains("holds") && line("idle").contains("4.50 µs"), "{text}");
        assert!(line("cpu").contains("exceeded in 2"), "{text}");
        assert!(line("not measured").contains('–'), "{text}");
        assert!(text.contains("!  binder, load idle, arm as-is: skipped: no such | device"), "{text}");
        let mut more = cells();
        more.push(TrialArmCell { load: Some("cpu".to_owned()), ..more[2].clone() });
        let text = format_tables(&more, false, &DisplayOptions { width: 100, ..DisplayOptions::default() });
        assert!(text.contains("!  binder: skipped: no such | device"), "{text}");
        assert!(text.contains("and 3 more") && !text.contains("  arm  "), "{text}");
        let all = format_tables(&cells(), true, &DisplayOptions { width: 100, ..DisplayOptions::default() });
        assert!(!all.contains("more of"), "{all}");
    }

    #[test]
    fn the_table_is_the_same_as_markdown_and_csv() {
        let markdown = record_or_tables("a | title", &cells(), None);
        assert!(markdown.contains("## a \\| title") && markdown.contains("| exceeded in 2 |"), "{markdown}");
        assert!(markdown.contains("no such \\| device"), "{markdown}");
        let csv = String::from_utf8(format_csv(&cells())).unwrap();
        assert_eq!(csv.lines().count(), 1 + 3 + MOST + 3);
        assert!(
            csv.lines()
                .nth(2)
                .unwrap()
                .starts_with("wake,cpu,as-is,wake.timer,timer wake-up,3,3,4500,,120000,0,1,2,0"),
            "{csv}"
        );
    }
}
