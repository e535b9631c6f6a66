//! Figures as SVG, drawn by plotters.

use super::ticks::{Tick, ticks};
use super::{Axis, Figure, MarkAxis, Series, Shape};
use plotters::chart::{ChartBuilder, ChartContext, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::{
    BLACK, Cartesian2d, Color, DrawingArea, IntoDrawingArea, IntoFont, LineSeries, PathElement, RGBColor,
    SVGBackend, Text, TextStyle, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// Size of a figure, pixels.
const WIDTH: u32 = 960;
const HEIGHT: u32 = 540;

/// Room for the title and each line below it.
const TITLE: i32 = 38;
const NOTE: i32 = 18;

/// Characters of a line below the title that fit.
const LONGEST_NOTE: usize = 135;

const TITLE_FONT: (&str, i32) = ("sans-serif", 20);
const FONT: (&str, i32) = ("sans-serif", 13);

/// Colours that people of any colour vision tell apart on white (Okabe and Ito,
/// "Color Universal Design", 2008; without yellow, which is too light).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
const BACKGROUND: RGBColor = RGBColor(190, 190, 190);
const GRID: RGBColor = RGBColor(225, 225, 225);
const QUIET: RGBColor = RGBColor(90, 90, 90);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Places, Places>>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The figures as one SVG document, one below the other. One without a point
/// is its title.
///
/// # Panics
/// Never: memory takes any picture.
pub fn svg(figures: &[Figure]) -> String {
    let mut text = String::new();
    let count = figures.len().max(1);
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT * count as u32)).into_drawing_area();
        let draw_all = || -> Drawn {
            root.fill(&WHITE)?;
            let areas = root.split_evenly((count, 1));
            figures.iter().zip(&areas).try_for_each(|(figure, area)| draw(figure, area))?;
            Ok(root.present()?)
        };
        draw_all().expect("memory takes any picture");
    }
    text
}

fn draw(figure: &Figure, area: &Area) -> Drawn {
    area.draw(&Text::new(
        figure.title.clone(),
        (14, 12),
        TextStyle::from(TITLE_FONT.into_font()).color(&BLACK),
    ))?;
    for (at, note) in figure.notes.iter().enumerate() {
        let place = (14, TITLE + NOTE * at as i32);
        area.draw(&Text::new(shortened(note), place, TextStyle::from(FONT.into_font()).color(&QUIET)))?;
    }
    let Some([x, y]) = figure.frame() else { return Ok(()) };
    let head = TITLE + NOTE * figure.notes.len() as i32 + NOTE;
    let mut chart = ChartBuilder::on(area)
        .margin_top(head)
        .margin_right(30)
        .margin_left(8)
        .margin_bottom(6)
        .x_label_area_size(48)
        .y_label_area_size(78)
        .build_cartesian_2d(Places::new(&figure.x, x, 10), Places::new(&figure.y, y, 9))?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .axis_style(QUIET)
        .label_style(FONT)
        .x_desc(&figure.x.label)
        .y_desc(&figure.y.label)
        .draw()?;
    draw_curves(figure, [x, y], &mut chart)?;
    draw_marks(figure, [x, y], &chart, area)?;
    chart
        .configure_series_labels()
        .position(free_corner(figure))
        .background_style(WHITE.mix(0.85))
        .border_style(GRID)
        .label_font(FONT)
        .draw()?;
    Ok(())
}

/// Curves in the background first, and of the others the first one last: it
/// lies on top. They have their names in the legend, those in the background
/// a common one.
fn draw_curves(figure: &Figure, frame: [(f64, f64); 2], chart: &mut Chart) -> Drawn {
    let (background, others): (Vec<&Series>, Vec<&Series>) =
        figure.series.iter().partition(|series| series.background);
    let coloured: Vec<(&Series, RGBColor)> = others.into_iter().zip(COLOURS.into_iter().cycle()).collect();
    for series in &background {
        chart.draw_series(LineSeries::new(corners(figure, series, frame), BACKGROUND))?;
    }
    for (series, colour) in coloured.iter().rev() {
        let style = colour.stroke_width(2);
        chart.draw_series(LineSeries::new(corners(figure, series, frame), style))?;
    }
    // The legend is in the order of the figure: its entries are curves of nothing.
    for (series, colour) in &coloured {
        legend(chart, &series.name, *colour)?;
    }
    if !background.is_empty() {
        legend(chart, &format!("{} others", background.len()), BACKGROUND)?;
    }
    Ok(())
}

