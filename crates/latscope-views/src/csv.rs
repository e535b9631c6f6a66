//! A line for each measurement, for spreadsheets and scripts. Durations are in
//! ns, rates in bytes per second, all digits kept. Control characters, which names of
//! hosts, files and threads can hold, are written as `\x1b`.

use super::column::{ColumnBuilder, TableColumn};
use super::rows::{family, level_label};
use super::{document, groups};
use latscope_core::catalogue::families;
use latscope_core::histogram::Histogram;
use latscope_core::report::{
    Account, Cause, CriterionCheck, MeasuredQuantity, Measurement, OperationWork, Outlier, Report, Sampling,
    Semantics, Summary,
};
use latscope_judge::findings::{LevelRow, level_rows};
use latscope_judge::verdict::confidence_of;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the report as CSV with a header line. A missing value is an empty field. Below the measurements are
/// the levels of memory that the table has, as `memory.level`.
pub fn report_csv(report: &Report) -> Vec<u8> {
    let levels = level_rows(report);
    let points = report.measurements.iter().map(ReportCsvRow::Point);
    let lines: Vec<ReportCsvRow> = points.chain(levels.iter().map(ReportCsvRow::Level)).collect();
    let lines = ReportCsvColumnBuilder(ColumnBuilder(&lines));
    let columns = [
        fact_columns(&lines),
        figure_columns(report, &lines),
        trust(report, &lines),
        detail_columns(report, &lines),
    ];
    document::columns_csv(&columns.concat())
}

