//! Encodings and line ends of texts: editors and shells of other systems change both.

use std::borrow::Cow;

/// Returns a text in UTF-8 without a byte-order mark. UTF-16 is recognised by its mark, or by the zero byte in its
/// first character.
pub(super) fn utf8(text: &[u8]) -> Cow<'_, [u8]> {
    let wide = |pairs: &[u8], of: fn([u8; 2]) -> u16| {
        let units = pairs.chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        let mut text: String =
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        // Half of a character at the end: the text was cut off.
        text.extend((!pairs.len().is_multiple_of(2)).then_some(char::REPLACEMENT_CHARACTER));
        Cow::Owned(text.into_bytes())
    };
    let is_first = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match text {
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(rest),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [first, 0, ..] if is_first(*first) => wide(text, u16::from_le_bytes),
        [0, first, ..] if is_first(*first) => wide(text, u16::from_be_bytes),
        _ => Cow::Borrowed(text),
    }
}

/// Returns a text whose lines end with a line feed, and have no byte-order marks at their starts: programs that join
/// files leave these in the middle.
pub(super) fn normalise_lines(text: &[u8]) -> Cow<'_, str> {
    // Names in a command line may be of any encoding.
    let mut text = String::from_utf8_lossy(text);
    for (from, to) in [("\r\n", "\n"), ("\r", "\n"), ("\n\u{feff}", "\n")] {
        if text.contains(from) {
            text = Cow::Owned(text.replace(from, to));
        }
    }
    text
}
