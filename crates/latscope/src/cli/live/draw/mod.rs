//! A model as a screen: pure. From top to bottom the head, warnings, a row for
//! each CPU, the largest of each second, the distribution, outliers, the keys.

use super::model::LiveModel;
use super::theme::{Theme, draw_text};
use super::view::LiveViewState;
use super::{plot, table, words};
use latscope_core::units::count_with_noun;
use latscope_engine::criteria::Standing;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// Draws all of it on an empty buffer.
pub(super) fn draw_model(model: &LiveModel, view: &LiveViewState, theme: Theme, buffer: &mut Buffer) {
    let parts = LiveScreenLayout::for_area(buffer.area, model, view);
    head(model, view, theme, parts.head, buffer);
    warnings(model, theme, parts.warnings, buffer);
    criteria(model, theme, parts.criteria, buffer);
    table::draw_table(model, view, theme, parts.table, buffer);
    plot::seconds(model, view.selected, theme, parts.seconds, buffer);
    plot::histogram(model, view.selected, theme, parts.histogram, buffer);
    if view.help {
        help(theme, parts.outliers, buffer);
    } else {
        outliers(model, theme, parts.outliers, buffer);
    }
    keys(&keys_of(view, hidden(model, view, parts.table.height)), theme, parts.keys, buffer);
}

/// Areas of the screen's parts. A part that finds no room is empty.
#[derive(Debug, PartialEq, Eq)]
struct LiveScreenLayout {
    head: Rect,
    warnings: Rect,
    criteria: Rect,
    table: Rect,
    seconds: Rect,
    histogram: Rect,
    outliers: Rect,
    keys: Rect,
}

/// Lines for outliers and for the seconds below which they say nothing.
const LEAST_OUTLIERS: u16 = 3;
const LEAST_SECONDS: u16 = 2;

impl LiveScreenLayout {
    fn for_area(area: Rect, model: &LiveModel, view: &LiveViewState) -> LiveScreenLayout {
        let roomy = area.height >= 28;
        let mut rest = area;
        let mut cut = |height: u16| {
            let part = Rect { height: height.min(rest.height), ..rest };
            rest = Rect { y: rest.y + part.height, height: rest.height - part.height, ..rest };
            part
        };
        let head = cut(2);
        let warnings = cut((model.warnings.len() as u16).min(if roomy { 3 } else { 1 }));
        let criteria = cut((model.standings.len() as u16).min(if roomy { 6 } else { 2 }));
        let left = area.height.saturating_sub(head.height + warnings.height + criteria.height + 1);
        let rows = model.choices() as u16 + 1;
        // Of many rows only so many are shown that the other parts find room.
        let others = LEAST_OUTLIERS + LEAST_SECONDS + plot::LEAST_ROWS;
        let room = if left > others + 2 { left - others } else { (left / 2).max(2) };
        let table = cut(rows.min(room).min(left));
        let left = left.saturating_sub(table.height);
        let outliers = if view.help { HELP.len() as u16 } else { (left / 4).clamp(LEAST_OUTLIERS, 12) };
        let outliers = outliers.min(left);
        let left = left - outliers;
        let seconds = cut(match left {
            0..LEAST_SECONDS => 0,
            LEAST_SECONDS..11 => LEAST_SECONDS,
            _ => 4,
        });
        let left = left - seconds.height;
        let histogram = cut(if left < plot::LEAST_ROWS { 0 } else { left.min(22) });
        let outliers = cut(outliers + left - histogram.height);
        LiveScreenLayout { head, warnings, criteria, table, seconds, histogram, outliers, keys: cut(1) }
    }
}

/// Writes a text at the right end of a row, if it leaves what is there.
fn draw_text_right(buffer: &mut Buffer, area: Rect, row: u16, taken: usize, text: &str, style: Style) {
    let width = text.chars().count();
    if taken + 2 + width <= usize::from(area.width) {
        let x = area.right() - width as u16;
        draw_text(buffer, Rect { x, width: width as u16, ..area }, row, text, style);
    }
}

/// Columns for what runs, before the time that is left is left out.
const LEAST_HEAD: usize = 16;

fn head(model: &LiveModel, view: &LiveViewState, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let state = view.drawing_state();
    let round = model.round().map(|round| format!("{round}  ")).unwrap_or_default();
    let mut time = format!("{state}{round}{}", model.position());
    if let Some(left) = model.remaining_text() {
        // What is left says more than how far it is.
        let wordings = [format!("{time}, {left}"), format!("{state}{left}"), time];
        let fits = |wording: &&String| wording.len() + LEAST_HEAD < area.width.into();
        time = wordings.iter().find(fits).unwrap_or(&wordings[2]).clone();
    }
    // The time is worth more than the end of a long line.
    let width = usize::from(area.width).saturating_sub(time.chars().count() + 2);
    let what: String = model.head.chars().take(width).collect();
    draw_text(buffer, area, 0, &what, theme.strong());
    draw_text_right(buffer, area, 0, what.chars().count(), &time, theme.strong());
    draw_text(buffer, area, 1, &state_of(model), Style::new());
}

