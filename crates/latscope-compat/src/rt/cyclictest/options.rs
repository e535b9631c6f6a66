//! Command-line options of cyclictest.

use crate::getopt::{
    CommandLineRefusal, FLAG, OptionOccurrence, ProgramCall, ProgramOption, Takes, is_count,
    parse_leading_number, part, perhaps, set_field, set_flag, value,
};
use crate::rt::cpuset::is_set;
use crate::rt::options::{self, RtTestsCommonOptions};
use crate::rt::row::RtFigureUnit;
use latscope_probes::wake::thread::ClockName;
use smart_default::SmartDefault;
use std::path::PathBuf;

/// Placement of the measuring threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Threads run on any CPU.
    #[default]
    Any,
    /// Threads run in turn on the CPUs that the process may use.
    Each,
    /// Threads run in turn on the CPUs of this set.
    Set(String),
}

/// Scheduling policies by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CyclictestPolicy {
    /// `other`, `normal`, and unknown names.
    #[default]
    Other,
    /// `batch`: named in the header, but run as `other`.
    Batch,
    /// `idle`: named in the header, but run as `other`.
    Idle,
    /// Real-time policy SCHED_FIFO, named `fifo`.
    Fifo,
    /// Real-time policy SCHED_RR, named `rr`.
    RoundRobin,
}

/// Values of the options of a call. Times are in µs unless noted.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct CyclictestOptions {
    /// Value of `-a` or `-S`: the placement of the threads.
    pub affinity: Affinity,
    /// Value of `-A` or `--secaligned`, in µs: the distance between the threads' first instants, or their distance from
    /// the full second.
    pub aligned: Option<u64>,
    /// Value of `--secaligned`: threads begin on a full second.
    pub second_aligned: bool,
    /// Value of `-c`: the clock of the threads.
    pub clock: Option<ClockName>,
    /// Value of `--default-system` or `--laptop`: do not keep CPUs from deep sleep.
    pub leave_system: bool,
    /// Value of `--laptop`: deep sleep stays allowed, and the output mentions it.
    pub laptop: bool,
    /// Value of `--deepest-idle-state`; -1 is the shallowest.
    pub deepest_idle_state: Option<i64>,
    /// Value of `-d`, in µs: each further thread's interval is longer by this.
    pub distance: Option<u64>,
    /// Value of `-F`: the path of a FIFO for status lines.
    pub fifo: Option<PathBuf>,
    /// Value of `-h` or `-H`: the number of buckets.
    pub histogram: Option<u64>,
    /// Value of `-H`: a column for all threads together.
    pub summary_column: bool,
    /// Value of `--histfile`: the file for the histogram.
    pub histogram_file: Option<PathBuf>,
    /// Value of `-i`, in µs: the interval of the first thread.
    pub interval: Option<u64>,
    /// Value of `--latency`, in µs: the value held in /dev/cpu_dma_latency.
    pub latency: i32,
    /// Value of `-l`: the number of cycles that ends the run.
    pub loops: Option<u64>,
    /// Value of `--mainaffinity`: the CPUs of the thread that prints.
    pub main_affinity: Option<String>,
    /// Value of `-m`: lock memory.
    pub lock_memory: bool,
    /// Value of `-M`: print the status only when a maximum grows.
    pub refresh_on_max: bool,
    /// Unit of the figures, changed by `-N`.
    pub unit: RtFigureUnit,
    /// Value of `-o`: `-v` prints only the largest of so many samples.
    #[default(1)]
    pub oscilloscope: u64,
    /// Value of `-p`: the real-time priority; 0 if not given.
    pub priority: u32,
    /// Value of `--policy`: the scheduling policy.
    pub policy: Option<CyclictestPolicy>,
    /// Value of `--priospread`: each further thread's priority is lower by 1.
    pub spread: bool,
    /// Value of `-r`: sleep for a time from now.
    pub relative: bool,
    /// Value of `-R`: measure the resolution of the clock.
    pub resolution: bool,
    /// Value of `-s`: sleep with nanosleep(2).
    pub system: bool,
    /// Value of `-S`: the same as `-a -t`.
    pub smp: bool,
    /// Value of `--smi`: count system management interrupts.
    pub smi: bool,
    /// Value of `--spike`: list the samples above this limit.
    pub spike: Option<u64>,
    /// Value of `--spike-nodes`: the most samples to list.
    #[default(1024)]
    pub spike_nodes: usize,
    /// Value of `-t` or `-S`; 0 for one thread on each CPU.
    pub threads: Option<u64>,
    /// Value of `-v`: print every sample.
    pub verbose: bool,
    /// Value of `-x`: sleep with POSIX timers.
    pub posix_timers: bool,
    /// Value of `--timeline`: the file for the timeline.
    pub timeline: Option<PathBuf>,
    /// Warnings that cyclictest prints on stderr.
    pub warnings: Vec<String>,
    /// Values of the options that other programs share.
    pub common: RtTestsCommonOptions,
}

