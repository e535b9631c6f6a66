//! cyclictest's options.

use crate::rt::arguments::{self, Given, Spec, Whose, duration, is_count, number};
use crate::rt::cpuset::is_set;
use crate::rt::row::Unit;
use crate::rt::{Refusal, Release};
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
    /// `other`, `normal`, and what nobody knows.
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
pub struct Options {
    /// `-a`, `-S`.
    pub affinity: Affinity,
    /// `-A`, `--secaligned`: distance of the threads' first instants, or their
    /// distance from the full second.
    pub aligned: Option<u64>,
    /// `--secaligned`.
    pub second_aligned: bool,
    /// `-b`, in the unit of the figures.
    pub break_above: Option<u64>,
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
    /// `-D`, ns.
    pub duration: Option<u64>,
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
    /// `--json`.
    pub json: Option<PathBuf>,
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
    /// `-q`.
    pub quiet: bool,
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
    /// `--tracemark`.
    pub trace_mark: bool,
    /// `-v`.
    pub verbose: bool,
    /// `-x`.
    pub posix_timers: bool,
    /// `--compat`.
    pub release: Release,
    /// `--strict-exit`.
    pub strict_exit: bool,
    /// `--result`.
    pub result: Option<PathBuf>,
    /// `--timeline`.
    pub timeline: Option<PathBuf>,
    /// Words on stderr.
    pub notes: Vec<String>,
}

/// All of them: those of 2.4 and 2.10 first, then ours, then the retired ones.
pub static SPECS: &[Spec] = &[
    Spec::perhaps(Some('a'), "affinity", "SET", is_set, "threads in turn on the CPUs of SET, or on all"),
    Spec::perhaps(Some('A'), "aligned", "US", is_count, "threads begin together, US apart"),
    Spec::value(Some('b'), "breaktrace", "US", "end at the first latency above US"),
    Spec::value(Some('c'), "clock", "N", "0 CLOCK_MONOTONIC, 1 CLOCK_REALTIME [0]"),
    Spec::flag(None, "default-system", "do not keep CPUs from deep sleep"),
    Spec::value(None, "deepest-idle-state", "N", "keep the CPUs used from idle states above N; -1: from all"),
    Spec::value(
        Some('d'),
        "distance",
        "US",
        "each further thread's interval is longer by US [500; 0 with -h]",
    ),
    Spec::value(Some('D'), "duration", "T", "end after T seconds, or with m, h, d minutes, hours, days"),
    Spec::value(Some('F'), "fifo", "PATH", "write the status lines to each reader of a FIFO"),
    Spec::value(Some('h'), "histogram", "US", "print a histogram with US buckets (of 1 us; with -N, 1 ns)"),
    Spec::value(Some('H'), "histofall", "US", "the same with a column for all threads"),
    Spec::value(None, "histfile", "PATH", "print the histogram to PATH"),
    Spec::value(Some('i'), "interval", "US", "interval of the first thread [1000]"),
    Spec::value(None, "json", "FILE", "write the result as JSON; - is stdout"),
    Spec::flag(None, "laptop", "do not keep CPUs from deep sleep, and say so"),
    Spec::value(None, "latency", "US", "hold /dev/cpu_dma_latency at US [0]"),
    Spec::value(Some('l'), "loops", "N", "end when a thread has had N cycles [0: endless]"),
    Spec::value(None, "mainaffinity", "SET", "CPUs of the thread that prints"),
    Spec::flag(Some('m'), "mlockall", "lock memory"),
    Spec::flag(Some('M'), "refresh_on_max", "print the status only when a maximum grows"),
    Spec::flag(Some('N'), "nsecs", "figures in ns instead of us"),
    Spec::value(Some('o'), "oscope", "N", "with -v only the largest of N samples"),
    Spec::value(Some('p'), "priority", "PRIO", "real-time priority"),
    Spec::value(None, "policy", "NAME", "other, normal, batch, idle, fifo or rr"),
    Spec::flag(None, "priospread", "each further thread's priority is lower by 1"),
    Spec::flag(Some('q'), "quiet", "print only the end"),
    Spec::flag(Some('r'), "relative", "sleep for a time from now"),
    Spec::flag(Some('R'), "resolution", "measure the resolution of the clock"),
    Spec::perhaps(None, "secaligned", "US", is_count, "threads begin on a full second, and US later"),
    Spec::flag(Some('s'), "system", "sleep with nanosleep"),
    Spec::flag(Some('S'), "smp", "as -a -t"),
    Spec::flag(None, "smi", "count system management interrupts (Intel, as root)"),
    Spec::value(None, "spike", "US", "list the samples above US"),
    Spec::value(None, "spike-nodes", "N", "at most N of them [1024]"),
    Spec::perhaps(Some('t'), "threads", "N", is_count, "number of threads [1; without N, one a CPU]"),
    Spec::flag(None, "tracemark", "with -b mark and stop the trace that you have started"),
    Spec::flag(Some('u'), "unbuffered", "always so"),
    Spec::flag(Some('v'), "verbose", "print every sample: thread, cycle, value"),
    Spec::flag(Some('x'), "posix_timers", "sleep with POSIX timers"),
    Spec::flag(None, "dbg_cyclictest", "no effect"),
    Spec::flag(None, "help", "this text"),
    Spec::value(None, "compat", "2.4|2.10", "whose text to print [2.4]").ours(),
    Spec::flag(None, "strict-exit", "exit code 2 when -b ended the run, 3 when the result is inconclusive")
        .ours(),
    Spec::value(None, "result", "FILE", "save latscope's result too: quantiles, missed activations").ours(),
    Spec::value(None, "timeline", "FILE", "record what each thread did, for Perfetto").ours(),
    Spec::flag(Some('n'), "nanosleep", "").retired(),
    Spec::value(Some('y'), "", "POLICY", "").retired(),
    Spec::value(Some('e'), "", "US", "").retired(),
    Spec::flag(Some('U'), "numa", "").retired(),
    Spec::flag(Some('f'), "ftrace", "").retired(),
    Spec::value(Some('T'), "tracer", "NAME", "").retired(),
    Spec::value(Some('O'), "traceopt", "NAME", "").retired(),
    Spec::flag(Some('w'), "wakeup", "").retired(),
    Spec::flag(Some('W'), "wakeuprt", "").retired(),
    Spec::flag(Some('I'), "irqsoff", "").retired(),
    Spec::flag(Some('P'), "preemptoff", "").retired(),
    Spec::flag(Some('B'), "preemptirqs", "").retired(),
    Spec::flag(Some('C'), "context", "").retired(),
    Spec::flag(Some('E'), "event", "").retired(),
    Spec::value(Some('g'), "of_max", "N", "").retired(),
    Spec::flag(Some('X'), "", "").retired(),
];

