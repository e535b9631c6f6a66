//! Heat maps as SVG: a path for each colour, so that maps of many CPUs stay small.

use super::super::ticks::format_axis_value;
use super::{LINE, QUIET, WIDTH, draw_heading, px, text_element};
use crate::figure::{HeatMap, HeatMapCell};
use crate::markup::{Element, element};
use latscope_core::units::three_digits;

/// Colours from low to high, each darker than the one before: they differ without colour, too (after viridis,
/// by Smith and van der Walt).
const COLOURS: [&str; 8] =
    ["#fde725", "#b5de2b", "#6ece58", "#35b779", "#26828e", "#31688e", "#3e4989", "#440154"];

/// Index of the first colour on which text is white.
const DARK: usize = 4;

/// The left edge of the cells and the longest side of all, pixels.
const LEFT: f64 = 64.0;
const SIDE: f64 = WIDTH - LEFT - 40.0;

/// Maximum width of a cell, pixels.
const WIDEST: f64 = 56.0;

/// Maximum number of rows with numbers in their cells, and of names along a side.
const MOST_NUMBERS: usize = 16;
const MOST_NAMES: usize = 24;

/// Draws the map from the upper edge on; returns it with its height.
pub(super) fn draw_map(cells: &HeatMap) -> (Element, f64) {
    let (group, y) = draw_heading(&cells.title, &cells.notes);
    let values = || cells.cells.iter().map(|cell| cell.value).filter(|value| *value > 0.0);
    let (Some(low), Some(high)) = (values().reduce(f64::min), values().reduce(f64::max)) else {
        return (group, y + LINE);
    };
    let n = cells.names.len();
    let map = Map { cells, low, high, top: y + 1.6 * LINE, width: (SIDE / n as f64).min(WIDEST) };
    let bottom = map.top + map.width * n as f64;
    let group = map.add_values(group).child(map.draw_cells()).child(map.borders()).children(map.draw_names());
    let group = if n <= MOST_NUMBERS {
        group.children(map.cells.cells.iter().map(|cell| map.draw_number(cell)))
    } else {
        group
    };
    (group.children(map.draw_legend(bottom + 2.8 * LINE)), bottom + 5.6 * LINE)
}

struct Map<'a> {
    cells: &'a HeatMap,
    low: f64,
    high: f64,
    top: f64,
    width: f64,
}

