//! A row for each thread or pair: counts and quantiles.

use super::super::Options;
use super::super::grid::{Column, Side, Text, grid, wrap};
use super::super::legend::{Signs, mark};
use super::super::style::{BOLD, DIM, HEADING};
use latscope_core::catalogue::RUN_ELAPSED;
use latscope_core::events::{Group, Row};
use latscope_core::histogram::Histogram;
use latscope_core::report::{Measurement, Summary, WATCHED};
use latscope_core::units::{format_count, format_time, format_value};
use latscope_judge::transactions::mode;

/// A line of the table.
struct Line<'a> {
    label: Text,
    m: &'a Measurement,
    summary: Summary,
    /// True for a derived distribution, to which counts of the thread do not belong.
    derived: bool,
}

/// Returns the rows of a group and, below them, the sum and the distribution with the missed activations; as many
/// columns as fit, the most important first.
pub(super) fn table(group: &Group, options: &Options) -> String {
    let lines = lines(group);
    let (zero, columns): (Vec<Wanted>, Vec<Wanted>) =
        wanted(&lines).into_iter().partition(|wanted| wanted.zero);
    let first = labels(group, &lines);
    let mut chosen: Vec<usize> = Vec::new();
    let mut order: Vec<usize> = (0..columns.len()).filter(|at| !columns[*at].column.is_empty()).collect();
    order.sort_by_key(|at| columns[*at].rank);
    let mut used = first.width();
    let mut left_out = false;
    for at in order {
        let width = 2 + columns[at].column.width();
        if used + width <= options.width {
            used += width;
            chosen.push(at);
        } else {
            left_out = true;
        }
    }
    chosen.sort_unstable();
    let mut shown = vec![first];
    shown.extend(chosen.into_iter().map(|at| columns[at].column.clone()));
    let mut out = grid(&shown, 2, options.width, options.color);
    let mut say = |text: &str| out += &wrap(&Text::default(), text, DIM, options.width, options.color);
    let signs = Signs::of(lines.iter().map(|line| line.m));
    let signs = Signs { round_trip: false, one_way: false, ..signs }.meanings();
    if !signs.is_empty() {
        say(&signs.join(" · "));
    }
    if let Some(text) = none_of(&zero) {
        say(&text);
    }
    notes(group).for_each(&mut say);
    if left_out {
        say("More figures in a wider terminal, and all of them with --csv or --json.");
    }
    out
}

/// Names the columns that are 0 in every row.
fn none_of(zero: &[Wanted]) -> Option<String> {
    let names: Vec<&str> = zero.iter().map(|wanted| wanted.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("None in any row: {}.", names.join(", ")))
}

/// Maximum number of columns of a readable table.
const MOST_COLUMNS: usize = 14;

/// Returns the columns of a group as tables, the names of its rows first in each, and the notes below them. If
/// there are many columns, those that only explain others are tables after the first. Columns that are 0 in
/// every row are only named.
pub(super) fn tables(group: &Group) -> (Vec<Vec<Column>>, Vec<String>) {
    let lines = lines(group);
    let (zero, shown): (Vec<Wanted>, Vec<Wanted>) = wanted(&lines)
        .into_iter()
        .filter(|wanted| wanted.zero || !wanted.column.is_empty())
        .partition(|wanted| wanted.zero);
    let many = shown.len() >= MOST_COLUMNS;
    let (first, others): (Vec<Wanted>, Vec<Wanted>) =
        shown.into_iter().partition(|wanted| !many || wanted.rank < DETAIL);
    let table = |part: &[Wanted]| {
        let columns = part.iter().map(|wanted| wanted.column.clone());
        std::iter::once(labels(group, &lines)).chain(columns).collect()
    };
    let tables = std::iter::once(table(&first)).chain(others.chunks(MOST_COLUMNS - 1).map(table)).collect();
    (tables, none_of(&zero).into_iter().chain(notes(group).map(str::to_owned)).collect())
}

/// Returns the meanings of figures whose names do not explain them.
fn notes(group: &Group) -> impl Iterator<Item = &'static str> {
    let has = |wanted: &str| group.whole().iter().any(|row| row.m.values.contains_key(wanted));
    let rate = group.merged.iter().any(|row| row.m.values.values().any(|value| value.unit == "1/s"));
    let all = "Rates of all CPUs: all events divided by the watched time of all CPUs; watched: their mean.";
    let steal = "steal: of /proc/stat, in steps of 10 ms.";
    let meet = "meet: the share of the events that met the deadline; the missed ones are events, too.";
    let found = [(rate, all), (has("steal"), steal), (has("meet"), meet)];
    let found = found.into_iter().filter_map(|(used, text)| used.then_some(text));
    found.chain(p50_note(group))
}

/// Returns the meaning of p50, if it is another figure than the quantiles beside it.
fn p50_note(group: &Group) -> Option<&'static str> {
    let in_rounds = group.whole().iter().any(|row| row.m.rounds.len() > 1);
    in_rounds
        .then_some("p50: the median of those of the rounds; the other figures are of all samples together.")
}

/// All columns of a group, the names of its rows first.
pub(super) fn columns(group: &Group) -> Vec<Column> {
    let lines = lines(group);
    let figures = wanted(&lines).into_iter().map(|wanted| wanted.column);
    std::iter::once(labels(group, &lines)).chain(figures).collect()
}

