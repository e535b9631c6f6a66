//! Record of a plan whose runs were judged, for signature.

use crate::column::ColumnBuilder;
use crate::document::{DocumentBlock, DocumentTable, FACT, ViewDocument};
use crate::style::PLAIN;
use crate::verdicts::{status_mark, status_word};
use latscope_core::report::{Account, VerdictStatus};
use latscope_core::units::{format_count, format_share, format_span, format_time};
use latscope_judge::acceptance::{Acceptance, AcceptanceRow, HashedFile};

/// Returns the table of the figures of each measurement of each run.
fn figure_table(record: &Acceptance) -> DocumentTable {
    let rows = ColumnBuilder(&record.cells);
    let time = |ns: Option<f64>| ns.map(format_time).unwrap_or_default();
    let quantile = |name: &str, at: usize| rows.right(name, move |judged| time(judged.quantiles[at]));
    let above = |(above, of): (u64, u64)| {
        format!("{} ({})", format_count(above), format_share(above as f64 / of.max(1) as f64))
    };
    let columns = vec![
        rows.left_aligned("measurement", measurement_name),
        rows.left_aligned("load", |judged| &judged.load),
        rows.right("events", |judged| format_count(judged.events)),
        rows.right("of them missed", |judged| format_count(judged.missed)),
        rows.right("time", |judged| judged.time_ns.map_or(String::new(), |ns| format_span(ns as f64))),
        quantile("p50", 0),
        quantile("p99", 1),
        quantile("p99.9", 2),
        quantile("p99.99", 3),
        rows.right("max", |judged| time(judged.max)),
        rows.right("limit", |judged| time(judged.limit_ns)),
        rows.right("above the limit", |judged| judged.above.map(above).unwrap_or_default()),
        rows.left_aligned("CPUs used by", |judged| {
            judged.account.as_ref().map(format_account).unwrap_or_default()
        }),
        rows.left_aligned("verdict", |judged| judged.status.map_or("", status_word)),
    ];
    DocumentTable { notes: vec![record.rule.clone()], ..DocumentTable::new(columns) }
}

/// Returns the table of the circumstances of each measurement of each run.
fn circumstances(cells: &[AcceptanceRow]) -> DocumentTable {
    let rows = ColumnBuilder(cells);
    let second = |time: &str| match time.split_once('T') {
        Some((day, time)) => format!("{day} {}", time.chars().take(8).collect::<String>()),
        None => time.to_owned(),
    };
    let ended = move |judged: &AcceptanceRow| judged.finished.as_deref().map(second).unwrap_or_default();
    let interval =
        |judged: &AcceptanceRow| judged.interval_ns.map(|ns| format_time(ns as f64)).unwrap_or_default();
    DocumentTable::new(vec![
        rows.left_aligned("measurement", measurement_name),
        rows.left_aligned("load", |judged| &judged.load),
        rows.left_aligned("began (UTC)", move |judged| second(&judged.started)),
        rows.left_aligned("ended (UTC)", ended),
        rows.right("interval", interval),
        rows.left_aligned("policy, priority", |judged| &judged.policy),
        rows.left_aligned("CPUs", |judged| &judged.cpus),
        rows.left_aligned("limits", |judged| judged.limits.join(", ")),
        rows.left_aligned("result", |judged| &judged.file.name),
    ])
}

fn measurement_name(judged: &AcceptanceRow) -> String {
    let AcceptanceRow { measurement, title, .. } = judged;
    match judged.arm.as_str() {
        "" | "as-is" => format!("{measurement}: {title}"),
        arm => format!("{measurement}, {arm}: {title}"),
    }
}

/// Returns the CPU time by user: `others 3 %, load 95 %`.
fn format_account(account: &Account) -> String {
    let short = |share: f64| format_share((share * 1e3).round() / 1e3);
    let others = account.known_others().map_or_else(|| "not known".to_owned(), short);
    let mut said = vec![format!("others {others}")];
    let known = [("load", account.load), ("peers", account.peer), ("stolen", account.stolen)];
    let known =
        known.into_iter().filter_map(|(name, share)| Some((name, share.filter(|share| *share > 0.0)?)));
    said.extend(known.map(|(name, share)| format!("{name} {}", short(share))));
    said.extend(account.throttled().map(|quota| quota.format_throttling()));
    said.join(", ")
}

/// Returns the measurement of a row with its load and a text on it.
fn format_line(judged: &AcceptanceRow, text: &str) -> String {
    let load = if judged.load.is_empty() { String::new() } else { format!(", load {}", judged.load) };
    format!("{}{load}: {text}", measurement_name(judged))
}

