//! Command lines of LMbench: one-letter options as getopt(3) reads them, then operands; sizes with a binary suffix.

use crate::getopt::{Spec, Takes, Whose, getopt};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Number of repetitions that LMbench makes without `-N`.
pub(crate) const USUAL_REPETITIONS: u64 = 11;

/// Call of a personality: everything that the reading of its arguments depends on.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Arguments without the program's name.
    pub arguments: Vec<OsString>,
    /// Value of `LMBENCH_SCHED` in the environment: the placement of processes by LMbench.
    pub scheduling: Option<String>,
}

impl Call {
    /// Returns a call with these arguments and no environment.
    pub fn new<I: IntoIterator<Item = S>, S: Into<OsString>>(arguments: I) -> Call {
        Call { arguments: arguments.into_iter().map(Into::into).collect(), scheduling: None }
    }
}

/// Reason for not carrying out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Arguments that the original program does not take. The answer is its usage line.
    #[error("wrong arguments")]
    Usage,
    /// Arguments that the original program takes and that no probe here covers.
    #[error("{0}")]
    Refused(String),
}

/// Refuses a call with a text about the alternatives.
pub fn refuse<T>(text: impl Into<String>) -> Result<T, CallError> {
    Err(CallError::Refused(text.into()))
}

/// Options and operands of a call.
#[derive(Debug, Clone, Default)]
pub struct LmbenchOptions {
    /// Value of `-P`: the number of callers at the same time.
    pub parallelism: u64,
    /// Value of `-W`: the warm-up asked for, in µs.
    pub warmup: u64,
    /// Value of `-N`: the number of repetitions; `None` for the default.
    pub repetitions: Option<u64>,
    /// Arguments that are no options, in order.
    pub operands: Vec<String>,
    letters: BTreeMap<char, Option<String>>,
}

impl LmbenchOptions {
    /// Reads a call by a getopt(3) string such as `"tP:W:N:"`, in which a colon follows each letter that takes a value.
    /// `-P`, `-W` and `-N` are understood in all programs that list them.
    ///
    /// # Errors
    /// An option is unknown, a value is missing, or a value is no number.
    pub fn read(call: &Call, letters: &str) -> Result<LmbenchOptions, CallError> {
        if call.arguments.iter().any(|argument| argument.to_str().is_none()) {
            return refuse("an argument is not UTF-8");
        }
        let specs: Vec<Spec> =
            letters.char_indices().filter_map(|(at, letter)| spec(letter, &letters[at..])).collect();
        let words =
            getopt(&specs.iter().collect::<Vec<_>>(), &call.arguments).map_err(|_| CallError::Usage)?;
        let mut options =
            LmbenchOptions { parallelism: 1, operands: words.operands, ..LmbenchOptions::default() };
        for (index, value) in words.options {
            options.accept(specs[index].short.unwrap_or_default(), value)?;
        }
        Ok(options)
    }

    fn accept(&mut self, letter: char, value: Option<String>) -> Result<(), CallError> {
        match (letter, value) {
            ('P', Some(value)) => {
                self.parallelism = number(&value).filter(|count| *count > 0).ok_or(CallError::Usage)?;
            }
            ('W', Some(value)) => self.warmup = number(&value).ok_or(CallError::Usage)?,
            // LMbench's own default is written -1: "as many as usual".
            ('N', Some(value)) if value.starts_with('-') => self.repetitions = None,
            ('N', Some(value)) => {
                self.repetitions = Some(number(&value).ok_or(CallError::Usage)?).filter(|count| *count > 0);
            }
            (letter, value) => {
                self.letters.insert(letter, value);
            }
        }
        Ok(())
    }

    /// Returns true if a flag such as `-t` was given.
    pub fn flag(&self, letter: char) -> bool {
        self.letters.contains_key(&letter)
    }

    /// Value of an option such as `-s`, if it was given.
    pub fn value(&self, letter: char) -> Option<&str> {
        self.letters.get(&letter)?.as_deref()
    }

    /// Value in bytes of an option that is a size, or `default` if it was not given.
    ///
    /// # Errors
    /// The value is no size.
    pub fn size(&self, letter: char, default: u64) -> Result<u64, CallError> {
        match self.value(letter) {
            None => Ok(default),
            Some(text) => bytes(text).filter(|size| *size > 0).ok_or(CallError::Usage),
        }
    }

