//! Command-line options of the latency tests.

use super::Test;
use crate::binder_tests::words::{BinderCommonOptions, option, parse_in_range};
use crate::getopt::{FLAG, ProgramOption, part, set_field, set_flag, value};

/// Values of the options of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyOptions {
    /// Test that the program makes.
    pub test: &'static Test,
    /// Value of `-i`: the number of turns, each of two calls.
    pub iterations: u64,
    /// Value of `-pair`: the number of pairs.
    pub pairs: u64,
    /// Value of `-deadline_us`: a call that takes longer is a miss.
    pub deadline_us: u64,
    /// Value of `-v`: print what took part in each call.
    pub verbose: bool,
    /// Value of `-trace`: end at the first miss, and stop the recorded trace.
    pub trace: bool,
    /// Value of `-raw_data`: print all durations of SCHED_FIFO calls.
    pub raw_data: bool,
    /// Value of `-m PASSTHROUGH`: call within the process.
    pub passthrough: bool,
    /// Values of the options that latscope adds.
    pub common: BinderCommonOptions,
}

impl LatencyOptions {
    /// Returns the options of a call of a test without arguments.
    pub fn for_test(test: &'static Test) -> LatencyOptions {
        LatencyOptions {
            test,
            iterations: 100,
            pairs: 1,
            deadline_us: 2500,
            verbose: false,
            trace: false,
            raw_data: false,
            passthrough: false,
            common: BinderCommonOptions::default(),
        }
    }

    /// Deadline of a call, in ns.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.deadline_us * 1000
    }
}

part!(LatencyOptions, common: BinderCommonOptions);

type LatencyOptionRow = ProgramOption<LatencyOptions>;

#[rustfmt::skip]
const ITERATIONS: LatencyOptionRow = option("-i", value("N"), "turns: in each a call by a SCHED_FIFO thread and one by a normal one [100]",
    |o, given| set_field(&mut o.iterations, parse_in_range(given, 1..=1_000_000_000)));
#[rustfmt::skip]
const PAIRS: LatencyOptionRow = option("-pair", value("N"), "pairs of a server and a client process [1]", |o, given| set_field(&mut o.pairs, parse_in_range(given, 1..=1024)));
#[rustfmt::skip]
const DEADLINE: LatencyOptionRow = option("-deadline_us", value("US"), "a call that takes longer is a miss [2500]",
    |o, given| set_field(&mut o.deadline_us, parse_in_range(given, 0..=1_000_000_000)));
#[rustfmt::skip]
const VERBOSE: LatencyOptionRow = option("-v", FLAG, "print who took part in each call, on stderr", |o, _| set_flag(&mut o.verbose));
#[rustfmt::skip]
const TRACE: LatencyOptionRow = option("-trace", FLAG, "end at the first miss, and stop the trace that is being recorded", |o, _| set_flag(&mut o.trace));

/// Options of the test over binder.
#[rustfmt::skip]
pub static BINDER: [LatencyOptionRow; 9] =
    [ITERATIONS, PAIRS, DEADLINE, VERBOSE, TRACE, ProgramOption::TRANSPORT, ProgramOption::LAYOUT, ProgramOption::SAVED, ProgramOption::USAGE];

/// Options of the test over hwbinder.
#[rustfmt::skip]
pub static HWBINDER: [LatencyOptionRow; 13] = [
    ITERATIONS,
    PAIRS,
    option("-w", value("N"), "the same as -pair", |o, given| set_field(&mut o.pairs, parse_in_range(given, 1..=1024))),
    DEADLINE,
    VERBOSE,
    TRACE,
    option("-raw_data", FLAG, "add all durations of SCHED_FIFO calls, ns", |o, _| set_flag(&mut o.raw_data)),
    option("-m", value("PASSTHROUGH"), "call within the process; any other word: over hwbinder",
        |o, given| set_field(&mut o.passthrough, Ok(given.value_text() == "PASSTHROUGH"))),
    option("-h", FLAG, "this text", |o, _| set_flag(&mut o.common.help)),
    ProgramOption::TRANSPORT,
    ProgramOption::LAYOUT,
    ProgramOption::SAVED,
    ProgramOption::USAGE,
];

#[cfg(test)]
mod tests {
    use super::super::{LIBHWBINDER_LATENCY, SCHD_DBG};
    use super::*;
    use crate::binder_tests::words::AndroidOutputVersion;
    use crate::context::PersonalityContext;
    use crate::getopt::CommandLineRefusal;
    use crate::personality::PersonalityProgram;

    fn read(
        program: &PersonalityProgram<LatencyOptions>,
        line: &str,
    ) -> Result<LatencyOptions, CommandLineRefusal> {
        program.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn every_option_is_understood() {
        let usual = read(&LIBHWBINDER_LATENCY, "").unwrap();
        assert_eq!((usual.iterations, usual.pairs, usual.deadline_ns()), (100, 1, 2_500_000));
        for ProgramOption { spec, .. } in HWBINDER.iter().filter(|option| option.spec.help != "this text") {
            let value = match spec.long {
                "-m" => "PASSTHROUGH",
                "--compat" => "8.0",
                _ => "7",
            };
            let line =
                if spec.value.is_empty() { spec.long.to_owned() } else { format!("{} {value}", spec.long) };
            assert_ne!(read(&LIBHWBINDER_LATENCY, &line).unwrap(), usual, "{line}");
        }
        assert_eq!(
            read(&LIBHWBINDER_LATENCY, "-w 3").unwrap(),
            read(&LIBHWBINDER_LATENCY, "-pair 3").unwrap()
        );
        assert!(!read(&LIBHWBINDER_LATENCY, "-m BINDERIZE").unwrap().passthrough);
        assert_eq!(read(&SCHD_DBG, "--compat=8.0").unwrap().common.layout, AndroidOutputVersion::Oreo);
    }

    #[test]
    fn each_has_its_own() {
        for line in ["-w 2", "-raw_data", "-m PASSTHROUGH", "-h"] {
            assert!(read(&SCHD_DBG, line).is_err(), "{line}");
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
            let text = read(&SCHD_DBG, line).unwrap_err().to_string();
            assert!(text.contains(said) && !text.contains('\n'), "{line}: {text}");
        }
    }
}
