//! Outcome of a plan: each run, the table of measurements under loads, arms compared.

use super::plan_file::{PlanFile, Planned, TrialCellIndex};
use latscope_core::report::{VerdictStatus, Warning};
use latscope_judge::acceptance::{Acceptance, HashedFile};
use latscope_judge::compare::{ComparisonOptions, ComparisonResult, compare_runs};
use latscope_judge::runs::RunResult;
use latscope_judge::trial::{TrialArmCell, TrialArmEffect, judge_effect, rows, worst};
use latscope_judge::verdict::exit_code;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the form in which outcomes are written.
pub const SCHEMA: &str = "latscope-trial/1";

// Fields that are not deserialized are computed again from the results of the runs.
/// Outcome of a plan.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TrialOutcome {
    /// Name of the schema of the file.
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The plan, with its seed.
    pub plan: PlanFile,
    /// Difference below which two figures are the same, a share.
    pub same: f64,
    /// The program that made the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<HashedFile>,
    /// Time at which the first run began, RFC 3339.
    pub started: String,
    /// Time at which the last run ended, RFC 3339; `None` as long as the plan is carried out, and if it was killed.
    pub finished: Option<String>,
    /// The signal that ended it before its time.
    pub interrupted: Option<String>,
    /// Reason for an early end, if it was not a signal.
    pub failed: Option<String>,
    /// True if all changes were undone; `None` if there was nothing to undo.
    pub restored: Option<bool>,
    /// Parts of the plan that this machine lacks something for.
    pub skipped: Vec<Skipped>,
    /// The runs that are planned, in their order.
    pub order: Vec<Ordered>,
    /// The runs, in the order in which they were made.
    pub runs: Vec<TrialRunRecord>,
    /// Measurements under loads in arms.
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing)]
    pub table: Vec<TrialArmCell>,
    /// The record of runs that were judged, where they are not compared.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    #[schemars(!skip_deserializing)]
    pub acceptance: Option<Acceptance>,
    /// Each arm compared with the first, a measurement under a load at a time.
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing)]
    pub comparisons: Vec<Compared>,
}

/// A part of the plan that was left out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// `measurement`, `arm` or `load`.
    pub kind: String,
    /// Name of the part.
    pub name: String,
    /// Description of what this machine lacks for the part.
    pub why: String,
}

impl Skipped {
    /// `arm with: this machine has no …`.
    pub fn describe_skip(&self) -> String {
        format!("{} {}: {}", self.kind, self.name, self.why)
    }

    /// Returns true if a run of these parts was left out, too.
    pub fn covers(&self, measurement: &str, load: Option<&str>, arm: &str) -> bool {
        match self.kind.as_str() {
            "measurement" => self.name == measurement,
            "arm" => self.name == arm,
            _ => Some(self.name.as_str()) == load,
        }
    }
}

/// A run that is planned.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ordered {
    /// The file of its result, in the directory of results.
    pub file: String,
    /// Repetition of the run, from 1.
    pub repetition: u32,
    /// Name of its measurement.
    pub measurement: String,
    /// Name of its load.
    pub load: Option<String>,
    /// Name of its arm.
    pub arm: String,
}

impl Ordered {
    /// A run of a plan, and its number in the order.
    pub fn from_planned(plan: &PlanFile, at: usize, run: &Planned) -> Ordered {
        let file = format!("{:03}-{}.json", at + 1, plan.name(run.cell));
        let (measurement, load, arm) = plan.part_names(run.cell);
        Ordered { file, repetition: run.repetition + 1, measurement, load, arm }
    }

    /// Place of the run in the plan.
    pub fn cell_index(&self, plan: &PlanFile) -> Option<TrialCellIndex> {
        let of_load = |name: &String| plan.loads.iter().position(|load| load.name == *name);
        Some(TrialCellIndex {
            measurement: plan.measurements.iter().position(|one| one.name == self.measurement)?,
            load: match &self.load {
                Some(name) => Some(of_load(name)?),
                None => None,
            },
            arm: plan.arms.iter().position(|arm| arm.name == self.arm)?,
        })
    }
}

/// A run that was made.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct TrialRunRecord {
    /// The run as it was planned.
    #[serde(flatten)]
    pub planned: Ordered,
    /// Exit code of the run; `None` if a signal killed it.
    pub exit: Option<i32>,
    /// Time of the run, with the commands before it, s.
    pub seconds: f64,
    /// True if the run counts.
    pub counted: bool,
    /// Reason why the run does not count.
    pub why: Option<String>,
    /// Warnings of the run's result.
    pub warnings: Vec<Warning>,
}

/// Comparison of two arms.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Compared {
    /// Name of the measurement.
    pub measurement: String,
    /// Name of the load.
    pub load: Option<String>,
    /// Name of the first arm.
    pub a: String,
    /// Name of the other one.
    pub b: String,
    /// Answer to whether B is better, with its basis.
    pub answer: TrialArmEffect,
    /// The comparison, as `latscope compare` has it.
    pub comparison: ComparisonResult,
}

