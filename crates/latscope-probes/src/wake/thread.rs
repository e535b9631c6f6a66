//! What one periodic thread is to do, and its form as the parameters of a point.

use latscope_core::plan::{ParamValue, Params, Point};

/// One periodic thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its number in the run, from 0.
    pub index: u64,
    /// The CPU it stays on; `None` lets the scheduler choose.
    pub cpu: Option<u32>,
    /// Time from one activation to the next, ns.
    pub interval: u64,
    /// How it is scheduled.
    pub policy: Policy,
    /// How it waits for its next activation.
    pub method: Method,
    /// The clock of its timer and its stamps.
    pub clock: ClockName,
    /// One more hop from the thread whose timer expires to the one that stamps.
    pub via: Via,
    /// Computing time of each activation after the stamp, ns.
    pub work: u64,
    /// Bytes of memory that each activation reads and writes.
    pub touch: u64,
}

/// A scheduling policy as a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER, with a timer slack of 1 ns.
    Other,
    /// SCHED_FIFO with this priority.
    Fifo(u32),
    /// SCHED_RR with this priority.
    RoundRobin(u32),
    /// SCHED_DEADLINE with this runtime; deadline and period are the interval.
    Deadline {
        /// CPU time reserved in each period, ns.
        runtime: u64,
        /// Time after its activation within which it is reserved, ns.
        deadline: u64,
    },
}

/// How a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `clock_nanosleep` to an absolute instant.
    Nanosleep,
    /// A read of a periodic timerfd.
    Timerfd,
    /// A periodic POSIX timer that signals the thread, which waits in `sigwait`.
    PosixTimer,
    /// `clock_nanosleep` for a time from now: the instant of the call is part of it.
    Relative,
    /// `nanosleep` for a time from now.
    System,
    /// `sched_yield` of a SCHED_DEADLINE thread, which sleeps until its next period.
    Yield,
}

/// A clock as a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockName {
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_REALTIME`.
    Realtime,
}

/// The hop after the timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// None: the thread whose timer expires stamps.
    Direct,
    /// A futex wakes a second thread.
    Thread,
    /// An eventfd wakes a second thread.
    Eventfd,
    /// A pipe wakes a second thread.
    Pipe,
}

/// Words of an enum on the command line and in results, in order.
macro_rules! words {
    ($kind:ident { $($variant:ident => $word:literal),+ }) => {
        impl $kind {
            /// Its words, as on the command line.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its word.
            pub fn word(self) -> &'static str {
                match self { $($kind::$variant => $word),+ }
            }

            /// The one with this word.
            pub fn named(word: &str) -> Option<$kind> {
                match word { $($word => Some($kind::$variant),)+ _ => None }
            }
        }
    };
}

words!(Method {
    Nanosleep => "nanosleep",
    Timerfd => "timerfd",
    PosixTimer => "posix-timer",
    Relative => "relative",
    System => "system",
    Yield => "yield"
});
words!(ClockName { Monotonic => "monotonic", Realtime => "realtime" });
words!(Via { Direct => "direct", Thread => "thread", Eventfd => "eventfd", Pipe => "pipe" });

impl Policy {
    /// Its words, as on the command line.
    pub const WORDS: &'static [&'static str] = &["other", "fifo", "rr", "deadline"];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Policy::Other => "other",
            Policy::Fifo(_) => "fifo",
            Policy::RoundRobin(_) => "rr",
            Policy::Deadline { .. } => "deadline",
        }
    }

    /// Its priority; 0 where it has none.
    pub fn priority(self) -> u32 {
        match self {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => priority,
            _ => 0,
        }
    }
}

impl Thread {
    /// Its parameters: all that is not usual, and what every result states.
    pub fn params(&self) -> Params {
        let mut params = Params::new();
        let mut put = |name: &str, value: ParamValue| params.insert(name.to_owned(), value);
        put("interval", self.interval.into());
        put("cpu", self.cpu.map_or("any".into(), |cpu| u64::from(cpu).into()));
        put("thread", self.index.into());
        put("policy", self.policy.word().into());
        put("method", self.method.word().into());
        put("clock", self.clock.word().into());
        match self.policy {
            Policy::Other => {}
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
                put("priority", u64::from(priority).into());
            }
            Policy::Deadline { runtime, deadline } => {
                put("runtime", runtime.into());
                put("deadline", deadline.into());
            }
        }
        if self.via != Via::Direct {
            put("via", self.via.word().into());
        }
        if self.work > 0 {
            put("work", self.work.into());
        }
        if self.touch > 0 {
            put("touch", self.touch.into());
        }
        params
    }

    /// The thread of a point; what the point does not say is usual.
    pub fn of(point: &Point) -> Thread {
        let number = |name: &str| match point.params.get(name) {
            Some(ParamValue::Number(number)) => Some(*number),
            _ => None,
        };
        let word = |name: &str| match point.params.get(name) {
            Some(ParamValue::Text(word)) => word.as_str(),
            _ => "",
        };
        let interval = number("interval").unwrap_or(1_000_000);
        let priority = number("priority").unwrap_or(0) as u32;
        Thread {
            index: number("thread").unwrap_or(0),
            cpu: number("cpu").map(|cpu| cpu as u32),
            interval,
            policy: match word("policy") {
                "fifo" => Policy::Fifo(priority),
                "rr" => Policy::RoundRobin(priority),
                "deadline" => Policy::Deadline {
                    runtime: number("runtime").unwrap_or(interval / 10),
                    deadline: number("deadline").unwrap_or(interval),
                },
                _ => Policy::Other,
            },
            method: Method::named(word("method")).unwrap_or(Method::Nanosleep),
            clock: ClockName::named(word("clock")).unwrap_or(ClockName::Monotonic),
            via: Via::named(word("via")).unwrap_or(Via::Direct),
            work: number("work").unwrap_or(0),
            touch: number("touch").unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_survives_its_parameters() {
        let usual = Thread {
            index: 1,
            cpu: Some(3),
            interval: 1_000_000,
            policy: Policy::Fifo(95),
            method: Method::Nanosleep,
            clock: ClockName::Monotonic,
            via: Via::Direct,
            work: 0,
            touch: 0,
        };
        let policies = [Policy::Other, Policy::RoundRobin(1), Policy::Deadline { runtime: 5, deadline: 9 }];
        let mut threads: Vec<Thread> = policies.map(|policy| Thread { policy, ..usual.clone() }).into();
        threads.extend(Method::WORDS.iter().map(|word| Thread {
            method: Method::named(word).unwrap(),
            cpu: None,
            via: Via::Pipe,
            clock: ClockName::Realtime,
            work: 50_000,
            touch: 4096,
            ..usual.clone()
        }));
        threads.push(usual);
        for thread in threads {
            let point = Point {
                probe: String::new(),
                revision: 1,
                params: thread.params(),
                title: String::new(),
                row: true,
            };
            assert_eq!(Thread::of(&point), thread);
        }
    }
}
