//! cyclictest's options.

use crate::getopt::{FLAG, Given, Opt, Takes, is_count, number, on, part, perhaps, put, value};
use crate::rt::Refusal;
use crate::rt::cpuset::is_set;
use crate::rt::options::{self, Common};
use crate::rt::row::Unit;
use latscope_probes::wake::thread::ClockName;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where the measuring threads run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Anywhere.
    #[default]
    Any,
    /// One on each CPU that the process may use, in turn.
    Each,
    /// One on each CPU of this set, in turn.
    Set(String),
}

/// Policies by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// `other`, `normal`, and unknown names.
    #[default]
    Other,
    /// Named in the header, but run as `other`.
    Batch,
    /// Named in the header, but run as `other`.
    Idle,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    RoundRobin,
}

/// What a call asks for. Times are in µs, or as they are given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CyclictestOptions {
    /// `-a`, `-S`.
    pub affinity: Affinity,
    /// `-A`, `--secaligned`: distance of the threads' first instants, or their
    /// distance from the full second.
    pub aligned: Option<u64>,
    /// `--secaligned`.
    pub second_aligned: bool,
    /// `-c`.
    pub clock: Option<ClockName>,
    /// `--default-system`, `--laptop`: the machine is left as it is.
    pub leave_system: bool,
    /// `--laptop`.
    pub laptop: bool,
    /// `--deepest-idle-state`; -1 is the shallowest.
    pub deepest_idle_state: Option<i64>,
    /// `-d`.
    pub distance: Option<u64>,
    /// `-F`.
    pub fifo: Option<PathBuf>,
    /// `-h`, `-H`: buckets.
    pub histogram: Option<u64>,
    /// `-H`.
    pub summary_column: bool,
    /// `--histfile`.
    pub histogram_file: Option<PathBuf>,
    /// `-i`.
    pub interval: Option<u64>,
    /// `--latency`.
    pub latency: i32,
    /// `-l`.
    pub loops: Option<u64>,
    /// `--mainaffinity`.
    pub main_affinity: Option<String>,
    /// `-m`.
    pub lock_memory: bool,
    /// `-M`.
    pub refresh_on_max: bool,
    /// `-N`.
    pub unit: Unit,
    /// `-o`.
    pub oscilloscope: u64,
    /// `-p`.
    pub priority: u32,
    /// `--policy`.
    pub policy: Option<Policy>,
    /// `--priospread`.
    pub spread: bool,
    /// `-r`.
    pub relative: bool,
    /// `-R`.
    pub resolution: bool,
    /// `-s`.
    pub system: bool,
    /// `-S`.
    pub smp: bool,
    /// `--smi`.
    pub smi: bool,
    /// `--spike`.
    pub spike: Option<u64>,
    /// `--spike-nodes`.
    pub spike_nodes: usize,
    /// `-t`, `-S`; 0 for one on each CPU.
    pub threads: Option<u64>,
    /// `-v`.
    pub verbose: bool,
    /// `-x`.
    pub posix_timers: bool,
    /// `--timeline`.
    pub timeline: Option<PathBuf>,
    /// cyclictest's own words on stderr.
    pub warnings: Vec<String>,
    /// What others are asked, too.
    pub common: Common,
}

part!(CyclictestOptions, common: Common);

const NO_TRACER: &str =
    "cyclictest no longer drives a tracer; `latscope wake --blame` says what took the time";

/// One that is accepted for old scripts, and has no effect.
const fn retired(short: char, long: &'static str, takes: (Takes, &'static str)) -> Opt<CyclictestOptions> {
    Opt::new(Some(short), long, takes, "", |_, given| given.retired(NO_TRACER)).retired()
}

