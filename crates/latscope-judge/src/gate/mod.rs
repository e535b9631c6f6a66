//! Gates: does a result hold its budget? Each limit is judged for each matching point in each run; a limit relative to
//! a baseline is judged over all runs together.
//!
//! A limit of one result is judged exactly as the criterion of the command that measured it.

mod against;
mod budget;
mod learn;
mod lost;
mod names;
mod ratio;
pub mod sequential;
#[cfg(test)]
mod tests;

pub use against::{Accepted, against};
pub use budget::{Allowed, Bound, BudgetError, BudgetFileTable, BudgetFileValue, BudgetLimit, GateBudget};
pub use learn::{Basis, ENOUGH, Learnt, LearntLimit, LearntPoint, MARGIN, NoLimit, NotLearnt, Spread, learn};
pub use lost::FEWEST;
pub use names::{BudgetNameSet, BudgetParamKind};

use crate::compare::environment::{EnvironmentDifference, differences, remarks};
use crate::compare::{Range, WouldTell};
use crate::runs::{RunResult, point_id};
use crate::titles::{Titled, title_or_id, titles_apart};
use crate::verdict::{self, Metric, MetricCriterion, OutOfReach};
use latscope_core::ordered::group_by_key;
use latscope_core::plan::{Params, PlanStep};
use latscope_core::redact::is_redacted_machine;
use latscope_core::report::{Better, Measurement, VerdictStatus};
use latscope_core::units::{count_with_noun, format_apart, format_time, format_value};
use ratio::Baseline;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Name of the form in which gates are written.
pub const SCHEMA: &str = "latscope-gate/1";

/// Result of judging runs by a budget.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GateResult {
    /// Name of the schema of the file.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The worst of the checks.
    pub status: VerdictStatus,
    /// Number of checks with each status.
    pub counts: GateCheckCounts,
    /// The runs that were judged.
    pub runs: Vec<GateRunIdentity>,
    /// The runs of the baseline.
    pub baseline: Vec<GateRunIdentity>,
    /// Facts, beside the figures, in which the baseline (A) and the runs (B) differ.
    pub differences: Vec<EnvironmentDifference>,
    /// Reasons that weaken the comparison with the baseline, and skipped parts.
    pub remarks: Vec<String>,
    /// Facts that speak against the budget for these runs: another machine, another CPU model.
    pub warnings: Vec<String>,
    /// Every limit of every point, in the order of the budget.
    pub checks: Vec<GateCheck>,
    /// Measured points that no check judges.
    pub unjudged: Vec<Unjudged>,
}

/// A measured point that no check judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unjudged {
    /// Stable name: probe and parameters.
    pub id: String,
    /// Title of the point for a reader.
    pub title: String,
    /// Reason why it is not judged.
    pub why: String,
}

/// Numbers of checks with each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GateCheckCounts {
    /// Number of checks that pass.
    pub pass: usize,
    /// Checks whose limit is exceeded.
    pub exceeded: usize,
    /// Checks that cannot be decided.
    pub inconclusive: usize,
}

/// Identification of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GateRunIdentity {
    /// Name of the file of the run.
    pub file: String,
    /// Random name of the run; empty for imported results.
    pub run_id: String,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// The name of the machine.
    pub machine: String,
}

/// A limit of a point, judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GateCheck {
    /// Stable name: the point and the figure; unique within a run.
    pub id: String,
    /// Place of the limit in the budget, from 1; the next for what a baseline alone limits; 0 for files and sides.
    pub limit: usize,
    /// The run, by its place in `runs`; `None` for all of them against the baseline.
    pub run: Option<usize>,
    /// The probe, or the family where no point was found.
    pub probe: String,
    /// The parameters of the point; none where no point was found.
    pub params: Params,
    /// Title of the point for a reader.
    pub title: String,
    /// The figure: `max`, `p99_9`, `missed`, `meet`.
    pub metric: String,
    /// True if the limit is the least permitted value of the figure, not the most.
    pub at_least: bool,
    /// True if limit and value are ratios to the baseline.
    pub relative: bool,
    /// The limit: ns, a number in `unit`, or a ratio.
    pub allowed: f64,
    /// The figure, in the unit of the limit; `None` if it is not known.
    pub value: Option<f64>,
    /// 95 % upper bound of the figure, ns, if the check passes and only the bound is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// 95 % interval of the ratio.
    pub interval: Option<Range>,
    /// The unit of limit and value; `ratio` for a relative one.
    pub unit: String,
    /// Status of the check.
    pub status: VerdictStatus,
    /// Reason for the status in words, with its certainty.
    pub text: String,
    /// Further measurement that would decide; `None` if the check is decided, or if such a measurement is not known.
    pub would_tell: Option<WouldTell>,
    /// Largest figure that the limit was learnt from, in its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learnt: Option<f64>,
    /// True if the limit is for most results.
    #[serde(skip)]
    pub is_of_most: bool,
    /// True for a limit that no budget names: the ratio beyond which a baseline alone shows a slowdown.
    #[serde(skip)]
    pub is_alone: bool,
    /// Stable names of the points of a check of the baseline that is about several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<String>,
    /// True if no further run of the same command can pass: the command does not measure the limited figure, or takes
    /// too few samples.
    #[serde(skip)]
    pub is_hopeless: bool,
    /// Length of a run of the same command that could pass, if the run was too short.
    #[serde(skip)]
    pub takes: Option<RunLengthOption>,
}

