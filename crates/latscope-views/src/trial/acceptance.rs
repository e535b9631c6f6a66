//! Record of a plan whose runs were judged, for signature: the same tables as Markdown and on a page.

use crate::grid::Side;
use crate::html::{cell, list, table};
use crate::markdown::escape;
use crate::markup::{Element, element};
use crate::verdicts::word;
use latscope_core::report::{Account, Status};
use latscope_core::units::{format_count, format_share, format_span, format_time};
use latscope_judge::acceptance::{Acceptance, Judged};

/// Columns of the table: figures of each measurement of each run.
const COLUMNS: [(&str, Side); 12] = [
    ("measurement", Side::Left),
    ("load", Side::Left),
    ("events", Side::Right),
    ("time", Side::Right),
    ("p50", Side::Right),
    ("p99", Side::Right),
    ("p99.9", Side::Right),
    ("p99.99", Side::Right),
    ("max", Side::Right),
    ("above the limit", Side::Right),
    ("CPUs used by", Side::Left),
    ("verdict", Side::Left),
];

/// Explanation of the table.
const LEGEND: &str =
    "Events and quantiles include the activations that were missed. A quantile takes ten events above it.";

fn fields(judged: &Judged) -> [String; COLUMNS.len()] {
    let time = |ns: Option<f64>| ns.map(format_time).unwrap_or_default();
    let [p50, p99, p99_9, p99_99] = judged.quantiles.map(time);
    let above = judged.above.map_or(String::new(), |(above, of)| {
        format!("{} ({})", format_count(above), format_share(above as f64 / of.max(1) as f64))
    });
    [
        name(judged),
        judged.load.clone(),
        format_count(judged.events),
        judged.time_ns.map_or(String::new(), |ns| format_span(ns as f64)),
        p50,
        p99,
        p99_9,
        p99_99,
        time(judged.max),
        above,
        judged.account.as_ref().map(account).unwrap_or_default(),
        judged.status.map_or(String::new(), |status| word(status).to_owned()),
    ]
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
    let mut said = vec![format!("others {}", short(account.others))];
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

/// The record as Markdown.
pub(super) fn markdown(title: &str, record: &Acceptance) -> String {
    let mut out = format!("## {}\n\n**{}**\n\n", escape(title), escape(&record.sentence));
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out += &row(COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect());
    let rule = |(_, side): &(&str, Side)| if matches!(side, Side::Right) { "--:" } else { "---" }.to_owned();
    out += &row(COLUMNS.iter().map(rule).collect());
    for judged in &record.cells {
        out += &row(fields(judged).iter().map(|field| escape(field)).collect());
    }
    out += &format!("\n{LEGEND}\n");
    for (heading, lines) in lists(record) {
        out += &format!("\n### {heading}\n\n");
        lines.iter().for_each(|line| out += &format!("- {}\n", escape(line)));
    }
    out + &format!("\n{}: ____________________\n", SIGNATURE.join(": ____________________  "))
}

/// The record as a section of a page.
pub(super) fn section(record: &Acceptance) -> Element {
    let class = match record.status {
        Some(Status::Exceeded) => "bad",
        Some(Status::Inconclusive) => "doubt",
        _ => "good",
    };
    let row = |judged: &Judged| {
        let fields = fields(judged);
        let cells = fields.iter().zip(&COLUMNS).map(|(field, (_, side))| cell(field, *side));
        element("tr").children(cells.collect::<Vec<_>>())
    };
    let heading = |(heading, lines): (&str, Vec<String>)| {
        std::iter::once(element("h3").text(heading)).chain(list(lines)).collect::<Vec<_>>()
    };
    let sign = SIGNATURE.map(|name| format!("{name}: ____________________"));
    element("section")
        .child(element("h2").text("Acceptance"))
        .child(element("p").child(element("b").with("class", class).text(&record.sentence)))
        .child(table(&COLUMNS, record.cells.iter().map(row)))
        .child(element("p").with("class", "legend").text(LEGEND))
        .children(lists(record).into_iter().flat_map(heading))
        .child(element("p").text(sign.join("  ")))
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
        let text = markdown("limits", &record());
        for part in [
            "## limits\n\n**A criterion is exceeded in 1 of 1 run.**",
            "| osadl | c\\|pu | 60,003 | 30 s | ",
            "| 2 (0.0033 %) | others 3 %, load 95.1 % | exceeded |",
            "### What was tested\n\n- osadl, load c\\|pu: max: 2 of 60,000 were above 50.0 µs",
            "### What was not tested\n\n- skipped: load disk: no disk\n- what recurs more rarely than once in 10 s",
            "### Causes of the events that were traced\n\n- osadl, load c\\|pu: thread stress-ng-cpu",
            "Signature: ____",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn the_page_has_the_same() {
        let page = section(&record()).written();
        for part in ["A criterion is exceeded in 1 of 1 run.", "60,003", "What was not tested", "Signature"] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }
}
