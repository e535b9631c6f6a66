//! The pictures: the largest of each second, and the distribution.

use super::model::LiveModel;
use super::theme::{Theme, draw_text};
use super::words;
use latscope_core::histogram::Histogram;
use latscope_core::units::format_time;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::widgets::Widget;
use ratatui_widgets::sparkline::{Sparkline, SparklineBar};

/// Below this height a distribution is not drawn: title, marks, three rows of
/// bars, axis and its labels.
pub(super) const LEAST_ROWS: u16 = 7;

/// Columns left of the distribution, for the counts.
const MARGIN: u16 = 6;

/// Draws the largest of each second, on a logarithmic scale, the present one
/// at the right.
pub(super) fn seconds(model: &LiveModel, number: usize, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let (row, name, threshold) = (model.row_at(number), model.row_name(number), model.threshold);
    let bars = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let shown: Vec<Option<f64>> = row.seconds.last(usize::from(area.width)).collect();
    let known = || shown.iter().flatten().copied();
    let (Some(low), Some(high)) = (known().reduce(f64::min), known().reduce(f64::max)) else {
        return draw_text(buffer, area, 0, "largest of each second: nothing yet", theme.faint());
    };
    let range = match (format_time(low), format_time(high)) {
        (low, high) if low == high => high,
        (low, high) => format!("{low} to {high}, log"),
    };
    let title = format!("{name}: largest of each second, last {} s, {range}", shown.len());
    draw_text(buffer, area, 0, &title, theme.faint());
    let eighths = f64::from(bars.height) * 8.0;
    // The smallest is a bar, too.
    let range = (high.ln() - low.ln()).max(0.01);
    let height = |ns: f64| 1.0 + (eighths - 1.0) * (ns.ln() - low.ln()) / range;
    let bar = |ns: Option<f64>| {
        let style = if is_above(ns.unwrap_or(0.0), threshold) { theme.alarm() } else { theme.calm() };
        SparklineBar::from(Some(ns.map_or(0, |ns| height(ns).round() as u64))).style(style)
    };
    let x = bars.right() - shown.len() as u16;
    Sparkline::default()
        .data(shown.into_iter().map(bar))
        .max(eighths as u64)
        .render(Rect { x, width: bars.right() - x, ..bars }, buffer);
}

fn is_above(ns: f64, threshold: Option<u64>) -> bool {
    threshold.is_some_and(|threshold| ns > threshold as f64)
}

/// Draws how often each latency occurred, both on logarithmic scales.
pub(super) fn histogram(model: &LiveModel, number: usize, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.height < LEAST_ROWS || area.width <= MARGIN + 20 {
        return;
    }
    let (row, name, threshold) = (model.row_at(number), model.row_name(number), model.threshold);
    let title = format!("{name}: distribution, how often by latency, log, log");
    draw_text(buffer, area, 0, &title, theme.faint());
    let plot = Rect::new(area.x + MARGIN, area.y + 2, area.width - MARGIN, area.height - 4);
    let Some(scale) = HistogramPlotAxis::for_histogram(&row.histogram, plot.width) else { return };
    let columns = scale.column_counts(&row.histogram);
    let most = columns.iter().copied().max().unwrap_or(0);
    let heights = Heights::for_max_count(most, plot.height);
    let bars = columns.iter().zip(0..).map(|(count, column)| {
        let style =
            if is_above(scale.start_of(column + 1), threshold) { theme.alarm() } else { theme.calm() };
        SparklineBar::from(heights.eighths(*count)).style(style)
    });
    Sparkline::default().data(bars).max(u64::from(plot.height) * 8).render(plot, buffer);
    draw_counts(&heights, plot, buffer);
    draw_times(&scale, plot, buffer);
    draw_marks(&scale, &row.histogram, theme, plot, buffer);
}

/// The x axis: from a round value to a round value.
#[derive(Debug, Clone, Copy, PartialEq)]
struct HistogramPlotAxis {
    low: f64,
    high: f64,
    width: u16,
}

