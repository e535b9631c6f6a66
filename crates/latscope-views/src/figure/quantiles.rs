//! Two sides of a comparison by percentile: both curves over each other, and their ratio.

use super::{Axis, CurvePlot, FigureAxisScale, FigureAxisUnit, PlotSeries};
use latscope_core::statistics::median;
use latscope_core::units::{count_with_noun, format_share};
use latscope_judge::compare::{QuantileComparison, Quantiles};

/// Returns the place of a quantile on the axis of percentiles.
fn percentile_place(quantile: &QuantileComparison) -> f64 {
    1.0 / (1.0 - quantile.q)
}

fn axis() -> Axis {
    Axis::new("percentile", FigureAxisScale::Log10, FigureAxisUnit::Percentile)
}

/// The latency of A and of B at each percentile that every run has: the median of the runs of a side, between its
/// lowest and its highest run. The notes stand below the title.
pub(crate) fn overlay_figure(of: &Quantiles, title: &str, notes: &[String]) -> CurvePlot {
    let series = [0, 1].map(|side| {
        let name = format!("{}, {}", ["A", "B"][side], count_with_noun(of.samples[side], "sample"));
        let ends = |runs: &[f64]| {
            runs.iter()
                .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ns| (low.min(*ns), high.max(*ns)))
        };
        let points =
            of.quantiles.iter().filter_map(|one| Some((percentile_place(one), median(&one.runs[side])?)));
        let band = of.quantiles.iter().map(|one| {
            let (low, high) = ends(&one.runs[side]);
            (percentile_place(one), low, high)
        });
        let band =
            if of.quantiles.iter().all(|one| one.runs[side].len() < 2) { Vec::new() } else { band.collect() };
        PlotSeries { name, points: points.collect(), band, ..PlotSeries::default() }
    });
    let about = "curve: median of the runs; band: from the lowest to the highest run; as far as each run has 10 samples beyond";
    CurvePlot {
        title: format!("Latency by percentile of {title}"),
        notes: notes.iter().cloned().chain([about.to_owned()]).collect(),
        x: axis(),
        y: Axis::new("latency", FigureAxisScale::Log10, FigureAxisUnit::Nanoseconds),
        series: series.into(),
        marks: Vec::new(),
    }
}

/// Returns the ratio of B to A at each percentile with its 95 % interval, in front of the band that counts as
/// the same.
pub(crate) fn shift_figure(of: &Quantiles, title: &str, notes: &[String], margin: f64) -> CurvePlot {
    let ratio = of.quantiles.iter().map(|one| (percentile_place(one), one.contrast.ratio)).collect();
    let band = of.quantiles.iter().filter_map(|one| {
        let interval = one.contrast.interval?;
        Some((percentile_place(one), interval.low, interval.high))
    });
    let ends = of.quantiles.first().into_iter().chain(of.quantiles.last()).map(percentile_place);
    let same: Vec<(f64, f64, f64)> = ends.map(|x| (x, 1.0 / (1.0 + margin), 1.0 + margin)).collect();
    let curve = |name: String, points, band| PlotSeries { name, points, band, ..PlotSeries::default() };
    let [a, b] = of.samples.map(|samples| count_with_noun(samples, "sample"));
    let about = format!(
        "A: {a}; B: {b}; the median is tested; the band is the 95 % interval of the ratio, of other percentiles not tested"
    );
    CurvePlot {
        title: format!("B/A by percentile of {title}"),
        notes: notes.iter().cloned().chain([about]).collect(),
        x: axis(),
        y: Axis::new("ratio B/A", FigureAxisScale::Log2, FigureAxisUnit::Number),
        series: vec![
            curve("B/A".to_owned(), ratio, band.collect()),
            curve(
                format!("the same: ±{}", format_share(margin)),
                same.iter().map(|(x, _, _)| (*x, 1.0)).collect(),
                same,
            ),
        ],
        marks: Vec::new(),
    }
}
