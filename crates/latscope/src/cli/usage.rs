//! Messages about invalid arguments, and about files that cannot be used:
//! one line with the cause, what could be meant, and where to read more.

use super::foreign;
use clap::Command;
use std::ffi::{OsStr, OsString};

/// Returns `latscope help COMMAND` as `latscope COMMAND --help`.
pub fn with_help_last(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// Message of the parser without its paragraphs, and without the tip to pass a misspelt option as a value.
pub fn of_parser(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let paragraphs = message.split("\n\n").filter(|paragraph| {
        let beginnings = ["For more information", "Usage: "];
        !beginnings.iter().any(|beginning| paragraph.trim_start().starts_with(beginning))
    });
    let lines = paragraphs.flat_map(str::lines).filter(|line| !line.trim_start().starts_with("tip: to pass"));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").replace(" tip: ", "; ")
}

/// Suggestion such as `; did you mean wake?` if one of the choices is similar to a word, else empty.
pub fn did_you_mean<'a>(word: &str, choices: impl Iterator<Item = &'a str>) -> String {
    let typos = |choice: &&str| match choice.starts_with(word) {
        true => 0,
        false => strsim::damerau_levenshtein(word, choice),
    };
    match choices.min_by_key(typos) {
        Some(nearest) if typos(&nearest) <= word.len() / 3 => format!("; did you mean {nearest}?"),
        _ => String::new(),
    }
}

/// Returns an explanation of what is wrong with these words, where it is better than the parser's.
pub fn better_known(words: &[OsString], tool: fn(&OsStr) -> Option<&'static str>) -> Option<String> {
    if let Some(tool) = words.get(1).and_then(|word| tool(word)) {
        return Some(format!("'{tool}' is the name of an older tool; did you mean `latscope as {tool}`?"));
    }
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let negative = |word: &str| {
        word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let pair = words.windows(2).find(|pair| pair[0].starts_with("--") && negative(pair[1]))?;
    Some(format!("{} {}: it cannot be negative", pair[0], pair[1]))
}

/// The parser's message, with what the option of another program is called here.
pub fn format_refusal(error: &clap::Error, words: &[OsString], whole: &Command) -> String {
    let message = of_parser(&error.to_string());
    if let Some(joined) = lava_option_hint(&message, words) {
        return joined;
    }
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    match foreign::hint(command, error, whole) {
        // What is spelled alike is not what was meant.
        Some(hint) => format!("{}: {hint}", message.split("; ").next().unwrap_or_default()),
        None => message,
    }
}

/// Hint on a file of `--lava`, which is optional and therefore stands behind `=`, if the parser took it for
/// another word.
fn lava_option_hint(message: &str, words: &[OsString]) -> Option<String> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let apart = |pair: &[&str]| {
        pair[0] == "--lava" && !pair[1].starts_with('-') && message.contains(&format!("'{}'", pair[1]))
    };
    let file = words.windows(2).find(|pair| apart(pair))?[1];
    Some(format!("--lava {file}: write the file behind an equals sign, as in --lava={file}"))
}

/// Hint on the option for `-h 400` of cyclictest: in latscope `-h` is for help, and takes no number.
pub fn histogram(words: &[OsString]) -> Option<String> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let is_number = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    let meant = |pair: &[&str]| pair[0] == "-h" && is_number(pair[1]);
    let hint = foreign::of_option(words.get(1)?, "-h")?;
    words.windows(2).any(meant).then(|| format!("-h is for help: {hint}"))
}

/// The message with the help to read, where it is about an option of the command.
pub fn with_help(message: String, words: &[OsString], whole: Command) -> String {
    let (path, command) = called(words, whole);
    let options = || command.get_arguments().filter_map(clap::Arg::get_long);
    let about = |word: &str| word.strip_prefix("--").is_some_and(|name| options().any(|known| known == name));
    let mut said = message.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c)));
    if said.any(about) { pointing(&message, &path) } else { message }
}

/// The message with the help to read: that of the subcommand that was called.
pub fn pointing_to_help(message: &str, words: &[OsString], whole: Command) -> String {
    pointing(message, &called(words, whole).0)
}

fn pointing(message: &str, path: &str) -> String {
    if message.contains("--help`") { message.to_owned() } else { format!("{message} (see `{path} --help`)") }
}

/// The subcommand of the whole command that is called with these words, as one writes it.
fn called(words: &[OsString], whole: Command) -> (String, Command) {
    let (mut path, mut command) = ("latscope".to_owned(), whole);
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(found) = command.find_subcommand(word) {
            path += &format!(" {}", found.get_name());
            command = found.clone();
        }
    }
    (path, command)
}

