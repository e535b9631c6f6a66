//! Several runs merged into one result: histograms of equal points are added, and each run is kept as a round of its
//! points, so that the spread between runs stays known.

use crate::compare::environment::{self, LABEL};
use crate::runs::RunResult;
use latscope_core::account::add_known;
use latscope_core::json::LARGEST;
use latscope_core::machine::Machine;
use latscope_core::plan::{Plan, PlanStep};
use latscope_core::redact::machines_not_known;
use latscope_core::report::{Account, Differing, Measurement, Merged, MergedRun, Report, Sampling, Warning};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

/// Id of the warning that runs may be of several machines.
pub const MACHINE_NOT_KNOWN: &str = "machine-not-known";

/// Reason why results are not merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A run is in two results.
    #[error("{0} and {1} have the same run ({2}): leave one of them out")]
    Twice(String, String, String),
    /// The samples of a point cannot be counted.
    #[error("{0} has more than 2^53 samples in all: merge fewer results")]
    TooMany(String),
    /// There is no result to merge.
    #[error("there is no result to merge")]
    Nothing,
    /// There is no second result.
    #[error("{0} is the only result there, and merging takes two or more: use it as it is")]
    Single(String),
    /// A result has other points than all others.
    #[error("{0} has no point in common with the other results: leave it out")]
    NothingInCommon(String),
}

/// A result with the runs that it is made of, and the name of its file.
struct MergePart {
    name: String,
    report: Report,
    merged: Merged,
}

/// A point, with the requested length of a batch, ns.
struct MergeSeries {
    m: Measurement,
    batch_ns: Option<u64>,
}

/// Merges results, each with the name of its file. The order of the results does not matter: runs are in order of time.
///
/// # Errors
/// There are not two results, a run is in two of them, one has no point in common with the others, or a point has too
/// many samples.
pub fn merge(results: Vec<(String, Report)>) -> Result<Report, MergeError> {
    let mut parts: Vec<MergePart> =
        results.into_iter().map(|(name, report)| MergePart::from_report(name, report)).collect();
    if let [only] = parts.as_slice() {
        return Err(MergeError::Single(only.name.clone()));
    }
    parts.sort_by(|a, b| a.merged.runs.first().cmp(&b.merged.runs.first()));
    let runs = renumber_runs(&mut parts)?;
    let series = combine_series(&mut parts)?;
    let mut reports = parts.into_iter().map(|part| part.report);
    let mut whole = reports.next().ok_or(MergeError::Nothing)?;
    let mut machines = vec![mem::take(&mut whole.machine)];
    for other in reports {
        machines.push(add_head(&mut whole, other));
    }
    let names = machines.iter().map(|machine| machine.name.as_str());
    if let Some(text) = machines_not_known(names.chain(hosts(&runs))) {
        let warning = Warning { id: MACHINE_NOT_KNOWN.to_owned(), text, remedy: None };
        whole.warnings.retain(|known| known.id != warning.id);
        whole.warnings.push(warning);
    }
    whole.machine = common_machine(&machines);
    whole.started =
        runs.iter().map(|run| &run.started).find(|at| !at.is_empty()).cloned().unwrap_or_default();
    whole.finished = runs.iter().filter_map(|run| run.finished.clone()).max();
    (whole.run_id, whole.findings, whole.interrupted) = (String::new(), Vec::new(), None);
    let plan = &mut whole.plan;
    (plan.rounds, plan.stop_when_exceeded, plan.on_threshold, plan.timeline) = (1, false, None, None);
    plan.criteria.clear();
    let (measurements, batch_ns) = series.into_iter().map(|series| (series.m, series.batch_ns)).unzip();
    whole.measurements = measurements;
    whole.merged = Some(Merged { differs: differing_facts(&runs), runs, batch_ns });
    Ok(whole)
}

/// Names of the machines of runs.
fn hosts(runs: &[MergedRun]) -> impl Iterator<Item = &str> {
    runs.iter().filter_map(|run| run.facts.get("host")).map(String::as_str)
}