/// Length of a run, as an option of a command asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunLengthOption {
    /// Number of rounds of the run.
    Rounds(u64),
    /// Number of events of a point.
    Count(u64),
    /// Duration in whole seconds.
    Seconds(u64),
}

impl fmt::Display for RunLengthOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunLengthOption::Rounds(rounds) => write!(f, "--rounds {rounds}"),
            RunLengthOption::Count(count) => write!(f, "--count {count}"),
            RunLengthOption::Seconds(seconds) => write!(f, "--duration {seconds}s"),
        }
    }
}

impl GateResult {
    /// Adds an inconclusive check of a file that is a result, or may be, and cannot be read: its content might exceed
    /// every limit.
    pub fn add_unreadable(&mut self, file: String, why: String) {
        self.status = self.status.max(VerdictStatus::Inconclusive);
        self.counts.inconclusive += 1;
        self.checks.push(GateCheck {
            id: format!("{file} {READABLE}"),
            title: file,
            metric: READABLE.to_owned(),
            text: format!("nothing of it was read, so that it is not judged: {why}"),
            ..GateCheck::default()
        });
    }

    /// Makes every judged check inconclusive: the measurements are no evidence.
    pub fn distrust(&mut self, why: &str) {
        for check in self.checks.iter_mut().filter(|check| check.status != VerdictStatus::Inconclusive) {
            check.status = VerdictStatus::Inconclusive;
            check.text = format!("{why}: no evidence; {}", check.text);
        }
        self.status = VerdictStatus::Inconclusive;
        self.counts = counts(&self.checks);
    }
}

/// Name of the figure of a check of a file.
const READABLE: &str = "readable";

impl GateCheck {
    /// Returns true if the check is about a point, not about a file or the baseline as a whole.
    pub fn is_of_point(&self) -> bool {
        self.limit > 0
    }

    /// Returns true if the check is about a file.
    pub fn is_of_file(&self) -> bool {
        self.metric == READABLE && !self.is_of_point()
    }

    /// Returns the figure as a share of its limit, or the limit as a share of the figure if more is better; 0 if it is
    /// not known.
    pub fn share_of_limit(&self) -> f64 {
        let value = self.value.or(self.at_most).unwrap_or(0.0);
        let ratio = if self.at_least { self.allowed / value } else { value / self.allowed };
        if ratio.is_nan() { 0.0 } else { ratio }
    }

    /// Returns true if no event may exceed the limit.
    pub fn is_about_every_event(&self) -> bool {
        ["max", "threshold", "missed"].contains(&self.metric.as_str())
    }

    /// Returns true if one run decides: an event was above a limit that no event may exceed, or was missed.
    pub fn is_final(&self) -> bool {
        self.status == VerdictStatus::Exceeded && self.is_about_every_event()
    }

    /// The figure and its limit: `max ≤ 50.0 µs`.
    pub fn format_requirement(&self) -> String {
        if !self.is_of_point() {
            return self.metric.clone();
        }
        let allowed =
            if self.relative { Allowed::Ratio(self.allowed) } else { Allowed::Value(self.allowed, None) };
        let format = |limit| match self.value.filter(|_| !self.relative) {
            Some(value) => format_apart([limit, value], &self.unit)[0].clone(),
            None => format_value(limit, &self.unit),
        };
        format!("{} {}", self.metric.replace('_', "."), budget::format_limit(allowed, self.at_least, format))
    }

