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
mod options;
mod outliers;
mod output;
mod remote;
mod selftest;
mod show;
mod survey;
mod usage;
mod wake;

use anyhow::{Result, bail};
use clap::ArgMatches;
use clap::error::ErrorKind;
use latscope_bench::worker;
use latscope_compat as compat;
use latscope_host::eprintln;
use latscope_host::role::Role;
use latscope_host::stdout;
use latscope_os::signal;
use latscope_trace::tracefs;
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
    signal::ignore(SIGXFSZ);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let outcome =
        inner(&arguments).or_else(|| personality(&arguments)).unwrap_or_else(|| command(&arguments));
    let outcome = outcome.and_then(|code| match stdout::failure() {
        None => Ok(code),
        Some(error) => Err(error.into()),
    });
    outcome.unwrap_or_else(|error| {
        // A reader that went away is not an error of ours.
        if error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
        {
            return ExitCode::SUCCESS;
        }
        eprintln!("latscope: {}", usage::with_help(usage::plain(&error), &arguments, arguments::command()));
        ExitCode::from(Exit::Error as u8)
    })
}

/// The worker is of the crate below that of the probes, which it gets from here.
const WORKER: &[Role] =
    &[Role { name: worker::NAME, terminates: false, main: |_| worker::main(&latscope_probes::REGISTRY) }];

/// The roles of the processes of a run.
const ROLES: [&[Role]; 4] = [WORKER, latscope_host::ROLES, latscope_exchange::ROLES, latscope_probes::ROLES];

/// The processes of a run: our own binary again.
fn inner(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let mut roles = ROLES.iter().copied().flatten();
    let role = roles.find(|role| arguments.get(1).is_some_and(|name| name == role.name))?;
    let rest: Vec<String> = arguments[2..].iter().map(|text| text.to_string_lossy().into_owned()).collect();
    Some(role.run(&rest).map(|()| ExitCode::SUCCESS))
}

/// Called by the name of an older tool.
fn personality(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let name = compat::by_name(arguments.first()?)?;
    Some(compat::run(name, &arguments[1..]).map(ExitCode::from))
}

/// Commands whose signals wait for no run.
const WITHOUT_RUN: [&str; 8] = ["doctor", "show", "remote", "list", "selftest", "generate", "as", "help"];

/// Commands that may record a trace of the kernel.
const TRACING: [&str; 7] = ["wake", "noise", "ipc", "thread", "sync", "selftest", "list"];

fn command(arguments: &[OsString]) -> Result<ExitCode> {
    // Until the run listens, which says what there is when it is told to end.
    let _ = signal::hold(&signal::TERMINATION);
    let parsed = arguments::command().try_get_matches_from(arguments);
    let name = parsed.as_ref().map(ArgMatches::subcommand_name);
    if name.is_ok_and(|name| name.is_some_and(|name| WITHOUT_RUN.contains(&name))) {
        let _ = signal::release(&signal::TERMINATION);
    }
    let matches = match parsed {
        Ok(matches) => matches,
        Err(error) => {
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                stdout::write_styled(&error.render().ansi().to_string())?;
                return Ok(ExitCode::SUCCESS);
            }
            let message = usage::better_known(arguments, compat::by_name)
                .unwrap_or_else(|| usage::of_parser(&error.to_string()));
            bail!(usage::pointing_to_help(&message, arguments, arguments::command()));
        }
    };
    if matches.subcommand_name().is_some_and(|name| TRACING.contains(&name)) {
        tracefs::provide();
    }
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
        Some(("generate", matches)) => generate::run(matches, arguments::command())?,
        Some(("as", matches)) => {
            let mut words = matches.get_many::<OsString>("call").into_iter().flatten().cloned();
            let name = words.next().unwrap_or_else(|| "--help".into());
            if ["-h", "--help", "help"].iter().any(|word| name == *word) {
                stdout::write(&compat::listing())?;
                return Ok(ExitCode::SUCCESS);
            }
            let rest: Vec<OsString> = words.collect();
            return compat::run(&name.to_string_lossy(), &rest).map(ExitCode::from);
        }
        Some((family, matches)) => family::run(family, matches)?,
    };
    Ok(ExitCode::from(exit as u8))
}
