//! Their options: alike, and each has most of them.

use crate::rt::Refusal;
use crate::rt::arguments::{self, Given, Spec, duration, is_count, number};
use crate::rt::cpuset::is_set;
use std::ffi::OsString;
use std::path::PathBuf;

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-a`: `Some(None)` for each CPU in turn.
    pub affinity: Option<Option<String>>,
    /// `-b`, µs.
    pub break_above: Option<u64>,
    /// `-d`, µs.
    pub distance: u64,
    /// `-D`, ns.
    pub duration: Option<u64>,
    /// `-f` of those that fork.
    pub fork: bool,
    /// `-f` of pmqtest, s.
    pub force_timeout: u64,
    /// `-i`, µs.
    pub interval: u64,
    /// `--json`.
    pub json: Option<PathBuf>,
    /// `-l`.
    pub loops: Option<u64>,
    /// `-p`.
    pub priority: u32,
    /// `-q`.
    pub quiet: bool,
    /// `-S`.
    pub smp: bool,
    /// `-t`: `Some(0)` for one on each CPU.
    pub threads: Option<u64>,
    /// `-T`, s.
    pub timeout: u64,
    /// `-v`.
    pub verbose: bool,
    /// `--tracemark`.
    pub trace_mark: bool,
    /// `--strict-exit`.
    pub strict_exit: bool,
    /// Words on stderr.
    pub notes: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            affinity: None,
            break_above: None,
            distance: 500,
            duration: None,
            fork: false,
            force_timeout: 0,
            interval: 1000,
            json: None,
            loops: None,
            priority: 0,
            quiet: false,
            smp: false,
            threads: None,
            timeout: 0,
            verbose: false,
            trace_mark: false,
            strict_exit: false,
            notes: Vec::new(),
        }
    }
}

/// All of the options of all of them.
pub(super) mod spec {
    use super::{Spec, is_count, is_set};

    pub const AFFINITY: Spec =
        Spec::perhaps(Some('a'), "affinity", "SET", is_set, "pairs in turn on the CPUs of SET, or on all");
    pub const BREAK: Spec = Spec::value(Some('b'), "breaktrace", "US", "end at the first latency above US");
    pub const DISTANCE: Spec =
        Spec::value(Some('d'), "distance", "US", "each further pair's interval is longer by US [500]");
    pub const DURATION: Spec =
        Spec::value(Some('D'), "duration", "T", "end after T seconds, or with m, h, d minutes, hours, days");
    pub const FORCE: Spec = Spec::value(
        Some('f'),
        "forcetimeout",
        "S",
        "the sender rests S seconds before each message; with -T",
    );
    pub const FORK: Spec = Spec::perhaps(Some('f'), "fork", "", |_| false, "processes instead of threads");
    pub const INTERVAL: Spec = Spec::value(Some('i'), "interval", "US", "interval of the first pair [1000]");
    pub const JSON: Spec = Spec::value(None, "json", "FILE", "write the result as JSON; - is stdout");
    pub const LOOPS: Spec =
        Spec::value(Some('l'), "loops", "N", "end when a pair has had N messages [0: endless]");
    pub const LOCK: Spec = Spec::flag(Some('m'), "mlockall", "lock memory: always so");
    pub const PRIORITY: Spec =
        Spec::value(Some('p'), "prio", "PRIO", "SCHED_FIFO; each further pair's priority is lower by 1");
    pub const QUIET: Spec = Spec::flag(Some('q'), "quiet", "print only the end");
    pub const SMP: Spec = Spec::flag(Some('S'), "smp", "as -a -t, and one priority for all");
    pub const THREADS: Spec =
        Spec::perhaps(Some('t'), "threads", "N", is_count, "number of pairs [1; without N, one a CPU]");
    pub const CIRCLE: Spec = Spec::value(Some('t'), "threads", "N", "number of threads [2]");
    pub const TIMEOUT: Spec =
        Spec::value(Some('T'), "timeout", "S", "the receiver waits S seconds at a time, and counts that");
    pub const VERBOSE: Spec =
        Spec::flag(Some('v'), "verbose", "print every sample of the first thread: thread, cycle, value");
    pub const HELP: Spec = Spec::flag(Some('h'), "help", "this text");
    pub const MARK: Spec =
        Spec::flag(None, "tracemark", "with -b mark and stop the trace that you have started").ours();
    pub const STRICT: Spec = Spec::flag(None, "strict-exit", "exit code 2 when -b ended the run").ours();
}

impl Options {
    /// Reads a call of the program with these options.
    ///
    /// # Errors
    /// Help was asked for, or the call cannot be carried out.
    pub fn read(specs: &'static [Spec], arguments: &[OsString]) -> Result<Options, Refusal> {
        let words = arguments::read(specs, arguments)?;
        let mut options = Options::default();
        for given in &words.options {
            options.accept(given)?;
        }
        for operand in &words.operands {
            options.notes.push(format!("{operand:?} is no option and is ignored"));
        }
        if options.smp && options.threads.take().is_some() {
            options.notes.push("-t is ignored: -S has one on each CPU".to_owned());
        }
        if options.force_timeout > 0 && options.timeout == 0 {
            return Err(Refusal::Usage("-f needs -T: without it the receiver waits without end".to_owned()));
        }
        Ok(options)
    }

    fn accept(&mut self, given: &Given) -> Result<(), Refusal> {
        let text = given.value.clone().unwrap_or_default();
        match given.spec.long {
            "affinity" => self.affinity = Some(given.value.clone()),
            "breaktrace" => self.break_above = Some(self.count(given)?).filter(|limit| *limit > 0),
            "distance" => self.distance = self.count(given)?,
            "duration" => self.duration = Some(duration(&text)?).filter(|ns| *ns > 0),
            "forcetimeout" => self.force_timeout = self.count(given)?,
            "interval" => self.interval = self.count(given)?,
            "json" => self.json = Some(text.into()),
            "loops" => self.loops = Some(self.count(given)?).filter(|loops| *loops > 0),
            "prio" => self.accept_priority(given)?,
            "threads" => self.accept_threads(given)?,
            "timeout" => self.timeout = self.count(given)?,
            "fork" if given.value.is_some() => {
                let text = format!("-f {text}: which end a process is cannot be given from outside");
                return Err(Refusal::Usage(text));
            }
            flag => return self.accept_flag(flag),
        }
        Ok(())
    }

    fn accept_flag(&mut self, flag: &str) -> Result<(), Refusal> {
        let field = match flag {
            "fork" => &mut self.fork,
            "quiet" => &mut self.quiet,
            "smp" => &mut self.smp,
            "verbose" => &mut self.verbose,
            "tracemark" => &mut self.trace_mark,
            "strict-exit" => &mut self.strict_exit,
            // Memory is always locked.
            "mlockall" => return Ok(()),
            _ => return Err(Refusal::Help),
        };
        *field = true;
        Ok(())
    }

    fn accept_priority(&mut self, given: &Given) -> Result<(), Refusal> {
        let priority = self.count(given)?;
        let wrong = || Refusal::Usage(format!("-p {priority}: a priority is 0 to 99"));
        self.priority = u32::try_from(priority).ok().filter(|number| *number <= 99).ok_or_else(wrong)?;
        Ok(())
    }

    /// A circle has two threads at least: only it must be told a number.
    fn accept_threads(&mut self, given: &Given) -> Result<(), Refusal> {
        let circle = matches!(given.spec.takes, arguments::Takes::Value);
        let threads = if given.value.is_some() { self.count(given)? } else { 0 };
        if circle && threads < 2 {
            return Err(Refusal::Usage(format!("-t {threads}: a circle has 2 threads at least")));
        }
        if threads > MOST {
            return Err(Refusal::Usage(format!("-t {threads}: {MOST} are the most")));
        }
        self.threads = Some(threads);
        Ok(())
    }

    fn count(&mut self, given: &Given) -> Result<u64, Refusal> {
        let (name, text) = (given.spec.name(), given.value.as_deref().unwrap_or_default());
        let parsed = number(text).and_then(|(number, whole)| Some((u64::try_from(number).ok()?, whole)));
        let (number, whole) =
            parsed.ok_or_else(|| Refusal::Usage(format!("{name} {text} is no number from 0 on")))?;
        if !whole {
            self.notes.push(format!("{name} {text} is taken as {number}"));
        }
        Ok(number)
    }
}

/// Threads that a machine may be asked for.
const MOST: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::arguments::Takes;
    use super::*;
    use crate::rt::pairs::{PMQTEST, PTSEMATEST, Program, SIGNALTEST, SIGWAITTEST, SVSEMATEST};

    static ALL: [&Program; 5] = [&PMQTEST, &PTSEMATEST, &SIGNALTEST, &SIGWAITTEST, &SVSEMATEST];

    fn read(program: &Program, line: &str) -> Result<Options, Refusal> {
        program.options(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_understood_by_its_letter_and_its_name() {
        for program in ALL {
            for spec in program.specs().iter().filter(|spec| !["help", "mlockall"].contains(&spec.long)) {
                let (value, together) = match spec.takes {
                    Takes::Value => (" 7", "=7"),
                    _ => ("", ""),
                };
                // It is worth nothing without a timeout.
                let with = if spec.long == "forcetimeout" { " -T 3" } else { "" };
                let long = read(program, &format!("--{}{together}{with}", spec.long)).unwrap();
                assert_ne!(long, Options::default(), "--{}", spec.long);
                if let Some(letter) = spec.short {
                    assert_eq!(read(program, &format!("-{letter}{value}{with}")).unwrap(), long);
                }
            }
            assert_eq!(read(program, "-h"), Err(Refusal::Help));
        }
        assert_eq!(read(&SIGNALTEST, "-m").unwrap(), Options::default());
    }

    #[test]
    fn nothing_means_no_limit_and_each_cpu() {
        let options = read(&PMQTEST, "-l 0 -b 0 -D 0 -t").unwrap();
        assert_eq!((options.loops, options.break_above, options.duration), (None, None, None));
        assert_eq!(options.threads, Some(0));
        assert_eq!(read(&PMQTEST, "-t0").unwrap(), read(&PMQTEST, "-t").unwrap());
        assert_eq!(read(&PMQTEST, "-Sp99 -i100 -d0").unwrap().priority, 99);
    }
}