/// State of the run: its progress, and the counts beside the distributions.
fn state_of(model: &LiveModel) -> String {
    let mut said = Vec::new();
    if let Some(share) = model.progress() {
        let done = (share * 20.0) as usize;
        said.push(format!("{}{}", "━".repeat(done), "─".repeat(20 - done)));
    }
    let whole = model
        .event_limit()
        .map(|events| format!(" of {}", words::format_short_count(events)))
        .unwrap_or_default();
    said.push(format!("n {}{whole}", words::format_short_count(model.all.histogram.count())));
    said.extend(model.all.rate.map(|rate| format!("{}/s", words::format_short_count(rate.round() as u64))));
    said.push(format!("missed {}", words::format_short_count(model.all.missed)));
    if model.all.early > 0 {
        said.push(format!("early {}", words::format_short_count(model.all.early)));
    }
    if let Some(threshold) = model.threshold {
        said.push(format!(
            "{} above {}",
            words::format_short_count(model.outlier_count),
            words::format_short_time(threshold)
        ));
    }
    said.join("  ")
}

fn warnings(model: &LiveModel, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let shown = usize::from(area.height);
    let hidden = model.warnings.len() - shown.min(model.warnings.len());
    for (row, text) in (0..).zip(model.warnings.iter().rev().take(shown)) {
        let more = if row == 0 && hidden > 0 { format!("(+{hidden}) ") } else { String::new() };
        draw_text(buffer, area, row, &format!("! {more}{text}"), theme.warning());
    }
}

/// Draws the state of the criteria, exceeded ones first.
fn criteria(model: &LiveModel, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let mut standings: Vec<&Standing> = model.standings.iter().collect();
    standings.sort_by_key(|standing| !standing.exceeded);
    for (row, standing) in (0..area.height).zip(standings) {
        let style = if standing.exceeded { theme.warning() } else { Style::new() };
        draw_text(buffer, area, row, &standing.status_line(), style);
    }
}

fn outliers(model: &LiveModel, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let title = match (model.outlier_count, model.threshold) {
        (0, Some(threshold)) => format!("no outliers above {} so far", words::format_short_time(threshold)),
        (0, None) if model.watching => "no outliers so far".to_owned(),
        (0, None) if model.is_of_cpus() => "outliers are not looked for: --threshold T, --blame".to_owned(),
        (0, None) => String::new(),
        _ => "outliers, the latest first".to_owned(),
    };
    draw_text(buffer, area, 0, &title, theme.faint());
    for (row, outlier) in (1..area.height).zip(&model.outliers) {
        let time = words::time_of_day(theme.epoch, outlier.at);
        draw_text(buffer, area, row, &format!("{time}  {}", words::format_outlier(outlier)), Style::new());
    }
}

const HELP: [&str; 7] = [
    "tab, arrows   choose the row whose seconds and distribution are shown",
    "p             stop drawing, not measuring; again: go on",
    "q, Ctrl-C     end now, with the summary",
    "Ctrl-L        draw all of it anew",
    "max age       time since the maximum; times of day are UTC, as in results",
    "-             fewer than ten values lie above: too few for this quantile",
    "h             back to the outliers",
];

fn help(theme: Theme, area: Rect, buffer: &mut Buffer) {
    for (row, text) in (0..).zip(HELP) {
        draw_text(buffer, area, row, text, theme.strong());
    }
}

/// Returns the keys, with the rows for which there is no room.
fn keys_of(view: &LiveViewState, hidden: Option<String>) -> String {
    let pause = view.pause_key();
    match hidden {
        None => format!("q end with the summary  tab choose  {pause}  h help"),
        Some(hidden) => format!("q end  tab choose: {hidden}  {pause}  h help"),
    }
}

/// Returns in words how many rows are not shown: `2 more CPUs`.
fn hidden(model: &LiveModel, view: &LiveViewState, height: u16) -> Option<String> {
    let what = if model.is_of_cpus() { "more CPU" } else { "more row" };
    let hidden = table::hidden(model, view, height) as u64;
    (hidden > 0).then(|| count_with_noun(hidden, what))
}

fn keys(keys: &str, theme: Theme, area: Rect, buffer: &mut Buffer) {
    draw_text(buffer, area, 0, keys, theme.faint());
}

#[cfg(test)]
mod tests;
