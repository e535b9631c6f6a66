//! The picture of a latency test as OSADL's QA farm made it known: latency on a
//! linear axis, counts on a logarithmic one, a curve of steps for each CPU, and
//! the maximum in the title.

use super::about::about;
use super::ticks::written;
use super::{Axis, Figure, Mark, MarkAxis, Scale, Series, Shape, Unit};
use latscope_core::events::{Group, Row};
use latscope_core::histogram::Histogram;
use latscope_core::report::Report;
use latscope_core::units::{format_count, format_time};

/// More curves than this cannot be told apart: those with the longest events
/// keep their colours, the others are in the background.
const MOST_COLOURS: usize = 7;

/// Where the counts begin: a single event is a little above the axis.
const LEAST_COUNT: f64 = 0.8;

/// The axis ends at the maximum unless it is this many times as far as p99.9.
const FAR: f64 = 8.0;

/// The distribution of the events of a probe, a curve for each CPU; `None`
/// without any.
pub fn distribution_figure(report: &Report, group: &Group) -> Option<Figure> {
    let worst = group.worst()?;
    let max = worst.m.summary.max?;
    let end = end_of_axis(group, max);
    let width = bin_width(end);
    let mut notes = about(report, group);
    let drawn = |row: &Row| bins(&row.m.histogram, width, end).iter().sum::<u64>();
    let beyond: u64 = group.singles.iter().map(|row| row.m.histogram.count() - drawn(row)).sum();
    if beyond > 0 {
        let right = format_time(end);
        notes.push(format!("{} beyond {right} are not drawn", format_count(beyond)));
    }
    Some(Figure {
        title: format!("{}: max {} ({})", group.probe, format_time(max), worst.label),
        notes,
        x: Axis {
            label: "latency".to_owned(),
            scale: Scale::Linear,
            unit: Unit::Nanoseconds,
            ends: Some((0.0, end)),
        },
        y: Axis {
            label: format!("events in {}", written(Unit::Nanoseconds, width)),
            scale: Scale::Log10,
            unit: Unit::Count,
            ends: Some((LEAST_COUNT, highest(group, width))),
        },
        series: series(group, width, end),
        marks: limits(group, end),
    })
}

/// A curve for each row; of many, the ones with the longest events stand out.
fn series(group: &Group, width: f64, end: f64) -> Vec<Series> {
    let max = |row: &Row| row.m.summary.max.unwrap_or_default();
    let mut longest: Vec<f64> = group.singles.iter().map(max).collect();
    longest.sort_by(|a, b| b.total_cmp(a));
    let last = longest.get(MOST_COLOURS - 1).copied().unwrap_or(f64::MIN);
    let one = |row: &Row| Series {
        name: format!("{}, max {}", row.label, format_time(max(row))),
        points: steps(&bins(&row.m.histogram, width, end), width),
        band: Vec::new(),
        shape: Shape::Steps,
        background: max(row) < last,
    };
    group.singles.iter().map(one).collect()
}

/// The end of the axis, ns: a round value beyond the maximum, or where the tail
/// ends but for a few far ones.
fn end_of_axis(group: &Group, max: f64) -> f64 {
    let far = |row: &Row| row.m.histogram.quantile(0.999).unwrap_or_default();
    let tail = group.singles.iter().map(far).fold(0.0, f64::max);
    if max > FAR * tail && tail > 0.0 { round_up(tail * 2.0) } else { round_up(max * 1.02) }
}

/// The next number that begins with 1, 1.5, 2, 3, 4, 5, 6 or 8.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.max(1.0).log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * decade).find(|round| *round >= value).unwrap_or(10.0 * decade)
}

/// The width of a bin, ns: not below that of any bucket of the histogram, so
/// that none is empty for want of a bucket.
fn bin_width(end: f64) -> f64 {
    let least = (end / 128.0).max(1.0);
    let decade = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].iter().map(|step| step * decade).find(|width| *width >= least).unwrap_or(least)
}

/// Counts in bins of `width` ns from 0 to `end`. A bucket that lies in two of
/// them is divided in proportion, in whole events.
fn bins(histogram: &Histogram, width: f64, end: f64) -> Vec<u64> {
    let mut bins = vec![0; (end / width).ceil() as usize];
    for (low, high, n) in histogram.buckets_ns() {
        let (first, last) = ((low / width) as usize, (high / width) as usize);
        let border = last as f64 * width;
        let share = if first == last { 1.0 } else { (border - low) / (high + 1.0 - low) };
        let in_first = (n as f64 * share).round() as u64;
        for (bin, count) in [(first, in_first), (last, n - in_first)] {
            if let Some(place) = bins.get_mut(bin) {
                *place += count;
            }
        }
    }
    bins
}

