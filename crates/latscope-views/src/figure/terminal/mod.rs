//! Figures in plain text. The first curve is a line of braille dots, each further curve has its own marker at
//! the points measured. Where curves coincide, the first is visible.

use super::ticks::{Tick, relative_position, ticks};
use super::{CurvePlot, MarkAxis, PlotSeries};
use crate::styled::fill_lines;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::{Color, Style};
use ratatui_core::symbols::Marker;
use ratatui_core::widgets::Widget;
use ratatui_widgets::canvas::{Canvas, Context, Line, Points};

/// Marks of the curves after the first.
const MARKERS: [char; 5] = ['o', '+', 'x', '#', '@'];

/// Rows of a plot below which a legend is cut.
const LEAST_ROWS: u16 = 5;

/// Largest distance from a mark on the y axis at which the first curve counts as on its level, as a share of
/// the height of the axis.
const ON_LEVEL: f64 = 0.04;

/// Returns the figure as lines of text, at most `height` of them and `width` columns wide, each ended by a line
/// feed, without colour and without trailing blanks. Below 30 columns or 10 lines, and without a point to draw,
/// there is only the title.
pub fn format_figure(figure: &CurvePlot, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let Some(layout) = TerminalPlotLayout::for_figure(figure, area) else {
        return format!("{}\n", figure.title.chars().take(usize::from(width)).collect::<String>());
    };
    let mut buffer = Buffer::empty(area);
    layout.draw_head(&mut buffer);
    layout.draw_axes(&mut buffer);
    layout.draw_curves(&mut buffer);
    layout.draw_legend(&mut buffer);
    text_of(&buffer)
}

/// The cells of a buffer as text.
fn text_of(buffer: &Buffer) -> String {
    let lines = buffer.content.chunks(usize::from(buffer.area.width));
    let text: String = lines
        .map(|line| {
            let line: String = line.iter().map(|cell| cell.symbol()).collect();
            format!("{}\n", line.trim_end())
        })
        .collect();
    format!("{}\n", text.trim_end())
}

/// Layout of the parts of a figure.
struct TerminalPlotLayout<'a> {
    figure: &'a CurvePlot,
    area: Rect,
    plot: Rect,
    x: (f64, f64),
    y: (f64, f64),
    y_ticks: Vec<Tick>,
    legend: Vec<String>,
}

