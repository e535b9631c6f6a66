//! Figures as SVG with presentation attributes: a picture needs neither style nor script, in a page as in a file.

mod cells;
mod rows;

use super::ticks::{ACROSS, UP, relative_position, visible_ticks};
use super::{Axis, AxisMark, CurvePlot, Drawing, MarkAxis, PlotSeries, SeriesShape};
use crate::doctor::wrap;
use crate::markup::{Element, element};

/// Size of a figure and of its parts, pixels.
const WIDTH: f64 = 760.0;
const PLOT: f64 = 290.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 26.0;
const LINE: f64 = 16.0;

/// Approximate width of a character, pixels.
const CHARACTER: f64 = 7.0;

/// Characters of a line below the title that fit.
const LONGEST_NOTE: usize = 112;

/// Maximum number of points of a curve with a mark at each point, which shows its values; longer curves have
/// marks at the doubtful points.
const MOST_DOTS: usize = 60;

/// Colours that people of any colour vision can distinguish on white (Okabe and Ito, "Color Universal Design",
/// 2008; without yellow, which is too light).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000"];
const BACKGROUND: &str = "#bebebe";
const GRID: &str = "#e1e1e1";
const QUIET: &str = "#5a5a5a";

/// Dashes that distinguish the same curves if colours do not; the first curve has none.
const DASHES: [&str; 7] = ["", "8 3", "2 3", "9 3 2 3", "5 5", "12 4", "1 4"];

/// Returns the figures as one SVG document, one below the other. A figure without a point is its title only.
pub fn svg(figures: &[CurvePlot]) -> String {
    let mut top = 0.0;
    let mut all = Vec::new();
    for figure in figures {
        let (drawn, height) = draw_plot(figure);
        all.push(drawn.with_attr("transform", format!("translate(0 {})", px(top))));
        top += height;
    }
    canvas(top).children(all).to_markup() + "\n"
}

/// A plot as an element of a page.
pub(crate) fn plot_element(figure: &CurvePlot) -> Element {
    frame_drawing(&figure.title, draw_plot(figure))
}

/// Returns a drawing of this height, with its title for people who cannot see it.
fn frame_drawing(title: &str, (drawn, height): (Element, f64)) -> Element {
    canvas(height).with_attr("role", "img").child(element("title").with_text(title)).child(drawn)
}

/// A picture as an element of a page.
pub(crate) fn drawn(picture: &Drawing) -> Element {
    match picture {
        Drawing::Curves(figure) => plot_element(figure),
        Drawing::Rows(rows) => frame_drawing(&rows.title, rows::draw_rows(rows)),
        Drawing::Cells(cells) => frame_drawing(&cells.title, cells::draw_map(cells)),
    }
}

/// A picture as an SVG document.
pub fn document_of(picture: &Drawing) -> String {
    drawn(picture).to_markup() + "\n"
}

/// An empty white picture of this height.
fn canvas(height: f64) -> Element {
    let height = px(height.max(1.0));
    let paper =
        element("rect").with_attr("width", "100%").with_attr("height", "100%").with_attr("fill", "#fff");
    element("svg")
        .with_attr("xmlns", "http://www.w3.org/2000/svg")
        .with_attr("width", px(WIDTH))
        .with_attr("height", &height)
        .with_attr("viewBox", format!("0 0 {} {height}", px(WIDTH)))
        .with_attr("font-family", "sans-serif")
        .with_attr("font-size", 12)
        .child(paper)
}

