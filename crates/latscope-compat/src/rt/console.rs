//! Output of the programs on the standard streams.

use super::Refusal;
use super::json::{self, Head};
use super::options::{self, Common, Suite};
use crate::getopt::Opt;
use crate::names;
use anyhow::Result;
use latscope_core::quality::Level;
use latscope_core::report::Measurement;
use latscope_host::eprintln;
use latscope_host::stdout::print;
use std::ffi::OsString;
use std::time::SystemTime;

/// Name, suite and options of a program, as its messages need them.
pub(crate) struct Voice<O: 'static> {
    pub name: &'static str,
    /// Suite that the program belongs to.
    pub suite: Suite,
    /// Options of the program.
    pub table: &'static [Opt<O>],
}

impl<O> Voice<O> {
    /// Answers a call that is not carried out, and returns the exit code.
    /// cyclictest itself returns 0 for an unknown option, which no script can notice.
    pub fn answer(&self, refusal: &Refusal) -> u8 {
        let usage = || options::usage(self.name, self.suite, self.table);
        match (refusal, self.suite) {
            (Refusal::Help, _) => print(&usage()),
            (Refusal::Usage(text), Suite::RtTests) => {
                eprintln!("{}: {text}", self.name);
                print(&usage());
            }
            (Refusal::Usage(text), Suite::Mcs) => eprintln!("{}: {text}\n{}", self.name, usage()),
            (Refusal::Fatal(text), _) => eprintln!("{text}"),
        }
        u8::from(*refusal != Refusal::Help)
    }

    /// Carries out a call that was read, and prints the answer to a refused one. Passes other errors on.
    ///
    /// # Errors
    /// Any error but a [`Refusal`] is returned.
    pub fn run(&self, read: Result<O, Refusal>, carry_out: impl FnOnce(&O) -> Result<u8>) -> Result<u8> {
        let outcome = read.map_err(Into::into).and_then(|options| carry_out(&options));
        outcome.or_else(|error| error.downcast::<Refusal>().map(|refusal| self.answer(&refusal)))
    }

    /// Prints a note for each argument without effect, unless only the plan is shown.
    pub fn introduce(&self, notes: &[String]) {
        notes.iter().filter(|_| !names::is_dry_run()).for_each(|note| self.note(note));
    }

    /// Prints a note on stderr about something that the figures do not show.
    pub fn note(&self, text: &str) {
        eprintln!("latscope: {}: note: {text}", self.name);
    }

    /// Writes the JSON of a run that ends now, if `--json` asks for it. Returns false if writing failed.
    pub(super) fn write_json(
        &self,
        common: &Common,
        arguments: &[OsString],
        started: SystemTime,
        rest: impl FnOnce() -> String,
    ) -> bool {
        let Some(path) = &common.json else { return true };
        let head = Head::here(self.name, arguments, common.release.printed(), started);
        let written = json::write(path, &head.file(&rest()));
        written.map_err(|error| eprintln!("Failed to open '{}': {error}", path.display())).is_ok()
    }

    /// Prints how far the measurements can be trusted. Returns false if one did not take place.
    ///
    /// A run that ends before its first event counts as one that took place. A thread that could not begin does not.
    pub fn doubt(&self, measured: &[Measurement]) -> bool {
        super::environment::doubts(measured).iter().for_each(|doubt| self.note(doubt));
        !measured.iter().all(|m| m.quality.level == Level::Unsupported && m.incomplete)
    }
}