/// Line of the file.
enum ReportCsvRow<'a> {
    Point(&'a Measurement),
    Level(&'a LevelRow),
}

struct ReportCsvColumnBuilder<'a>(ColumnBuilder<'a, ReportCsvRow<'a>>);

impl<'a> ReportCsvColumnBuilder<'a> {
    /// Returns a column of measurements and levels.
    fn common_column(
        &self,
        name: &'static str,
        point: impl Fn(&Measurement) -> String,
        level: impl Fn(&LevelRow) -> String,
    ) -> TableColumn {
        self.0.field(name, |line| match line {
            ReportCsvRow::Point(m) => point(m),
            ReportCsvRow::Level(row) => level(row),
        })
    }

    /// Returns a column that levels lack.
    fn measurement_column(&self, name: &'static str, point: impl Fn(&Measurement) -> String) -> TableColumn {
        self.common_column(name, point, |_| String::new())
    }

    /// Returns a column of the summaries of measurements.
    fn summary(&self, name: &'static str, of: fn(&Summary) -> Option<f64>) -> TableColumn {
        self.measurement_column(name, |m| format_number(of(&m.summary)))
    }

    /// Returns a column of the distributions with the missed activations.
    fn corrected(&self, name: &'static str, of: fn(&Summary) -> Option<f64>) -> TableColumn {
        let summary =
            |m: &Measurement| Some(Summary::from_histogram(m.corrected.as_ref()?, &Summary::default()));
        self.measurement_column(name, |m| format_number(summary(m).and_then(|summary| of(&summary))))
    }

    /// Returns a column of what the operations of a measurement move.
    fn work_column(&self, name: &'static str, of: fn(&OperationWork) -> u64) -> TableColumn {
        self.measurement_column(name, |m| {
            m.work.as_ref().map(|work| of(work).to_string()).unwrap_or_default()
        })
    }

    /// Returns a column that is the same in all lines.
    fn constant_column(&self, name: &'static str, text: &str) -> TableColumn {
        self.0.field(name, |_| text)
    }
}

fn format_number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn fact_columns(lines: &ReportCsvColumnBuilder) -> Vec<TableColumn> {
    let sampling = |m: &Measurement| if m.sampling == Sampling::Event { "event" } else { "batch" }.to_owned();
    let batch_ops = |m: &Measurement| match m.sampling {
        Sampling::Event | Sampling::Batch { ops: 0 } => String::new(),
        Sampling::Batch { ops } => ops.to_string(),
    };
    let level_word = |level: &LevelRow| level.quality.level.level_name().to_owned();
    let reason = |level: &LevelRow| level.quality.text().unwrap_or_default();
    let remedy = |level: &LevelRow| level.quality.remedy().unwrap_or_default();
    vec![
        lines.common_column("probe", |m| m.probe.clone(), |_| "memory.level".to_owned()),
        lines.common_column("family", |m| family(&m.probe).to_owned(), |_| families::MEMORY.to_owned()),
        lines.common_column("title", |m| m.title.clone(), level_label),
        lines.measurement_column("params", |m| {
            join_parts(m.params.iter().map(|(name, value)| format!("{name}={value}")))
        }),
        lines.common_column("sampling", sampling, |_| "batch".to_owned()),
        lines.measurement_column("batch_ops", batch_ops),
        lines.common_column("times", |m| name(&m.times), |_| name(&Semantics::Operation)),
        lines.common_column("support", |m| m.quality.level.level_name().to_owned(), level_word),
        lines.common_column("reason", |m| m.joined_reasons().clone().unwrap_or_default(), reason),
        lines.common_column("remedy", |m| m.joined_remedies().clone().unwrap_or_default(), remedy),
        lines.common_column("incomplete", |m| m.incomplete.to_string(), |_| "false".to_owned()),
        lines.common_column("row", |m| m.row.to_string(), |_| "true".to_owned()),
    ]
}

fn figure_columns(report: &Report, lines: &ReportCsvColumnBuilder) -> Vec<TableColumn> {
    let value =
        |(name, v): (&String, &MeasuredQuantity)| format!("{name}={}{}", v.value, unit_suffix(&v.unit));
    let missed = |m: &Measurement| m.missed().map(|missed| missed.to_string()).unwrap_or_default();
    let rejected =
        |m: &Measurement| if m.is_imported() { String::new() } else { m.summary.rejected.to_string() };
    vec![
        lines.measurement_column("count", |m| m.summary.count.to_string()),
        lines.measurement_column("rejected", rejected),
        lines.measurement_column("missed", missed),
        lines.summary("min_ns", |s| s.min),
        lines.common_column("p10_ns", |m| format_number(m.summary.p10), |level| format_number(level.p10)),
        lines.common_column(
            "p50_ns",
            |m| format_number(m.summary.p50),
            |level| format_number(Some(level.ns)),
        ),
        lines.common_column("p90_ns", |m| format_number(m.summary.p90), |level| format_number(level.p90)),
        lines.summary("p95_ns", |s| s.p95),
        lines.summary("p99_ns", |s| s.p99),
        lines.summary("p99_9_ns", |s| s.p99_9),
        lines.summary("p99_99_ns", |s| s.p99_99),
        lines.summary("p99_999_ns", |s| s.p99_999),
        lines.summary("p99_9999_ns", |s| s.p99_9999),
        lines.summary("max_ns", |s| s.max),
        lines.summary("mean_ns", |s| s.mean),
        lines.common_column(
            "cycles",
            |m| format_number(m.summary.cycles),
            |level| format_number(level.cycles),
        ),
        lines.work_column("ops", |work| work.ops),
        lines.work_column("bytes_touched", |work| work.bytes_touched),
        lines.work_column("bytes_moved", |work| work.bytes_moved),
        lines.measurement_column("touched_bytes_per_s", |m| format_number(m.rate_touched())),
        lines.measurement_column("moved_bytes_per_s", |m| format_number(m.rate_moved(&report.machine))),
        lines.measurement_column("values", |m| join_parts(m.values.iter().map(value))),
    ]
}

fn trust(report: &Report, lines: &ReportCsvColumnBuilder) -> Vec<TableColumn> {
    let verdict =
        |m: &Measurement| m.verdict.as_ref().map(|verdict| name(&verdict.status)).unwrap_or_default();
    let level_word = |level: &LevelRow| level.quality.level.level_name().to_owned();
    let low = |m: &Measurement| format_number(m.next_run().map(|next| next.low));
    let high = |m: &Measurement| format_number(m.next_run().map(|next| next.high));
    vec![
        lines.constant_column("machine", &report.machine.name),
        lines.constant_column("started", &report.started),
        lines.constant_column("finished", report.finished.as_deref().unwrap_or_default()),
        lines.measurement_column("verdict", verdict),
        lines.common_column("quality", |m| m.quality.level.level_name().to_owned(), level_word),
        lines.measurement_column("rounds", |m| m.rounds.len().max(1).to_string()),
        lines.common_column("next_run_low_ns", low, |level| format_number(level.next.map(|(low, _)| low))),
        lines
            .common_column("next_run_high_ns", high, |level| format_number(level.next.map(|(_, high)| high))),
    ]
}

fn detail_columns(report: &Report, lines: &ReportCsvColumnBuilder) -> Vec<TableColumn> {
    let others = format_number(report.activity.as_ref().and_then(Account::known_others));
    let checks =
        |m: &Measurement| join_parts(m.verdict.iter().flat_map(|verdict| &verdict.checks).map(format_check));
    vec![
        lines.measurement_column("corrected_count", |m| {
            m.corrected.as_ref().map(|c| c.count().to_string()).unwrap_or_default()
        }),
        lines.corrected("corrected_p50_ns", |s| s.p50),
        lines.corrected("corrected_p99_ns", |s| s.p99),
        lines.corrected("corrected_p99_9_ns", |s| s.p99_9),
        lines.corrected("corrected_p99_99_ns", |s| s.p99_99),
        lines.corrected("corrected_p99_999_ns", |s| s.p99_999),
        lines.corrected("corrected_p99_9999_ns", |s| s.p99_9999),
        lines.corrected("corrected_max_ns", |s| s.max),
        lines.corrected("corrected_mean_ns", |s| s.mean),
        lines.measurement_column("checks", checks),
        lines.measurement_column("confidence", |m| confidence_of(report, m).unwrap_or_default()),
        lines.measurement_column("longest", |m| join_parts(longest(m))),
        lines.measurement_column("hops", |m| join_parts(m.hops.iter().map(groups::describe_hop))),
        lines.measurement_column("others_cpu_share", |_| others.clone()),
    ]
}

/// Returns the figures of a report as CSV with one value a line, and a column for each parameter, `param_size`.
pub fn long(report: &Report) -> Vec<u8> {
    let params: BTreeSet<&String> = report.measurements.iter().flat_map(|m| m.params.keys()).collect();
    let first = [
        "machine", "started", "run_id", "probe", "revision", "title", "sampling", "times", "quality",
        "incomplete",
    ];
    let heading = first.map(str::to_owned).into_iter();
    let heading = heading.chain(params.iter().map(|name| format!("param_{name}")));
    let heading = heading.chain(["figure", "value", "unit"].map(str::to_owned));
    let mut records: Vec<Vec<String>> = vec![heading.collect()];
    for m in &report.measurements {
        let sampling = if m.sampling == Sampling::Event { "event" } else { "batch" };
        let (times, quality) = (name(&m.times), m.quality.level.level_name());
        let incomplete = if m.incomplete { "true" } else { "false" };
        let point = [&m.probe, &m.revision.to_string(), &m.title, sampling, &times, quality, incomplete]
            .map(str::to_owned);
        let run = [&report.machine.name, &report.started, &report.run_id].map(String::clone);
        let values = params.iter().map(|name| m.params.get(*name).map_or(String::new(), ToString::to_string));
        let about: Vec<String> = run.into_iter().chain(point).chain(values).collect();
        for (figure, value, unit) in figures_of(m) {
            records.push(about.iter().cloned().chain([figure, value.to_string(), unit]).collect());
        }
    }
    document::records_csv(records.into_iter())
}

/// The figures of a measurement, each with its name and unit; those that it lacks are left out.
fn figures_of(m: &Measurement) -> Vec<(String, f64, String)> {
    let s = &m.summary;
    let next = m.next_run();
    let times = [
        ("min", s.min),
        ("p10", s.p10),
        ("p50", s.p50),
        ("p90", s.p90),
        ("p95", s.p95),
        ("p99", s.p99),
        ("p99_9", s.p99_9),
        ("p99_99", s.p99_99),
        ("p99_999", s.p99_999),
        ("p99_9999", s.p99_9999),
        ("max", s.max),
        ("mean", s.mean),
        ("next_run_low", next.map(|next| next.low)),
        ("next_run_high", next.map(|next| next.high)),
    ];
    let counts = [
        ("count", Some(s.count as f64), "count"),
        ("rejected", (!m.is_imported()).then_some(s.rejected as f64), "count"),
        ("missed", m.missed().map(|missed| missed as f64), "count"),
        ("cycles", s.cycles, "cycles"),
        ("touched", m.rate_touched(), "B/s"),
    ];
    let all = times.into_iter().map(|(figure, value)| (figure, value, "ns")).chain(counts);
    let known = all.filter_map(|(figure, value, unit)| Some((figure.to_owned(), value?, unit.to_owned())));
    let values = m.values.iter().map(|(name, value)| (name.clone(), value.value, value.unit.clone()));
    known.chain(values).collect()
}

/// The histograms of the single events of a report as CSV: a line for each
/// bucket that is not empty, with its bounds in ns (both inclusive) and a column
/// of counts for each measurement, which says if the measurement ended early. Values beyond the last bucket are in a
/// line without bounds. `None` without single events.
pub fn buckets(report: &Report) -> Option<Vec<u8>> {
    let groups = latscope_core::events::event_groups(report);
    let several = groups.len() > 1;
    let rows = groups
        .iter()
        .flat_map(|group| group.singles.iter().chain(&group.merged).map(move |row| (group, row)));
    let columns: Vec<(String, &Histogram)> = rows
        .map(|(group, row)| {
            let name = if several { format!("{}, {}", group.probe, row.label) } else { row.label.clone() };
            let early = if row.m.incomplete { ", ended early" } else { "" };
            (name + early, &row.m.histogram)
        })
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut lines: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
    for (at, (_, histogram)) in columns.iter().enumerate() {
        for (span, count) in histogram.intervals() {
            let line =
                lines.entry((span.low as u64, span.high as u64)).or_insert_with(|| vec![0; columns.len()]);
            line[at] = count;
        }
    }
    let heading = ["low_ns", "high_ns"].map(str::to_owned).into_iter();
    let mut records = vec![heading.chain(columns.iter().map(|(name, _)| name.clone())).collect::<Vec<_>>()];
    for ((low, high), counts) in &lines {
        records.push([low, high].into_iter().chain(counts).map(u64::to_string).collect());
    }
    if columns.iter().any(|(_, histogram)| histogram.overflow() > 0) {
        let beyond = columns.iter().map(|(_, histogram)| histogram.overflow().to_string());
        records.push([String::new(), String::new()].into_iter().chain(beyond).collect());
    }
    Some(document::records_csv(records.into_iter()))
}

/// `max<=50000 exceeded: 2 of 60,000 were above`.
fn format_check(check: &CriterionCheck) -> String {
    format!("{} {} {}: {}", check.metric, check.limit, name(&check.status), check.text)
}

/// The longest events, the longest first: `3410000 ns at 20.006 s on CPU 1: thread stress 342000 ns, …`.
fn longest(m: &Measurement) -> impl Iterator<Item = String> {
    let mut outliers: Vec<&Outlier> = m.outliers.iter().collect();
    outliers.sort_by_key(|outlier| (std::cmp::Reverse(outlier.value), outlier.at));
    let cause = |cause: &Cause| format!("{} {} {} ns", cause.kind, cause.name, cause.ns);
    outliers.into_iter().take(groups::SHOWN).map(move |outlier| {
        let causes: Vec<String> = outlier.cause.iter().map(cause).collect();
        let causes = if causes.is_empty() { String::new() } else { format!(": {}", causes.join(", ")) };
        format!("{} ns at {} s on CPU {}{causes}", outlier.value, outlier.at as f64 / 1e9, outlier.cpu)
    })
}

fn unit_suffix(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" {unit}") }
}

