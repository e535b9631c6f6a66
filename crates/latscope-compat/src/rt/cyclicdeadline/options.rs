//! Command-line options of cyclicdeadline.

use crate::getopt::{ProgramOption, part, perhaps, set_field, value};
use crate::rt::cpuset::is_set;
use crate::rt::options::RtTestsCommonOptions;
use smart_default::SmartDefault;

/// Values of the options of a call.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct CyclicdeadlineOptions {
    /// Value of `-a`: `Some(None)` for a thread on each CPU.
    pub affinity: Option<Option<String>>,
    /// Value of `-i`, in µs: the period of the first thread.
    #[default(1000)]
    pub interval: u64,
    /// Value of `-s`, in µs: each further thread's period is longer by this.
    #[default(500)]
    pub step: u64,
    /// Value of `-t`: the number of threads.
    #[default(1)]
    pub threads: u64,
    /// Value of `-h` of release 2.10: the number of buckets.
    pub histogram: Option<u64>,
    /// Values of the options that other programs share.
    pub common: RtTestsCommonOptions,
}

part!(CyclicdeadlineOptions, common: RtTestsCommonOptions);

#[rustfmt::skip]
const AFFINITY: ProgramOption<CyclicdeadlineOptions> = ProgramOption::new(Some('a'), "affinity", perhaps("SET", is_set), "a thread on each CPU; SET must be all",
    |o, given| set_field(&mut o.affinity, Ok(Some(given.value.clone()))));
#[rustfmt::skip]
const INTERVAL: ProgramOption<CyclicdeadlineOptions> = ProgramOption::new(Some('i'), "interval", value("US"), "period of the first thread [1000]",
    |o, given| set_field(&mut o.interval, given.positive()));
#[rustfmt::skip]
const STEP: ProgramOption<CyclicdeadlineOptions> = ProgramOption::new(Some('s'), "step", value("US"), "each further thread's period is longer by US [500]",
    |o, given| set_field(&mut o.step, given.parse_count()));
#[rustfmt::skip]
const THREADS: ProgramOption<CyclicdeadlineOptions> = ProgramOption::new(Some('t'), "threads", value("N"), "number of threads [1]",
    |o, given| set_field(&mut o.threads, given.parse_count().map(|count| count.max(1))));
#[rustfmt::skip]
const HISTOGRAM: ProgramOption<CyclicdeadlineOptions> = ProgramOption::new(Some('h'), "histogram", value("US"), "print a histogram with US buckets of 1 us",
    |o, given| set_field(&mut o.histogram, given.positive().map(|buckets| Some(buckets.min(1_000_000)))));
const DURATION: ProgramOption<CyclicdeadlineOptions> =
    ProgramOption::DURATION.saying("seconds, or with m, h, d minutes, hours, days");
const COMPAT: ProgramOption<CyclicdeadlineOptions> =
    ProgramOption::COMPAT.saying("whose options and text [2.4]");

/// Options of release 2.4, those of release 2.10, in which `-h` is a histogram, then those that latscope adds.
pub static SPECS: &[ProgramOption<CyclicdeadlineOptions>] = &[
    AFFINITY,
    ProgramOption::BREAK,
    DURATION,
    INTERVAL,
    ProgramOption::JSON,
    STEP,
    THREADS,
    ProgramOption::QUIET,
    ProgramOption::MARK,
    ProgramOption::HELP,
    HISTOGRAM.newer(),
    ProgramOption::LONG_HELP.newer(),
    COMPAT,
    ProgramOption::STRICT,
    ProgramOption::RESULT,
];

#[cfg(test)]
mod tests {
    use super::super::CYCLICDEADLINE;
    use super::*;
    use crate::context::PersonalityContext;
    use crate::getopt::{CommandLineRefusal, Takes};

    fn read(line: &str) -> Result<CyclicdeadlineOptions, CommandLineRefusal> {
        CYCLICDEADLINE.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn every_option_is_understood() {
        let specs = SPECS.iter().map(|option| &option.spec);
        for spec in specs.filter(|spec| spec.long != "help") {
            let value = if spec.long == "compat" { "2.10" } else { "7" };
            let compat = if spec.long == "histogram" { " --compat=2.10" } else { "" };
            let line = match spec.takes {
                Takes::Value => format!("--{} {value}{compat}", spec.long),
                _ => format!("--{}", spec.long),
            };
            assert_ne!(read(&line).unwrap(), CyclicdeadlineOptions::default(), "{line}");
        }
    }

    #[test]
    fn h_is_help_in_2_4_and_a_histogram_in_2_10() {
        assert_eq!(read("-h"), Err(CommandLineRefusal::Help));
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
