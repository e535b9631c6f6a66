//! The events of a probe over time: the longest and the median of each moment.

use super::about::subtitle_lines;
use super::{Axis, CurvePlot, FigureAxisScale, FigureAxisUnit, PlotSeries, SeriesShape};
use latscope_core::events::{ProbeEventGroup, format_param};
use latscope_core::merged::MERGED;
use latscope_core::param;
use latscope_core::plan::{ParamValue, Params};
use latscope_core::report::{Measurement, Report, SampleBlock};
use latscope_core::statistics::median;
use latscope_core::units::count_with_noun;

/// Number of columns that can be distinguished.
const COLUMNS: usize = 240;

/// Maximum number of sets of rows in a figure, and of figures.
const MOST_SETS: usize = 3;
const MOST_FIGURES: usize = 4;

/// Sums over the events of a column.
#[derive(Clone, Default)]
struct PlotTimeBucket {
    count: u64,
    max: f64,
    medians: Vec<f64>,
}

/// Returns the longest event and the median of all in columns of equal time, a pair of curves for each set of
/// rows that differ only in their CPU, thread or pair; empty if fewer than three moments are known.
pub(super) fn time_figures(report: &Report, group: &ProbeEventGroup) -> Vec<CurvePlot> {
    let sets = sets(group);
    let names = names_of_sets(&sets);
    let named: Vec<(&Set, String)> =
        sets.iter().zip(names).filter(|(set, _)| set.column_layout().is_some()).collect();
    let left = named.len().saturating_sub(MOST_SETS * MOST_FIGURES);
    let parts = named.chunks(MOST_SETS).take(MOST_FIGURES);
    parts.map(|part| build_figure(report, group, part, left)).collect()
}

/// Rows that may be joined into a pair of curves.
struct Set<'a>(Vec<&'a Measurement>);

fn sets<'a>(group: &ProbeEventGroup<'a>) -> Vec<Set<'a>> {
    let apart = |m: &'a Measurement| {
        m.params.iter().filter(|(name, _)| *name != param::THREAD && !MERGED.contains(&name.as_str()))
    };
    let mut sets: Vec<Set> = Vec::new();
    for m in group.singles.iter().map(|row| row.m).filter(|m| !m.blocks.is_empty()) {
        match sets.iter_mut().find(|set| apart(set.0[0]).eq(apart(m))) {
            Some(set) => set.0.push(m),
            None => sets.push(Set(vec![m])),
        }
    }
    sets
}

/// Returns the parameters in which sets differ; of a caller the policy is enough.
fn names_of_sets(sets: &[Set]) -> Vec<String> {
    let all: Vec<&Params> = sets.iter().map(|set| &set.0[0].params).collect();
    let implied = |name: &str| {
        [param::THREAD, param::PRIORITY, param::CALLER_THREAD].contains(&name) || MERGED.contains(&name)
    };
    let varies = |name: &str| all.iter().any(|params| params.get(name) != all[0].get(name));
    let part = |params: &Params, (name, value): (&String, &ParamValue)| {
        (varies(name) && !implied(name)).then(|| format_param(name, value, params))
    };
    let name =
        |params: &&Params| params.iter().filter_map(|one| part(params, one)).collect::<Vec<_>>().join(", ");
    all.iter().map(name).collect()
}

fn build_figure(report: &Report, group: &ProbeEventGroup, sets: &[(&Set, String)], left: usize) -> CurvePlot {
    let mut notes = subtitle_lines(report, group);
    notes.push(
        "of each moment the longest event, and the median of at most 16 of each block of events".to_owned(),
    );
    let threads = sets.iter().map(|(set, _)| set.0.len()).max().unwrap_or(0);
    if threads > 1 {
        notes.push(format!("bands: from the least to the largest of {threads} threads"));
    }
    if left > 0 {
        notes.push(format!("{} of rows not drawn", count_with_noun(left as u64, "further set")));
    }
    let one = sets.len() == 1;
    let drawn = sets.iter().enumerate().flat_map(|(at, (set, name))| set.curves(name, at));
    CurvePlot {
        title: format!("{}: maximum and median over time", group.probe),
        notes,
        x: Axis::new("since the start of the run", FigureAxisScale::Linear, FigureAxisUnit::Nanoseconds),
        y: Axis::new("latency", FigureAxisScale::Log10, FigureAxisUnit::Nanoseconds),
        series: drawn.map(|series| PlotSeries { tone: series.tone.filter(|_| !one), ..series }).collect(),
        marks: Vec::new(),
    }
}

/// Figures that a curve shows: of the column of a thread, and of the columns of all threads.
type OfThreads = (fn(&PlotTimeBucket) -> Option<f64>, fn(&[f64]) -> Option<f64>);