fn join_parts(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(";")
}

/// The name a value has in the JSON.
pub(crate) fn name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::quality::{QualityLevel, Reason};

    /// Headings and lines of a table.
    fn read(bytes: &[u8]) -> (::csv::StringRecord, Vec<::csv::StringRecord>) {
        let mut reader = ::csv::Reader::from_reader(bytes);
        let headings = reader.headers().unwrap().clone();
        (headings, reader.records().map(|line| line.unwrap()).collect())
    }

    #[test]
    fn each_measurement_has_a_line_that_reads_back() {
        let report = fixture::report();
        let (headings, lines) = read(&report_csv(&report));
        let column = |name: &str| headings.iter().position(|c| c == name).unwrap();
        assert_eq!(lines.len(), report.measurements.len() + level_rows(&report).len());
        for (line, m) in lines.iter().zip(&report.measurements) {
            assert_eq!(&line[column("probe")], m.probe);
            assert_eq!(line[column("p50_ns")].parse().ok(), m.summary.p50);
            assert_eq!(line[column("touched_bytes_per_s")].parse().ok(), m.rate_touched());
            assert_eq!(line[column("count")], m.summary.count.to_string());
        }
    }

    #[test]
    fn the_long_form_has_one_value_a_line_and_a_column_for_each_parameter() {
        let mut report = fixture::wake();
        report.measurements[0].incomplete = true;
        let (headings, lines) = read(&long(&report));
        let column = |name: &str| headings.iter().position(|c| c == name).unwrap();
        for m in &report.measurements {
            let cpu = m.params["cpu"].to_string();
            let of = |figure: &str| {
                let mut found = lines
                    .iter()
                    .filter(|line| line[column("param_cpu")] == *cpu && line[column("figure")] == *figure);
                let line = found.next().unwrap_or_else(|| panic!("{figure} of CPU {cpu}"));
                assert_eq!(line[column("incomplete")], m.incomplete.to_string());
                assert!(found.next().is_none());
                (line[column("value")].parse::<f64>().unwrap(), line[column("unit")].to_owned())
            };
            assert_eq!(of("p50"), (m.summary.p50.unwrap(), "ns".to_owned()));
            assert_eq!(of("count"), (m.summary.count as f64, "count".to_owned()));
        }
        assert!(lines.iter().all(|line| !line[column("value")].is_empty()));
    }

    /// Fills every text of a result that others chose with characters that a terminal would obey.
    fn hostile(report: &mut Report) {
        let hostile = |text: &mut String| text.insert_str(0, "a\u{1b}[2J\r\n\u{7}\u{9b}b");
        report.machine.name = "host".to_owned();
        [&mut report.machine.name, &mut report.started].into_iter().for_each(hostile);
        report.finished.iter_mut().for_each(hostile);
        for m in &mut report.measurements {
            [&mut m.title, &mut m.probe].into_iter().for_each(hostile);
            m.lower(Reason::new(QualityLevel::Degraded, "odd", "why\u{1b}", "do\u{0}"));
            let values = std::mem::take(&mut m.values).into_iter();
            m.values = values.map(|(name, value)| (format!("\u{1b}{name}"), value)).collect();
            m.params.insert("directory\u{1b}".to_owned(), "/tmp/\u{1b}]0;x\u{7}".into());
            m.params.insert("other".to_owned(), format!("{}\t", m.params.len()).as_str().into());
        }
    }

    #[test]
    fn no_control_character_gets_into_a_file() {
        let mut report = fixture::wake();
        hostile(&mut report);
        // The titles stand for the rows where nothing else tells them apart.
        report.measurements.truncate(2);
        report.measurements.iter_mut().for_each(|m| m.params.clear());
        for bytes in [report_csv(&report), long(&report), buckets(&report).unwrap()] {
            let text = String::from_utf8(bytes).unwrap();
            let control = |c: char| c.is_control() && c != '\n';
            assert!(!text.contains(control), "{text}");
            assert!(text.contains("\\x1b"), "{text}");
        }
        let mut report = fixture::wake();
        hostile(&mut report);
        assert!(!report_csv(&report).contains(&0x1b));
        let lines = report_csv(&report).iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, report.measurements.len() + 1);
    }

    #[test]
    fn no_cell_is_a_formula() {
        let mut report = fixture::wake();
        report.measurements[0].title = "=1+1".to_owned();
        assert!(String::from_utf8(report_csv(&report)).unwrap().contains(",'=1+1,"));
    }

    #[test]
    fn a_histogram_that_ended_early_says_so() {
        let mut report = fixture::wake();
        assert!(!String::from_utf8(buckets(&report).unwrap()).unwrap().contains("ended early"));
        report.measurements.iter_mut().for_each(|m| m.incomplete = true);
        let text = String::from_utf8(buckets(&report).unwrap()).unwrap();
        let heading = text.lines().next().unwrap();
        assert_eq!(heading.matches(", ended early").count(), report.measurements.len(), "{heading}");
    }

    #[test]
    fn every_event_is_in_a_line_of_its_bucket() {
        let mut report = fixture::wake();
        report.measurements[0].histogram.record(1 << 50);
        let (headings, lines) = read(&buckets(&report).unwrap());
        assert_eq!(headings, vec!["low_ns", "high_ns", "CPU 0", "CPU 1", "all CPUs"]);
        let sum = |column: usize| lines.iter().map(|line| line[column].parse::<u64>().unwrap()).sum::<u64>();
        assert_eq!([sum(2), sum(3), sum(4)], [30_001, 30_000, 60_000]);
        let last = lines.last().unwrap();
        assert_eq!(last.iter().collect::<Vec<_>>(), ["", "", "1", "0", "0"]);
        report.measurements.clear();
        assert_eq!(buckets(&report), None);
    }
}
