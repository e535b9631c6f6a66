//! Latency by percentile, on an axis stretched so that each further nine is as wide as the previous one: the
//! form of picture that HdrHistogram introduced.

use super::about::{doubt_suffix, subtitle_lines};
use super::many::{MOST, thin_series};
use super::{Axis, AxisMark, CurvePlot, FigureAxisScale, FigureAxisUnit, MarkAxis, PlotSeries};
use latscope_core::events::{ProbeEventGroup, ProbeEventRow};
use latscope_core::histogram::Histogram;
use latscope_core::report::Report;
use latscope_core::units::format_count;

/// Latency of a probe by percentile, raw and with the missed activations;
/// `None` without events.
pub fn percentile_figure(report: &Report, group: &ProbeEventGroup) -> Option<CurvePlot> {
    let whole = group.whole_probe_rows();
    let curves = whole
        .iter()
        .flat_map(|row| curves(row).into_iter().map(|one| (row.m.summary.max.unwrap_or(0.0), one)));
    let (series, thinned) = thin_series(curves.collect(), MOST);
    let most = whole.iter().map(|row| row.m.summary.count).max()?;
    let doubtful = AxisMark::new(MarkAxis::X, most as f64 / 10.0, "fewer than 10 beyond".to_owned());
    Some(CurvePlot {
        title: format!("{}: latency by percentile", group.probe),
        notes: subtitle_lines(report, group).into_iter().chain(beyond_note(whole)).chain(thinned).collect(),
        x: Axis::new("percentile", FigureAxisScale::Log10, FigureAxisUnit::Percentile),
        y: Axis::new("latency", FigureAxisScale::Log10, FigureAxisUnit::Nanoseconds),
        series,
        marks: if most > 20 { vec![doubtful] } else { Vec::new() },
    })
}

/// Returns how many values are beyond the last bin; `None` without any.
fn beyond_note(rows: &[ProbeEventRow]) -> Option<String> {
    let beyond: u64 = rows.iter().map(|row| row.m.histogram.overflow()).sum();
    let number = format_count(beyond);
    (beyond > 0)
        .then(|| format!("{number} beyond the last bin: only the largest of a curve is known, at its end"))
}

/// Returns the measured curve and, if it differs, the curve with the events that were missed during stalls.
fn curves(row: &ProbeEventRow) -> Vec<PlotSeries> {
    let curve = |name: String, histogram: &Histogram| PlotSeries {
        name,
        points: points(histogram),
        ..PlotSeries::default()
    };
    let corrected = row.m.corrected.as_ref().filter(|corrected| corrected.count() > row.m.histogram.count());
    let name = format!("{}{}", row.label, doubt_suffix(row));
    let raw_name = if corrected.is_some() { format!("{name}, as measured") } else { name.clone() };
    let raw = curve(raw_name, &row.m.histogram);
    let corrected = corrected.map(|corrected| curve(format!("{name}, with the missed"), corrected));
    [Some(raw), corrected].into_iter().flatten().collect()
}

/// The upper end of each bucket over 1 / (1 - q) of the values up to there, the
/// exact maximum last.
fn points(histogram: &Histogram) -> Vec<(f64, f64)> {
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else { return Vec::new() };
    let n = histogram.count() as f64;
    // Of n values each stands for the middle of its n-th part.
    let place = |rank: u64| n / (n - rank as f64 + 0.5);
    let mut points = vec![(1.0, min.max(1.0))];
    let mut seen = 0;
    for (span, count) in histogram.spans() {
        seen += count;
        points.push((place(seen), span.high.clamp(1.0, max.max(1.0))));
    }
    if histogram.overflow() > 0 {
        points.push((place(histogram.count()), max));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::event_groups;
    use latscope_core::fixture;

    fn figure_of(report: &Report) -> Option<CurvePlot> {
        percentile_figure(report, event_groups(report).first()?)
    }

    #[test]
    fn the_curve_ends_at_the_maximum_and_only_rises() {
        let report = fixture::wake();
        let figure = figure_of(&report).unwrap();
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["all CPUs, as measured", "all CPUs, with the missed"]);
        let raw = &figure.series[0].points;
        assert_eq!(raw.last(), Some(&(120_000.0, 3_412_000.0)));
        assert!(raw.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
        assert_eq!(figure.marks[0].at, 6_000.0);
    }

    #[test]
    fn values_beyond_the_histogram_are_its_end() {
        let mut histogram = Histogram::new(1000);
        (0..9).for_each(|_| histogram.record(10));
        histogram.record(1 << 50);
        let points = points(&histogram);
        assert_eq!(points, [(1.0, 10.0), (10.0 / 1.5, 10.0), (20.0, (1u64 << 50) as f64)]);
    }

    #[test]
    fn a_correction_that_changes_nothing_has_no_curve() {
        let mut report = fixture::wake();
        for m in &mut report.measurements {
            m.corrected = Some(m.histogram.clone());
        }
        assert_eq!(figure_of(&report).unwrap().series.len(), 1);
    }
}
