//! A line for each measurement, for spreadsheets and scripts. Durations are in
//! ns, rates in bytes per second, all digits kept. Control characters, which names of
//! hosts, files and threads can hold, are written as `\x1b`.

use super::groups;
use super::rows::{family, level_label};
use latscope_core::histogram::Histogram;
use latscope_core::report::{Cause, Check, Measurement, Outlier, Report, Sampling, Semantics, Summary};
use latscope_judge::findings::{LevelRow, level_rows};
use latscope_judge::verdict::confidence_of;
use std::collections::BTreeMap;

const COLUMNS: [&str; 56] = [
    "probe",
    "family",
    "title",
    "params",
    "sampling",
    "batch_ops",
    "times",
    "support",
    "reason",
    "remedy",
    "incomplete",
    "row",
    "count",
    "rejected",
    "missed",
    "min_ns",
    "p10_ns",
    "p50_ns",
    "p90_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "p99_99_ns",
    "p99_999_ns",
    "p99_9999_ns",
    "max_ns",
    "mean_ns",
    "cycles",
    "ops",
    "bytes_touched",
    "bytes_moved",
    "touched_bytes_per_s",
    "moved_bytes_per_s",
    "values",
    "machine",
    "started",
    "finished",
    "verdict",
    "quality",
    "rounds",
    "next_run_low_ns",
    "next_run_high_ns",
    "corrected_count",
    "corrected_p50_ns",
    "corrected_p99_ns",
    "corrected_p99_9_ns",
    "corrected_p99_99_ns",
    "corrected_p99_999_ns",
    "corrected_p99_9999_ns",
    "corrected_max_ns",
    "corrected_mean_ns",
    "checks",
    "confidence",
    "longest",
    "hops",
    "others_cpu_share",
];

/// Returns the report as CSV with a header line. A missing value is an empty field. Below the measurements are
/// the levels of memory that the table has, as `memory.level`.
pub fn csv(report: &Report) -> Vec<u8> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let levels = level_rows(report);
    let records = report.measurements.iter().map(|m| record(report, m));
    let mut records = records.chain(levels.iter().map(|level| level_record(report, level)));
    let written = writer
        .write_record(COLUMNS)
        .and_then(|()| records.try_for_each(|record| writer.write_record(record)));
    written.expect("memory takes any record of the same length");
    writer.into_inner().expect("memory can be flushed")
}

/// The histograms of the single events of a report as CSV: a line for each
/// bucket that is not empty, with its bounds in ns (both inclusive) and a column
/// of counts for each measurement. Values beyond the last bucket are in a line
/// without bounds. `None` without single events.
pub fn buckets(report: &Report) -> Option<Vec<u8>> {
    let groups = latscope_core::events::groups(report);
    let several = groups.len() > 1;
    let rows = groups
        .iter()
        .flat_map(|group| group.singles.iter().chain(&group.merged).map(move |row| (group, row)));
    let columns: Vec<(String, &Histogram)> = rows
        .map(|(group, row)| {
            let name = if several { format!("{}, {}", group.probe, row.label) } else { row.label.clone() };
            (name, &row.m.histogram)
        })
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut lines: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
    for (at, (_, histogram)) in columns.iter().enumerate() {
        for (low, high, count) in histogram.buckets_ns() {
            let line = lines.entry((low as u64, high as u64)).or_insert_with(|| vec![0; columns.len()]);
            line[at] = count;
        }
    }
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut write =
        |bounds: [String; 2], counts: Vec<String>| writer.write_record(bounds.into_iter().chain(counts));
    let heading = ["low_ns", "high_ns"].map(str::to_owned);
    let mut written = write(heading, columns.iter().map(|(name, _)| shown(name)).collect());
    for ((low, high), counts) in &lines {
        let counts = counts.iter().map(u64::to_string).collect();
        written = written.and_then(|()| write([low.to_string(), high.to_string()], counts));
    }
    if columns.iter().any(|(_, histogram)| histogram.overflow() > 0) {
        let beyond = columns.iter().map(|(_, histogram)| histogram.overflow().to_string()).collect();
        written = written.and_then(|()| write(Default::default(), beyond));
    }
    written.expect("memory takes any record of the same length");
    Some(writer.into_inner().expect("memory can be flushed"))
}

