//! The series of a machine and their changes, judged together.

use super::ComparisonOptions;
use super::archive::{Archive, ArchivePointFigures, tail_limit};
use super::false_changes::FALSE_CHANGES;
use super::found::{HistoryFigureKind, NamedArchiveRun};
use super::steps::{Cut, Steps, accepted_cuts, cuts, steps};
use crate::compare::TAIL_MARGIN;
use crate::compare::ranks::adjust_p_values;
use crate::halves::in_halves;
use latscope_core::statistics::median;
use std::collections::{BTreeMap, HashMap};

/// The figures of a point over the runs of a machine.
pub(super) struct PointSeries<'a> {
    /// Place of its work in the archive.
    pub work: usize,
    /// Figures of each run that has the point, in order of time, with the place of the run.
    pub figures: Vec<(usize, &'a ArchivePointFigures)>,
}

/// The series of the works that are wanted, in the order of their names.
pub(super) fn of_machine<'a>(
    archive: &Archive,
    runs: &[NamedArchiveRun<'a>],
    wanted: &[bool],
) -> Vec<PointSeries<'a>> {
    // Works that differ in their title alone are one series.
    let mut first = HashMap::new();
    let same: Vec<usize> = archive
        .works
        .iter()
        .enumerate()
        .map(|(at, work)| *first.entry(work.series_key()).or_insert(at))
        .collect();
    let mut all: BTreeMap<usize, PointSeries> = BTreeMap::new();
    for (place, run) in runs.iter().enumerate() {
        for figures in &run.entry.points {
            // An archive that was not made by an `ArchiveWriter` may name what it has not.
            let Some(work) = same.get(figures.work as usize).copied().filter(|work| wanted[*work]) else {
                continue;
            };
            let series = all.entry(work).or_insert_with(|| PointSeries { work, figures: Vec::new() });
            series.figures.push((place, figures));
        }
    }
    let mut all: Vec<PointSeries> = all.into_values().collect();
    all.sort_by_cached_key(|series| archive.works[series.work].series_key());
    all
}

/// A figure of a series on the log scale, in the trusted runs.
pub(super) struct FigureSeries {
    /// Place of the line's series among all.
    pub series: usize,
    /// Kind of the figure.
    pub figure: HistoryFigureKind,
    /// Limit beyond which samples are counted, ns, if the figure is the rate of the tail.
    pub beyond: Option<f64>,
    /// Places of the runs.
    pub places: Vec<usize>,
    /// The logarithm of the figure of each run.
    pub values: Vec<f64>,
    /// Smallest reported change, as a share.
    pub margin: f64,
}

/// All lines, each with its steps.
pub(super) struct ChangePointAnalysis {
    pub lines: Vec<(FigureSeries, Steps)>,
    /// Number of stretches that were searched for a change.
    pub tests: usize,
}

/// Judges the series of a machine as one family.
pub(super) fn judge_series(series: &[PointSeries], options: &ComparisonOptions) -> ChangePointAnalysis {
    let lines: Vec<FigureSeries> = in_halves(series, SHARE, |first, series| {
        (first..).zip(series).flat_map(|(at, series)| lines(at, series, options.same)).collect()
    });
    let all: Vec<Vec<Cut>> = in_halves(&lines, SHARE, |_, lines| {
        let seeded = lines.iter().map(|line| (line, (line.series as u64 * 3 + line.figure as u64) << 8));
        seeded.map(|(line, seed)| cuts(&line.values, options.seed ^ seed)).collect()
    });
    let tests = all.iter().map(Vec::len).sum();
    let steps = select_steps(&all, lines.iter().map(|line| (&line.values[..], line.margin)));
    ChangePointAnalysis { lines: lines.into_iter().zip(steps).collect(), tests }
}

/// Steps of each series, from the cuts that are believed by the p values of all.
fn select_steps<'a>(all: &[Vec<Cut>], lines: impl Iterator<Item = (&'a [f64], f64)>) -> Vec<Steps> {
    let ps: Vec<f64> = all.iter().flatten().map(|cut| cut.p).collect();
    let adjusted = adjust_p_values(&ps);
    let mut rest = &adjusted[..];
    let steps = all.iter().zip(lines).map(|(cuts, (values, margin))| {
        let (own, others) = rest.split_at(cuts.len());
        rest = others;
        steps(values, accepted_cuts(cuts, own, FALSE_CHANGES), margin.ln_1p())
    });
    steps.collect()
}