    /// The check with its reason: `timer, p99 ≤ 50.0 µs: …`, or of a file `runs/a.json: …`.
    pub fn sentence(&self) -> String {
        if !self.is_of_point() {
            return format!("{}: {}", self.title, self.text);
        }
        format!("{}, {}: {}", self.title, self.format_requirement(), self.text)
    }

    /// The measured figure: `3.41 ms`, for a relative limit `+7.3 %`; `> 50.0 µs` or `≤ 41.2 µs` if only a bound is
    /// known, a dash if nothing is known.
    pub fn format_measured(&self) -> String {
        match self.value {
            // A quantile of few samples is not stated, and so many above a limit prove that it is exceeded.
            None if self.status == VerdictStatus::Exceeded && !self.relative => {
                let than = if self.at_least { "<" } else { ">" };
                format!("{than} {}", format_value(self.allowed, &self.unit))
            }
            None => self
                .at_most
                .map_or_else(|| "–".to_owned(), |most| format!("≤ {}", format_value(most, &self.unit))),
            Some(ratio) if self.relative => change_beside(self.allowed, ratio),
            Some(value) => format_apart([self.allowed, value], &self.unit)[1].clone(),
        }
    }
}

/// Returns a ratio in words, beside the limit `allowed`: `+7.3 %`.
fn change_beside(allowed: f64, ratio: f64) -> String {
    let sign = if ratio < 1.0 { "-" } else { "+" };
    let [limit, change] = [allowed, ratio].map(|ratio| (ratio - 1.0) * 100.0);
    // Changes in unlike directions have unlike signs.
    let limit = if limit * change > 0.0 { limit.abs() } else { 0.0 };
    let [_, text] = format_apart([limit, change.abs()], "%");
    format!("{sign}{text}")
}

/// Judges runs by a budget. Limits relative to a baseline are [inconclusive](VerdictStatus::Inconclusive) without one.
/// A baseline that no limit is relative to judges [every point](against) as well.
pub fn judge_runs(
    budget: &GateBudget,
    runs: &[(String, RunResult)],
    baseline: &[(String, RunResult)],
) -> GateResult {
    let sides = [baseline, runs].map(|side| side.iter().map(|(_, run)| run).collect::<Vec<&RunResult>>());
    let [of_baseline, of_runs] = &sides;
    let compared = Baseline::from_runs(budget, of_baseline, of_runs);
    let mut checks = Vec::new();
    for limit in &budget.limits {
        for bound in &limit.bounds {
            match bound.allowed {
                Allowed::Value(..) => checks.extend(absolute(limit, bound, of_runs)),
                Allowed::Ratio(ratio) => checks.extend(compared.check_limit(limit, bound, ratio)),
            }
        }
    }
    ratio::decide_pending(&mut checks);
    let mut checks: Vec<GateCheck> = checks.into_iter().map(|pending| pending.check).collect();
    let warnings = other_machines(budget, of_runs);
    let mut unjudged = without_limit(budget, of_runs);
    let mut said = None;
    if !baseline.is_empty() && budget.relative().is_none() {
        let mut found = against::of_all_points(baseline, runs, budget.accepted);
        found.unjudged.retain(|point| unjudged.iter().any(|free| free.id == point.id));
        unjudged = found.unjudged;
        let number = |check: GateCheck| GateCheck { limit: check.limit * (budget.limits.len() + 1), ..check };
        checks.extend(found.checks.into_iter().map(number));
        said = Some(found.said);
    }
    let mut gate = GateResult { warnings, unjudged, ..assemble_result(checks, [baseline, runs]) };
    gate.remarks.splice(..0, said);
    gate
}

/// The measured points that no limit of the budget is about, each once.
fn without_limit(budget: &GateBudget, runs: &[&RunResult]) -> Vec<Unjudged> {
    let all = runs.iter().flat_map(|run| &run.report.measurements);
    let free = all.filter(|m| !budget.limits.iter().any(|limit| limit.is_about(m)));
    let free: BTreeMap<String, Unjudged> = free
        .map(|m| {
            let id = point_id(&m.probe, &m.params);
            let why = "no limit in the budget".to_owned();
            (id.clone(), Unjudged { id, title: title_or_id(m), why })
        })
        .collect();
    free.into_values().collect()
}