impl MergePart {
    fn from_report(name: String, mut report: Report) -> MergePart {
        if let Some(merged) = report.merged.take() {
            return MergePart { name, report, merged };
        }
        let run = RunResult::from_report(report);
        let batch_ns = run.points().map(|(_, batch_ns)| batch_ns).collect();
        let mut facts: BTreeMap<String, String> = environment::of_run(&run, None).into_iter().collect();
        let mut report = run.report;
        let early = report.is_unfinished() || report.interrupted.is_some();
        facts.insert("ended".to_owned(), if early { "early" } else { "as planned" }.to_owned());
        facts.retain(|_, value| !value.is_empty());
        let (started, run_id, finished) =
            (report.started.clone(), report.run_id.clone(), report.finished.clone());
        let measurements = mem::take(&mut report.measurements);
        report.measurements = measurements.into_iter().map(|m| m.as_run(0)).collect();
        let runs = vec![MergedRun { started, run_id, finished, facts }];
        MergePart { name, report, merged: Merged { runs, differs: Vec::new(), batch_ns } }
    }
}

/// All runs in order of time. Rounds then name the place of their run among all.
fn renumber_runs(parts: &mut [MergePart]) -> Result<Vec<MergedRun>, MergeError> {
    let mut all: Vec<(MergedRun, usize, usize)> = Vec::new();
    for (of, part) in parts.iter().enumerate() {
        all.extend(part.merged.runs.iter().cloned().enumerate().map(|(at, run)| (run, of, at)));
    }
    all.sort();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (run, of, _) in all.iter().filter(|(run, ..)| !run.run_id.is_empty()) {
        if let Some(other) = known.insert(&run.run_id, *of) {
            let name = |of: usize| parts[of].name.clone();
            return Err(MergeError::Twice(name(other), name(*of), run.run_id.clone()));
        }
    }
    let places: BTreeMap<(usize, usize), u32> =
        (0..).zip(&all).map(|(place, (_, of, at))| ((*of, *at), place)).collect();
    for (of, part) in parts.iter_mut().enumerate() {
        for round in part.report.measurements.iter_mut().flat_map(|m| &mut m.rounds) {
            round.run = round.run.and_then(|run| places.get(&(of, run as usize)).copied());
        }
    }
    Ok(all.into_iter().map(|(run, ..)| run).collect())
}

/// The points of all results, equal ones added, in the order of the first run that has them.
fn combine_series(parts: &mut [MergePart]) -> Result<Vec<MergeSeries>, MergeError> {
    let mut all: Vec<MergeSeries> = Vec::new();
    let mut known: BTreeMap<PointIdentity, Vec<usize>> = BTreeMap::new();
    // The part that brought each series, and the parts that share one.
    let (mut from, mut sharing) = (Vec::new(), BTreeSet::new());
    for (of, part) in parts.iter_mut().enumerate() {
        let measurements = mem::take(&mut part.report.measurements).into_iter();
        let lengths = part.merged.batch_ns.iter().copied().chain(std::iter::repeat(None));
        for series in measurements.zip(lengths).map(|(m, batch_ns)| MergeSeries { m, batch_ns }) {
            let m = &series.m;
            let alike = known.entry((m.probe.clone(), m.revision, m.params.clone())).or_default();
            match alike.iter().copied().find(|at| all[*at].is_compatible(&series)) {
                Some(at) => {
                    all[at].add_series(series)?;
                    sharing.extend((from[at] != of).then_some([from[at], of]).into_iter().flatten());
                }
                None => {
                    alike.push(all.len());
                    all.push(series);
                    from.push(of);
                }
            }
        }
    }
    if let Some(alone) = (0..parts.len()).find(|of| !sharing.contains(of)) {
        return Err(MergeError::NothingInCommon(parts[alone].name.clone()));
    }
    all.sort_by_key(|series| series.m.rounds.iter().filter_map(|round| round.run).min());
    Ok(all)
}

