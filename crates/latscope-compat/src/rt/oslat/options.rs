//! Command-line options of oslat.

use crate::getopt::{
    CommandLineRefusal, FLAG, OptionOccurrence, ProgramOption, parse_size, part, set_field, set_flag, value,
};
use crate::rt::options::RtTestsCommonOptions;
use smart_default::SmartDefault;

/// Values of the options of a call.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct OslatOptions {
    /// Value of `-b`: the number of buckets, each of 1 µs.
    #[default(32)]
    pub buckets: u64,
    /// Value of `-B`: add the least time of a turn to all labels.
    pub bias: bool,
    /// Value of `-c`, as given: the CPUs to watch.
    pub cpus: Option<String>,
    /// Value of `-C`: the CPU of the thread that waits.
    pub main_cpu: u64,
    /// Value of `-f`: the priority under SCHED_FIFO.
    pub priority: Option<u32>,
    /// Value of `-m`, in bytes.
    pub memory: u64,
    /// Value of `-s`, which has no effect.
    pub single_preheat: bool,
    /// Value of `-T`, in µs: the gap that ends the run.
    pub trace_threshold: Option<u64>,
    /// Value of `-z`: leave out rows of zeros.
    pub zero_omit: bool,
    /// Value of `-v`: print the version.
    pub version: bool,
    /// Values of the options that other programs share. There is always a duration.
    #[default(RtTestsCommonOptions { duration: Some(1_000_000_000), ..RtTestsCommonOptions::default() })]
    pub common: RtTestsCommonOptions,
}

part!(OslatOptions, common: RtTestsCommonOptions);

/// All options of oslat, then those that latscope adds.
#[rustfmt::skip]
pub static SPECS: &[ProgramOption<OslatOptions>] = &[
    ProgramOption::new(Some('b'), "bucket-size", value("N"), "buckets of 1 us, 4 to 1024 [32]",
        |o, given| set_field(&mut o.buckets, require_in_range(given, 4..=1024, "Illegal bucket size"))),
    ProgramOption::new(Some('B'), "bias", FLAG, "add the least time of a turn to all labels", |o, _| set_flag(&mut o.bias)),
    ProgramOption::new(Some('c'), "cpu-list", value("SET"), "CPUs to watch [all]", |o, given| set_field(&mut o.cpus, Ok(given.value.clone()))),
    ProgramOption::new(Some('C'), "cpu-main-thread", value("CPU"), "CPU of the thread that waits [0]",
        |o, given| set_field(&mut o.main_cpu, require_in_range(given, 0..=65_535, "Illegal core for main thread"))),
    ProgramOption::new(Some('D'), "duration", value("T"), "seconds, or with m, h, d minutes, hours, days [1]", set_duration),
    ProgramOption::JSON,
    ProgramOption::new(Some('f'), "rtprio", value("PRIO"), "SCHED_FIFO with this priority",
        |o, given| set_field(&mut o.priority, require_in_range(given, 1..=99, "Illegal RT priority").map(|priority| Some(priority as u32)))),
    ProgramOption::new(Some('m'), "workload-mem", value("SIZE"), "no effect without a workload", |o, given| set_field(&mut o.memory, memory(given.value_text()))),
    ProgramOption::QUIET,
    ProgramOption::new(Some('s'), "single-preheat", FLAG, "no effect: the clock needs no pre-heating", |o, _| set_flag(&mut o.single_preheat)),
    ProgramOption::new(Some('T'), "trace-threshold", value("US"), "end at the first gap of US, mark and stop the trace",
        |o, given| set_field(&mut o.trace_threshold, require_in_range(given, 1..=1 << 40, "Illegal trace threshold").map(Some))),
    ProgramOption::new(Some('v'), "version", FLAG, "print the version", |o, _| set_flag(&mut o.version)),
    ProgramOption::new(Some('w'), "workload", value("NAME"), "no", |_, given| workload(given.value_text())),
    ProgramOption::new(Some('z'), "zero-omit", FLAG, "leave out rows of zeros", |o, _| set_flag(&mut o.zero_omit)),
    ProgramOption::HELP,
    ProgramOption::STRICT.saying("exit code 2 when -T ended the run"),
    ProgramOption::RESULT.saying("save latscope's result too: quantiles, who took the time"),
];

fn set_duration(options: &mut OslatOptions, given: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    match given.parse_duration()? {
        0 => Err(CommandLineRefusal::Fatal(format!("Illegal runtime: {}", given.value_text()))),
        ns => set_field(&mut options.common.duration, Ok(Some(ns))),
    }
}

fn require_in_range(
    given: &OptionOccurrence,
    range: std::ops::RangeInclusive<u64>,
    what: &str,
) -> Result<u64, CommandLineRefusal> {
    given.number_in_range(range.clone()).ok_or_else(|| {
        CommandLineRefusal::Fatal(format!(
            "{what}: {} (should be: {}-{})",
            given.value_text(),
            range.start(),
            range.end()
        ))
    })
}

fn workload(name: &str) -> Result<(), CommandLineRefusal> {
    match name {
        "no" => Ok(()),
        "memmove" => Err(CommandLineRefusal::Fatal(
            "oslat: the workload memmove is not covered: gaps are those of a loop that does nothing else. \
             `latscope noise --load memory` puts it beside the loop"
                .to_owned(),
        )),
        _ => Err(CommandLineRefusal::Fatal(format!(
            "Unknown workload '{name}'.  Please choose from: 'no', 'memmove'"
        ))),
    }
}

fn memory(text: &str) -> Result<u64, CommandLineRefusal> {
    let unknown = || CommandLineRefusal::Fatal(format!("Unknown workload memory size '{text}'."));
    parse_size(text).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::super::OSLAT;
    use super::*;
    use crate::context::PersonalityContext;
    use crate::getopt::Takes;

    fn read(line: &str) -> Result<OslatOptions, CommandLineRefusal> {
        OSLAT.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn every_option_is_understood() {
        for spec in SPECS.iter().map(|option| &option.spec).filter(|spec| spec.long != "help") {
            let value = match spec.long {
                "duration" => "5m",
                "workload" => "no",
                _ => "7",
            };
            let line = match spec.takes {
                Takes::Nothing => format!("--{}", spec.long),
                _ => format!("--{} {value}", spec.long),
            };
            let same = read(&line).unwrap() == OslatOptions::default();
            assert_eq!(same, spec.long == "workload", "{line}");
        }
        assert_eq!(read("-h"), Err(CommandLineRefusal::Help));
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
