//! Content of a history.

use super::archive::ArchiveRun;
use crate::compare::Contrast;
use crate::compare::environment::EnvironmentDifference;
use latscope_core::units::count_with_noun;
use schemars::JsonSchema;
use serde::Serialize;

/// Name of the form in which histories are written.
pub const SCHEMA: &str = "latscope-history/1";

/// A run with the name of its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedArchiveRun<'a> {
    pub name: &'a str,
    pub entry: &'a ArchiveRun,
}

/// History of all machines.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// Name of the schema of the file.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Smallest reported change, as a share.
    pub margin: f64,
    /// Smallest reported change of the rate of the tail, as a share.
    pub tail_margin: f64,
    /// Parts that were not read, with the reasons.
    pub remarks: Vec<String>,
    /// The machines, by name.
    pub machines: Vec<MachineHistory>,
}

/// History of one machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MachineHistory {
    /// Id of the machine, or `host NAME` if it has no id.
    pub id: String,
    /// Names of its host, each once.
    pub hosts: Vec<String>,
    /// The programs that measured, with version and commit, each once.
    pub tools: Vec<String>,
    /// Runs of the machine in order of time.
    pub runs: Vec<HistoryRun>,
    /// Changes in order of time.
    pub changes: Vec<Change>,
    /// Figures that move slowly, so that there is no single place of change.
    pub drifts: Vec<Drift>,
    /// Runs with figures far from those of the runs around, most figures first.
    pub odd: Vec<Odd>,
    /// The figures of each point over the runs.
    pub points: Vec<PointHistory>,
    /// Figures of points with runs enough to be judged.
    pub judged: usize,
    /// Points of which a figure is judged. A point has a median and, of single events, a p99 and a tail.
    pub judged_points: usize,
    /// Figures of points with too few trusted runs.
    pub too_few: usize,
    /// Number of stretches of figures that were tested, all as one family.
    pub tests: usize,
    /// Number of changes that are not reported, because they are smaller than the margin or their direction is not
    /// sure.
    pub small: usize,
    /// These changes, in order of time.
    pub smaller: Vec<Smaller>,
    /// Number of figures that are degraded, unstable or cut short: they are shown, but not judged.
    pub marked: usize,
}

/// Identification of a run in a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryRun {
    /// Name of the file of the run.
    pub name: String,
    /// Random name of the run; empty in imported results.
    pub run_id: String,
    /// RFC 3339 time of its start.
    pub started: String,
    /// True if the run was measured to its end.
    pub complete: bool,
}

/// A place in time at which figures changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Stable name of the change, from the first run after it.
    pub id: String,
    /// The place of the first run after it among those of the machine.
    pub run: usize,
    /// The last run before.
    pub last: HistoryRun,
    /// The first run after.
    pub first: HistoryRun,
    /// The figures that changed, by size.
    pub moved: Vec<Moved>,
    /// The first and the last run that may be the first one after the change, as the figures place it.
    pub within: [usize; 2],
    /// Facts, beside the figures, that changed between these runs.
    pub with: Vec<ChangedFact>,
    /// Reason why the change is inconclusive, if other processes used far more of the CPUs before or after it,
    /// or nearly all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlike: Option<String>,
}

/// A fact that changed with figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangedFact {
    /// The fact, with its values before and after.
    #[serde(flatten)]
    pub difference: EnvironmentDifference,
    /// The place of the first run with the new value.
    pub run: usize,
}

/// Kind of a figure of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HistoryFigureKind {
    /// The median over the rounds, ns.
    P50,
    /// The 99th percentile of single events, ns.
    P99,
    /// The rate of the tail: the share of single events that take longer than about one of a hundred usually does.
    Tail,
}

/// A figure that changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Moved {
    /// Stable name of the point.
    pub id: String,
    /// Id of the probe.
    pub probe: String,
    /// Title of the point for a reader.
    pub title: String,
    /// Kind of the figure that changed.
    pub figure: HistoryFigureKind,
    /// Limit beyond which samples are counted, ns; only for the tail.
    pub beyond: Option<f64>,
    /// The place of the figure's own first run after the change among the runs of the machine. It is at most one run
    /// off that of the change, or at most four if the place is not surer than that.
    pub run: usize,
    /// Figures before and after, their ratio and its interval, over the nearest runs of each side up to the next
    /// change.
    pub size: Contrast,
}

