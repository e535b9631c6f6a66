//! Bars, intervals and dots as SVG.

use super::super::ticks::{BESIDE, format_axis_value, relative_position, visible_ticks};
use super::{
    CHARACTER, COLOURS, GRID, LINE, QUIET, WIDTH, draw_heading, line_element, px, shorten_text, text_element,
};
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
pub(super) fn draw_rows(rows: &BarChart) -> (Element, f64) {
    let (group, y) = draw_heading(&rows.title, &rows.notes);
    let Some(range) = rows.axis_ends() else { return (group, y + LINE) };
    let top = y + 1.2 * LINE;
    let plot = RowPlot { rows, range, top };
    let (legend, bottom) = plot.draw_legend();
    let drawn = rows.rows.iter().enumerate().flat_map(|(at, row)| plot.draw_row(at, row));
    (group.children(plot.axis()).children(drawn).children(plot.marks()).children(legend), bottom + 10.0)
}

struct RowPlot<'a> {
    rows: &'a BarChart,
    range: (f64, f64),
    top: f64,
}

impl RowPlot<'_> {
    fn bottom(&self) -> f64 {
        self.top + HEIGHT * self.rows.rows.len() as f64
    }

    /// Returns the x of a value, pixels; a value without a place is at the begin.
    fn x_position(&self, value: f64) -> f64 {
        let place = self.rows.x.scale.axis_position(value).unwrap_or(self.range.0);
        FROM + relative_position(place, self.range) * (TO - FROM)
    }

    fn axis(&self) -> Vec<Element> {
        let mut parts = Vec::new();
        for (place, label) in visible_ticks(&self.rows.x, self.range, BESIDE) {
            let x = FROM + relative_position(place, self.range) * (TO - FROM);
            parts.push(line_element((x, self.top), (x, self.bottom()), GRID));
            parts.push(text_element(x, self.bottom() + LINE, &label).with_attr("text-anchor", "middle"));
        }
        parts.push(line_element((FROM, self.top), (FROM, self.bottom()), QUIET));
        let label = text_element((FROM + TO) / 2.0, self.bottom() + 2.2 * LINE, &self.rows.x.label);
        parts.push(label.with_attr("text-anchor", "middle"));
        parts
    }

    fn draw_row(&self, at: usize, row: &BarChartRow) -> Vec<Element> {
        let middle = self.top + HEIGHT * (at as f64 + 0.5);
        let label = shorten_text(&row.label, LABEL);
        let mut parts = vec![text_element(FROM - 8.0, middle + 4.0, &label).with_attr("text-anchor", "end")];
        parts.extend(row.parts.iter().map(|part| self.draw_part(part, row, middle)));
        parts.push(text_element(TO + 6.0, middle + 4.0, &row.value).with_attr("fill", QUIET));
        parts
    }

    fn draw_part(&self, part: &BarChartPart, row: &BarChartRow, middle: f64) -> Element {
        let doubtful = row.doubtful;
        let (from, to) = (self.x_position(part.from), self.x_position(part.to));
        let unit = self.rows.x.unit;
        let key = self.rows.keys.get(part.key).map(String::as_str).unwrap_or_default();
        let name = if part.label.is_empty() { key } else { &part.label };
        let (drawn, said) = match part.kind {
            PartKind::Bar => {
                let bar = element("rect").with_attr("x", px(from)).with_attr("y", px(middle - BAR / 2.0));
                let bar = bar.with_attr("width", px((to - from).max(0.5))).with_attr("height", BAR);
                (fill_shape(bar, part.key, doubtful), format_axis_value(unit, part.to - part.from))
            }
            PartKind::Interval => {
                let (from, to) = (px(from), px(to));
                let y = px(middle);
                let ends = format!("M{from} {y}m0 -4v8M{to} {y}m0 -4v8M{from} {y}L{to} {y}");
                let whisker = element("path")
                    .with_attr("d", ends)
                    .with_attr("stroke", "#000")
                    .with_attr("fill", "none");
                (
                    whisker,
                    format!("{} to {}", format_axis_value(unit, part.from), format_axis_value(unit, part.to)),
                )
            }
            PartKind::Dot => (dot(to, middle, part.key, doubtful), format_axis_value(unit, part.to)),
        };
        let doubt = if doubtful { ", doubtful" } else { "" };
        drawn.child(element("title").with_text(format!("{}, {name}: {said}{doubt}", row.label)))
    }

    fn marks(&self) -> Vec<Element> {
        let mut parts = Vec::new();
        for (at, mark) in self.rows.marks.iter().enumerate() {
            let x = self.x_position(mark.at);
            let y = self.top - 4.0;
            let up =
                line_element((x, self.bottom()), (x, self.top), "#000").with_attr("stroke-dasharray", "5 4");
            let anchor = if x > 0.6 * WIDTH { "end" } else { "start" };
            // Names of lines that are close together would lie on each other.
            let named = at == 0 || self.rows.marks.len() < 3;
            parts.push(up);
            parts.extend(named.then(|| text_element(x, y, &mark.label).with_attr("text-anchor", anchor)));
        }
        parts
    }

    fn draw_legend(&self) -> (Vec<Element>, f64) {
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
                    let square = element("rect").with_attr("x", px(x)).with_attr("y", px(y - 10.0));
                    fill_shape(square.with_attr("width", 12).with_attr("height", 12), key, false)
                }
            });
            parts.push(text_element(x + 18.0, y, name));
            x += width;
        }
        (parts, y)
    }
}

fn dot(x: f64, y: f64, key: usize, doubtful: bool) -> Element {
    let shape = DOTS[key % DOTS.len()];
    fill_shape(element("path").with_attr("d", format!("M{} {}{shape}", px(x), px(y))), key, doubtful)
}

/// Returns the shape in the colour of a key; it is hollow if it is doubtful.
fn fill_shape(shape: Element, key: usize, doubtful: bool) -> Element {
    let colour = COLOURS[key % COLOURS.len()];
    match doubtful {
        true => shape.with_attr("fill", "#fff").with_attr("stroke", colour).with_attr("stroke-width", 1.5),
        false => shape.with_attr("fill", colour),
    }
}
