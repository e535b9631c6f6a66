//! Figures as SVG with presentation attributes: a picture needs neither style nor script, in a page as in a file.

use super::ticks::{Tick, ticks};
use super::{Axis, Figure, MarkAxis, Series, Shape};
use crate::markup::{Element, element};

/// Size of a figure and of its parts, pixels.
const WIDTH: f64 = 760.0;
const PLOT: f64 = 290.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 26.0;
const LINE: f64 = 16.0;

/// About how wide a character is, pixels.
const CHARACTER: f64 = 6.4;

/// Characters of a line below the title that fit.
const LONGEST_NOTE: usize = 112;

/// Curves with at most so many points have a mark at each, which tells its values.
const MOST_DOTS: usize = 60;

/// Colours that people of any colour vision tell apart on white (Okabe and Ito,
/// "Color Universal Design", 2008; without yellow, which is too light).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000"];
const BACKGROUND: &str = "#bebebe";
const GRID: &str = "#e1e1e1";
const QUIET: &str = "#5a5a5a";

/// The figures as one SVG document, one below the other. One without a point is its title.
pub fn svg(figures: &[Figure]) -> String {
    let mut top = 0.0;
    let mut all = Vec::new();
    for figure in figures {
        let (drawn, height) = draw(figure);
        all.push(drawn.with("transform", format!("translate(0 {})", px(top))));
        top += height;
    }
    canvas(top).children(all).written() + "\n"
}

/// A figure as an element of a page.
pub(crate) fn drawing(figure: &Figure) -> Element {
    let (drawn, height) = draw(figure);
    canvas(height).with("role", "img").child(element("title").text(&figure.title)).child(drawn)
}

/// An empty white picture of this height.
fn canvas(height: f64) -> Element {
    let height = px(height.max(1.0));
    let paper = element("rect").with("width", "100%").with("height", "100%").with("fill", "#fff");
    element("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("width", px(WIDTH))
        .with("height", &height)
        .with("viewBox", format!("0 0 {} {height}", px(WIDTH)))
        .with("font-family", "sans-serif")
        .with("font-size", 12)
        .child(paper)
}

/// The figure from its upper edge on, and its height.
fn draw(figure: &Figure) -> (Element, f64) {
    let mut group = element("g").child(
        text(12.0, 22.0, &figure.title)
            .with("font-size", 15)
            .with("font-weight", "bold")
            .with("fill", "#000"),
    );
    let mut y = 24.0;
    for note in figure.notes.iter().flat_map(|note| lines(note)) {
        y += LINE;
        group = group.child(text(12.0, y, &note).with("fill", QUIET));
    }
    let Some([x_range, y_range]) = figure.frame() else { return (group, y + LINE) };
    let plot = Plot { figure, x: x_range, y: y_range, top: y + 2.0 * LINE };
    let group = group.children(plot.axes()).children(plot.curves()).children(plot.marks());
    let (legend, bottom) = plot.legend();
    (group.children(legend), bottom + 10.0)
}

/// A figure with its places on the picture.
struct Plot<'a> {
    figure: &'a Figure,
    x: (f64, f64),
    y: (f64, f64),
    top: f64,
}