    /// Refuses more than one caller, so that `-P` is never ignored silently.
    ///
    /// # Errors
    /// `-P` is more than 1.
    pub(crate) fn one_caller(&self, probe: &str) -> Result<(), CallError> {
        match self.parallelism {
            1 => Ok(()),
            many => refuse(format!(
                "-P {many} is not covered: {probe} measures one caller at a time; give -P 1, or put load \
                 beside it with `latscope {} --load cpu`",
                probe.split('.').next().unwrap_or(probe)
            )),
        }
    }

    /// Returns the operands, if there are exactly `N`.
    ///
    /// # Errors
    /// There are more or fewer.
    pub fn exactly<const N: usize>(&self) -> Result<[&str; N], CallError> {
        let operands: Vec<&str> = self.operands.iter().map(String::as_str).collect();
        operands.try_into().map_err(|_| CallError::Usage)
    }
}

/// Option with this letter at the begin of the rest of a getopt(3) string.
fn spec(letter: char, rest: &str) -> Option<Spec> {
    let takes = if rest[letter.len_utf8()..].starts_with(':') { Takes::Value } else { Takes::Nothing };
    let (short, whose) = (Some(letter), Whose::Theirs);
    (letter != ':').then_some(Spec { short, long: "", takes, value: "", help: "", whose })
}

/// Number at the beginning of a text, as atoi(3) would find it: `256M` is 256.
pub fn number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Parses a size in bytes: `512`, `8k`, `4m`, `1g`, in powers of 1024.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

/// Directory of a file. A probe puts a file of its own there to measure the same file system.
pub fn directory_of(file: &str) -> PathBuf {
    match PathBuf::from(file).parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_and_operands_are_told_apart() {
        let call = Call::new(["-P", "2", "-W5", "-tN", "7", "128", "64", "1k"]);
        let options = LmbenchOptions::read(&call, "tP:W:N:").unwrap();
        assert_eq!((options.parallelism, options.warmup, options.repetitions), (2, 5, Some(7)));
        assert!(options.flag('t'));
        assert_eq!(options.operands, ["128", "64", "1k"]);
    }

    #[test]
    fn what_the_old_program_rejects_is_a_usage_error() {
        for wrong in [&["-x"][..], &["-P", "0"], &["-P"], &["-P", "two"], &["-:"], &["--help"], &["-N", "x"]]
        {
            let read = LmbenchOptions::read(&Call::new(wrong.iter().copied()), "P:W:N:");
            assert_eq!(read.err(), Some(CallError::Usage), "{wrong:?}");
        }
    }

    #[test]
    fn a_negative_or_zero_repetition_count_means_the_usual() {
        for usual in ["-1", "0"] {
            let options = LmbenchOptions::read(&Call::new(["-N", usual]), "N:").unwrap();
            assert_eq!(options.repetitions, None, "{usual}");
        }
    }

    #[test]
    fn parallelism_that_is_not_covered_is_refused_in_words() {
        let options = LmbenchOptions::read(&Call::new(["-P", "4"]), "P:").unwrap();
        let refusal = options.one_caller("syscall.read").unwrap_err().to_string();
        assert!(refusal.contains("-P 4") && refusal.contains("latscope syscall --load"), "{refusal}");
    }

    #[test]
    fn sizes_take_binary_suffixes() {
        let cases = [("512", 512), ("8k", 8192), ("8K", 8192), ("2m", 2 << 20), ("1G", 1 << 30)];
        for (text, size) in cases {
            assert_eq!(bytes(text), Some(size), "{text}");
        }
        for wrong in ["", "k", "1kb", "1x", "-1", "99999999999g"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_without_a_directory_lies_in_the_current_one() {
        assert_eq!(directory_of("XXX"), PathBuf::from("."));
        assert_eq!(directory_of("/var/tmp/XXX"), PathBuf::from("/var/tmp"));
    }

    proptest! {
        #[test]
        fn reading_never_panics(arguments in proptest::collection::vec("[-a-zA-Z0-9:=é ]{0,6}", 0..6)) {
            let read = LmbenchOptions::read(&Call::new(arguments), "tCP:W:N:s:");
            prop_assert!(read.is_err() || read.is_ok_and(|options| options.parallelism >= 1));
        }

        #[test]
        fn numbers_are_read_as_atoi_does(value in 0u64..1_000_000, rest in "[a-zA-Z]{0,3}") {
            prop_assert_eq!(number(&format!("{value}{rest}")), Some(value));
        }
    }
}
