//! Settings in the command line of cyclictest.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::SplitWhitespace;

/// Settings of the threads of cyclictest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CyclictestSettings {
    /// Interval of the first thread, `-i`, µs.
    interval: u64,
    /// Distance `-d`, µs: the difference between the intervals of successive threads.
    distance: u64,
    /// Real-time priority of the first thread; `None` where it follows from the number of threads.
    priority: Option<u64>,
    /// Length of the histogram, `-h`, in its own unit.
    length: Option<u64>,
    /// Latency that ends the run, `-b`, µs.
    pub limit: Option<u64>,
    /// Number of threads, `-t`; `None` where it is that of the CPUs.
    pub threads: Option<u64>,
    /// The most cycles of a thread, `-l`.
    pub loops: Option<u64>,
    /// Ranges of the CPUs of `-a`; `None` where they are not stated.
    pub cpus: Option<Vec<(u64, u64)>>,
    /// Option `-N`: figures in ns.
    pub nanoseconds: bool,
    /// Option `--priospread`: each further thread has a priority lower by 1.
    spread: bool,
    /// Scheduling policy, in the words of `wake.timer`.
    pub policy: &'static str,
    /// Method of waiting, in the words of `wake.timer`.
    pub method: &'static str,
    /// Clock of the timer, in the words of `wake.timer`.
    pub clock: &'static str,
}

/// Options with a value, with one that may be in the next word, and without any; all others are unknown.
const WITH_VALUE: &str = "bcdDFhHilop";
const WITH_OPTIONAL: &str = "aAt";
const FLAGS: &str = "mMNqrRsSuvx";

/// Long options by their letter. Options that do not change the threads have `q`, which has no effect, or `D`, which
/// has a value.
const LONG: [(&str, char); 44] = [
    ("affinity", 'a'),
    ("aligned", 'A'),
    ("breaktrace", 'b'),
    ("clock", 'c'),
    ("compat", 'D'),
    ("dbg_cyclictest", 'q'),
    ("default-system", 'q'),
    ("deepest-idle-state", 'D'),
    ("distance", 'd'),
    ("duration", 'D'),
    ("fifo", 'F'),
    ("histfile", 'D'),
    ("histofall", 'H'),
    ("histogram", 'h'),
    ("interval", 'i'),
    ("json", 'D'),
    ("laptop", 'q'),
    ("latency", 'D'),
    ("loops", 'l'),
    ("mainaffinity", 'D'),
    ("mlockall", 'm'),
    ("nsecs", 'N'),
    ("oscope", 'o'),
    ("policy", 'P'),
    ("posix_timers", 'x'),
    ("priority", 'p'),
    ("priospread", 'Q'),
    ("quiet", 'q'),
    ("refresh_on_max", 'M'),
    ("relative", 'r'),
    ("resolution", 'R'),
    ("result", 'D'),
    ("secaligned", 'A'),
    ("smi", 'q'),
    ("smp", 'S'),
    ("spike", 'D'),
    ("spike-nodes", 'D'),
    ("strict-exit", 'q'),
    ("system", 's'),
    ("threads", 't'),
    ("timeline", 'D'),
    ("tracemark", 'q'),
    ("unbuffered", 'q'),
    ("verbose", 'q'),
];

/// Ranges of a list of CPUs such as `0,2-3`; `None` for one of another form.
fn cpu_ranges(list: &str) -> Option<Vec<(u64, u64)>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    list.split(',').map(range).collect()
}

/// The value of an option that may have none.
fn next_value<'a>(words: &mut Peekable<SplitWhitespace<'a>>) -> &'a str {
    words.next_if(|word| !word.starts_with('-')).unwrap_or("")
}

