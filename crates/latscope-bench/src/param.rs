//! Parameters of probes, and the requests for their values.

pub use latscope_core::catalogue::{Param, ParamValueKind};
use latscope_core::plan::{ParamValue, Stop};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Limit on the time that a run may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SurveyProfile {
    /// The whole survey in about 10 s.
    Quick,
    /// The whole survey within 60 s.
    #[default]
    Normal,
    /// No limit on the time: more points, more samples.
    Full,
}

/// A directory in which file probes work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchDirectory {
    /// Absolute path of the directory.
    pub path: PathBuf,
    /// The type of its file system: `ext4`, `tmpfs`.
    pub filesystem: String,
    /// Device that the file system is mounted from: `/dev/vda`.
    pub device: String,
    /// Free bytes that this user may fill.
    pub free: u64,
}

/// Request that probes plan their points for.
#[derive(Debug, Clone, Default)]
pub struct PlanInput {
    /// Time that the run may take.
    pub profile: SurveyProfile,
    /// Part of a survey, whose time is limited; else a family of its own.
    pub survey: bool,
    /// Parameter values given by the user.
    pub values: BTreeMap<String, Vec<ParamValue>>,
    /// Directories in which file probes work.
    pub directories: Vec<ScratchDirectory>,
}

/// Planned length of a batch in every profile, ns, so that their results can be compared: less than a scheduler slice,
/// and long beside a stamp.
const BATCH_NS: u64 = 250_000;

impl SurveyProfile {
    /// Conditions under which a point has been measured enough.
    pub fn stop_conditions(self) -> Stop {
        const MS: u64 = 1_000_000;
        let (samples, events, budget_ns, limit_ns) = match self {
            SurveyProfile::Quick => (25, 500, 25 * MS, 80 * MS),
            SurveyProfile::Normal => (100, 2_000, 100 * MS, 400 * MS),
            SurveyProfile::Full => (400, 20_000, 500 * MS, 2_000 * MS),
        };
        Stop { samples, events, batch_ns: BATCH_NS, budget_ns, limit_ns }
    }
}
