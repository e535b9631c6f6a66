//! The rows: a line for each measuring thread, and one for all.

use super::model::{LiveModel, LiveThreadRow};
use super::theme::{Theme, draw_text};
use super::view::LiveViewState;
use super::words;
use latscope_core::units::format_time;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// A column: its title, its width, and what it says of a row.
struct Column {
    title: &'static str,
    width: usize,
    text: fn(&LiveModel, &LiveThreadRow) -> String,
    alarming: fn(&LiveModel, &LiveThreadRow) -> bool,
}

const fn text_column(
    title: &'static str,
    width: usize,
    text: fn(&LiveModel, &LiveThreadRow) -> String,
) -> Column {
    Column { title, width, text, alarming: |_, _| false }
}

const COLUMNS: [Column; 8] = [
    text_column("n", 7, |_, row| words::format_short_count(row.histogram.count())),
    text_column("min", 8, |_, row| or_dash(row.histogram.min())),
    text_column("p50", 8, |_, row| or_dash(row.histogram.quantile(0.5))),
    text_column("p99", 8, |_, row| or_dash(row.histogram.tail_quantile(0.99))),
    text_column("p99.9", 8, |_, row| or_dash(row.histogram.tail_quantile(0.999))),
    Column { alarming: is_above_threshold, ..text_column("max", 8, |_, row| or_dash(row.histogram.max())) },
    text_column("max age", 8, |model, row| model.age_of_max(row).map_or("-".to_owned(), words::format_clock)),
    Column {
        alarming: |_, row| row.missed > 0,
        ..text_column("missed", 7, |_, row| words::format_short_count(row.missed))
    },
];

/// Columns that a narrow screen can do without, in this order.
const DISPENSABLE: [&str; 6] = ["n", "max age", "min", "p99", "p99.9", "missed"];

fn is_above_threshold(model: &LiveModel, row: &LiveThreadRow) -> bool {
    row.histogram.max().zip(model.threshold).is_some_and(|(max, threshold)| max > threshold as f64)
}

fn or_dash(ns: Option<f64>) -> String {
    ns.map_or("-".to_owned(), format_time)
}

/// Draws as many rows as there is room for, the chosen one among them.
pub(super) fn draw_table(
    model: &LiveModel,
    view: &LiveViewState,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let longest =
        model.rows.iter().chain([&model.all]).map(|row| row.label.chars().count()).max().unwrap_or(0);
    // On a narrow screen names are worth more than columns.
    let most = if area.width < 60 { area.width / 2 } else { area.width / 3 };
    let first = 2 + longest.max(3).min(usize::from(most).max(8));
    let columns = fitting(usize::from(area.width), first);
    let gap = gap(usize::from(area.width), first, &columns);
    let heading = if model.is_of_cpus() { "CPU" } else { "row" };
    let mut title = format!("  {heading:<width$}", width = first - 2);
    columns
        .iter()
        .for_each(|column| title += &format!("{:>width$}", column.title, width = column.width + gap));
    draw_text(buffer, area, 0, &title, theme.faint());
    let room = usize::from(area.height.saturating_sub(1));
    for (line, number) in (1..area.height).zip(visible_rows(model, view.selected, room)) {
        let (row, is_chosen) = (model.row_at(number), number == view.selected && model.choices() > 1);
        let style = if is_chosen { theme.strong() } else { Style::new() };
        let mark = if is_chosen { '▸' } else { ' ' };
        draw_text(
            buffer,
            area,
            line,
            &format!("{mark} {}", words::shorten_name(&row.label, first - 2)),
            style,
        );
        let mut x = first;
        for column in &columns {
            let style = if (column.alarming)(model, row) { theme.alarm() } else { style };
            let text = format!("{:>width$}", (column.text)(model, row), width = column.width + gap);
            draw_text(buffer, right_of(area, x), line, &text, style);
            x += column.width + gap;
        }
    }
}

/// Returns how many rows of single CPUs a table of this height does not show.
pub(super) fn hidden(model: &LiveModel, view: &LiveViewState, height: u16) -> usize {
    let room = usize::from(height.saturating_sub(1));
    let seen = visible_rows(model, view.selected, room).into_iter().filter(|number| *number > 0).count();
    (model.choices() - 1).saturating_sub(seen)
}

/// The numbers of the rows that are seen in `room` lines: the chosen one, or else what is measured now, and at last all
/// of them together, number 0.
fn visible_rows(model: &LiveModel, chosen: usize, room: usize) -> Vec<usize> {
    if room <= 1 {
        return vec![chosen];
    }
    let seen = match (chosen, model.in_view()) {
        (0, 0) => model.choices() - 1,
        (0, present) => present,
        _ => chosen,
    };
    let above = (1..model.choices()).skip(seen.saturating_sub(room - 1)).take(room - 1);
    above.chain([0]).collect()
}

/// Room that a wide screen leaves between the columns.
fn gap(width: usize, first: usize, columns: &[&Column]) -> usize {
    let least = first + columns.iter().map(|column| column.width).sum::<usize>();
    (width.saturating_sub(least) / columns.len().max(1)).min(3)
}

fn right_of(area: Rect, x: usize) -> Rect {
    let x = (x as u16).min(area.width);
    Rect { x: area.x + x, width: area.width - x, ..area }
}

fn fitting(width: usize, first: usize) -> Vec<&'static Column> {
    let mut columns: Vec<&Column> = COLUMNS.iter().collect();
    for title in DISPENSABLE {
        if first + columns.iter().map(|column| column.width).sum::<usize>() <= width {
            break;
        }
        columns.retain(|column| column.title != title);
    }
    columns
}
