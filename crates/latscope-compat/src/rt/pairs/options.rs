//! Options of the programs for inter-process communication. They are alike, and each program has most of them.

use crate::getopt::{
    CommandLineRefusal, FLAG, OptionOccurrence, ProgramCall, ProgramOption, is_count, part, perhaps,
    set_field, set_flag, value,
};
use crate::rt::cpuset::is_set;
use crate::rt::options::{self, RtTestsCommonOptions};
use crate::rt::paced::{PacedWakeMechanism, PacedWakeOrder};
use smart_default::SmartDefault;

/// Values of the options of a call.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct PairsOptions {
    /// Means by which the endpoints of the program wake each other.
    #[default(PacedWakeMechanism::Queues)]
    pub means: PacedWakeMechanism,
    /// Order in which the endpoints of the program wake each other.
    #[default(PacedWakeOrder::Pairs)]
    pub form: PacedWakeOrder,
    /// Value of `-a`: `Some(None)` for each CPU in turn.
    pub affinity: Option<Option<String>>,
    /// Value of `-d`, in µs: each further pair's interval is longer by this.
    #[default(500)]
    pub distance: u64,
    /// Value of `-f` of the programs that can fork: processes instead of threads.
    pub fork: bool,
    /// Value of `-f` of pmqtest, in s: the sender rests before each message.
    pub force_timeout: u64,
    /// Value of `-i`, in µs: the interval of the first pair.
    #[default(1000)]
    pub interval: u64,
    /// Value of `-l`: the number of messages of a pair that ends the run.
    pub loops: Option<u64>,
    /// Value of `-p`: the priority under SCHED_FIFO.
    pub priority: u32,
    /// Value of `-S`: the same as `-a -t`, and one priority for all.
    pub smp: bool,
    /// Value of `-t`: `Some(0)` for one pair on each CPU.
    pub threads: Option<u64>,
    /// Value of `-T`, in s: the longest single wait of the receiver.
    pub timeout: u64,
    /// Value of `-v`: print every sample of the first thread.
    pub verbose: bool,
    /// Values of the options that other programs share.
    pub common: RtTestsCommonOptions,
}

impl PairsOptions {
    /// Returns the options of a call without arguments, of a program with these means and this form.
    pub fn for_mechanism(means: PacedWakeMechanism, form: PacedWakeOrder) -> PairsOptions {
        PairsOptions { means, form, ..PairsOptions::default() }
    }

    /// Returns true if the receiver may give up waiting.
    pub fn times_out(&self) -> bool {
        self.means == PacedWakeMechanism::Queues
    }
}

part!(PairsOptions, common: RtTestsCommonOptions);

/// All options of these programs, except those shared with other programs.
#[rustfmt::skip]
pub(super) mod spec {
    use super::*;

    pub(crate) type Row = ProgramOption<PairsOptions>;
    pub(crate) const AFFINITY: Row = ProgramOption::new(Some('a'), "affinity", perhaps("SET", is_set), "pairs in turn on the CPUs of SET, or on all",
        |o, given| set_field(&mut o.affinity, Ok(Some(given.value.clone()))));
    pub(crate) const DISTANCE: Row = ProgramOption::new(Some('d'), "distance", value("US"), "each further pair's interval is longer by US [500]",
        |o, given| set_field(&mut o.distance, given.parse_count()));
    pub(crate) const FORCE: Row = ProgramOption::new(Some('f'), "forcetimeout", value("S"), "the sender rests S seconds before each message; with -T",
        |o, given| set_field(&mut o.force_timeout, given.parse_count()));
    pub(crate) const FORK: Row = ProgramOption::new(Some('f'), "fork", perhaps("", |_| false), "processes instead of threads", fork);
    pub(crate) const INTERVAL: Row = ProgramOption::new(Some('i'), "interval", value("US"), "interval of the first pair [1000]",
        |o, given| set_field(&mut o.interval, given.parse_count()));
    pub(crate) const LOOPS: Row = ProgramOption::new(Some('l'), "loops", value("N"), "end when a pair has had N messages [0: endless]",
        |o, given| set_field(&mut o.loops, given.parse_limit()));
    // Memory is always locked.
    pub(crate) const LOCK: Row = ProgramOption::new(Some('m'), "mlockall", FLAG, "lock memory: always so", |_, _| Ok(()));
    pub(crate) const PRIORITY: Row = ProgramOption::new(Some('p'), "prio", value("PRIO"), "SCHED_FIFO; each further pair's priority is lower by 1",
        |o, given| set_field(&mut o.priority, priority(given)));
    pub(crate) const SMP: Row = ProgramOption::new(Some('S'), "smp", FLAG, "as -a -t, and one priority for all", |o, _| set_flag(&mut o.smp));
    pub(crate) const THREADS: Row = ProgramOption::new(Some('t'), "threads", perhaps("N", is_count), "number of pairs [1; without N, one a CPU]",
        |o, given| set_field(&mut o.threads, if given.value.is_some() { threads(given, 0) } else { Ok(Some(0)) }));
    pub(crate) const CIRCLE: Row = ProgramOption::new(Some('t'), "threads", value("N"), "number of threads [2]",
        |o, given| set_field(&mut o.threads, threads(given, 2)));
    pub(crate) const TIMEOUT: Row = ProgramOption::new(Some('T'), "timeout", value("S"), "the receiver waits S seconds at a time, and counts that",
        |o, given| set_field(&mut o.timeout, given.parse_count()));
    pub(crate) const VERBOSE: Row = ProgramOption::new(Some('v'), "verbose", FLAG, "print every sample of the first thread: thread, cycle, value",
        |o, _| set_flag(&mut o.verbose));
    pub(crate) const MARK: Row = ProgramOption::MARK.mark_added();
}

