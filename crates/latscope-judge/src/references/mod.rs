//! Published figures of other machines, each with its definition, and this machine's figures in the same definition.
//!
//! The figures are files at the top of the repository, one a source. A figure says beside which row it may stand, and
//! by which factor that row is the same thing; where there is none, how it differs.

mod contribution;
mod file;
mod standing;

pub use contribution::contribution;
pub use file::{ReferenceError, parse_references};
pub use standing::{Likeness, ReferenceComparison, ReferenceRowGroup, standings};

use latscope_core::plan::{ParamValue, Params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Value of `over` for the median over the pairs of all CPUs.
pub const ALL_PAIRS: &str = "median over all pairs of CPUs";

/// Value of `over` for the median over the pairs of CPUs that share a core.
pub const PAIRS_OF_A_CORE: &str = "median over the pairs of CPUs of one core";

/// Value of `load` of a figure that was measured without a load.
pub const NO_LOAD: &str = "none";

/// Published figure of one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// Name of the machine.
    pub machine: String,
    /// Heading of the column that the machine has in every table; `None` for machines without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Name of the figure: `core to core`.
    pub figure: String,
    /// Duration as published, ns.
    pub ns: f64,
    /// Definition of the duration.
    #[serde(flatten)]
    pub definition: Definition,
    /// Title of the source.
    pub title: String,
    /// Place of the source: a repository and a path in it, or a page.
    pub at: String,
}

/// Definition of a published figure, and the row beside which it may stand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Definition {
    /// Part of a round trip that was published.
    pub times: Times,
    /// Statistic of the samples.
    pub statistic: ReferenceStatistic,
    /// Pairs, CPUs or points over which it was taken; empty for a single one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub over: String,
    /// Load beside the measurement: `none`, `not stated`, or its description.
    pub load: String,
    /// Tool that measured it.
    pub tool: String,
    /// Version of the tool.
    pub version: String,
    /// Date of the measurement or of the publication.
    pub date: String,
    /// Row beside which the figure may stand.
    pub row: RowKey,
    /// Factor that makes the figure the same thing as the row: 2 for half a round trip.
    pub factor: f64,
    /// Number of bytes to which the figure belongs, where the row touches more; `None` for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Difference from the row that no factor makes up for; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub differs: String,
    /// Remark on the measurement; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Part of a round trip that was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Times {
    /// Time there and back.
    #[serde(rename = "round trip")]
    RoundTrip,
    /// A round trip, divided by two.
    #[serde(rename = "half the round trip")]
    HalfRoundTrip,
    /// From one endpoint to the other, by two stamps.
    #[serde(rename = "one way")]
    OneWay,
    /// An operation of one endpoint.
    #[serde(rename = "operation")]
    Operation,
}

/// Statistic of the samples of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferenceStatistic {
    /// Mean of the published samples.
    #[serde(rename = "mean")]
    Mean,
    /// Median of the published samples.
    #[serde(rename = "median")]
    Median,
    /// Smallest of the published samples.
    #[serde(rename = "minimum")]
    Minimum,
    /// Largest of the published samples.
    #[serde(rename = "maximum")]
    Maximum,
    /// 99th percentile of the published samples.
    #[serde(rename = "p99")]
    P99,
    /// A typical value of a kind that the source does not state.
    #[serde(rename = "not stated")]
    NotStated,
}

/// Rows of a result beside which a figure may stand: a level of memory, or points of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowKey {
    /// Name of the level: `L1`, `L2`, `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Id of the probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Conditions on parameters of the point.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, ParamCondition>,
}

/// Condition on the value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParamCondition {
    /// A number within limits.
    Within(Limits),
    /// Equal to this value.
    Is(ParamValue),
}

/// Limits of a number, both included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Smallest number; `None` without such a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u64>,
    /// Largest number; `None` without such a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
}

/// Files of references that are part of latscope: name and text.
const FILES: [(&str, &str); 7] = [
    ("core-to-core-latency.toml", include_str!("../../../../references/core-to-core-latency.toml")),
    ("iceoryx2.toml", include_str!("../../../../references/iceoryx2.toml")),
    ("iphones.toml", include_str!("../../../../references/iphones.toml")),
    ("latency-numbers-2012.toml", include_str!("../../../../references/latency-numbers-2012.toml")),
    ("perfspect-memory.toml", include_str!("../../../../references/perfspect-memory.toml")),
    ("rpmsg.toml", include_str!("../../../../references/rpmsg.toml")),
    ("ti-boards.toml", include_str!("../../../../references/ti-boards.toml")),
];

