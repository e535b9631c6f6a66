//! A comparison on a terminal.

use super::figures::{Figure, figures, interval, is_telling, often, quantity, ratio, word};
use super::head;
use crate::Options;
use crate::grid::{Column, Side, Text, grid, leave_out, wrap};
use crate::style::{ALARM, DIM, GOOD, HEADING, PLAIN, WARNING};
use anstyle::Style;
use latscope_core::quality::Level;
use latscope_judge::compare::{Comparison, Point, Verdict};

/// Maximum number of rows of a table, unless all are asked for.
const MOST: usize = 30;

/// Returns a comparison within `options.width` columns: the points that differ, or with `all` every point.
pub fn text(comparison: &Comparison, all: bool, options: &Options) -> String {
    let Options { width, color, .. } = *options;
    let prose = |first: &str, text: &str, style| wrap(&Text::plain(first), text, style, width, color);
    let mut out =
        prose("A  ", &head::side(&comparison.a), PLAIN) + &prose("B  ", &head::side(&comparison.b), PLAIN);
    for line in head::differences(comparison) {
        out += &prose("≠  ", &line, WARNING);
    }
    for remark in &comparison.remarks {
        out += &prose("!  ", remark, WARNING);
    }
    out.push('\n');
    head::verdicts(comparison).iter().for_each(|line| out += &prose("", line, PLAIN));
    let shown: Vec<&Point> = comparison.points.iter().filter(|point| all || is_finding(point)).collect();
    let kept = if all { shown.len() } else { shown.len().min(MOST) };
    if kept > 0 {
        out += &format!("\n{}", medians(&shown[..kept], width, color));
        if shown.len() > kept {
            out += &prose("", &format!("… and {} more: --all shows them", shown.len() - kept), DIM);
        }
        out += &beside(&shown[..kept], width, color);
    }
    out += &tails(comparison, all, width, color);
    let after: Vec<String> =
        head::would_tell(comparison).into_iter().chain(head::apart(comparison)).collect();
    if !after.is_empty() {
        out.push('\n');
        after.iter().for_each(|line| out += &prose("", line, PLAIN));
    }
    out
}

fn is_finding(point: &Point) -> bool {
    point.level == Level::Ok && matches!(point.verdict, Verdict::Slower | Verdict::Faster | Verdict::Differs)
}

fn column(heading: &str, side: Side, cells: Vec<Text>) -> Column {
    Column::new(Text::styled(HEADING, heading), side, cells)
}

/// Columns that a narrow terminal leaves out, the first ones first; the verdict is never left out.
const LEAST: [&[&str]; 3] = [&["A", "B"], &["95 %"], &["B/A"]];

/// Widest name in a table.
const NAME: usize = 34;

/// Returns the medians with their verdicts.
fn medians(points: &[&Point], width: usize, color: bool) -> String {
    let each = |cell: &dyn Fn(&Point) -> Text| points.iter().map(|point| cell(point)).collect::<Vec<Text>>();
    let time = |point: &Point, of_a: bool| {
        let figure = point.p50.as_ref().map(|p50| if of_a { p50.a } else { p50.b });
        Text::plain(quantity(figure, "ns"))
    };
    let mut columns = vec![
        column("p50", Side::Left, each(&|point| Text::plain(&point.title).shortened(NAME.max(width / 3)))),
        column("A", Side::Right, each(&|point| time(point, true))),
        column("B", Side::Right, each(&|point| time(point, false))),
        column("B/A", Side::Right, each(&|point| Text::plain(ratio(point.p50.as_ref())))),
        column("95 %", Side::Left, each(&|point| Text::plain(interval(point.p50.as_ref())))),
        column("", Side::Left, each(&|point| verdict(point))),
    ];
    leave_out(&mut columns, &LEAST, 2, width);
    grid(&columns, 2, width, color)
}

fn verdict(point: &Point) -> Text {
    let mark = match point.level {
        Level::Ok => "",
        Level::Unstable => " (unstable)",
        _ => " (degraded)",
    };
    let text = Text::styled(style(point.verdict), word(point.verdict, point.p50.as_ref()));
    text.with(WARNING, mark)
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Slower => ALARM,
        Verdict::Faster => GOOD,
        Verdict::Differs => WARNING,
        Verdict::Same => PLAIN,
        Verdict::CannotTell => DIM,
    }
}

/// Returns the figures beside the median that matter in a family, for points that have such figures.
fn beside(points: &[&Point], width: usize, color: bool) -> String {
    let single = |point: &&&Point| {
        point.p99.is_some() || figures(point).iter().any(|f| is_telling(f) && f.name != "max")
    };
    let rows: Vec<(&str, Figure)> = points
        .iter()
        .filter(single)
        .flat_map(|point| {
            figures(point).into_iter().filter(is_telling).map(|figure| (point.title.as_str(), figure))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", table("beside the median, not tested", &rows, |_| Text::default(), width, color))
}

/// Returns how often runs reach the tails: the tails that differ, or every tail if `all`.
fn tails(comparison: &Comparison, all: bool, width: usize, color: bool) -> String {
    let judged = |figure: &Figure| figure.unit == "share";
    let differs = |figure: &Figure| !matches!(figure.verdict, Some(Verdict::Same | Verdict::CannotTell));
    let rows: Vec<(&str, Figure)> = comparison
        .points
        .iter()
        .filter(|point| point.level == Level::Ok)
        .flat_map(|point| figures(point).into_iter().map(|figure| (point.title.as_str(), figure)))
        .filter(|(_, figure)| judged(figure) && (all || differs(figure)))
        .collect();
    if comparison.counts.tails == 0 {
        return String::new();
    }
    let mut out = format!("\n{}", wrap(&Text::default(), &head::tails(comparison), PLAIN, width, color));
    if !rows.is_empty() {
        let kept = if all { rows.len() } else { rows.len().min(MOST) };
        let word = |figure: &Figure| {
            let verdict = figure.verdict.unwrap_or(Verdict::CannotTell);
            Text::styled(style(verdict), figure.contrast.map_or("", |contrast| often(verdict, contrast)))
        };
        out += &table("tail", &rows[..kept], word, width, color);
    }
    out
}

/// Rows of figures of points.
fn table(
    heading: &str,
    rows: &[(&str, Figure)],
    last: impl Fn(&Figure) -> Text,
    width: usize,
    color: bool,
) -> String {
    let each =
        |cell: &dyn Fn(&Figure) -> Text| rows.iter().map(|(_, figure)| cell(figure)).collect::<Vec<Text>>();
    let names = rows.iter().map(|(title, _)| Text::plain(title).shortened(NAME.max(width / 3))).collect();
    let mut columns = vec![
        column(heading, Side::Left, names),
        column("", Side::Left, each(&|figure| Text::plain(&figure.name))),
        column("A", Side::Right, each(&|figure| Text::plain(quantity(figure.a, figure.unit)))),
        column("B", Side::Right, each(&|figure| Text::plain(quantity(figure.b, figure.unit)))),
        column("B/A", Side::Right, each(&|figure| Text::plain(ratio(figure.contrast)))),
        column("95 %", Side::Left, each(&|figure| Text::plain(interval(figure.contrast)))),
        column("", Side::Left, each(&last)),
    ];
    let judged = columns.last().is_some_and(|column| !column.is_empty());
    columns.retain(|column| !column.is_empty());
    if judged {
        leave_out(&mut columns, &LEAST, 2, width);
    }
    grid(&columns, 2, width, color)
}
