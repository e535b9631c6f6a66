//! A judged budget on a terminal.

use super::{endings, file, has_failed, notes, verdict, worst_first};
use crate::Options;
use crate::grid::{Column, Side, Text, grid, leave_out, wrap};
use crate::style::{BOLD, DIM, HEADING, PLAIN, WARNING};
use crate::verdicts::{sign, word};
use latscope_judge::gate::{Check, Gate};

/// Maximum number of checks that are shown, unless all are asked for.
const MOST: usize = 30;

/// Widest name in the table.
const NAME: usize = 34;

/// Returns the verdict, a table of the worst checks, and the reason of each that does not pass; with `all` the table
/// and the reason of every check.
pub fn text(gate: &Gate, all: bool, options: &Options) -> String {
    let Options { width, color, .. } = *options;
    let prose = |first: Text, text: &str, style| wrap(&first, text, style, width, color);
    let mut out = prose(Text::default(), &verdict(gate), BOLD);
    for note in notes(gate) {
        out += &prose(Text::plain("!  "), &note, WARNING);
    }
    let checks = worst_first(gate);
    let kept = if all { checks.len() } else { checks.len().min(MOST) };
    out += &format!("\n{}", table(gate, &checks[..kept], width, color));
    if kept < checks.len() {
        let more = format!("… and {} more: --all shows them", checks.len() - kept);
        out += &prose(Text::default(), &more, DIM);
    }
    let explained: Vec<&&Check> = checks[..kept].iter().filter(|check| all || has_failed(check)).collect();
    if !explained.is_empty() {
        out.push('\n');
    }
    for check in explained {
        let (mark, style) = sign(check.status);
        let first = Text::styled(style, mark).with(PLAIN, " ");
        out += &prose(first, &format!("{}, {}: {}", name(gate, check), check.wanted(), check.text), PLAIN);
    }
    out
}

fn name(gate: &Gate, check: &Check) -> String {
    match file(gate, check) {
        Some(file) => format!("{file}: {}", check.title),
        None => check.title.clone(),
    }
}

fn table(gate: &Gate, checks: &[&Check], width: usize, color: bool) -> String {
    let each = |cell: &dyn Fn(&Check) -> Text| checks.iter().map(|check| cell(check)).collect::<Vec<Text>>();
    let column = |heading: &str, side, cells| Column::new(Text::styled(HEADING, heading), side, cells);
    let verdict = |check: &Check| {
        let (mark, style) = sign(check.status);
        Text::styled(style, format!("{mark} {}", word(check.status)))
    };
    let files = endings(gate);
    let mut columns = vec![
        column("point", Side::Left, each(&|check| Text::plain(&check.title).shortened(NAME.max(width / 3)))),
        column(
            "run",
            Side::Left,
            each(&|check| {
                let run = check.run.filter(|_| gate.runs.len() > 1);
                Text::plain(run.map_or("", |run| files[run].as_str())).shortened(NAME)
            }),
        ),
        column("limit", Side::Left, each(&|check| Text::plain(check.wanted()))),
        column("seen", Side::Right, each(&|check| Text::plain(check.seen()))),
        column("verdict", Side::Left, each(&verdict)),
    ];
    columns.retain(|column| !column.is_empty());
    leave_out(&mut columns, &[&["run"], &["limit"], &["seen"]], 2, width);
    grid(&columns, 2, width, color)
}
