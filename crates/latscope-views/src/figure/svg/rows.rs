//! Bars, intervals and dots as SVG.

use super::super::ticks::{BESIDE, share, shown, written};
use super::{CHARACTER, COLOURS, GRID, LINE, QUIET, WIDTH, heading, line, px, shortened, text};
use crate::figure::{BarChart, BarChartPart, BarChartRow, PartKind};
use crate::markup::{Element, element};

/// Begin and end of the axis, height of a row, and height of its bar, pixels.
const FROM: f64 = 300.0;
const TO: f64 = WIDTH - 92.0;
const HEIGHT: f64 = 21.0;
const BAR: f64 = 13.0;

/// Characters of a label that fit before the axis.
const LABEL: usize = 46;

/// Shapes of the dots by key, so that more than the colour differs: circle, square, diamond, triangle.
const DOTS: [&str; 4] =
    ["m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "m-3.5 -3.5h7v7h-7z", "m0 -5l5 5l-5 5l-5 -5z", "m0 -5l5 9h-10z"];

/// Draws the rows from the upper edge on; returns them with their height.
pub(super) fn draw(rows: &BarChart) -> (Element, f64) {
    let (group, y) = heading(&rows.title, &rows.notes);
    let Some(range) = rows.frame() else { return (group, y + LINE) };
    let top = y + 1.2 * LINE;
    let plot = Plot { rows, range, top };
    let (legend, bottom) = plot.legend();
    let drawn = rows.rows.iter().enumerate().flat_map(|(at, row)| plot.row(at, row));
    (group.children(plot.axis()).children(drawn).children(plot.marks()).children(legend), bottom + 10.0)
}

struct Plot<'a> {
    rows: &'a BarChart,
    range: (f64, f64),
    top: f64,
}

impl Plot<'_> {
    fn bottom(&self) -> f64 {
        self.top + HEIGHT * self.rows.rows.len() as f64
    }

    /// Returns the x of a value, pixels; a value without a place is at the begin.
    fn across(&self, value: f64) -> f64 {
        let place = self.rows.x.scale.place(value).unwrap_or(self.range.0);
        FROM + share(place, self.range) * (TO - FROM)
    }

    fn axis(&self) -> Vec<Element> {
        let mut parts = Vec::new();
        for (place, label) in shown(&self.rows.x, self.range, BESIDE) {
            let x = FROM + share(place, self.range) * (TO - FROM);
            parts.push(line((x, self.top), (x, self.bottom()), GRID));
            parts.push(text(x, self.bottom() + LINE, &label).with("text-anchor", "middle"));
        }
        parts.push(line((FROM, self.top), (FROM, self.bottom()), QUIET));
        let label = text((FROM + TO) / 2.0, self.bottom() + 2.2 * LINE, &self.rows.x.label);
        parts.push(label.with("text-anchor", "middle"));
        parts
    }

    fn row(&self, at: usize, row: &BarChartRow) -> Vec<Element> {
        let middle = self.top + HEIGHT * (at as f64 + 0.5);
        let label = shortened(&row.label, LABEL);
        let mut parts = vec![text(FROM - 8.0, middle + 4.0, &label).with("text-anchor", "end")];
        parts.extend(row.parts.iter().map(|part| self.part(part, row, middle)));
        parts.push(text(TO + 6.0, middle + 4.0, &row.value).with("fill", QUIET));
        parts
    }

    fn part(&self, part: &BarChartPart, row: &BarChartRow, middle: f64) -> Element {
        let doubtful = row.doubtful;
        let (from, to) = (self.across(part.from), self.across(part.to));
        let unit = self.rows.x.unit;
        let key = self.rows.keys.get(part.key).map(String::as_str).unwrap_or_default();
        let name = if part.label.is_empty() { key } else { &part.label };
        let (drawn, said) = match part.kind {
            PartKind::Bar => {
                let bar = element("rect").with("x", px(from)).with("y", px(middle - BAR / 2.0));
                let bar = bar.with("width", px((to - from).max(0.5))).with("height", BAR);
                (filled(bar, part.key, doubtful), written(unit, part.to - part.from))
            }
            PartKind::Interval => {
                let (from, to) = (px(from), px(to));
                let y = px(middle);
                let ends = format!("M{from} {y}m0 -4v8M{to} {y}m0 -4v8M{from} {y}L{to} {y}");
                let whisker = element("path").with("d", ends).with("stroke", "#000").with("fill", "none");
                (whisker, format!("{} to {}", written(unit, part.from), written(unit, part.to)))
            }
            PartKind::Dot => (dot(to, middle, part.key, doubtful), written(unit, part.to)),
        };
        let doubt = if doubtful { ", doubtful" } else { "" };
        drawn.child(element("title").text(format!("{}, {name}: {said}{doubt}", row.label)))
    }

    fn marks(&self) -> Vec<Element> {
        let mut parts = Vec::new();
        for (at, mark) in self.rows.marks.iter().enumerate() {
            let x = self.across(mark.at);
            let y = self.top - 4.0;
            let up = line((x, self.bottom()), (x, self.top), "#000").with("stroke-dasharray", "5 4");
            let anchor = if x > 0.6 * WIDTH { "end" } else { "start" };
            // Names of lines that are close together would lie on each other.
            let named = at == 0 || self.rows.marks.len() < 3;
            parts.push(up);
            parts.extend(named.then(|| text(x, y, &mark.label).with("text-anchor", anchor)));
        }
        parts
    }

    fn legend(&self) -> (Vec<Element>, f64) {
        let (mut x, mut y) = (FROM, self.bottom() + 3.6 * LINE);
        let dots = self.rows.rows.iter().flat_map(|row| &row.parts).all(|part| part.kind == PartKind::Dot);
        let mut parts = Vec::new();
        for (key, name) in self.rows.keys.iter().enumerate() {
            let width = 36.0 + CHARACTER * name.chars().count() as f64;
            if x > FROM && x + width > WIDTH {
                (x, y) = (FROM, y + LINE + 2.0);
            }
            parts.push(match dots {
                true => dot(x + 6.0, y - 4.0, key, false),
                false => {
                    let square = element("rect").with("x", px(x)).with("y", px(y - 10.0));
                    filled(square.with("width", 12).with("height", 12), key, false)
                }
            });
            parts.push(text(x + 18.0, y, name));
            x += width;
        }
        (parts, y)
    }
}

fn dot(x: f64, y: f64, key: usize, doubtful: bool) -> Element {
    let shape = DOTS[key % DOTS.len()];
    filled(element("path").with("d", format!("M{} {}{shape}", px(x), px(y))), key, doubtful)
}

/// Returns the shape in the colour of a key; it is hollow if it is doubtful.
fn filled(shape: Element, key: usize, doubtful: bool) -> Element {
    let colour = COLOURS[key % COLOURS.len()];
    match doubtful {
        true => shape.with("fill", "#fff").with("stroke", colour).with("stroke-width", 1.5),
        false => shape.with("fill", colour),
    }
}