/// Draws the figure from its upper edge on; returns it with its height.
fn draw_plot(figure: &CurvePlot) -> (Element, f64) {
    let (group, y) = draw_heading(&figure.title, &figure.notes);
    let Some([x_range, y_range]) = figure.axis_ranges() else { return (group, y + LINE) };
    let plot = Plot::new(figure, (x_range, y_range), y);
    // Tells the script of the page how places become values.
    let axis =
        |axis: &Axis, (low, high): (f64, f64)| format!("{:?} {:?} {low} {high}", axis.scale, axis.unit);
    let (left, top, width) = (px(LEFT), px(plot.top), px(plot.right - LEFT));
    let marks = plot.names.iter().flat_map(|name| plot.mark(name));
    let group = group
        .with_attr("data-plot", format!("{left} {top} {width} {}", px(PLOT)))
        .with_attr("data-x", axis(&figure.x, x_range))
        .with_attr("data-y", axis(&figure.y, y_range))
        .children(plot.axes())
        .child(element("g").with_attr("class", "curves").children(plot.curves()))
        .child(element("g").with_attr("class", "marks").with_attr("fill", QUIET).children(marks));
    let (legend, bottom) = plot.draw_legend();
    (group.children(legend), bottom + 10.0)
}

/// Draws the title and the lines below it; returns them with the y at which they end.
fn draw_heading(title: &str, notes: &[String]) -> (Element, f64) {
    let title = text_element(12.0, 22.0, title)
        .with_attr("font-size", 15)
        .with_attr("font-weight", "bold")
        .with_attr("fill", "#000");
    let mut below = element("g").with_attr("fill", QUIET);
    let mut y = 24.0;
    for note in notes.iter().flat_map(|note| wrap_note(note)) {
        y += LINE;
        below = below.child(text_element(12.0, y, &note));
    }
    (element("g").child(title).child(below), y)
}

/// Figure with its places on the picture.
struct Plot<'a> {
    figure: &'a CurvePlot,
    x: (f64, f64),
    y: (f64, f64),
    top: f64,
    right: f64,
    names: Vec<AxisMarkLabel<'a>>,
}

/// Name of a mark, outside of the plot, where it covers no curve.
struct AxisMarkLabel<'a> {
    mark: &'a AxisMark,
    /// Place of the mark's line on its axis, pixels.
    at: f64,
    /// Place of the name: on the x axis its row above the plot, the lowest is 0; on the y axis its height,
    /// pixels.
    place: f64,
}

impl<'a> Plot<'a> {
    /// Places a plot below `y`, with room for the names of the marks.
    fn new(figure: &'a CurvePlot, (x, y_range): ((f64, f64), (f64, f64)), y: f64) -> Plot<'a> {
        let named = figure.marks.iter().filter(|mark| mark.axis == MarkAxis::Y);
        let widest = named.map(|mark| text_width(&mark.label) + 8.0).fold(RIGHT, f64::max);
        let mut plot =
            Plot { figure, x, y: y_range, top: y + 2.0 * LINE, right: WIDTH - widest, names: Vec::new() };
        let mut names = plot.names_above();
        let rows = names.iter().map(|name| name.place + 1.0).fold(0.0, f64::max);
        plot.top += rows * LINE;
        names.extend(plot.names_beside());
        plot.names = names;
        plot
    }

    /// Marks of an axis within its range, with their places on it.
    fn marks_of(&self, wanted: MarkAxis) -> impl Iterator<Item = (&'a AxisMark, f64)> {
        let (axis, range) = match wanted {
            MarkAxis::X => (&self.figure.x, self.x),
            MarkAxis::Y => (&self.figure.y, self.y),
        };
        let of_axis = self.figure.marks.iter().filter(move |mark| mark.axis == wanted);
        let placed = of_axis.filter_map(move |mark| Some((mark, axis.scale.axis_position(mark.at)?)));
        placed.filter(move |(_, at)| range.0 <= *at && *at <= range.1)
    }

    /// The names of upright lines, each in the lowest row in which it touches no other.
    fn names_above(&self) -> Vec<AxisMarkLabel<'a>> {
        let mut rows: Vec<f64> = Vec::new();
        let mut placed: Vec<(&AxisMark, f64)> =
            self.marks_of(MarkAxis::X).map(|(mark, at)| (mark, self.x_position(at))).collect();
        placed.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut names = Vec::new();
        for (mark, at) in placed {
            let (from, to) = name_span(at, text_width(&mark.label));
            let row = rows.iter().position(|end| *end < from).unwrap_or_else(|| {
                rows.push(0.0);
                rows.len() - 1
            });
            rows[row] = to + 6.0;
            names.push(AxisMarkLabel { mark, at, place: row as f64 });
        }
        names
    }

