//! A comparison as CSV: a line for each figure of each point, all digits kept.

use super::figures::{Figure, figures};
use crate::csv::shown;
use latscope_core::report::Better;
use latscope_judge::compare::{Comparison, Contrast, Point, Verdict};

const COLUMNS: [&str; 23] = [
    "id",
    "probe",
    "title",
    "figure",
    "unit",
    "better",
    "a",
    "b",
    "ratio",
    "low",
    "high",
    "verdict",
    "margin",
    "would_tell",
    "p",
    "p_adjusted",
    "superiority",
    "runs_a",
    "runs_b",
    "rounds_a",
    "rounds_b",
    "distance",
    "quality",
];

/// Returns every point that was compared, with a header line. A missing value is an empty field.
pub fn csv(comparison: &Comparison) -> Vec<u8> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut written = writer.write_record(COLUMNS);
    for point in &comparison.points {
        for figure in figures(point) {
            written = written.and_then(|()| writer.write_record(record(comparison, point, &figure)));
        }
    }
    written.expect("memory takes any record of the same length");
    writer.into_inner().expect("memory can be flushed")
}

/// The fields of a figure, in the order of [`COLUMNS`].
fn record(comparison: &Comparison, point: &Point, figure: &Figure) -> [String; COLUMNS.len()] {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let of = |field: fn(&Contrast) -> Option<f64>| number(figure.contrast.and_then(field));
    let count =
        |field: fn(&Contrast) -> usize| figure.contrast.map(|c| field(c).to_string()).unwrap_or_default();
    let tail = figure.unit == "share";
    let margin = figure.verdict.map(|_| if tail { comparison.tail_margin } else { point.margin });
    let advice = point.would_tell.filter(|_| figure.name == "p50").map(|advice| advice.to_string());
    [
        shown(&point.id),
        shown(&point.probe),
        shown(&point.title),
        shown(&figure.name),
        shown(figure.unit),
        better(figure.better).to_owned(),
        number(figure.a),
        number(figure.b),
        of(|c| Some(c.ratio)),
        of(|c| c.interval.map(|range| range.low)),
        of(|c| c.interval.map(|range| range.high)),
        figure.verdict.map(verdict).unwrap_or_default().to_owned(),
        number(margin),
        advice.unwrap_or_default(),
        of(|c| c.p),
        of(|c| c.p_adjusted),
        of(|c| c.superiority),
        count(|c| c.runs[0]),
        count(|c| c.runs[1]),
        count(|c| c.rounds[0]),
        count(|c| c.rounds[1]),
        number(point.distance),
        point.level.word().to_owned(),
    ]
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::Differs => "differs",
        Verdict::Same => "same",
        Verdict::CannotTell => "cannot-tell",
    }
}

fn better(better: Better) -> &'static str {
    match better {
        Better::Less => "less",
        Better::More => "more",
        Better::Neither => "neither",
    }
}
