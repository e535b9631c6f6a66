//! Options that several programs of rt-tests share.

use super::{Refusal, Release};
use crate::getopt::{self, FLAG, Opt, Whose, lines, on, put, value};
use std::ffi::OsString;
use std::path::PathBuf;

/// The version that the programs print.
pub(super) const VERSION: &str = "2.40";

/// Values of the options that several programs share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Common {
    /// Value of `-b`, in the unit of the figures.
    pub break_above: Option<u64>,
    /// Value of `-D`, in ns.
    pub duration: Option<u64>,
    /// Value of `--json`: the file to write.
    pub json: Option<PathBuf>,
    /// Value of `-q`: print only the end.
    pub quiet: bool,
    /// Value of `--tracemark`: mark and stop the user's trace.
    pub trace_mark: bool,
    /// Value of `--compat`: the release whose text is printed.
    pub release: Release,
    /// Value of `--strict-exit`: use latscope's exit codes.
    pub strict_exit: bool,
    /// Value of `--result`: the file for latscope's result.
    pub result: Option<PathBuf>,
    /// Notes about arguments that have no effect, or a different effect.
    pub notes: Vec<String>,
}

/// Options that several programs share.
#[rustfmt::skip]
impl<O: AsMut<Common>> Opt<O> {
    pub(super) const BREAK: Opt<O> = Opt::new(Some('b'), "breaktrace", value("US"), "end at the first latency above US",
        |o, given| put(&mut o.as_mut().break_above, given.limit()));
    pub(super) const DURATION: Opt<O> = Opt::new(Some('D'), "duration", value("T"), "end after T seconds, or with m, h, d minutes, hours, days",
        |o, given| put(&mut o.as_mut().duration, given.duration().map(|ns| Some(ns).filter(|ns| *ns > 0))));
    pub(super) const JSON: Opt<O> = Opt::new(None, "json", value("FILE"), "write the result as JSON; - is stdout",
        |o, given| put(&mut o.as_mut().json, given.path()));
    pub(super) const QUIET: Opt<O> = Opt::new(Some('q'), "quiet", FLAG, "print only the end", |o, _| on(&mut o.as_mut().quiet));
    pub(super) const MARK: Opt<O> = Opt::new(None, "tracemark", FLAG, "with -b mark and stop the trace that you have started",
        |o, _| on(&mut o.as_mut().trace_mark));
    pub(super) const COMPAT: Opt<O> = Opt::new(None, "compat", value("2.4|2.10"), "whose text to print [2.4]",
        |o: &mut O, given| put(&mut o.as_mut().release, release(given.text()))).ours();
    pub(super) const STRICT: Opt<O> = Opt::new(None, "strict-exit", FLAG, "exit code 2 when -b ended the run",
        |o: &mut O, _| on(&mut o.as_mut().strict_exit)).ours();
    pub(super) const RESULT: Opt<O> = Opt::new(None, "result", value("FILE"), "save latscope's result too",
        |o: &mut O, given| put(&mut o.as_mut().result, given.path())).ours();
}

impl<O> Opt<O> {
    /// Option `-h`, `--help`: print the usage.
    pub(crate) const HELP: Opt<O> = Opt::new(Some('h'), "help", FLAG, "this text", |_, _| Err(Refusal::Help));

    /// Option `--help` of the programs in which `-h` is another option.
    pub(super) const LONG_HELP: Opt<O> = Opt::new(None, "help", FLAG, "this text", |_, _| Err(Refusal::Help));
}

fn release(number: &str) -> Result<Release, Refusal> {
    let wrong = || Refusal::Usage(format!("--compat={number} is neither 2.4 nor 2.10"));
    Release::named(number).ok_or_else(wrong)
}

/// Reads a call by the table of a program, starting from the default values.
///
/// # Errors
/// Help was asked for, or the call cannot be carried out.
pub(super) fn read<O: AsMut<Common>>(
    table: &[Opt<O>],
    mut options: O,
    arguments: &[OsString],
) -> Result<O, Refusal> {
    let (operands, notes) = getopt::read(&[table], getopt::getopt, arguments, &mut options)?;
    let operands = operands.iter().map(|operand| format!("{operand:?} is no option and is ignored"));
    options.as_mut().notes.extend(notes.into_iter().chain(operands));
    Ok(options)
}

/// Suite that a program belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    /// Suite rt-tests: the usage goes to stdout.
    RtTests,
    /// Suite MCS of openEuler: the usage goes to stderr after a mistake.
    Mcs,
}

/// Usage text of a program, made from its table of options.
pub(super) fn usage<O>(name: &str, suite: Suite, table: &[Opt<O>]) -> String {
    let (head, width, whose) = match suite {
        Suite::RtTests => (format!("{name} V {VERSION}\n"), 36, "rt-tests"),
        Suite::Mcs => (String::new(), 28, "the benchmark of MCS"),
    };
    let (theirs, ours) = (lines(table, Whose::Theirs, "", width), lines(table, Whose::Ours, "", width));
    let retired = table.iter().filter(|option| option.spec.whose == Whose::Retired);
    let retired: Vec<String> = retired.map(|option| option.spec.name()).collect();
    let retired = match retired.is_empty() {
        true => String::new(),
        false => format!("\naccepted for old scripts: {}\n", retired.join(" ")),
    };
    format!(
        "{head}Usage:\n{name} <options>\n\n{theirs}{ours}{retired}\n\
         This is latscope, with the options and the output of {whose}.\n"
    )
}