    /// The names of levels, the highest first, each at its line or below the one before.
    fn names_beside(&self) -> Vec<AxisMarkLabel<'a>> {
        let mut placed: Vec<(&AxisMark, f64)> =
            self.marks_of(MarkAxis::Y).map(|(mark, at)| (mark, self.y_position(at))).collect();
        placed.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut free = 0.0;
        let mut name = |(mark, at): (&'a AxisMark, f64)| {
            let place = f64::max(at + 4.0, free);
            free = place + 13.0;
            AxisMarkLabel { mark, at, place }
        };
        placed.into_iter().map(&mut name).collect()
    }

    fn bottom(&self) -> f64 {
        self.top + PLOT
    }

    /// Returns the x of a place on the axis, pixels; a place outside the range is at the edge.
    fn x_position(&self, place: f64) -> f64 {
        LEFT + relative_position(place, self.x) * (self.right - LEFT)
    }

    fn y_position(&self, place: f64) -> f64 {
        self.bottom() - relative_position(place, self.y) * PLOT
    }

    /// Returns the lines of the grid with their values, and the names of the axes.
    fn axes(&self) -> Vec<Element> {
        let figure = self.figure;
        let (left, right, top, bottom) = (px(LEFT), px(self.right), px(self.top), px(self.bottom()));
        let (mut upright, mut across) = (String::new(), String::new());
        let below = element("g").with_attr("class", "x").with_attr("text-anchor", "middle");
        let below =
            below.children(visible_ticks(&figure.x, self.x, ACROSS).into_iter().map(|(place, label)| {
                let x = self.x_position(place);
                upright += &format!("M{} {top}V{bottom}", px(x));
                text_element(x, self.bottom() + LINE, &label)
            }));
        let beside = element("g").with_attr("text-anchor", "end");
        let beside =
            beside.children(visible_ticks(&figure.y, self.y, UP).into_iter().map(|(place, label)| {
                let y = self.y_position(place);
                across += &format!("M{left} {}H{right}", px(y));
                text_element(LEFT - 6.0, y + 4.0, &label)
            }));
        let middle = (LEFT + self.right) / 2.0;
        let frame = format!("M{left} {top}V{bottom}H{right}");
        vec![
            stroke(upright, GRID).with_attr("class", "x"),
            stroke(across, GRID),
            below,
            beside,
            stroke(frame, QUIET).with_attr("fill", "none"),
            text_element(middle, self.bottom() + 2.2 * LINE, &figure.x.label)
                .with_attr("text-anchor", "middle"),
            text_element(12.0, self.heading_at(), &format!("↑ {}", figure.y.label)),
        ]
    }

    /// Returns the y of the name of the upright axis, pixels: above the names of marks.
    fn heading_at(&self) -> f64 {
        let rows =
            self.names.iter().filter(|name| name.mark.axis == MarkAxis::X).map(|name| name.place + 1.0);
        self.top - 10.0 - rows.fold(0.0, f64::max) * LINE
    }

    /// Returns the curves, those in the background first. Of the others the first curve is the last element, so
    /// that it lies on top.
    fn curves(&self) -> Vec<Element> {
        let background = self.figure.series.iter().filter(|series| series.background);
        let background = background
            .map(|series| self.curve(series, (BACKGROUND, ""), 1.0).with_attr("data-curve", "others"));
        let others: Vec<(usize, (&PlotSeries, CurveStroke))> =
            assign_strokes(self.figure).enumerate().collect();
        let others = others
            .into_iter()
            .rev()
            .map(|(at, (series, style))| self.curve(series, style, 1.8).with_attr("data-curve", at));
        background.chain(others).collect()
    }

    /// A curve in front of the band in which it is expected.
    fn curve(&self, series: &PlotSeries, (colour, dash): CurveStroke, width: f64) -> Element {
        let group = element("g").with_attr("class", "curve").child(element("title").with_text(&series.name));
        let corners = self.corners(series.points.iter().copied(), series.shape);
        let (d, width) = match mark(series.shape) {
            Some((mark, width)) => (marks(&corners, mark), width),
            None => (path(&corners), width),
        };
        let path = element("path")
            .with_attr("d", d)
            .with_attr("fill", "none")
            .with_attr("stroke", colour)
            .with_attr("stroke-width", width)
            .with_attr("stroke-linejoin", "round");
        let path = match series.shape {
            // A gap in a histogram would read as counts of 0.
            SeriesShape::Line => with_dashes(path, dash),
            SeriesShape::Dots => path.with_attr("stroke-linecap", "round"),
            _ => path,
        };
        group.children(self.band(series, colour)).child(path).children(self.dots(series, colour))
    }

    fn band(&self, series: &PlotSeries, colour: &str) -> Option<Element> {
        let around = |run: &[(f64, f64, f64)]| {
            let low = self.corners(run.iter().map(|(x, low, _)| (*x, *low)), series.shape);
            let high = self.corners(run.iter().map(|(x, _, high)| (*x, *high)), series.shape);
            let around: Vec<(f64, f64)> = low.into_iter().chain(high.into_iter().rev()).collect();
            (around.len() > 3).then(|| path(&around) + "z")
        };
        // Between two of its places may be a point for which nothing is expected.
        let skips = |(from, ..): &(f64, f64, f64), (to, ..): &(f64, f64, f64)| {
            series.points.iter().any(|(x, _)| from < x && x < to)
        };
        let runs = series.band.chunk_by(|from, to| !skips(from, to));
        let d: String = runs.filter_map(around).collect();
        (!d.is_empty()).then(|| {
            let band = element("path").with_attr("d", d).with_attr("fill", colour);
            match series.background {
                // Of a single curve there is the line alone.
                true => band.with_attr("fill-opacity", 0.55).with_attr("stroke", colour),
                false => band.with_attr("fill-opacity", 0.18),
            }
        })
    }

    /// Returns a mark at each point, which shows its values; for a long curve at the doubtful points.
    fn dots(&self, series: &PlotSeries, colour: &str) -> Vec<Element> {
        let long = series.shape == SeriesShape::Steps || series.points.len() > MOST_DOTS;
        let shown = series.points.iter().filter(|(x, _)| !long || series.doubtful.contains(x));
        let (doubtful, sure): (Vec<_>, Vec<_>) = shown.partition(|(x, _)| series.doubtful.contains(x));
        let group = |points: Vec<&(f64, f64)>, group: Element| {
            let dots: Vec<Element> =
                points.into_iter().filter_map(|point| self.dot(series, *point)).collect();
            (!dots.is_empty()).then(|| group.children(dots))
        };
        let sure = group(sure, element("g").with_attr("fill", colour));
        let hollow =
            element("g").with_attr("class", "hollow").with_attr("fill", "#fff").with_attr("stroke", colour);
        [sure, group(doubtful, hollow.with_attr("stroke-width", 1.4))].into_iter().flatten().collect()
    }

    fn dot(&self, series: &PlotSeries, point: (f64, f64)) -> Option<Element> {
        let (x, y) = self.figure.point_position(point)?;
        let doubtful = series.doubtful.contains(&point.0);
        let values = format!(
            "{}: {}, {}{}",
            series.name,
            super::ticks::format_axis_value(self.figure.x.unit, point.0),
            super::ticks::format_axis_value(self.figure.y.unit, point.1),
            if doubtful { ", doubtful" } else { "" }
        );
        let circle =
            element("circle").with_attr("cx", px(self.x_position(x))).with_attr("cy", px(self.y_position(y)));
        let circle = match series.shape {
            SeriesShape::Rings | SeriesShape::Crosses => {
                circle.with_attr("r", 5).with_attr("fill-opacity", 0)
            }
            _ if doubtful => circle.with_attr("r", 3.2),
            _ => circle.with_attr("r", 2.6),
        };
        Some(circle.child(element("title").with_text(values)))
    }

    /// Returns the corners of a curve through these points within the frame; for a curve of steps, those of the
    /// steps.
    fn corners(&self, points: impl Iterator<Item = (f64, f64)>, shape: SeriesShape) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for (x, y) in points.filter_map(|point| self.figure.point_position(point)) {
            let (x, y) = (self.x_position(x), self.y_position(y));
            if let (SeriesShape::Steps, Some((_, before))) = (shape, corners.last()) {
                corners.push((x, *before));
            }
            corners.push((x, y));
        }
        corners
    }

    /// A dashed line across the figure at a mark, its name at its end.
    fn mark(&self, name: &AxisMarkLabel) -> [Element; 2] {
        let (d, label) = match name.mark.axis {
            MarkAxis::X => {
                let y = self.top - 4.0 - LINE * name.place;
                let d = format!("M{} {}V{}", px(name.at), px(self.bottom()), px(y + 2.0));
                let (from, _) = name_span(name.at, text_width(&name.mark.label));
                let anchor = if from < name.at { "end" } else { "start" };
                (d, text_element(name.at, y, &name.mark.label).with_attr("text-anchor", anchor))
            }
            MarkAxis::Y => {
                let d = format!("M{} {}H{}", px(LEFT), px(name.at), px(self.right));
                (d, text_element(self.right + 4.0, name.place, &name.mark.label))
            }
        };
        [stroke(d, QUIET).with_attr("stroke-dasharray", "5 4"), label]
    }

    /// Returns the names of the curves below the figure, and the y at which they end.
    fn draw_legend(&self) -> (Vec<Element>, f64) {
        let background = self.figure.series.iter().filter(|series| series.background);
        let names = assign_strokes(self.figure).chain(background.map(|series| (series, (BACKGROUND, ""))));
        let names = names.map(|(series, style)| (series.name.as_str(), series.shape, style));
        let (mut x, mut y) = (LEFT, self.bottom() + 3.6 * LINE);
        let mut parts = Vec::new();
        for (at, (name, shape, style)) in names.enumerate() {
            let width = 58.0 + text_width(name);
            if x > LEFT && x + width > WIDTH {
                (x, y) = (LEFT, y + LINE + 2.0);
            }
            let of = if style.0 == BACKGROUND { "others".to_owned() } else { at.to_string() };
            let entry = element("g").with_attr("class", "key").with_attr("data-curve", of);
            parts.push(entry.child(legend_key((x, y - 4.0), shape, style)).child(text_element(
                x + 32.0,
                y,
                name,
            )));
            x += width;
        }
        (parts, y)
    }
}

