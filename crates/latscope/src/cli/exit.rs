//! Exit codes of commands, as scripts see them, and their reasons.

use clap::ArgMatches;
use latscope_core::report::VerdictStatus;
use latscope_judge::verdict::exit_code;
use latscope_process::eprintln;
use std::process::ExitCode;

/// End of a command. Every code other than 0 has its reason, for one line on stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandExit {
    /// The command succeeded: code 0.
    Done,
    /// A usage or I/O error, nothing could be measured, or interrupted: code 1.
    Error(String),
    /// A criterion that was asked for is exceeded: code 2.
    Exceeded(String),
    /// A criterion that was asked for cannot be judged: code 3.
    Inconclusive(String),
}

impl CommandExit {
    /// Returns the end by a status, whose reason is made where it is needed.
    pub fn of_status(status: VerdictStatus, reason: impl FnOnce() -> String) -> CommandExit {
        CommandExit::of_code(exit_code(Some(status), false), reason)
    }

    /// Returns the end with a code, whose reason is made where it is needed.
    pub fn of_code(code: u8, reason: impl FnOnce() -> String) -> CommandExit {
        match code {
            0 => CommandExit::Done,
            2 => CommandExit::Exceeded(reason()),
            3 => CommandExit::Inconclusive(reason()),
            _ => CommandExit::Error(reason()),
        }
    }

    /// Returns the exit code, 0 to 3.
    pub fn code(&self) -> u8 {
        match self {
            CommandExit::Done => 0,
            CommandExit::Error(_) => 1,
            CommandExit::Exceeded(_) => 2,
            CommandExit::Inconclusive(_) => 3,
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            CommandExit::Done => None,
            CommandExit::Error(reason)
            | CommandExit::Exceeded(reason)
            | CommandExit::Inconclusive(reason) => Some(reason),
        }
    }

    /// Prints the reason in a line on stderr where no table has it: with `--quiet`, and with `--fail-on`, which views
    /// do not know. Returns the code for the process.
    pub fn explain_exit(self, matches: &ArgMatches) -> ExitCode {
        if let Some(reason) = self.reason().filter(|_| is_without_reason(matches)) {
            let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
            eprintln!("latscope: exit code {}: {line}", self.code());
        }
        ExitCode::from(self.code())
    }
}

/// Returns true if what the command shows does not say why it ends with its code.
fn is_without_reason(matches: &ArgMatches) -> bool {
    let mut called = matches;
    while let Some((_, inner)) = called.subcommand() {
        called = inner;
    }
    let is_quiet = called.try_get_one::<bool>("quiet").ok().flatten().is_some_and(|quiet| *quiet);
    is_quiet || called.try_get_one::<String>("fail_on").ok().flatten().is_some()
}

/// Returns the first reason, with the number of further ones.
pub fn first_of(reasons: &[String]) -> String {
    match reasons {
        [] => String::new(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first} (and {} more)", others.len()),
    }
}