/// The corners of the steps: each bin at its left end, and the end of the last.
fn steps(bins: &[u64], width: f64) -> Vec<(f64, f64)> {
    // An empty bin lies below the axis, where the curve goes down to.
    let height = |count: u64| (count as f64).max(LEAST_COUNT / 2.0);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (at, count) in bins.iter().enumerate() {
        let y = height(*count);
        if points.last().is_none_or(|(_, last)| *last != y) {
            points.push((at as f64 * width, y));
        }
    }
    points.push((bins.len() as f64 * width, LEAST_COUNT / 2.0));
    points
}

fn highest(group: &Group, width: f64) -> f64 {
    let end = end_of_axis(group, group.worst().and_then(|row| row.m.summary.max).unwrap_or(1.0));
    let most = group.singles.iter().flat_map(|row| bins(&row.m.histogram, width, end)).max().unwrap_or(1);
    most.max(5) as f64 * 2.0
}

/// The limits that were asked for.
fn limits(group: &Group, end: f64) -> Vec<Mark> {
    let verdicts = group.whole().iter().filter_map(|row| row.m.verdict.as_ref());
    let checks = verdicts.flat_map(|verdict| &verdict.checks);
    let drawn =
        checks.filter(|check| ["max", "threshold"].contains(&check.metric.as_str()) && check.limit < end);
    let mark = |(metric, at): (&str, f64)| Mark {
        axis: MarkAxis::X,
        at,
        label: format!("{metric} {}", format_time(at)),
    };
    let mut marks: Vec<Mark> = drawn.map(|check| mark((&check.metric, check.limit))).collect();
    marks.dedup();
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Picture, event_pictures};
    use latscope_core::events::groups;
    use latscope_core::fixture;
    use latscope_judge::verdict::{Criterion, judge_report};

    fn figure_of(report: &Report) -> Option<Figure> {
        distribution_figure(report, groups(report).first()?)
    }

    #[test]
    fn a_curve_for_each_cpu_and_the_maximum_in_the_title() {
        let figure = figure_of(&fixture::wake()).unwrap();
        assert_eq!(figure.title, "wake.timer: max 3.41 ms (CPU 1)");
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["CPU 0, max 85.3 µs", "CPU 1, max 3.41 ms"]);
        assert!(
            figure.notes.iter().any(|note| note == "2 beyond 80.0 µs are not drawn"),
            "{:?}",
            figure.notes
        );
        assert_eq!(figure.x.ends, Some((0.0, 80_000.0)));
    }

    #[test]
    fn every_event_is_in_a_bin() {
        let report = fixture::wake();
        let histogram = &report.measurements[0].histogram;
        let bins = bins(histogram, 2_000.0, 100_000.0);
        assert_eq!(bins.iter().sum::<u64>(), histogram.count());
        assert_eq!(bins[42], 1);
    }

    #[test]
    fn bins_are_not_narrower_than_buckets_and_begin_with_round_digits() {
        for (end, width) in [(100_000.0, 1_000.0), (150_000.0, 2_000.0), (500_000.0, 5_000.0), (60.0, 1.0)] {
            assert_eq!(bin_width(end), width);
        }
        assert_eq!([85_300.0, 100.0, 1.2].map(round_up), [100_000.0, 100.0, 1.5]);
    }

    #[test]
    fn steps_have_a_corner_where_the_height_changes() {
        let low = LEAST_COUNT / 2.0;
        assert_eq!(steps(&[0, 4, 4, 1], 10.0), [(0.0, low), (10.0, 4.0), (30.0, 1.0), (40.0, low)]);
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
        assert_eq!(figure.series.len(), 20);
        assert_eq!(figure.series.iter().filter(|series| !series.background).count(), MOST_COLOURS);
    }

    #[test]
    fn limits_are_marked() {
        let mut report = fixture::wake();
        judge_report(&mut report, &[Criterion::new("max", 50_000.0).unwrap()]);
        let figure = figure_of(&report).unwrap();
        assert_eq!(figure.marks, [Mark { axis: MarkAxis::X, at: 50_000.0, label: "max 50.0 µs".to_owned() }]);
    }

    #[test]
    fn without_events_there_is_no_figure() {
        let mut report = fixture::wake();
        report.measurements.clear();
        assert_eq!(event_pictures(&report, &[Picture::Distribution]), None);
    }
}
