//! Styles of the parts of a table.

use anstyle::{AnsiColor, Style};

pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const HEADING: Style = Style::new().bold().underline();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(super) const ALARM: Style = AnsiColor::Red.on_default().bold();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
const FASTER: Style = AnsiColor::Green.on_default();
const SLOWER: Style = AnsiColor::Red.on_default();
const MAGNITUDES: [Style; 4] = [
    AnsiColor::Cyan.on_default(),
    AnsiColor::Green.on_default(),
    AnsiColor::Yellow.on_default(),
    AnsiColor::Red.on_default(),
];

/// The colour of a duration's unit: ns, µs, ms, s.
pub(super) fn magnitude(ns: f64) -> Style {
    MAGNITUDES[[1e3, 1e6, 1e9].iter().filter(|limit| ns >= **limit).count()]
}

/// Returns the colour of a ratio reference / this machine; within a tenth of 1 no difference is claimed.
pub(super) fn ratio_style(ratio: f64) -> Style {
    match ratio {
        r if r > 1.1 => FASTER,
        r if r < 1.0 / 1.1 => SLOWER,
        _ => PLAIN,
    }
}