impl Map<'_> {
    /// The index of the colour of a value: equal ratios are equally far apart.
    fn colour(&self, value: f64) -> usize {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        if share.is_finite() { ((share * COLOURS.len() as f64) as usize).min(COLOURS.len() - 1) } else { 0 }
    }

    /// Adds the values of the cells for the script of the page.
    fn add_values(&self, group: Element) -> Element {
        let (scale, unit) = self.scale();
        let mut told = vec![vec![String::new(); self.cells.names.len()]; self.cells.names.len()];
        for cell in &self.cells.cells {
            let doubt = if cell.doubtful { "?" } else { "" };
            told[cell.row][cell.column] = format!("{}{doubt}", three_digits(cell.value / scale));
        }
        let told: Vec<String> = told.iter().map(|row| row.join(" ").trim_end().to_owned()).collect();
        let side = &self.cells.side;
        let names: Vec<String> = self.cells.names.iter().map(|name| format!("{side} {name}")).collect();
        group
            .with_attr("data-map", format!("{} {} {:.4}", px(LEFT), px(self.top), self.width))
            .with_attr("data-names", names.join(","))
            .with_attr("data-unit", unit)
            .with_attr("data-cells", told.join(","))
    }

    /// The value at which a colour begins.
    fn colour_start(&self, colour: usize) -> f64 {
        self.low * (self.high / self.low).powf(colour as f64 / COLOURS.len() as f64)
    }

    /// Returns all cells, in units of a cell, with a small white dot in each doubtful cell.
    fn draw_cells(&self) -> Element {
        let mut sorted: Vec<&HeatMapCell> = self.cells.cells.iter().filter(|cell| cell.value > 0.0).collect();
        sorted.sort_by_key(|cell| (cell.row, cell.column));
        let mut paths = vec![HeatMapPath::default(); COLOURS.len()];
        let mut doubtful = String::new();
        for cell in sorted {
            paths[self.colour(cell.value)].add_cell(cell);
            // Where there are numbers they have a question mark.
            if cell.doubtful && self.cells.names.len() > MOST_NUMBERS {
                doubtful += &format!("M{}.5 {}h0", cell.column, cell.row);
            }
        }
        let place =
            format!("translate({} {}) scale({:.4})", px(LEFT), px(self.top + self.width / 2.0), self.width);
        let drawn = paths.into_iter().zip(COLOURS).map(|(runs, colour)| (runs.into_text(), colour));
        let drawn = drawn.filter(|(text, _)| !text.is_empty());
        let path = |d: String, colour: &str| {
            element("path").with_attr("d", d).with_attr("stroke", colour).with_attr("fill", "none")
        };
        let group = element("g").with_attr("transform", place).children(drawn.map(|(d, colour)| {
            path(d, colour).with_attr("stroke-width", 1).with_attr("shape-rendering", "crispEdges")
        }));
        match doubtful.is_empty() {
            true => group,
            false => group.child(
                path(doubtful, "white").with_attr("stroke-width", 0.22).with_attr("stroke-linecap", "round"),
            ),
        }
    }

    /// Returns lines where another package or cache begins, and around all cells.
    fn borders(&self) -> Element {
        let n = self.cells.names.len();
        let (left, right) = (px(LEFT), px(LEFT + self.width * n as f64));
        let (top, bottom) = (px(self.top), px(self.top + self.width * n as f64));
        let lines = self.cells.borders.iter().chain([&0, &n]).map(|at| {
            let (x, y) = (px(LEFT + self.width * *at as f64), px(self.top + self.width * *at as f64));
            format!("M{x} {top}L{x} {bottom}M{left} {y}L{right} {y}")
        });
        element("path")
            .with_attr("d", lines.collect::<String>())
            .with_attr("stroke", QUIET)
            .with_attr("fill", "none")
    }

    /// Names along the left and the lower side, as many as can be read.
    fn draw_names(&self) -> Vec<Element> {
        let n = self.cells.names.len();
        let each = n.div_ceil(MOST_NAMES).max(1);
        let middle = |at: usize| self.width * (at as f64 + 0.5);
        let bottom = self.top + self.width * n as f64;
        let shown = || self.cells.names.iter().enumerate().step_by(each);
        let left = shown().map(|(at, name)| {
            text_element(LEFT - 6.0, self.top + middle(at) + 4.0, name).with_attr("text-anchor", "end")
        });
        let below = shown().map(|(at, name)| {
            text_element(LEFT + middle(at), bottom + LINE, name).with_attr("text-anchor", "middle")
        });
        let side = text_element(12.0, self.top - 6.0, &format!("{} ↓ →", self.cells.side));
        left.chain(below).chain([side]).collect()
    }

    /// Returns the unit of the numbers in the cells, in ns, and its name.
    fn scale(&self) -> (f64, &'static str) {
        if self.high >= 1e6 {
            (1e6, "ms")
        } else if self.high >= 1e3 {
            (1e3, "µs")
        } else {
            (1.0, "ns")
        }
    }

    fn draw_number(&self, cell: &HeatMapCell) -> Element {
        let x = LEFT + self.width * (cell.column as f64 + 0.5);
        let y = self.top + self.width * (cell.row as f64 + 0.5);
        let colour = if self.colour(cell.value) >= DARK { "white" } else { "black" };
        let doubt = if cell.doubtful { "?" } else { "" };
        let number =
            text_element(x, y + 4.0, &format!("{}{doubt}", three_digits(cell.value / self.scale().0)));
        number.with_attr("text-anchor", "middle").with_attr("font-size", 11).with_attr("fill", colour)
    }

    /// Returns the colours with the values at which they begin, and the value at which the last one ends.
    fn draw_legend(&self, y: f64) -> Vec<Element> {
        let width = 76.0;
        let in_cells = match self.cells.names.len() <= MOST_NUMBERS {
            true => format!("; numbers in cells: {}", self.scale().1),
            false => String::new(),
        };
        let mut parts = vec![text_element(LEFT, y, &format!("{}{in_cells}", self.cells.label))];
        if self.high <= self.low {
            parts.push(text_element(LEFT, y + LINE, &format_axis_value(self.cells.unit, self.low)));
            return parts;
        }
        for (at, colour) in COLOURS.into_iter().enumerate() {
            let box_of =
                element("rect").with_attr("x", px(LEFT + width * at as f64)).with_attr("y", px(y + 6.0));
            parts.push(box_of.with_attr("width", width).with_attr("height", 10).with_attr("fill", colour));
        }
        for at in 0..=COLOURS.len() {
            let value = latscope_core::units::format_time(self.colour_start(at));
            parts.push(
                text_element(LEFT + width * at as f64, y + 6.0 + 1.6 * LINE, &value)
                    .with_attr("text-anchor", "middle"),
            );
        }
        parts
    }
}

/// Cells of one colour as a path; adjacent cells are one stroke.
#[derive(Clone, Default)]
struct HeatMapPath {
    path: String,
    /// Row, begin and end of the last stroke.
    last: Option<(usize, usize, usize)>,
    /// The row and column where the pen is.
    pen: (usize, usize),
}

impl HeatMapPath {
    fn add_cell(&mut self, cell: &HeatMapCell) {
        match &mut self.last {
            Some((row, _, end)) if *row == cell.row && *end == cell.column => *end += 1,
            _ => {
                self.end_stroke();
                self.last = Some((cell.row, cell.column, cell.column + 1));
            }
        }
    }

    /// Writes the last stroke.
    fn end_stroke(&mut self) {
        let Some((row, from, to)) = self.last.take() else { return };
        self.path += &match row == self.pen.0 && !self.path.is_empty() {
            true => format!("m{} 0h{}", from - self.pen.1, to - from),
            false => format!("M{from} {row}h{}", to - from),
        };
        self.pen = (row, to);
    }

    fn into_text(mut self) -> String {
        self.end_stroke();
        self.path
    }
}