/// Returns the approximate width of a text, pixels.
fn text_width(text: &str) -> f64 {
    CHARACTER * text.chars().count() as f64
}

/// Returns the begin and the end of the name of an upright line: to the right of the line, at the right edge to
/// the left.
fn name_span(at: f64, width: f64) -> (f64, f64) {
    if at + width > WIDTH { (at - width, at) } else { (at, at + width) }
}

/// A colour and the dashes of a line.
type CurveStroke = (&'static str, &'static str);

/// Returns the curves that are distinguished, in their order, each with its colour and dashes; if a colour
/// occurs again, its dashes differ.
fn assign_strokes(figure: &CurvePlot) -> impl Iterator<Item = (&PlotSeries, CurveStroke)> {
    let curves = figure.series.iter().filter(|series| !series.background).enumerate();
    curves.map(|(at, series)| {
        let (colour, dash) = series.tone.unwrap_or((at, at + at / COLOURS.len()));
        (series, (COLOURS[colour % COLOURS.len()], DASHES[dash % DASHES.len()]))
    })
}

fn with_dashes(line: Element, dash: &str) -> Element {
    if dash.is_empty() { line } else { line.with_attr("stroke-dasharray", dash) }
}

/// A coordinate, to a tenth of a pixel.
fn px(value: f64) -> String {
    let tenths = (value * 10.0).round();
    if tenths % 10.0 == 0.0 { format!("{:.0}", tenths / 10.0) } else { format!("{:.1}", tenths / 10.0) }
}

