//! Text of known width on a terminal: styled cells, columns, wrapped prose.

use super::style::PLAIN;
use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Pieces of text, each in its style. Control characters are replaced: a result file from elsewhere must not
/// move the cursor.
#[derive(Debug, Clone, Default)]
pub(super) struct Text(Vec<(Style, String)>);

impl Text {
    /// Returns text in the plain style.
    pub fn plain(text: impl AsRef<str>) -> Text {
        Text::styled(PLAIN, text)
    }

    /// Text in one style.
    pub(crate) fn styled(style: Style, text: impl AsRef<str>) -> Text {
        Text::default().with(style, text)
    }

    /// Returns the text with more text in `style` after it.
    pub fn with(mut self, style: Style, text: impl AsRef<str>) -> Text {
        if !text.as_ref().is_empty() {
            self.0.push((style, clean(text.as_ref())));
        }
        self
    }

    /// The text without its styles.
    pub fn content(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns the number of columns that the text takes; if it has several lines, those of the widest line.
    pub fn width(&self) -> usize {
        let width = |line: &Text| line.0.iter().map(|(_, text)| text.width()).sum();
        self.lines().iter().map(width).max().unwrap_or(0)
    }

    /// Returns the lines into which the text is broken.
    fn lines(&self) -> Vec<Text> {
        let mut lines = vec![Text::default()];
        for (style, text) in &self.0 {
            for (at, part) in text.split(BREAK).enumerate() {
                if at > 0 {
                    lines.push(Text::default());
                }
                let line = lines.pop().unwrap_or_default();
                lines.push(line.with(*style, part));
            }
        }
        lines
    }

    /// Returns the text with `other` after it.
    pub fn and(mut self, other: Text) -> Text {
        self.0.extend(other.0);
        self
    }

    /// Returns the whole text in lines of at most `width` columns, in the style of its begin. Lines break
    /// between words; a word that is wider than `width` is broken, too.
    pub fn shortened(&self, width: usize) -> Text {
        if self.width() <= width {
            return self.clone();
        }
        let style = self.0.first().map_or(PLAIN, |(style, _)| *style);
        let indent = if width < 4 * INDENT { 0 } else { INDENT };
        let lines = broken(&self.content().replace(BREAK, " "), width.max(1), indent);
        Text(vec![(style, lines.join(&format!("{BREAK}{}", " ".repeat(indent))))])
    }

    /// Returns the text in lines of at most `width` columns, with `aside` at the right end of the last line.
    /// Without room there, `aside` has a line of its own: it never stands in the middle of a name.
    pub fn with_aside(&self, style: Style, aside: &str, width: usize) -> Text {
        if aside.is_empty() {
            return self.shortened(width);
        }
        let name = self.shortened(width);
        let last = name.lines().last().map_or(0, Text::width);
        let taken = Text::plain(aside).width();
        let mut text = name;
        let before = if last + 2 + taken > width {
            text.0.push((PLAIN, BREAK.to_string()));
            width.saturating_sub(taken)
        } else {
            width - last - taken
        };
        text.with(PLAIN, " ".repeat(before)).with(style, aside)
    }

    /// Returns true if the text is empty or consists of blanks only.
    fn is_blank(&self) -> bool {
        self.0.iter().all(|(_, text)| text.trim().is_empty())
    }

    /// Drops blanks at the end.
    fn trim_end(&mut self) {
        while let Some((_, text)) = self.0.last_mut() {
            text.truncate(text.trim_end().len());
            if !text.is_empty() {
                break;
            }
            self.0.pop();
        }
    }

    fn write(&self, out: &mut String, color: bool) {
        for (style, text) in &self.0 {
            if color && *style != PLAIN {
                out.push_str(&format!("{style}{text}{style:#}"));
            } else {
                out.push_str(text);
            }
        }
    }
}

/// Text without control characters.
pub(super) fn clean(text: &str) -> String {
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

/// Minimum width of the first column of a grid.
const SHORTEST: usize = 14;

/// Separator of the lines of a text. No text contains it otherwise, since control characters are replaced.
const BREAK: char = '\n';

/// Blanks before the further lines of a name.
const INDENT: usize = 2;

/// Side of its column on which a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// Column of a grid: its heading and a cell for each row.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub heading: Text,
    pub side: Side,
    pub cells: Vec<Text>,
}

impl Column {
    pub fn new(heading: Text, side: Side, cells: Vec<Text>) -> Column {
        Column { heading, side, cells }
    }

