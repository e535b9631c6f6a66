//! Arguments to request, and the commands.

mod arguments;
mod beside;
mod bisect;
mod budget;
mod compare;
mod criteria;
mod doctor;
mod exit;
mod family;
mod foreign;
mod gate;
mod generate;
mod history;
mod import;
mod input;
mod ipc;
mod judged;
mod list;
mod live;
mod measure;
mod merge;
mod names;
mod nodes;
mod noise;
mod older;
mod options;
mod outliers;
mod output;
mod redact;
mod references;
mod remote;
mod results;
mod selftest;
mod show;
mod survey;
mod trial;
mod unlike;
mod usage;
mod wake;

use anyhow::{Result, anyhow, bail};
use arguments::{LatscopeArguments, LatscopeCommand};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use exit::CommandExit;
use family::PlainFamily;
use latscope_bench::worker;
use latscope_compat as compat;
use latscope_os::signal;
use latscope_process::role::ProcessRole;
use latscope_process::{eprintln, not_restored, stdout};
use latscope_trace::tracefs;
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::process::ExitCode;

const SIGXFSZ: i32 = 25;

/// Least size of the stack with which latscope runs, bytes. An overflow would end it without a word.
const LEAST_STACK: u64 = 1 << 20;

/// Returns true if the stack of this process may grow as far as latscope needs.
pub fn has_stack() -> bool {
    getrlimit(Resource::Stack).current.is_none_or(|limit| limit >= LEAST_STACK)
}

/// Says that the stack is too small.
#[inline(never)]
pub fn refuse_stack() -> ExitCode {
    eprintln!("latscope: the limit of the stack is below 1 MiB, with which it cannot run: `ulimit -s 8192`");
    ExitCode::FAILURE
}

/// Runs the command with the arguments of the process.
// Not inlined: its variables would be on the stack of the function that looks at the limit.
#[inline(never)]
pub fn main() -> ExitCode {
    // A file that may not grow further is an error of that file, not the end of the run.
    signal::ignore(SIGXFSZ);
    stdout::spare_dumb_terminals();
    let arguments = usage::with_help_last(std::env::args_os().collect());
    redact::enable_if_asked(&arguments);
    // What goes wrong there says nothing about the commit.
    let is_bisecting = arguments.get(1).is_some_and(|word| word == bisect::NAME);
    let command = || {
        if is_bisecting { bisect::catch_panic(|| run_command(&arguments)) } else { run_command(&arguments) }
    };
    let outcome = if latscope_os::worker::is_privileged_by_file() {
        Err(anyhow!(PRIVILEGED))
    } else {
        inner(&arguments).or_else(|| personality(&arguments)).unwrap_or_else(command)
    };
    let outcome = outcome.and_then(|code| match stdout::failure() {
        None => Ok(code),
        Some(error) => Err(error.into()),
    });
    outcome.unwrap_or_else(|error| {
        // A reader that went away is not an error of ours.
        if output::is_unread(&error) && !is_bisecting {
            return ExitCode::SUCCESS;
        }
        eprintln!(
            "latscope: {}",
            usage::with_help(usage::format_error(&error), &arguments, LatscopeArguments::command())
        );
        if is_bisecting { bisect::exit_code(&error) } else { ExitCode::FAILURE }
    })
}

/// The worker is of the crate below that of the probes, which it gets from here.
const WORKER: &[ProcessRole] = &[ProcessRole {
    name: worker::NAME,
    terminates: false,
    main: |_| worker::main(&latscope_probes::REGISTRY),
}];

/// The roles of the processes of a run.
const ROLES: [&[ProcessRole]; 5] =
    [WORKER, latscope_process::ROLES, latscope_exchange::ROLES, latscope_probes::ROLES, compat::ROLES];

/// The processes of a run: our own binary again.
fn inner(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let mut roles = ROLES.iter().copied().flatten();
    let role = roles.find(|role| arguments.get(1).is_some_and(|name| name == role.name))?;
    let rest: Vec<String> = arguments[2..].iter().map(|text| text.to_string_lossy().into_owned()).collect();
    Some(role.run_role(&rest).map(|()| ExitCode::SUCCESS))
}

/// The command writes where its options say, and its processes do what their descriptors say: any user could have the
/// rights of the file used for that.
const PRIVILEGED: &str = "this file has capabilities, or a set-user-ID bit, by which any user could misuse it: remove them \
     (`setcap -r FILE`), and allow priorities with `ulimit -r` or LimitRTPRIO=";

/// Called by the name of an older tool.
fn personality(arguments: &[OsString]) -> Option<Result<ExitCode>> {
    let name = compat::by_name(arguments.first()?)?;
    Some(older::run_older_tool(name, &arguments[1..]).map(ExitCode::from))
}

