//! Figures as values: they say what to draw. Back ends turn them into pictures: [`format_figure`] for terminals,
//! [`svg`] for files.

mod about;
mod all;
mod bars;
mod by_parameter;
mod curves;
mod distribution;
mod heat_map;
mod many;
mod named;
mod percentiles;
mod quantiles;
mod spikes;
mod svg;
mod terminal;
mod ticks;
mod time;
mod timeline;

pub use all::{of_events, of_family, pictures};
pub use curves::{latency_figure, throughput_figure};
pub use distribution::distribution_figure;
pub use named::NamedDrawing;
pub use percentiles::percentile_figure;
pub(crate) use quantiles::{overlay_figure, shift_figure};
pub use svg::{document_of, svg};
pub(crate) use svg::{drawn, plot_element};
pub use terminal::format_figure;
pub(crate) use timeline::timeline_figure;

pub use latscope_core::catalogue::figures::{FigureAxisScale, FigureAxisUnit};
use latscope_core::events::event_groups;
use latscope_core::report::{Measurement, Report};

/// A picture of single events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// Number of events by latency.
    Distribution,
    /// Latency at each percentile.
    Percentiles,
}

/// Draws `pictures` of the events of a report as one SVG document, one below the other for each probe. Returns
/// `None` without single events.
pub(crate) fn event_pictures(report: &Report, pictures: &[Picture]) -> Option<String> {
    let groups = event_groups(report);
    let draw = |group, picture: &Picture| match picture {
        Picture::Distribution => distribution_figure(report, group),
        Picture::Percentiles => percentile_figure(report, group),
    };
    let figures: Vec<CurvePlot> = groups
        .iter()
        .flat_map(|group| pictures.iter().filter_map(move |picture| draw(group, picture)))
        .collect();
    (!figures.is_empty()).then(|| svg(&figures))
}

/// Returns a report as an SVG document: time against payload, or the curve of memory latency, if the report has
/// one of them and histograms are asked for; otherwise a picture of its events. `None` if there is nothing to
/// draw.
pub fn svg_document(report: &Report, picture: Picture) -> Option<String> {
    let curve = || throughput_figure(report).or_else(|| latency_figure(report));
    let curve = (picture == Picture::Distribution).then(curve).flatten();
    curve.map(|figure| svg(&[figure])).or_else(|| event_pictures(report, &[picture]))
}

/// Content of a picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Drawing {
    /// Curves over a pair of axes.
    Curves(CurvePlot),
    /// Bars and dots, with a row for each label.
    Rows(BarChart),
    /// Heat map of pairs.
    Cells(HeatMap),
}

/// Bars and dots over one axis, one row below the other.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    /// Title of the picture.
    pub title: String,
    /// Lines below the title, as in a [`CurvePlot`].
    pub notes: Vec<String>,
    /// Horizontal axis of all rows.
    pub x: Axis,
    /// Meanings of the colours, by index.
    pub keys: Vec<String>,
    /// The rows, from top to bottom.
    pub rows: Vec<BarChartRow>,
    /// Lines across all rows; only those of the x axis are drawn.
    pub marks: Vec<AxisMark>,
}

/// A row of [`BarChart`].
#[derive(Debug, Clone, PartialEq)]
pub struct BarChartRow {
    /// Name of the row.
    pub label: String,
    /// Bars, intervals and dots of the row, in the order in which they are drawn.
    pub parts: Vec<BarChartPart>,
    /// Text at the end of the row.
    pub value: String,
    /// True if the row is degraded or unstable.
    pub doubtful: bool,
}

/// A bar, an interval or a dot.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChartPart {
    /// Kind of the part: bar, interval or dot.
    pub kind: PartKind,
    /// Index of the key, and so of the colour.
    pub key: usize,
    /// Value at which the part begins.
    pub from: f64,
    /// Value at which the part ends.
    pub to: f64,
    /// Description of the part, if more is known than its key.
    pub label: String,
}

/// Shape of a [`BarChartPart`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// Bar as high as its row.
    Bar,
    /// Line with marked ends.
    Interval,
    /// Dot at the end of the part.
    Dot,
}

/// A heat map of pairs of the same things.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    /// Title of the picture.
    pub title: String,
    /// Lines below the title, as in a [`CurvePlot`].
    pub notes: Vec<String>,
    /// Name of the things in the rows and columns: `CPU`.
    pub side: String,
    /// Names of the rows and columns, in order.
    pub names: Vec<String>,
    /// Indices of the names at which another package, node or cache begins.
    pub borders: Vec<usize>,
    /// Description of the values.
    pub label: String,
    /// Unit of the values.
    pub unit: FigureAxisUnit,
    /// The cells that have a value.
    pub cells: Vec<HeatMapCell>,
}

/// A cell of [`HeatMap`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeatMapCell {
    /// The index of its row.
    pub row: usize,
    /// The index of its column.
    pub column: usize,
    /// Value of the cell.
    pub value: f64,
    /// True if the cell is degraded or unstable.
    pub doubtful: bool,
}

/// Returns true if a measurement is degraded or unstable. Its point is drawn hollow.
pub(crate) fn is_doubtful(m: &Measurement) -> bool {
    m.quality.level.is_doubtful()
}

/// A plot of curves over one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePlot {
    /// Title of the figure.
    pub title: String,
    /// Lines below the title that say where and how the data was measured, for pictures without a report beside
    /// them.
    pub notes: Vec<String>,
    /// Horizontal axis of the plot.
    pub x: Axis,
    /// Vertical axis of the plot.
    pub y: Axis,
    /// Curves of the plot.
    pub series: Vec<PlotSeries>,
    /// Values on an axis that are worth naming.
    pub marks: Vec<AxisMark>,
}

