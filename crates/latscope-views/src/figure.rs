//! Figures as values: what is to be drawn, not how. Back ends turn them into
//! pictures: [`terminal`] for terminals, [`svg`] for files.

mod about;
mod bandwidth;
mod distribution;
mod latency;
mod percentiles;
mod svg;
mod terminal;
mod ticks;
mod transactions;

pub use bandwidth::bandwidth_figure;
pub use distribution::distribution_figure;
pub use latency::latency_figure;
pub use percentiles::percentile_figure;
pub(crate) use svg::drawing;
pub use svg::svg;
pub use terminal::terminal;
pub use transactions::throughput_figure;

use latscope_core::events::groups;
use latscope_core::report::Report;

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
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What a legend calls it.
    pub name: String,
    /// Its points (x, y), in ascending x.
    pub points: Vec<(f64, f64)>,
    /// Where each is expected (x, low, high); empty where that is not known.
    pub band: Vec<(f64, f64, f64)>,
    /// How they are joined.
    pub shape: Shape,
    /// One of many that need not be told apart.
    pub background: bool,
}

/// How the points of a curve are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// By straight lines.
    Line,
    /// By steps: each value holds until the next point.
    Steps,
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
