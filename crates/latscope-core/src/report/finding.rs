//! What a report says beyond its numbers: findings with their evidence, verdicts on criteria.

use crate::plan::Params;
use crate::rounds::Prediction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A conclusion over several points, in plain words and as data, with what it
/// rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name: `cache-levels`, `effective-cache`, …
    pub id: String,
    /// The sentence.
    pub text: String,
    /// The numbers in it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// Whether it is claimed or doubtful. Older files do not tell: all that they
    /// have was worded as a claim.
    #[serde(default)]
    pub certainty: Certainty,
    /// Why it is doubtful, in words; older files do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// The figures that it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Of how many rounds how many show it, where that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Agreeing>,
}

impl Finding {
    /// The sentence; one that is doubtful says so, and why.
    pub fn in_words(&self) -> String {
        self.doubt_in_words().map_or_else(|| self.text.clone(), |doubt| format!("{} {doubt}", self.text))
    }

    /// `(doubtful: the rounds do not agree)`; `None` of a claim.
    pub fn doubt_in_words(&self) -> Option<String> {
        let why = self.doubt.as_ref().map_or(String::new(), |why| format!(": {why}"));
        (self.certainty == Certainty::Doubt).then(|| format!("(doubtful{why})"))
    }
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The figures support it: the next run is expected to say the same.
    #[default]
    Claim,
    /// It was seen, but the figures do not support more: the next run may differ.
    Doubt,
}

/// One figure that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Probe id.
    pub probe: String,
    /// Parameters of the point.
    pub params: Params,
    /// Which figure of it: `p50`, `p99`, or the name of a value.
    pub figure: String,
    /// The figure: of a time in ns, else in the unit of the value.
    pub value: f64,
    /// Where the figure of the next run is expected; `None` with fewer than two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Prediction>,
    /// Rounds that it was measured in.
    pub rounds: u64,
}

/// Of how many rounds how many show the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreeing {
    /// Rounds that show it.
    pub agree: u64,
    /// Rounds looked at.
    pub of: u64,
}

/// Whether what was asked of a measurement holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The worst of the checks.
    pub status: Status,
    /// One for each criterion.
    pub checks: Vec<Check>,
}

/// One criterion and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at: `max`, `p99_99`, `missed`, `threshold`, or of calls `sync`, `inherits-fifo`,
    /// `inherits-nice`.
    pub metric: String,
    /// The most it may be: ns, or a count; of `sync` and `inherits-…` the least, %.
    pub limit: f64,
    /// What it was; `None` where too few samples tell.
    pub value: Option<f64>,
    /// Events above the limit, of those in `of`: as many as there may be, where the histogram's bucket around the limit
    /// leaves it open. `None` of what is no duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<u64>,
    /// Events looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// Whether it holds.
    pub status: Status,
    /// Why, in words: how sure that is.
    #[serde(default)]
    pub text: String,
}

/// How a criterion was judged, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It holds.
    Pass,
    /// It cannot be judged: too few samples, or measured under conditions
    /// that distort it.
    Inconclusive,
    /// It does not hold.
    Exceeded,
}
