//! The result of a run, and its file.
//!
//! A [`Measurement`] is one point: a probe with its parameters. A curve or a
//! matrix is the set of points that differ only in the parameters the probe
//! declares as axes; there is no other container.

mod contention;
mod disturbed;
mod finding;
mod lost;
mod measurement;
mod median;
mod merging;
mod reading;
mod records;
mod shared_cache;
mod unsteady;

pub use crate::account::*;
pub use contention::*;
pub use disturbed::disturbed_reason;
pub use finding::*;
pub use lost::{LATE, LOSSES, MESSAGES_LOST, MISMATCHES};
pub use measurement::*;
pub use merging::*;
pub use reading::{LoadError, check_texts};
pub use records::*;

use crate::json;
use crate::machine::Machine;
use crate::plan::{Plan, PlanStep};
pub use crate::value::{Better, MeasuredQuantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// The schema of result files that this version writes and reads.
pub const SCHEMA: &str = "latscope/1";

/// A whole run: what was asked, where, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Name of the schema of the file.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Program that wrote the result.
    pub tool: ToolVersion,
    /// RFC 3339 time of the start; empty where an imported result does not say, in JSON `null`.
    #[serde(deserialize_with = "json::or_default")]
    #[schemars(with = "Option<String>")]
    pub started: String,
    /// RFC 3339 time of the end; `None` while incomplete.
    pub finished: Option<String>,
    /// Request that ended the run before it was complete, if there was such a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
    /// The program that measured it, if that was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// Runs that were merged into the result; `None` for a result of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// Plan of the run.
    pub plan: Plan,
    /// Machine that the result was measured on.
    pub machine: Machine,
    /// A random name of the run, so that no result is counted twice; empty in imported results, and where the kernel
    /// had no random bits yet.
    pub run_id: String,
    /// Labels given by the user: `board=a7`, `kernel=rt`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Account of the CPU time of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Account>,
    /// Problems and facts that a reader needs to know, each with a remedy if there is one.
    pub warnings: Vec<Warning>,
    /// Conclusions over several measurements.
    pub findings: Vec<Finding>,
    /// The points, in the order measured.
    pub measurements: Vec<Measurement>,
}

/// The program that wrote a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolVersion {
    /// Name of the program: `latscope`.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// The commit it was built from; empty when unknown.
    pub commit: String,
}

/// Origin of a result that another program measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// Name of the program: `cyclictest`, `fio`.
    pub program: String,
    /// Version of the program, as its output has it; `None` if the output does not contain it.
    pub version: Option<String>,
    /// Facts that the output lacks and a reader may want to know, in words.
    pub unknown: Vec<String>,
}

impl Imported {
    /// The program with its version, where that is known.
    pub fn name(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.program),
            None => self.program.clone(),
        }
    }

    /// Returns the facts on this output and a further one together: each that one of them lacks is unknown. `None` if
    /// they are of two programs.
    pub fn combine_with(mut self, other: Imported) -> Option<Imported> {
        if self.program != other.program {
            return None;
        }
        self.version = self.version.filter(|version| other.version.as_ref() == Some(version));
        for fact in other.unknown {
            if !self.unknown.contains(&fact) {
                self.unknown.push(fact);
            }
        }
        Some(self)
    }
}

/// Early end of a run that was asked to end before it was complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupted {
    /// Source of the request: the name of a signal, `key q`, `stdout closed`.
    pub by: String,
    /// Points measured in full, of those planned.
    pub points: ProgressAmount,
    /// Events of the points that were being measured, where their number or time is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<ProgressAmount>,
    /// Time for which they had been measured, ns, where that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<ProgressAmount>,
}

/// Progress: the amount done of the amount requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressAmount {
    /// Amount done so far.
    pub done: u64,
    /// Amount requested; `None` without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// Something a reader of the numbers must know, as data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name of the warning.
    pub id: String,
    /// Description of what happened.
    pub text: String,
    /// Remedy for the problem, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

fn clear_fact((_, fact): (&String, &mut serde_json::Value)) {
    *fact = serde_json::Value::Null;
}

