//! Text of known width: styled pieces, wrapped prose.

use super::DisplayOptions;
use super::style::PLAIN;
use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Pieces of text, each in its style. Control characters are replaced: a result file from elsewhere must not
/// move the cursor.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    pieces: Vec<(Style, String)>,
    /// The value with all digits, if the text is rounded or is otherwise not what CSV has.
    exact: Option<String>,
}

impl<T: AsRef<str>> From<T> for Text {
    fn from(text: T) -> Text {
        let is_changed = text.as_ref().contains(char::is_control);
        Text { exact: is_changed.then(|| text.as_ref().to_owned()), ..Text::plain(text) }
    }
}

impl Text {
    /// Returns text in the plain style.
    pub fn plain(text: impl AsRef<str>) -> Text {
        Text::in_style(PLAIN, text)
    }

    /// Text in one style.
    pub(crate) fn in_style(style: Style, text: impl AsRef<str>) -> Text {
        Text::default().with_piece(style, text)
    }

    /// Returns the text with more text in `style` after it.
    pub fn with_piece(mut self, style: Style, text: impl AsRef<str>) -> Text {
        if !text.as_ref().is_empty() {
            self.pieces.push((style, strip_controls(text.as_ref())));
        }
        self
    }

    /// The text without its styles.
    pub fn plain_text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns the text with the value that it stands for in CSV.
    pub fn exact(self, value: impl ToString) -> Text {
        Text { exact: Some(value.to_string()), ..self }
    }

    /// Returns what CSV has of the text.
    pub fn field(&self) -> String {
        self.exact.clone().unwrap_or_else(|| self.plain_text())
    }

    /// The pieces of the text, each with its style.
    pub fn pieces(&self) -> impl Iterator<Item = (Style, &str)> {
        self.pieces.iter().map(|(style, text)| (*style, text.as_str()))
    }

    /// Returns true if nothing is in the text.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the number of columns that the text takes; if it has several lines, those of the widest line.
    pub fn display_width(&self) -> usize {
        let width = |line: &Text| line.pieces.iter().map(|(_, text)| text.width()).sum();
        self.split_lines().iter().map(width).max().unwrap_or(0)
    }

    /// Returns the lines into which the text is broken.
    pub fn split_lines(&self) -> Vec<Text> {
        let mut lines = vec![Text::default()];
        for (style, text) in &self.pieces {
            for (at, part) in text.split(BREAK).enumerate() {
                if at > 0 {
                    lines.push(Text::default());
                }
                let line = lines.pop().unwrap_or_default();
                lines.push(line.with_piece(*style, part));
            }
        }
        lines
    }

    /// Returns the text with `other` after it.
    pub fn append_text(mut self, other: Text) -> Text {
        self.pieces.extend(other.pieces);
        self
    }

    /// Returns the whole text in lines of at most `width` columns, in the style of its begin. Lines break
    /// between words; a word that is wider than `width` is broken, too.
    pub fn wrap_to_width(&self, width: usize) -> Text {
        if self.display_width() <= width {
            return self.clone();
        }
        let style = self.pieces.first().map_or(PLAIN, |(style, _)| *style);
        let indent = if width < 4 * INDENT { 0 } else { INDENT };
        let lines = break_lines(&self.plain_text().replace(BREAK, " "), width.max(1), indent);
        let text = lines.join(&format!("{BREAK}{}", " ".repeat(indent)));
        Text { pieces: vec![(style, text)], exact: None }
    }

    /// Returns the text in lines of at most `width` columns, with `aside` at the right end of the last line.
    /// Without room there, `aside` has a line of its own: it never stands in the middle of a name.
    pub fn with_aside(&self, style: Style, aside: &str, width: usize) -> Text {
        if aside.is_empty() {
            return self.wrap_to_width(width);
        }
        let name = self.wrap_to_width(width);
        let last = name.split_lines().last().map_or(0, Text::display_width);
        let taken = Text::plain(aside).display_width();
        let mut text = name;
        let before = if last + 2 + taken > width {
            text.pieces.push((PLAIN, BREAK.to_string()));
            width.saturating_sub(taken)
        } else {
            width - last - taken
        };
        text.with_piece(PLAIN, " ".repeat(before)).with_piece(style, aside)
    }

    /// Returns true if the text is empty or consists of blanks only.
    pub fn is_blank(&self) -> bool {
        self.pieces.iter().all(|(_, text)| text.trim().is_empty())
    }

    /// Drops blanks at the end.
    pub fn trim_end(&mut self) {
        while let Some((_, text)) = self.pieces.last_mut() {
            text.truncate(text.trim_end().len());
            if !text.is_empty() {
                break;
            }
            self.pieces.pop();
        }
    }

    pub fn write_pieces(&self, out: &mut String, color: bool) {
        for (style, text) in &self.pieces {
            if color && *style != PLAIN {
                out.push_str(&format!("{style}{text}{style:#}"));
            } else {
                out.push_str(text);
            }
        }
    }
}

