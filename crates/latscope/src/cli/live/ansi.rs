//! A screen as the bytes that bring a terminal to it: only what changed.

use anstyle::Style;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::Color;
use std::fmt::Write;

/// Returns the bytes that change a terminal that shows `before` to `now`. If the sizes differ, they clear the terminal
/// first, since its contents are then unknown.
pub(super) fn changes(before: &Buffer, now: &Buffer) -> String {
    let mut out = String::new();
    if before.area != now.area {
        out.push_str("\x1b[0m\x1b[2J");
        write_cells(&mut out, &Buffer::empty(now.area).diff(now));
    } else {
        write_cells(&mut out, &before.diff(now));
    }
    out
}

fn write_cells(out: &mut String, cells: &[(u16, u16, &Cell)]) {
    let (mut cursor, mut style) = (None, Style::new());
    for &(x, y, cell) in cells {
        if cursor != Some((x, y)) {
            let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
        }
        let wanted = style_of(cell);
        if wanted != style {
            let _ = write!(out, "\x1b[0m{}", wanted.render());
            style = wanted;
        }
        out.push_str(cell.symbol());
        // Where a wide symbol leaves the cursor is left to the next move.
        cursor = Some((x + 1, y));
    }
    if style != Style::new() {
        out.push_str("\x1b[0m");
    }
}

fn style_of(cell: &Cell) -> Style {
    let mut style = cell.style();
    style.fg = style.fg.filter(|color| *color != Color::Reset);
    style.bg = style.bg.filter(|color| *color != Color::Reset);
    style.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::{Modifier, Style};
    use std::num::NonZero;

    fn screen(width: u16, lines: &[&str]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, lines.len() as u16));
        for (y, line) in (0..).zip(lines) {
            buffer.set_string(0, y, line, Style::new());
        }
        buffer
    }

    fn terminal(width: u16, height: u16) -> vt100::Parser {
        let some = |size| NonZero::new(size).unwrap();
        vt100::Parser::new(some(height), some(width), 0)
    }

    /// Returns the text on a terminal of this size after these bytes.
    fn shown(width: u16, height: u16, bytes: &[&str]) -> String {
        let mut terminal = terminal(width, height);
        bytes.iter().for_each(|bytes| terminal.process(bytes.as_bytes()));
        let lines: Vec<String> =
            terminal.screen().rows(0, width).map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n")
    }

    #[test]
    fn only_what_changed_is_written() {
        let (before, now) = (screen(8, &["abcd", "12"]), screen(8, &["abXd", "12"]));
        assert_eq!(changes(&before, &now), "\x1b[1;3HX");
        assert_eq!(changes(&now, &now), "");
    }

    #[test]
    fn a_terminal_follows_from_screen_to_screen() {
        let empty = Buffer::empty(Rect::ZERO);
        let first = screen(8, &["µs 日本x", "▁▂█", ""]);
        let second = screen(8, &["µs 日x", "▁", "end"]);
        let bytes = [changes(&empty, &first), changes(&first, &second)];
        assert_eq!(shown(8, 3, &[&bytes[0]]), "µs 日本x\n▁▂█\n");
        assert_eq!(shown(8, 3, &[&bytes[0], &bytes[1]]), "µs 日x\n▁\nend");
        // A smaller terminal begins anew.
        let third = screen(4, &["ok"]);
        assert_eq!(shown(4, 1, &[&changes(&second, &third)]), "ok");
    }

    #[test]
    fn styles_end_where_they_should() {
        let mut now = screen(6, &["abcdef"]);
        let alarm = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        now.set_string(2, 0, "cd", alarm);
        let bytes = changes(&Buffer::empty(now.area), &now);
        let mut terminal = terminal(6, 1);
        terminal.process(bytes.as_bytes());
        let bold = |column| terminal.screen().cell(0, column).unwrap().bold();
        assert_eq!([1, 2, 3, 4].map(bold), [false, true, true, false]);
        let color = terminal.screen().cell(0, 3).unwrap().fgcolor();
        assert_eq!(color, vt100::Color::Idx(1));
        // The last cell, and what is written next, is plain again.
        assert!(bytes.ends_with("ef"));
    }
}
