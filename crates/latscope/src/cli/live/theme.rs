//! The styles of the live screen, and writing text into it.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

/// Properties that do not change from screen to screen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Theme {
    /// True if colours are wanted.
    pub color: bool,
    /// Unix time of the epoch of the run, ns.
    pub epoch: u64,
}

impl Theme {
    fn color(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// Headings, and the row that is chosen.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Style for details of less interest.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Style for values that are as they should be.
    pub fn calm(self) -> Style {
        self.color(Color::Cyan)
    }

    /// Style for facts that a reader must know.
    pub fn warning(self) -> Style {
        self.color(Color::Yellow)
    }

    /// Style for values above the threshold.
    pub fn alarm(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }
}

/// Writes a text into a row of an area, cut at its right edge; rows outside
/// are left out.
pub(super) fn draw_text(buffer: &mut Buffer, area: Rect, row: u16, text: &str, style: Style) {
    if row < area.height && area.width > 0 {
        buffer.set_stringn(area.x, area.y + row, text, usize::from(area.width), style);
    }
}