impl CyclictestSettings {
    /// Reads the settings of a command line. Returns `None` if any word of it is not understood.
    pub(super) fn from_command_line(command_line: &str) -> Option<CyclictestSettings> {
        let mut words = command_line.split_whitespace().peekable();
        words.by_ref().find(|word| word.rsplit('/').next() == Some("cyclictest"))?;
        let mut options: Vec<(char, &str)> = Vec::new();
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) =
                    long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                let letter = LONG.iter().find(|(known, _)| *known == name)?.1;
                let value = match letter {
                    _ if value.is_some() => value?,
                    letter if letter == 'P' || WITH_VALUE.contains(letter) => words.next()?,
                    letter if WITH_OPTIONAL.contains(letter) => next_value(&mut words),
                    _ => "",
                };
                options.push((letter, value));
                continue;
            }
            let mut letters = word.strip_prefix('-')?.chars();
            while let Some(letter) = letters.next() {
                let rest = letters.as_str();
                let value = match letter {
                    letter if FLAGS.contains(letter) => {
                        options.push((letter, ""));
                        continue;
                    }
                    letter if WITH_VALUE.contains(letter) && rest.is_empty() => words.next()?,
                    letter if WITH_OPTIONAL.contains(letter) && rest.is_empty() => next_value(&mut words),
                    letter if WITH_VALUE.contains(letter) || WITH_OPTIONAL.contains(letter) => rest,
                    _ => return None,
                };
                options.push((letter, value));
                break;
            }
        }
        CyclictestSettings::from_options(&options)
    }

    fn from_options(options: &[(char, &str)]) -> Option<CyclictestSettings> {
        // The last of several counts.
        let values: BTreeMap<char, &str> = options.iter().copied().collect();
        // cyclictest reads numbers of 32 bits: it did not run with a larger one.
        let whole = |value: &str| value.parse::<i32>().ok().and_then(|number| u64::try_from(number).ok());
        let number = |letter, default: u64| values.get(&letter).map_or(Some(default), |value| whole(value));
        let has = |letter| values.contains_key(&letter);
        let optional = |letter| values.get(&letter).map_or(Some(None), |value| value.parse().ok().map(Some));
        let priority = number('p', 0)?;
        let policy = match values.get(&'P').map(|word| word.to_lowercase()).as_deref() {
            Some("fifo") => "fifo",
            Some("rr") => "rr",
            None | Some("other" | "normal") if priority > 0 => "fifo",
            None | Some("other" | "normal") => "other",
            Some(_) => return None,
        };
        let length = if has('h') { 'h' } else { 'H' };
        Some(CyclictestSettings {
            interval: number('i', 1000)?,
            distance: if has('h') || has('H') { 0 } else { number('d', 500)? },
            priority: Some(priority).filter(|priority| *priority > 0 || policy == "other"),
            length: optional(length)?,
            limit: optional('b')?,
            threads: match values.get(&'t') {
                _ if has('S') => None,
                None => Some(1),
                Some(number) => number.parse().ok().filter(|number| *number > 0),
            },
            loops: Some(number('l', 0)?).filter(|loops| *loops > 0),
            // With -S all CPUs have a thread, whatever -a says; a leading + counts from the CPUs that are allowed.
            cpus: values
                .get(&'a')
                .filter(|list| !has('S') && !list.contains('+'))
                .and_then(|list| cpu_ranges(list)),
            nanoseconds: has('N'),
            spread: has('Q'),
            policy,
            method: match () {
                () if has('x') => "posix-timer",
                () if has('s') => "system",
                () if has('r') => "relative",
                () => "nanosleep",
            },
            clock: match number('c', 0)? {
                0 => "monotonic",
                1 => "realtime",
                _ => return None,
            },
        })
    }

    /// The interval of a thread, ns; `None` if it is too large.
    pub(super) fn interval_ns(&self, thread: u64) -> Option<u64> {
        self.distance.checked_mul(thread)?.checked_add(self.interval)?.checked_mul(1000)
    }

    /// The real-time priority of one of so many threads: 0 without one, `None` if it is not known. A single thread of
    /// a real-time policy has 2 where none is given.
    pub(super) fn priority_of(&self, thread: u64, threads: usize) -> Option<u64> {
        let priority = self.priority.or((threads == 1).then_some(2))?;
        Some(if self.spread { priority.saturating_sub(thread) } else { priority })
    }

    /// Returns the least value beyond the histogram, in its unit, where its length is stated.
    pub(super) fn length(&self) -> Option<u64> {
        self.length.map(|length| length.min(MOST_BINS))
    }
}

/// The most bins that cyclictest has, whatever is asked for.
const MOST_BINS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_threads_are_read_however_they_are_written() {
        let cpus = |line: &str| CyclictestSettings::from_command_line(line).unwrap().cpus;
        assert_eq!(cpus("cyclictest -a 2-3"), Some(vec![(2, 3)]));
        assert_eq!([cpus("cyclictest -S -a 2-3"), cpus("cyclictest -a +0")], [None, None]);
        assert_eq!(
            CyclictestSettings::from_command_line("cyclictest -h 2000000").unwrap().length(),
            Some(1_000_000)
        );
        let usual = CyclictestSettings::from_command_line("cyclictest").unwrap();
        assert_eq!((usual.interval_ns(0), usual.interval_ns(2)), (Some(1_000_000), Some(2_000_000)));
        assert_eq!(
            (usual.policy, usual.method, usual.clock, usual.priority_of(0, 3)),
            ("other", "nanosleep", "monotonic", Some(0))
        );
        for words in [
            "-p 80 -i200 -h100",
            "-mSp80 -i 200 -h 100 -q",
            "--priority=80 --interval 200 --histogram=400 -a 0-3 -t",
        ] {
            let asked =
                CyclictestSettings::from_command_line(&format!("/usr/bin/cyclictest {words}")).unwrap();
            assert_eq!(
                (asked.policy, asked.priority_of(1, 4), asked.interval_ns(3)),
                ("fifo", Some(80), Some(200_000)),
                "{words}"
            );
        }
        let asked =
            CyclictestSettings::from_command_line("cyclictest -p 80 --priospread -c 1 -r --policy rr -t5")
                .unwrap();
        assert_eq!(
            (asked.policy, asked.priority_of(2, 5), asked.clock, asked.method),
            ("rr", Some(78), "realtime", "relative")
        );
    }

    #[test]
    fn a_real_time_policy_without_a_priority_has_that_of_one_thread_or_an_unknown_one() {
        let asked = CyclictestSettings::from_command_line(
            "cyclictest --policy=fifo -h 60 -b 100 --strict-exit --result r.json",
        )
        .unwrap();
        assert_eq!((asked.policy, asked.priority_of(0, 1), asked.priority_of(0, 4)), ("fifo", Some(2), None));
        assert_eq!((asked.length(), asked.limit), (Some(60), Some(100)));
    }

    #[test]
    fn of_a_word_that_is_not_known_nothing_follows() {
        let large = "-i 507340821740";
        for words in
            ["-p", "-p x", "-j", "--nosuch", "words", "--policy=batch", "-c 2", "-i -5", large, "--interval"]
        {
            assert_eq!(
                CyclictestSettings::from_command_line(&format!("cyclictest {words}")),
                None,
                "{words}"
            );
        }
        assert_eq!(CyclictestSettings::from_command_line("oslat -D 5"), None);
    }
}