static BUILT_IN: LazyLock<Vec<Reference>> = LazyLock::new(|| {
    let read = |(name, text): (&str, &str)| parse_references(name, text).expect("a test reads every file");
    FILES.into_iter().flat_map(read).collect()
});

/// Returns the figures that are part of latscope.
pub fn built_in() -> &'static [Reference] {
    &BUILT_IN
}

impl Times {
    /// Returns the part in words.
    pub fn display_name(self) -> &'static str {
        match self {
            Times::RoundTrip => "round trip",
            Times::HalfRoundTrip => "half the round trip",
            Times::OneWay => "one way",
            Times::Operation => "operation",
        }
    }
}

impl ReferenceStatistic {
    /// Returns the statistic in words.
    pub fn statistic_name(self) -> &'static str {
        match self {
            ReferenceStatistic::Mean => "mean",
            ReferenceStatistic::Median => "median",
            ReferenceStatistic::Minimum => "minimum",
            ReferenceStatistic::Maximum => "maximum",
            ReferenceStatistic::P99 => "p99",
            ReferenceStatistic::NotStated => "statistic not stated",
        }
    }
}

impl ParamCondition {
    fn is_met_by(&self, value: &ParamValue) -> bool {
        match (self, value) {
            (ParamCondition::Is(wanted), value) => wanted == value,
            (ParamCondition::Within(limits), ParamValue::Number(number)) => {
                limits.at_least.is_none_or(|least| *number >= least)
                    && limits.at_most.is_none_or(|most| *number <= most)
            }
            (ParamCondition::Within(_), ParamValue::Text(_)) => false,
        }
    }
}

impl RowKey {
    /// Returns true if a level of this name (in any case, `dram` for memory) is meant.
    pub fn is_level(&self, name: &str) -> bool {
        let name = if name.eq_ignore_ascii_case("dram") { "memory" } else { name };
        self.level.as_ref().is_some_and(|level| level.eq_ignore_ascii_case(name))
    }

    /// Returns true if a point of `probe` with `params` is meant.
    pub fn is_point(&self, probe: &str, params: &Params) -> bool {
        let holds = |(name, wanted): (&String, &ParamCondition)| {
            params.get(name).is_some_and(|v| wanted.is_met_by(v))
        };
        self.probe.as_deref() == Some(probe) && self.params.iter().all(holds)
    }
}

impl Reference {
    /// Returns the definition in words: `half the round trip, mean, median over all pairs of CPUs`.
    pub fn format_definition(&self) -> String {
        let definition = &self.definition;
        let loaded = ![NO_LOAD, "not stated"].contains(&definition.load.as_str());
        let load = if loaded { format!("load: {}", definition.load) } else { String::new() };
        let parts =
            [definition.times.display_name(), definition.statistic.statistic_name(), &definition.over, &load];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the tool with its version, if that is known.
    pub fn tool(&self) -> String {
        let Definition { tool, version, .. } = &self.definition;
        if ["not stated", "none"].contains(&version.as_str()) {
            tool.clone()
        } else {
            format!("{tool} {version}")
        }
    }

    /// Returns true if machine, figure and source together contain all these words, in any case.
    pub fn matches_words(&self, words: &[String]) -> bool {
        let text = [&self.machine, &self.figure, &self.title, &self.definition.tool];
        let text = text.map(|part| part.to_lowercase()).join(" ");
        words.iter().all(|word| text.contains(&word.to_lowercase()))
    }

    /// Returns true if the words of `name` are all in the name of the machine, in any case.
    pub fn is_of(&self, name: &str) -> bool {
        let machine = self.machine.to_lowercase();
        let own: Vec<&str> = machine.split_whitespace().collect();
        let name = name.to_lowercase();
        let mut words = name.split_whitespace().peekable();
        words.peek().is_some() && words.all(|word| own.contains(&word))
    }
}

#[cfg(test)]
mod tests;
