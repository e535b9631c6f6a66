//! Numbered notes under a table; the same text has the same number.

use std::collections::HashMap;

/// The notes so far.
#[derive(Debug, Default)]
pub(super) struct Footnotes {
    texts: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Footnotes {
    /// The number of a note, from 1.
    pub fn number_note(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.texts.len());
        self.texts.len()
    }

    /// The number of a note as a superscript.
    pub fn note_mark(&mut self, text: &str) -> String {
        superscript(self.number_note(text))
    }

    /// All notes, in order of number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.texts.iter().enumerate().map(|(at, text)| (at + 1, text.as_str()))
    }
}

/// A number in superscript digits.
pub(super) fn superscript(number: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number.to_string().bytes().map(|digit| DIGITS[usize::from(digit - b'0')]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number() {
        let mut notes = Footnotes::default();
        assert_eq!(notes.note_mark("a"), "¹");
        assert_eq!(notes.note_mark("b"), "²");
        assert_eq!(notes.note_mark("a"), "¹");
        assert_eq!(notes.iter().collect::<Vec<_>>(), [(1, "a"), (2, "b")]);
        assert_eq!(superscript(120), "¹²⁰");
    }
}
