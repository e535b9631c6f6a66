//! Words of a command line: values of the user in them.

use super::{REDACTED, Redactor, text};
use crate::plan::BackgroundLoad;

/// Options whose value is a text of the user.
const FREE: [&str; 11] = [
    "--label", "--machine-id", "--load", "--a-load", "--b-load", "--with", "--without", "--restore",
    "--a-run", "--b-run", "--service",
];

/// Endings of files that a user names.
const ENDINGS: [&str; 11] =
    [".json", ".gz", ".toml", ".html", ".csv", ".md", ".svg", ".txt", ".xml", ".prom", ".log"];

impl Redactor {
    /// Returns the words of a command line without the user's paths, names and commands, and remembers these.
    pub fn arguments(&mut self, words: &[String]) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut option = "";
        for word in words {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (word.as_str(), None),
            };
            out.push(match value {
                Some(value) => format!("{name}={}", self.argument(name, value)),
                None if FREE.contains(&option) => self.argument(option, word),
                None => self.argument("", word),
            });
            option = word;
        }
        out
    }

    fn argument(&mut self, option: &str, value: &str) -> String {
        if let Some(command) = value.strip_prefix("exec:") {
            self.know_command(command);
            return format!("exec:{REDACTED}");
        }
        if FREE.contains(&option) {
            if BackgroundLoad::built_in(value).is_some() || value == "none" {
                return value.to_owned();
            }
            self.know_command(value);
            return REDACTED.to_owned();
        }
        let is_path = value.contains('/') || ENDINGS.iter().any(|ending| value.ends_with(ending));
        if is_path && !text::is_common(value) { self.path(value) } else { value.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_user_are_taken_out_of_a_command_line_and_of_what_is_said_of_it() {
        let mut redactor = Redactor::default();
        let words = "file --dir /home/ann --label owner=ann --load cpu --json=out/a.json -q --load ./burn";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let redacted = redactor.arguments(&words).join(" ");
        let expected = "file --dir path-1 --label (redacted) --load cpu --json=path-2 -q --load (redacted)";
        assert_eq!(redacted, expected);
        let said = "cannot write out/a.json: --label owner=ann is there; ./burn failed";
        assert_eq!(
            redactor.sentence(said),
            "cannot write path-2: --label (redacted) is there; (redacted) failed"
        );
    }

    #[test]
    fn a_file_below_a_directory_of_the_command_line_is_hidden_whole() {
        let mut redactor = Redactor::default();
        redactor.arguments(&["show".to_owned(), "nights/".to_owned()]);
        assert_eq!(redactor.sentence("cannot use nights/ann.json: damaged"), "cannot use path-2: damaged");
    }
}