impl HistogramPlotAxis {
    fn for_histogram(histogram: &Histogram, width: u16) -> Option<HistogramPlotAxis> {
        let (min, max) = (histogram.min()?.max(1.0), histogram.max()?.max(1.0));
        let low = round_values().take_while(|round| *round <= min).last().unwrap_or(1.0);
        let high = round_values().find(|round| *round > max)?;
        Some(HistogramPlotAxis { low, high, width })
    }

    /// The column of a time; of one before the axis, the first.
    fn column_at(&self, ns: f64) -> usize {
        let share = (ns.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        // A bound of columns belongs to the one that it starts.
        ((share * f64::from(self.width) + 1e-9) as usize).min(usize::from(self.width) - 1)
    }

    /// Lower bound of a column, ns.
    fn start_of(&self, column: u16) -> f64 {
        self.low * (self.high / self.low).powf(f64::from(column) / f64::from(self.width))
    }

    /// The counts of the columns; each bucket is in the column of its middle.
    fn column_counts(&self, histogram: &Histogram) -> Vec<u64> {
        let mut columns = vec![0; usize::from(self.width)];
        for (low, high, count) in histogram.buckets_ns() {
            columns[self.column_at(f64::midpoint(low, high))] += count;
        }
        if histogram.overflow() > 0 {
            columns[self.column_at(histogram.max().unwrap_or(0.0))] += histogram.overflow();
        }
        columns
    }
}

/// 1, 2, 5, 10, … ns, to beyond whatever a histogram holds.
fn round_values() -> impl Iterator<Item = f64> {
    (0..20).flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade)))
}

/// The y axis: a single event is a visible bar.
#[derive(Debug, Clone, Copy)]
struct Heights {
    decades: f64,
    eighths: f64,
}

/// Distance of the axis's begin below one event, in decades.
const FOOT: f64 = 0.3;

impl Heights {
    fn for_max_count(most: u64, rows: u16) -> Heights {
        let decades = (most.max(2) as f64).log10();
        Heights { decades, eighths: f64::from(rows) * 8.0 }
    }

    fn eighths(&self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let share = ((count as f64).log10() + FOOT) / (self.decades + FOOT);
        ((share * self.eighths).round() as u64).max(1)
    }
}

fn draw_counts(heights: &Heights, plot: Rect, buffer: &mut Buffer) {
    let left = Rect { x: plot.x - MARGIN, width: MARGIN, ..plot };
    for row in 0..plot.height {
        draw_text(buffer, left, row, "     │", Style::new());
    }
    let mut free = plot.height;
    for decade in 0..20 {
        if f64::from(decade) > heights.decades {
            break;
        }
        let row = plot.height.saturating_sub((heights.eighths(10u64.pow(decade)).div_ceil(8)) as u16);
        if row < free {
            draw_text(buffer, left, row, &format!("{:>4} ┤", power(decade)), Style::new());
            free = row;
        }
    }
}

/// A power of ten in at most four characters.
fn power(decade: u32) -> String {
    let unit = ["", "k", "M", "G", "T", "P", "E"][decade as usize / 3];
    format!("{}{unit}", 10u32.pow(decade % 3))
}

fn draw_times(scale: &HistogramPlotAxis, plot: Rect, buffer: &mut Buffer) {
    let line = Rect { x: plot.x - 1, y: plot.bottom(), width: plot.width + 1, height: 2 };
    draw_text(buffer, line, 0, &format!("└{}", "─".repeat(usize::from(plot.width))), Style::new());
    for (column, start, text) in time_ticks(scale) {
        let at =
            |column: usize| Rect { x: plot.x + column as u16, width: plot.width - column as u16, ..line };
        buffer.set_string(at(column).x, line.y, "┬", Style::new());
        draw_text(buffer, at(start), 1, &text, Style::new());
    }
}