/// Axis of a plot. Its range is that of the points, unless `ends` gives another.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Description of the values along the axis.
    pub label: String,
    /// Mapping from values to places on the axis.
    pub scale: FigureAxisScale,
    /// Unit of the values, which decides where the ticks are and how they are written.
    pub unit: FigureAxisUnit,
    /// Values at the begin and the end of the axis.
    pub ends: Option<(f64, f64)>,
}

impl Axis {
    /// Axis over the values that are drawn.
    fn new(label: &str, scale: FigureAxisScale, unit: FigureAxisUnit) -> Axis {
        Axis { label: label.to_owned(), scale, unit, ends: None }
    }

    /// The axis with these ends.
    fn with_ends(self, ends: (f64, f64)) -> Axis {
        Axis { ends: Some(ends), ..self }
    }

    /// Returns the places at both ends of the axis of values at these places, with so much room around them.
    fn padded_ends(&self, (low, high): (f64, f64), room: f64) -> Option<(f64, f64)> {
        let ends = self
            .ends
            .and_then(|(low, high)| Some((self.scale.axis_position(low)?, self.scale.axis_position(high)?)));
        let room = if high > low { (high - low) * room } else { 0.5 };
        let range = ends.unwrap_or((low - room, high + room));
        (range.1 > range.0 && (range.1 - range.0).is_finite()).then_some(range)
    }
}

/// Curve of a [`CurvePlot`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlotSeries {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y) of the curve, in ascending x.
    pub points: Vec<(f64, f64)>,
    /// Interval in which each point is expected (x, low, high); empty if it is not known.
    pub band: Vec<(f64, f64, f64)>,
    /// The x of the points that are degraded or unstable.
    pub doubtful: Vec<f64>,
    /// Way in which the points are joined.
    pub shape: SeriesShape,
    /// True for an envelope of curves that need not be distinguished: its band is all of it.
    pub background: bool,
    /// Indices of the curve's colour and of its dashes, if curves belong together; otherwise both are its place
    /// among the curves.
    pub tone: Option<(usize, usize)>,
}

/// Way in which the points of a curve are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SeriesShape {
    /// Points joined by straight lines.
    #[default]
    Line,
    /// Points joined by steps: each value holds until the next point.
    Steps,
    /// Points that are not joined, with a dot at each.
    Dots,
    /// Points that are not joined, with a ring at each, for values that cannot be trusted.
    Rings,
    /// Points that are not joined, with a cross at each, for values that stand out.
    Crosses,
}

/// A value on an axis worth naming: a line across the figure on the x axis, a
/// level of the curve on the y axis.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisMark {
    /// Axis that the mark is on.
    pub axis: MarkAxis,
    /// Value on the axis.
    pub at: f64,
    /// Name of the mark.
    pub label: String,
}

/// The axis of a [`AxisMark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkAxis {
    /// The horizontal axis, x.
    X,
    /// The vertical axis, y.
    Y,
}

impl AxisMark {
    fn new(axis: MarkAxis, at: f64, label: String) -> AxisMark {
        AxisMark { axis, at, label }
    }
}

impl BarChart {
    /// Returns the places at both ends of the axis: those given, otherwise those of all parts and marks with a
    /// little room; `None` without a place.
    fn axis_ends(&self) -> Option<(f64, f64)> {
        let scale = self.x.scale;
        let range = match self.x.ends {
            Some((low, high)) => (scale.axis_position(low)?, scale.axis_position(high)?),
            None => {
                let parts = self.rows.iter().flat_map(|row| &row.parts).flat_map(|part| [part.from, part.to]);
                let all = parts.chain(self.marks.iter().map(|mark| mark.at));
                let places = || all.clone().filter_map(|value| scale.axis_position(value));
                let (low, high) = (places().reduce(f64::min)?, places().reduce(f64::max)?);
                let room = if high > low { (high - low) * 0.04 } else { 0.5 };
                let low = if scale == FigureAxisScale::Linear { low.min(0.0) } else { low - room };
                (low, high + room)
            }
        };
        (range.1 > range.0 && (range.1 - range.0).is_finite()).then_some(range)
    }
}

impl CurvePlot {
    /// The smallest and the largest place on each axis, `[x, y]`, of all
    /// points; `None` without a point that can be drawn.
    pub fn range(&self) -> Option<[(f64, f64); 2]> {
        self.range_of(self.series.iter().flat_map(|series| series.points.iter().copied()))
    }

    fn range_of(&self, points: impl Iterator<Item = (f64, f64)>) -> Option<[(f64, f64); 2]> {
        let mut places = points.filter_map(|point| self.point_position(point));
        let (x, y) = places.next()?;
        let wider = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        Some(places.fold([(x, x), (y, y)], |[of_x, of_y], (x, y)| [wider(of_x, x), wider(of_y, y)]))
    }

    /// Returns the places at both ends of each axis, `[x, y]`: those given, otherwise those of the points and
    /// bands with a little room; `None` without a point.
    pub fn axis_ranges(&self) -> Option<[(f64, f64); 2]> {
        self.range()?;
        let ends = |series: &PlotSeries| -> Vec<(f64, f64)> {
            let band = series.band.iter().flat_map(|(x, low, high)| [(*x, *low), (*x, *high)]);
            series.points.iter().copied().chain(band).collect()
        };
        let [x, y] = self.range_of(self.series.iter().flat_map(ends))?;
        Some([self.x.padded_ends(x, 0.0)?, self.y.padded_ends(y, 0.04)?])
    }

    /// The place of a point on both axes.
    pub fn point_position(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.x.scale.axis_position(x)?, self.y.scale.axis_position(y)?))
    }
}

#[cfg(test)]
mod tests;
