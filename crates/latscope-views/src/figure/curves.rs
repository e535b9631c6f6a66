//! Figures of memory latency over working-set size, and of a transaction's time over its payload.

use super::about::of_points;
use super::by_parameter::{median_series, space_unit};
use super::many::{MOST, thin_series};
use super::{Axis, AxisMark, CurvePlot, FigureAxisScale, FigureAxisUnit, MarkAxis, PlotSeries};
use latscope_core::catalogue::ids;
use latscope_core::merged::is_merged;
use latscope_core::ordered::entry;
use latscope_core::param;
use latscope_core::plan::KIND;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report};
use latscope_core::units::{format_size, format_time};
use latscope_judge::findings::{LevelRow, level_rows};
use latscope_judge::transactions::{label, mode};
use std::collections::BTreeMap;

/// Number of curves that can be distinguished.
const MOST_SERIES: usize = 4;

/// Curves by preference, the most informative first.
const PREFERRED: [(&str, &str); 6] = [
    ("random", "2MiB"),
    ("random", "4KiB"),
    ("window", "4KiB"),
    ("page", "4KiB"),
    ("stride", "2MiB"),
    ("stride", "4KiB"),
];

/// Memory latency over working-set size, a curve for each order of visiting
/// and page size (at most four), with the levels found as marks. `None` when
/// no order was measured at two sizes.
pub fn latency_figure(report: &Report) -> Option<CurvePlot> {
    let mut curves: BTreeMap<(usize, String), Vec<(f64, &Measurement)>> = BTreeMap::new();
    // Those between nodes have a map, those of each kind of core rows.
    let drawn = |m: &&Measurement| {
        m.quality.level != QualityLevel::Unsupported && m.nodes().is_none() && !m.params.contains_key(KIND)
    };
    for m in report.of_probe(ids::MEMORY_LATENCY).filter(drawn) {
        if let (Some(size), Some(_)) = (m.numeric_param(param::SIZE), m.typical()) {
            curves.entry(curve_of(m)).or_default().push((size as f64, m));
        }
    }
    curves.retain(|_, points| points.len() > 1);
    let further: Vec<String> = curves.keys().skip(MOST_SERIES).map(|(_, name)| name.clone()).collect();
    let shown: Vec<(String, Vec<(f64, &Measurement)>)> =
        curves.into_iter().take(MOST_SERIES).map(|((_, name), points)| (name, points)).collect();
    let all: Vec<&Measurement> = shown.iter().flat_map(|(_, points)| points).map(|(_, m)| *m).collect();
    let mut notes = of_points(report, &all, "band");
    notes.extend((!further.is_empty()).then(|| format!("not drawn: {}", further.join("; "))));
    let series: Vec<PlotSeries> =
        shown.into_iter().map(|(name, points)| median_series(name, points)).collect();
    if series.is_empty() {
        return None;
    }
    Some(CurvePlot {
        title: "Memory latency by working-set size".to_owned(),
        notes,
        x: Axis::new("working set", FigureAxisScale::Log2, FigureAxisUnit::Bytes),
        y: Axis::new("one load", FigureAxisScale::Log10, FigureAxisUnit::Nanoseconds),
        series,
        marks: level_rows(report).iter().flat_map(marks).collect(),
    })
}

/// The rank and the name of the curve a point is on.
fn curve_of(m: &Measurement) -> (usize, String) {
    let [order, pages] = [param::ORDER, param::PAGES].map(|name| m.text_param(name).unwrap_or_default());
    let rank = PREFERRED.iter().position(|known| *known == (order, pages)).unwrap_or(PREFERRED.len());
    let stride = match m.params.get(param::STRIDE).filter(|_| order == "stride") {
        Some(stride) => format!(" {stride}"),
        None => String::new(),
    };
    (rank, format!("{order}{stride}, {} pages", space_unit(pages)))
}

fn marks(level: &LevelRow) -> Vec<AxisMark> {
    let label = format!("{} {}", level.display_name(), format_time(level.ns));
    let plateau = AxisMark::new(MarkAxis::Y, level.ns, label);
    let edge = level.capacity().map(|size| AxisMark::new(MarkAxis::X, size as f64, format_size(size)));
    [Some(plateau), edge].into_iter().flatten().collect()
}

/// Draws time against payload, a curve for each transport. `None` if no transport was measured with two
/// payloads.
pub fn throughput_figure(report: &Report) -> Option<CurvePlot> {
    let mut curves: Vec<(String, Vec<(f64, &Measurement)>)> = Vec::new();
    let wanted = |m: &&Measurement| {
        mode(m) == Some("throughput") && is_merged(m) && m.quality.level != QualityLevel::Unsupported
    };
    for m in report.measurements.iter().filter(wanted) {
        let (Some(payload), Some(_)) = (m.numeric_param(param::PAYLOAD), m.typical()) else { continue };
        entry(&mut curves, label(m)).push((payload as f64, m));
    }
    curves.retain(|(_, points)| points.len() > 1);
    let all: Vec<&Measurement> = curves.iter().flat_map(|(_, points)| points).map(|(_, m)| *m).collect();
    let mut notes = of_points(report, &all, "band");
    let slowest = |one: &PlotSeries| one.points.iter().map(|(_, ns)| *ns).fold(0.0, f64::max);
    let series = curves.into_iter().map(|(name, points)| median_series(name, points));
    let (series, thinned) = thin_series(series.map(|one| (slowest(&one), one)).collect(), MOST);
    notes.extend(thinned);
    (!series.is_empty()).then(|| CurvePlot {
        title: "Time of a transaction by payload".to_owned(),
        notes,
        x: Axis::new("payload", FigureAxisScale::Log2, FigureAxisUnit::Bytes),
        y: Axis::new("round trip", FigureAxisScale::Log10, FigureAxisUnit::Nanoseconds),
        series,
        marks: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::ipc;
    use latscope_core::testing::{chase, report};

    #[test]
    fn a_figure_has_a_curve_for_each_order_and_a_mark_for_each_level() {
        let curves = [
            chase("page", "4KiB", 2, 32 << 20, 0.0),
            chase("random", "4KiB", 2, 32 << 20, 80.0),
            chase("random", "2MiB", 8, 32 << 20, 0.0),
            chase("window", "4KiB", 2, 32 << 20, 0.0),
            chase("window", "2MiB", 2, 32 << 20, 0.0),
        ];
        let figure = latency_figure(&report(curves.concat())).expect("a figure");
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        let expected =
            ["random, 2 MiB pages", "random, 4 KiB pages", "window, 4 KiB pages", "page, 4 KiB pages"];
        assert_eq!(names, expected);
        assert_eq!(figure.marks.iter().filter(|mark| mark.axis == MarkAxis::Y).count(), 4);
        assert_eq!(figure.marks.iter().filter(|mark| mark.axis == MarkAxis::X).count(), 3);
        assert_eq!(figure.series[0].points.len(), 145);
    }

    #[test]
    fn a_single_point_is_no_figure() {
        let one = chase("random", "2MiB", 8, 32 << 20, 0.0).into_iter().take(1).collect();
        assert_eq!(latency_figure(&report(one)), None);
        assert_eq!(latency_figure(&report(Vec::new())), None);
    }

    #[test]
    fn a_curve_for_each_transport() {
        let figure = throughput_figure(&ipc::throughput()).unwrap();
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["unix-stream", "passthrough"]);
        assert_eq!(figure.series[0].points.len(), 3);
        assert_eq!(throughput_figure(&ipc::latency()), None);
    }
}
