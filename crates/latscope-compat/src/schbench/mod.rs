//! `schbench`: threads that pass messages and threads that work for them, as a load for the scheduler and a measure of
//! it. It takes the arguments of the original and prints its text; the threads, the clock and the histograms are
//! latscope's. Reading the arguments and formatting text are pure functions. The differences from the original are in
//! `docs/schbench.md`.

mod crew;
mod text;

use crate::context::PersonalityContext;
use crate::environment;
use crate::getopt::{
    self, CommandLineRefusal, FLAG, ProgramCall, ProgramOption, Spec, set_field, set_flag, value,
};
use crate::personality::{Personality, PersonalityProgram, PersonalitySuite};
use anyhow::Result;
use crew::Crew;
use latscope_core::units::count_with_noun;
use latscope_os::sched;
use latscope_process::eprint;
use smart_default::SmartDefault;
use std::fmt::Write;
use std::time::{Duration, Instant};
use text::{Requests, SchbenchWorkTotals};

/// The program, by name.
pub static PROGRAMS: &[&dyn Personality] = &[&SCHBENCH];

/// The suite of one program. All of its text goes to stderr, and the usage after a mistake, too.
static SUITE: PersonalitySuite = PersonalitySuite {
    grammar: getopt::getopt,
    prepare: |_| Ok(()),
    usage: |_, _, specs| usage(specs),
    answer: |context, error, usage| match error.downcast()? {
        CommandLineRefusal::Help => {
            eprint!("{usage}");
            Ok(1)
        }
        CommandLineRefusal::Usage(text) => {
            eprint!("{}: {text}\n{usage}", context.name);
            Ok(1)
        }
        CommandLineRefusal::Fatal(text) => {
            eprint!("latscope: {}: {text}\n", context.name);
            Ok(1)
        }
    },
};

/// Program `schbench`.
pub static SCHBENCH: PersonalityProgram<SchbenchOptions> = PersonalityProgram::new(
    "schbench",
    "wake-ups and requests of threads that work for others, by the scheduler's choice of CPUs",
    &SUITE,
    OPTIONS,
    resolve_options,
    carry_out,
);

/// Options of a call of schbench.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct SchbenchOptions {
    /// Value of `-m`: threads that pass messages.
    #[default(1)]
    pub message_threads: u64,
    /// Value of `-t`: threads that work for each of them; as many as there are CPUs, if it was not given.
    pub threads: Option<u64>,
    /// Value of `-r`: time of the run, s.
    #[default(30)]
    pub runtime: u64,
    /// Value of `-i`: time between two prints, s.
    #[default(10)]
    pub interval: u64,
    /// Value of `-z`: time after which all figures begin anew, s.
    pub zero: Option<u64>,
    /// Value of `-w`: time before the figures begin, s.
    pub warm_up: u64,
    /// Value of `-R`: requests a second; 0 for as many as the threads do.
    pub rate: u64,
    /// Value of `-p`: bytes that are passed in place of requests; 0 for requests.
    pub pipe: u64,
    /// Value of `-F`: KiB of the matrices of a thread.
    #[default(256)]
    pub footprint: u64,
    /// Value of `-n`: multiplications in a request.
    #[default(5)]
    pub operations: u64,
    /// Value of `-s`: sleep before the work of a request, µs.
    #[default(100)]
    pub sleep: u64,
    /// Value of `-C`: requests without sleep and lock.
    pub calibrate: bool,
    /// Value of `-L`: work without the lock of the CPU.
    pub no_locking: bool,
}

const MOST: u64 = 1 << 20;
/// Most bytes that are passed in pipe mode.
const MOST_BYTES: u64 = 1 << 20;

