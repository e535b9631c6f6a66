//! Options that several programs of rt-tests share.

use crate::context::PersonalityContext;
use crate::environment;
use crate::getopt::{
    self, CommandLineRefusal, CommandLineWords, FLAG, ProgramCall, ProgramOption, Spec, Whose, set_field,
    set_flag, value,
};
use crate::personality::{self, PersonalitySuite, long_usage};
use anyhow::Result;
use latscope_core::report::Report;
use latscope_process::eprintln;
use latscope_process::stdout::print_text;
use std::ffi::OsString;
use std::path::PathBuf;

/// The version that the programs print.
pub(super) const VERSION: &str = "2.40";

/// The release of rt-tests whose text is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Release {
    /// Release 2.4, which prints more.
    #[default]
    V2_4,
    /// Release 2.10, which prints no `# Total:` and no rows of zeros.
    V2_10,
}

impl Release {
    /// Returns the release with this number.
    pub fn from_number(number: &str) -> Option<Release> {
        match number {
            "2.4" => Some(Release::V2_4),
            "2.10" => Some(Release::V2_10),
            _ => None,
        }
    }

    /// Number of the release as its programs print it.
    pub fn printed(self) -> &'static str {
        match self {
            Release::V2_4 => "2.40",
            Release::V2_10 => "2.10",
        }
    }
}

/// Values of the options that several programs share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RtTestsCommonOptions {
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

impl RtTestsCommonOptions {
    /// Returns the directory of the user's trace, if the call marks it.
    ///
    /// # Errors
    /// No trace can be written to.
    pub(super) fn trace(&self) -> Result<Option<PathBuf>, CommandLineRefusal> {
        let marks = self.trace_mark && self.break_above.is_some();
        marks.then(environment::trace_directory).transpose()
    }

    /// Exit code of a run that is over: 0 as of the originals, or latscope's with `--strict-exit`.
    pub(super) fn exit_code(&self, exceeded: bool, report: &Report) -> u8 {
        if !self.strict_exit {
            return 0;
        }
        environment::strict_exit(self.break_above.is_some(), exceeded, report)
    }
}

/// Options that several programs share.
#[rustfmt::skip]
impl<O: AsMut<RtTestsCommonOptions>> ProgramOption<O> {
    pub(super) const BREAK: ProgramOption<O> = ProgramOption::new(Some('b'), "breaktrace", value("US"), "end at the first latency above US",
        |o, given| set_field(&mut o.as_mut().break_above, given.parse_limit()));
    pub(super) const DURATION: ProgramOption<O> = ProgramOption::new(Some('D'), "duration", value("T"), "end after T seconds, or with m, h, d minutes, hours, days",
        |o, given| set_field(&mut o.as_mut().duration, given.parse_duration().map(|ns| Some(ns).filter(|ns| *ns > 0))));
    pub(super) const JSON: ProgramOption<O> = ProgramOption::new(None, "json", value("FILE"), "write the result as JSON; - is stdout",
        |o, given| set_field(&mut o.as_mut().json, given.path()));
    pub(super) const QUIET: ProgramOption<O> = ProgramOption::new(Some('q'), "quiet", FLAG, "print only the end", |o, _| set_flag(&mut o.as_mut().quiet));
    pub(super) const MARK: ProgramOption<O> = ProgramOption::new(None, "tracemark", FLAG, "with -b mark and stop the trace that you have started",
        |o, _| set_flag(&mut o.as_mut().trace_mark));
    pub(super) const COMPAT: ProgramOption<O> = ProgramOption::new(None, "compat", value("2.4|2.10"), "whose text to print [2.4]",
        |o: &mut O, given| set_field(&mut o.as_mut().release, release(given.value_text()))).mark_added();
    pub(super) const STRICT: ProgramOption<O> = ProgramOption::new(None, "strict-exit", FLAG, "exit code 2 when -b ended the run",
        |o: &mut O, _| set_flag(&mut o.as_mut().strict_exit)).mark_added();
    pub(super) const RESULT: ProgramOption<O> = ProgramOption::new(None, "result", value("FILE"), "save latscope's result too",
        |o: &mut O, given| set_field(&mut o.as_mut().result, given.path())).mark_added();
}

fn release(number: &str) -> Result<Release, CommandLineRefusal> {
    let wrong = || CommandLineRefusal::Usage(format!("--compat={number} is neither 2.4 nor 2.10"));
    Release::from_number(number).ok_or_else(wrong)
}

/// Suite of rt-tests. The usage goes to stdout, after a mistake too.
pub(super) static RT_TESTS: PersonalitySuite =
    PersonalitySuite { grammar, prepare: |_| Ok(()), usage, answer };

/// Grammar of getopt_long(3). Under `--compat 2.10`, options of that release replace those of the same letter or name.
fn grammar(specs: &[&Spec], arguments: &[OsString]) -> Result<CommandLineWords, CommandLineRefusal> {
    let newer = arguments.windows(2).any(|two| two[0] == "--compat" && two[1] == "2.10")
        || arguments.iter().any(|word| word == "--compat=2.10");
    let is_newer = |spec: &&Spec| spec.whose == Whose::Newer;
    let alike = |a: &Spec, b: &Spec| (a.short.is_some() && a.short == b.short) || a.long == b.long;
    let replaced = |spec: &Spec| specs.iter().filter(|other| is_newer(other)).any(|other| alike(spec, other));
    let valid = |spec: &&Spec| if newer { is_newer(spec) || !replaced(spec) } else { !is_newer(spec) };
    let specs: Vec<&Spec> = specs.iter().map(|spec| if valid(spec) { *spec } else { &Spec::NONE }).collect();
    getopt::getopt(&specs, arguments)
}

/// Usage text of a program.
fn usage(name: &str, _: &str, specs: &[&Spec]) -> String {
    format!("{name} V {VERSION}\n{}", long_usage(name, specs, 36, "rt-tests"))
}

/// Prints the answer to a refused call. cyclictest itself returns 0 for an unknown option, which no script can notice.
fn answer(context: &PersonalityContext, error: anyhow::Error, usage: String) -> Result<u8> {
    personality::answer(error, &usage, |mistake| {
        eprintln!("{}: {mistake}", context.name);
        print_text(&usage);
    })
}

/// Adds the notes of a call to its options, and one for each operand. The programs have no operands.
///
/// # Errors
/// There are none.
pub(super) fn resolve_options<O: AsMut<RtTestsCommonOptions>>(
    mut call: ProgramCall<O>,
) -> Result<O, CommandLineRefusal> {
    let operands = call.operands.iter().map(|operand| format!("{operand:?} is no option and is ignored"));
    call.options.as_mut().notes.extend(call.notes.into_iter().chain(operands));
    Ok(call.options)
}