impl<'a> TerminalPlotLayout<'a> {
    fn for_figure(figure: &'a CurvePlot, area: Rect) -> Option<Self> {
        let [x, y] = figure.range()?;
        if area.width < 30 || area.height < 10 {
            return None;
        }
        let (x, y) = (pad_range(x, 0.0)?, pad_range(y, 0.04)?);
        let head = 1 + [MarkAxis::Y, MarkAxis::X]
            .map(|axis| mark_line_count(figure, axis))
            .iter()
            .sum::<u16>()
            .max(1);
        let mut legend = legend(figure, usize::from(area.width));
        // Axis and its labels below; the curves come before their legend.
        legend.truncate(usize::from(area.height - head - 2 - LEAST_ROWS));
        let plot_height = area.height - head - 2 - legend.len() as u16;
        let y_ticks = ticks(&figure.y, y, usize::from(plot_height) / 2);
        let widest = y_ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0) as u16;
        let margin = (widest + 2).max(figure.y.label.chars().count() as u16 + 1).min(area.width / 3);
        // The last size's label hangs over the end of the axis by half.
        let plot = Rect::new(margin, head, area.width - margin - 3, plot_height);
        Some(TerminalPlotLayout { figure, area, plot, x, y, y_ticks, legend })
    }

    /// The column of a place on the x axis, as the canvas rounds it.
    fn column_at(&self, place: f64) -> u16 {
        let dots = f64::from(self.plot.width) * 2.0 - 1.0;
        self.plot.x + (relative_position(place, self.x) * dots).round() as u16 / 2
    }

    /// The row of a place on the y axis.
    fn row_at(&self, place: f64) -> u16 {
        let dots = f64::from(self.plot.height) * 4.0 - 1.0;
        self.plot.y + ((1.0 - relative_position(place, self.y)) * dots).round() as u16 / 4
    }

    /// Title, and the names of levels and of their ends above the plot.
    fn draw_head(&self, buffer: &mut Buffer) {
        let of_one_curve = match &self.figure.series[..] {
            [only] => format!(" ({})", only.name),
            _ => String::new(),
        };
        write_text(buffer, 0, 0, &format!("{}{of_one_curve}", self.figure.title));
        write_text(buffer, 0, self.plot.y - 1, &self.figure.y.label);
        let mut levels: Vec<(u16, &str)> = self
            .marks(MarkAxis::Y)
            .filter_map(|(at, label)| Some((self.column_at(self.middle_of_level(at)?), label)))
            .collect();
        let mut ends: Vec<(u16, &str)> =
            self.marks(MarkAxis::X).map(|(at, label)| (self.column_at(at), label)).collect();
        levels.sort_unstable();
        ends.sort_unstable();
        put_apart(buffer, self.plot, 1, &levels);
        put_apart(buffer, self.plot, self.plot.y - 1, &ends);
    }

    /// Marks of an axis that lie on it: place and name.
    fn marks(&self, axis: MarkAxis) -> impl Iterator<Item = (f64, &str)> {
        let (scale, (low, high)) = match axis {
            MarkAxis::X => (self.figure.x.scale, self.x),
            MarkAxis::Y => (self.figure.y.scale, self.y),
        };
        self.figure
            .marks
            .iter()
            .filter(move |mark| mark.axis == axis)
            .filter_map(move |mark| Some((scale.axis_position(mark.at)?, mark.label.as_str())))
            .filter(move |(place, _)| (low..=high).contains(place))
    }

    /// Returns the middle, on the x axis, of the range in which the first curve is at this level.
    fn middle_of_level(&self, level: f64) -> Option<f64> {
        let near = ON_LEVEL * (self.y.1 - self.y.0);
        let mut on_level =
            self.point_places(self.figure.series.first()?).filter(|(_, y)| (y - level).abs() <= near);
        let first = on_level.next()?;
        let last = on_level.last().unwrap_or(first);
        Some((first.0 + last.0) / 2.0)
    }

    fn point_places(&self, series: &'a PlotSeries) -> impl Iterator<Item = (f64, f64)> {
        series.points.iter().filter_map(|point| self.figure.point_position(*point))
    }

    fn draw_axes(&self, buffer: &mut Buffer) {
        let plot = self.plot;
        for row in plot.y..plot.bottom() {
            write_text(buffer, plot.x - 1, row, "│");
        }
        for (place, text) in &self.y_ticks {
            let row = self.row_at(*place);
            write_text(buffer, plot.x - 1, row, "┤");
            write_text(buffer, (plot.x - 1).saturating_sub(text.chars().count() as u16 + 1), row, text);
        }
        write_text(buffer, plot.x - 1, plot.bottom(), "└");
        for column in plot.x..plot.right() {
            write_text(buffer, column, plot.bottom(), "─");
        }
        let most = usize::from(plot.width / 10).max(2);
        let x_ticks = ticks(&self.figure.x, self.x, most);
        let columns: Vec<(u16, &str)> =
            x_ticks.iter().map(|(place, text)| (self.column_at(*place), text.as_str())).collect();
        for (column, _) in &columns {
            write_text(buffer, *column, plot.bottom(), "┬");
        }
        put_apart(buffer, Rect { width: self.area.width - plot.x, ..plot }, plot.bottom() + 1, &columns);
    }

    fn draw_curves(&self, buffer: &mut Buffer) {
        for (place, _) in self.marks(MarkAxis::X) {
            let column = self.column_at(place);
            (self.plot.y..self.plot.bottom()).for_each(|row| write_text(buffer, column, row, "┊"));
        }
        // In reverse: what comes first in the figure lies on top.
        for (series, marker) in self.figure.series.iter().skip(1).zip(MARKERS).rev() {
            for (x, y) in self.point_places(series) {
                write_text(buffer, self.column_at(x), self.row_at(y), marker.encode_utf8(&mut [0; 4]));
            }
        }
        let Some(first) = self.figure.series.first() else { return };
        // In shares of the plot, all inside: what lies outside, or far out in
        // the floating-point numbers, the canvas may clip for ever.
        let shares: Vec<(f64, f64)> = self
            .point_places(first)
            .map(|(x, y)| (relative_position(x, self.x), relative_position(y, self.y)))
            .collect();
        Canvas::default()
            .x_bounds([0.0, 1.0])
            .y_bounds([0.0, 1.0])
            .marker(Marker::Braille)
            .paint(|canvas| draw_line(canvas, &shares))
            .render(self.plot, buffer);
    }

    fn draw_legend(&self, buffer: &mut Buffer) {
        let first = self.plot.bottom() + 2;
        for (row, line) in (first..).zip(&self.legend) {
            write_text(buffer, 0, row, line);
        }
    }
}

