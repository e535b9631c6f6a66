//! Findings of a report with their evidence, and verdicts on criteria.

use crate::plan::Params;
use crate::rounds::Prediction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A conclusion over several points, in plain words and as data, with what it
/// rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable name: `cache-levels`, `effective-cache`, …
    pub id: String,
    /// Sentence that states the finding.
    pub text: String,
    /// The numbers in it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// Certainty of the finding: claimed or doubtful.
    pub certainty: Certainty,
    /// Reason for doubt, in words; `None` for a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// The figures that it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Number of rounds that show the finding, of those examined; `None` where rounds were not examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Agreeing>,
}

impl Finding {
    /// Returns the sentence. For a doubtful finding it includes the doubt and its reason.
    pub fn in_words(&self) -> String {
        self.doubt_in_words().map_or_else(|| self.text.clone(), |doubt| format!("{} {doubt}", self.text))
    }

    /// `(doubtful: the rounds do not agree)`; `None` of a claim.
    pub fn doubt_in_words(&self) -> Option<String> {
        let why = self.doubt.as_ref().map_or(String::new(), |why| format!(": {why}"));
        (self.certainty == Certainty::Doubt).then(|| format!("(doubtful{why})"))
    }
}

/// Certainty of a finding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The figures support it: the next run is expected to say the same.
    #[default]
    Claim,
    /// The finding was seen, but the figures do not support more: the next run may differ.
    Doubt,
}

/// Figure that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Id of the probe.
    pub probe: String,
    /// Parameters of the point.
    pub params: Params,
    /// Name of the figure: `p50`, `p99`, or the name of a value.
    pub figure: String,
    /// The figure: of a time in ns, else in the unit of the value.
    pub value: f64,
    /// Interval in which the figure of the next run is expected; `None` with fewer than two rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Prediction>,
    /// Rounds that it was measured in.
    pub rounds: u64,
}

/// Number of rounds that agree, of those examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agreeing {
    /// Rounds that show it.
    pub agree: u64,
    /// Number of rounds examined.
    pub of: u64,
}

/// Verdict on a measurement: its result against all criteria.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The worst of the checks.
    pub status: VerdictStatus,
    /// Results of the checks, by criterion.
    pub checks: Vec<CriterionCheck>,
}

/// Criterion and the result of checking it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionCheck {
    /// Quantity that was checked: `max`, `p99_99`, `missed`, `threshold`, or of calls `sync`, `inherits-fifo`,
    /// `inherits-nice`.
    pub metric: String,
    /// The most it may be: ns, or a count; of `sync` and `inherits-…` the least, %.
    pub limit: f64,
    /// Value of the quantity; `None` if there are too few samples.
    pub value: Option<f64>,
    /// Events above the limit, of those in `of`: as many as there may be, where the histogram's bucket around the limit
    /// leaves it open. `None` of what is no duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<u64>,
    /// Number of events examined, with the activations that were missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// Result of the check.
    pub status: VerdictStatus,
    /// Reason for the result, in words, with its certainty.
    pub text: String,
}

/// Result of judging a criterion, from good to bad.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictStatus {
    /// The measurement meets the criterion.
    Pass,
    /// The criterion cannot be judged: there are too few samples, or the conditions of the measurement distort it.
    #[default]
    Inconclusive,
    /// The criterion does not hold.
    Exceeded,
}
