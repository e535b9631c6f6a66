//! Arguments to request, and the commands.

mod arguments;
mod criteria;
mod doctor;
mod family;
mod generate;
mod ipc;
mod list;
pub mod live;
mod measure;
mod noise;
mod outliers;
mod output;
mod remote;
mod selftest;
mod show;
mod survey;
mod wake;

use crate::compat;
use crate::conditions::{guardian, load, thief};
use crate::engine::worker;
use crate::exchange;
use crate::probe;
use anyhow::{Result, bail};
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::process::ExitCode;

/// How a command ended, as scripts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// A usage or I/O error, nothing could be measured, or interrupted.
    Error = 1,
    /// A criterion that was asked for is exceeded.
    Exceeded = 2,
    /// A criterion that was asked for cannot be judged.
    Inconclusive = 3,
}

const SIGXFSZ: i32 = 25;

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    // A file that may not grow further is an error of that file, not the end of the run.
    latscope_sys::signal::ignore(SIGXFSZ);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let outcome =
        inner(&arguments).or_else(|| personality(&arguments)).unwrap_or_else(|| command(&arguments));
    outcome.unwrap_or_else(|error| {
        // A reader that went away is not an error of ours.
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
        {
            return ExitCode::SUCCESS;
        }
        eprintln!("latscope: {error:#}");
        ExitCode::from(Exit::Error as u8)
    })
}

/// The processes of a run: our own binary again.
fn inner(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let rest = || arguments[2..].iter().map(|text| text.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let which = arguments.get(1)?.to_str()?;
    if which.starts_with("__") {
        // Started as /proc/self/exe, it would be seen as `exe` by others.
        let _ = rustix::thread::set_name(c"latscope");
    }
    let outcome = match which {
        "__worker" => worker::main(),
        "__guardian" => guardian::main(),
        "__thief" => thief::main(),
        "__load" => load::main(&rest()),
        "__ipc" => probe::ipc::main(&rest()),
        "__remote" => exchange::remote::shm::main(&rest()),
        "__paced" => probe::paced::main(&rest()),
        _ => return None,
    };
    Some(outcome.map(|()| ExitCode::SUCCESS))
}

/// Called by the name of an older tool.
fn personality(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let name = compat::by_name(arguments.first()?)?;
    Some(compat::run(name, &arguments[1..]).map(ExitCode::from))
}

fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let matches = match arguments::command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                let _ = error.print();
                return Ok(ExitCode::SUCCESS);
            }
            bail!(in_one_line(&error.to_string()));
        }
    };
    let exit = match matches.subcommand() {
        None => survey::run(&matches)?,
        Some(("survey", matches)) => survey::run(matches)?,
        Some(("doctor", matches)) => doctor::run(matches)?,
        Some(("show", matches)) => show::run(matches)?,
        Some(("wake", matches)) => wake::run(matches)?,
        Some(("ipc", matches)) => ipc::run(matches)?,
        Some(("noise", matches)) => noise::run(matches)?,
        Some(("remote", matches)) => remote::run(matches)?,
        Some(("list", matches)) => list::run(matches)?,
        Some(("selftest", matches)) => selftest::run(matches)?,
        Some(("generate", matches)) => generate::run(matches)?,
        Some(("as", matches)) => {
            let mut words = matches.get_many::<OsString>("call").into_iter().flatten().cloned();
            let name = words.next().unwrap_or_default();
            let rest: Vec<OsString> = words.collect();
            return compat::run(&name.to_string_lossy(), &rest).map(ExitCode::from);
        }
        Some((family, matches)) => family::run(family, matches)?,
    };
    Ok(ExitCode::from(exit as u8))
}

/// The message of the parser without its paragraphs: what is wrong, what could
/// be meant, and where to read more.
fn in_one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let (usage, said): (Vec<&str>, Vec<&str>) = message
        .split("\n\n")
        .filter(|paragraph| !paragraph.starts_with("For more information"))
        .partition(|paragraph| paragraph.starts_with("Usage: "));
    let words: Vec<&str> = said.iter().flat_map(|paragraph| paragraph.split_whitespace()).collect();
    let named = |word: &&str| !word.starts_with(['[', '<', '-']);
    let command = usage.first().map_or("", |usage| usage.trim_start_matches("Usage: "));
    let command: Vec<&str> = command.split_whitespace().take_while(named).collect();
    let command = if command.is_empty() { "latscope".to_owned() } else { command.join(" ") };
    format!("{} (see `{command} --help`)", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_parser_fits_in_a_line() {
        let said = |words: &[&str]| {
            let words = ["latscope"].iter().chain(words);
            in_one_line(&arguments::command().try_get_matches_from(words).unwrap_err().to_string())
        };
        assert_eq!(said(&["--nosuch"]), "unexpected argument '--nosuch' found (see `latscope --help`)");
        let option = said(&["doctor", "--jason", "x"]);
        assert!(option.contains("a similar argument exists: '--json'"), "{option}");
        assert!(option.ends_with("(see `latscope doctor --help`)"), "{option}");
        let value = said(&["sync", "--placement", "nowhere"]);
        assert!(
            value.starts_with(
                "invalid value 'nowhere' for '--placement <WORD,…>' [possible values: same-core"
            )
        );
        assert!(said(&["show"]).contains("<RESULT>"));
    }
}