impl Options {
    /// Reads a call.
    ///
    /// # Errors
    /// Help was asked for, or the call cannot be carried out.
    pub fn read(arguments: &[OsString]) -> Result<Options, Refusal> {
        let words = arguments::read(SPECS, arguments)?;
        let mut options = Options { oscilloscope: 1, spike_nodes: 1024, ..Options::default() };
        for given in &words.options {
            options.accept(given)?;
        }
        for operand in &words.operands {
            options.note(format!("{operand:?} is no option and is ignored"));
        }
        options.settle()?;
        Ok(options)
    }

    fn accept(&mut self, given: &Given) -> Result<(), Refusal> {
        if given.spec.whose == Whose::Retired {
            return self.accept_retired(given);
        }
        let text = given.value.clone().unwrap_or_default();
        match given.spec.long {
            "affinity" => self.accept_affinity(given.value.clone()),
            "threads" if self.smp => self.warn("-t ignored due to smp mode"),
            "threads" => self.threads = Some(number(&text).map_or(0, |(n, _)| n.unsigned_abs())),
            "smp" => self.accept_smp()?,
            "aligned" => self.accept_aligned(&text, false)?,
            "secaligned" => self.accept_aligned(&text, true)?,
            "priority" => self.accept_priority(&text)?,
            "policy" => self.accept_policy(&text),
            "clock" => self.accept_clock(&text)?,
            "histogram" | "histofall" => {
                self.histogram = Some(self.positive(given, &text)?.min(MOST_BUCKETS));
                self.summary_column |= given.spec.long == "histofall";
            }
            "latency" => self.accept_latency(given, &text)?,
            "deepest-idle-state" => self.deepest_idle_state = Some(self.signed(given, &text)?),
            "duration" => self.duration = Some(duration(&text)?).filter(|ns| *ns > 0),
            "breaktrace" => self.break_above = Some(self.count(given, &text)?).filter(|limit| *limit > 0),
            "distance" => self.distance = Some(self.count(given, &text)?),
            "interval" => self.interval = Some(self.positive(given, &text)?),
            "loops" => self.loops = Some(self.count(given, &text)?).filter(|loops| *loops > 0),
            "oscope" => self.oscilloscope = self.positive(given, &text)?,
            "spike" => self.spike = Some(self.count(given, &text)?).filter(|limit| *limit > 0),
            "spike-nodes" => self.spike_nodes = self.count(given, &text)?.clamp(1, 1 << 20) as usize,
            "compat" => {
                let wrong = || Refusal::Usage(format!("--compat={text} is neither 2.4 nor 2.10"));
                self.release = Release::named(&text).ok_or_else(wrong)?;
            }
            "fifo" => self.fifo = Some(text.into()),
            "histfile" => self.histogram_file = Some(text.into()),
            "json" => self.json = Some(text.into()),
            "result" => self.result = Some(text.into()),
            "timeline" => self.timeline = Some(text.into()),
            "mainaffinity" => self.main_affinity = Some(text),
            flag => return self.accept_flag(flag),
        }
        Ok(())
    }