fn run_command(arguments: &[OsString]) -> Result<ExitCode> {
    // Until the run listens, which reports what there is when it is to end.
    let _ = signal::block_signals(&signal::TERMINATION);
    let matches = match LatscopeArguments::command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return handle_parse_error(&error, arguments),
    };
    let parsed = match LatscopeArguments::from_arg_matches(&matches) {
        Ok(parsed) => parsed,
        Err(error) => return handle_parse_error(&error, arguments),
    };
    let Some(command) = parsed.command else {
        return Ok(with_what_is_left(measure::run_measurement(&parsed.survey)?).explain_exit(&matches));
    };
    // A trial listens when it begins to change something.
    if command.is_without_run() || matches!(command, LatscopeCommand::Trial(_) | LatscopeCommand::Run(_)) {
        let _ = signal::unblock_signals(&signal::TERMINATION);
    }
    if command.is_tracing() {
        tracefs::provide();
    }
    let measures = !command.is_without_run() || matches!(command, LatscopeCommand::Remote(_));
    let exit = match &command {
        LatscopeCommand::Survey(asked) => measure::run_measurement(asked)?,
        LatscopeCommand::Cpu(asked) => measure::run_measurement(&PlainFamily("cpu", asked))?,
        LatscopeCommand::Memory(asked) => measure::run_measurement(&PlainFamily("memory", asked))?,
        LatscopeCommand::Sync(asked) => measure::run_measurement(&PlainFamily("sync", asked))?,
        LatscopeCommand::Thread(asked) => measure::run_measurement(&PlainFamily("thread", asked))?,
        LatscopeCommand::Syscall(asked) => measure::run_measurement(&PlainFamily("syscall", asked))?,
        LatscopeCommand::Process(asked) => measure::run_measurement(&PlainFamily("process", asked))?,
        LatscopeCommand::File(asked) => measure::run_measurement(&PlainFamily("file", asked))?,
        LatscopeCommand::Wake(asked) => measure::run_measurement(asked)?,
        LatscopeCommand::Noise(asked) => measure::run_measurement(asked)?,
        LatscopeCommand::Ipc(asked) => measure::run_measurement(asked)?,
        LatscopeCommand::Remote(asked) => remote::run_remote(asked)?,
        LatscopeCommand::Doctor(asked) => doctor::run_doctor(asked)?,
        LatscopeCommand::List(asked) => list::list_probes(asked)?,
        LatscopeCommand::References(asked) => references::list_references(asked)?,
        LatscopeCommand::Show(asked) => show::show_result(asked)?,
        LatscopeCommand::Compare(asked) => compare::compare_results(asked)?,
        LatscopeCommand::Trial(asked) => trial::trial(asked)?,
        LatscopeCommand::Run(asked) => trial::run(asked)?,
        LatscopeCommand::Gate(asked) => gate::run_gate(asked)?,
        LatscopeCommand::BisectCheck(asked) => {
            return bisect::run_bisect(asked, LatscopeArguments::command());
        }
        LatscopeCommand::Merge(asked) => merge::merge_results(asked)?,
        LatscopeCommand::Import(asked) => import::import_files(asked)?,
        LatscopeCommand::History(asked) => history::run_history(asked)?,
        LatscopeCommand::Selftest(asked) => selftest::run_selftest(asked)?,
        LatscopeCommand::Generate(asked) => generate::write_generated(asked, LatscopeArguments::command())?,
        LatscopeCommand::As { call } => return older_tool(call),
    };
    Ok(if measures { with_what_is_left(exit) } else { exit }.explain_exit(&matches))
}

/// The exit of a command that measures: it is not done on a machine that an earlier run left changed.
fn with_what_is_left(exit: CommandExit) -> CommandExit {
    let left = not_restored::find_remaining();
    left.iter().for_each(|line| eprintln!("latscope: {line}"));
    match exit {
        CommandExit::Done if !left.is_empty() => {
            CommandExit::Error("an earlier run left the machine changed".to_owned())
        }
        exit => exit,
    }
}

/// Shows the help that was asked for.
///
/// # Errors
/// The words are not understood, or stdout cannot be written.
fn handle_parse_error(error: &clap::Error, arguments: &[OsString]) -> Result<ExitCode> {
    let histogram = usage::histogram(arguments);
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) && histogram.is_none() {
        stdout::write_styled(&error.render().ansi().to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let message = usage::better_known(arguments, compat::by_name)
        .or(histogram)
        .unwrap_or_else(|| usage::format_refusal(error, arguments, &LatscopeArguments::command()));
    bail!(usage::pointing_to_help(&message, arguments, LatscopeArguments::command()));
}

/// Runs as an older tool, or lists these.
fn older_tool(call: &[OsString]) -> Result<ExitCode> {
    match call.split_first() {
        Some((name, rest)) if !["-h", "--help", "help"].iter().any(|word| name == word) => {
            older::run_older_tool(&name.to_string_lossy(), rest).map(ExitCode::from)
        }
        _ => {
            stdout::write_text(&compat::listing())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
