//! A row for each thread or pair: counts and quantiles.

use super::super::column::{ColumnBuilder, TableColumn};
use super::super::document::{DocumentTable, WIDER};
use super::super::legend::{Signs, quality_mark};
use super::super::style::BOLD;
use super::super::styled::Text;
use latscope_core::catalogue::{RUN_ELAPSED, families};
use latscope_core::events::{ProbeEventGroup, ProbeEventRow};
use latscope_core::histogram::Histogram;
use latscope_core::report::{BEYOND, Measurement, Summary, WATCHED};
use latscope_core::units::{format_count, format_time, format_value};
use latscope_judge::transactions::mode;

/// A line of the table.
struct GroupTableRow<'a> {
    label: Text,
    m: &'a Measurement,
    summary: Summary,
    /// True for a derived distribution, to which counts of the thread do not belong.
    derived: bool,
}

/// Returns the rows of a group and, below them, the sum and the distribution with the missed activations. Columns that
/// are 0 in every row are only named.
pub(in super::super) fn group_table(group: &ProbeEventGroup) -> DocumentTable {
    let lines = table_rows(group);
    let figures = figure_columns(&lines).into_iter().filter(|column| !column.is_empty());
    let (zero, shown): (Vec<TableColumn>, Vec<TableColumn>) = figures.partition(is_zero);
    let heading = match group.singles.first() {
        Some(row) if mode(row.m).is_some() => "caller",
        Some(row) if families::of_probe(&row.m.probe) == families::REMOTE => "",
        _ => "thread",
    };
    let labels = ColumnBuilder(&lines).left_aligned(heading, |line| line.label.clone());
    // Of two columns that are worth as much, the one further left has room first.
    let ranked = |(at, column): (usize, TableColumn)| {
        let rank = 100 * column.rank + at + 1;
        column.rank(rank)
    };
    let columns = std::iter::once(labels).chain(shown.into_iter().enumerate().map(ranked)).collect();
    let signs = Signs::from_measurements(lines.iter().map(|line| line.m));
    let signs = Signs { round_trip: false, one_way: false, ..signs };
    let notes = signs
        .format_line()
        .into_iter()
        .chain(spread(group))
        .chain(none_of(&zero))
        .chain(notes(group).map(str::to_owned))
        .collect();
    DocumentTable { least: usize::MAX, notes, wider: WIDER, ..DocumentTable::new(columns) }
}

fn is_zero(column: &TableColumn) -> bool {
    column.cells.iter().all(|cell| cell.is_empty() || cell.plain_text() == "0")
}

/// Names the columns that are 0 in every row.
fn none_of(zero: &[TableColumn]) -> Option<String> {
    let names: Vec<String> = zero.iter().map(|column| column.heading.plain_text()).collect();
    (!names.is_empty()).then(|| format!("None in any row: {}.", names.join(", ")))
}

/// Returns the meanings of figures whose names do not explain them.
fn notes(group: &ProbeEventGroup) -> impl Iterator<Item = &'static str> {
    let has = |wanted: &str| group.whole_probe_rows().iter().any(|row| row.m.values.contains_key(wanted));
    let rate = group.merged.iter().any(|row| row.m.values.values().any(|value| value.unit == "1/s"));
    let all = "Rates of all CPUs: all events divided by the watched time of all CPUs; watched: their mean.";
    let steal = "steal: of /proc/stat, in steps of 10 ms.";
    let meet = "meet: the share of the events that met the deadline; the missed ones are events, too.";
    let found = [(rate, all), (has("steal"), steal), (has("meet"), meet)];
    let found = found.into_iter().filter_map(|(used, text)| used.then_some(text));
    found.chain(p50_note(group))
}

/// Returns the meaning of p50, if it is another figure than the quantiles beside it.
fn p50_note(group: &ProbeEventGroup) -> Option<&'static str> {
    let in_rounds = group.whole_probe_rows().iter().any(|row| row.m.rounds.len() > 1);
    in_rounds
        .then_some("p50: the median of those of the rounds; the other figures are of all samples together.")
}