impl Set<'_> {
    fn blocks(&self) -> impl Iterator<Item = &SampleBlock> {
        self.0.iter().flat_map(|m| &m.blocks)
    }

    /// Returns the begin of the first column, the width of each, ns, and their number; `None` for fewer than
    /// three columns.
    fn column_layout(&self) -> Option<(f64, f64, usize)> {
        let first = self.blocks().map(|block| block.from).min()?;
        let last = self.blocks().map(|block| block.from).max()?;
        // No more columns than a thread has blocks: empty ones would be gaps that are none.
        let columns = self.0.iter().map(|m| m.blocks.len()).max()?.min(COLUMNS);
        let width = (last - first) as f64 / columns as f64;
        (columns >= 3 && last > first).then_some((first as f64, width, columns))
    }

    /// The maximum and the median.
    fn curves(&self, name: &str, at: usize) -> Vec<PlotSeries> {
        let Some((first, width, columns)) = self.column_layout() else { return Vec::new() };
        let threads: Vec<Vec<PlotTimeBucket>> =
            self.0.iter().map(|m| of_thread(m, first, width, columns)).collect();
        let largest = |known: &[f64]| known.iter().copied().reduce(f64::max);
        let kinds: [(&str, SeriesShape, OfThreads); 2] = [
            ("maximum", SeriesShape::Steps, (|column| Some(column.max), largest)),
            ("median", SeriesShape::Line, (|column| median(&column.medians), median)),
        ];
        let mut curves = Vec::new();
        for (dash, (what, shape, (value, of))) in kinds.into_iter().enumerate() {
            let name = if name.is_empty() { what.to_owned() } else { format!("{what}, {name}") };
            let mut series = PlotSeries { name, shape, tone: Some((at, dash)), ..PlotSeries::default() };
            for column in 0..columns {
                let x = first + width * (column as f64 + 0.5);
                let known = threads.iter().map(|of| &of[column]).filter(|column| column.count > 0);
                let known: Vec<f64> = known.filter_map(value).collect();
                series.points.extend(of(&known).map(|y| (x, y)));
                if threads.len() > 1 {
                    let low = known.iter().copied().reduce(f64::min);
                    series.band.extend(low.zip(largest(&known)).map(|(low, high)| (x, low, high)));
                }
            }
            curves.push(series);
        }
        curves
    }
}

/// Returns the columns of a thread. A block counts in the column of its first event.
fn of_thread(m: &Measurement, first: f64, width: f64, columns: usize) -> Vec<PlotTimeBucket> {
    let tick = m.histogram.tick_ps() as f64 / 1e3;
    let mut of = vec![PlotTimeBucket::default(); columns];
    for block in m.blocks.iter().filter(|block| block.count > 0) {
        let at = ((block.from as f64 - first) / width) as usize;
        of[at.min(columns - 1)].add_block(block, tick);
    }
    of
}

impl PlotTimeBucket {
    fn add_block(&mut self, block: &SampleBlock, tick: f64) {
        self.count += block.count;
        self.max = self.max.max(block.max as f64 * tick);
        self.medians.push(block.median as f64 * tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::events::event_groups;
    use latscope_core::fixture;

    #[test]
    fn no_maximum_is_lost_where_a_long_run_is_thinned() {
        let mut report = fixture::wake();
        for m in &mut report.measurements {
            let last = m.blocks.clone();
            m.blocks.extend((1..40).flat_map(|run| {
                last.iter().map(move |block| SampleBlock {
                    from: block.from + run * 30_000_000_000,
                    max: 5_000,
                    ..*block
                })
            }));
        }
        let figure = time_figures(&report, &event_groups(&report)[0]).remove(0);
        let maxima = &figure.series[0].points;
        assert_eq!(maxima.len(), COLUMNS);
        assert_eq!(maxima.iter().map(|(_, max)| *max).fold(0.0, f64::max), 3_412_000.0);
        assert!(
            figure.series[1]
                .points
                .iter()
                .zip(maxima)
                .all(|(middle, max)| middle.1 > 0.0 && middle.0 == max.0)
        );
    }

    #[test]
    fn without_moments_there_is_no_picture() {
        let mut report = fixture::wake();
        report.measurements.iter_mut().for_each(|m| m.blocks.clear());
        assert!(time_figures(&report, &event_groups(&report)[0]).is_empty());
    }

    #[test]
    fn callers_and_payloads_have_curves_of_their_own() {
        let report = fixture::ipc::payloads();
        let group = event_groups(&report).into_iter().find(|group| group.probe == "ipc.binder").unwrap();
        let figures = time_figures(&report, &group);
        assert_eq!(figures.iter().map(|figure| figure.series.len()).collect::<Vec<_>>(), [6, 6]);
        let names: Vec<&str> = figures[0].series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(
            names[..2],
            ["maximum, SCHED_FIFO caller, payload 16 B", "median, SCHED_FIFO caller, payload 16 B"]
        );
        assert!(names[2].contains("SCHED_OTHER") && figures[0].series[2].tone == Some((1, 0)));
    }
}