/// Options of schbench, in the order of its usage.
#[rustfmt::skip]
pub static OPTIONS: &[ProgramOption<SchbenchOptions>] = &[
    ProgramOption::new(Some('C'), "calibrate", FLAG, "requests without sleep and lock", |o, _| set_flag(&mut o.calibrate)),
    ProgramOption::new(Some('L'), "no-locking", FLAG, "work without the lock of the CPU", |o, _| set_flag(&mut o.no_locking)),
    ProgramOption::new(Some('m'), "message-threads", value("N"), "threads that pass messages [1]",
        |o, given| set_field(&mut o.message_threads, given.parse_in_range(1..=4096))),
    ProgramOption::new(Some('M'), "message-cpus", value("LIST"), "not here: use taskset", |_, _| Err(option_refusal("-M", "taskset(1)"))),
    ProgramOption::new(Some('W'), "worker-cpus", value("LIST"), "not here: use taskset", |_, _| Err(option_refusal("-W", "taskset(1)"))),
    ProgramOption::new(Some('t'), "threads", value("N"), "threads that work for each of them [number of CPUs]",
        |o, given| set_field(&mut o.threads, given.parse_in_range(1..=4096).map(Some))),
    ProgramOption::new(Some('r'), "runtime", value("S"), "time of the run, s [30]", |o, given| set_field(&mut o.runtime, given.parse_in_range(1..=MOST))),
    ProgramOption::new(Some('F'), "cache_footprint", value("KB"), "matrices of a thread, KiB [256]",
        |o, given| set_field(&mut o.footprint, given.parse_in_range(1..=MOST))),
    ProgramOption::new(Some('n'), "operations", value("N"), "multiplications in a request [5]",
        |o, given| set_field(&mut o.operations, given.parse_in_range(0..=MOST))),
    ProgramOption::new(Some('s'), "sleep_usec", value("US"), "sleep before the work of a request, us [100]",
        |o, given| set_field(&mut o.sleep, given.parse_in_range(0..=MOST))),
    ProgramOption::new(Some('A'), "auto-rps", value("PERCENT"), "not here: choose -R", |_, _| Err(option_refusal("-A", "a rate by -R"))),
    ProgramOption::new(Some('p'), "pipe", value("BYTES"), "bytes that are passed in place of requests [0]",
        |o, given| set_field(&mut o.pipe, given.parse_in_range(0..=MOST_BYTES))),
    ProgramOption::new(Some('R'), "rps", value("N"), "requests a second [as many as the threads do]",
        |o, given| set_field(&mut o.rate, given.parse_in_range(0..=MOST))),
    ProgramOption::new(Some('w'), "warmuptime", value("S"), "time before the figures begin, s [0]",
        |o, given| set_field(&mut o.warm_up, given.parse_in_range(0..=MOST))),
    ProgramOption::new(Some('i'), "intervaltime", value("S"), "time between two prints, s [10]",
        |o, given| set_field(&mut o.interval, given.parse_in_range(1..=MOST))),
    ProgramOption::new(Some('z'), "zerotime", value("S"), "time after which all figures begin anew, s [never]",
        |o, given| set_field(&mut o.zero, given.parse_in_range(1..=MOST).map(Some))),
    ProgramOption::new(Some('j'), "json", value("FILE"), "not here", |_, _| Err(option_refusal("-j", "the text"))),
    ProgramOption::new(Some('J'), "jobname", value("NAME"), "not here", |_, _| Err(option_refusal("-J", "the text"))),
    ProgramOption::new(None, "split", value("PERCENT"), "not here", |_, _| Err(option_refusal("--split", "-F"))),
    ProgramOption::LONG_HELP,
];

fn option_refusal(option: &str, instead: &str) -> CommandLineRefusal {
    CommandLineRefusal::Fatal(format!("{option} is not carried out: use {instead}"))
}

fn usage(specs: &[&Spec]) -> String {
    let mut text = "schbench usage:\n".to_owned();
    for spec in specs {
        let forms = match spec.short {
            Some(short) => format!("-{short} (--{})", spec.long),
            None => format!("--{}", spec.long),
        };
        let _ = writeln!(text, "\t{forms}: {}", spec.help);
    }
    text
}

fn resolve_options(call: ProgramCall<SchbenchOptions>) -> Result<SchbenchOptions, CommandLineRefusal> {
    match call.operands.first() {
        Some(operand) => Err(CommandLineRefusal::Usage(format!("Error Extra arguments '{operand}'"))),
        None => Ok(call.options),
    }
}

fn format_title(options: &SchbenchOptions, workers: u64) -> String {
    let what = match (options.pipe, options.rate) {
        (0, 0) => "requests".to_owned(),
        (0, rate) => format!("{} a second", count_with_noun(rate, "request")),
        (bytes, _) => format!("{bytes} bytes passed"),
    };
    let messengers = count_with_noun(options.message_threads, "message thread");
    format!("{messengers}, {} each, {what}", count_with_noun(workers, "worker"))
}

fn carry_out(options: &SchbenchOptions, context: &PersonalityContext) -> Result<u8> {
    let cpus = sched::allowed_cpus()?.len() as u64;
    let workers = options.threads.unwrap_or(cpus);
    let runtime = Duration::from_secs(options.runtime);
    if environment::show_outline(
        context,
        "requests",
        format_title(options, workers),
        Some(runtime.as_nanos() as u64),
    ) {
        return Ok(0);
    }
    if options.threads.is_none() {
        eprint!("setting worker threads to {workers}\n");
    }
    let crew = Crew::start_threads(options, workers)?;
    print_intervals(options, &crew);
    crew.shut_down();
    Ok(0)
}