/// A curve through these places.
fn draw_line(canvas: &mut Context, places: &[(f64, f64)]) {
    canvas.draw(&Points { coords: places, color: Color::Reset });
    for pair in places.windows(2) {
        let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
        canvas.draw(&Line { x1, y1, x2, y2, color: Color::Reset });
    }
}

/// Returns a range with a share of it added at both ends; a range that is a single place gets a width. `None`
/// if the range exceeds the range of numbers.
fn pad_range((low, high): (f64, f64), share: f64) -> Option<(f64, f64)> {
    let room = if high > low { (high - low) * share } else { 0.5f64.max(low.abs() * 1e-6) };
    let range = (low - room, high + room);
    (range.1 - range.0).is_finite().then_some(range)
}

/// Returns 1 if there are marks on this axis, and so a line for their names.
fn mark_line_count(figure: &CurvePlot, axis: MarkAxis) -> u16 {
    u16::from(figure.marks.iter().any(|mark| mark.axis == axis))
}

/// Lines that name the x axis and, if there are several, the curves.
fn legend(figure: &CurvePlot, width: usize) -> Vec<String> {
    let mut names = vec![format!("→ {}", figure.x.label)];
    if let [first, rest @ ..] = &figure.series[..]
        && !rest.is_empty()
    {
        names.push(format!("⠒⠒ {}", first.name));
        names.extend(rest.iter().zip(MARKERS).map(|(series, marker)| format!("{marker} {}", series.name)));
        let further = rest.len().saturating_sub(MARKERS.len());
        names.extend((further > 0).then(|| format!("{further} not drawn")));
    }
    fill_lines(names, "   ", width)
}

/// Writes a text from this cell on, cut at the right edge.
fn write_text(buffer: &mut Buffer, x: u16, y: u16, text: &str) {
    if buffer.area.contains(Position::new(x, y)) {
        buffer.set_string(x, y, text, Style::default());
    }
}

/// Writes labels centred at their columns, or as near to that as the width and two blanks between them allow; a
/// label without room is left out.
fn put_apart(buffer: &mut Buffer, within: Rect, row: u16, labels: &[(u16, &str)]) {
    let lengths: Vec<i32> = labels.iter().map(|(_, label)| label.chars().count() as i32).collect();
    let mut free = i32::from(within.x);
    let mut starts = Vec::with_capacity(labels.len());
    for ((column, _), length) in labels.iter().zip(&lengths) {
        let start = (i32::from(*column) - length / 2).max(free);
        starts.push(start);
        free = start + length + 2;
    }
    // What was pushed over the right edge pushes back.
    let mut limit = i32::from(within.right());
    for ((start, (_, label)), length) in starts.into_iter().zip(labels).zip(&lengths).rev() {
        let start = start.min(limit - length);
        if start >= i32::from(within.x) {
            write_text(buffer, start as u16, row, label);
            limit = start - 2;
        }
    }
}

#[cfg(test)]
mod tests;
