//! Figures as values: what is to be drawn, not how. Back ends turn them into
//! pictures: [`terminal`] for terminals, [`svg`] for files.

mod about;
mod all;
mod bars;
mod by_parameter;
mod distribution;
mod heat_map;
mod latency;
mod many;
mod percentiles;
mod quantiles;
mod spikes;
mod svg;
mod tails;
mod terminal;
mod ticks;
mod time;
mod timeline;
mod transactions;

pub use all::{Named, of_events, of_family, pictures};
pub use distribution::distribution_figure;
pub use latency::latency_figure;
pub use percentiles::percentile_figure;
pub(crate) use quantiles::{overlay_figure, shift_figure};
pub use svg::{document_of, svg};
pub(crate) use svg::{drawing, drawn};
pub use terminal::terminal;
pub(crate) use timeline::timeline_figure;
pub use transactions::throughput_figure;

use latscope_core::events::groups;
use latscope_core::report::{Measurement, Report};

/// A picture of single events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// How many took how long.
    Distribution,
    /// How long at each percentile.
    Percentiles,
}

/// These pictures of the events of a report as one SVG document, one below the
/// other for each probe. `None` without single events.
pub(crate) fn event_pictures(report: &Report, pictures: &[Picture]) -> Option<String> {
    let groups = groups(report);
    let draw = |group, picture: &Picture| match picture {
        Picture::Distribution => distribution_figure(report, group),
        Picture::Percentiles => percentile_figure(report, group),
    };
    let figures: Vec<Figure> = groups
        .iter()
        .flat_map(|group| pictures.iter().filter_map(move |picture| draw(group, picture)))
        .collect();
    (!figures.is_empty()).then(|| svg(&figures))
}

/// A report as an SVG document: time against payload, or the curve of memory latency,
/// where it has one and histograms are what is asked for; else a picture of its events.
/// `None` where there is nothing to draw.
pub fn document(report: &Report, picture: Picture) -> Option<String> {
    let curve = || throughput_figure(report).or_else(|| latency_figure(report));
    let curve = (picture == Picture::Distribution).then(curve).flatten();
    curve.map(|figure| svg(&[figure])).or_else(|| event_pictures(report, &[picture]))
}

/// What a picture is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Drawing {
    /// Curves.
    Curves(Figure),
    /// Bars and dots, a row a label.
    Rows(Rows),
    /// A heat map.
    Cells(Cells),
}

/// Bars and dots over one axis, one row below the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// What it shows.
    pub title: String,
    /// As of a [`Figure`].
    pub notes: Vec<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// What the colours stand for.
    pub keys: Vec<String>,
    /// The rows, from top to bottom.
    pub rows: Vec<Row>,
    /// Lines across all rows; only those of the x axis are drawn.
    pub marks: Vec<Mark>,
}

/// A row of [`Rows`].
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it is of.
    pub label: String,
    /// What is drawn in it, in this order.
    pub parts: Vec<Part>,
    /// What is written at its end.
    pub value: String,
    /// Degraded or unstable.
    pub doubtful: bool,
}

/// A bar, an interval or a dot.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Which of these.
    pub kind: PartKind,
    /// The index of its key, and so of its colour.
    pub key: usize,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// What it is, where more can be said than its key.
    pub label: String,
}

/// How a [`Part`] is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// As high as its row.
    Bar,
    /// A line with ends.
    Interval,
    /// At its end.
    Dot,
}

/// A heat map of pairs of the same things.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    /// What it shows.
    pub title: String,
    /// As of a [`Figure`].
    pub notes: Vec<String>,
    /// What the rows and columns are.
    pub side: String,
    /// Their names, in order.
    pub names: Vec<String>,
    /// Where among them another package, node or cache begins.
    pub borders: Vec<usize>,
    /// What the values are.
    pub label: String,
    /// How they are written.
    pub unit: Unit,
    /// The cells that have a value.
    pub cells: Vec<Cell>,
}

/// A cell of [`Cells`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The index of its row.
    pub row: usize,
    /// The index of its column.
    pub column: usize,
    /// Its value.
    pub value: f64,
    /// Degraded or unstable.
    pub doubtful: bool,
}

/// Whether a point speaks of less than it seems to: drawn hollow.
pub(crate) fn is_doubtful(m: &Measurement) -> bool {
    m.quality.level.is_doubtful()
}

/// A plot of curves over one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// Where and how that was measured, for pictures without a report beside.
    pub notes: Vec<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// Places worth naming.
    pub marks: Vec<Mark>,
}

/// One axis. Its range is that of the points, unless its ends are given.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is along it.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
    /// How its ticks are placed and written.
    pub unit: Unit,
    /// The values it begins and ends with.
    pub ends: Option<(f64, f64)>,
}

/// How values become places on an axis. On a logarithmic one, values that are
/// not positive have no place and are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Octaves are equally far apart.
    Log2,
    /// Decades are equally far apart.
    Log10,
}

