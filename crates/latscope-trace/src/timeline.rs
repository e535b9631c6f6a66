//! What each thread did, moment by moment, read from the kernel's scheduler
//! and system call events.
//!
//! [`Recording`] is what a trace instance holds at the end of a measurement.
//! [`Timeline::of`] makes of it the states of each thread that was followed,
//! its system calls and its signposts; [`shares`] sums them up, [`text`] writes
//! the sums for the screen, [`ftrace_text`] and [`chrome_json`] write files that
//! Perfetto opens.
//!
//! A thread is **running** while a CPU executes it, **runnable** from being
//! woken (or born, or having yielded) until a CPU takes it, **preempted** from
//! losing its CPU while it could have gone on until it gets one back, and
//! **blocked** while it waits for something else than a CPU. The events are
//! those of the kernel's `events/sched` and `events/raw_syscalls`
//! (Documentation/trace/events.rst).

mod build;
mod export;
mod ftrace;
mod shares;
mod syscalls;

pub use export::{Export, Format, chrome_json, ftrace_text};
pub(crate) use export::{FTRACE_HEAD, ftrace_row};
pub use ftrace::with_nanoseconds;
pub use shares::{CallShare, ThreadShares, finding, shares, shares_within, text, values};
pub use syscalls::syscall_name;

use serde::Serialize;
use std::collections::BTreeMap;

/// What was recorded of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// The `trace` file: a line for each event, in order of time.
    pub text: String,
    /// Ids of the threads followed from the start. Threads and processes that
    /// they create are followed too.
    pub followed: Vec<u32>,
    /// Events that did not fit into the buffers.
    pub lost: u64,
    /// Where events were lost, the instant from which all are there: ns of the
    /// trace clock. What is earlier is left out.
    pub whole_from: Option<u64>,
    /// `uname -m` of the machine: decides what system call numbers mean.
    pub architecture: String,
}

/// What the threads of a step did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// First instant, ns of the trace clock (CLOCK_MONOTONIC).
    pub from: u64,
    /// Last instant, ns of the trace clock.
    pub until: u64,
    /// The threads, in order of appearance.
    pub threads: Vec<Thread>,
    /// Names of threads that were not followed and took or gave something: the
    /// CPU, a wake-up. By id.
    pub others: BTreeMap<u32, String>,
    /// Events that were lost before `from`.
    pub lost: u64,
    /// Lines of the recording that are no events; 0 in a sound one.
    pub damaged: u64,
    /// `uname -m` of the machine.
    pub architecture: String,
}

/// One thread. Intervals follow each other without gap or overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Id of its process; 0 where the trace does not tell.
    pub process: u32,
    /// Its name, the last one it had.
    pub name: String,
    /// Its states in order.
    pub intervals: Vec<Interval>,
    /// Its system calls in order of their end. The writes that place signposts
    /// are left out.
    pub calls: Vec<Call>,
    /// Its signposts in order of their end.
    pub signposts: Vec<Signpost>,
    /// Whether it ended within the recording.
    pub ended: bool,
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A CPU executes it.
    Running,
    /// It could run and waits for a CPU: after a wake-up, its creation, or its
    /// own `sched_yield`.
    Runnable,
    /// It could run and waits for a CPU that was taken from it.
    Preempted,
    /// It waits for something else than a CPU.
    Blocked,
}

impl State {
    /// All states, in the order of the columns.
    pub const ALL: [State; 4] = [State::Running, State::Runnable, State::Preempted, State::Blocked];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Runnable => "runnable",
            State::Preempted => "preempted",
            State::Blocked => "blocked",
        }
    }
}

/// A stretch of one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Begin, ns of the trace clock.
    pub from: u64,
    /// End, ns of the trace clock.
    pub until: u64,
    /// The state.
    pub state: State,
    /// What began it.
    pub why: Why,
    /// The CPU: the one it runs on, or last ran on.
    pub cpu: u32,
}

/// What began an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// A CPU took it up.
    Scheduled,
    /// Another thread (0: an interrupt on an idle CPU) woke it.
    Woken {
        /// Thread id of the waker.
        by: u32,
    },
    /// It was created.
    Created {
        /// Thread id of its creator.
        by: u32,
    },
    /// It called `sched_yield`.
    Yielded,
    /// Another thread got its CPU.
    Preempted {
        /// Thread id of that thread.
        by: u32,
    },
    /// It went to sleep.
    Slept {
        /// The kernel's letter: `S` interruptible, `D` uninterruptible (mostly
        /// a disk), `T` stopped, `t` traced, `I` idle, `P` parked.
        kind: char,
        /// Number of the system call it sleeps in, if in one.
        call: Option<u32>,
    },
}

/// One system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// Entry, ns of the trace clock.
    pub from: u64,
    /// Return, or the end of the recording; ns of the trace clock.
    pub until: u64,
    /// Its number; [`syscall_name`] names it.
    pub number: u32,
    /// What it returned; `None` if it had not by the end of the recording.
    pub result: Option<i64>,
}

/// A stretch that the program named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signpost {
    /// Begin, ns of the trace clock.
    pub from: u64,
    /// End, or the end of the recording; ns of the trace clock.
    pub until: u64,
    /// The name given.
    pub name: String,
    /// Whether its end was reached.
    pub closed: bool,
}

impl Timeline {
    /// The signposts of all threads, with the thread that placed them.
    pub fn signposts(&self) -> impl Iterator<Item = (&Thread, &Signpost)> {
        self.threads.iter().flat_map(|thread| thread.signposts.iter().map(move |signpost| (thread, signpost)))
    }
}

impl Thread {
    /// Whether it is the first thread of its process.
    pub fn is_main(&self) -> bool {
        self.tid == self.process
    }

    /// First instant it was seen, ns of the trace clock.
    pub fn from(&self) -> u64 {
        self.intervals.first().map_or(0, |interval| interval.from)
    }

    /// Last instant it was there, ns of the trace clock.
    pub fn until(&self) -> u64 {
        self.intervals.last().map_or(0, |interval| interval.until)
    }
}