    /// Returns the columns that the widest cell or the heading takes.
    pub fn width(&self) -> usize {
        let cells = self.cells.iter().map(Text::width).max().unwrap_or(0);
        cells.max(self.heading.width())
    }

    /// Returns true if all cells of the column are empty.
    pub fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.0.is_empty())
    }
}

/// Returns columns side by side with `gap` blanks between them, and a rule under the headings. No line is wider
/// than `width`: the names in the first column are broken into lines, and if that is not enough, the last
/// columns are left out. A line below says so.
pub(super) fn grid(columns: &[Column], gap: usize, width: usize, color: bool) -> String {
    let mut widths: Vec<usize> = columns.iter().map(Column::width).collect();
    let sum = |widths: &[usize]| widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1);
    while widths.len() > 1 && sum(&widths) - widths[0] + widths[0].min(SHORTEST) > width {
        widths.pop();
    }
    let (columns, left_out) = columns.split_at(widths.len());
    let total = sum(&widths);
    if let Some(first) = widths.first_mut() {
        *first = first.saturating_sub(total.saturating_sub(width)).max(1);
    }
    let mut out = String::new();
    let headings: Vec<&Text> = columns.iter().map(|c| &c.heading).collect();
    row(&mut out, &headings, columns, &widths, gap, color);
    let rule = Text::styled(super::style::DIM, "─".repeat(total.min(width)));
    rule.write(&mut out, color);
    out.push('\n');
    for at in 0..columns.first().map_or(0, |c| c.cells.len()) {
        let cells: Vec<&Text> = columns.iter().map(|c| &c.cells[at]).collect();
        row(&mut out, &cells, columns, &widths, gap, color);
    }
    let left_out: Vec<String> = left_out.iter().map(|column| column.heading.content()).collect();
    let left_out: Vec<&str> =
        left_out.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    if !left_out.is_empty() {
        let text = format!("In a wider terminal also: {}.", left_out.join(", "));
        out += &wrap(&Text::default(), &text, super::style::DIM, width, color);
    }
    out
}

/// Leaves out columns until `width` is enough with the first column as narrow as it may be: the columns of
/// `least`, by their headings. Headings in one entry belong together and are left out together.
pub(super) fn leave_out(columns: &mut Vec<Column>, least: &[&[&str]], gap: usize, width: usize) {
    for headings in least {
        let all: usize = columns.iter().map(|column| column.width() + gap).sum();
        let first = columns.first().map_or(0, Column::width);
        if all <= width + gap + first.saturating_sub(SHORTEST) {
            return;
        }
        columns.retain(|column| !headings.contains(&column.heading.content().as_str()));
    }
}

/// Writes a row of cells, in as many lines as the cell with the most lines has.
fn row(out: &mut String, cells: &[&Text], columns: &[Column], widths: &[usize], gap: usize, color: bool) {
    let cells: Vec<Vec<Text>> =
        cells.iter().zip(widths).map(|(cell, width)| cell.shortened(*width).lines()).collect();
    for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
        let cells: Vec<Text> = cells.iter().map(|lines| lines.get(at).cloned().unwrap_or_default()).collect();
        line(out, cells, columns, widths, gap, color);
    }
}

fn line(out: &mut String, cells: Vec<Text>, columns: &[Column], widths: &[usize], gap: usize, color: bool) {
    let mut blanks = 0;
    let last = cells.iter().rposition(|cell| !cell.is_blank());
    for (at, ((mut cell, column), width)) in cells.into_iter().zip(columns).zip(widths).enumerate() {
        let free = width.saturating_sub(cell.width());
        if Some(at) >= last {
            cell.trim_end();
        }
        let (before, after) = if column.side == Side::Right { (free, 0) } else { (0, free) };
        blanks += before;
        if cell.width() > 0 {
            out.push_str(&" ".repeat(blanks));
            cell.write(out, color);
            blanks = 0;
        }
        blanks += after + gap;
    }
    out.push('\n');
}

/// A text by itself, in lines of at most `width` columns.
pub(super) fn single(text: &Text, width: usize, color: bool) -> String {
    let mut out = String::new();
    for line in text.shortened(width).lines() {
        line.write(&mut out, color);
        out.push('\n');
    }
    out
}

