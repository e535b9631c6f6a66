//! Arguments to request, and the commands.

mod arguments;
mod doctor;
mod family;
mod generate;
mod list;
mod measure;
mod output;
mod selftest;
mod show;
mod survey;

use crate::compat;
use crate::conditions::{guardian, load};
use crate::engine::worker;
use anyhow::Result;
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
}

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
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
    let outcome = match arguments.get(1)?.to_str()? {
        "__worker" => worker::main(),
        "__guardian" => guardian::main(),
        "__load" => load::main(&rest()),
        _ => return None,
    };
    Some(outcome.map(|()| ExitCode::SUCCESS))
}

/// Called by the name of an older tool.
fn personality(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let tool = compat::by_name(arguments.first()?)?;
    Some(compat::run(tool.name, &arguments[1..]).map(ExitCode::from))
}

fn command(arguments: &[OsString]) -> Result<ExitCode> {
    let matches = match arguments::command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let exit = if asked_for { Exit::Done } else { Exit::Error };
            return Ok(ExitCode::from(exit as u8));
        }
    };
    let exit = match matches.subcommand() {
        None => survey::run(&matches)?,
        Some(("survey", matches)) => survey::run(matches)?,
        Some(("doctor", matches)) => doctor::run(matches)?,
        Some(("show", matches)) => show::run(matches)?,
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