/// Prints what the crew did, each interval and at the end.
fn print_intervals(options: &SchbenchOptions, crew: &Crew) {
    const SECOND: Duration = Duration::from_secs(1);
    let whole = Instant::now();
    let warm_up = Duration::from_secs(options.warm_up);
    let (mut began, mut requests, mut delays) = (whole, Requests::default(), crew.delays());
    let mut warm = options.warm_up == 0;
    for second in 1..=options.warm_up + options.runtime {
        std::thread::sleep((whole + SECOND * second as u32).saturating_duration_since(Instant::now()));
        if !warm {
            warm = whole.elapsed() >= warm_up;
            if warm {
                eprint!("warmup done, zeroing stats\n");
                crew.reset_totals();
                (began, requests) = (Instant::now(), Requests::default());
            }
            continue;
        }
        let seen = crew.seen();
        requests.add_second(seen.done, began.elapsed());
        let passed = second - options.warm_up;
        if passed == options.runtime {
            break;
        }
        if passed.is_multiple_of(options.interval) {
            print_percentiles(options, &seen, &requests, began.elapsed());
            let now = crew.delays();
            eprint!("{}current rps: {:.2}\n", text::delays(&now.since(&delays)), requests.current());
            delays = now;
        }
        if options.zero.is_some_and(|zero| passed.is_multiple_of(zero)) {
            crew.reset_totals();
            (began, requests) = (Instant::now(), Requests::default());
        }
    }
    let (seen, lasted) = (crew.seen(), began.elapsed());
    print_percentiles(options, &seen, &requests, lasted);
    if options.pipe > 0 {
        eprint!("{}", text::transfers(seen.done, options.pipe, lasted));
        return;
    }
    let rate = seen.done as f64 / lasted.as_secs_f64();
    eprint!("average rps: {rate:.2}\n{}", text::delays(&crew.delays().since(&delays)));
}

fn print_percentiles(
    options: &SchbenchOptions,
    seen: &SchbenchWorkTotals,
    requests: &Requests,
    lasted: Duration,
) {
    // To the nearest one: the last of the seconds ends some µs early.
    let seconds = lasted.as_secs_f64().round() as u64;
    if options.pipe > 0 {
        eprint!("{}", text::latencies("Wakeup Latencies", &seen.wake_ups, seconds, &text::OF_PIPES));
        return;
    }
    eprint!("{}", text::latencies("Wakeup Latencies", &seen.wake_ups, seconds, &text::OF_LATENCIES));
    eprint!("{}", text::latencies("Request Latencies", &seen.requests, seconds, &text::OF_LATENCIES));
    eprint!("{}", requests.format_percentiles(seconds));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<SchbenchOptions, CommandLineRefusal> {
        SCHBENCH.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn options_are_those_of_the_original() {
        assert_eq!(read("").unwrap(), SchbenchOptions::default());
        let options =
            read("-m 2 -t3 -r 5 -i 1 -R 100 --sleep_usec=0 -F 64 -n 1 -L -C -w 1 -z 4 -p 8").unwrap();
        let expected = SchbenchOptions {
            message_threads: 2,
            threads: Some(3),
            runtime: 5,
            interval: 1,
            zero: Some(4),
            warm_up: 1,
            rate: 100,
            pipe: 8,
            footprint: 64,
            operations: 1,
            sleep: 0,
            calibrate: true,
            no_locking: true,
        };
        assert_eq!(options, expected);
    }

    /// The usage does not print the names of values, which have the unit in the other programs.
    #[test]
    fn help_of_an_amount_has_its_unit() {
        let mut amounts = 0;
        for ProgramOption { spec, .. } in OPTIONS {
            let unit = match spec.value {
                "S" => ", s ",
                "US" => ", us ",
                "KB" => ", KiB ",
                "BYTES" => "bytes ",
                "" | "N" | "LIST" | "PERCENT" | "FILE" | "NAME" => continue,
                other => panic!("{} takes {other}, whose unit is not known here", spec.long),
            };
            assert!(spec.help.contains(unit), "{}: {}", spec.long, spec.help);
            amounts += 1;
        }
        assert_eq!(amounts, 7);
    }

    #[test]
    fn what_is_not_carried_out_is_refused_and_a_mistake_too() {
        for line in ["-A 50", "-M 0", "-W auto", "-j x", "-J x", "--split 30"] {
            assert!(matches!(read(line), Err(CommandLineRefusal::Fatal(_))), "{line}");
        }
        for line in ["-x", "-t x", "-r 0", "operand"] {
            assert!(matches!(read(line), Err(CommandLineRefusal::Usage(_))), "{line}");
        }
        assert_eq!(read("--help"), Err(CommandLineRefusal::Help));
        let usage = SCHBENCH.usage();
        assert!(usage.starts_with("schbench usage:\n\t-C (--calibrate): ") && usage.contains("\t--split: "));
    }
}
