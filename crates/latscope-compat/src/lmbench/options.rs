//! Options of LMbench's programs: letters as getopt(3) reads them, then operands; sizes with a binary suffix.

use crate::context::PersonalityContext;
use crate::getopt::{
    self, CommandLineRefusal, CommandLineWords, FLAG, OptionOccurrence, ProgramCall, ProgramOption, Spec,
    parse_size, set_field, value,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Number of repetitions that LMbench makes without `-N`.
pub(crate) const USUAL_REPETITIONS: u64 = 11;

/// Values of the options of a call.
#[derive(Debug, Clone, Default)]
pub struct LmbenchOptions {
    /// Value of `LMBENCH_SCHED` in the environment: the placement of processes by LMbench.
    pub scheduling: Option<String>,
    /// Value of `-P`: the number of callers at the same time.
    pub parallelism: u64,
    /// Value of `-W`: the warm-up asked for, in µs.
    pub warmup: u64,
    /// Value of `-N`: the number of repetitions; `None` for the default.
    pub repetitions: Option<u64>,
    letters: BTreeMap<char, Option<String>>,
}

/// Call of a program of LMbench.
pub type LmbenchCall = ProgramCall<LmbenchOptions>;

type Letter = ProgramOption<LmbenchOptions>;

/// Options that most programs have.
pub(super) const P: Letter = parallelism("<parallelism>");
pub(super) const W: Letter = ProgramOption::new(Some('W'), "", value("<warmup>"), "", |o, given| {
    set_field(&mut o.warmup, parse_leading_digits(given.value_text()).ok_or_else(usage_refusal))
});
pub(super) const N: Letter = ProgramOption::new(Some('N'), "", value("<repetitions>"), "", |o, given| {
    set_field(&mut o.repetitions, repetitions(given.value_text()))
});

/// Returns `-P` with this name of its value in the usage.
pub(super) const fn parallelism(name: &'static str) -> Letter {
    ProgramOption::new(Some('P'), "", value(name), "", |o, given| {
        set_field(
            &mut o.parallelism,
            parse_leading_digits(given.value_text()).filter(|count| *count > 0).ok_or_else(usage_refusal),
        )
    })
}

/// Returns a flag that a single program has.
pub(super) const fn flag(letter: char) -> Letter {
    ProgramOption::new(Some(letter), "", FLAG, "", store_option)
}

/// Returns an option that a single program has, with this name of its value in the usage.
pub(super) const fn value_option(letter: char, name: &'static str) -> Letter {
    ProgramOption::new(Some(letter), "", value(name), "", store_option)
}

fn store_option(
    options: &mut LmbenchOptions,
    given: &mut OptionOccurrence,
) -> Result<(), CommandLineRefusal> {
    let letter = given.name.chars().nth(1).unwrap_or_default();
    options.letters.insert(letter, given.value.clone());
    Ok(())
}

/// Parses `-N`. LMbench's own default is written -1: "as many as usual".
fn repetitions(text: &str) -> Result<Option<u64>, CommandLineRefusal> {
    if text.starts_with('-') {
        return Ok(None);
    }
    Ok(Some(parse_leading_digits(text).ok_or_else(usage_refusal)?).filter(|count| *count > 0))
}

/// Refusal of arguments that the original program does not take. Its usage names no mistake.
pub(super) fn usage_refusal() -> CommandLineRefusal {
    CommandLineRefusal::Usage(String::new())
}

/// Refuses a call that no probe covers with a text about the alternatives.
pub(super) fn refuse<T>(text: impl Into<String>) -> Result<T, CommandLineRefusal> {
    Err(CommandLineRefusal::Fatal(text.into()))
}

/// Separates the words of a call. Arguments that are not UTF-8 are refused.
pub(super) fn grammar(
    specs: &[&Spec],
    arguments: &[OsString],
) -> Result<CommandLineWords, CommandLineRefusal> {
    if arguments.iter().any(|argument| argument.to_str().is_none()) {
        return refuse("an argument is not UTF-8");
    }
    getopt::getopt(specs, arguments)
}

impl LmbenchOptions {
    /// Returns the options of a call without arguments.
    pub(super) fn default_options(
        context: &PersonalityContext,
    ) -> Result<LmbenchOptions, CommandLineRefusal> {
        let scheduling = (context.variable)("LMBENCH_SCHED").and_then(|value| value.into_string().ok());
        Ok(LmbenchOptions { scheduling, parallelism: 1, ..LmbenchOptions::default() })
    }

    /// Returns true if a flag such as `-t` was given.
    pub fn flag(&self, letter: char) -> bool {
        self.letters.contains_key(&letter)
    }

    /// Value of an option such as `-s`, if it was given.
    pub fn option_value(&self, letter: char) -> Option<&str> {
        self.letters.get(&letter)?.as_deref()
    }

    /// Value in bytes of an option that is a size, or `default` if it was not given.
    ///
    /// # Errors
    /// The value is no size.
    pub fn size_bytes(&self, letter: char, default: u64) -> Result<u64, CommandLineRefusal> {
        match self.option_value(letter) {
            None => Ok(default),
            Some(text) => parse_size(text).filter(|size| *size > 0).ok_or_else(usage_refusal),
        }
    }

    /// Refuses more than one caller, so that `-P` is never ignored silently.
    ///
    /// # Errors
    /// `-P` is more than 1.
    pub(crate) fn one_caller(&self, probe: &str) -> Result<(), CommandLineRefusal> {
        match self.parallelism {
            1 => Ok(()),
            many => refuse(format!(
                "-P {many} is not covered: {probe} measures one caller at a time; give -P 1, or put load \
                 beside it with `latscope {} --load cpu`",
                probe.split('.').next().unwrap_or(probe)
            )),
        }
    }
}

impl LmbenchCall {
    /// Returns the operands, if there are exactly `N`.
    ///
    /// # Errors
    /// There are more or fewer.
    pub(super) fn exactly<const N: usize>(&self) -> Result<[&str; N], CommandLineRefusal> {
        let operands: Vec<&str> = self.operands.iter().map(String::as_str).collect();
        operands.try_into().map_err(|_| usage_refusal())
    }
}

/// Number at the beginning of a text, as atoi(3) would find it: `256M` is 256.
pub fn parse_leading_digits(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
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

    const ALL: &[Letter] = &[flag('t'), flag('C'), P, W, N, value_option('s', "<size>")];

    fn read<S: Into<OsString>>(
        words: impl IntoIterator<Item = S>,
    ) -> Result<LmbenchCall, CommandLineRefusal> {
        let context = PersonalityContext::new(words);
        getopt::read(ALL, grammar, &context.arguments, LmbenchOptions::default_options(&context)?)
    }

    #[test]
    fn options_and_operands_are_told_apart() {
        let call = read(["-P", "2", "-W5", "-tN", "7", "128", "64", "1k"]).unwrap();
        let options = &call.options;
        assert_eq!((options.parallelism, options.warmup, options.repetitions), (2, 5, Some(7)));
        assert!(options.flag('t'));
        assert_eq!(call.operands, ["128", "64", "1k"]);
    }

    #[test]
    fn what_the_old_program_rejects_is_a_usage_error() {
        for wrong in [&["-x"][..], &["-P", "0"], &["-P"], &["-P", "two"], &["-:"], &["--help"], &["-N", "x"]]
        {
            assert!(matches!(read(wrong.iter().copied()), Err(CommandLineRefusal::Usage(_))), "{wrong:?}");
        }
    }

    #[test]
    fn a_negative_or_zero_repetition_count_means_the_usual() {
        for usual in ["-1", "0"] {
            assert_eq!(read(["-N", usual]).unwrap().options.repetitions, None, "{usual}");
        }
    }

    #[test]
    fn parallelism_that_is_not_covered_is_refused_in_words() {
        let options = read(["-P", "4"]).unwrap().options;
        let refusal = options.one_caller("syscall.read").unwrap_err().to_string();
        assert!(refusal.contains("-P 4") && refusal.contains("latscope syscall --load"), "{refusal}");
    }

    #[test]
    fn a_file_without_a_directory_lies_in_the_current_one() {
        assert_eq!(directory_of("XXX"), PathBuf::from("."));
        assert_eq!(directory_of("/var/tmp/XXX"), PathBuf::from("/var/tmp"));
    }

    proptest! {
        #[test]
        fn reading_never_panics(arguments in proptest::collection::vec("[-a-zA-Z0-9:=é ]{0,6}", 0..6)) {
            let read = read(arguments);
            prop_assert!(read.is_err() || read.is_ok_and(|call| call.options.parallelism >= 1));
        }

        #[test]
        fn numbers_are_read_as_atoi_does(value in 0u64..1_000_000, rest in "[a-zA-Z]{0,3}") {
            prop_assert_eq!(parse_leading_digits(&format!("{value}{rest}")), Some(value));
        }
    }
}
