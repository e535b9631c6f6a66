//! The changes of a history as CSV: a line for each figure, all digits kept.

use super::words;
use crate::csv::shown;
use latscope_judge::history::{Figure, History};

const COLUMNS: [&str; 17] = [
    "machine", "change", "started", "run", "run_id", "file", "id", "probe", "title", "figure", "unit",
    "beyond", "before", "after", "ratio", "low", "high",
];

/// Returns every figure of every change, with a header line. A missing value is an empty field.
pub fn csv(history: &History) -> Vec<u8> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut written = writer.write_record(COLUMNS);
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for machine in &history.machines {
        for change in &machine.changes {
            for moved in &change.moved {
                let range = moved.size.interval;
                let record: [String; COLUMNS.len()] = [
                    shown(&machine.id),
                    shown(&change.id),
                    shown(&change.first.started),
                    (change.run + 1).to_string(),
                    shown(&change.first.run_id),
                    shown(&change.first.name),
                    shown(&moved.id),
                    shown(&moved.probe),
                    shown(&moved.title),
                    figure(moved.figure).to_owned(),
                    words::unit(moved.figure).to_owned(),
                    number(moved.beyond),
                    number(Some(moved.size.a)),
                    number(Some(moved.size.b)),
                    number(Some(moved.size.ratio)),
                    number(range.map(|range| range.low)),
                    number(range.map(|range| range.high)),
                ];
                written = written.and_then(|()| writer.write_record(record));
            }
        }
    }
    written.expect("memory takes any record of the same length");
    writer.into_inner().expect("memory can be flushed")
}

fn figure(figure: Figure) -> &'static str {
    match figure {
        Figure::P50 => "p50",
        Figure::P99 => "p99",
        Figure::Tail => "tail",
    }
}