/// What the numbers along an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, written `32 KiB`.
    Bytes,
    /// Nanoseconds, written `10 ns`, `1 µs`.
    Nanoseconds,
    /// Plain numbers.
    Number,
    /// Bytes per second, written `10 GB/s`.
    Rate,
    /// Numbers of things, written `10,000`.
    Count,
    /// 1 / (1 - q) of a quantile q, written as that: `99.9 %`.
    Percentile,
}

/// A curve.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// What a legend calls it.
    pub name: String,
    /// Its points (x, y), in ascending x.
    pub points: Vec<(f64, f64)>,
    /// Where each is expected (x, low, high); empty where that is not known.
    pub band: Vec<(f64, f64, f64)>,
    /// The x of those that are degraded or unstable.
    pub doubtful: Vec<f64>,
    /// How they are joined.
    pub shape: Shape,
    /// An envelope of curves that need not be told apart: its band is all of it.
    pub background: bool,
    /// The indices of its colour and of its dashes, where curves belong together; else both are its place among them.
    pub tone: Option<(usize, usize)>,
}

/// How the points of a curve are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shape {
    /// By straight lines.
    #[default]
    Line,
    /// By steps: each value holds until the next point.
    Steps,
    /// Not at all: a dot at each.
    Dots,
    /// Not at all: a ring at each, for what is not to be trusted.
    Rings,
    /// Not at all: a cross at each, for what stands out.
    Crosses,
}

/// A value on an axis worth naming: a line across the figure on the x axis, a
/// level of the curve on the y axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Which axis it is on.
    pub axis: MarkAxis,
    /// The value.
    pub at: f64,
    /// Its name.
    pub label: String,
}

/// The axis of a [`Mark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkAxis {
    /// The horizontal one.
    X,
    /// The vertical one.
    Y,
}

impl Scale {
    /// The place of a value: itself or its logarithm; `None` if it has none.
    pub fn place(self, value: f64) -> Option<f64> {
        let place = match self {
            Scale::Linear => value,
            Scale::Log2 => value.log2(),
            Scale::Log10 => value.log10(),
        };
        place.is_finite().then_some(place)
    }
}

impl Rows {
    /// The places at both ends of the axis: those given, else those of all parts and marks with a little room; `None`
    /// without a place.
    fn frame(&self) -> Option<(f64, f64)> {
        let scale = self.x.scale;
        let range = match self.x.ends {
            Some((low, high)) => (scale.place(low)?, scale.place(high)?),
            None => {
                let parts = self.rows.iter().flat_map(|row| &row.parts).flat_map(|part| [part.from, part.to]);
                let all = parts.chain(self.marks.iter().map(|mark| mark.at));
                let places = || all.clone().filter_map(|value| scale.place(value));
                let (low, high) = (places().reduce(f64::min)?, places().reduce(f64::max)?);
                let room = if high > low { (high - low) * 0.04 } else { 0.5 };
                let low = if scale == Scale::Linear { low.min(0.0) } else { low - room };
                (low, high + room)
            }
        };
        (range.1 > range.0 && (range.1 - range.0).is_finite()).then_some(range)
    }
}

impl Figure {
    /// The smallest and the largest place on each axis, `[x, y]`, of all
    /// points; `None` without a point that can be drawn.
    pub fn range(&self) -> Option<[(f64, f64); 2]> {
        self.range_of(self.series.iter().flat_map(|series| series.points.iter().copied()))
    }

    fn range_of(&self, points: impl Iterator<Item = (f64, f64)>) -> Option<[(f64, f64); 2]> {
        let mut places = points.filter_map(|point| self.place(point));
        let (x, y) = places.next()?;
        let wider = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        Some(places.fold([(x, x), (y, y)], |[of_x, of_y], (x, y)| [wider(of_x, x), wider(of_y, y)]))
    }

    /// The places at both ends of each axis, `[x, y]`: those given, else those
    /// of the points and bands with a little room; `None` without a point.
    pub fn frame(&self) -> Option<[(f64, f64); 2]> {
        self.range()?;
        let ends = |series: &Series| -> Vec<(f64, f64)> {
            let band = series.band.iter().flat_map(|(x, low, high)| [(*x, *low), (*x, *high)]);
            series.points.iter().copied().chain(band).collect()
        };
        let [x, y] = self.range_of(self.series.iter().flat_map(ends))?;
        let frame = |axis: &Axis, (low, high): (f64, f64), room: f64| {
            let ends =
                axis.ends.and_then(|(low, high)| Some((axis.scale.place(low)?, axis.scale.place(high)?)));
            let room = if high > low { (high - low) * room } else { 0.5 };
            let range = ends.unwrap_or((low - room, high + room));
            (range.1 > range.0 && (range.1 - range.0).is_finite()).then_some(range)
        };
        Some([frame(&self.x, x, 0.0)?, frame(&self.y, y, 0.04)?])
    }

    /// The place of a point on both axes.
    pub fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.x.scale.place(x)?, self.y.scale.place(y)?))
    }
}

#[cfg(test)]
mod tests;