    fn accept_flag(&mut self, flag: &str) -> Result<(), Refusal> {
        let field = match flag {
            "help" => return Err(Refusal::Help),
            "nsecs" => {
                self.unit = Unit::Ns;
                return Ok(());
            }
            "laptop" => {
                self.laptop = true;
                &mut self.leave_system
            }
            "default-system" => &mut self.leave_system,
            "mlockall" => &mut self.lock_memory,
            "refresh_on_max" => &mut self.refresh_on_max,
            "priospread" => &mut self.spread,
            "quiet" => &mut self.quiet,
            "relative" => &mut self.relative,
            "resolution" => &mut self.resolution,
            "system" => &mut self.system,
            "smi" => &mut self.smi,
            "tracemark" => &mut self.trace_mark,
            "verbose" => &mut self.verbose,
            "posix_timers" => &mut self.posix_timers,
            "strict-exit" => &mut self.strict_exit,
            // Output is never kept back, and there is nothing to debug.
            _ => return Ok(()),
        };
        *field = true;
        Ok(())
    }

    /// What older releases took: what is still there is done, the rest is not.
    fn accept_retired(&mut self, given: &Given) -> Result<(), Refusal> {
        let (name, text) = (given.spec.name(), given.value.clone().unwrap_or_default());
        let why = match given.spec.short {
            Some('n') => "clock_nanosleep is the default".to_owned(),
            Some('y') => {
                self.accept_policy(&text);
                format!("taken as --policy={text}")
            }
            Some('e') => {
                self.accept_latency(given, &text)?;
                format!("taken as --latency={text}")
            }
            Some('U') => "memory is taken from the node of the thread anyway".to_owned(),
            Some('g' | 'X') => "it has no effect".to_owned(),
            _ => "cyclictest no longer drives a tracer; `latscope wake --blame` says what took the time"
                .to_owned(),
        };
        self.note(format!("{name} is retired: {why}"));
        Ok(())
    }

    fn accept_latency(&mut self, given: &Given, text: &str) -> Result<(), Refusal> {
        self.latency = self.signed(given, text)?.clamp(0, i32::MAX.into()) as i32;
        Ok(())
    }

    fn accept_affinity(&mut self, set: Option<String>) {
        if self.smp {
            return self.warn("-a ignored due to smp mode");
        }
        self.affinity = set.map_or(Affinity::Each, Affinity::Set);
    }

    fn accept_smp(&mut self) -> Result<(), Refusal> {
        if self.affinity != Affinity::Any {
            let text = "-a and -S exclude each other: -S has a thread on each CPU already";
            return Err(Refusal::Fatal(format!("FATAL: {text}")));
        }
        (self.smp, self.affinity, self.threads) = (true, Affinity::Each, Some(0));
        Ok(())
    }

    fn accept_aligned(&mut self, text: &str, second: bool) -> Result<(), Refusal> {
        if self.aligned.is_some() && self.second_aligned != second {
            return Err(Refusal::Usage("-A and --secaligned exclude each other".to_owned()));
        }
        self.aligned = Some(number(text).map_or(0, |(us, _)| us.unsigned_abs()));
        self.second_aligned = second;
        Ok(())
    }

    fn accept_priority(&mut self, text: &str) -> Result<(), Refusal> {
        let priority = number(text).map(|(priority, _)| priority).filter(|p| (0..=99).contains(p));
        let wrong = || Refusal::Usage(format!("-p {text} is no priority: they go from 0 to 99"));
        self.priority = priority.ok_or_else(wrong)? as u32;
        Ok(())
    }

    fn accept_policy(&mut self, name: &str) {
        let known = policy(name);
        if known.is_none() {
            self.note(format!("there is no policy {name:?}: threads run as other"));
        }
        self.policy = Some(known.unwrap_or_default());
    }

    fn accept_clock(&mut self, text: &str) -> Result<(), Refusal> {
        self.clock = Some(match number(text) {
            Some((0, _)) => ClockName::Monotonic,
            Some((1, _)) => ClockName::Realtime,
            _ => return Err(Refusal::Usage(format!("-c {text} is no clock: 0 is MONOTONIC, 1 REALTIME"))),
        });
        Ok(())
    }

