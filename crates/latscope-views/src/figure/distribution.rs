//! The picture of a latency test as OSADL's QA farm made it known: counts on a logarithmic axis over latency, a
//! curve of steps for each CPU, and the maximum in the title. Where the maximum is far from the medians the axis of
//! latency is logarithmic, too: on a linear one all but the tail would be in the first bin.

use super::about::{doubt_suffix, subtitle_lines};
use super::many::{self, thin_series};
use super::ticks::format_axis_value;
use super::{Axis, AxisMark, CurvePlot, FigureAxisScale, FigureAxisUnit, MarkAxis, PlotSeries, SeriesShape};
use latscope_core::events::{ProbeEventGroup, ProbeEventRow};
use latscope_core::histogram::Histogram;
use latscope_core::report::{CriterionCheck, Report};
use latscope_core::units::{format_count, format_time};

/// Lower end of the axis of counts: a single event is a little above it.
const LEAST_COUNT: f64 = 0.8;

/// Ratio of the maximum to the smallest median from which on the axis is logarithmic.
const FAR: f64 = 20.0;

/// Bins of a decade on a logarithmic axis, and the width of a bin.
const BINS_A_DECADE: f64 = 20.0;
const SHARE_OF_BIN: &str = "12 % of the latency";

/// The distribution of the events of a probe, a curve for each CPU; `None`
/// without any.
pub fn distribution_figure(report: &Report, group: &ProbeEventGroup) -> Option<CurvePlot> {
    let worst = group.worst()?;
    let max = worst.m.summary.max?;
    let bins = DistributionPlotBins::for_group(group, max);
    let counts: Vec<Vec<u64>> = group.singles.iter().map(|row| bins.counts(&row.m.histogram)).collect();
    let events: u64 = group.singles.iter().map(|row| row.m.histogram.count()).sum();
    let beyond = events - counts.iter().flatten().sum::<u64>();
    let mut notes = subtitle_lines(report, group);
    if beyond > 0 {
        notes.push(format!("{} beyond the last bin are not drawn", format_count(beyond)));
    }
    let most = counts.iter().flatten().max().copied().unwrap_or(1);
    let (series, thinned) = thin_series(series(group, &bins, &counts), many::MOST);
    notes.extend(thinned);
    let events = format!("events in {}", bins.format_width());
    Some(CurvePlot {
        title: format!("{}: max {} ({})", group.probe, format_time(max), worst.label),
        notes,
        x: Axis::new("latency", bins.scale, FigureAxisUnit::Nanoseconds)
            .with_ends((bins.first_edge(), bins.last_edge())),
        y: Axis::new(&events, FigureAxisScale::Log10, FigureAxisUnit::Count)
            .with_ends((LEAST_COUNT, most.max(5) as f64 * 2.0)),
        series,
        marks: limit_marks(group, &bins),
    })
}

/// Returns a curve for each row, with its longest event before it.
fn series(
    group: &ProbeEventGroup,
    bins: &DistributionPlotBins,
    counts: &[Vec<u64>],
) -> Vec<(f64, PlotSeries)> {
    let mut all = Vec::new();
    for (row, counts) in group.singles.iter().zip(counts) {
        let max = row.m.summary.max.unwrap_or_default();
        let name = format!("{}, max {}{}", row.label, format_time(max), doubt_suffix(row));
        let points = step_corners(counts, &bins.edges);
        all.push((max, PlotSeries { name, points, shape: SeriesShape::Steps, ..PlotSeries::default() }));
    }
    all
}

/// The bins of all curves of a figure.
struct DistributionPlotBins {
    scale: FigureAxisScale,
    /// Edges of the bins, ns, ascending: the begin of each bin, and the end of the last.
    edges: Vec<f64>,
}

impl DistributionPlotBins {
    /// Bins for the events of a group, the longest of which took `max` ns.
    fn for_group(group: &ProbeEventGroup, max: f64) -> DistributionPlotBins {
        let least = |values: &dyn Fn(&ProbeEventRow) -> Option<f64>| {
            group.singles.iter().filter_map(values).fold(f64::MAX, f64::min)
        };
        let median = least(&|row| row.m.histogram.quantile(0.5));
        let resolution =
            |ns: f64| group.singles.iter().map(|row| row.m.histogram.resolution(ns)).fold(0.0, f64::max);
        if max > FAR * median {
            DistributionPlotBins::logarithmic(least(&|row| row.m.histogram.min()), max, resolution)
        } else {
            DistributionPlotBins::linear(max, resolution(max))
        }
    }