fn table_rows<'a>(group: &ProbeEventGroup<'a>) -> Vec<GroupTableRow<'a>> {
    let line = |row: &ProbeEventRow<'a>, style| GroupTableRow {
        label: Text::in_style(style, &row.label).append_text(quality_mark(row.m)),
        m: row.m,
        summary: row.m.summary.clone(),
        derived: false,
    };
    let mut lines: Vec<GroupTableRow> =
        shown_rows(group).into_iter().map(|row| line(row, Default::default())).collect();
    lines.extend(group.merged.iter().map(|row| line(row, BOLD)));
    let alone = group.whole_probe_rows().len() == 1;
    for row in worst(group.whole_probe_rows()) {
        let differs = |corrected: &&Histogram| corrected.count() > row.m.histogram.count();
        if let Some(corrected) = row.m.corrected.as_ref().filter(differs) {
            lines.push(GroupTableRow {
                label: Text::plain(if alone {
                    "  with the missed".to_owned()
                } else {
                    format!("{}, with the missed", row.label)
                }),
                m: row.m,
                summary: Summary::from_histogram(corrected, &Summary::default()),
                derived: true,
            });
        }
    }
    lines
}

/// Number of single rows up to which all are shown, and of those that are shown of more.
const MOST_ROWS: usize = 64;
const WORST: usize = 8;

/// Returns the single rows of a group that are shown.
fn shown_rows<'g, 'a>(group: &'g ProbeEventGroup<'a>) -> Vec<&'g ProbeEventRow<'a>> {
    worst(&group.singles)
}

/// Returns the rows of a list that are shown: all, or of very many the worst, by their maximum, the worst first.
pub(in super::super) fn worst<'g, 'a>(rows: &'g [ProbeEventRow<'a>]) -> Vec<&'g ProbeEventRow<'a>> {
    let mut rows: Vec<&ProbeEventRow> = rows.iter().collect();
    if rows.len() > MOST_ROWS {
        let max = |row: &ProbeEventRow| row.m.summary.max.unwrap_or(0.0);
        rows.sort_by(|a, b| max(b).total_cmp(&max(a)));
        rows.truncate(WORST);
    }
    rows
}

/// Says of very many rows how their figures are spread, and where all of them are.
fn spread(group: &ProbeEventGroup) -> Option<String> {
    let count = group.singles.len();
    (count > MOST_ROWS).then(|| {
        let figure = |name: &str, of: fn(&Summary) -> Option<f64>| Some(format!("{name} {}", tenths(group, of)?));
        let figures = [figure("p50", |s| s.p50), figure("p99", |s| s.p99), figure("max", |s| s.max)];
        let figures = figures.into_iter().flatten().collect::<Vec<_>>().join("; ");
        format!(
            "The {WORST} worst of {} by max; a tenth, half and nine tenths of all are below: {figures}. CSV and JSON have every row.",
            format_count(count as u64)
        )
    })
}

/// Returns the figures below which a tenth, half and nine tenths of the rows are.
fn tenths(group: &ProbeEventGroup, of: fn(&Summary) -> Option<f64>) -> Option<String> {
    let mut figures: Vec<f64> = group.singles.iter().filter_map(|row| of(&row.m.summary)).collect();
    figures.sort_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)?;
    let at = |share: f64| figures[((figures.len() as f64 * share) as usize).min(last)];
    Some([0.1, 0.5, 0.9].map(|share| format_time(at(share))).join(", "))
}

/// Values that are most important in a row.
const TELLING: [&str; 7] = ["meet", "sync", "throughput", "gaps", "lost", "losses", WATCHED];

/// Rank of the columns that only explain others.
const DETAIL: usize = 6;

/// Returns true if a value is that of the parameter of the same name, which the heading states.
fn is_parameter(m: &Measurement, name: &str) -> bool {
    let asked = m.numeric_param(name).map(|number| number as f64);
    asked.is_some() && asked == m.values.get(name).map(|value| value.value)
}