impl MergeSeries {
    /// Returns true if the samples of both, which are of the same point, can be counted together. What was not measured
    /// goes with what was.
    fn is_compatible(&self, other: &MergeSeries) -> bool {
        let [a, b] = [&self.m, &other.m];
        let is_batch = |m: &Measurement| m.sampling != Sampling::Event;
        let is_alike = || {
            (a.times, is_batch(a), self.batch_ns) == (b.times, is_batch(b), other.batch_ns)
                && (a.histogram.tick_ps(), a.histogram.bins()) == (b.histogram.tick_ps(), b.histogram.bins())
        };
        a.summary.count == 0 || b.summary.count == 0 || is_alike()
    }

    fn add_series(&mut self, other: MergeSeries) -> Result<(), MergeError> {
        if self.m.summary.count.saturating_add(other.m.summary.count) > LARGEST {
            return Err(MergeError::TooMany(other.m.title));
        }
        if self.m.summary.count == 0 {
            self.batch_ns = other.batch_ns;
        }
        self.m.add_runs(other.m);
        Ok(())
    }
}

/// Adds what is known of another result beside its points, and returns its machine.
fn add_head(whole: &mut Report, other: Report) -> Machine {
    whole.labels.retain(|name, value| other.labels.get(name) == Some(value));
    let mut known: BTreeSet<Warning> = whole.warnings.iter().cloned().collect();
    whole.warnings.extend(other.warnings.into_iter().filter(|warning| known.insert(warning.clone())));
    add_known(&mut whole.activity, other.activity.as_ref(), Account::add_account);
    whole.imported =
        whole.imported.take().zip(other.imported).and_then(|(one, other)| one.combine_with(other));
    add_plan(&mut whole.plan, other.plan);
    other.machine
}

/// Adds the points that only the other plan has.
fn add_plan(plan: &mut Plan, other: Plan) {
    if plan.job != other.job {
        plan.job = "merged".to_owned();
    }
    if plan.load != other.load {
        plan.load = None;
    }
    let known: BTreeSet<_> = plan.steps.iter().flat_map(|step| &step.points).cloned().map(identity).collect();
    for step in other.steps {
        let points: Vec<_> = step
            .points
            .iter()
            .filter(|point| !known.contains(&identity((*point).clone())))
            .cloned()
            .collect();
        if !points.is_empty() {
            plan.steps.push(PlanStep { points, ..step });
        }
    }
    let mut known: BTreeSet<_> = plan.notes.iter().cloned().collect();
    plan.notes.extend(other.notes.into_iter().filter(|note| known.insert(note.clone())));
}

/// Probe, revision and parameters of a point.
type PointIdentity = (String, u32, latscope_core::plan::Params);

fn identity(point: latscope_core::plan::MeasurementPoint) -> PointIdentity {
    (point.probe, point.revision, point.params)
}

/// Facts on a machine that differ from run to run, and are those of the first.
const OF_THE_MOMENT: [&str; 4] = ["checks", "clock", "load_average", "memory_available"];

/// The facts that all machines share; others are unknown.
fn common_machine(machines: &[Machine]) -> Machine {
    let value = |machine: &Machine| serde_json::to_value(machine).unwrap_or_default();
    let unknown = value(&Machine::default());
    let mut shared = value(&machines[0]);
    for other in machines[1..].iter().map(value) {
        let facts = shared.as_object_mut().into_iter().flatten();
        for (name, fact) in facts.filter(|(name, _)| !OF_THE_MOMENT.contains(&name.as_str())) {
            if other[name.as_str()] != *fact {
                *fact = unknown[name.as_str()].clone();
            }
        }
    }
    serde_json::from_value(shared).unwrap_or_default()
}

/// The facts in which runs differ. What a run does not record is no difference, but for labels.
fn differing_facts(runs: &[MergedRun]) -> Vec<Differing> {
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.facts.keys()).collect();
    let mut differing = Vec::new();
    for name in names {
        let mut values: BTreeMap<String, u32> = BTreeMap::new();
        for run in runs {
            match run.facts.get(name) {
                Some(value) => *values.entry(value.clone()).or_default() += 1,
                None if name.starts_with(LABEL) => *values.entry("none".to_owned()).or_default() += 1,
                None => {}
            }
        }
        if values.len() > 1 {
            differing.push(Differing { what: name.clone(), values });
        }
    }
    differing
}

#[cfg(test)]
mod tests;
