//! Options of other programs, and of other commands of latscope: names the option that does the same.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use latscope_probes::FAMILIES;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Deserialize)]
struct ForeignOptionTable {
    program: Vec<ForeignProgram>,
}

/// Options of another program, and their equivalents in commands of latscope.
#[derive(Deserialize)]
struct ForeignProgram {
    name: String,
    commands: Vec<String>,
    /// True if they are also of the families whose samples are not all single events.
    #[serde(default)]
    in_families: bool,
    /// Spellings in the program, separated by commas, with the equivalent in latscope.
    options: BTreeMap<String, String>,
}

/// Commands that take another one behind --.
const WRAPPERS: [&str; 2] = ["trial", "bisect-check"];

/// The table of options, read once.
static PROGRAMS: LazyLock<Vec<ForeignProgram>> = LazyLock::new(|| {
    let table: ForeignOptionTable =
        toml::from_str(include_str!("foreign.toml")).expect("a test reads the table");
    table.program
});

/// Returns a hint on an option that the parser of a command refused: its meaning in other programs with the equivalent
/// here, else the commands of latscope that have it.
pub fn hint(command: &str, error: &clap::Error, whole: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // Of a wrong value only a bare number is another program's.
    let bare =
        || text(ContextKind::InvalidValue).is_some_and(|value| value.chars().all(|c| c.is_ascii_digit()));
    match error.kind() {
        ErrorKind::UnknownArgument => {}
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if bare() => {}
        _ => return None,
    }
    let option = text(ContextKind::InvalidArg)?.split([' ', '=']).next()?;
    of_option(command, option).or_else(|| elsewhere(command, option, whole))
}

/// Returns a hint on a superfluous word of a command: its likely meaning.
fn superfluous(command: &str, word: &str, whole: &Command) -> Option<String> {
    if WRAPPERS.contains(&command) && whole.find_subcommand(word).is_some() {
        return Some(format!("write the command behind --, as in `latscope {command} … -- {word}`"));
    }
    let takes = match command {
        "history" => "it reads one directory, and those in it",
        "show" => {
            "it shows one result: --beside RESULT shows another with it, `latscope compare` compares them"
        }
        _ => return None,
    };
    Some(takes.to_owned())
}

/// Most commands that are named.
const NAMED: usize = 3;

/// The commands that have an option which this one has not.
fn elsewhere(command: &str, option: &str, whole: &Command) -> Option<String> {
    if !option.starts_with('-') {
        return superfluous(command, option, whole);
    }
    let name = option.strip_prefix("--")?;
    let has = |command: &&Command| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    whole.find_subcommand(command).filter(|command| !has(command))?;
    let having: Vec<&str> = whole.get_subcommands().filter(has).map(Command::get_name).collect();
    let measures = ["survey", "wake", "noise", "ipc"].iter().any(|name| having.contains(name));
    let more = if having.len() > NAMED { ", …" } else { "" };
    match having[..having.len().min(NAMED)].join(", ") {
        none if none.is_empty() => None,
        some if WRAPPERS.contains(&command) && measures => Some(format!(
            "it is an option of {some}{more}: write it behind --, as in `latscope {command} … -- {} {option}`",
            having[0]
        )),
        some => Some(format!("it is an option of {some}{more}, and not of {command}")),
    }
}

