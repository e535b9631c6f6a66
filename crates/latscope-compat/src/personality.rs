//! Framework of all personalities: programs with their options, and how a call is read, answered and carried out.

use crate::context::PersonalityContext;
use crate::getopt::{self, CommandLineRefusal, Grammar, ProgramCall, ProgramOption, Spec, Whose};
use crate::notes::{NotesDestination, VARIABLE};
use anyhow::Result;
use latscope_process::eprintln;
use latscope_process::stdout::print_text;
use std::fmt::Write;

/// Suite of programs that read their arguments, and answer calls that they do not carry out, in one way.
pub struct PersonalitySuite {
    /// Function that separates the words of a call.
    pub(crate) grammar: Grammar,
    /// Function that takes options of latscope out of the arguments, for programs that have none in their table.
    pub(crate) prepare: fn(&mut PersonalityContext) -> Result<()>,
    /// Function that returns the usage of a program: of its name, its [form](PersonalityProgram::form) and its options.
    pub(crate) usage: fn(&str, &str, &[&Spec]) -> String,
    /// Function that prints the answer to a refused call, given the error and the usage, and returns the exit code. It
    /// returns errors that the command is to print.
    pub(crate) answer: fn(&PersonalityContext, anyhow::Error, String) -> Result<u8>,
}

/// Program that latscope replaces, with options of type `O`. A call is read into a `J`, which most often is `O`, too.
pub struct PersonalityProgram<O: 'static, J: 'static = O> {
    /// Name of the program.
    pub name: &'static str,
    /// Summary of what the program measures, in one line.
    pub summary: &'static str,
    /// Suite that the program belongs to.
    pub suite: &'static PersonalitySuite,
    /// Form of the arguments in the usage, where `{}` stands for the options; empty if the suite has one for all.
    pub form: &'static str,
    /// Options of the program, in the order of its usage.
    pub options: &'static [ProgramOption<O>],
    /// Function that returns the options of a call without arguments.
    pub usual: fn(&PersonalityContext) -> Result<O, CommandLineRefusal>,
    /// Function that applies the rules by which options and operands affect each other. It is pure.
    pub settle: fn(ProgramCall<O>) -> Result<J, CommandLineRefusal>,
    /// Function that carries out a call that was read, and returns the exit code.
    pub carry_out: fn(&J, &PersonalityContext) -> Result<u8>,
}

impl<O: Default> PersonalityProgram<O> {
    /// Returns a program whose options are the default ones at first, and whose suite has one form of the usage for
    /// all.
    pub(crate) const fn new(
        name: &'static str,
        summary: &'static str,
        suite: &'static PersonalitySuite,
        options: &'static [ProgramOption<O>],
        settle: fn(ProgramCall<O>) -> Result<O, CommandLineRefusal>,
        carry_out: fn(&O, &PersonalityContext) -> Result<u8>,
    ) -> PersonalityProgram<O> {
        let usual = |_: &PersonalityContext| Ok(O::default());
        PersonalityProgram { name, summary, suite, form: "", options, usual, settle, carry_out }
    }
}

impl<O, J> PersonalityProgram<O, J> {
    /// Reads a call. This function is pure.
    ///
    /// # Errors
    /// Help was asked for, or the call cannot be carried out.
    pub fn read_call(&self, context: &PersonalityContext) -> Result<J, CommandLineRefusal> {
        let options = (self.usual)(context)?;
        (self.settle)(getopt::read(self.options, self.suite.grammar, &context.arguments, options)?)
    }

    /// Usage text of the program.
    pub fn usage(&self) -> String {
        (self.suite.usage)(self.name, self.form, &self.specs())
    }
}

/// Program that latscope replaces, whatever its options.
pub trait Personality: Sync {
    /// Name of the program.
    fn name(&self) -> &'static str;

    /// Summary of what the program measures, in one line.
    fn summary(&self) -> &'static str;

    /// Spellings of the options.
    fn specs(&self) -> Vec<&'static Spec>;

    /// Carries out a call, or prints the answer to a refused one. Returns the exit code.
    ///
    /// # Errors
    /// Nothing could be started, or the result could not be saved.
    fn run_program(&self, context: &PersonalityContext) -> Result<u8>;
}

impl<O, J> Personality for PersonalityProgram<O, J> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn specs(&self) -> Vec<&'static Spec> {
        self.options.iter().map(|option| &option.spec).collect()
    }

    fn run_program(&self, context: &PersonalityContext) -> Result<u8> {
        let notes = NotesDestination::from_variable((context.variable)(VARIABLE))?;
        let mut context = PersonalityContext { name: self.name, notes, ..context.clone() };
        (self.suite.prepare)(&mut context)?;
        let call = self.read_call(&context).map_err(anyhow::Error::from);
        let outcome = call.and_then(|call| (self.carry_out)(&call, &context));
        outcome.or_else(|error| (self.suite.answer)(&context, error, self.usage()))
    }
}

/// Lines of a usage for the options of one origin, with so many columns to the left of the help.
pub(crate) fn format_options(specs: &[&Spec], whose: Whose, indent: &str, width: usize) -> String {
    let mut text = String::new();
    for spec in specs.iter().filter(|spec| spec.whose == whose) {
        let _ = writeln!(text, "{indent}{:<width$} {}", spec.forms(), spec.help);
    }
    text
}

/// Usage of a program of a suite whose usages have one form: original options, those that latscope adds, retired ones.
pub(crate) fn long_usage(name: &str, specs: &[&Spec], width: usize, suite: &str) -> String {
    let (original, added) =
        (format_options(specs, Whose::Theirs, "", width), format_options(specs, Whose::Ours, "", width));
    let retired = specs.iter().filter(|spec| spec.whose == Whose::Retired);
    let retired: Vec<String> = retired.map(|spec| spec.name()).collect();
    let retired = if retired.is_empty() {
        String::new()
    } else {
        format!("\naccepted for old scripts: {}\n", retired.join(" "))
    };
    format!(
        "Usage:\n{name} <options>\n\n{original}{added}{retired}\n\
         This is latscope, with the options and the output of {suite}.\n"
    )
}

/// Prints the answer to a refused call of a suite whose programs answer alike, but for a mistake in the arguments,
/// which `mistake` answers with its text. Returns the exit code.
///
/// # Errors
/// Any error but a [`CommandLineRefusal`] is returned.
pub(crate) fn answer(error: anyhow::Error, usage: &str, mistake: impl FnOnce(&str)) -> Result<u8> {
    match error.downcast()? {
        CommandLineRefusal::Help => {
            print_text(usage);
            return Ok(0);
        }
        CommandLineRefusal::Usage(text) => mistake(&text),
        CommandLineRefusal::Fatal(text) => eprintln!("{text}"),
    }
    Ok(1)
}