/// Applies the rules by which options affect each other.
pub(super) fn resolve_options(call: ProgramCall<PairsOptions>) -> Result<PairsOptions, CommandLineRefusal> {
    let mut options = options::resolve_options(call)?;
    if options.smp && options.threads.take().is_some() {
        options.common.notes.push("-t is ignored: -S has one on each CPU".to_owned());
    }
    if options.force_timeout > 0 && options.timeout == 0 {
        return Err(CommandLineRefusal::Usage(
            "-f needs -T: without it the receiver waits without end".to_owned(),
        ));
    }
    Ok(options)
}

fn fork(options: &mut PairsOptions, given: &mut OptionOccurrence) -> Result<(), CommandLineRefusal> {
    let which = |value| format!("-f {value}: which end a process is cannot be given from outside");
    given.value.as_ref().map_or(Ok(()), |value| Err(CommandLineRefusal::Usage(which(value))))?;
    set_flag(&mut options.fork)
}

fn priority(given: &mut OptionOccurrence) -> Result<u32, CommandLineRefusal> {
    let priority = given.parse_count()?;
    let wrong = || CommandLineRefusal::Usage(format!("-p {priority}: a priority is 0 to 99"));
    u32::try_from(priority).ok().filter(|number| *number <= 99).ok_or_else(wrong)
}

/// Parses a number of threads or pairs, from `least` to [`MOST`]. A circle has at least two threads.
fn threads(given: &mut OptionOccurrence, least: u64) -> Result<Option<u64>, CommandLineRefusal> {
    match given.parse_count()? {
        threads if threads < least => {
            Err(CommandLineRefusal::Usage(format!("-t {threads}: a circle has 2 threads at least")))
        }
        threads if threads > MOST => {
            Err(CommandLineRefusal::Usage(format!("-t {threads}: {MOST} are the most")))
        }
        threads => Ok(Some(threads)),
    }
}

/// Largest number of threads that a call may ask for.
const MOST: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::PersonalityContext;
    use crate::getopt::Takes;
    use crate::personality::PersonalityProgram;
    use crate::rt::pairs::{PMQTEST, PTSEMATEST, SIGNALTEST, SIGWAITTEST, SVSEMATEST};

    static ALL: [&PersonalityProgram<PairsOptions>; 5] =
        [&PMQTEST, &PTSEMATEST, &SIGNALTEST, &SIGWAITTEST, &SVSEMATEST];

    fn read(
        program: &PersonalityProgram<PairsOptions>,
        line: &str,
    ) -> Result<PairsOptions, CommandLineRefusal> {
        program.read_call(&PersonalityContext::new(line.split_whitespace()))
    }

    #[test]
    fn every_option_is_understood_by_its_letter_and_its_name() {
        for program in ALL {
            let specs = program.options.iter().map(|option| &option.spec);
            for spec in specs.filter(|spec| !["help", "mlockall"].contains(&spec.long)) {
                let (value, together) = match spec.takes {
                    Takes::Value => (" 7", "=7"),
                    _ => ("", ""),
                };
                // It is worth nothing without a timeout.
                let with = if spec.long == "forcetimeout" { " -T 3" } else { "" };
                let long = read(program, &format!("--{}{together}{with}", spec.long)).unwrap();
                assert_ne!(long, read(program, "").unwrap(), "--{}", spec.long);
                if let Some(letter) = spec.short {
                    assert_eq!(read(program, &format!("-{letter}{value}{with}")).unwrap(), long);
                }
            }
            assert_eq!(read(program, "-h"), Err(CommandLineRefusal::Help));
        }
        assert_eq!(read(&SIGNALTEST, "-m"), read(&SIGNALTEST, ""));
    }

    #[test]
    fn nothing_means_no_limit_and_each_cpu() {
        let options = read(&PMQTEST, "-l 0 -b 0 -D 0 -t").unwrap();
        assert_eq!((options.loops, options.common.break_above, options.common.duration), (None, None, None));
        assert_eq!(options.threads, Some(0));
        assert_eq!(read(&PMQTEST, "-t0").unwrap(), read(&PMQTEST, "-t").unwrap());
        assert_eq!(read(&PMQTEST, "-Sp99 -i100 -d0").unwrap().priority, 99);
    }
}
