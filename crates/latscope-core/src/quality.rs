//! Quality of a row: how far it can be trusted, as a level, and every reason against a better level.

use crate::ordered::unique_items;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The id of the reason that the other side of a row, which this program does not start, was not there.
pub const NO_PEER: &str = "no-peer";

/// Degree to which a number can be trusted on this machine, and the reasons against a better degree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quality {
    /// The worst of what the reasons stand for.
    pub level: QualityLevel,
    /// Reasons against a better level, in the order found; empty where the level is `ok`.
    pub reasons: Vec<Reason>,
}

/// Id of the reason of points for which a run had no time at all.
pub const NO_TIME: &str = "no-time";

/// The reason of what ended before it was measured in full: what there is, is not distorted by that.
pub const CUT_SHORT: &str = "cut-short";
/// Id of a reason: no sample was taken.
pub const NOTHING_MEASURED: &str = "nothing-measured";
/// Id of a reason: the load that was asked for did not last as long as the measurement.
pub const LOAD_ENDED: &str = "load-ended";
/// Id of a warning: the command of the load used hardly any CPU time.
pub const LOAD_IDLE: &str = "load-idle";
/// Id of a reason: the scheduling policy asked for was refused.
pub const POLICY_REFUSED: &str = "policy-refused";
/// Id of a reason: the memory could not be locked.
pub const MEMORY_NOT_LOCKED: &str = "memory-not-locked";
/// Id of a reason: CPUs could not be kept out of deep idle states.
pub const IDLE_NOT_HELD: &str = "idle-states-not-held";

/// Id of a reason: a measuring thread left the CPU that its row names.
pub const OTHER_CPU: &str = "other-cpu";

/// Id of a reason: a quota of a control group stopped the threads.
pub const THROTTLED: &str = "throttled";
/// Id of a reason: other processes used the CPUs of the measuring threads.
pub const WAITED_FOR_A_CPU: &str = "waited-for-a-cpu";
/// Id of a reason: other CPUs used the cache into which the data fit.
pub const SHARED_CACHE: &str = "shared-cache";
/// Id of a reason and of a warning: a measuring thread was due and had no CPU for a second or more.
pub const NOT_RUN: &str = "not-run";
/// Id of a reason: the run was stopped by a signal, or frozen, and went on.
pub const HALTED: &str = "halted";
/// Id of a warning: real-time threads used all the time that the kernel grants them.
pub const REAL_TIME_THROTTLED: &str = "real-time-throttled";
/// Id of a reason: no sample was taken in which nothing else ran.
pub const EVERY_SAMPLE_DISTURBED: &str = "every-sample-disturbed";

/// Id of a reason: in some rounds no sample was taken in which nothing else ran.
pub const SAMPLES_DISTURBED: &str = "samples-disturbed";

/// Id of a reason that lowers nothing: another program measured it.
pub const IMPORTED: &str = "imported";

/// The id of the reason that no reply was valid; its text says what came.
pub const NO_VALID_REPLY: &str = "no-valid-reply";

/// Degree to which a number can be trusted, from good to bad.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QualityLevel {
    /// Measured as it should be.
    #[default]
    Ok,
    /// Measured as it should be, but the rounds of the run disagree.
    Unstable,
    /// Measured under conditions that distort it.
    Degraded,
    /// Could not be measured.
    Unsupported,
}

impl QualityLevel {
    /// Name of the level in results.
    pub fn level_name(self) -> &'static str {
        match self {
            QualityLevel::Ok => "ok",
            QualityLevel::Unstable => "unstable",
            QualityLevel::Degraded => "degraded",
            QualityLevel::Unsupported => "unsupported",
        }
    }

    /// Returns true if there is a figure that is not to be trusted in full.
    pub fn is_doubtful(self) -> bool {
        matches!(self, QualityLevel::Unstable | QualityLevel::Degraded)
    }
}

