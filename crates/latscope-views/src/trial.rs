//! Trials: whether a change helps, and a table of measurements under loads.

mod acceptance;
mod html;

pub use html::{Page, Part, html};

use crate::Options;
use crate::csv::shown;
use crate::grid::{Column, Side, Text, grid, wrap};
use crate::markdown::escape;
use crate::style::{ALARM, DIM, GOOD, HEADING, PLAIN, WARNING};
use anstyle::Style;
use latscope_core::units::{counted, format_count, format_share, format_time};
use latscope_judge::acceptance::Acceptance;
use latscope_judge::trial::{Answer, Cell, Judged, Row};

/// Maximum number of rows of a cell, unless all are asked for.
const MOST: usize = 12;

/// Returns the arms, a line each, with what they change: `A  without: CMD`. With more than two arms a dash
/// replaces the letter, since each is B in its turn.
pub fn arms(arms: &[(String, String)], options: &Options) -> String {
    let letter = |at: usize| if arms.len() == 2 { ["A", "B"][at] } else { "–" };
    let line = |(at, (name, does)): (usize, &(String, String))| {
        let text = if does.is_empty() { name.clone() } else { format!("{name}: {does}") };
        wrap(&Text::plain(format!("{}  ", letter(at))), &text, PLAIN, options.width, options.color)
    };
    arms.iter().enumerate().map(line).collect()
}

/// Returns a text after its first words, in lines as wide as the terminal.
pub fn paragraph(first: &str, text: &str, options: &Options) -> String {
    wrap(&Text::plain(first), text, PLAIN, options.width, options.color)
}

/// Returns a sentence or two on whether the change helps. Between two arms that are the same, a difference is a
/// false one.
pub fn answer(judged: &Judged, name: &str, is_same: bool, margin: f64) -> String {
    let points = counted(judged.compared as u64, "point");
    let told = || {
        let medians = format!("{} faster and {} slower of {points}", judged.faster, judged.slower);
        let ratios = judged.ratios.map_or(String::new(), |[low, high]| match low == high {
            true => format!(" ({low:.3} times as long)"),
            false => format!(" ({low:.3} to {high:.3} times as long)"),
        });
        let tails = match judged.less_often + judged.more_often {
            0 => String::new(),
            _ => format!(
                "; tails reached less often: {}, more often: {}",
                judged.less_often, judged.more_often
            ),
        };
        format!("{medians}{ratios}{tails}")
    };
    let differs = matches!(judged.answer, Answer::Helps | Answer::Hurts | Answer::Mixed);
    if is_same && differs {
        return format!(
            "Both arms are the same, and yet {name} differs: {}. That is a false alarm, or this machine changes too \
             much for a trial.",
            told()
        );
    }
    match judged.answer {
        Answer::Helps => format!("Yes: {name} is better: {}.", told()),
        Answer::Hurts => format!("No: {name} is worse: {}.", told()),
        Answer::Mixed => format!("Better and worse: {}.", told()),
        Answer::Same => {
            let all = if judged.compared == 1 {
                "the median is the same".to_owned()
            } else {
                format!("the medians of all {points} are the same")
            };
            let tails = match judged.tails_unknown {
                0 => String::new(),
                unknown => format!("; {} cannot be told", counted(unknown as u64, "tail")),
            };
            format!("No difference: {all} within ±{}{tails}.", format_share(margin))
        }
        Answer::Differs => format!(
            "Cannot tell: these runs differ in {}, and there are too few of them to say more.{}",
            match judged.differ {
                0 => "their tails".to_owned(),
                differ => format!("{differ} of {points}"),
            },
            more_runs(judged)
        ),
        Answer::CannotTell if judged.compared == 0 => {
            "Cannot tell: no point of both arms can be trusted (--all shows why).".to_owned()
        }
        Answer::CannotTell => format!(
            "Cannot tell: {} of {points} cannot be decided, {} the same.{}",
            judged.cannot_tell,
            judged.same,
            more_runs(judged)
        ),
    }
}

