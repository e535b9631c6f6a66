//! oslat's options.

use crate::rt::Refusal;
use crate::rt::arguments::{self, Given, Spec, duration, number};
use std::ffi::OsString;
use std::path::PathBuf;

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-b`.
    pub buckets: u64,
    /// `-B`.
    pub bias: bool,
    /// `-c`, as it was given.
    pub cpus: Option<String>,
    /// `-C`.
    pub main_cpu: u32,
    /// `-D`, ns.
    pub duration: u64,
    /// `--json`.
    pub json: Option<PathBuf>,
    /// `-f`.
    pub priority: Option<u32>,
    /// `-m`, bytes.
    pub memory: u64,
    /// `-q`.
    pub quiet: bool,
    /// `-s`.
    pub single_preheat: bool,
    /// `-T`, µs.
    pub trace_threshold: Option<u64>,
    /// `-z`.
    pub zero_omit: bool,
    /// `-v`.
    pub version: bool,
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
            buckets: 32,
            bias: false,
            cpus: None,
            main_cpu: 0,
            duration: 1_000_000_000,
            json: None,
            priority: None,
            memory: 0,
            quiet: false,
            single_preheat: false,
            trace_threshold: None,
            zero_omit: false,
            version: false,
            strict_exit: false,
            result: None,
            notes: Vec::new(),
        }
    }
}

/// All of them, then ours.
pub static SPECS: &[Spec] = &[
    Spec::value(Some('b'), "bucket-size", "N", "buckets of 1 us, 4 to 1024 [32]"),
    Spec::flag(Some('B'), "bias", "add the least time of a turn to all labels"),
    Spec::value(Some('c'), "cpu-list", "SET", "CPUs to watch [all]"),
    Spec::value(Some('C'), "cpu-main-thread", "CPU", "CPU of the thread that waits [0]"),
    Spec::value(Some('D'), "duration", "T", "seconds, or with m, h, d minutes, hours, days [1]"),
    Spec::value(None, "json", "FILE", "write the result as JSON; - is stdout"),
    Spec::value(Some('f'), "rtprio", "PRIO", "SCHED_FIFO with this priority"),
    Spec::value(Some('m'), "workload-mem", "SIZE", "no effect without a workload"),
    Spec::flag(Some('q'), "quiet", "print only the end"),
    Spec::flag(Some('s'), "single-preheat", "no effect: the clock needs no pre-heating"),
    Spec::value(Some('T'), "trace-threshold", "US", "end at the first gap of US, mark and stop the trace"),
    Spec::flag(Some('v'), "version", "print the version"),
    Spec::value(Some('w'), "workload", "NAME", "no"),
    Spec::flag(Some('z'), "zero-omit", "leave out rows of zeros"),
    Spec::flag(Some('h'), "help", "this text"),
    Spec::flag(None, "strict-exit", "exit code 2 when -T ended the run").ours(),
    Spec::value(None, "result", "FILE", "save latscope's result too: quantiles, who took the time").ours(),
];

impl Options {
    /// Reads a call.
    ///
    /// # Errors
    /// Help was asked for, or the call cannot be carried out.
    pub fn read(arguments: &[OsString]) -> Result<Options, Refusal> {
        let words = arguments::read(SPECS, arguments)?;
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
            "bucket-size" => self.buckets = within(&text, 4..=1024, "Illegal bucket size")?,
            "rtprio" => self.priority = Some(within(&text, 1..=99, "Illegal RT priority")? as u32),
            "cpu-main-thread" => {
                self.main_cpu = within(&text, 0..=65_535, "Illegal core for main thread")? as u32;
            }
            "trace-threshold" => {
                let positive = within(&text, 1..=1 << 40, "Illegal trace threshold")?;
                self.trace_threshold = Some(positive);
            }
            "duration" => {
                self.duration = duration(&text)?;
                if self.duration == 0 {
                    return Err(Refusal::Fatal(format!("Illegal runtime: {text}")));
                }
            }
            "workload" => workload(&text)?,
            "workload-mem" => self.memory = memory(&text)?,
            "cpu-list" => self.cpus = Some(text),
            "json" => self.json = Some(text.into()),
            "result" => self.result = Some(text.into()),
            "help" => return Err(Refusal::Help),
            "bias" => self.bias = true,
            "quiet" => self.quiet = true,
            "single-preheat" => self.single_preheat = true,
            "version" => self.version = true,
            "zero-omit" => self.zero_omit = true,
            _ => self.strict_exit = true,
        }
        Ok(())
    }
}

fn within(text: &str, range: std::ops::RangeInclusive<u64>, what: &str) -> Result<u64, Refusal> {
    let whole = number(text).filter(|(_, whole)| *whole).and_then(|(number, _)| u64::try_from(number).ok());
    whole.filter(|number| range.contains(number)).ok_or_else(|| {
        Refusal::Fatal(format!("{what}: {text} (should be: {}-{})", range.start(), range.end()))
    })
}

fn workload(name: &str) -> Result<(), Refusal> {
    match name {
        "no" => Ok(()),
        "memmove" => Err(Refusal::Fatal(
            "oslat: the workload memmove is not covered: gaps are those of a loop that does nothing else. \
             `latscope noise --load memory` puts it beside the loop"
                .to_owned(),
        )),
        _ => Err(Refusal::Fatal(format!("Unknown workload '{name}'.  Please choose from: 'no', 'memmove'"))),
    }
}

fn memory(text: &str) -> Result<u64, Refusal> {
    let unknown = || Refusal::Fatal(format!("Unknown workload memory size '{text}'."));
    crate::arguments::bytes(text).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, Refusal> {
        Options::read(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_understood() {
        for spec in SPECS.iter().filter(|spec| spec.long != "help") {
            let value = match spec.long {
                "duration" => "5m",
                "workload" => "no",
                _ => "7",
            };
            let line = match spec.takes {
                arguments::Takes::Nothing => format!("--{}", spec.long),
                _ => format!("--{} {value}", spec.long),
            };
            let same = read(&line).unwrap() == Options::default();
            assert_eq!(same, spec.long == "workload", "{line}");
        }
        assert_eq!(read("-h"), Err(Refusal::Help));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (line, said) in [
            ("-b 3", "Illegal bucket size: 3 (should be: 4-1024)"),
            ("-f 100", "Illegal RT priority: 100 (should be: 1-99)"),
            ("-T 0", "Illegal trace threshold"),
            ("-D 1x", "no time"),
            ("-D 0", "Illegal runtime: 0"),
            ("-w memmove", "not covered"),
            ("-w what", "Unknown workload 'what'"),
            ("-m 64Q", "Unknown workload memory size '64Q'"),
            ("-W", "invalid option -- 'W'"),
        ] {
            let text = read(line).unwrap_err().to_string();
            assert!(text.contains(said) && !text.contains('\n'), "{line}: {text}");
        }
    }
}