/// The ticks of the x axis that find room: column, where the text starts, and
/// the text. Powers of ten come first.
fn time_ticks(scale: &HistogramPlotAxis) -> Vec<(usize, usize, String)> {
    let within: Vec<f64> = round_values().filter(|round| (scale.low..=scale.high).contains(round)).collect();
    let (decades, others): (Vec<f64>, Vec<f64>) =
        within.iter().partition(|round| round.log10().fract() < 1e-9);
    let mut ticks: Vec<(usize, usize, String)> = Vec::new();
    for round in decades.into_iter().chain(others) {
        let text = words::format_short_time(round as u64);
        let (width, column) = (text.chars().count(), scale.column_at(round));
        let start = column.saturating_sub(width / 2).min(usize::from(scale.width).saturating_sub(width));
        let apart = |(_, other, said): &(usize, usize, String)| {
            start >= other + said.chars().count() + 2 || start + width + 2 <= *other
        };
        if ticks.iter().all(apart) {
            ticks.push((column, start, text));
        }
    }
    ticks
}

/// Draws the marks of the quantiles above the bars, from the right, because the tail matters most.
fn draw_marks(
    scale: &HistogramPlotAxis,
    histogram: &Histogram,
    theme: Theme,
    plot: Rect,
    buffer: &mut Buffer,
) {
    let line = Rect { y: plot.y - 1, height: 1, ..plot };
    let marks = [
        ("max", histogram.max()),
        ("p99.9", histogram.tail_quantile(0.999)),
        ("p99", histogram.tail_quantile(0.99)),
        ("p50", histogram.quantile(0.5)),
    ];
    let mut limit = usize::from(plot.width);
    for (name, ns) in marks {
        let Some(ns) = ns else { continue };
        let column = scale.column_at(ns);
        let text = format!("{name}▾");
        let width = text.chars().count();
        // The arrow points at the column, if the text finds room before it.
        if column < limit && column + 1 >= width {
            let x = plot.x + (column + 1 - width) as u16;
            draw_text(buffer, Rect { x, width: width as u16, ..line }, 0, &text, theme.faint());
            limit = (column + 1 - width).saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_goes_from_round_to_round() {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::new(1000);
            values.iter().for_each(|value| histogram.record(*value));
            HistogramPlotAxis::for_histogram(&histogram, 40).map(|scale| (scale.low, scale.high))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3900, 412_000]), Some((2000.0, 500_000.0)));
        assert_eq!(of(&[5000]), Some((5000.0, 10_000.0)));
        assert_eq!(of(&[0, 1]), Some((1.0, 2.0)));
        // Beyond the last bucket, still on the axis.
        assert!(of(&[1, 1 << 60]).is_some_and(|(_, high)| high > (1u64 << 60) as f64));
    }

    #[test]
    fn every_value_is_in_one_column() {
        let mut histogram = Histogram::new(1000);
        for value in [1000, 1999, 2000, 9999, 1 << 50] {
            histogram.record(value);
        }
        let scale = HistogramPlotAxis { low: 1000.0, high: 10_000.0, width: 10 };
        let columns = scale.column_counts(&histogram);
        assert_eq!(columns, [1, 0, 0, 2, 0, 0, 0, 0, 0, 2]);
        assert_eq!((scale.column_at(1000.0), scale.column_at(5011.9), scale.column_at(5011.8)), (0, 7, 6));
    }

    #[test]
    fn a_single_event_is_seen_beside_a_million() {
        let heights = Heights::for_max_count(1_000_000, 10);
        assert_eq!(heights.eighths(0), 0);
        assert_eq!(heights.eighths(1), 4);
        assert_eq!(heights.eighths(1_000_000), 80);
        assert_eq!(Heights::for_max_count(0, 3).eighths(1), 12);
        assert_eq!([0, 2, 3, 6, 19].map(power), ["1", "100", "1k", "1M", "10E"]);
    }
}