/// Returns advice on how many runs or rounds would decide the undecided points.
fn more_runs(judged: &Judged) -> String {
    let would = |option: &str, number: Option<usize>, points: usize| {
        let points = counted(points as u64, if judged.told_is_of_tails() { "tail" } else { "point" });
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

/// The table of measurements under loads, one grid a measurement; with `all` every row.
pub fn table(cells: &[Cell], all: bool, options: &Options) -> String {
    let Options { width, color, .. } = *options;
    let mut out = String::new();
    for mut lines in by_measurement(cells, all) {
        if lines.iter().all(|line| line.row.is_none()) {
            // The reasons say the rest.
            lines.truncate(1);
            lines[0].is_alone = true;
        }
        let each = |cell: &dyn Fn(&Line) -> Text| lines.iter().map(cell).collect::<Vec<Text>>();
        let head = |text: &str| Text::styled(HEADING, text);
        let figure = |of: fn(&Row) -> Option<f64>| {
            each(&|line| Text::plain(line.row.and_then(of).map(format_time).unwrap_or_default()))
        };
        let arms = cells.iter().any(|cell| cell.arm != cells[0].arm);
        let arm = |line: &Line| Text::plain(if arms && !line.is_alone { &line.cell.arm } else { "" });
        let measurement = lines.first().map_or("", |line| line.cell.measurement.as_str());
        let columns = [
            Column::new(head(measurement), Side::Left, each(&|line| Text::plain(line.title()).shortened(34))),
            Column::new(head("load"), Side::Left, each(&|line| Text::plain(line.load()))),
            Column::new(head("arm"), Side::Left, each(&arm)),
            Column::new(head("runs"), Side::Right, each(&|line| Text::plain(line.runs().to_string()))),
            Column::new(head("p50"), Side::Right, figure(|row| row.p50)),
            Column::new(head("p99"), Side::Right, figure(|row| row.p99)),
            Column::new(head("max"), Side::Right, figure(|row| row.max)),
            Column::new(head("missed"), Side::Right, each(&|line| Text::plain(line.missed()))),
            Column::new(head(""), Side::Left, each(&|line| line.verdict())),
        ];
        let kept: Vec<Column> = columns.into_iter().filter(|column| !column.is_empty()).collect();
        out += &format!("{}\n", grid(&kept, 2, width, color));
        for (cell, more) in lines.iter().filter(|line| line.more > 0).map(|line| (line.cell, line.more)) {
            let text = format!("… and {more} more of {} runs: --all shows them", cell.arm);
            out += &wrap(&Text::default(), &text, DIM, width, color);
        }
    }
    if cells.iter().flat_map(|cell| &cell.rows).any(|row| row.runs > 1) {
        out += &wrap(&Text::default(), AGGREGATED, DIM, width, color);
    }
    for text in reasons(cells) {
        out += &wrap(&Text::plain("!  "), &text, WARNING, width, color);
    }
    out
}

/// Meaning of the figures of several runs.
const AGGREGATED: &str = "p50, p99: the median of the runs; max: the largest; missed: the sum.";

/// Returns the reasons for which cells have no runs, each reason once: `load vm: skipped: stress-ng is not
/// installed`.
fn reasons(cells: &[Cell]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&Cell>)> = Vec::new();
    for (cell, why) in cells.iter().filter_map(|cell| Some((cell, cell.why.as_deref()?))) {
        match all.iter_mut().find(|(known, _)| *known == why) {
            Some((_, found)) => found.push(cell),
            None => all.push((why, vec![cell])),
        }
    }
    let whole = |found: &[&Cell], same: &dyn Fn(&Cell) -> bool| {
        found.len() > 1
            && found.iter().all(|cell| same(cell))
            && cells.iter().filter(|cell| same(cell)).count() == found.len()
    };
    let names = |found: &[&Cell]| {
        let first = found[0];
        match () {
            () if whole(found, &|cell| cell.measurement == first.measurement) => first.measurement.clone(),
            () if whole(found, &|cell| cell.load == first.load) => {
                format!("load {}", first.load.as_deref().unwrap_or_default())
            }
            () if whole(found, &|cell| cell.arm == first.arm) => format!("arm {}", first.arm),
            () => found.iter().map(|cell| name(cell)).collect::<Vec<_>>().join("; "),
        }
    };
    all.iter().map(|(why, found)| format!("{}: {why}", names(found))).collect()
}

/// A cell by its names: `wake, load network, arm with`.
fn name(cell: &Cell) -> String {
    let load = cell.load.as_ref().map(|load| format!(", load {load}")).unwrap_or_default();
    let arm = if cell.arm.is_empty() { String::new() } else { format!(", arm {}", cell.arm) };
    format!("{}{load}{arm}", cell.measurement)
}

/// Line of the table: a row of a cell, or a cell without rows.
struct Line<'a> {
    cell: &'a Cell,
    row: Option<&'a Row>,
    /// Rows of the cell that are left out behind this one.
    more: usize,
    /// Number of rows of the cell that are left out after this one.
    is_alone: bool,
}

