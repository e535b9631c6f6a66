//! The figures of a point over the runs of its machine, and where they changed.

use super::{Axis, AxisMark, CurvePlot, FigureAxisScale, FigureAxisUnit, MarkAxis, PlotSeries, SeriesShape};
use latscope_core::units::count_with_noun;
use latscope_judge::history::{MachineHistory, PointHistory};

/// Draws the median of each run, and for single events the p99. Untrusted runs and odd runs look different. A
/// line marks a change of a figure, with the id of that change.
pub(crate) fn timeline_figure(machine: &MachineHistory, point: &PointHistory) -> CurvePlot {
    let is_odd = |run: usize| {
        let named = |odd: &&latscope_judge::history::Odd| odd.points.contains(&point.id);
        machine.odd.iter().filter(named).any(|odd| odd.run == run)
    };
    let curve = |name: &str,
                 shape: SeriesShape,
                 kept: &dyn Fn(usize, bool) -> bool,
                 of: &dyn Fn(usize) -> Option<f32>| {
        let places = point.runs.iter().zip(&point.trusted).enumerate();
        let points: Vec<(f64, f64)> = places
            .filter(|(_, (run, trusted))| kept(**run, **trusted))
            .filter_map(|(at, (run, _))| Some(((run + 1) as f64, f64::from(of(at)?))))
            .filter(|(_, ns)| *ns > 0.0)
            .collect();
        PlotSeries { name: name.to_owned(), points, shape, ..PlotSeries::default() }
    };
    let p50 = |at: usize| point.p50.get(at).copied();
    let p99 = |at: usize| point.p99.get(at).copied().flatten();
    let trusted = |_: usize, trusted: bool| trusted;
    let series = [
        curve("median", SeriesShape::Dots, &trusted, &p50),
        curve("p99", SeriesShape::Dots, &trusted, &p99),
        curve("median, degraded or unstable: not judged", SeriesShape::Rings, &|_, trusted| !trusted, &p50),
        curve("p99, degraded or unstable", SeriesShape::Rings, &|_, trusted| !trusted, &p99),
        curve("median of an odd run", SeriesShape::Crosses, &|run, trusted| trusted && is_odd(run), &p50),
    ];
    let last = machine.runs.len() as f64;
    // With room around: an axis of the noise alone would draw that as shape.
    let all = || series.iter().flat_map(|series| &series.points).map(|(_, ns)| *ns);
    let ends = all().reduce(f64::min).zip(all().reduce(f64::max)).map(|(low, high)| (low / 1.1, high * 1.1));
    CurvePlot {
        title: format!("{}: time over the runs", point.title),
        notes: notes(machine, point),
        x: Axis::new("run, in order of time", FigureAxisScale::Linear, FigureAxisUnit::Count)
            .with_ends((0.5, last + 0.5)),
        y: Axis { ends, ..Axis::new("time", FigureAxisScale::Log10, FigureAxisUnit::Nanoseconds) },
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        marks: marks(machine, point),
    }
}

/// Returns a mark between the run before and the run after each change of the point.
fn marks(machine: &MachineHistory, point: &PointHistory) -> Vec<AxisMark> {
    let own = machine.changes.iter().flat_map(|change| {
        let moved = change.moved.iter().filter(|moved| moved.id == point.id);
        moved.map(move |moved| (moved.run, change.id.as_str()))
    });
    let mut found: Vec<(usize, &str)> = own.collect();
    found.sort_unstable();
    found.dedup();
    let mark = |(run, id)| AxisMark::new(MarkAxis::X, run as f64 + 0.5, format!("change {id}"));
    found.into_iter().map(mark).collect()
}

/// Returns the machine of the runs, and the times at which the first and the last run began.
fn notes(machine: &MachineHistory, point: &PointHistory) -> Vec<String> {
    let time = |at: Option<&usize>| {
        let run = at.and_then(|at| machine.runs.get(*at));
        run.map(|run| run.started.replace('T', " ").chars().take(16).collect::<String>()).unwrap_or_default()
    };
    vec![
        [&[format!("machine {}", machine.id), machine.hosts.join(", ")], &machine.tools[..]]
            .concat()
            .join(" · "),
        format!(
            "{}, {} to {} · {}",
            count_with_noun(point.runs.len() as u64, "run"),
            time(point.runs.first()),
            time(point.runs.last()),
            // Between its parameters the line may be broken.
            point.id.replace(',', ", ")
        ),
    ]
}