    /// A number with a sign; what follows it is noted, for atoi(3) passes over it.
    fn signed(&mut self, given: &Given, text: &str) -> Result<i64, Refusal> {
        let name = given.spec.name();
        let wrong = || Refusal::Usage(format!("{name} {text} is no number"));
        let (number, whole) = number(text).ok_or_else(wrong)?;
        if !whole {
            self.note(format!("{name} {text} is read as {number}"));
        }
        Ok(number)
    }

    fn count(&mut self, given: &Given, text: &str) -> Result<u64, Refusal> {
        let wrong = |_| Refusal::Usage(format!("{} {text} is negative", given.spec.name()));
        u64::try_from(self.signed(given, text)?).map_err(wrong)
    }

    fn positive(&mut self, given: &Given, text: &str) -> Result<u64, Refusal> {
        let zero = || Refusal::Usage(format!("{} {text} is not above 0", given.spec.name()));
        Some(self.count(given, text)?).filter(|number| *number > 0).ok_or_else(zero)
    }

    /// What options mean together.
    fn settle(&mut self) -> Result<(), Refusal> {
        let real_time = matches!(self.policy, Some(Policy::Fifo | Policy::RoundRobin));
        if self.priority > 0 && !real_time {
            self.policy = Some(Policy::Fifo);
        } else if real_time && self.priority == 0 {
            self.priority = DEFAULT_PRIORITY;
            self.notes.push(format!("defaulting realtime priority to {DEFAULT_PRIORITY}"));
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
        self.notes.push(format!("WARN: {text}"));
    }

    fn note(&mut self, text: String) {
        self.notes.push(format!("latscope: cyclictest: note: {text}"));
    }
}

/// Priority of a real-time policy without one.
const DEFAULT_PRIORITY: u32 = 2;

/// The longest histogram.
const MOST_BUCKETS: u64 = 1_000_000;

fn policy(name: &str) -> Option<Policy> {
    Some(match name.to_ascii_lowercase().as_str() {
        "other" | "normal" => Policy::Other,
        "batch" => Policy::Batch,
        "idle" => Policy::Idle,
        "fifo" => Policy::Fifo,
        "rr" => Policy::RoundRobin,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::arguments::Takes;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<Options, Refusal> {
        Options::read(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn refused(line: &str) -> String {
        let refusal = read(line).unwrap_err();
        assert!(!refusal.to_string().contains('\n'), "{line}: {refusal}");
        refusal.to_string()
    }

    #[test]
    fn the_usual_call_is_understood() {
        let osadl = read("-l100000000 -m -Sp90 -i200 -h400 -q").unwrap();
        let wanted = Options {
            loops: Some(100_000_000),
            lock_memory: true,
            smp: true,
            affinity: Affinity::Each,
            threads: Some(0),
            priority: 90,
            policy: Some(Policy::Fifo),
            interval: Some(200),
            histogram: Some(400),
            quiet: true,
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
        for spec in SPECS.iter().filter(numbers).filter(|spec| spec.short != Some('g')) {
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
        for spec in SPECS.iter().filter(|spec| spec.long != "help") {
            let value = match spec.long {
                "duration" => "5m",
                "compat" => "2.10",
                "clock" => "1",
                _ => "3",
            };
            let forms = [spec.short.map(|letter| format!("-{letter}")), Some(format!("--{}", spec.long))];
            for form in forms.into_iter().flatten().filter(|form| form != "--") {
                let line = if matches!(spec.takes, arguments::Takes::Nothing) {
                    String::new()
                } else {
                    format!(" {value}")
                };
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
        assert_eq!(options.notes.len(), 5);
        assert!(options.notes[0].contains("-n is retired"), "{:?}", options.notes);
    }

    #[test]
    fn what_cyclictest_passes_over_is_named() {
        assert!(read("-l 10x").unwrap().notes[0].contains("-l 10x is read as 10"));
        assert!(read("extra").unwrap().notes[0].contains("\"extra\" is no option"));
        assert!(read("--policy=nonsense").unwrap().notes[0].contains("no policy"));
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (line, said) in [
            ("-z", "invalid option -- 'z'"),
            ("-p 100", "from 0 to 99"),
            ("-p -1", "from 0 to 99"),
            ("-c 2", "no clock"),
            ("-i 0", "not above 0"),
            ("-i -1", "negative"),
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
            (without.priority, without.notes),
            (2, vec!["defaulting realtime priority to 2".to_owned()])
        );
        assert_eq!(read("").unwrap().policy, None);
    }

    #[test]
    fn smp_takes_the_place_of_threads_and_affinity() {
        let options = read("-t3 -S -t 5 -a 1").unwrap();
        assert_eq!((options.threads, options.affinity), (Some(0), Affinity::Each));
        assert_eq!(options.notes, ["WARN: -t ignored due to smp mode", "WARN: -a ignored due to smp mode"]);
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
