//! Settings in the command line of cyclictest.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::SplitWhitespace;

/// Settings of the threads of cyclictest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// Interval of the first thread, `-i`, µs.
    interval: u64,
    /// Distance `-d`, µs: the difference between the intervals of successive threads.
    distance: u64,
    priority: u64,
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
const LONG: [(&str, char); 36] = [
    ("affinity", 'a'),
    ("aligned", 'A'),
    ("breaktrace", 'b'),
    ("clock", 'c'),
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
    ("secaligned", 'A'),
    ("smi", 'q'),
    ("smp", 'S'),
    ("spike", 'D'),
    ("spike-nodes", 'D'),
    ("system", 's'),
    ("threads", 't'),
];

/// The value of an option that may have none.
fn next_value<'a>(words: &mut Peekable<SplitWhitespace<'a>>) -> &'a str {
    words.next_if(|word| !word.starts_with('-')).unwrap_or("")
}

impl Asked {
    /// Reads the settings of a command line. Returns `None` if any word of it is not understood.
    pub(super) fn of(command_line: &str) -> Option<Asked> {
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
        Asked::from_options(&options)
    }

    fn from_options(options: &[(char, &str)]) -> Option<Asked> {
        // The last of several counts.
        let values: BTreeMap<char, &str> = options.iter().copied().collect();
        let number =
            |letter, default: u64| values.get(&letter).map_or(Some(default), |value| value.parse().ok());
        let has = |letter| values.contains_key(&letter);
        let priority = number('p', 0)?;
        let policy = match values.get(&'P').map(|word| word.to_lowercase()).as_deref() {
            Some("fifo") => "fifo",
            Some("rr") => "rr",
            None | Some("other" | "normal") if priority > 0 => "fifo",
            None | Some("other" | "normal") => "other",
            Some(_) => return None,
        };
        Some(Asked {
            interval: number('i', 1000)?,
            distance: if has('h') || has('H') { 0 } else { number('d', 500)? },
            priority,
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

    /// The real-time priority of a thread; 0 without one.
    pub(super) fn priority_of(&self, thread: u64) -> u64 {
        if self.spread { self.priority.saturating_sub(thread) } else { self.priority }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_threads_are_read_however_they_are_written() {
        let usual = Asked::of("cyclictest").unwrap();
        assert_eq!((usual.interval_ns(0), usual.interval_ns(2)), (Some(1_000_000), Some(2_000_000)));
        assert_eq!(
            (usual.policy, usual.method, usual.clock, usual.priority_of(0)),
            ("other", "nanosleep", "monotonic", 0)
        );
        for words in [
            "-p 80 -i200 -h100",
            "-mSp80 -i 200 -h 100 -q",
            "--priority=80 --interval 200 --histogram=400 -a 0-3 -t",
        ] {
            let asked = Asked::of(&format!("/usr/bin/cyclictest {words}")).unwrap();
            assert_eq!(
                (asked.policy, asked.priority_of(1), asked.interval_ns(3)),
                ("fifo", 80, Some(200_000)),
                "{words}"
            );
        }
        let asked = Asked::of("cyclictest -p 80 --priospread -c 1 -r --policy rr -t5").unwrap();
        assert_eq!(
            (asked.policy, asked.priority_of(2), asked.clock, asked.method),
            ("rr", 78, "realtime", "relative")
        );
    }

    #[test]
    fn of_a_word_that_is_not_known_nothing_follows() {
        for words in
            ["-p", "-p x", "-j", "--nosuch", "words", "--policy=batch", "-c 2", "-i -5", "--interval"]
        {
            assert_eq!(Asked::of(&format!("cyclictest {words}")), None, "{words}");
        }
        assert_eq!(Asked::of("oslat -D 5"), None);
    }
}
