//! A document as Markdown, for issues and step summaries.

use super::{DocumentBlock, DocumentTable, ViewDocument};
use crate::column::{CellAlignment, MARKDOWN, TableColumn};
use crate::style::{BOLD, DIM, PLAIN};
use crate::styled::{Text, strip_controls};

impl ViewDocument {
    /// Returns the document as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        let mut in_list = false;
        for part in self.blocks_in(MARKDOWN) {
            let is_item = matches!(part, DocumentBlock::Item(..) | DocumentBlock::Led(..));
            if !(out.is_empty() || matches!(part, DocumentBlock::Gap) || in_list && is_item) {
                out.push('\n');
            }
            in_list = is_item || in_list && matches!(part, DocumentBlock::Gap);
            out += &block_markdown(part);
        }
        out
    }
}

fn block_markdown(part: &DocumentBlock) -> String {
    match part {
        DocumentBlock::Heading(level, text, about) => {
            let about = escape(&about.plain_text());
            let about = if about.is_empty() { about } else { format!("\n{about}\n") };
            format!("{} {}\n{about}", "#".repeat(usize::from(*level) + 1), escape(text))
        }
        DocumentBlock::Text(PLAIN | DIM, text) => format!("{}\n", escape(text)),
        DocumentBlock::Text(_, text) => format!("**{}**\n", escape(text)),
        DocumentBlock::Item(mark, text) => format!("- {}{}\n", mark.word, escape(text)),
        DocumentBlock::Led(lead, text) => format!("- {}  {}\n", escape(lead), escape(text)),
        DocumentBlock::Table(table) => table.to_markdown(),
        DocumentBlock::Details(_, parts) => parts.to_markdown(),
        DocumentBlock::Figure(_) | DocumentBlock::Gap => String::new(),
    }
}

impl DocumentTable {
    /// Returns the table, and the notes on it.
    pub fn to_markdown(&self) -> String {
        let columns: Vec<&TableColumn> = self.columns_in(MARKDOWN).collect();
        let line = |cell: &dyn Fn(&TableColumn) -> String| {
            format!("|{}\n", columns.iter().map(|column| cell(column)).collect::<String>())
        };
        let mut out = line(&|column| format!(" {} |", escape(column.heading.plain_text().trim())));
        out += &line(&|column| if column.side == CellAlignment::Right { "--:|" } else { ":--|" }.to_owned());
        for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
            out += &line(&|column| format!(" {} |", cell_markdown(&column.cells[row])));
        }
        let meanings = columns.iter().map(|column| &column.meaning).filter(|text| !text.is_empty());
        let meanings = meanings.cloned().collect::<Vec<String>>().join(" · ");
        let meanings = Some(meanings).filter(|text| !text.is_empty());
        for text in self.notes.iter().chain(&meanings) {
            out += &format!("\n{}\n", escape(text));
        }
        out
    }
}

fn cell_markdown(text: &Text) -> String {
    let piece = |(style, text): (_, &str)| match escape(text) {
        text if style == BOLD && !text.is_empty() => format!("**{}**", text.trim()),
        text => text,
    };
    text.pieces().map(piece).collect::<String>().trim().to_owned()
}

/// Returns a text in which nothing is markup for Markdown or HTML, or a mention for a site.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in strip_controls(text).chars() {
        match c {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '@' => out += "&#64;",
            '|' | '*' | '_' | '`' | '\\' | '[' | ']' | '~' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_title_stays_text() {
        assert_eq!(escape("a|b <c> *d*\n@e"), "a\\|b &lt;c&gt; \\*d\\* &#64;e");
    }
}
