//! What the programs say on the standard streams.

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

/// A program as its words name it.
pub(crate) struct Voice<O: 'static> {
    pub name: &'static str,
    /// Where it comes from.
    pub suite: Suite,
    /// Its options.
    pub table: &'static [Opt<O>],
}

impl<O> Voice<O> {
    /// Answers a call that is not carried out; returns the exit code.
    /// cyclictest's own for an unknown option is 0, which no script can notice.
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

    /// Carries out a call that was read, and answers where it was refused; other errors are passed on.
    ///
    /// # Errors
    /// Any but a [`Refusal`].
    pub fn run(&self, read: Result<O, Refusal>, carry_out: impl FnOnce(&O) -> Result<u8>) -> Result<u8> {
        let outcome = read.map_err(Into::into).and_then(|options| carry_out(&options));
        outcome.or_else(|error| error.downcast::<Refusal>().map(|refusal| self.answer(&refusal)))
    }

    /// Says what of the arguments has no effect, unless only the plan is shown.
    pub fn introduce(&self, notes: &[String]) {
        notes.iter().filter(|_| !names::is_dry_run()).for_each(|note| self.note(note));
    }

    /// Says what the figures do not.
    pub fn note(&self, text: &str) {
        eprintln!("latscope: {}: note: {text}", self.name);
    }

    /// Writes the JSON of a run that ends now, if it is asked for; whether nothing failed.
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

    /// Says how far measurements can be trusted; whether they took place at all.
    ///
    /// An end before the first event is an end like any other; a thread that
    /// could not begin is not.
    pub fn doubt(&self, measured: &[Measurement]) -> bool {
        super::environment::doubts(measured).iter().for_each(|doubt| self.note(doubt));
        !measured.iter().all(|m| m.quality.level == Level::Unsupported && m.incomplete)
    }
}