/// Prose wrapped at blanks to `width` columns: `first` before the first line,
/// as many blanks before the others. A word longer than a line is split.
pub(super) fn wrap(first: &Text, prose: &str, style: Style, width: usize, color: bool) -> String {
    let indent = first.width();
    let room = width.saturating_sub(indent).max(8);
    let mut out = String::new();
    for (at, content) in broken(&clean(prose), room, 0).iter().enumerate() {
        match at {
            0 => first.write(&mut out, color),
            _ => out.push_str(&" ".repeat(indent)),
        }
        Text::styled(style, content).write(&mut out, color);
        out.push('\n');
    }
    out
}

/// Units that stay on the line of the number before them.
const UNITS: [&str; 9] = ["%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB"];

/// The words of prose; a unit stays with its number.
fn words(prose: &str) -> Vec<String> {
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
fn broken(prose: &str, room: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words(prose) {
        let mut word = word.as_str();
        while !word.is_empty() {
            let room = if lines.len() > 1 { room - indent } else { room };
            let line = lines.last_mut().expect("there is always a line");
            let gap = usize::from(!line.is_empty());
            if line.width() + gap + word.width() <= room {
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

    #[test]
    fn names_are_broken_between_words_and_cells_stand_on_their_side() {
        let columns = [
            Column::new(Text::plain("operation"), Side::Left, vec![Text::plain("a rather long label, 1 ms")]),
            Column::new(Text::plain("ns"), Side::Right, vec![Text::plain("1")]),
        ];
        let text = grid(&columns, 1, 17, false);
        assert_eq!(text, "operation      ns\n─────────────────\na rather long   1\n  label, 1 ms\n");
    }

    #[test]
    fn a_column_that_finds_no_room_is_named() {
        let column =
            |name: &str, cell: &str| Column::new(Text::plain(name), Side::Left, vec![Text::plain(cell)]);
        let columns = [
            column("operation", "a name of some length"),
            column("p50", "1.00 ns"),
            column("max", "2.00 ns"),
        ];
        let text = grid(&columns, 1, 24, false);
        assert!(text.ends_with("In a wider terminal\nalso: max.\n"), "{text}");
    }

    #[test]
    fn a_shortened_name_is_whole() {
        let name = Text::plain("read, open, read, close, 64 KiB, tmpfs");
        let lines: Vec<String> = name.shortened(27).lines().iter().map(Text::content).collect();
        assert_eq!(lines, ["read, open, read, close,", "  64 KiB, tmpfs"]);
        assert_eq!(name.shortened(27).width(), 24);
        assert_eq!(name.shortened(80).width(), name.width());
    }

    #[test]
    fn what_is_beside_a_name_is_not_in_its_middle() {
        let lines = |width| {
            let text = Text::plain("sum of 500 kB, an element").with_aside(PLAIN, "31.1 GB/s", width);
            text.lines().iter().map(Text::content).collect::<Vec<String>>()
        };
        assert_eq!(lines(36), ["sum of 500 kB, an element  31.1 GB/s"]);
        assert_eq!(lines(33), ["sum of 500 kB, an element", "                        31.1 GB/s"]);
        assert_eq!(lines(22), ["sum of 500 kB, an", "  element    31.1 GB/s"]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = single(&Text::plain("a\u{1b}[31mb\nc"), 80, false);
        assert_eq!(text, "a [31mb c\n");
    }

    #[test]
    fn styles_do_not_count() {
        let bold = Text::styled(super::super::style::BOLD, "abc");
        assert_eq!(bold.width(), 3);
        assert!(single(&bold, 80, true).contains("\u{1b}[1mabc\u{1b}[0m"));
    }

    #[test]
    fn a_unit_stays_with_its_number() {
        let text = wrap(&Text::default(), "it took about 3.41 ms, of which 12 % are known", PLAIN, 18, false);
        assert_eq!(text, "it took about\n3.41 ms, of which\n12 % are known\n");
    }

    proptest! {
        #[test]
        fn wrapped_prose_keeps_its_words_and_its_width(
            words in proptest::collection::vec("[a-zé漢]{1,12}", 0..40),
            width in 20usize..60,
        ) {
            let prose = words.join(" ");
            let wrapped = wrap(&Text::plain("  - "), &prose, PLAIN, width, false);
            for line in wrapped.lines() {
                prop_assert!(line.width() <= width, "{:?}", line);
            }
            let whole: String = wrapped.replacen("  - ", "", 1).split_whitespace().collect();
            prop_assert_eq!(whole, words.concat());
        }
    }
}