impl Line<'_> {
    fn title(&self) -> &str {
        self.row.map_or("–", |row| &row.title)
    }

    fn load(&self) -> &str {
        if self.is_alone { "" } else { self.cell.load.as_deref().unwrap_or_default() }
    }

    fn runs(&self) -> usize {
        self.row.map_or(self.cell.runs, |row| row.runs)
    }

    fn missed(&self) -> String {
        self.row.filter(|row| row.missed > 0).map(|row| format_count(row.missed)).unwrap_or_default()
    }

    fn words(&self) -> (String, Style) {
        let Some(row) = self.row else { return ("not measured".to_owned(), WARNING) };
        let of = |number: usize| if row.runs == 1 { String::new() } else { format!(" in {number}") };
        match row {
            Row { exceeded: 1.., .. } => (format!("exceeded{}", of(row.exceeded)), ALARM),
            Row { inconclusive: 1.., .. } => (format!("inconclusive{}", of(row.inconclusive)), WARNING),
            Row { held: 1.., .. } => ("holds".to_owned(), GOOD),
            _ => (String::new(), PLAIN),
        }
    }

    fn verdict(&self) -> Text {
        let (words, style) = self.words();
        Text::styled(style, &words).with(WARNING, self.marked())
    }

    /// Returns the text to add if half of the runs or more are degraded or unstable; otherwise empty.
    fn marked(&self) -> &'static str {
        let marked = self.row.is_some_and(|row| 2 * row.marked >= row.runs && row.runs > 0);
        if marked { " (degraded or unstable)" } else { "" }
    }
}

/// The lines of each measurement, in the order of the cells.
fn by_measurement(cells: &[Cell], all: bool) -> Vec<Vec<Line<'_>>> {
    let mut found: Vec<Vec<Line>> = Vec::new();
    for cell in cells {
        let kept = if all { cell.rows.len() } else { cell.rows.len().min(MOST) };
        let more = cell.rows.len() - kept;
        let mut lines: Vec<Line> = cell.rows[..kept]
            .iter()
            .map(|row| Line { cell, row: Some(row), more: 0, is_alone: false })
            .collect();
        if lines.is_empty() {
            lines.push(Line { cell, row: None, more: 0, is_alone: false });
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

/// Returns the table as Markdown with every row or, if runs were judged, the record of the verdicts instead.
pub fn markdown(title: &str, cells: &[Cell], record: Option<&Acceptance>) -> String {
    if let Some(record) = record {
        return acceptance::markdown(title, record);
    }
    let mut out = format!("## {}\n\n", escape(title));
    out += "| measurement | point | load | arm | runs | p50 | p99 | max | missed | verdict |\n";
    out += "|---|---|---|---|--:|--:|--:|--:|--:|---|\n";
    for line in by_measurement(cells, true).iter().flatten() {
        let time = |of: fn(&Row) -> Option<f64>| line.row.and_then(of).map(format_time).unwrap_or_default();
        out += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            escape(&line.cell.measurement),
            escape(line.title()),
            escape(line.load()),
            escape(&line.cell.arm),
            line.runs(),
            time(|row| row.p50),
            time(|row| row.p99),
            time(|row| row.max),
            line.missed(),
            line.words().0
        );
    }
    reasons(cells).iter().for_each(|text| out += &format!("- {}\n", escape(text)));
    out
}

const COLUMNS: [&str; 16] = [
    "measurement",
    "load",
    "arm",
    "id",
    "title",
    "planned",
    "runs",
    "p50",
    "p99",
    "max",
    "missed",
    "held",
    "exceeded",
    "inconclusive",
    "marked",
    "why",
];

/// The table as CSV: a line a row, times in ns, all digits kept; a cell without runs has one line.
pub fn csv(cells: &[Cell]) -> Vec<u8> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut written = writer.write_record(COLUMNS);
    for cell in cells {
        let none = Row::default();
        let rows: Vec<&Row> = if cell.rows.is_empty() { vec![&none] } else { cell.rows.iter().collect() };
        for row in rows {
            written = written.and_then(|()| writer.write_record(record(cell, row)));
        }
    }
    written.expect("memory takes any record of the same length");
    writer.into_inner().expect("memory can be flushed")
}

