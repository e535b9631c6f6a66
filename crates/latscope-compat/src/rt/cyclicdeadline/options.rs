//! cyclicdeadline's options.

use crate::rt::arguments::{self, Given, Spec, duration, number};
use crate::rt::cpuset::is_set;
use crate::rt::{Refusal, Release};
use std::ffi::OsString;
use std::path::PathBuf;

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-a`: `Some(None)` for a thread on each CPU.
    pub affinity: Option<Option<String>>,
    /// `-b`, µs.
    pub break_above: Option<u64>,
    /// `-D`, ns.
    pub duration: Option<u64>,
    /// `-i`, µs.
    pub interval: u64,
    /// `-s`, µs.
    pub step: u64,
    /// `-t`.
    pub threads: u64,
    /// `-h` of 2.10: buckets.
    pub histogram: Option<u64>,
    /// `--json`.
    pub json: Option<PathBuf>,
    /// `-q`.
    pub quiet: bool,
    /// `--tracemark`.
    pub trace_mark: bool,
    /// `--compat`.
    pub release: Release,
    /// `--strict-exit`.
    pub strict_exit: bool,
    /// `--result`.
    pub result: Option<PathBuf>,
    /// Words on stderr.
    pub notes: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            affinity: None,
            break_above: None,
            duration: None,
            interval: 1000,
            step: 500,
            threads: 1,
            histogram: None,
            json: None,
            quiet: false,
            trace_mark: false,
            release: Release::default(),
            strict_exit: false,
            result: None,
            notes: Vec::new(),
        }
    }
}

const AFFINITY: Spec =
    Spec::perhaps(Some('a'), "affinity", "SET", is_set, "a thread on each CPU; SET must be all");
const BREAK: Spec = Spec::value(Some('b'), "breaktrace", "US", "end at the first latency above US");
const DURATION: Spec =
    Spec::value(Some('D'), "duration", "T", "seconds, or with m, h, d minutes, hours, days");
const INTERVAL: Spec = Spec::value(Some('i'), "interval", "US", "period of the first thread [1000]");
const JSON: Spec = Spec::value(None, "json", "FILE", "write the result as JSON; - is stdout");
const STEP: Spec = Spec::value(Some('s'), "step", "US", "each further thread's period is longer by US [500]");
const THREADS: Spec = Spec::value(Some('t'), "threads", "N", "number of threads [1]");
const QUIET: Spec = Spec::flag(Some('q'), "quiet", "print only the end");
const TRACE: Spec = Spec::flag(None, "tracemark", "with -b mark and stop the trace that you have started");
const COMPAT: Spec = Spec::value(None, "compat", "2.4|2.10", "whose options and text [2.4]").ours();
const STRICT: Spec = Spec::flag(None, "strict-exit", "exit code 2 when -b ended the run").ours();
const RESULT: Spec = Spec::value(None, "result", "FILE", "save latscope's result too").ours();

/// Those of 2.4, then ours.
pub static SPECS: &[Spec] = &[
    AFFINITY,
    BREAK,
    DURATION,
    INTERVAL,
    JSON,
    STEP,
    THREADS,
    QUIET,
    TRACE,
    Spec::flag(Some('h'), "help", "this text"),
    COMPAT,
    STRICT,
    RESULT,
];

/// Those of 2.10, where `-h` is a histogram.
static SPECS_2_10: &[Spec] = &[
    AFFINITY,
    BREAK,
    DURATION,
    INTERVAL,
    JSON,
    STEP,
    THREADS,
    QUIET,
    TRACE,
    Spec::value(Some('h'), "histogram", "US", "print a histogram with US buckets of 1 us"),
    Spec::flag(None, "help", "this text"),
    COMPAT,
    STRICT,
    RESULT,
];

impl Options {
    /// Reads a call.
    ///
    /// # Errors
    /// Help was asked for, or the call cannot be carried out.
    pub fn read(arguments: &[OsString]) -> Result<Options, Refusal> {
        let newer = arguments.windows(2).any(|two| two[0] == "--compat" && two[1] == "2.10")
            || arguments.iter().any(|word| word == "--compat=2.10");
        let words = arguments::read(if newer { SPECS_2_10 } else { SPECS }, arguments)?;
        let mut options = Options::default();
        for given in &words.options {
            options.accept(given)?;
        }
        for operand in &words.operands {
            options.notes.push(format!("{operand:?} is no option and is ignored"));
        }
        Ok(options)
    }

    fn accept(&mut self, given: &Given) -> Result<(), Refusal> {
        let text = given.value.clone().unwrap_or_default();
        match given.spec.long {
            "affinity" => self.affinity = Some(given.value.clone()),
            "breaktrace" => self.break_above = Some(count(given, &text)?).filter(|limit| *limit > 0),
            "duration" => self.duration = Some(duration(&text)?).filter(|ns| *ns > 0),
            "interval" => self.interval = positive(given, &text)?,
            "step" => self.step = count(given, &text)?,
            "threads" => self.threads = count(given, &text)?.max(1),
            "histogram" => self.histogram = Some(positive(given, &text)?.min(1_000_000)),
            "json" => self.json = Some(text.into()),
            "result" => self.result = Some(text.into()),
            "quiet" => self.quiet = true,
            "tracemark" => self.trace_mark = true,
            "strict-exit" => self.strict_exit = true,
            "compat" => {
                let wrong = || Refusal::Usage(format!("--compat={text} is neither 2.4 nor 2.10"));
                self.release = Release::named(&text).ok_or_else(wrong)?;
            }
            _ => return Err(Refusal::Help),
        }
        Ok(())
    }
}

fn count(given: &Given, text: &str) -> Result<u64, Refusal> {
    let wrong = || Refusal::Usage(format!("{} {text} is no number", given.spec.name()));
    number(text).and_then(|(number, _)| u64::try_from(number).ok()).ok_or_else(wrong)
}

fn positive(given: &Given, text: &str) -> Result<u64, Refusal> {
    let zero = || Refusal::Usage(format!("{} {text} is not above 0", given.spec.name()));
    Some(count(given, text)?).filter(|number| *number > 0).ok_or_else(zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, Refusal> {
        Options::read(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_understood() {
        for spec in SPECS.iter().chain(SPECS_2_10).filter(|spec| spec.long != "help") {
            let value = if spec.long == "compat" { "2.10" } else { "7" };
            let compat = if spec.long == "histogram" { " --compat=2.10" } else { "" };
            let line = match spec.takes {
                arguments::Takes::Value => format!("--{} {value}{compat}", spec.long),
                _ => format!("--{}", spec.long),
            };
            assert_ne!(read(&line).unwrap(), Options::default(), "{line}");
        }
    }

    #[test]
    fn h_is_help_in_2_4_and_a_histogram_in_2_10() {
        assert_eq!(read("-h"), Err(Refusal::Help));
        assert_eq!(read("-h 40 --compat 2.10").unwrap().histogram, Some(40));
        assert_eq!(read("--compat=2.10 -h40").unwrap().histogram, Some(40));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (line, said) in
            [("-i 0", "not above 0"), ("-t x", "no number"), ("-D 1x", "no time"), ("-Z", "invalid option")]
        {
            let text = read(line).unwrap_err().to_string();
            assert!(text.contains(said) && !text.contains('\n'), "{line}: {text}");
        }
    }
}