impl Plot<'_> {
    fn bottom(&self) -> f64 {
        self.top + PLOT
    }

    /// Where a place on the x axis is; what lies outside is at its edge.
    fn across(&self, place: f64) -> f64 {
        LEFT + share(place, self.x) * (WIDTH - LEFT - RIGHT)
    }

    fn up(&self, place: f64) -> f64 {
        self.bottom() - share(place, self.y) * PLOT
    }

    /// Lines of a grid, with what they stand for, and what is along the axes.
    fn axes(&self) -> Vec<Element> {
        let figure = self.figure;
        let (left, right, bottom) = (LEFT, WIDTH - RIGHT, self.bottom());
        let mut parts = Vec::new();
        for (place, label) in shown_ticks(&figure.x, self.x, 8) {
            let x = self.across(place);
            parts.push(line((x, self.top), (x, bottom), GRID));
            parts.push(text(x, bottom + LINE, &label).with("text-anchor", "middle"));
        }
        for (place, label) in shown_ticks(&figure.y, self.y, 9) {
            let y = self.up(place);
            parts.push(line((left, y), (right, y), GRID));
            parts.push(text(left - 6.0, y + 4.0, &label).with("text-anchor", "end"));
        }
        parts.push(line((left, self.top), (left, bottom), QUIET));
        parts.push(line((left, bottom), (right, bottom), QUIET));
        let middle = (left + right) / 2.0;
        parts.push(text(middle, bottom + 2.2 * LINE, &figure.x.label).with("text-anchor", "middle"));
        parts.push(text(12.0, self.top - 8.0, &format!("↑ {}", figure.y.label)));
        parts
    }

    /// Curves in the background first, and of the others the first one last: it lies on top.
    fn curves(&self) -> Vec<Element> {
        let background = self.figure.series.iter().filter(|series| series.background);
        let background = background.map(|series| self.curve(series, BACKGROUND, 1.0));
        let others: Vec<(&Series, &str)> = coloured(self.figure).collect();
        let others = others.into_iter().rev().map(|(series, colour)| self.curve(series, colour, 1.8));
        background.chain(others).collect()
    }

    /// A curve in front of the band in which it is expected.
    fn curve(&self, series: &Series, colour: &str, width: f64) -> Element {
        let group = element("g").with("class", "curve").child(element("title").text(&series.name));
        let corners = self.corners(series);
        let path = element("path")
            .with("d", path(&corners))
            .with("fill", "none")
            .with("stroke", colour)
            .with("stroke-width", width)
            .with("stroke-linejoin", "round");
        let dots =
            Some(series).filter(|series| series.shape == Shape::Line && series.points.len() <= MOST_DOTS);
        let dots = dots.into_iter().flat_map(|series| self.dots(series, colour));
        group.children(self.band(series, colour)).child(path).children(dots)
    }

    fn band(&self, series: &Series, colour: &str) -> Option<Element> {
        let edge = |of: fn(&(f64, f64, f64)) -> (f64, f64)| -> Vec<(f64, f64)> {
            let places = series.band.iter().filter_map(|point| self.figure.place(of(point)));
            places.map(|(x, y)| (self.across(x), self.up(y))).collect()
        };
        let (low, high) = (edge(|(x, low, _)| (*x, *low)), edge(|(x, _, high)| (*x, *high)));
        let around: Vec<(f64, f64)> = low.into_iter().chain(high.into_iter().rev()).collect();
        (around.len() > 3).then(|| {
            let band = element("path").with("d", path(&around) + "z").with("fill", colour);
            band.with("fill-opacity", 0.18)
        })
    }

    /// A mark at each point, which says its values.
    fn dots(&self, series: &Series, colour: &str) -> Vec<Element> {
        let dot = |point: &(f64, f64)| {
            let (x, y) = self.figure.place(*point)?;
            let values = format!(
                "{}: {}, {}",
                series.name,
                super::ticks::written(self.figure.x.unit, point.0),
                super::ticks::written(self.figure.y.unit, point.1)
            );
            let circle = element("circle").with("cx", px(self.across(x))).with("cy", px(self.up(y)));
            Some(circle.with("r", 2.6).with("fill", colour).child(element("title").text(values)))
        };
        series.points.iter().filter_map(dot).collect()
    }

    /// The corners of a curve within the frame, those of steps where it is one.
    fn corners(&self, series: &Series) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for (x, y) in series.points.iter().filter_map(|point| self.figure.place(*point)) {
            let (x, y) = (self.across(x), self.up(y));
            if let (Shape::Steps, Some((_, before))) = (series.shape, corners.last()) {
                corners.push((x, *before));
            }
            corners.push((x, y));
        }
        corners
    }

    /// A dashed line across the figure at each mark, its name at its end.
    fn marks(&self) -> Vec<Element> {
        let mut parts = Vec::new();
        // Names of upright lines stand below each other: lines may be close together.
        let mut name_at = self.top;
        for mark in &self.figure.marks {
            let (axis, range) = match mark.axis {
                MarkAxis::X => (&self.figure.x, self.x),
                MarkAxis::Y => (&self.figure.y, self.y),
            };
            let Some(at) = axis.scale.place(mark.at).filter(|at| range.0 <= *at && *at <= range.1) else {
                continue;
            };
            let (from, to, name) = match mark.axis {
                MarkAxis::X => {
                    let x = self.across(at);
                    name_at += LINE;
                    let (beside, anchor) =
                        if x > 0.75 * WIDTH { (x - 4.0, "end") } else { (x + 4.0, "start") };
                    let name = text(beside, name_at, &mark.label).with("text-anchor", anchor);
                    ((x, self.bottom()), (x, self.top), name)
                }
                MarkAxis::Y => {
                    let (y, right) = (self.up(at), WIDTH - RIGHT);
                    let name = text(right - 4.0, y - 4.0, &mark.label).with("text-anchor", "end");
                    ((LEFT, y), (right, y), name)
                }
            };
            parts.push(line(from, to, QUIET).with("stroke-dasharray", "5 4"));
            parts.push(name.with("fill", QUIET));
        }
        parts
    }

    /// The names of the curves below the figure, and where they end. Those in the background have one together.
    fn legend(&self) -> (Vec<Element>, f64) {
        let background = self.figure.series.iter().filter(|series| series.background).count();
        let others = format!("{background} others");
        let names = coloured(self.figure).map(|(series, colour)| (series.name.as_str(), colour));
        let names = names.chain((background > 0).then_some((others.as_str(), BACKGROUND)));
        let (mut x, mut y) = (LEFT, self.bottom() + 3.6 * LINE);
        let mut parts = Vec::new();
        for (name, colour) in names {
            let width = 44.0 + CHARACTER * name.chars().count() as f64;
            if x > LEFT && x + width > WIDTH {
                (x, y) = (LEFT, y + LINE + 2.0);
            }
            parts.push(line((x, y - 4.0), (x + 20.0, y - 4.0), colour).with("stroke-width", 3));
            parts.push(text(x + 26.0, y, name));
            x += width;
        }
        (parts, y)
    }
}