/// Results that count, by their places in the plan.
pub type TrialCellRuns = BTreeMap<TrialCellIndex, Vec<RunResult>>;

/// A cell of the table for each place that was planned. Those that were skipped have their reason there.
pub fn table(
    plan: &PlanFile,
    counted: &TrialCellRuns,
    why: &dyn Fn(TrialCellIndex) -> Option<String>,
) -> Vec<TrialArmCell> {
    let mut cells = Vec::new();
    for place in plan.cell_indices() {
        let runs: Vec<&RunResult> = counted.get(&place).into_iter().flatten().collect();
        let (measurement, load, arm) = plan.part_names(place);
        cells.push(TrialArmCell {
            measurement,
            load,
            arm,
            planned: plan.repetitions as usize,
            runs: runs.len(),
            why: if runs.is_empty() { why(place) } else { None },
            rows: rows(&runs),
        });
    }
    cells
}

/// Each arm compared with the first, where both have runs.
pub fn comparisons(plan: &PlanFile, counted: &TrialCellRuns, options: &ComparisonOptions) -> Vec<Compared> {
    let mut found = Vec::new();
    for place in plan.cell_indices().into_iter().filter(|place| place.arm > 0) {
        let (a, b) = (counted.get(&TrialCellIndex { arm: 0, ..place }), counted.get(&place));
        let (Some(a), Some(b)) = (a, b) else { continue };
        let mut comparison =
            compare_runs(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), options);
        // That distinguishes the arms, and is in the head.
        comparison.differences.retain(|difference| difference.what != "label arm");
        let (measurement, load, b) = plan.part_names(place);
        let (a, answer) = (plan.arms[0].name.clone(), judge_effect(&comparison));
        found.push(Compared { measurement, load, a, b, answer, comparison });
    }
    found
}

impl TrialOutcome {
    /// Worst verdict on what was asked of any run; of a measurement that was skipped or not made it is inconclusive.
    fn worst_verdict(&self, counted: &TrialCellRuns) -> Option<VerdictStatus> {
        let worst = worst(counted.values().flatten());
        let unjudged = |cell: &TrialArmCell| cell.runs == 0 && (worst.is_some() || self.is_skipped(cell));
        worst.max(self.cells_with_criteria().any(unjudged).then_some(VerdictStatus::Inconclusive))
    }

    /// The cells of the table of whose runs something is asked.
    pub fn cells_with_criteria(&self) -> impl Iterator<Item = &TrialArmCell> {
        let is_asked = move |name: &str| {
            let run = self.plan.measurements.iter().find(|one| one.name == name).map(|one| &one.run.0);
            run.is_some_and(|words| words.iter().any(|word| is_criterion(word)))
        };
        self.table.iter().filter(move |cell| is_asked(&cell.measurement))
    }

    /// The exit code of one that is shown again: by its verdict, if it has one. What was not finished has not passed.
    pub fn exit_of_verdict(&self, counted: &TrialCellRuns) -> u8 {
        let status = self.worst_verdict(counted);
        let cut_short = self.finished.is_none() || self.interrupted.is_some() || self.failed.is_some();
        status.map_or(0, |_| exit_code(status, cut_short))
    }

    /// The exit code: by the worst verdict on what was asked of any run.
    pub fn exit(&self, counted: &TrialCellRuns) -> u8 {
        let status = self.worst_verdict(counted);
        let unmeasured = self.table.iter().any(|cell| cell.runs == 0 && !self.is_skipped(cell));
        if self.failed.is_some() || self.restored == Some(false) || counted.is_empty() {
            return 1;
        }
        match exit_code(status, self.interrupted.is_some()) {
            0 | 3 if unmeasured && self.interrupted.is_none() => 1,
            code => code,
        }
    }

    /// Reason why a place of the plan was skipped; `None` if it was not.
    pub fn why_skipped(&self, place: TrialCellIndex) -> Option<String> {
        let (measurement, load, arm) = self.plan.part_names(place);
        let covers = |one: &&Skipped| one.covers(&measurement, load.as_deref(), &arm);
        self.skipped.iter().find(covers).map(|one| format!("skipped: {}", one.why))
    }

    /// Returns true if a part of the plan that a cell belongs to was left out.
    pub fn is_skipped(&self, cell: &TrialArmCell) -> bool {
        self.skipped.iter().any(|one| one.covers(&cell.measurement, cell.load.as_deref(), &cell.arm))
    }
}

/// Options that ask something of a result.
fn is_criterion(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let quantile =
        name.strip_prefix("--p").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let others = ["--max", "--missed", "--threshold", "--sync", "--inherits"];
    quantile || others.contains(&name) || ["--losses", "--mismatches", "--faults", "--late"].contains(&name)
}
