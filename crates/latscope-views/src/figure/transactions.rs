//! The figure of a transaction's time over its payload.

use super::about::of_points;
use super::by_parameter::medians;
use super::many::{MOST, thinned};
use super::{Axis, Figure, Scale, Series, Unit};
use latscope_core::merged::is_merged;
use latscope_core::ordered::entry;
use latscope_core::param;
use latscope_core::quality::Level;
use latscope_core::report::{Measurement, Report};
use latscope_judge::transactions::{label, mode};

/// Draws time against payload, a curve for each transport. `None` if no transport was measured with two
/// payloads.
pub fn throughput_figure(report: &Report) -> Option<Figure> {
    let mut curves: Vec<(String, Vec<(f64, &Measurement)>)> = Vec::new();
    let wanted = |m: &&Measurement| {
        mode(m) == Some("throughput") && is_merged(m) && m.quality.level != Level::Unsupported
    };
    for m in report.measurements.iter().filter(wanted) {
        let (Some(payload), Some(_)) = (m.number(param::PAYLOAD), m.typical()) else { continue };
        entry(&mut curves, label(m)).push((payload as f64, m));
    }
    curves.retain(|(_, points)| points.len() > 1);
    let all: Vec<&Measurement> = curves.iter().flat_map(|(_, points)| points).map(|(_, m)| *m).collect();
    let mut notes = of_points(report, &all, "band");
    let slowest = |one: &Series| one.points.iter().map(|(_, ns)| *ns).fold(0.0, f64::max);
    let series = curves.into_iter().map(|(name, points)| medians(name, points));
    let (series, thinned) = thinned(series.map(|one| (slowest(&one), one)).collect(), MOST);
    notes.extend(thinned);
    (!series.is_empty()).then(|| Figure {
        title: "Time of a transaction by payload".to_owned(),
        notes,
        x: Axis::new("payload", Scale::Log2, Unit::Bytes),
        y: Axis::new("round trip", Scale::Log10, Unit::Nanoseconds),
        series,
        marks: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::ipc;

    #[test]
    fn a_curve_for_each_transport() {
        let figure = throughput_figure(&ipc::throughput()).unwrap();
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["unix-stream", "passthrough"]);
        assert_eq!(figure.series[0].points.len(), 3);
        assert_eq!(throughput_figure(&ipc::latency()), None);
    }
}