/// The curves that are told apart, in their order, each with its colour.
fn coloured(figure: &Figure) -> impl Iterator<Item = (&Series, &'static str)> {
    figure.series.iter().filter(|series| !series.background).zip(COLOURS.into_iter().cycle())
}

fn shown_ticks(axis: &Axis, range: (f64, f64), most: usize) -> Vec<Tick> {
    let inside = |(place, _): &Tick| range.0 <= *place + 1e-9 && *place <= range.1 + 1e-9;
    ticks(axis, range, most).into_iter().filter(inside).collect()
}

/// How far along a range a place is, 0 to 1.
fn share(place: f64, (low, high): (f64, f64)) -> f64 {
    ((place - low) / (high - low)).clamp(0.0, 1.0)
}

/// A coordinate, to a tenth of a pixel.
fn px(value: f64) -> String {
    let tenths = (value * 10.0).round();
    if tenths % 10.0 == 0.0 { format!("{:.0}", tenths / 10.0) } else { format!("{:.1}", tenths / 10.0) }
}

/// A path through these corners; one where the last is already is left out.
fn path(corners: &[(f64, f64)]) -> String {
    let mut text = String::new();
    let mut last = String::new();
    for (x, y) in corners {
        let place = format!("{} {}", px(*x), px(*y));
        if place != last {
            text += if text.is_empty() { "M" } else { "L" };
            text += &place;
            last = place;
        }
    }
    text
}

fn line(from: (f64, f64), to: (f64, f64), colour: &str) -> Element {
    let line = element("line").with("x1", px(from.0)).with("y1", px(from.1));
    line.with("x2", px(to.0)).with("y2", px(to.1)).with("stroke", colour)
}

fn text(x: f64, y: f64, text: &str) -> Element {
    element("text").with("x", px(x)).with("y", px(y)).text(text)
}

/// A note as lines that fit, broken at blanks; a word that does not fit is cut.
fn lines(note: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in note.split(' ') {
        let word = match word.chars().count() {
            0..=LONGEST_NOTE => word.to_owned(),
            _ => word.chars().take(LONGEST_NOTE - 1).chain(['…']).collect(),
        };
        let last = lines.last_mut().expect("there is always a line");
        if last.is_empty() {
            *last = word;
        } else if last.chars().count() + 1 + word.chars().count() <= LONGEST_NOTE {
            *last += " ";
            *last += &word;
        } else {
            lines.push(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests;
