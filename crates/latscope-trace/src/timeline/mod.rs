//! Activity of each thread, moment by moment, read from the kernel's scheduler and system call events.
//!
//! [`TraceRecording`] holds the content of a trace instance at the end of a measurement. [`Timeline::from_recording`]
//! derives the states of each followed thread, its system calls and its signposts. [`values`] and [`finding`] sum them
//! up, and [`ftrace_text`] and [`chrome_json`] write files that Perfetto opens.
//!
//! A thread is **running** while a CPU executes it. It is **runnable** from its wake-up, its creation or its
//! `sched_yield` until a CPU takes it. It is **preempted** from the loss of its CPU while it could go on until
//! it gets a CPU back. It is **blocked** while it waits for something other than a CPU. The events are those of
//! the kernel's `events/sched` and `events/raw_syscalls` (Documentation/trace/events.rst).

mod build;
mod export;
mod ftrace;
mod shares;
mod syscalls;

pub use export::{Export, TimelineFileFormat, chrome_json, ftrace_text};
pub(crate) use export::{FTRACE_HEAD, ftrace_row};
pub use ftrace::with_nanoseconds;
pub use shares::{finding, values};
pub use syscalls::syscall_name;

use serde::Serialize;
use std::collections::BTreeMap;

/// Recording of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceRecording {
    /// The `trace` file: a line for each event, in order of time.
    pub text: String,
    /// Ids of the threads followed from the start. Threads and processes that
    /// they create are followed too.
    pub followed: Vec<u32>,
    /// Events that did not fit into the buffers.
    pub lost: u64,
    /// First instant from which on no events are missing, if some were lost: ns of the trace clock. Earlier
    /// events are left out.
    pub whole_from: Option<u64>,
    /// `uname -m` of the machine, which decides the meaning of system call numbers.
    pub architecture: String,
}

/// Activity of the threads of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// First instant, ns of the trace clock (CLOCK_MONOTONIC).
    pub from: u64,
    /// Last instant, ns of the trace clock.
    pub until: u64,
    /// The threads, in order of appearance.
    pub threads: Vec<ThreadTimeline>,
    /// Names, by id, of threads that were not followed but took or gave a CPU or a wake-up.
    pub others: BTreeMap<u32, String>,
    /// Events that were lost before `from`.
    pub lost: u64,
    /// Lines of the recording that are no events; 0 in an intact recording.
    pub damaged: u64,
    /// `uname -m` of the machine.
    pub architecture: String,
}

/// Activity of one thread. Intervals follow each other without gap or overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ThreadTimeline {
    /// Id of the thread.
    pub tid: u32,
    /// Id of the thread's process; 0 if the trace does not have it.
    pub process: u32,
    /// Last name of the thread.
    pub name: String,
    /// States of the thread, in order.
    pub intervals: Vec<ThreadStateInterval>,
    /// System calls of the thread, in order of their end. The writes that place signposts are left out.
    pub calls: Vec<SyscallSpan>,
    /// Signposts of the thread, in order of their end.
    pub signposts: Vec<Signpost>,
    /// True if the thread ended within the recording.
    pub ended: bool,
}

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimelineThreadState {
    /// A CPU executes the thread.
    Running,
    /// The thread could run and waits for a CPU: after a wake-up, its creation, or its own `sched_yield`.
    Runnable,
    /// The thread could run and waits for a CPU that was taken from it.
    Preempted,
    /// The thread waits for something other than a CPU.
    Blocked,
}

impl TimelineThreadState {
    /// All states, in the order of the columns.
    pub const ALL: [TimelineThreadState; 4] = [
        TimelineThreadState::Running,
        TimelineThreadState::Runnable,
        TimelineThreadState::Preempted,
        TimelineThreadState::Blocked,
    ];

    /// Returns the word for the state.
    pub fn name(self) -> &'static str {
        match self {
            TimelineThreadState::Running => "running",
            TimelineThreadState::Runnable => "runnable",
            TimelineThreadState::Preempted => "preempted",
            TimelineThreadState::Blocked => "blocked",
        }
    }
}

/// Stretch of time in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadStateInterval {
    /// Begin, ns of the trace clock.
    pub from: u64,
    /// End, ns of the trace clock.
    pub until: u64,
    /// State of the thread.
    pub state: TimelineThreadState,
    /// Event that began the interval.
    pub why: Why,
    /// CPU on which the thread runs, or last ran.
    pub cpu: u32,
}

/// Event that began an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// A CPU began to execute the thread.
    Scheduled,
    /// Another thread (0: an interrupt on an idle CPU) woke the thread.
    Woken {
        /// Thread id of the waker.
        by: u32,
    },
    /// The thread was created.
    Created {
        /// Thread id of the creator.
        by: u32,
    },
    /// The thread called `sched_yield`.
    Yielded,
    /// Another thread got the thread's CPU.
    Preempted {
        /// Thread id of the thread that got the CPU.
        by: u32,
    },
    /// The thread went to sleep.
    Slept {
        /// The kernel's letter: `S` interruptible, `D` uninterruptible (mostly
        /// a disk), `T` stopped, `t` traced, `I` idle, `P` parked.
        kind: char,
        /// Number of the system call that the thread sleeps in, if any.
        call: Option<u32>,
    },
}

/// System call of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SyscallSpan {
    /// Entry, ns of the trace clock.
    pub from: u64,
    /// Return, or the end of the recording; ns of the trace clock.
    pub until: u64,
    /// Number of the call; [`syscall_name`] names it.
    pub number: u32,
    /// Result of the call; `None` if it had not returned by the end of the recording.
    pub result: Option<i64>,
}

/// Stretch of time that the program named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signpost {
    /// Begin, ns of the trace clock.
    pub from: u64,
    /// End, or the end of the recording; ns of the trace clock.
    pub until: u64,
    /// Name that the program gave.
    pub name: String,
    /// True if the program reached the end of the signpost.
    pub closed: bool,
}

impl Timeline {
    /// The signposts of all threads, with the thread that placed them.
    pub fn signposts(&self) -> impl Iterator<Item = (&ThreadTimeline, &Signpost)> {
        self.threads.iter().flat_map(|thread| thread.signposts.iter().map(move |signpost| (thread, signpost)))
    }
}

impl ThreadTimeline {
    /// Returns true if the thread is the first of its process.
    pub fn is_main(&self) -> bool {
        self.tid == self.process
    }

    /// Returns the first instant at which the thread was seen, ns of the trace clock.
    pub fn from(&self) -> u64 {
        self.intervals.first().map_or(0, |interval| interval.from)
    }

    /// Returns the last instant at which the thread existed, ns of the trace clock.
    pub fn until(&self) -> u64 {
        self.intervals.last().map_or(0, |interval| interval.until)
    }
}
