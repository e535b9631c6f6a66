//! The figure of memory bandwidth over size.

use super::about::of_points;
use super::{Axis, Figure, Scale, Series, Shape, Unit};
use latscope_core::plan::ParamValue;
use latscope_core::report::{Measurement, Report, Support};
use std::collections::BTreeMap;

/// Bytes touched per second over the size of the memory, a curve for each operation by one thread on every byte. `None`
/// where none was measured at two sizes.
pub fn bandwidth_figure(report: &Report) -> Option<Figure> {
    let is = |m: &Measurement, name: &str, value: &str| {
        m.params.get(name).is_none_or(|known| known.to_string() == value)
    };
    let wanted = |m: &&Measurement| {
        m.support != Support::Unsupported && is(m, "threads", "1") && is(m, "step", "every")
    };
    let mut curves: BTreeMap<String, Vec<(&Measurement, f64)>> = BTreeMap::new();
    for m in report.of_probe("memory.bandwidth").filter(wanted) {
        let (Some(ParamValue::Number(size)), Some(operation)) =
            (m.params.get("size"), m.params.get("operation"))
        else {
            continue;
        };
        curves.entry(operation.to_string()).or_default().push((m, *size as f64));
    }
    curves.retain(|_, points| points.len() > 1);
    let all: Vec<&Measurement> = curves.values().flatten().map(|(m, _)| *m).collect();
    let notes = of_points(report, &all);
    let series: Vec<Series> = curves.into_iter().map(|(name, points)| curve(name, points)).collect();
    (!series.is_empty()).then(|| Figure {
        title: "Memory bandwidth by size, one thread".to_owned(),
        notes,
        x: Axis { label: "size".to_owned(), scale: Scale::Log2, unit: Unit::Bytes, ends: None },
        y: Axis { label: "bytes touched".to_owned(), scale: Scale::Log10, unit: Unit::Rate, ends: None },
        series,
        marks: Vec::new(),
    })
}

/// A curve with the rates that belong to where the next run's medians are expected.
fn curve(name: String, mut points: Vec<(&Measurement, f64)>) -> Series {
    points.sort_by(|a, b| a.1.total_cmp(&b.1));
    let band = points.iter().filter_map(|(m, size)| {
        let (rate, ns, next) = (m.rate_touched()?, m.typical()?, m.interval?);
        Some((*size, rate * ns / next.high, rate * ns / next.low))
    });
    let band = band.collect();
    let points = points.iter().filter_map(|(m, size)| Some((*size, m.rate_touched()?))).collect();
    Series { name, points, band, shape: Shape::Line, background: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn a_curve_for_each_operation_that_was_measured_at_several_sizes() {
        let report = fixture::report();
        let sizes = |operation: &str| {
            let of = |m: &&Measurement| m.params.get("operation").is_some_and(|o| o.to_string() == operation);
            report.of_probe("memory.bandwidth").filter(of).count()
        };
        match bandwidth_figure(&report) {
            None => assert!(["read", "write", "copy"].iter().all(|operation| sizes(operation) < 2)),
            Some(figure) => assert!(figure.series.iter().all(|series| series.points.len() > 1)),
        }
    }
}