/// The gate of these checks, of a baseline and the judged runs.
fn assemble_result(mut checks: Vec<GateCheck>, [baseline, runs]: [&[(String, RunResult)]; 2]) -> GateResult {
    let sides = [baseline, runs].map(|side| side.iter().map(|(_, run)| run).collect::<Vec<&RunResult>>());
    let [of_baseline, of_runs] = &sides;
    name_apart(&mut checks);
    let points: Vec<Titled> =
        checks.iter().map(|check| (check.probe.as_str(), check.title.as_str(), &check.params)).collect();
    let titles = titles_apart(&points);
    checks.iter_mut().zip(titles).for_each(|(check, title)| check.title = title);
    let weighs = !baseline.is_empty();
    GateResult {
        schema: SCHEMA,
        status: checks.iter().map(|check| check.status).max().unwrap_or(VerdictStatus::Inconclusive),
        counts: counts(&checks),
        runs: run_identities(runs),
        baseline: run_identities(baseline),
        differences: if weighs { differences(of_baseline, of_runs) } else { Vec::new() },
        remarks: if weighs { remarks(of_baseline, of_runs) } else { Vec::new() },
        warnings: Vec::new(),
        checks,
        unjudged: Vec::new(),
    }
}

fn run_identities(runs: &[(String, RunResult)]) -> Vec<GateRunIdentity> {
    let names = runs.iter().map(|(file, run)| GateRunIdentity {
        file: file.clone(),
        run_id: run.report.run_id.clone(),
        started: run.report.started.clone(),
        machine: run.report.machine.name.clone(),
    });
    names.collect()
}

fn counts(checks: &[GateCheck]) -> GateCheckCounts {
    let [pass, exceeded, inconclusive] =
        [VerdictStatus::Pass, VerdictStatus::Exceeded, VerdictStatus::Inconclusive]
            .map(|status| checks.iter().filter(|check| check.status == status).count());
    GateCheckCounts { pass, exceeded, inconclusive }
}

/// Gives two limits on one figure of a point different names: the second check is `…#2`.
fn name_apart(checks: &mut [GateCheck]) {
    let mut seen: BTreeMap<(String, Option<usize>), usize> = BTreeMap::new();
    for check in checks {
        let times = seen.entry((check.id.clone(), check.run)).or_insert(0);
        *times += 1;
        if *times > 1 {
            check.id += &format!("#{times}");
        }
    }
}

/// Sentences about measured machines that are not those on which the limits were learnt.
fn other_machines(budget: &GateBudget, runs: &[&RunResult]) -> Vec<String> {
    let machines = runs.iter().map(|run| &run.report.machine);
    let names: BTreeSet<&str> =
        machines.clone().map(|machine| &*machine.name).filter(|name| !is_redacted_machine(name)).collect();
    let models: BTreeSet<&str> = machines.map(|machine| &*machine.cpu_model).collect();
    let mut sentences = Vec::new();
    for (what, learnt, seen) in
        [("machine", &budget.machines, names), ("CPU model", &budget.cpu_models, models)]
    {
        let others: Vec<&str> = seen
            .into_iter()
            .filter(|name| !name.is_empty() && !learnt.iter().any(|known| known == name))
            .collect();
        if !others.is_empty() && !learnt.is_empty() {
            let (others, learnt) = (others.join(", "), learnt.join(", "));
            sentences.push(format!(
                "another {what}: these results are of {others}, the budget was learnt on {learnt}"
            ));
        }
    }
    sentences
}

/// Returns true if a run was to measure a probe of the limit.
fn selects(limit: &BudgetLimit, run: &RunResult) -> bool {
    let only = std::slice::from_ref(&limit.probe);
    let mut planned = run.report.plan.steps.iter().flat_map(|step| &step.points);
    let is_measured = run.report.measurements.iter().any(|m| crate::compare::is_wanted(&m.probe, only));
    is_measured || planned.any(|point| crate::compare::is_wanted(&point.probe, only))
}