/// Returns the figures of the rows, each with its rank: those of rank 0 are worth most.
fn figure_columns(lines: &[GroupTableRow]) -> Vec<TableColumn> {
    let rows = ColumnBuilder(lines);
    let time = |name: &str, rank, of: fn(&Summary) -> Option<f64>| {
        rows.optional_column(name, move |line| of(&line.summary).map(format_time)).rank(rank)
    };
    let missed = |line: &GroupTableRow| line.m.missed().filter(|_| !line.derived).map(format_count);
    let mut columns = vec![
        rows.right("events", |line| format_count(line.summary.count)).rank(2),
        // The missed ones were never measured, the least of them least of all.
        rows.optional_column("min", |line| line.summary.min.filter(|_| !line.derived).map(format_time))
            .rank(4),
        rows.optional_column("p50", |line| match line.summary.p50 {
            None if !line.derived => line.m.median_in_words(),
            p50 => p50.map(format_time),
        })
        .rank(0),
        time("p99", 1, |s| s.p99),
        time("p99.9", 3, |s| s.p99_9),
        time("p99.99", 5, |s| s.p99_99),
        time("p99.999", 8, |s| s.p99_999),
        time("p99.9999", 9, |s| s.p99_9999),
        time("max", 0, |s| s.max),
        time("mean", 7, |s| s.mean),
        rows.optional_column("missed", missed).rank(2),
    ];
    let mut names: Vec<&String> = lines.iter().flat_map(|line| line.m.values.keys()).collect();
    // What speaks against the run first, then in order of the alphabet.
    names.sort_by_key(|name| (!["early", "faults"].contains(&name.as_str()), *name));
    names.dedup();
    // Findings tell of these, or another column does.
    let elsewhere = ["misses", "sync-of", "wall-time", RUN_ELAPSED];
    names.retain(|name| {
        !elsewhere.contains(&name.as_str())
            && !name.starts_with("rt-")
            && !name.starts_with("nice-")
            && !lines.iter().all(|line| is_parameter(line.m, name))
    });
    columns.extend(names.into_iter().map(|name| {
        let value = |line: &GroupTableRow| {
            let value = line.m.values.get(name).filter(|_| !line.derived)?;
            Some(format_value(value.value, &value.unit))
        };
        rows.optional_column(name, value).rank(match name.as_str() {
            BEYOND => 0,
            name if TELLING.contains(&name) => 2,
            _ => DETAIL,
        })
    }));
    columns
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::DisplayOptions;
    use latscope_core::events::event_groups;
    use latscope_core::fixture;
    use latscope_core::param;
    use latscope_core::report::Report;

    /// Returns a report of so many threads, each later than the one before.
    pub(in super::super) fn report_of_threads(count: u64) -> Report {
        let mut report = fixture::wake();
        let one = report.measurements[0].clone();
        report.measurements.clear();
        for cpu in 0..count {
            let mut m = one.clone();
            m.params.insert(param::CPU.to_owned(), cpu.into());
            m.params.insert(param::THREAD.to_owned(), cpu.into());
            m.summary.max = Some(1_000.0 * (cpu + 1) as f64);
            let mut corrected = m.histogram.clone();
            corrected.record(1_000_000);
            m.corrected = Some(corrected);
            report.measurements.push(m);
        }
        report
    }

    fn format_wake_table(width: usize) -> String {
        let report = fixture::wake();
        group_table(&event_groups(&report)[0]).to_text(&DisplayOptions { width, ..DisplayOptions::default() })
    }

    #[test]
    fn of_very_many_threads_the_worst_are_rows_and_the_others_quantiles() {
        let report = report_of_threads(1_024);
        let groups = event_groups(&report);
        let labels: Vec<String> = table_rows(&groups[0]).iter().map(|line| line.label.plain_text()).collect();
        let worst = labels.iter().filter(|label| label.contains("CPU")).take(2).cloned().collect::<Vec<_>>();
        assert!(worst[0].contains("CPU 1023") && worst[1].contains("CPU 1022"), "{labels:?}");
        assert_eq!(table_rows(&groups[0]).len(), 2 * WORST, "each with the missed: {labels:?}");
        let text = spread(&groups[0]).unwrap();
        assert!(
            text.starts_with("The 8 worst of 1,024 by max") && text.contains("max 103 µs, 513 µs, 922 µs"),
            "{text}"
        );
    }

    #[test]
    fn the_sum_and_the_corrected_distribution_stand_below() {
        let text = format_wake_table(160);
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
        let text = format_wake_table(60);
        let head = text.lines().next().unwrap();
        assert!(head.contains("p50") && head.contains("max") && !head.contains("p99.99"), "{text}");
        assert!(text.contains("More figures in a wider terminal"));
    }
}