fn labels(group: &Group, lines: &[Line]) -> Column {
    let heading = match group.singles.first() {
        Some(row) if mode(row.m).is_some() => "caller",
        Some(row) if row.m.probe.starts_with("remote.") => "",
        _ => "thread",
    };
    let labels = lines.iter().map(|line| line.label.clone()).collect();
    Column::new(Text::styled(HEADING, heading), Side::Left, labels)
}

fn lines<'a>(group: &Group<'a>) -> Vec<Line<'a>> {
    let line = |row: &Row<'a>, style| Line {
        label: Text::styled(style, &row.label).and(mark(row.m)),
        m: row.m,
        summary: row.m.summary.clone(),
        derived: false,
    };
    let mut lines: Vec<Line> = group.singles.iter().map(|row| line(row, Default::default())).collect();
    lines.extend(group.merged.iter().map(|row| line(row, BOLD)));
    let alone = group.whole().len() == 1;
    for row in group.whole() {
        let differs = |corrected: &&Histogram| corrected.count() > row.m.histogram.count();
        if let Some(corrected) = row.m.corrected.as_ref().filter(differs) {
            lines.push(Line {
                label: Text::plain(if alone {
                    "  with the missed".to_owned()
                } else {
                    format!("{}, with the missed", row.label)
                }),
                m: row.m,
                summary: Summary::of(corrected, &Summary::default()),
                derived: true,
            });
        }
    }
    lines
}

/// Values that are most important in a row.
const TELLING: [&str; 6] = ["meet", "sync", "throughput", "gaps", "lost", WATCHED];

/// Rank of the columns that only explain others.
const DETAIL: u32 = 6;

/// A column, how much it is worth (0 most), and whether it is 0 in all rows.
struct Wanted {
    name: String,
    rank: u32,
    zero: bool,
    column: Column,
}

fn wanted(lines: &[Line]) -> Vec<Wanted> {
    let column = |name: &str, rank, cell: &dyn Fn(&Line) -> Option<String>| {
        let cells: Vec<Option<String>> = lines.iter().map(cell).collect();
        let known: Vec<&String> = cells.iter().flatten().collect();
        let zero = !known.is_empty() && known.iter().all(|text| *text == "0");
        let cells = cells.into_iter().map(|text| Text::plain(text.unwrap_or_default())).collect();
        let column = Column::new(Text::styled(HEADING, name), Side::Right, cells);
        Wanted { name: name.to_owned(), rank, zero, column }
    };
    let time = |name: &str, rank, of: fn(&Summary) -> Option<f64>| {
        column(name, rank, &|line| of(&line.summary).map(format_time))
    };
    let mut columns = vec![
        column("events", 2, &|line| Some(format_count(line.summary.count))),
        // The missed ones were never measured, the least of them least of all.
        column("min", 4, &|line| line.summary.min.filter(|_| !line.derived).map(format_time)),
        time("p50", 0, |s| s.p50),
        time("p99", 1, |s| s.p99),
        time("p99.9", 3, |s| s.p99_9),
        time("p99.99", 5, |s| s.p99_99),
        time("p99.999", 8, |s| s.p99_999),
        time("p99.9999", 9, |s| s.p99_9999),
        time("max", 0, |s| s.max),
        time("mean", 7, |s| s.mean),
        column("missed", 2, &|line| line.m.missed().filter(|_| !line.derived).map(format_count)),
    ];
    let mut names: Vec<&String> = lines.iter().flat_map(|line| line.m.values.keys()).collect();
    // What speaks against the run first, then in order of the alphabet.
    names.sort_by_key(|name| (!["early", "faults"].contains(&name.as_str()), *name));
    names.dedup();
    // Findings tell of these, or another column does.
    let elsewhere = ["misses", "sync-of", "wall-time", RUN_ELAPSED];
    names.retain(|name| {
        !elsewhere.contains(&name.as_str()) && !name.starts_with("rt-") && !name.starts_with("nice-")
    });
    for name in names {
        let rank = if TELLING.contains(&name.as_str()) { 2 } else { DETAIL };
        columns.push(column(name, rank, &|line| {
            let value = line.m.values.get(name).filter(|_| !line.derived)?;
            Some(format_value(value.value, &value.unit))
        }));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::groups;
    use latscope_core::fixture;

    fn text(width: usize) -> String {
        let report = fixture::wake();
        table(&groups(&report)[0], &Options { width, ..Options::default() })
    }

    #[test]
    fn the_sum_and_the_corrected_distribution_stand_below() {
        let text = text(160);
        let first: Vec<&str> =
            text.lines().map(|line| line.trim_start().split("  ").next().unwrap()).collect();
        let rule = first[1];
        assert_eq!(first[..1], ["thread"]);
        assert!(rule.starts_with("──"));
        assert_eq!(
            first[2..],
            ["CPU 0", "CPU 1", "all CPUs", "with the missed", "None in any row: early, faults, migrations."]
        );
        assert!(text.contains("60,000") && text.contains("60,003"), "{text}");
    }

    #[test]
    fn median_and_maximum_are_left_out_last() {
        let text = text(60);
        let head = text.lines().next().unwrap();
        assert!(head.contains("p50") && head.contains("max") && !head.contains("p99.99"), "{text}");
        assert!(text.contains("More figures in a wider terminal"));
    }
}
