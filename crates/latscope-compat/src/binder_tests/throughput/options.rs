//! The options of `binderThroughputTest`.

use crate::binder_tests::words::{self, Common, Spec, number, option};
use anyhow::{Result, ensure};
use std::ffi::OsString;

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-w`.
    pub workers: u64,
    /// `-i`.
    pub iterations: u64,
    /// `-s`, bytes.
    pub payload: u64,
    /// `-p`: half of the workers serve.
    pub pairs: bool,
    /// `-m`, µs.
    pub most_us: u64,
    /// `-t`.
    pub training: bool,
    /// Ours.
    pub common: Common,
}

/// All of them.
pub static SPECS: &[Spec] = &[
    option("-w", "N", "workers [2]"),
    option("-i", "N", "calls of each [10000]"),
    option("-s", "N", "bytes of a request, and of its reply [0, which is 4]"),
    option("-p", "", "half of the workers serve the other half"),
    option("-m", "US", "say what share of the calls took longer [50000]"),
    option("-t", "", "a round before, whose longest call, doubled, is taken for -m"),
];

impl Options {
    /// Reads a call.
    ///
    /// # Errors
    /// An option that is none, or a value that cannot be.
    pub fn read(arguments: &[OsString]) -> Result<Options> {
        let mut options = Options {
            workers: 2,
            iterations: 10_000,
            payload: 0,
            pairs: false,
            most_us: 50_000,
            training: false,
            common: Common::default(),
        };
        for (name, value) in words::read(SPECS, arguments)? {
            if !options.common.accept(name, &value)? {
                options.accept(name, &value)?;
            }
        }
        let even = !options.pairs || options.workers.is_multiple_of(2);
        ensure!(even, "-w {} cannot be split into pairs: choose an even number", options.workers);
        Ok(options)
    }

    fn accept(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "-w" => self.workers = number(name, value, 1..=1024)?,
            "-i" => self.iterations = number(name, value, 1..=1_000_000_000)?,
            "-s" => self.payload = number(name, value, 0..=64 << 20)?,
            "-m" => self.most_us = number(name, value, 1..=1_000_000_000)?,
            "-p" => self.pairs = true,
            _ => self.training = true,
        }
        Ok(())
    }

    /// How many workers call.
    pub fn callers(&self) -> u64 {
        if self.pairs { self.workers / 2 } else { self.workers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options> {
        Options::read(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_understood() {
        let usual = read("").unwrap();
        for spec in SPECS {
            let value = if spec.value.is_empty() { "" } else { " 8" };
            assert_ne!(read(&format!("{}{value}", spec.name)).unwrap(), usual, "{}", spec.name);
        }
        assert_eq!((usual.callers(), read("-p -w 6").unwrap().callers()), (2, 3));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (line, said) in [
            ("-w 0", "-w takes"),
            ("-p -w 3", "-w 3 cannot be split into pairs"),
            ("-m 0", "-m takes a number from 1"),
            ("-t 5", "there is no option \"5\""),
            ("-s x", "-s takes"),
        ] {
            let text = read(line).unwrap_err().to_string();
            assert!(text.contains(said) && !text.contains('\n'), "{line}: {text}");
        }
    }
}