/// A change that is not reported: it is smaller than the margin, or its direction is not sure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Smaller {
    /// Stable name of the point.
    pub id: String,
    /// Title of the point for a reader.
    pub title: String,
    /// Kind of the figure.
    pub figure: HistoryFigureKind,
    /// Place of the first run after it among those of the machine.
    pub run: usize,
    /// Ratio of the medians after and before it.
    pub ratio: f64,
}

/// A figure that moves slowly.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Drift {
    /// Stable name of the point.
    pub id: String,
    /// Title of the point for a reader.
    pub title: String,
    /// Kind of the figure that moves.
    pub figure: HistoryFigureKind,
    /// The places of its first and last run.
    pub runs: [usize; 2],
    /// The median of the first and of the last quarter of its runs: ns, or a share.
    pub from: f64,
    /// The median of the last quarter of its runs; see `from`.
    pub to: f64,
}

/// A run with odd figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Odd {
    /// Place of the run among those of the machine.
    pub run: usize,
    /// Points with a figure far from those of other runs.
    pub points: Vec<String>,
    /// Points that were judged in this run.
    pub of: usize,
}

/// The figures of a point over the runs of its machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PointHistory {
    /// Stable name of the point.
    pub id: String,
    /// Id of the probe.
    pub probe: String,
    /// Title of the point for a reader.
    pub title: String,
    /// Revision of the probe; another revision makes another point.
    pub revision: u32,
    /// Places of the runs that have the point.
    pub runs: Vec<usize>,
    /// Median in each of these runs, ns.
    pub p50: Vec<f32>,
    /// The 99th percentile of single events in each of these runs, ns; empty if no event was timed.
    pub p99: Vec<Option<f32>>,
    /// True for each run whose figures count: it is neither degraded, unstable nor cut short.
    pub trusted: Vec<bool>,
    /// The places of the runs from which on the median differs.
    pub changes: Vec<usize>,
}

impl History {
    /// Keeps the changes after the change with this name, or after the run with this name. A change that is one run
    /// later counts as the same, because more runs may move its place by that much. The name may be longer, up to the
    /// whole `run_id`. A remark states the number of changes that are left out.
    ///
    /// # Errors
    /// No run has this name, or several have: the text says so.
    pub fn since(&mut self, id: &str) -> Result<(), String> {
        let (mut known, mut hidden) = (false, 0);
        for machine in &mut self.machines {
            let is_named = |run: &HistoryRun| {
                name_of(run, &machine.id) == id || id.len() > NAME && run.run_id.starts_with(id)
            };
            let runs = machine.runs.iter().enumerate().filter(|(_, run)| is_named(run));
            let mut places: Vec<usize> = runs.map(|(place, _)| place).collect();
            if places.len() > 1 {
                // Runs whose ids are not random have a name in common: a change is meant, if it is the only one.
                places.retain(|place| machine.changes.iter().any(|change| change.run == *place));
                if places.len() != 1 {
                    return Err(format!(
                        "several runs have this id (their whole ids say more: {NAME} is too short)"
                    ));
                }
            }
            let Some(place) = places.first().copied() else { continue };
            known = true;
            hidden += machine.changes.len() as u64;
            machine.changes.retain(|change| change.run > place + 1);
            hidden -= machine.changes.len() as u64;
        }
        if hidden > 0 {
            self.remarks.push(format!("{} up to {id} left out (--since)", count_with_noun(hidden, "change")));
        }
        if known { Ok(()) } else { Err("no run has this id".to_owned()) }
    }

    /// The names of all changes.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.machines.iter().flat_map(|machine| machine.changes.iter().map(|change| &*change.id))
    }
}

/// Number of characters of the name of a change.
const NAME: usize = 12;

/// The name of a change whose first run after it is this run: the begin of the random name, or a substitute.
pub(super) fn name_of(run: &HistoryRun, machine: &str) -> String {
    if run.run_id.is_empty() {
        let bytes = machine.bytes().chain([0]).chain(run.started.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        return format!("{hash:016x}")[..NAME].to_owned();
    }
    run.run_id.chars().take(NAME).collect()
}
