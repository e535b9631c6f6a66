//! What a parameter of a probe is, and what is asked of them all.

use latscope_core::plan::{ParamValue, Stop};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A parameter of a probe.
#[derive(Clone, Copy)]
pub struct Param {
    /// Its name in results and, as `--name`, on the command line.
    pub name: &'static str,
    /// What it means, a sentence.
    pub help: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Whether points that differ only in it make up a curve or a matrix.
    pub axis: bool,
}

impl Param {
    /// A parameter that is stated in the result, not asked for.
    pub const fn stated(name: &'static str, help: &'static str, axis: bool) -> Param {
        Param { name, help, kind: Kind::Stated, axis }
    }
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes: `64`, `4KiB`, `2MiB`.
    Size,
    /// A number.
    Number,
    /// A duration, in ns: `1ms`.
    Time,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Stated in the result, not asked for.
    Stated,
}

/// How much time a run may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// The whole survey in about 10 s.
    Quick,
    /// The whole survey within 60 s.
    #[default]
    Normal,
    /// As long as it takes: more points, more samples.
    Full,
}

/// A directory in which file probes work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Its absolute path.
    pub path: PathBuf,
    /// The type of its file system: `ext4`, `tmpfs`.
    pub filesystem: String,
    /// What the file system is mounted from: `/dev/vda`.
    pub device: String,
    /// Free bytes that this user may fill.
    pub free: u64,
}

/// What was asked, for the planning of probes.
#[derive(Debug, Clone, Default)]
pub struct PlanInput {
    /// How much time there is.
    pub profile: Profile,
    /// Part of a survey, whose time is limited; else a family of its own.
    pub survey: bool,
    /// Parameter values given by the user.
    pub values: BTreeMap<String, Vec<ParamValue>>,
    /// Where file probes work.
    pub directories: Vec<Directory>,
}

/// What a batch lasts in every profile, ns, so that their results can be compared: less than a
/// scheduler slice, and long beside a stamp.
const BATCH_NS: u64 = 250_000;

impl Profile {
    /// When a point has been measured enough.
    pub fn stop(self) -> Stop {
        const MS: u64 = 1_000_000;
        match self {
            Profile::Quick => {
                Stop { samples: 25, events: 500, batch_ns: BATCH_NS, budget_ns: 25 * MS, limit_ns: 80 * MS }
            }
            Profile::Normal => Stop {
                samples: 100,
                events: 2_000,
                batch_ns: BATCH_NS,
                budget_ns: 100 * MS,
                limit_ns: 400 * MS,
            },
            Profile::Full => Stop {
                samples: 400,
                events: 20_000,
                batch_ns: BATCH_NS,
                budget_ns: 500 * MS,
                limit_ns: 2_000 * MS,
            },
        }
    }
}