part!(CyclictestOptions, common: RtTestsCommonOptions);

const NO_TRACER: &str =
    "cyclictest no longer drives a tracer; `latscope wake --blame` says what took the time";

/// Option that is accepted for old scripts, and has no effect.
const fn retired(
    short: char,
    long: &'static str,
    takes: (Takes, &'static str),
) -> ProgramOption<CyclictestOptions> {
    ProgramOption::new(Some(short), long, takes, "", |_, given| given.retired(NO_TRACER)).retired()
}

/// All options: first those of releases 2.4 and 2.10, then those that latscope adds, then the retired ones.
#[rustfmt::skip]
pub static SPECS: &[ProgramOption<CyclictestOptions>] = &[
    ProgramOption::new(Some('a'), "affinity", perhaps("SET", is_set), "threads in turn on the CPUs of SET, or on all", affinity),
    ProgramOption::new(Some('A'), "aligned", perhaps("US", is_count), "threads begin together, US apart", |o, given| aligned(o, given, false)),
    ProgramOption::BREAK,
    ProgramOption::new(Some('c'), "clock", value("N"), "0 CLOCK_MONOTONIC, 1 CLOCK_REALTIME [0]", |o, given| set_field(&mut o.clock, clock(given.value_text()))),
    ProgramOption::new(None, "default-system", FLAG, "do not keep CPUs from deep sleep", |o, _| set_flag(&mut o.leave_system)),
    ProgramOption::new(None, "deepest-idle-state", value("N"), "keep the CPUs used from idle states above N; -1: from all",
        |o, given| set_field(&mut o.deepest_idle_state, given.signed().map(Some))),
    ProgramOption::new(Some('d'), "distance", value("US"), "each further thread's interval is longer by US [500; 0 with -h]",
        |o, given| set_field(&mut o.distance, given.parse_count().map(Some))),
    ProgramOption::DURATION,
    ProgramOption::new(Some('F'), "fifo", value("PATH"), "write the status lines to each reader of a FIFO", |o, given| set_field(&mut o.fifo, given.path())),
    ProgramOption::new(Some('h'), "histogram", value("US"), "print a histogram with US buckets (of 1 us; with -N, 1 ns)", histogram),
    ProgramOption::new(Some('H'), "histofall", value("US"), "the same with a column for all threads",
        |o, given| set_flag(&mut o.summary_column).and(histogram(o, given))),
    ProgramOption::new(None, "histfile", value("PATH"), "print the histogram to PATH", |o, given| set_field(&mut o.histogram_file, given.path())),
    ProgramOption::new(Some('i'), "interval", value("US"), "interval of the first thread [1000]", |o, given| set_field(&mut o.interval, given.positive().map(Some))),
    ProgramOption::JSON,
    ProgramOption::new(None, "laptop", FLAG, "do not keep CPUs from deep sleep, and say so", |o, _| set_flag(&mut o.laptop).and(set_flag(&mut o.leave_system))),
    ProgramOption::new(None, "latency", value("US"), "hold /dev/cpu_dma_latency at US [0]", |o, given| set_field(&mut o.latency, latency(given))),
    ProgramOption::new(Some('l'), "loops", value("N"), "end when a thread has had N cycles [0: endless]", |o, given| set_field(&mut o.loops, given.parse_limit())),
    ProgramOption::new(None, "mainaffinity", value("SET"), "CPUs of the thread that prints", |o, given| set_field(&mut o.main_affinity, Ok(given.value.clone()))),
    ProgramOption::new(Some('m'), "mlockall", FLAG, "lock memory", |o, _| set_flag(&mut o.lock_memory)),
    ProgramOption::new(Some('M'), "refresh_on_max", FLAG, "print the status only when a maximum grows", |o, _| set_flag(&mut o.refresh_on_max)),
    ProgramOption::new(Some('N'), "nsecs", FLAG, "figures in ns instead of us", |o, _| set_field(&mut o.unit, Ok(RtFigureUnit::Ns))),
    ProgramOption::new(Some('o'), "oscope", value("N"), "with -v only the largest of N samples", |o, given| set_field(&mut o.oscilloscope, given.positive())),
    ProgramOption::new(Some('p'), "priority", value("PRIO"), "real-time priority", |o, given| set_field(&mut o.priority, priority(given.value_text()))),
    ProgramOption::new(None, "policy", value("NAME"), "other, normal, batch, idle, fifo or rr", policy),
    ProgramOption::new(None, "priospread", FLAG, "each further thread's priority is lower by 1", |o, _| set_flag(&mut o.spread)),
    ProgramOption::QUIET,
    ProgramOption::new(Some('r'), "relative", FLAG, "sleep for a time from now", |o, _| set_flag(&mut o.relative)),
    ProgramOption::new(Some('R'), "resolution", FLAG, "measure the resolution of the clock", |o, _| set_flag(&mut o.resolution)),
    ProgramOption::new(None, "secaligned", perhaps("US", is_count), "threads begin on a full second, and US later", |o, given| aligned(o, given, true)),
    ProgramOption::new(Some('s'), "system", FLAG, "sleep with nanosleep", |o, _| set_flag(&mut o.system)),
    ProgramOption::new(Some('S'), "smp", FLAG, "as -a -t", smp),
    ProgramOption::new(None, "smi", FLAG, "count system management interrupts (Intel, as root)", |o, _| set_flag(&mut o.smi)),
    ProgramOption::new(None, "spike", value("US"), "list the samples above US", |o, given| set_field(&mut o.spike, given.parse_limit())),
    ProgramOption::new(None, "spike-nodes", value("N"), "at most N of them [1024]",
        |o, given| set_field(&mut o.spike_nodes, given.parse_count().map(|nodes| nodes.clamp(1, 1 << 20) as usize))),
    ProgramOption::new(Some('t'), "threads", perhaps("N", is_count), "number of threads [1; without N, one a CPU]", threads),
    ProgramOption::MARK,
    // Output is never kept back, and there is nothing to debug.
    ProgramOption::new(Some('u'), "unbuffered", FLAG, "always so", |_, _| Ok(())),
    ProgramOption::new(Some('v'), "verbose", FLAG, "print every sample: thread, cycle, value", |o, _| set_flag(&mut o.verbose)),
    ProgramOption::new(Some('x'), "posix_timers", FLAG, "sleep with POSIX timers", |o, _| set_flag(&mut o.posix_timers)),
    ProgramOption::new(None, "dbg_cyclictest", FLAG, "no effect", |_, _| Ok(())),
    ProgramOption::LONG_HELP,
    ProgramOption::COMPAT,
    ProgramOption::STRICT.saying("exit code 2 when -b ended the run, 3 when the result is inconclusive"),
    ProgramOption::RESULT.saying("save latscope's result too: quantiles, missed activations"),
    ProgramOption::new(None, "timeline", value("FILE"), "record what each thread did, for Perfetto", |o: &mut CyclictestOptions, given| set_field(&mut o.timeline, given.path())).mark_added(),
    ProgramOption::new(Some('n'), "nanosleep", FLAG, "", |_, given| given.retired("clock_nanosleep is the default")).retired(),
    ProgramOption::new(Some('y'), "", value("POLICY"), "",
        |o, given| policy(o, given).and(given.retired(&format!("taken as --policy={}", given.value_text())))).retired(),
    ProgramOption::new(Some('e'), "", value("US"), "", |o: &mut CyclictestOptions, given| {
        set_field(&mut o.latency, latency(given))?;
        given.retired(&format!("taken as --latency={}", given.value_text()))
    }).retired(),
    ProgramOption::new(Some('U'), "numa", FLAG, "", |_, given| given.retired("memory is taken from the node of the thread anyway")).retired(),
    retired('f', "ftrace", FLAG),
    retired('T', "tracer", value("NAME")),
    retired('O', "traceopt", value("NAME")),
    retired('w', "wakeup", FLAG),
    retired('W', "wakeuprt", FLAG),
    retired('I', "irqsoff", FLAG),
    retired('P', "preemptoff", FLAG),
    retired('B', "preemptirqs", FLAG),
    retired('C', "context", FLAG),
    retired('E', "event", FLAG),
    ProgramOption::new(Some('g'), "of_max", value("N"), "", |_, given| given.retired("it has no effect")).retired(),
    ProgramOption::new(Some('X'), "", FLAG, "", |_, given| given.retired("it has no effect")).retired(),
];

/// Applies the rules by which options affect each other.
pub(super) fn resolve_options(
    call: ProgramCall<CyclictestOptions>,
) -> Result<CyclictestOptions, CommandLineRefusal> {
    let mut options = options::resolve_options(call)?;
    options.resolve_conflicts()?;
    Ok(options)
}

impl CyclictestOptions {
    fn resolve_conflicts(&mut self) -> Result<(), CommandLineRefusal> {
        let real_time = matches!(self.policy, Some(CyclictestPolicy::Fifo | CyclictestPolicy::RoundRobin));
        if self.priority > 0 && !real_time {
            self.policy = Some(CyclictestPolicy::Fifo);
        } else if real_time && self.priority == 0 {
            self.priority = DEFAULT_PRIORITY;
            self.warnings.push(format!("defaulting realtime priority to {DEFAULT_PRIORITY}"));
        }
        if self.histogram.is_some() && self.distance.is_some_and(|distance| distance > 0) {
            self.add_warning("distance is ignored and set to 0, if histogram enabled");
        }
        if self.system && self.posix_timers {
            self.add_warning("The system option requires clock_nanosleep");
            self.add_warning("and is not compatible with posix_timers");
            self.add_warning("Using clock_nanosleep");
        }
        if self.laptop {
            self.add_warning("not setting cpu_dma_latency to save battery power");
        }
        if self.smi && self.affinity == Affinity::Any {
            return Err(CommandLineRefusal::Fatal(
                "FATAL: --smi counts on the CPU of each thread: add -a".to_owned(),
            ));
        }
        Ok(())
    }

    fn add_warning(&mut self, text: &str) {
        self.warnings.push(format!("WARN: {text}"));
    }
}

fn affinity(options: &mut CyclictestOptions, given: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    match options.smp {
        true => options.add_warning("-a ignored due to smp mode"),
        false => options.affinity = given.value.clone().map_or(Affinity::Each, Affinity::Set),
    }
    Ok(())
}

fn threads(options: &mut CyclictestOptions, given: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    match options.smp {
        true => options.add_warning("-t ignored due to smp mode"),
        false => options.threads = Some(amount(given)),
    }
    Ok(())
}

/// Number at the beginning of the value, without its sign; 0 if there is no number.
fn amount(given: &OptionOccurrence) -> u64 {
    parse_leading_number(given.value_text()).map_or(0, |(number, _)| number.unsigned_abs())
}

fn smp(options: &mut CyclictestOptions, _: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    if options.affinity != Affinity::Any {
        let text = "-a and -S exclude each other: -S has a thread on each CPU already";
        return Err(CommandLineRefusal::Fatal(format!("FATAL: {text}")));
    }
    (options.smp, options.affinity, options.threads) = (true, Affinity::Each, Some(0));
    Ok(())
}

fn aligned(
    options: &mut CyclictestOptions,
    given: &OptionOccurrence,
    second: bool,
) -> Result<(), CommandLineRefusal> {
    if options.aligned.is_some() && options.second_aligned != second {
        return Err(CommandLineRefusal::Usage("-A and --secaligned exclude each other".to_owned()));
    }
    (options.aligned, options.second_aligned) = (Some(amount(given)), second);
    Ok(())
}

fn histogram(
    options: &mut CyclictestOptions,
    given: &mut OptionOccurrence,
) -> Result<(), CommandLineRefusal> {
    set_field(&mut options.histogram, given.positive().map(|buckets| Some(buckets.min(MOST_BUCKETS))))
}

fn latency(given: &mut OptionOccurrence) -> Result<i32, CommandLineRefusal> {
    Ok(given.signed()?.clamp(0, i32::MAX.into()) as i32)
}

fn priority(text: &str) -> Result<u32, CommandLineRefusal> {
    let priority = parse_leading_number(text).map(|(priority, _)| priority).filter(|p| (0..=99).contains(p));
    let wrong = || CommandLineRefusal::Usage(format!("-p {text} is no priority: they go from 0 to 99"));
    Ok(priority.ok_or_else(wrong)? as u32)
}

fn clock(text: &str) -> Result<Option<ClockName>, CommandLineRefusal> {
    match parse_leading_number(text) {
        Some((0, _)) => Ok(Some(ClockName::Monotonic)),
        Some((1, _)) => Ok(Some(ClockName::Realtime)),
        _ => Err(CommandLineRefusal::Usage(format!("-c {text} is no clock: 0 is MONOTONIC, 1 REALTIME"))),
    }
}

/// Sets the policy. Threads with an unknown policy run under the normal one.
fn policy(options: &mut CyclictestOptions, given: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    options.policy = Some(match given.value_text().to_ascii_lowercase().as_str() {
        "other" | "normal" => CyclictestPolicy::Other,
        "batch" => CyclictestPolicy::Batch,
        "idle" => CyclictestPolicy::Idle,
        "fifo" => CyclictestPolicy::Fifo,
        "rr" => CyclictestPolicy::RoundRobin,
        _ => {
            given.add_note(format!("there is no policy {:?}: threads run as other", given.value_text()));
            CyclictestPolicy::Other
        }
    });
    Ok(())
}

/// Priority of a real-time policy that is given without a priority.
const DEFAULT_PRIORITY: u32 = 2;

/// Number of buckets of the longest histogram.
const MOST_BUCKETS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::super::CYCLICTEST;
    use super::*;
    use crate::context::PersonalityContext;
    use crate::getopt::Spec;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<CyclictestOptions, CommandLineRefusal> {
        CYCLICTEST.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    fn specs() -> impl Iterator<Item = &'static Spec> {
        SPECS.iter().map(|option| &option.spec)
    }

    fn refused(line: &str) -> String {
        let refusal = read(line).unwrap_err();
        assert!(!refusal.to_string().contains('\n'), "{line}: {refusal}");
        refusal.to_string()
    }

    #[test]
    fn the_usual_call_is_understood() {
        let osadl = read("-l100000000 -m -Sp90 -i200 -h400 -q").unwrap();
        let wanted = CyclictestOptions {
            loops: Some(100_000_000),
            lock_memory: true,
            smp: true,
            affinity: Affinity::Each,
            threads: Some(0),
            priority: 90,
            policy: Some(CyclictestPolicy::Fifo),
            interval: Some(200),
            histogram: Some(400),
            common: RtTestsCommonOptions { quiet: true, ..RtTestsCommonOptions::default() },
            ..read("").unwrap()
        };
        assert_eq!(osadl, wanted);
    }

    #[test]
    fn a_value_that_is_no_number_is_refused() {
        let numbers = |spec: &&Spec| {
            ["US", "N", "NSEC", "PRIO"].contains(&spec.value) && matches!(spec.takes, Takes::Value)
        };
        // One that has no effect takes any value.
        for spec in specs().filter(numbers).filter(|spec| spec.short != Some('g')) {
            let name =
                if spec.long.is_empty() { format!("{} ", spec.name()) } else { format!("--{}=", spec.long) };
            assert!(refused(&format!("{name}cs")).contains("cs"), "{name}");
        }
        assert_eq!(refused("-e cs"), "-e cs is no number");
        assert_eq!(read("-e 5").unwrap().latency, 5);
    }

    #[test]
    fn smp_in_small_letters_is_system_mlockall_and_a_priority() {
        let options = read("-smp 5").unwrap();
        assert!(options.system && options.lock_memory && !options.smp);
        assert_eq!((options.priority, options.policy), (5, Some(CyclictestPolicy::Fifo)));
        assert_eq!(refused("-smp"), "option requires an argument -- 'p'");
        assert_eq!(refused("-smp -q"), "-p -q is no priority: they go from 0 to 99");
    }

    #[test]
    fn every_option_of_the_table_is_understood() {
        for spec in specs().filter(|spec| spec.long != "help") {
            let value = match spec.long {
                "duration" => "5m",
                "compat" => "2.10",
                "clock" => "1",
                _ => "3",
            };
            let forms = [spec.short.map(|letter| format!("-{letter}")), Some(format!("--{}", spec.long))];
            for form in forms.into_iter().flatten().filter(|form| form != "--") {
                let line =
                    if matches!(spec.takes, Takes::Nothing) { String::new() } else { format!(" {value}") };
                let with_affinity = if spec.long == "smi" { " -a" } else { "" };
                let options =
                    read(&format!("{form}{line}{with_affinity}")).unwrap_or_else(|e| panic!("{form}: {e}"));
                let passive = ["unbuffered", "dbg_cyclictest"].contains(&spec.long);
                assert_eq!(options == read("").unwrap(), passive, "{form}");
            }
        }
    }

    #[test]
    fn retired_options_are_swallowed_with_their_values_and_a_note() {
        let options = read("-n -f -y rr -p 3 -e 7 -T function -l 5").unwrap();
        assert_eq!(
            (options.policy, options.latency, options.loops),
            (Some(CyclictestPolicy::RoundRobin), 7, Some(5))
        );
        assert_eq!(options.common.notes.len(), 5);
        assert!(options.common.notes[0].contains("-n is retired"), "{:?}", options.common.notes);
    }

    #[test]
    fn what_cyclictest_passes_over_is_named() {
        assert!(read("-l 10x").unwrap().common.notes[0].contains("-l 10x is taken as 10"));
        assert!(read("extra").unwrap().common.notes[0].contains("\"extra\" is no option"));
        assert!(read("--policy=nonsense").unwrap().common.notes[0].contains("no policy"));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (line, said) in [
            ("-z", "invalid option -- 'z'"),
            ("-p 100", "from 0 to 99"),
            ("-p -1", "from 0 to 99"),
            ("-c 2", "no clock"),
            ("-i 0", "not above 0"),
            ("-i -1", "no number from 0 on"),
            ("-h 0", "not above 0"),
            ("-l abc", "no number"),
            ("-D 1x", "no time"),
            ("-o 0", "not above 0"),
            ("-a 1 -S", "exclude each other"),
            ("-A 5 --secaligned", "exclude each other"),
            ("--smi", "add -a"),
            ("--compat=3.0", "neither"),
        ] {
            let text = refused(line);
            assert!(text.contains(said), "{line}: {text}");
        }
    }

    #[test]
    fn a_policy_and_a_priority_belong_together() {
        assert_eq!(read("-p 5 --policy=other").unwrap().policy, Some(CyclictestPolicy::Fifo));
        assert_eq!(read("-p 5 --policy=rr").unwrap().policy, Some(CyclictestPolicy::RoundRobin));
        let without = read("--policy=fifo").unwrap();
        assert_eq!(
            (without.priority, without.warnings),
            (2, vec!["defaulting realtime priority to 2".to_owned()])
        );
        assert_eq!(read("").unwrap().policy, None);
    }

    #[test]
    fn smp_takes_the_place_of_threads_and_affinity() {
        let options = read("-t3 -S -t 5 -a 1").unwrap();
        assert_eq!((options.threads, options.affinity), (Some(0), Affinity::Each));
        assert_eq!(
            options.warnings,
            ["WARN: -t ignored due to smp mode", "WARN: -a ignored due to smp mode"]
        );
    }

    proptest! {
        #[test]
        fn reading_never_panics(line in "(-?-?[-a-zA-Z0-9=é+!]{0,8} ){0,5}") {
            if let Ok(options) = read(&line) {
                prop_assert!(options.oscilloscope > 0 && options.interval != Some(0));
            }
        }
    }
}