/// Text without control characters.
pub(super) fn strip_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the longest start of `text` that takes at most `width` columns.
fn prefix(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// Separator of the lines of a text. No text contains it otherwise, since control characters are replaced.
const BREAK: char = '\n';

/// Blanks before the further lines of a name.
const INDENT: usize = 2;

/// A text by itself, in lines as wide as the terminal.
pub(super) fn wrap_text(text: &Text, options: &DisplayOptions) -> String {
    let mut out = String::new();
    for line in text.wrap_to_width(options.width).split_lines() {
        line.write_pieces(&mut out, options.color);
        out.push('\n');
    }
    out
}

/// Prose wrapped at blanks to the width of the terminal: `first` before the first line,
/// as many blanks before the others. A word longer than a line is split.
pub(super) fn wrap(first: &Text, prose: &str, style: Style, options: &DisplayOptions) -> String {
    let indent = first.display_width();
    let room = options.width.saturating_sub(indent).max(8);
    let mut out = String::new();
    for (at, content) in break_lines(&strip_controls(prose), room, 0).iter().enumerate() {
        match at {
            0 => first.write_pieces(&mut out, options.color),
            _ => out.push_str(&" ".repeat(indent)),
        }
        Text::in_style(style, content).write_pieces(&mut out, options.color);
        out.push('\n');
    }
    out
}

/// Fills lines of this width with parts, as many as fit beside each other.
pub(super) fn fill_lines(parts: Vec<String>, separator: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let taken = separator.width() + part.width();
        match lines.last_mut().filter(|line| line.width() + taken <= width) {
            Some(line) => *line += &format!("{separator}{part}"),
            None => lines.push(part),
        }
    }
    lines
}

/// Units that stay on the line of the number before them.
const UNITS: [&str; 9] = ["%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB"];

/// The words of prose; a unit stays with its number.
fn split_words(prose: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in prose.split_whitespace() {
        let unit = word.trim_end_matches([',', '.', ':', ';', ')']);
        match words.last_mut().filter(|last| last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) if UNITS.contains(&unit) => *number += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Prose as lines of at most `room` columns, all but the first by `indent` shorter.
fn break_lines(prose: &str, room: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in split_words(prose) {
        let mut word = word.as_str();
        while !word.is_empty() {
            let room = if lines.len() > 1 { room - indent } else { room };
            let line = lines.last_mut().expect("there is always a line");
            let gap = usize::from(!line.is_empty());
            let left = room.saturating_sub(line.width() + gap);
            // Of a long word only what may stand in a line is looked at.
            if prefix(word, left) == word && word.width() <= left {
                line.push_str(&" "[..gap]);
                line.push_str(word);
                break;
            }
            if gap == 1 {
                lines.push(String::new());
                continue;
            }
            // A wide character may have no room in the narrowest of lines.
            let part = Some(prefix(word, room)).filter(|part| !part.is_empty());
            let part = part.unwrap_or_else(|| &word[..word.chars().next().map_or(0, char::len_utf8)]);
            line.push_str(part);
            word = &word[part.len()..];
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each part of it was once measured with all that follows: half a million letters took 13 s.
    #[test]
    fn a_word_of_any_length_is_broken() {
        let lines = break_lines(&"2".repeat(4_000_000), 80, 2);
        assert_eq!((lines.len(), lines[0].len(), lines[1].len()), (1 + 3_999_920usize.div_ceil(78), 80, 78));
    }

    #[test]
    fn a_shortened_name_is_whole() {
        let name = Text::plain("read, open, read, close, 64 KiB, tmpfs");
        let lines: Vec<String> = name.wrap_to_width(27).split_lines().iter().map(Text::plain_text).collect();
        assert_eq!(lines, ["read, open, read, close,", "  64 KiB, tmpfs"]);
        assert_eq!(name.wrap_to_width(27).display_width(), 24);
        assert_eq!(name.wrap_to_width(80).display_width(), name.display_width());
    }

    #[test]
    fn what_is_beside_a_name_is_not_in_its_middle() {
        let lines = |width| {
            let text = Text::plain("sum of 500 kB, an element").with_aside(PLAIN, "31.1 GB/s", width);
            text.split_lines().iter().map(Text::plain_text).collect::<Vec<String>>()
        };
        assert_eq!(lines(36), ["sum of 500 kB, an element  31.1 GB/s"]);
        assert_eq!(lines(33), ["sum of 500 kB, an element", "                        31.1 GB/s"]);
        assert_eq!(lines(22), ["sum of 500 kB, an", "  element    31.1 GB/s"]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = wrap_text(&Text::plain("a\u{1b}[31mb\nc"), &DisplayOptions::default());
        assert_eq!(text, "a [31mb c\n");
    }

    #[test]
    fn styles_do_not_count() {
        let bold = Text::in_style(super::super::style::BOLD, "abc");
        assert_eq!(bold.display_width(), 3);
        assert!(
            wrap_text(&bold, &DisplayOptions { color: true, ..DisplayOptions::default() })
                .contains("\u{1b}[1mabc\u{1b}[0m")
        );
    }

    #[test]
    fn a_unit_stays_with_its_number() {
        let options = DisplayOptions { width: 18, ..DisplayOptions::default() };
        let text = wrap(&Text::default(), "it took about 3.41 ms, of which 12 % are known", PLAIN, &options);
        assert_eq!(text, "it took about\n3.41 ms, of which\n12 % are known\n");
    }

    proptest! {
        #[test]
        fn wrapped_prose_keeps_its_words_and_its_width(
            words in proptest::collection::vec("[a-zé漢]{1,12}", 0..40),
            width in 20usize..60,
        ) {
            let prose = words.join(" ");
            let wrapped = wrap(&Text::plain("  - "), &prose, PLAIN, &DisplayOptions { width, ..DisplayOptions::default() });
            for line in wrapped.lines() {
                prop_assert!(line.width() <= width, "{:?}", line);
            }
            let whole: String = wrapped.replacen("  - ", "", 1).split_whitespace().collect();
            prop_assert_eq!(whole, words.concat());
        }
    }
}