/// Returns a path through the first and the last of these corners, and through the others that are a pixel or
/// more from the one before.
fn path(corners: &[(f64, f64)]) -> String {
    let mut text = String::new();
    let mut last: Option<(f64, f64)> = None;
    for (at, (x, y)) in corners.iter().enumerate() {
        let moves = last.is_none_or(|(before_x, before_y)| (x - before_x).hypot(y - before_y) >= 1.0);
        if moves || at + 1 == corners.len() && last != Some((*x, *y)) {
            text += &format!("{}{} {}", if text.is_empty() { "M" } else { "L" }, px(*x), px(*y));
            last = Some((*x, *y));
        }
    }
    text
}

/// Returns the path at a point and its stroke width, for a shape that does not join points; otherwise `None`.
fn mark(shape: SeriesShape) -> Option<(&'static str, f64)> {
    match shape {
        SeriesShape::Line | SeriesShape::Steps => None,
        SeriesShape::Dots => Some(("h0", 5.0)),
        SeriesShape::Rings => Some(("m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0", 1.4)),
        SeriesShape::Crosses => Some(("m-5-5l10 10m0-10l-10 10", 1.8)),
    }
}

/// Returns the sign of a curve in the legend, from this place on.
fn legend_key((x, y): (f64, f64), shape: SeriesShape, (colour, dash): CurveStroke) -> Element {
    let Some((mark, width)) = mark(shape) else {
        let key = line_element((x, y), (x + 26.0, y), colour).with_attr("stroke-width", 2.4);
        return if shape == SeriesShape::Line { with_dashes(key, dash) } else { key };
    };
    let path = element("path").with_attr("d", marks(&[(x + 13.0, y)], mark)).with_attr("fill", "none");
    path.with_attr("stroke", colour).with_attr("stroke-width", width).with_attr("stroke-linecap", "round")
}

/// A mark at each place.
fn marks(places: &[(f64, f64)], mark: &str) -> String {
    places.iter().map(|(x, y)| format!("M{} {}{mark}", px(*x), px(*y))).collect()
}

/// A thin line along a path.
fn stroke(d: String, colour: &str) -> Element {
    element("path").with_attr("d", d).with_attr("stroke", colour)
}

fn line_element(from: (f64, f64), to: (f64, f64), colour: &str) -> Element {
    let line = element("line").with_attr("x1", px(from.0)).with_attr("y1", px(from.1));
    line.with_attr("x2", px(to.0)).with_attr("y2", px(to.1)).with_attr("stroke", colour)
}

fn text_element(x: f64, y: f64, text: &str) -> Element {
    element("text").with_attr("x", px(x)).with_attr("y", px(y)).with_text(text)
}

/// Returns a note as lines that fit, broken at blanks; a word that does not fit is cut.
fn wrap_note(note: &str) -> Vec<String> {
    let words: Vec<String> = note.split(' ').map(|word| shorten_text(word, LONGEST_NOTE)).collect();
    wrap(&words.join(" "), LONGEST_NOTE)
}

/// The text, cut at its end if it has more characters than `most`.
fn shorten_text(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