    /// Returns equal bins from 0 to a round value beyond `max`. No bin is narrower than `resolution`, so that
    /// each has a bucket.
    fn linear(max: f64, resolution: f64) -> DistributionPlotBins {
        let end = round_up(max * 1.02);
        let width = next_round_number(&[1.0, 2.0, 5.0, 10.0], (end / 128.0).max(1.0).max(resolution));
        let bins = (end / width).ceil() as usize;
        DistributionPlotBins {
            scale: FigureAxisScale::Linear,
            edges: (0..=bins).map(|at| at as f64 * width).collect(),
        }
    }

    /// Returns bins that grow with the value, from the decade of `min` to beyond `max`. They are wider where
    /// the histogram has wider buckets.
    fn logarithmic(min: f64, max: f64, resolution: impl Fn(f64) -> f64) -> DistributionPlotBins {
        let mut edges = vec![10f64.powf(min.max(1.0).log10().floor())];
        let ratio = 10f64.powf(1.0 / BINS_A_DECADE);
        while let Some(&last) = edges.last().filter(|last| **last <= max) {
            edges.push((last * ratio).max(last + resolution(last)));
        }
        DistributionPlotBins { scale: FigureAxisScale::Log10, edges }
    }

    fn first_edge(&self) -> f64 {
        self.edges[0]
    }

    fn last_edge(&self) -> f64 {
        self.edges[self.edges.len() - 1]
    }

    /// Returns the width of a bin, in words.
    fn format_width(&self) -> String {
        match self.scale {
            FigureAxisScale::Linear => format_axis_value(FigureAxisUnit::Nanoseconds, self.edges[1]),
            _ => SHARE_OF_BIN.to_owned(),
        }
    }

    /// Returns the bin that a value lies in; a value below the first bin counts in the first.
    fn bin(&self, ns: f64) -> usize {
        self.edges.partition_point(|edge| *edge <= ns).saturating_sub(1)
    }

    /// The counts of the bins. A bucket that lies in two of them is divided in proportion, in whole events.
    fn counts(&self, histogram: &Histogram) -> Vec<u64> {
        let mut bins = vec![0; self.edges.len() - 1];
        for (low, high, n) in histogram.buckets_ns() {
            let (first, last) = (self.bin(low), self.bin(high));
            let share = if first == last { 1.0 } else { (self.edges[last] - low) / (high + 1.0 - low) };
            let in_first = (n as f64 * share).round() as u64;
            for (bin, count) in [(first, in_first), (last, n - in_first)] {
                if let Some(place) = bins.get_mut(bin) {
                    *place += count;
                }
            }
        }
        bins
    }
}

/// Returns the next number that begins with one of these digits in its decade.
fn next_round_number(digits: &[f64], value: f64) -> f64 {
    let decade = 10f64.powf(value.max(1.0).log10().floor());
    digits.iter().map(|digit| digit * decade).find(|round| *round >= value).unwrap_or(10.0 * decade)
}

fn round_up(value: f64) -> f64 {
    next_round_number(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0], value)
}

/// The corners of the steps: each bin at its left end, and the end of the last.
fn step_corners(bins: &[u64], edges: &[f64]) -> Vec<(f64, f64)> {
    // An empty bin lies below the axis, where the curve goes down to.
    let height = |count: u64| (count as f64).max(LEAST_COUNT / 2.0);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (edge, count) in edges.iter().zip(bins) {
        let y = height(*count);
        if points.last().is_none_or(|(_, last)| *last != y) {
            points.push((*edge, y));
        }
    }
    points.extend(edges.last().map(|end| (*end, LEAST_COUNT / 2.0)));
    points
}