/// Reason against trusting a number in full.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable name: `emulated`, `rounds-in-two-groups`, `waited-for-a-cpu`, …
    pub id: String,
    /// Level of a number that has no other reason against it.
    pub level: QualityLevel,
    /// Description of what happened, in words; empty where the id suffices.
    pub text: String,
    /// Remedy for the reason, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The numbers in the text, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
}

impl Reason {
    /// Creates a reason without numbers. An empty `remedy` means that there is no remedy.
    ///
    /// # Panics
    /// If `text` is empty, in builds with debug assertions: each view shows it as the cause.
    pub fn new(level: QualityLevel, id: &str, text: impl Into<String>, remedy: impl Into<String>) -> Reason {
        let text = text.into();
        debug_assert!(!text.is_empty(), "the reason {id} has no text");
        let remedy = Some(remedy.into()).filter(|remedy| !remedy.is_empty());
        Reason { id: id.to_owned(), level, text, remedy, values: BTreeMap::new() }
    }

    /// Returns the reason with the number `value` of its text.
    pub fn with_number(mut self, name: &str, value: f64) -> Reason {
        self.values.insert(name.to_owned(), value);
        self
    }
}

impl Quality {
    /// Adds a reason beside those already known; the level is the worst of all.
    pub fn add_reason(&mut self, reason: Reason) {
        self.level = self.level.max(reason.level);
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Adds a reason as [`add_reason`](Quality::add_reason) does; its number of disturbed samples is added to that
    /// already known.
    pub fn accumulate_reason(&mut self, reason: &Reason) {
        if !self.add_disturbed(reason) {
            self.add_reason(reason.clone());
        }
    }

    /// Adds a reason as [`add_reason`](Quality::add_reason) does, but before the other reasons: it explains them.
    pub fn lower_first(&mut self, reason: Reason) {
        self.level = self.level.max(reason.level);
        self.reasons.retain(|known| known.id != reason.id);
        self.reasons.insert(0, reason);
    }

    /// The worse of both levels, with all reasons of both. Numbers of disturbed samples add up.
    pub fn merge(&mut self, other: &Quality) {
        other.reasons.iter().for_each(|reason| self.accumulate_reason(reason));
    }

    /// Takes back the reasons that `keep` says no of.
    pub fn retain(&mut self, keep: impl FnMut(&Reason) -> bool) {
        self.reasons.retain(keep);
        self.level = self.reasons.iter().map(|reason| reason.level).max().unwrap_or_default();
    }

    /// All reasons as one text; `None` without any.
    pub fn text(&self) -> Option<String> {
        join_texts(self.reasons.iter().map(|reason| reason.text.as_str()))
    }

    /// All remedies as one text, each once; `None` without any.
    pub fn remedy(&self) -> Option<String> {
        join_texts(self.reasons.iter().filter_map(|reason| reason.remedy.as_deref()))
    }
}

/// Texts one after the other, each once.
fn join_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let all = unique_items(texts.filter(|text| !text.is_empty()));
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_level_wins_and_every_reason_stays() {
        let mut quality = Quality::default();
        quality.add_reason(Reason::new(QualityLevel::Unsupported, "a", "no such device", ""));
        let mut other = Quality::default();
        other.add_reason(Reason::new(QualityLevel::Degraded, "b", "ran as SCHED_OTHER", "run as root"));
        quality.merge(&other);
        quality.merge(&other);
        assert_eq!(quality.level, QualityLevel::Unsupported);
        assert_eq!(quality.text().unwrap(), "no such device; ran as SCHED_OTHER");
        assert_eq!(quality.remedy().unwrap(), "run as root");
        assert_eq!(Quality::default().text(), None);
        quality.retain(|reason| reason.id != "a");
        assert_eq!(quality.level, QualityLevel::Degraded);
    }

    #[test]
    fn an_unstable_row_is_better_than_a_degraded_one() {
        assert!(QualityLevel::Ok < QualityLevel::Unstable && QualityLevel::Unstable < QualityLevel::Degraded);
    }
}