/// The checks of a limit on one figure in all runs. If there are several runs, only those count that were to measure
/// the probe, as the results of a plan come from several commands.
fn absolute(limit: &BudgetLimit, bound: &Bound, runs: &[&RunResult]) -> Vec<ratio::Pending> {
    let any = runs.iter().any(|run| selects(limit, run));
    let mut checks = Vec::new();
    for (at, run) in runs.iter().enumerate().filter(|(_, run)| !any || selects(limit, run)) {
        let points = run.report.measurements.iter().filter(|m| limit.is_about(m));
        let before = checks.len();
        let is_cut_short = verdict::is_cut_short(&run.report);
        checks.extend(points.map(|m| of_point(limit, bound, (at, run, is_cut_short), m)));
        if checks.len() == before {
            checks.push(unmatched(limit, bound, Some(at), &[run]));
        }
    }
    if limit.is_of_most {
        judge_by_majority(&mut checks);
    }
    checks.into_iter().map(ratio::Pending::decided).collect()
}

/// Judges a limit that is for most results by the majority of them: of three or more it holds where at least half pass,
/// and is exceeded where more than half exceed it. Of two that disagree it is inconclusive.
fn judge_by_majority(checks: &mut [GateCheck]) {
    // What no event may be stays as each run has it.
    let quantiles = checks.iter_mut().filter(|check| !check.is_about_every_event());
    for (_, mut of_limit) in group_by_key(quantiles.map(|check| (check.id.clone(), check))) {
        let all = of_limit.len();
        let [passes, exceeded] = [VerdictStatus::Pass, VerdictStatus::Exceeded]
            .map(|status| of_limit.iter().filter(|check| check.status == status).count());
        let (status, advice) = match all {
            3.. if 2 * passes >= all => (VerdictStatus::Pass, ""),
            3.. if 2 * exceeded <= all => (VerdictStatus::Inconclusive, "; more results would decide"),
            2 if passes == 1 && exceeded == 1 => {
                (VerdictStatus::Inconclusive, "; a third result would decide")
            }
            _ => continue,
        };
        for check in of_limit.iter_mut().filter(|check| check.status > status) {
            let is = if check.status == VerdictStatus::Exceeded { "above" } else { "inconclusive" };
            check.status = status;
            check.text = format!(
                "{is} here; the limit is for most results, and {passes} of {all} hold it{advice}: {}",
                check.text
            );
        }
    }
}

/// The check of a point of a run, of which the place is given, and whether it was cut short.
fn of_point(
    limit: &BudgetLimit,
    bound: &Bound,
    (at, run, is_cut_short): (usize, &RunResult, bool),
    m: &Measurement,
) -> GateCheck {
    if let Some(learnt) = limit.revision.filter(|learnt| *learnt != m.revision) {
        let text = format!(
            "it is not the same work: revision {} of the probe, and the limit is of revision {learnt} (learn it again)",
            m.revision
        );
        return GateCheck { text, is_hopeless: true, ..blank(limit, bound, Some(at), Some(m)) };
    }
    let Allowed::Value(allowed, written) = bound.allowed else { unreachable!("a ratio is judged elsewhere") };
    let criterion = MetricCriterion { metric: bound.metric.clone(), limit: allowed };
    let out_of_reach = verdict::out_of_reach(m, &criterion);
    let at_most = verdict::at_most(m, &bound.metric);
    let mut judged = verdict::judge_of(&run.report, m, &[criterion]).checks.remove(0);
    let (unit, at_least) = unit(&bound.metric, m);
    if let Some(written) = written.filter(|written| *written != unit && judged.value.is_some()) {
        judged.status = VerdictStatus::Inconclusive;
        judged.text = format!("the limit is in {written}, and the figure in {}", describe_unit(&unit));
    }
    if judged.status == VerdictStatus::Pass && is_cut_short {
        judged.status = VerdictStatus::Inconclusive;
        judged.text = format!("the run ended before it was done; so far, {}", judged.text);
    }
    let out_of_reach = out_of_reach.filter(|_| judged.status == VerdictStatus::Inconclusive);
    GateCheck {
        is_hopeless: out_of_reach.is_some(),
        takes: out_of_reach.and_then(|reason| takes(run, m, reason)),
        at_least,
        at_most: at_most.filter(|_| judged.status == VerdictStatus::Pass && judged.value.is_none()),
        value: judged.value,
        unit,
        status: judged.status,
        text: judged.text,
        ..blank(limit, bound, Some(at), Some(m))
    }
}

/// Runs are advised to be longer by this factor than their samples need: the next one may take fewer.
const SPARE: f64 = 1.1;