/// Headings and lists below the tables.
fn list_sections(record: &Acceptance) -> Vec<(&'static str, Vec<String>)> {
    let joined = |each: fn(&AcceptanceRow) -> &Vec<String>| -> Vec<String> {
        let rows = record.cells.iter().filter(|judged| !each(judged).is_empty());
        rows.map(|judged| format_line(judged, &each(judged).join("; "))).collect()
    };
    let stalls = |judged: &AcceptanceRow| {
        judged.stalls.iter().map(|text| format_line(judged, text)).collect::<Vec<_>>()
    };
    let lists = [
        ("What was tested", joined(|judged| &judged.checks)),
        ("What was not tested", record.not_tested.clone()),
        ("Longest events above the limit, and their causes", record.cells.iter().flat_map(stalls).collect()),
        ("Causes of the events that were traced", joined(|judged| &judged.causes)),
        ("What distorts these figures", joined(|judged| &judged.doubts)),
        ("What distorts latency on this machine", record.doctor.clone()),
        ("Machine and program", record.machine.clone()),
        ("SHA-256 of the result files", hashes(&record.cells)),
    ];
    lists.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Hash and name of each file of the record, each once.
fn hashes(cells: &[AcceptanceRow]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for HashedFile { name, sha256 } in cells.iter().map(|judged| &judged.file) {
        let hash = if sha256.is_empty() { "could not be read" } else { sha256 };
        let line = format!("{hash}  {name}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Lines for the signature.
const SIGNATURE: [&str; 3] = ["Date", "Name", "Signature"];

/// Returns the record without a title and without the lines for the signature.
pub(super) fn build_document(record: &Acceptance) -> ViewDocument {
    let style = status_mark(record.status.unwrap_or(VerdictStatus::Pass)).style;
    let mut document = ViewDocument::default();
    document.add_block(DocumentBlock::Text(style, record.sentence.clone()));
    document.add_table(figure_table(record));
    document.add_heading(3, "How each run was made");
    document.add_table(circumstances(&record.cells));
    for (heading, lines) in list_sections(record) {
        document.add_heading(3, heading);
        document.items(FACT, lines);
    }
    document
}

/// Returns the lines for the signature, which end whatever has a record: nothing stands below them.
pub(super) fn signature() -> ViewDocument {
    let mut document = ViewDocument::default();
    let lines = SIGNATURE.map(|name| format!("{name}: ...................."));
    document.add_block(DocumentBlock::Text(PLAIN, lines.join("  ")));
    document
}

#[cfg(test)]
mod tests {
    use super::super::{TrialPage, format_markdown, html};
    use super::*;
    use latscope_core::fixture;
    use latscope_judge::acceptance::{AcceptanceRun, AcceptanceScope, acceptance};
    use latscope_judge::verdict::{MetricCriterion, judge_report};

    fn record() -> Acceptance {
        let mut report = fixture::wake();
        report.machine.command_line = Some("quiet".to_owned());
        judge_report(&mut report, &[MetricCriterion::new("max", 50_000.0).unwrap()]);
        report.activity = Some(Account { others: 0.03, load: Some(0.951), ..Account::default() });
        let file = HashedFile { name: "001-as-is-osadl.json".to_owned(), sha256: "0a".repeat(32) };
        let input = AcceptanceRun { measurement: "osadl", load: "c|pu", arm: "as-is", report: &report, file };
        let scope =
            AcceptanceScope { skipped: vec!["load disk: no disk".to_owned()], ..AcceptanceScope::default() };
        acceptance(&[input], &scope, None).unwrap()
    }

    fn page(record: &Acceptance) -> TrialPage<'_> {
        TrialPage {
            title: "limits",
            facts: "1 run".to_owned(),
            arms: Vec::new(),
            against: vec!["1 of 2 runs does not count: it failed".to_owned()],
            skipped: Vec::new(),
            commands: vec!["latscope wake".to_owned()],
            record: Some(record),
            cells: &[],
            is_table: true,
            parts: Vec::new(),
        }
    }

    #[test]
    fn the_record_has_the_answer_the_figures_and_what_was_tested_and_not() {
        let text = format_markdown(&page(&record()), false);
        for part in [
            "## limits\n\n**A criterion is exceeded in 1 of 1 run.**",
            "| osadl: wake-up every 1.00 ms, all CPUs | c\\|pu | 60,003 | 3 | 30 s | ",
            "| 50.0 µs | 5 (0.0083 %) | others 3 %, load 95.1 % | exceeded |",
            "| osadl: wake-up every 1.00 ms, all CPUs | c\\|pu | 2026-11-21 10:00:00 | 2026-11-21 10:00:30 | 1.00 ms | SCHED\\_FIFO 95 | 0-1 | max 50.0 µs |",
            "#### What was tested\n\n- osadl: wake-up every 1.00 ms, all CPUs, load c\\|pu: max: 5 of 60,003 were above 50.0 µs",
            "### What was not tested\n\n- skipped: load disk: no disk\n- what recurs more rarely than once in 10 s",
            "- osadl: wake-up every 1.00 ms, all CPUs, load c\\|pu: 3.41 ms on CPU 1, 20 s after the start: thread stress-ng-cpu (pid 4211) 83 %",
            "### Causes of the events that were traced\n\n- osadl: wake-up every 1.00 ms, all CPUs, load c\\|pu: thread stress-ng-cpu",
            "kernel command line: quiet",
            &format!("### SHA-256 of the result files\n\n- {}  001-as-is-osadl.json", "0a".repeat(32)),
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn nothing_stands_below_the_signature() {
        let record = record();
        let text = format_markdown(&page(&record), false);
        assert!(
            text.contains("1 of 2 runs does not count")
                && text.trim_end().ends_with("Signature: ....................")
        );
        let html = html(&page(&record));
        let after = html.rsplit_once("Signature: ....................").unwrap().1;
        assert!(!after.contains("<h") && !after.contains("<table") && !after.contains("<li"), "{after}");
    }
}