/// Returns the hint on an option by its spelling.
pub fn of_option(command: &str, option: &str) -> Option<String> {
    let known = PROGRAMS.iter().filter(|program| program.commands().any(|name| name == command));
    let hints: Vec<String> = known.filter_map(|program| program.hint(option)).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

impl ForeignProgram {
    /// Commands that the options belong to.
    fn commands(&self) -> impl Iterator<Item = &str> {
        let families = FAMILIES.iter().filter(|family| self.in_families && !family.single_events);
        self.commands.iter().map(String::as_str).chain(families.map(|family| family.name))
    }

    fn hint(&self, option: &str) -> Option<String> {
        let (_, ours) =
            self.options.iter().find(|(theirs, _)| theirs.split(", ").any(|known| known == option))?;
        let name = &self.name;
        let personality = match latscope_compat::find_program(name) {
            Some(_) => format!(" (`latscope as {name}` takes its options)"),
            None => String::new(),
        };
        // What we call in the same way differs in its unit.
        let said = if ours.starts_with("in ") {
            format!("{name} takes it")
        } else {
            format!("{name}'s {option} is")
        };
        Some(format!("{said} {ours}{personality}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::LatscopeArguments;
    use super::*;
    use clap::CommandFactory;

    fn refused(words: &str) -> Option<String> {
        let command = words.split_whitespace().next().unwrap();
        let words = std::iter::once("latscope").chain(words.split_whitespace());
        let whole = LatscopeArguments::command();
        hint(command, &whole.clone().try_get_matches_from(words).unwrap_err(), &whole)
    }

    #[test]
    fn options_of_other_programs_lead_to_ours() {
        for (words, ours) in [
            ("wake -l 1000", "cyclictest's -l is --count N (`latscope as cyclictest`"),
            ("wake -D 10", "cyclictest's -D is --duration T"),
            ("wake -m", "memory is locked"),
            ("wake -t", "a thread on each CPU"),
            ("wake -i 1000", "such as 1000us"),
            ("wake -b 100", "such as 1000us"),
            ("wake --duration 10", "such as 10s"),
            ("wake -d 10s", "; rtla's -d is --duration T"),
            ("noise -T 5", "--threshold T"),
            ("noise -a 100", "traces and explains"),
            ("trial --warmup 3", "hyperfine's --warmup is not needed"),
            ("trial --export-json x", "--json FILE"),
            ("sync -l 100", "perf bench's -l is --count N"),
            ("wake --quick", "survey's --quick is --duration T, such as 1s"),
            ("ipc --quick", "survey's --quick is --duration T, such as 1s"),
            ("ipc --full", "--duration T"),
            ("ipc --only pipe", "--transport NAME"),
            ("file --only read", "names of probes"),
            ("file --rw randread", "fio's --rw is a probe's name: read, write"),
            ("file --bs=4k", "--size SIZE"),
            ("file --warmup 3", "hyperfine's --warmup is not needed"),
            ("memory -W 3", "lmbench's -W is not needed"),
            ("file --runtime 3", "--duration T"),
            ("memory --profile quick", "--quick or --full"),
            ("gate --html x", "it is an option of survey, cpu, memory, …, and not of gate"),
            ("doctor --quiet", "and not of doctor"),
            ("show --duration 1s", "and not of show"),
            ("trial --duration 1s", "write it behind --, as in `latscope trial … -- survey --duration`"),
            ("bisect-check --quick", "write it behind --"),
            ("trial cpu cycle", "write the command behind --, as in `latscope trial … -- cpu`"),
            ("history a b", "it reads one directory"),
            ("show a b", "--beside RESULT"),
        ] {
            let said = refused(words);
            assert!(said.as_ref().is_some_and(|said| said.contains(ours)), "{words}: {said:?}");
        }
        assert_eq!(["wake --nosuch", "wake -i fast", "show -l 1"].map(refused), [None, None, None]);
    }

    /// Checks that the named options exist: in each command that the program is listed for, or in some, if it says so.
    #[test]
    fn what_is_named_is_there() {
        let whole = LatscopeArguments::command();
        for program in PROGRAMS.iter() {
            let commands: Vec<_> =
                program.commands().map(|name| whole.find_subcommand(name).expect(name)).collect();
            for (theirs, ours) in &program.options {
                let named = ours.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c)));
                for option in named.filter_map(|word| word.strip_prefix("--")) {
                    let has = |command: &&clap::Command| {
                        command.get_arguments().any(|argument| argument.get_long() == Some(option))
                    };
                    assert!(commands.iter().any(has), "{theirs:?}: --{option}");
                }
            }
        }
    }
}
