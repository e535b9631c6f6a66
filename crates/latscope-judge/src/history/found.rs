//! What a history says.

use super::archive::Entry;
use crate::compare::Contrast;
use crate::compare::environment::Difference;
use latscope_core::units::counted;
use serde::Serialize;

/// Name of the form in which histories are written.
pub const SCHEMA: &str = "latscope-history/1";

/// A run with the name of its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunName<'a> {
    pub name: &'a str,
    pub entry: &'a Entry,
}

/// What machines did over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// What changes by less is not reported, as a share.
    pub margin: f64,
    /// The same of how often the tail is reached.
    pub tail_margin: f64,
    /// What was not read, and why.
    pub remarks: Vec<String>,
    /// The machines, by name.
    pub machines: Vec<Machine>,
}

/// What one machine did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Its id, or where it has none `host NAME`.
    pub id: String,
    /// Names of its host, each once.
    pub hosts: Vec<String>,
    /// The programs that measured, with version and commit, each once.
    pub tools: Vec<String>,
    /// Its runs in order of time.
    pub runs: Vec<Shown>,
    /// What changed, in order of time.
    pub changes: Vec<Change>,
    /// Figures that move slowly: no place is where they changed.
    pub drifts: Vec<Drift>,
    /// Runs with figures far from those of the runs around, most figures first.
    pub odd: Vec<Odd>,
    /// The figures of each point over the runs.
    pub points: Vec<Point>,
    /// Figures of points with runs enough to be judged.
    pub judged: usize,
    /// Figures of points with too few trusted runs.
    pub too_few: usize,
    /// Stretches of figures that were tested, all as one family.
    pub tests: usize,
    /// Changes that are smaller than the margin, or whose size is not sure to be in one direction: not reported.
    pub small: usize,
    /// Figures that are degraded, unstable or cut short: shown, and not judged.
    pub marked: usize,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Its file.
    pub name: String,
    /// Random name of the run; empty in older results.
    pub run_id: String,
    /// RFC 3339 time of its start.
    pub started: String,
    /// Whether it was measured to its end.
    pub complete: bool,
}

/// A place in time at which figures changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Its stable name: from the first run after it.
    pub id: String,
    /// The place of the first run after it among those of the machine.
    pub run: usize,
    /// The last run before.
    pub last: Shown,
    /// The first run after.
    pub first: Shown,
    /// The figures that changed, by size.
    pub moved: Vec<Moved>,
    /// What else differs between the runs before and after.
    pub with: Vec<Difference>,
    /// Why it is inconclusive, if others used far more of the CPUs before or after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlike: Option<String>,
}

/// Which figure of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// The median over the rounds, ns.
    P50,
    /// The 99th percentile of single events, ns.
    P99,
    /// How often single events take longer than about one of a hundred usually does, a share.
    Tail,
}

/// A figure that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// Stable name of the point.
    pub id: String,
    /// Probe id.
    pub probe: String,
    /// What a reader calls it.
    pub title: String,
    /// Which figure.
    pub figure: Figure,
    /// Beyond what samples are counted, ns; of the tail only.
    pub beyond: Option<f64>,
    /// The place of its own first run after among those of the machine: it is one run off that of
    /// the change at most, or up to four where its place is not surer than that.
    pub run: usize,
    /// Before, after, their ratio and its interval; over the nearest runs of each side up to the next change.
    pub size: Contrast,
}

/// A figure that moves slowly.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// Stable name of the point.
    pub id: String,
    /// What a reader calls it.
    pub title: String,
    /// Which figure.
    pub figure: Figure,
    /// The places of its first and last run.
    pub runs: [usize; 2],
    /// The median of the first and of the last quarter of its runs: ns, or a share.
    pub from: f64,
    /// See `from`.
    pub to: f64,
}

/// A run with odd figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Odd {
    /// Its place among those of the machine.
    pub run: usize,
    /// Points with a figure far from those of other runs.
    pub points: Vec<String>,
    /// Points that were judged in this run.
    pub of: usize,
}

/// The figures of a point over the runs of its machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Stable name.
    pub id: String,
    /// Probe id.
    pub probe: String,
    /// What a reader calls it.
    pub title: String,
    /// Revision of the probe; a point of another revision is another one.
    pub revision: u32,
    /// The places of the runs that have it.
    pub runs: Vec<usize>,
    /// The median of each, ns.
    pub p50: Vec<f32>,
    /// The 99th percentile of single events of each, ns; empty where no event was timed.
    pub p99: Vec<Option<f32>>,
    /// Of each, whether it counts: not if it is degraded, unstable or cut short.
    pub trusted: Vec<bool>,
    /// The places of the runs from which the median is another one.
    pub changes: Vec<usize>,
}

impl History {
    /// Keeps the changes after the one with this name, or after the run with this name. A change that is one run
    /// later counts as the same: more runs may move its place by so much. The name may go on as the `run_id` does.
    /// A remark says how many changes are left out. Returns whether there is such a run.
    pub fn since(&mut self, id: &str) -> bool {
        let (mut known, mut hidden) = (false, 0);
        for machine in &mut self.machines {
            let is_named = |run: &Shown| {
                name_of(run, &machine.id) == id || id.len() > NAME && run.run_id.starts_with(id)
            };
            let Some(place) = machine.runs.iter().position(is_named) else { continue };
            known = true;
            hidden += machine.changes.len() as u64;
            machine.changes.retain(|change| change.run > place + 1);
            hidden -= machine.changes.len() as u64;
        }
        if hidden > 0 {
            self.remarks.push(format!("{} up to {id} left out (--since)", counted(hidden, "change")));
        }
        known
    }

    /// The names of all changes.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.machines.iter().flat_map(|machine| machine.changes.iter().map(|change| &*change.id))
    }
}

/// Characters of a name of a change.
const NAME: usize = 12;

/// The name that a change has whose first run after is this one: the begin of its random name, or what stands for it.
pub(super) fn name_of(run: &Shown, machine: &str) -> String {
    if run.run_id.is_empty() {
        let bytes = machine.bytes().chain([0]).chain(run.started.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        return format!("{hash:016x}")[..NAME].to_owned();
    }
    run.run_id.chars().take(NAME).collect()
}