/// Length with which a run of the same command takes enough samples; `None` if it is not known.
fn takes(run: &RunResult, m: &Measurement, reason: OutOfReach) -> Option<RunLengthOption> {
    let times = match reason {
        OutOfReach::Never => return None,
        OutOfReach::Rounds => return Some(RunLengthOption::Rounds(verdict::FEWEST_ROUNDS as u64)),
        OutOfReach::Samples(times) => times * SPARE,
    };
    let planned = |step: &&PlanStep| step.points.iter().any(|point| point.probe == m.probe);
    let stop = &run.report.plan.steps.iter().find(planned)?.stop;
    if stop.events != u64::MAX {
        return Some(RunLengthOption::Count((stop.events as f64 * times).ceil() as u64));
    }
    let seconds = stop.limit_ns as f64 * times / 1e9;
    (stop.limit_ns != u64::MAX).then_some(RunLengthOption::Seconds(seconds.ceil() as u64))
}

fn describe_unit(unit: &str) -> &str {
    match unit {
        "count" | "" => "plain numbers",
        other => other,
    }
}

/// The unit of a figure, and true if its limit is the least permitted value.
fn unit(metric: &Metric, m: &Measurement) -> (String, bool) {
    match metric {
        Metric::Missed => ("count".to_owned(), false),
        Metric::Share(_) => ("%".to_owned(), true),
        Metric::Value(name) => {
            let value = m.values.get(name);
            let more = value.is_some_and(|value| value.better == Better::More);
            (value.map_or("", |value| &value.unit).to_owned(), more)
        }
        Metric::Max | Metric::Quantile(_) | Metric::Threshold => ("ns".to_owned(), false),
    }
}

/// A check without a verdict yet: of a point, or of a limit without one.
fn blank(limit: &BudgetLimit, bound: &Bound, run: Option<usize>, m: Option<&Measurement>) -> GateCheck {
    let id = m.map_or_else(|| limit.name(), |m| point_id(&m.probe, &m.params));
    let metric = bound.metric.name().to_owned();
    let (allowed, relative) = match bound.allowed {
        Allowed::Value(limit, _) => (limit, false),
        Allowed::Ratio(ratio) => (ratio, true),
    };
    let unit = if bound.metric.is_duration() { "ns" } else { "" };
    GateCheck {
        title: m.map(|m| m.title.clone()).filter(|title| !title.is_empty()).unwrap_or_else(|| id.clone()),
        id: format!("{id} {metric}{}", if relative { " relative" } else { "" }),
        limit: limit.number,
        run,
        probe: m.map_or(&limit.probe, |m| &m.probe).clone(),
        params: m.map(|m| m.params.clone()).unwrap_or_default(),
        metric,
        at_least: matches!(bound.metric, Metric::Share(_)),
        relative,
        allowed,
        learnt: bound.learnt,
        is_of_most: limit.is_of_most && !relative,
        unit: if relative { "ratio" } else { unit }.to_owned(),
        ..GateCheck::default()
    }
}

/// Largest number of values of a parameter that are listed.
const NAMED: usize = 8;

/// The check of a limit that matches no point.
fn unmatched(limit: &BudgetLimit, bound: &Bound, run: Option<usize>, runs: &[&RunResult]) -> GateCheck {
    let only = std::slice::from_ref(&limit.probe);
    let all = runs.iter().flat_map(|run| &run.report.measurements);
    let points: Vec<&Measurement> = all.filter(|m| crate::compare::is_wanted(&m.probe, only)).collect();
    let text = if points.is_empty() {
        format!("nothing of {} was measured", limit.probe)
    } else {
        let values = |name: &String| {
            let values: BTreeSet<String> =
                points.iter().filter_map(|m| m.params.get(name)).map(ToString::to_string).collect();
            let named: Vec<String> = values.iter().take(NAMED).cloned().collect();
            let more = if values.len() > NAMED { ", …" } else { "" };
            let named = if named.is_empty() { "is not there".to_owned() } else { named.join(", ") };
            format!("{name} is {named}{more}").replace("is is not", "is not")
        };
        let seen: Vec<String> = limit.params().map(values).collect();
        let count = count_with_noun(points.len() as u64, "point");
        format!("no point is {}: of {count} measured, {}", limit.name(), seen.join("; "))
    };
    GateCheck { text, is_hopeless: true, ..blank(limit, bound, run, None) }
}

/// A time in words, for the texts of relative limits.
fn format_figure(value: f64, unit: &str) -> String {
    if unit == "ns" { format_time(value) } else { format_value(value, unit) }
}
