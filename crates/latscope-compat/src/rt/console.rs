//! What the programs say on the standard streams.

use super::Refusal;
use super::options;
use crate::getopt::Opt;
use crate::names;
use anyhow::Result;
use latscope_core::report::{Measurement, Support};
use latscope_host::eprintln;
use latscope_host::stdout::print;

/// The version that the programs print.
pub(super) const VERSION: &str = "2.40";

/// A program as its words name it.
pub struct Voice<O: 'static> {
    /// Its name.
    pub name: &'static str,
    /// Its options.
    pub table: &'static [Opt<O>],
}

impl<O> Voice<O> {
    /// Answers a call that is not carried out; returns the exit code.
    /// cyclictest's own for an unknown option is 0, which no script can notice.
    pub fn answer(&self, refusal: &Refusal) -> u8 {
        let usage = || print(&options::usage(self.name, self.table));
        match refusal {
            Refusal::Help => {
                usage();
                return 0;
            }
            Refusal::Usage(text) => {
                eprintln!("{}: {text}", self.name);
                usage();
            }
            Refusal::Fatal(text) => eprintln!("{text}"),
        }
        1
    }

    /// Answers where a call was refused; other errors are passed on.
    ///
    /// # Errors
    /// Any but a [`Refusal`].
    pub fn settle(&self, outcome: Result<u8>) -> Result<u8> {
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

    /// Says how far measurements can be trusted; whether they took place at all.
    ///
    /// An end before the first event is an end like any other; a thread that
    /// could not begin is not.
    pub fn doubt(&self, measured: &[Measurement]) -> bool {
        super::environment::doubts(measured).iter().for_each(|doubt| self.note(doubt));
        !measured.iter().all(|m| m.support == Support::Unsupported && m.incomplete)
    }
}