fn record(cell: &Cell, row: &Row) -> [String; COLUMNS.len()] {
    let time = |ns: Option<f64>| ns.map(|ns| ns.to_string()).unwrap_or_default();
    [
        shown(&cell.measurement),
        shown(cell.load.as_deref().unwrap_or_default()),
        shown(&cell.arm),
        shown(&row.id),
        shown(&row.title),
        cell.planned.to_string(),
        row.runs.to_string(),
        time(row.p50),
        time(row.p99),
        time(row.max),
        row.missed.to_string(),
        row.held.to_string(),
        row.exceeded.to_string(),
        row.inconclusive.to_string(),
        row.marked.to_string(),
        shown(cell.why.as_deref().unwrap_or_default()),
    ]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn judged(answer: Answer) -> Judged {
        Judged {
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
        let said = |of: Answer| answer(&judged(of), "B (with)", false, 0.05);
        let told = "3 faster and 0 slower of 12 points (0.800 to 0.912 times as long); tails reached less often: 0, \
                    more often: 1.";
        assert_eq!(said(Answer::Helps), format!("Yes: B (with) is better: {told}"));
        assert_eq!(said(Answer::Mixed), format!("Better and worse: {told}"));
        assert_eq!(
            said(Answer::CannotTell),
            "Cannot tell: 5 of 12 points cannot be decided, 4 the same. --runs 20 may tell 4 points, by the spread so far."
        );
        assert!(said(Answer::Same).starts_with("No difference: the medians of all 12 points"));
        assert!(answer(&judged(Answer::Hurts), "B (b)", true, 0.05).contains("a false alarm"));
        let none = Judged { compared: 0, ..judged(Answer::CannotTell) };
        assert!(answer(&none, "B (with)", false, 0.05).contains("no point of both arms can be trusted"));
    }

    pub(crate) fn cells() -> Vec<Cell> {
        let row = |exceeded| Row {
            id: "wake.timer".to_owned(),
            title: "timer wake-up".to_owned(),
            runs: 3,
            p50: Some(4_500.0),
            max: Some(120_000.0),
            held: 3 - exceeded,
            exceeded,
            ..Row::default()
        };
        let cell = |measurement: &str, load: &str, rows: Vec<Row>| Cell {
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
        let text = table(&cells(), false, &Options { width: 100, ..Options::default() });
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let line =
            |word: &str| text.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{text}"));
        assert!(line("idle").contains("holds") && line("idle").contains("4.50 µs"), "{text}");
        assert!(line("cpu").contains("exceeded in 2"), "{text}");
        assert!(line("not measured").contains('–'), "{text}");
        assert!(text.contains("!  binder, load idle, arm as-is: skipped: no such | device"), "{text}");
        let mut more = cells();
        more.push(Cell { load: Some("cpu".to_owned()), ..more[2].clone() });
        let text = table(&more, false, &Options { width: 100, ..Options::default() });
        assert!(text.contains("!  binder: skipped: no such | device"), "{text}");
        assert!(text.contains("and 3 more") && !text.contains("  arm  "), "{text}");
        let all = table(&cells(), true, &Options { width: 100, ..Options::default() });
        assert!(!all.contains("more of"), "{all}");
    }

    #[test]
    fn the_table_is_the_same_as_markdown_and_csv() {
        let markdown = markdown("a | title", &cells(), None);
        assert!(markdown.contains("## a \\| title") && markdown.contains("| exceeded in 2 |"), "{markdown}");
        assert!(markdown.contains("no such \\| device"), "{markdown}");
        let csv = String::from_utf8(csv(&cells())).unwrap();
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
