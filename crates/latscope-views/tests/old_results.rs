//! Results that older versions saved, beside the CSV that those versions made of them: they are read as
//! before, and show the same figures.
#![forbid(unsafe_code)]

use latscope_core::quality::{Level, UNNAMED};
use latscope_core::report::Report;
use latscope_views::csv::csv;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn kept(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results").join(name)).unwrap()
}

/// The lines of a CSV file, each by its columns.
fn lines(text: &[u8]) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text).deserialize().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_result_from_before_rounds_shows_the_same_figures() {
    let report = Report::from_json(&kept("before-rounds.json")).unwrap();
    let (then, now) = (lines(&kept("before-rounds.csv")), lines(&csv(&report)));
    assert!(then.len() > 5 && then.len() == now.len(), "{} and {} lines", then.len(), now.len());
    for (then, now) in then.iter().zip(&now) {
        for (column, value) in then {
            assert_eq!(now.get(column), Some(value), "{column} of {}", then["title"]);
        }
    }
}

#[test]
fn what_an_older_result_does_not_have_is_what_it_stands_for() {
    let report = Report::from_json(&kept("before-rounds.json")).unwrap();
    assert_eq!((report.run_id.as_str(), report.labels.len(), report.plan.rounds), ("", 0, 1));
    assert_eq!((report.machine.id.as_ref(), report.activity.is_none()), (None, true));
    let planned = report.plan.steps.iter().flat_map(|step| &step.points);
    assert!(
        planned
            .map(|point| point.revision)
            .chain(report.measurements.iter().map(|m| m.revision))
            .all(|r| r == 1)
    );
    assert!(report.measurements.iter().all(|m| m.rounds.is_empty() && m.interval.is_none()));
    let file: serde_json::Value = serde_json::from_slice(&kept("before-rounds.json")).unwrap();
    let saved = |index: usize| file["measurements"][index]["support"].as_str().unwrap();
    for (support, level) in
        [("ok", Level::Ok), ("degraded", Level::Degraded), ("unsupported", Level::Unsupported)]
    {
        let all = report.measurements.iter().enumerate();
        let mut of = all.filter(|(index, _)| saved(*index) == support).map(|(_, m)| m).peekable();
        assert!(of.peek().is_some(), "the file has no point that is {support}");
        for m in of {
            assert_eq!(m.quality.level, level, "{}", m.title);
            let ids: Vec<&str> = m.quality.reasons.iter().map(|reason| reason.id.as_str()).collect();
            assert_eq!(ids, if level == Level::Ok { &[][..] } else { &[UNNAMED] }, "{}", m.title);
        }
    }
}

#[test]
fn an_older_result_that_is_saved_again_keeps_its_fields() {
    let text = kept("before-rounds.json");
    let report = Report::from_json(&text).unwrap();
    let then: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let now: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    missing(&then, &now, "");
}

/// Every field of `then` is in `now` with its value; there may be more.
fn missing(then: &serde_json::Value, now: &serde_json::Value, at: &str) {
    use serde_json::Value;
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (name, value) in then {
                let found = now.get(name).unwrap_or_else(|| panic!("{at}.{name} is gone"));
                missing(value, found, &format!("{at}.{name}"));
            }
        }
        (Value::Array(then), Value::Array(now)) => {
            assert_eq!(then.len(), now.len(), "{at}");
            then.iter()
                .zip(now)
                .enumerate()
                .for_each(|(i, (then, now))| missing(then, now, &format!("{at}[{i}]")));
        }
        _ => assert_eq!(then, now, "{at}"),
    }
}