/// Returns a text without control characters, which a terminal would obey and a line would end at. A text that
/// a spreadsheet would take for a formula begins with a quote; a number does not.
pub(super) fn shown(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { format!("\\x{:02x}", c as u32) } else { c.to_string() };
    let formula = text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
    formula.then_some("'".to_owned()).into_iter().chain(text.chars().map(escaped)).collect()
}

/// The fields of a measurement, in the order of [`COLUMNS`].
fn record(report: &Report, m: &Measurement) -> [String; COLUMNS.len()] {
    let s = &m.summary;
    let corrected = m.corrected.as_ref().map(|corrected| Summary::of(corrected, &Summary::default()));
    let of_corrected = |of: fn(&Summary) -> Option<f64>| {
        corrected.as_ref().and_then(of).map(|v| v.to_string()).unwrap_or_default()
    };
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let work = |bytes: fn(&latscope_core::report::Work) -> u64| m.work.as_ref().map(|w| bytes(w).to_string());
    let (sampling, batch_ops) = match m.sampling {
        Sampling::Event => ("event", String::new()),
        Sampling::Batch { ops: 0 } => ("batch", String::new()),
        Sampling::Batch { ops } => ("batch", ops.to_string()),
    };
    [
        m.probe.clone(),
        family(&m.probe).to_owned(),
        m.title.clone(),
        joined(m.params.iter().map(|(name, value)| format!("{name}={value}"))),
        sampling.to_owned(),
        batch_ops,
        name(&m.times),
        m.quality.level.word().to_owned(),
        text(&m.reason()),
        text(&m.remedy()),
        m.incomplete.to_string(),
        m.row.to_string(),
        s.count.to_string(),
        m.missed().map(|_| s.rejected.to_string()).unwrap_or_default(),
        m.missed().map(|missed| missed.to_string()).unwrap_or_default(),
        number(s.min),
        number(s.p10),
        number(s.p50),
        number(s.p90),
        number(s.p95),
        number(s.p99),
        number(s.p99_9),
        number(s.p99_99),
        number(s.p99_999),
        number(s.p99_9999),
        number(s.max),
        number(s.mean),
        number(s.cycles),
        work(|w| w.ops).unwrap_or_default(),
        work(|w| w.bytes_touched).unwrap_or_default(),
        work(|w| w.bytes_moved).unwrap_or_default(),
        number(m.rate_touched()),
        number(m.rate_moved(&report.machine)),
        joined(m.values.iter().map(|(name, v)| format!("{name}={}{}", v.value, spaced(&v.unit)))),
        report.machine.name.clone(),
        report.started.clone(),
        text(&report.finished),
        m.verdict.as_ref().map(|verdict| name(&verdict.status)).unwrap_or_default(),
        m.quality.level.word().to_owned(),
        m.rounds.len().max(1).to_string(),
        number(m.next_run().map(|interval| interval.low)),
        number(m.next_run().map(|interval| interval.high)),
        corrected.as_ref().map(|c| c.count.to_string()).unwrap_or_default(),
        of_corrected(|c| c.p50),
        of_corrected(|c| c.p99),
        of_corrected(|c| c.p99_9),
        of_corrected(|c| c.p99_99),
        of_corrected(|c| c.p99_999),
        of_corrected(|c| c.p99_9999),
        of_corrected(|c| c.max),
        of_corrected(|c| c.mean),
        joined(m.verdict.iter().flat_map(|verdict| &verdict.checks).map(check)),
        confidence_of(report, m).unwrap_or_default(),
        joined(longest(m)),
        joined(m.hops.iter().map(groups::told)),
        number(report.activity.as_ref().map(|activity| activity.others)),
    ]
    .map(|field| shown(&field))
}

/// The fields of a level of memory.
fn level_record(report: &Report, level: &LevelRow) -> [String; COLUMNS.len()] {
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let field = |column: &str| match column {
        "probe" => "memory.level".to_owned(),
        "family" => "memory".to_owned(),
        "title" => level_label(level),
        "sampling" => "batch".to_owned(),
        "times" => name(&Semantics::Operation),
        "support" => level.quality.level.word().to_owned(),
        "quality" => level.quality.level.word().to_owned(),
        "reason" => level.quality.text().unwrap_or_default(),
        "remedy" => level.quality.remedy().unwrap_or_default(),
        "incomplete" => "false".to_owned(),
        "row" => "true".to_owned(),
        "p10_ns" => number(level.p10),
        "p50_ns" => number(Some(level.ns)),
        "p90_ns" => number(level.p90),
        "cycles" => number(level.cycles),
        "machine" => report.machine.name.clone(),
        "started" => report.started.clone(),
        "finished" => report.finished.clone().unwrap_or_default(),
        "next_run_low_ns" => number(level.next.map(|(low, _)| low)),
        "next_run_high_ns" => number(level.next.map(|(_, high)| high)),
        _ => String::new(),
    };
    COLUMNS.map(|column| shown(&field(column)))
}