/// All of them: those of 2.4 and 2.10 first, then ours, then the retired ones.
#[rustfmt::skip]
pub static SPECS: &[Opt<CyclictestOptions>] = &[
    Opt::new(Some('a'), "affinity", perhaps("SET", is_set), "threads in turn on the CPUs of SET, or on all", affinity),
    Opt::new(Some('A'), "aligned", perhaps("US", is_count), "threads begin together, US apart", |o, given| aligned(o, given, false)),
    Opt::BREAK,
    Opt::new(Some('c'), "clock", value("N"), "0 CLOCK_MONOTONIC, 1 CLOCK_REALTIME [0]", |o, given| put(&mut o.clock, clock(given.text()))),
    Opt::new(None, "default-system", FLAG, "do not keep CPUs from deep sleep", |o, _| on(&mut o.leave_system)),
    Opt::new(None, "deepest-idle-state", value("N"), "keep the CPUs used from idle states above N; -1: from all",
        |o, given| put(&mut o.deepest_idle_state, given.signed().map(Some))),
    Opt::new(Some('d'), "distance", value("US"), "each further thread's interval is longer by US [500; 0 with -h]",
        |o, given| put(&mut o.distance, given.count().map(Some))),
    Opt::DURATION,
    Opt::new(Some('F'), "fifo", value("PATH"), "write the status lines to each reader of a FIFO", |o, given| put(&mut o.fifo, given.path())),
    Opt::new(Some('h'), "histogram", value("US"), "print a histogram with US buckets (of 1 us; with -N, 1 ns)", histogram),
    Opt::new(Some('H'), "histofall", value("US"), "the same with a column for all threads",
        |o, given| on(&mut o.summary_column).and(histogram(o, given))),
    Opt::new(None, "histfile", value("PATH"), "print the histogram to PATH", |o, given| put(&mut o.histogram_file, given.path())),
    Opt::new(Some('i'), "interval", value("US"), "interval of the first thread [1000]", |o, given| put(&mut o.interval, given.positive().map(Some))),
    Opt::JSON,
    Opt::new(None, "laptop", FLAG, "do not keep CPUs from deep sleep, and say so", |o, _| on(&mut o.laptop).and(on(&mut o.leave_system))),
    Opt::new(None, "latency", value("US"), "hold /dev/cpu_dma_latency at US [0]", |o, given| put(&mut o.latency, latency(given))),
    Opt::new(Some('l'), "loops", value("N"), "end when a thread has had N cycles [0: endless]", |o, given| put(&mut o.loops, given.limit())),
    Opt::new(None, "mainaffinity", value("SET"), "CPUs of the thread that prints", |o, given| put(&mut o.main_affinity, Ok(given.value.clone()))),
    Opt::new(Some('m'), "mlockall", FLAG, "lock memory", |o, _| on(&mut o.lock_memory)),
    Opt::new(Some('M'), "refresh_on_max", FLAG, "print the status only when a maximum grows", |o, _| on(&mut o.refresh_on_max)),
    Opt::new(Some('N'), "nsecs", FLAG, "figures in ns instead of us", |o, _| put(&mut o.unit, Ok(Unit::Ns))),
    Opt::new(Some('o'), "oscope", value("N"), "with -v only the largest of N samples", |o, given| put(&mut o.oscilloscope, given.positive())),
    Opt::new(Some('p'), "priority", value("PRIO"), "real-time priority", |o, given| put(&mut o.priority, priority(given.text()))),
    Opt::new(None, "policy", value("NAME"), "other, normal, batch, idle, fifo or rr", policy),
    Opt::new(None, "priospread", FLAG, "each further thread's priority is lower by 1", |o, _| on(&mut o.spread)),
    Opt::QUIET,
    Opt::new(Some('r'), "relative", FLAG, "sleep for a time from now", |o, _| on(&mut o.relative)),
    Opt::new(Some('R'), "resolution", FLAG, "measure the resolution of the clock", |o, _| on(&mut o.resolution)),
    Opt::new(None, "secaligned", perhaps("US", is_count), "threads begin on a full second, and US later", |o, given| aligned(o, given, true)),
    Opt::new(Some('s'), "system", FLAG, "sleep with nanosleep", |o, _| on(&mut o.system)),
    Opt::new(Some('S'), "smp", FLAG, "as -a -t", smp),
    Opt::new(None, "smi", FLAG, "count system management interrupts (Intel, as root)", |o, _| on(&mut o.smi)),
    Opt::new(None, "spike", value("US"), "list the samples above US", |o, given| put(&mut o.spike, given.limit())),
    Opt::new(None, "spike-nodes", value("N"), "at most N of them [1024]",
        |o, given| put(&mut o.spike_nodes, given.count().map(|nodes| nodes.clamp(1, 1 << 20) as usize))),
    Opt::new(Some('t'), "threads", perhaps("N", is_count), "number of threads [1; without N, one a CPU]", threads),
    Opt::MARK,
    // Output is never kept back, and there is nothing to debug.
    Opt::new(Some('u'), "unbuffered", FLAG, "always so", |_, _| Ok(())),
    Opt::new(Some('v'), "verbose", FLAG, "print every sample: thread, cycle, value", |o, _| on(&mut o.verbose)),
    Opt::new(Some('x'), "posix_timers", FLAG, "sleep with POSIX timers", |o, _| on(&mut o.posix_timers)),
    Opt::new(None, "dbg_cyclictest", FLAG, "no effect", |_, _| Ok(())),
    Opt::LONG_HELP,
    Opt::COMPAT,
    Opt::STRICT.saying("exit code 2 when -b ended the run, 3 when the result is inconclusive"),
    Opt::RESULT.saying("save latscope's result too: quantiles, missed activations"),
    Opt::new(None, "timeline", value("FILE"), "record what each thread did, for Perfetto", |o: &mut CyclictestOptions, given| put(&mut o.timeline, given.path())).ours(),
    Opt::new(Some('n'), "nanosleep", FLAG, "", |_, given| given.retired("clock_nanosleep is the default")).retired(),
    Opt::new(Some('y'), "", value("POLICY"), "",
        |o, given| policy(o, given).and(given.retired(&format!("taken as --policy={}", given.text())))).retired(),
    Opt::new(Some('e'), "", value("US"), "", |o: &mut CyclictestOptions, given| {
        put(&mut o.latency, latency(given))?;
        given.retired(&format!("taken as --latency={}", given.text()))
    }).retired(),
    Opt::new(Some('U'), "numa", FLAG, "", |_, given| given.retired("memory is taken from the node of the thread anyway")).retired(),
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
    Opt::new(Some('g'), "of_max", value("N"), "", |_, given| given.retired("it has no effect")).retired(),
    Opt::new(Some('X'), "", FLAG, "", |_, given| given.retired("it has no effect")).retired(),
];