/// Returns the limits of the criteria as marks.
fn limit_marks(group: &ProbeEventGroup, bins: &DistributionPlotBins) -> Vec<AxisMark> {
    let verdicts = group.whole_probe_rows().iter().filter_map(|row| row.m.verdict.as_ref());
    let checks = verdicts.flat_map(|verdict| &verdict.checks);
    let drawn = checks.filter(|check| {
        ["max", "threshold"].contains(&check.metric.as_str())
            && (bins.first_edge()..bins.last_edge()).contains(&check.limit)
    });
    let label = |check: &CriterionCheck| format!("{} {}", check.metric, format_time(check.limit));
    let mut marks: Vec<AxisMark> =
        drawn.map(|check| AxisMark::new(MarkAxis::X, check.limit, label(check))).collect();
    marks.dedup();
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Picture, event_pictures};
    use latscope_core::events::event_groups;
    use latscope_core::fixture;
    use latscope_judge::verdict::{MetricCriterion, judge_report};

    fn figure_of(report: &Report) -> Option<CurvePlot> {
        distribution_figure(report, event_groups(report).first()?)
    }

    #[test]
    fn a_curve_for_each_cpu_and_the_maximum_in_the_title() {
        let figure = figure_of(&fixture::wake()).unwrap();
        assert_eq!(figure.title, "wake.timer: max 3.41 ms (CPU 1)");
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["CPU 0, max 85.3 µs", "CPU 1, max 3.41 ms"]);
    }

    #[test]
    fn the_axis_is_logarithmic_where_the_maximum_is_far_from_the_median() {
        let far = figure_of(&fixture::wake()).unwrap();
        assert_eq!(
            (far.x.scale, far.y.label.as_str()),
            (FigureAxisScale::Log10, "events in 12 % of the latency")
        );
        let (start, end) = far.x.ends.unwrap();
        assert!(start <= 1_200.0 && end > 3_410_000.0, "{start} {end}");
        let mut report = fixture::wake();
        report.measurements.retain(|m| m.summary.max.is_some_and(|max| max < 1e5));
        let near = figure_of(&report).unwrap();
        assert_eq!((near.x.scale, near.x.ends), (FigureAxisScale::Linear, Some((0.0, 100_000.0))));
        assert_eq!(near.y.label, "events in 1 µs");
    }

    #[test]
    fn every_event_is_in_a_bin() {
        let report = fixture::wake();
        let histogram = &report.measurements[0].histogram;
        let counts = DistributionPlotBins::linear(98_000.0, 1.0).counts(histogram);
        assert_eq!((counts.iter().sum::<u64>(), counts[85]), (histogram.count(), 1));
        let growing = DistributionPlotBins::logarithmic(5_000.0, 85_300.0, |ns| histogram.resolution(ns));
        assert_eq!(growing.counts(histogram).iter().sum::<u64>(), histogram.count());
    }

    #[test]
    fn bins_are_not_narrower_than_what_was_counted_in() {
        for (max, resolution, width) in
            [(98_000.0, 1.0, 1_000.0), (98_000.0, 1_500.0, 2_000.0), (58.0, 0.5, 1.0)]
        {
            assert_eq!(DistributionPlotBins::linear(max, resolution).edges[1], width);
        }
        let growing = DistributionPlotBins::logarithmic(1_000.0, 30_000.0, |_| 1_000.0);
        assert_eq!(growing.edges[..4], [1_000.0, 2_000.0, 3_000.0, 4_000.0]);
        assert!((growing.edges[12] / growing.edges[11] - 1.122).abs() < 0.001);
        assert_eq!([85_300.0, 100.0, 1.2].map(round_up), [100_000.0, 100.0, 1.5]);
    }

    #[test]
    fn steps_have_a_corner_where_the_height_changes() {
        let low = LEAST_COUNT / 2.0;
        let found = step_corners(&[0, 4, 4, 1], &[0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(found, [(0.0, low), (10.0, 4.0), (30.0, 1.0), (40.0, low)]);
    }

    #[test]
    fn of_many_curves_the_worst_stand_out() {
        let mut report = fixture::wake();
        let one = report.measurements[0].clone();
        report.measurements.truncate(2);
        for cpu in 2..20u64 {
            let mut more = one.clone();
            more.params.insert("cpu".to_owned(), cpu.into());
            more.histogram.record(85_300 + cpu);
            more.summary.max = more.histogram.max();
            report.measurements.push(more);
        }
        let figure = figure_of(&report).unwrap();
        assert_eq!(figure.series.len(), many::MOST + 1);
        assert_eq!(figure.series[0].name, "CPU 1, max 3.41 ms");
        assert_eq!(figure.series[many::MOST].name, "13 others");
        assert!(
            figure.notes.iter().any(|note| note.starts_with("7 of 20 curves are drawn")),
            "{:?}",
            figure.notes
        );
    }

    #[test]
    fn limits_are_marked() {
        let mut report = fixture::wake();
        judge_report(&mut report, &[MetricCriterion::new("max", 50_000.0).unwrap()]);
        let figure = figure_of(&report).unwrap();
        assert_eq!(
            figure.marks,
            [AxisMark { axis: MarkAxis::X, at: 50_000.0, label: "max 50.0 µs".to_owned() }]
        );
    }

    #[test]
    fn without_events_there_is_no_figure() {
        let mut report = fixture::wake();
        report.measurements.clear();
        assert_eq!(event_pictures(&report, &[Picture::Distribution]), None);
    }
}
