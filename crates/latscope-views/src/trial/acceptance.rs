//! Record of a plan whose runs were judged, for signature.

use crate::column::Rows;
use crate::document::{Block, Document, FACT, Table};
use crate::style::PLAIN;
use crate::verdicts::{mark, word};
use latscope_core::report::{Account, Status};
use latscope_core::units::{format_count, format_share, format_span, format_time};
use latscope_judge::acceptance::{Acceptance, Judged};

/// Explanation of the table.
const LEGEND: &str =
    "Events and quantiles include the activations that were missed. A quantile takes ten events above it.";

/// Returns the table of the figures of each measurement of each run.
fn table(cells: &[Judged]) -> Table {
    let rows = Rows(cells);
    let time = |ns: Option<f64>| ns.map(format_time).unwrap_or_default();
    let quantile = |name: &str, at: usize| rows.right(name, move |judged| time(judged.quantiles[at]));
    let above = |(above, of): (u64, u64)| {
        format!("{} ({})", format_count(above), format_share(above as f64 / of.max(1) as f64))
    };
    let columns = vec![
        rows.left("measurement", name),
        rows.left("load", |judged| &judged.load),
        rows.right("events", |judged| format_count(judged.events)),
        rows.right("time", |judged| judged.time_ns.map_or(String::new(), |ns| format_span(ns as f64))),
        quantile("p50", 0),
        quantile("p99", 1),
        quantile("p99.9", 2),
        quantile("p99.99", 3),
        rows.right("max", |judged| time(judged.max)),
        rows.right("above the limit", |judged| judged.above.map(above).unwrap_or_default()),
        rows.left("CPUs used by", |judged| judged.account.as_ref().map(account).unwrap_or_default()),
        rows.left("verdict", |judged| judged.status.map_or("", word)),
    ];
    Table { notes: vec![LEGEND.to_owned()], ..Table::new(columns) }
}

fn name(judged: &Judged) -> String {
    match judged.arm.as_str() {
        "" | "as-is" => judged.measurement.clone(),
        arm => format!("{}, {arm}", judged.measurement),
    }
}

/// Returns the CPU time by user: `others 3 %, load 95 %`.
fn account(account: &Account) -> String {
    let short = |share: f64| format_share((share * 1e3).round() / 1e3);
    let others = account.known_others().map_or_else(|| "not known".to_owned(), short);
    let mut said = vec![format!("others {others}")];
    let known = [("load", account.load), ("peers", account.peer), ("stolen", account.stolen)];
    let known =
        known.into_iter().filter_map(|(name, share)| Some((name, share.filter(|share| *share > 0.0)?)));
    said.extend(known.map(|(name, share)| format!("{name} {}", short(share))));
    said.extend(account.throttled().map(|quota| quota.words()));
    said.join(", ")
}

/// Headings and lists below the table.
fn lists(record: &Acceptance) -> Vec<(&'static str, Vec<String>)> {
    let of_cells = |each: fn(&Judged) -> &Vec<String>| -> Vec<String> {
        let line = |judged: &Judged| {
            let load = if judged.load.is_empty() { String::new() } else { format!(", load {}", judged.load) };
            let texts = each(judged);
            (!texts.is_empty()).then(|| format!("{}{load}: {}", name(judged), texts.join("; ")))
        };
        record.cells.iter().filter_map(line).collect()
    };
    let lists = [
        ("What was tested", of_cells(|judged| &judged.checks)),
        ("What was not tested", record.not_tested.clone()),
        ("Causes of the events that were traced", of_cells(|judged| &judged.causes)),
        ("What distorts these figures", of_cells(|judged| &judged.doubts)),
        ("What distorts latency on this machine", record.doctor.clone()),
        ("Machine and program", record.machine.clone()),
    ];
    lists.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Lines for the signature.
const SIGNATURE: [&str; 3] = ["Date", "Name", "Signature"];

/// Returns the record without a title.
pub(super) fn document(record: &Acceptance) -> Document {
    let style = mark(record.status.unwrap_or(Status::Pass)).style;
    let mut document = Document::default();
    document.add(Block::Text(style, record.sentence.clone()));
    document.table(table(&record.cells));
    for (heading, lines) in lists(record) {
        document.heading(3, heading);
        document.items(FACT, lines);
    }
    document
        .add(Block::Text(PLAIN, SIGNATURE.map(|name| format!("{name}: ....................")).join("  ")));
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_judge::acceptance::{Input, acceptance};
    use latscope_judge::verdict::{Criterion, judge_report};

    fn record() -> Acceptance {
        let mut report = fixture::wake();
        judge_report(&mut report, &[Criterion::new("max", 50_000.0).unwrap()]);
        report.activity = Some(Account { others: 0.03, load: Some(0.951), ..Account::default() });
        let input = Input { measurement: "osadl", load: "c|pu", arm: "as-is", report: &report };
        acceptance(&[input], &["load disk: no disk".to_owned()]).unwrap()
    }

    #[test]
    fn the_record_has_the_answer_the_figures_and_what_was_tested_and_not() {
        let text = crate::trial::record_or_tables("limits", &[], Some(&record()));
        for part in [
            "## limits\n\n**A criterion is exceeded in 1 of 1 run.**",
            "| osadl | c\\|pu | 60,003 | 30 s | ",
            "| 2 (0.0033 %) | others 3 %, load 95.1 % | exceeded |",
            "#### What was tested\n\n- osadl, load c\\|pu: max: 2 of 60,000 were above 50.0 µs",
            "### What was not tested\n\n- skipped: load disk: no disk\n- what recurs more rarely than once in 10 s",
            "### Causes of the events that were traced\n\n- osadl, load c\\|pu: thread stress-ng-cpu",
            "Signature: ....",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