impl CyclictestOptions {
    /// Reads a call.
    ///
    /// # Errors
    /// Help was asked for, or the call cannot be carried out.
    pub fn read(arguments: &[OsString]) -> Result<CyclictestOptions, Refusal> {
        let usual = CyclictestOptions { oscilloscope: 1, spike_nodes: 1024, ..CyclictestOptions::default() };
        let mut options = options::read(SPECS, usual, arguments)?;
        options.settle()?;
        Ok(options)
    }

    /// What options mean together.
    fn settle(&mut self) -> Result<(), Refusal> {
        let real_time = matches!(self.policy, Some(Policy::Fifo | Policy::RoundRobin));
        if self.priority > 0 && !real_time {
            self.policy = Some(Policy::Fifo);
        } else if real_time && self.priority == 0 {
            self.priority = DEFAULT_PRIORITY;
            self.warnings.push(format!("defaulting realtime priority to {DEFAULT_PRIORITY}"));
        }
        if self.histogram.is_some() && self.distance.is_some_and(|distance| distance > 0) {
            self.warn("distance is ignored and set to 0, if histogram enabled");
        }
        if self.system && self.posix_timers {
            self.warn("The system option requires clock_nanosleep");
            self.warn("and is not compatible with posix_timers");
            self.warn("Using clock_nanosleep");
        }
        if self.laptop {
            self.warn("not setting cpu_dma_latency to save battery power");
        }
        if self.smi && self.affinity == Affinity::Any {
            return Err(Refusal::Fatal("FATAL: --smi counts on the CPU of each thread: add -a".to_owned()));
        }
        Ok(())
    }

    fn warn(&mut self, text: &str) {
        self.warnings.push(format!("WARN: {text}"));
    }
}

