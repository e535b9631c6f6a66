//! The programs of rt-tests: `cyclictest`, `oslat`, `cyclicdeadline`; those for
//! inter-process communication; `hackbench`. Their arguments in, our probes,
//! their text out.
//!
//! Reading the arguments, planning and rendering are pure functions; each
//! program's `run` joins them. What differs is in `docs/cyclictest.md` and
//! `docs/rt-ipc.md`.

pub mod cyclicdeadline;
pub mod cyclictest;
pub mod hackbench;
pub mod json;
pub mod options;
pub mod oslat;
pub mod pairs;
pub mod row;

pub(crate) mod console;
mod cpuset;
pub(crate) mod environment;

use anyhow::Result;
use std::ffi::OsString;

/// A program that latscope stands in for, with all of its words.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a line.
    pub summary: &'static str,
    /// Carries out a call with these arguments; returns the exit code.
    pub run: fn(&[OsString]) -> Result<u8>,
}

impl Tool {
    pub(crate) const fn new(
        name: &'static str,
        summary: &'static str,
        run: fn(&[OsString]) -> Result<u8>,
    ) -> Tool {
        Tool { name, summary, run }
    }
}

/// All of them, by name.
pub static TOOLS: &[Tool] = &[
    Tool::new("cyclicdeadline", "wake-up latency under SCHED_DEADLINE", cyclicdeadline::run),
    Tool::new("cyclictest", "wake-up latency of periodic threads", cyclictest::run),
    Tool::new("hackbench", "a load: groups that send messages to each other", hackbench::run),
    Tool::new("oslat", "time stolen from busy loops", oslat::run),
    Tool::new("pmqtest", "POSIX message queues, one way, paced", |arguments| pairs::PMQTEST.run(arguments)),
    Tool::new("ptsematest", "mutexes between threads, one way, paced", |arguments| {
        pairs::PTSEMATEST.run(arguments)
    }),
    Tool::new("signaltest", "signals in a circle of threads", |arguments| pairs::SIGNALTEST.run(arguments)),
    Tool::new("sigwaittest", "signals, one way, paced", |arguments| pairs::SIGWAITTEST.run(arguments)),
    Tool::new("svsematest", "System V semaphores, one way, paced", |arguments| {
        pairs::SVSEMATEST.run(arguments)
    }),
];

/// The release of rt-tests whose text is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Release {
    /// 2.4, the fuller text.
    #[default]
    V2_4,
    /// 2.10: no `# Total:`, no rows of zeros.
    V2_10,
}

impl Release {
    /// The release with this number.
    pub fn named(number: &str) -> Option<Release> {
        match number {
            "2.4" => Some(Release::V2_4),
            "2.10" => Some(Release::V2_10),
            _ => None,
        }
    }

    /// Its number as its programs print it.
    pub fn printed(self) -> &'static str {
        match self {
            Release::V2_4 => "2.40",
            Release::V2_10 => "2.10",
        }
    }
}

/// Why a call is not carried out, and what the program answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not the arguments it takes: this line, and the usage.
    #[error("{0}")]
    Usage(String),
    /// Help was asked for.
    #[error("help")]
    Help,
    /// Arguments that it takes, but not here or not together.
    #[error("{0}")]
    Fatal(String),
}
