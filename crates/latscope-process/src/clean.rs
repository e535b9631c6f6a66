//! Cleaning of text for a terminal: removes commands that a terminal, or the log of a workflow, would obey.
//!
//! Results, names and messages may come from others. All text for people goes through here on its way to stdout and
//! stderr.

use latscope_core::log_commands;
use std::borrow::Cow;

/// Escape sequences of latscope that a text may contain, by their last letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequences {
    /// No sequence at all.
    None,
    /// Colours: `ESC [ 31 m`.
    Colours,
    /// Colours, and the movements that redraw lines of a screen: up, down, to the begin, clear.
    Movements,
}

impl Sequences {
    fn allow(self, last: char) -> bool {
        match self {
            Sequences::None => false,
            Sequences::Colours => last == 'm',
            Sequences::Movements => matches!(last, 'm' | 'A' | 'B' | 'K'),
        }
    }
}

/// Returns true if a terminal would obey a character, or show the text after it in another order. Line feeds and tabs
/// are no commands.
pub fn is_command(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || matches!(c, '\u{2028}' | '\u{2029}') || c.is_control() && !matches!(c, '\n' | '\t')
}

/// Replaces each [command](is_command) in a text unless it is `allowed`, and breaks [commands](log_commands) to a
/// service that keeps the log.
pub fn clean(text: &str, allowed: Sequences) -> Cow<'_, str> {
    if !log_commands::may_be_in(text) {
        return for_terminal(text, allowed);
    }
    let lines = text.split_inclusive('\n');
    Cow::Owned(
        lines.map(|line| log_commands::break_commands(for_terminal(line, allowed).into_owned())).collect(),
    )
}

/// Replaces each [command](is_command) in a text unless it is `allowed`.
pub fn for_terminal(text: &str, allowed: Sequences) -> Cow<'_, str> {
    if !text.chars().any(is_command) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = sequence(rest, allowed).unwrap_or(c.len_utf8());
        let kept = length > c.len_utf8() || !is_command(c) || c == '\r' && allowed == Sequences::Movements;
        cleaned.push_str(if kept { &rest[..length] } else { "\u{fffd}" });
        rest = &rest[length..];
    }
    Cow::Owned(cleaned)
}

/// The length of an allowed sequence at the begin of a text.
fn sequence(text: &str, allowed: Sequences) -> Option<usize> {
    let rest = text.strip_prefix("\x1b[")?;
    let last = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    rest[last..].starts_with(|c| allowed.allow(c)).then_some(text.len() - rest.len() + last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        let title = "fio 3.36\x1b]0;PWNED\x07\x1b[2J\u{9b}31m\u{202e}x\u{2066}\r\x08\n\tnext";
        let cleaned =
            "fio 3.36\u{fffd}]0;PWNED\u{fffd}\u{fffd}[2J\u{fffd}31m\u{fffd}x\u{fffd}\u{fffd}\u{fffd}\n\tnext";
        assert_eq!(clean(title, Sequences::Colours), cleaned);
        assert_eq!(clean("µs → ok\n", Sequences::None), "µs → ok\n");
    }

    #[test]
    fn own_sequences_stay_where_they_belong() {
        let screen = "\x1b[31mred\x1b[0m\x1b[3A\x1b[K\r";
        assert_eq!(clean(screen, Sequences::Movements), screen);
        let coloured = "\x1b[31mred\x1b[0m\u{fffd}[3A\u{fffd}[K\u{fffd}";
        assert_eq!(clean(screen, Sequences::Colours), coloured);
        assert_eq!(clean("\x1b[1;31mred", Sequences::None), "\u{fffd}[1;31mred");
        assert_eq!(clean("\x1b[31", Sequences::Colours), "\u{fffd}[31");
    }

    #[test]
    fn no_line_is_a_command_of_a_workflow() {
        let text = "a::b\n::stop-commands::x\n  ::error::y\nz ##[error]w\n";
        assert_eq!(clean(text, Sequences::None), "a::b\n: :stop-commands::x\n  : :error::y\nz # #[error]w\n");
        let others = "a ##vso[task.setvariable variable=x]y <LAVA_SIGNAL_TESTCASE x> ##teamcity[x]";
        let broken = "a # #vso[task.setvariable variable=x]y < LAVA_SIGNAL_TESTCASE x> # #teamcity[x]";
        assert_eq!(clean(others, Sequences::None), broken);
    }
}