fn affinity(options: &mut CyclictestOptions, given: &mut Given) -> Result<(), Refusal> {
    match options.smp {
        true => options.warn("-a ignored due to smp mode"),
        false => options.affinity = given.value.clone().map_or(Affinity::Each, Affinity::Set),
    }
    Ok(())
}

fn threads(options: &mut CyclictestOptions, given: &mut Given) -> Result<(), Refusal> {
    match options.smp {
        true => options.warn("-t ignored due to smp mode"),
        false => options.threads = Some(amount(given)),
    }
    Ok(())
}

/// The number in front, without its sign; 0 if there is none.
fn amount(given: &Given) -> u64 {
    number(given.text()).map_or(0, |(number, _)| number.unsigned_abs())
}

fn smp(options: &mut CyclictestOptions, _: &mut Given) -> Result<(), Refusal> {
    if options.affinity != Affinity::Any {
        let text = "-a and -S exclude each other: -S has a thread on each CPU already";
        return Err(Refusal::Fatal(format!("FATAL: {text}")));
    }
    (options.smp, options.affinity, options.threads) = (true, Affinity::Each, Some(0));
    Ok(())
}

fn aligned(options: &mut CyclictestOptions, given: &Given, second: bool) -> Result<(), Refusal> {
    if options.aligned.is_some() && options.second_aligned != second {
        return Err(Refusal::Usage("-A and --secaligned exclude each other".to_owned()));
    }
    (options.aligned, options.second_aligned) = (Some(amount(given)), second);
    Ok(())
}

fn histogram(options: &mut CyclictestOptions, given: &mut Given) -> Result<(), Refusal> {
    put(&mut options.histogram, given.positive().map(|buckets| Some(buckets.min(MOST_BUCKETS))))
}

fn latency(given: &mut Given) -> Result<i32, Refusal> {
    Ok(given.signed()?.clamp(0, i32::MAX.into()) as i32)
}

fn priority(text: &str) -> Result<u32, Refusal> {
    let priority = number(text).map(|(priority, _)| priority).filter(|p| (0..=99).contains(p));
    let wrong = || Refusal::Usage(format!("-p {text} is no priority: they go from 0 to 99"));
    Ok(priority.ok_or_else(wrong)? as u32)
}

fn clock(text: &str) -> Result<Option<ClockName>, Refusal> {
    match number(text) {
        Some((0, _)) => Ok(Some(ClockName::Monotonic)),
        Some((1, _)) => Ok(Some(ClockName::Realtime)),
        _ => Err(Refusal::Usage(format!("-c {text} is no clock: 0 is MONOTONIC, 1 REALTIME"))),
    }
}

/// Of a policy that is none the threads are those of the normal one.
fn policy(options: &mut CyclictestOptions, given: &mut Given) -> Result<(), Refusal> {
    options.policy = Some(match given.text().to_ascii_lowercase().as_str() {
        "other" | "normal" => Policy::Other,
        "batch" => Policy::Batch,
        "idle" => Policy::Idle,
        "fifo" => Policy::Fifo,
        "rr" => Policy::RoundRobin,
        _ => {
            given.note(format!("there is no policy {:?}: threads run as other", given.text()));
            Policy::Other
        }
    });
    Ok(())
}

/// Priority of a real-time policy without one.
const DEFAULT_PRIORITY: u32 = 2;

/// The longest histogram.
const MOST_BUCKETS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::Spec;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<CyclictestOptions, Refusal> {
        CyclictestOptions::read(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
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
            policy: Some(Policy::Fifo),
            interval: Some(200),
            histogram: Some(400),
            common: Common { quiet: true, ..Common::default() },
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
        assert_eq!((options.priority, options.policy), (5, Some(Policy::Fifo)));
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
        assert_eq!((options.policy, options.latency, options.loops), (Some(Policy::RoundRobin), 7, Some(5)));
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
        assert_eq!(read("-p 5 --policy=other").unwrap().policy, Some(Policy::Fifo));
        assert_eq!(read("-p 5 --policy=rr").unwrap().policy, Some(Policy::RoundRobin));
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
