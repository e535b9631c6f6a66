//! Commands in a text to the service that keeps a log: GitHub, Azure Pipelines, TeamCity, LAVA. What others wrote may
//! contain them.

use std::borrow::Cow;

/// Beginnings of commands, anywhere in a line.
const IN_LINES: [&str; 4] = ["##[", "##vso[", "##teamcity[", "<LAVA_"];

/// Returns true if a service may take a part of a text for a command.
pub fn may_be_in(text: &str) -> bool {
    text.contains("::") || IN_LINES.iter().any(|begin| text.contains(begin))
}

/// Returns a line that a service takes for text: a blank breaks each command, also GitHub's `::`, which begins one
/// behind blanks.
///
/// ```
/// # use latscope_core::log_commands::break_commands;
/// assert_eq!(break_commands("  ::error::x ##[y]".to_owned()), "  : :error::x # #[y]");
/// ```
pub fn break_commands(mut line: String) -> String {
    for begin in IN_LINES {
        if line.contains(begin) {
            line = line.replace(begin, &format!("{} {}", &begin[..1], &begin[1..]));
        }
    }
    let begin = line.len() - line.trim_start().len();
    if line[begin..].starts_with("::") {
        line.insert(begin + 1, ' ');
    }
    line
}

/// Returns a part of a string in JSON in which no service finds a command. For readers of JSON it is the same: the
/// first character of each command is written by its number. GitHub's `::` begins no line of JSON.
///
/// ```
/// # use latscope_core::log_commands::escape_commands;
/// assert_eq!(escape_commands("a ##[b]"), "a \\u0023#[b]");
/// ```
pub fn escape_commands(part: &str) -> Cow<'_, str> {
    let mut escaped = Cow::Borrowed(part);
    for begin in IN_LINES.iter().filter(|begin| part.contains(**begin)) {
        let by_number = format!("\\u{:04x}{}", u32::from(begin.as_bytes()[0]), &begin[1..]);
        escaped = Cow::Owned(escaped.replace(begin, &by_number));
    }
    escaped
}
