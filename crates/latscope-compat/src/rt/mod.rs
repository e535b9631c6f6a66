//! The programs of rt-tests: `cyclictest`, `oslat`, `cyclicdeadline`; those for inter-process communication;
//! `hackbench`. They take the arguments of the originals, measure with latscope's probes, and print the text of the
//! originals.
//!
//! Reading the arguments, planning and rendering are pure functions; each program's `run` joins them. The differences
//! from the originals are in `docs/cyclictest.md` and `docs/rt-ipc.md`.

pub mod cyclicdeadline;
pub mod cyclictest;
pub mod hackbench;
pub mod json;
pub mod options;
pub mod oslat;
pub mod paced;
pub mod pairs;
pub mod row;

pub(crate) mod console;
mod cpuset;
pub(crate) mod environment;

use anyhow::Result;
use std::ffi::OsString;

/// Program that latscope replaces completely, with all of its options.
pub struct Tool {
    /// Name of the program.
    pub name: &'static str,
    /// Summary of what the program measures, in one line.
    pub summary: &'static str,
    /// Carries out a call with these arguments, and returns the exit code.
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

/// All programs of rt-tests, by name.
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
    /// Release 2.4, which prints more.
    #[default]
    V2_4,
    /// Release 2.10, which prints no `# Total:` and no rows of zeros.
    V2_10,
}

impl Release {
    /// Returns the release with this number.
    pub fn named(number: &str) -> Option<Release> {
        match number {
            "2.4" => Some(Release::V2_4),
            "2.10" => Some(Release::V2_10),
            _ => None,
        }
    }

    /// Number of the release as its programs print it.
    pub fn printed(self) -> &'static str {
        match self {
            Release::V2_4 => "2.40",
            Release::V2_10 => "2.10",
        }
    }
}

/// Reason for not carrying out a call, with the answer of the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Arguments that the program does not take. The program prints this line and the usage.
    #[error("{0}")]
    Usage(String),
    /// Request for the help text.
    #[error("help")]
    Help,
    /// Arguments that the program takes, but not on this machine or not together.
    #[error("{0}")]
    Fatal(String),
}