/// An error with its causes, in plain words: the number of a system's error
/// says nothing beside its text.
pub fn format_error(error: &anyhow::Error) -> String {
    let mut text = format!("{error:#}");
    while let Some(at) = text.find(" (os error ") {
        let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
        text.replace_range(at..end, "");
    }
    text.replace("No such file or directory", "no such file or directory")
}

#[cfg(test)]
mod tests {
    use super::super::arguments::LatscopeArguments;
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn help_of_a_command_may_be_asked_for_first() {
        let words = |text: &str| -> Vec<OsString> { text.split(' ').map(OsString::from).collect() };
        let last = |text: &str| with_help_last(words(text));
        assert_eq!(last("latscope help wake"), words("latscope wake --help"));
        assert_eq!(last("latscope help remote serve"), words("latscope remote serve --help"));
        assert_eq!(last("latscope help"), words("latscope --help"));
        assert_eq!(last("latscope wake help"), words("latscope wake help"));
    }

    #[test]
    fn words_may_be_in_capital_letters() {
        use super::super::arguments::LatscopeCommand;
        let parsed = LatscopeArguments::command()
            .try_get_matches_from(["latscope", "wake", "--policy", "FIFO"])
            .unwrap();
        let parsed = <LatscopeArguments as clap::FromArgMatches>::from_arg_matches(&parsed).unwrap();
        let Some(LatscopeCommand::Wake(_)) = parsed.command else { panic!("{parsed:?}") };
    }

    fn refused(words: &str) -> String {
        let words: Vec<OsString> =
            std::iter::once("latscope").chain(words.split_whitespace()).map(OsString::from).collect();
        let error = LatscopeArguments::command().try_get_matches_from(&words).unwrap_err();
        pointing_to_help(&of_parser(&error.to_string()), &words, LatscopeArguments::command())
    }

    #[test]
    fn a_message_of_the_parser_fits_in_a_line() {
        assert_eq!(refused("--nosuch"), "unexpected argument '--nosuch' found (see `latscope --help`)");
        let option = refused("doctor --jason x");
        assert!(option.contains("; a similar argument exists: '--json'"), "{option}");
        assert!(option.ends_with("(see `latscope doctor --help`)"), "{option}");
        assert!(refused("sync --nosuch 1").starts_with("unexpected argument '--nosuch' found (see"));
        let value = refused("sync --placement nowhere");
        assert!(
            value.starts_with(
                "invalid value 'nowhere' for '--placement <WORD,…>' [possible values: same-core"
            )
        );
        assert!(value.ends_with("(see `latscope sync --help`)"), "{value}");
        assert!(refused("remote serve --wait x").ends_with("(see `latscope remote serve --help`)"));
        assert!(refused("show").contains("<RESULT>"));
    }

    #[test]
    fn a_file_that_stands_apart_from_its_option_is_understood() {
        let refused = |words: &str| {
            let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
            let error = LatscopeArguments::command().try_get_matches_from(&words).unwrap_err();
            super::format_refusal(&error, &words, &LatscopeArguments::command())
        };
        let joined = "--lava lv: write the file behind an equals sign, as in --lava=lv";
        for words in ["latscope wake --lava lv", "latscope show r.json --lava lv", "latscope --lava lv"] {
            assert_eq!(refused(words), joined, "{words}");
        }
        assert!(!refused("latscope show r.json --lava --nosuch").contains("equals sign"));
    }

    #[test]
    fn a_message_about_an_option_of_the_command_points_to_its_help() {
        let words = ["latscope", "wake", "--threads", "0"].map(OsString::from);
        let pointed = with_help(
            "--threads 0 cannot be: choose 1 to 4096".to_owned(),
            &words,
            LatscopeArguments::command(),
        );
        assert!(pointed.ends_with(" 4096 (see `latscope wake --help`)"), "{pointed}");
        let other = "the disk --nothing is full";
        assert_eq!(with_help(other.to_owned(), &words, LatscopeArguments::command()), other);
    }

    #[test]
    fn what_is_similar_is_named() {
        let names = || ["cyclictest", "oslat", "hackbench"].into_iter();
        assert_eq!(did_you_mean("cyclictset", names()), "; did you mean cyclictest?");
        assert_eq!(did_you_mean("hack", names()), "; did you mean hackbench?");
        assert_eq!(did_you_mean("banana", names()), "");
    }

    #[test]
    fn causes_are_plain() {
        let system = std::io::Error::from_raw_os_error(2);
        let error = anyhow::Error::from(system).context("cannot read x");
        assert_eq!(format_error(&error), "cannot read x: no such file or directory");
    }
}
