//! Commands in a text to the service that keeps a log: GitHub, Azure Pipelines, TeamCity, LAVA. What others wrote may
//! contain them.

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
/// # use latscope_core::log_commands::broken;
/// assert_eq!(broken("  ::error::x ##[y]".to_owned()), "  : :error::x # #[y]");
/// ```
pub fn broken(mut line: String) -> String {
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