/// The upper corner that curves leave free.
fn free_corner(figure: &Figure) -> SeriesLabelPosition {
    let rises = |series: &Series| {
        let ends = series.points.first().zip(series.points.last());
        ends.is_some_and(|(first, last)| last.1 > first.1)
    };
    match figure.series.iter().any(rises) {
        true => SeriesLabelPosition::UpperLeft,
        false => SeriesLabelPosition::UpperRight,
    }
}

fn legend(chart: &mut Chart, name: &str, colour: RGBColor) -> Drawn {
    let nothing = std::iter::empty::<(f64, f64)>();
    chart
        .draw_series(LineSeries::new(nothing, colour))?
        .label(name)
        .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 22, y)], colour.stroke_width(3)));
    Ok(())
}

/// The places of a curve within the frame, as corners of steps where it is one.
fn corners(figure: &Figure, series: &Series, [x, y]: [(f64, f64); 2]) -> Vec<(f64, f64)> {
    let places = series.points.iter().filter_map(|point| figure.place(*point));
    let inside = places.map(|(at, value)| (at.clamp(x.0, x.1), value.clamp(y.0, y.1)));
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for (at, value) in inside {
        if let (Shape::Steps, Some((_, before))) = (series.shape, corners.last()) {
            corners.push((at, *before));
        }
        corners.push((at, value));
    }
    corners
}

/// A dotted line across the figure at each mark, its name at its end.
fn draw_marks(figure: &Figure, [x, y]: [(f64, f64); 2], chart: &Chart, area: &Area) -> Drawn {
    let (left, top) = area.get_base_pixel();
    let pixel = |place: (f64, f64)| {
        let (x, y) = chart.backend_coord(&place);
        (x - left, y - top)
    };
    for mark in &figure.marks {
        let (axis, range) = match mark.axis {
            MarkAxis::X => (&figure.x, x),
            MarkAxis::Y => (&figure.y, y),
        };
        let Some(at) = axis.scale.place(mark.at).filter(|at| range.0 <= *at && *at <= range.1) else {
            continue;
        };
        let style = TextStyle::from(FONT.into_font()).color(&QUIET);
        let (from, to, name, side) = match mark.axis {
            MarkAxis::X => (pixel((at, y.0)), pixel((at, y.1)), (0, -4), HPos::Center),
            MarkAxis::Y => (pixel((x.0, at)), pixel((x.1, at)), (-4, -3), HPos::Right),
        };
        dotted(area, from, to)?;
        let style = style.pos(Pos::new(side, VPos::Bottom));
        area.draw(&Text::new(mark.label.clone(), (to.0 + name.0, to.1 + name.1), style))?;
    }
    Ok(())
}

/// A line of dashes, across or upright.
fn dotted(area: &Area, from: (i32, i32), to: (i32, i32)) -> Drawn {
    let length = (to.0 - from.0).abs().max((to.1 - from.1).abs()).max(1);
    let point = |at: i32| {
        let part = |from: i32, to: i32| from + (to - from) * at / length;
        (part(from.0, to.0), part(from.1, to.1))
    };
    for at in (0..length).step_by(9) {
        area.draw(&PathElement::new(vec![point(at), point((at + 5).min(length))], QUIET))?;
    }
    Ok(())
}

/// A range of places on an axis and the ticks in it.
struct Places {
    ends: (f64, f64),
    ticks: Vec<Tick>,
}

impl Places {
    /// With at most `most` ticks.
    fn new(axis: &Axis, ends: (f64, f64), most: usize) -> Places {
        Places { ends, ticks: ticks(axis, ends, most) }
    }
}

impl Ranged for Places {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.ends.0) / (self.ends.1 - self.ends.0);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.ticks.iter().map(|(place, _)| *place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for Places {
    fn format_ext(&self, place: &f64) -> String {
        self.ticks.iter().find(|tick| tick.0 == *place).map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

fn shortened(note: &str) -> String {
    match note.chars().count() {
        0..=LONGEST_NOTE => note.to_owned(),
        _ => note.chars().take(LONGEST_NOTE - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests;
