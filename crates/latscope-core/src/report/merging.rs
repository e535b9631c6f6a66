//! Runs of which a merged result is made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Origin of a result that several runs were merged into. Each entry of `rounds` of its measurements is a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    /// The runs, in order of time.
    pub runs: Vec<MergedRun>,
    /// Facts in which the runs differ, in the order of their names.
    pub differs: Vec<Differing>,
    /// Requested length of a batch of each measurement, ns; `None` for single events.
    pub batch_ns: Vec<Option<u64>>,
}

/// A run that was merged into others.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MergedRun {
    /// RFC 3339 time of the start; empty where it is not known.
    pub started: String,
    /// Random name of the run; empty in imported results.
    pub run_id: String,
    /// RFC 3339 time of the end; `None` if the run was interrupted.
    pub finished: Option<String>,
    /// Facts on the machine, the program and the conditions, by name.
    pub facts: BTreeMap<String, String>,
}

/// Name of the fact about the CPU time that other processes used.
pub const OTHERS: &str = "other processes used";

/// Facts that differ between runs of one thing, by the beginnings of their names: the CPU time of other processes,
/// which rows state themselves, the length of a run, and its seed.
const OF_THE_RUN: [&str; 5] = [OTHERS, "rounds", "ended", "setting stop.", "setting seed"];

impl Merged {
    /// Returns a sentence about the facts that make the runs no runs of one thing, such as another kernel; `None`
    /// without such a fact.
    pub fn unlike(&self) -> Option<String> {
        let is_of_run = |fact: &&Differing| OF_THE_RUN.iter().any(|name| fact.what.starts_with(name));
        let facts: Vec<&str> =
            self.differs.iter().filter(|fact| !is_of_run(fact)).map(|fact| fact.what.as_str()).collect();
        (!facts.is_empty()).then(|| format!("the merged runs differ in {}", facts.join(", ")))
    }
}

/// A fact in which merged runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Differing {
    /// Name of the fact: `host`, `kernel`, `label board`.
    pub what: String,
    /// Number of runs by value.
    pub values: BTreeMap<String, u32>,
}