/// `max<=50000 exceeded: 2 of 60,000 were above`.
fn check(check: &Check) -> String {
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

fn spaced(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" {unit}") }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(";")
}

/// The name a value has in the JSON.
fn name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::quality::{Level, Reason};

    #[test]
    fn each_measurement_has_a_line_that_reads_back() {
        let report = fixture::report();
        let bytes = csv(&report);
        let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
        let column = |name: &str| COLUMNS.iter().position(|c| *c == name).unwrap();
        let lines: Vec<_> = reader.records().map(|line| line.unwrap()).collect();
        assert_eq!(lines.len(), report.measurements.len() + level_rows(&report).len());
        for (line, m) in lines.iter().zip(&report.measurements) {
            assert_eq!(&line[column("probe")], m.probe);
            assert_eq!(line[column("p50_ns")].parse().ok(), m.summary.p50);
            assert_eq!(line[column("touched_bytes_per_s")].parse().ok(), m.rate_touched());
            assert_eq!(line[column("count")], m.summary.count.to_string());
        }
    }

    /// Fills every text of a result that others chose with characters that a terminal would obey.
    fn hostile(report: &mut Report) {
        let hostile = |text: &mut String| text.insert_str(0, "a\u{1b}[2J\r\n\u{7}\u{9b}b");
        report.machine.name = "host".to_owned();
        [&mut report.machine.name, &mut report.started].into_iter().for_each(hostile);
        report.finished.iter_mut().for_each(hostile);
        for m in &mut report.measurements {
            [&mut m.title, &mut m.probe].into_iter().for_each(hostile);
            m.lower(Reason::new(Level::Degraded, "odd", "why\u{1b}", "do\u{0}"));
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
        for bytes in [csv(&report), buckets(&report).unwrap()] {
            let text = String::from_utf8(bytes).unwrap();
            let control = |c: char| c.is_control() && c != '\n';
            assert!(!text.contains(control), "{text}");
            assert!(text.contains("\\x1b"), "{text}");
        }
        let mut report = fixture::wake();
        hostile(&mut report);
        assert!(!csv(&report).contains(&0x1b));
        let lines = csv(&report).iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, report.measurements.len() + 1);
    }

    #[test]
    fn no_cell_is_a_formula_and_numbers_stay_numbers() {
        let cells = ["=HYPERLINK(\"x\")", "+1+cmd|' /C'!A0", "-2+3", "@SUM(A1)", "-5.25", "+3", "a=b", ""];
        let written =
            ["'=HYPERLINK(\"x\")", "'+1+cmd|' /C'!A0", "'-2+3", "'@SUM(A1)", "-5.25", "+3", "a=b", ""];
        assert_eq!(cells.map(shown), written);
        let mut report = fixture::wake();
        report.measurements[0].title = "=1+1".to_owned();
        assert!(String::from_utf8(csv(&report)).unwrap().contains(",'=1+1,"));
    }

    #[test]
    fn every_event_is_in_a_line_of_its_bucket() {
        let mut report = fixture::wake();
        report.measurements[0].histogram.record(1 << 50);
        let bytes = buckets(&report).unwrap();
        let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
        let heading: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        assert_eq!(heading, ["low_ns", "high_ns", "CPU 0", "CPU 1", "all CPUs"]);
        let lines: Vec<_> = reader.records().map(|line| line.unwrap()).collect();
        let sum = |column: usize| lines.iter().map(|line| line[column].parse::<u64>().unwrap()).sum::<u64>();
        assert_eq!([sum(2), sum(3), sum(4)], [30_001, 30_000, 60_000]);
        let last = lines.last().unwrap();
        assert_eq!(last.iter().collect::<Vec<_>>(), ["", "", "1", "0", "0"]);
        report.measurements.clear();
        assert_eq!(buckets(&report), None);
    }
}
