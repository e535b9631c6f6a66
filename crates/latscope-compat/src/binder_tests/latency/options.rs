//! The options of the latency tests.

use super::Test;
use crate::binder_tests::words::{self, Common, Spec, number, option};
use anyhow::Result;
use std::ffi::OsString;

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-i`: turns, each of two calls.
    pub iterations: u64,
    /// `-pair`.
    pub pairs: u64,
    /// `-deadline_us`.
    pub deadline_us: u64,
    /// `-v`.
    pub verbose: bool,
    /// `-trace`.
    pub trace: bool,
    /// `-raw_data`.
    pub raw_data: bool,
    /// `-m PASSTHROUGH`.
    pub passthrough: bool,
    /// Ours.
    pub common: Common,
}

const BINDER: [Spec; 5] = [
    option("-i", "N", "turns: in each a call by a SCHED_FIFO thread and one by a normal one [100]"),
    option("-pair", "N", "pairs of a server and a client process [1]"),
    option("-deadline_us", "US", "a call that takes longer is a miss [2500]"),
    option("-v", "", "print who took part in each call, on stderr"),
    option("-trace", "", "end at the first miss, and stop the trace that is being recorded"),
];

static HWBINDER: [Spec; 9] = {
    let [iterations, pairs, deadline, verbose, trace] = BINDER;
    [
        iterations,
        pairs,
        option("-w", "N", "the same as -pair"),
        deadline,
        verbose,
        trace,
        option("-raw_data", "", "add all durations of SCHED_FIFO calls, ns"),
        option("-m", "PASSTHROUGH", "call within the process; any other word: over hwbinder"),
        option("-h", "", "this text"),
    ]
};

/// Those that a program has.
pub fn specs(test: &Test) -> &'static [Spec] {
    if test.fuller { &HWBINDER } else { &BINDER }
}

impl Options {
    /// Reads a call.
    ///
    /// # Errors
    /// An option that is none, or a value that cannot be.
    pub fn read(test: &Test, arguments: &[OsString]) -> Result<Options> {
        let mut options = Options {
            iterations: 100,
            pairs: 1,
            deadline_us: 2500,
            verbose: false,
            trace: false,
            raw_data: false,
            passthrough: false,
            common: Common::default(),
        };
        for (name, value) in words::read(specs(test), arguments)? {
            if !options.common.accept(name, &value)? {
                options.accept(name, &value)?;
            }
        }
        Ok(options)
    }

    fn accept(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "-i" => self.iterations = number(name, value, 1..=1_000_000_000)?,
            "-pair" | "-w" => self.pairs = number(name, value, 1..=1024)?,
            "-deadline_us" => self.deadline_us = number(name, value, 0..=1_000_000_000)?,
            "-m" => self.passthrough = value == "PASSTHROUGH",
            "-v" => self.verbose = true,
            "-trace" => self.trace = true,
            _ => self.raw_data = true,
        }
        Ok(())
    }

    /// The deadline in ns.
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_us * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BINDER, HWBINDER};
    use super::*;
    use crate::binder_tests::words::Layout;

    fn read(test: &Test, line: &str) -> Result<Options> {
        Options::read(test, &line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_understood() {
        let usual = read(&HWBINDER, "").unwrap();
        assert_eq!((usual.iterations, usual.pairs, usual.deadline_ns()), (100, 1, 2_500_000));
        for spec in specs(&HWBINDER).iter().chain(&words::OURS) {
            let value = match spec.name {
                "-m" => "PASSTHROUGH",
                "--compat" => "8.0",
                _ => "7",
            };
            let line =
                if spec.value.is_empty() { spec.name.to_owned() } else { format!("{} {value}", spec.name) };
            assert_ne!(read(&HWBINDER, &line).unwrap(), usual, "{line}");
        }
        assert_eq!(read(&HWBINDER, "-w 3").unwrap(), read(&HWBINDER, "-pair 3").unwrap());
        assert!(!read(&HWBINDER, "-m BINDERIZE").unwrap().passthrough);
        assert_eq!(read(&BINDER, "--compat=8.0").unwrap().common.layout, Layout::Oreo);
    }

    #[test]
    fn each_has_its_own() {
        for line in ["-w 2", "-raw_data", "-m PASSTHROUGH", "-h"] {
            assert!(read(&BINDER, line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (line, said) in [
            ("-i 0", "-i takes a number from 1 to"),
            ("-i many", "not \"many\""),
            ("-i", "-i needs a value"),
            ("-pair 0", "-pair takes"),
            ("-deadline_us -1", "-deadline_us takes"),
            ("-x", "there is no option \"-x\""),
            ("--compat 7", "--compat 7 is not known"),
        ] {
            let text = read(&BINDER, line).unwrap_err().to_string();
            assert!(text.contains(said) && !text.contains('\n'), "{line}: {text}");
        }
    }
}