impl Report {
    /// Returns the result of a run that has measured nothing yet.
    pub fn new(tool: ToolVersion, started: String, plan: Plan, machine: Machine) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            tool,
            started,
            finished: None,
            interrupted: None,
            imported: None,
            merged: None,
            plan,
            machine,
            run_id: String::new(),
            labels: BTreeMap::new(),
            activity: None,
            warnings: Vec::new(),
            findings: Vec::new(),
            measurements: Vec::new(),
        }
    }

    /// Writes the text of a result file piece by piece: as a whole it would take
    /// more memory than the report.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_json(&self, to: &mut dyn io::Write) -> io::Result<()> {
        if self.imported.is_some() || self.measurements.iter().any(Measurement::is_imported) {
            json::write_value(to, &self.with_unknown_as_null()?)?;
        } else {
            json::write_value(to, self)?;
        }
        to.write_all(b"\n")
    }

    /// The JSON of a result with imported points, in which each fact that another program's output does not have is
    /// `null`.
    fn with_unknown_as_null(&self) -> io::Result<serde_json::Value> {
        let mut value = serde_json::to_value(self)?;
        if self.imported.is_some() {
            let unknown = serde_json::to_value(Machine::default())?;
            if let Some(machine) = value["machine"].as_object_mut() {
                machine
                    .iter_mut()
                    .filter(|(name, fact)| unknown[name.as_str()] == **fact)
                    .for_each(clear_fact);
            }
            if self.started.is_empty() {
                value["started"].take();
            }
        }
        let written = value["measurements"].as_array_mut().into_iter().flatten();
        let unknown = self.measurements.iter().map(|m| self.imported.is_some() || m.is_imported());
        for (m, _) in written.zip(unknown).filter(|(_, unknown)| *unknown) {
            let summary = m["summary"].as_object_mut().into_iter().flat_map(|summary| summary.iter_mut());
            summary.filter(|(name, _)| ["missed", "rejected"].contains(&name.as_str())).for_each(clear_fact);
        }
        Ok(value)
    }

    /// Noun for what was merged into the report: `run`; `output` of another program, and `result` if only some are.
    pub fn merged_noun(&self) -> &'static str {
        match self.imported {
            Some(_) => "output",
            None if self.measurements.iter().any(Measurement::is_imported) => "result",
            None => "run",
        }
    }

    /// Returns true if at least one point was measured.
    pub fn has_figures(&self) -> bool {
        self.measurements.iter().any(|m| m.quality.level != crate::quality::QualityLevel::Unsupported)
    }

    /// Returns the report without the samples in order of time, most of its text.
    pub fn without_blocks(&self) -> Report {
        let mut lean = self.clone();
        lean.measurements.iter_mut().for_each(|m| m.blocks.clear());
        lean
    }

    /// The text of a result file.
    ///
    /// # Panics
    /// Never: every field has a JSON form.
    pub fn to_json(&self) -> String {
        let mut text = Vec::new();
        self.write_json(&mut text).expect("a report has a JSON form");
        String::from_utf8(text).expect("JSON is UTF-8")
    }

    /// Returns true if the run ended early, or has not ended. For an imported result that is not known, and false.
    pub fn is_unfinished(&self) -> bool {
        self.finished.is_none() && self.imported.is_none()
    }

    /// Planned length of a batch of a point, ns: part of the point's identity, unlike the number of operations that
    /// followed from it. `None` for single events, and if the plan has no such point.
    pub fn batch_target(&self, m: &Measurement) -> Option<u64> {
        let planned = |step: &&PlanStep| {
            step.points.iter().any(|point| point.probe == m.probe && point.params == m.params)
        };
        let step = self.plan.steps.iter().find(planned)?;
        matches!(m.sampling, Sampling::Batch { .. }).then_some(step.stop.batch_ns)
    }

    /// The measurements of a probe, in order.
    pub fn of_probe<'a>(&'a self, probe: &'a str) -> impl Iterator<Item = &'a Measurement> {
        self.measurements.iter().filter(move |m| m.probe == probe)
    }
}