/// Places at which series of figures change that are judged together: for each series the places of the first figures
/// after its steps. This is the judging of [`history`](super::history) without results.
pub fn detect(series: &[Vec<f64>], margin: f64, seed: u64) -> Vec<Vec<usize>> {
    let logs: Vec<Vec<f64>> =
        series.iter().map(|figures| figures.iter().map(|figure| figure.ln()).collect()).collect();
    let all: Vec<Vec<Cut>> = in_halves(&logs, SHARE, |first, logs| {
        (first..).zip(logs).map(|(at, values)| cuts(values, seed ^ (at as u64) << 8)).collect()
    });
    select_steps(&all, logs.iter().map(|values| (&values[..], margin)))
        .into_iter()
        .map(|steps| steps.steps)
        .collect()
}

/// Smallest number of items for which a second thread is used.
const SHARE: usize = 64;

fn lines(at: usize, series: &PointSeries, same: f64) -> Vec<FigureSeries> {
    let step = series.figures.iter().map(|(_, figures)| f64::from(figures.step)).fold(0.0, f64::max);
    let margin = same.max(if step.is_finite() { step } else { 0.0 });
    let (places, values) = logs(series, |figures| Some(f64::from(figures.p50)));
    let mut lines = vec![FigureSeries {
        series: at,
        figure: HistoryFigureKind::P50,
        beyond: None,
        places,
        values,
        margin,
    }];
    let (places, values) = logs(series, |figures| Some(f64::from(figures.p99?)));
    lines.push(FigureSeries {
        series: at,
        figure: HistoryFigureKind::P99,
        beyond: None,
        places,
        values,
        margin,
    });
    if let Some(number) = seldom(series).filter(|_| !is_of_several_resolutions(series)) {
        let (places, values) = logs(series, |figures| {
            let tail = figures.tail.as_ref().filter(|tail| tail.count >= ENOUGH)?;
            // Half a sample more: none beyond is no rate of 0.
            Some((tail.beyond(number) as f64 + 0.5) / (tail.count as f64 + 1.0))
        });
        let (beyond, margin) = (Some(tail_limit(number)), TAIL_MARGIN);
        lines.push(FigureSeries {
            series: at,
            figure: HistoryFigureKind::Tail,
            beyond,
            places,
            values,
            margin,
        });
    }
    lines.retain(|line| !line.values.is_empty());
    lines
}

/// Places of the trusted runs that have a figure, and its logarithms.
fn logs(
    series: &PointSeries,
    figure: impl Fn(&ArchivePointFigures) -> Option<f64>,
) -> (Vec<usize>, Vec<f64>) {
    let trusted = series.figures.iter().filter(|(_, figures)| figures.trusted);
    let known = trusted.filter_map(|(place, figures)| {
        Some((*place, figure(figures).filter(|value| *value > 0.0 && value.is_finite())?.ln()))
    });
    known.unzip()
}

/// Factor between the resolutions of runs from which on the coarser ones are bins of another program, if they are also
/// above [`COARSE`].
const COARSER: f32 = 4.0;
const COARSE: f32 = 0.02;

/// Returns true if some runs were counted in far wider bins than others, so that the bins decide which samples are the
/// tail.
fn is_of_several_resolutions(series: &PointSeries) -> bool {
    let steps = series.figures.iter().filter(|(_, figures)| figures.trusted).map(|(_, figures)| figures.step);
    let (finest, coarsest) = (steps.clone().fold(f32::INFINITY, f32::min), steps.fold(0.0, f32::max));
    coarsest > COARSE && coarsest > COARSER * finest
}

/// Share of samples in the tail.
const SELDOM: f64 = 0.01;

/// Number of samples from which on ten are expected in the tail.
const ENOUGH: u64 = 1000;

/// The number of the limit that about one of a hundred samples exceeds: the median over the runs.
fn seldom(series: &PointSeries) -> Option<u16> {
    let numbers = series.figures.iter().filter_map(|(_, figures)| {
        let tail = figures.tail.as_ref().filter(|tail| figures.trusted && tail.count >= ENOUGH)?;
        let most = tail.count as f64 * SELDOM;
        let after = tail.beyond.iter().position(|n| *n as f64 <= most).unwrap_or(tail.beyond.len());
        Some(f64::from(tail.first) + after as f64)
    });
    median(&numbers.collect::<Vec<f64>>()).map(|number| number.round() as u16)
}
