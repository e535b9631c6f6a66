//! Request and machine to plan: pure.

use latscope_bench::probe::{Cpus, Experiment, PlanInput, Probe, Registry, SurveyProfile};
use latscope_core::machine::{CoreKind, Machine};
use latscope_core::param;
use latscope_core::plan::{
    BackgroundLoad, Conditions, KIND, MeasurementPoint, OnThreshold, ParamValue, Params, Periodic, Plan,
    PlanStep,
};
use latscope_core::units::count_with_noun;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Request for a run as a whole.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// `survey`, or a family's name.
    pub job: String,
    /// Omissions: what is left out of the usual, and why.
    pub notes: Vec<String>,
    /// For the planning of probes.
    pub input: PlanInput,
    /// CPUs to measure on, in this order; empty to let the planner choose.
    pub cpus: Vec<u32>,
    /// Seed of permutations and random data.
    pub seed: u64,
    /// Clean samples wanted for each point, instead of the profile's.
    pub count: Option<u64>,
    /// Time for each point, ns, instead of the profile's.
    pub duration: Option<u64>,
    /// Load beside the measurement.
    pub load: Option<BackgroundLoad>,
    /// File for the time line.
    pub timeline: Option<PathBuf>,
    /// Settings of periodic threads; `None` for those of the survey.
    pub periodic: Option<Periodic>,
    /// Treatment of events above the threshold.
    pub on_threshold: Option<OnThreshold>,
    /// Number of rounds in which each point is measured, seconds apart.
    pub rounds: u32,
    /// True if the user requested the number of rounds: then no step has fewer.
    pub rounds_asked: bool,
    /// Conditions that the machine is set to for periodic threads.
    pub conditions: Conditions,
}

impl RunRequest {
    /// A request for no more than `input`.
    pub fn new(job: &str, input: PlanInput) -> RunRequest {
        RunRequest { job: job.to_owned(), input, seed: 1, rounds: 1, ..RunRequest::default() }
    }
}

/// The plan to measure `probes` as asked on `machine`.
pub fn plan_probes(
    registry: &Registry,
    probes: &[&'static Probe],
    request: &RunRequest,
    machine: &Machine,
) -> Plan {
    let mut groups: Vec<(&'static Experiment, Option<PathBuf>, Vec<MeasurementPoint>)> = Vec::new();
    let chosen = on_chosen_cpus(request, machine);
    // All pairs of many CPUs are too many points to compare each with each.
    let mut planned: BTreeSet<(String, Params, String)> = BTreeSet::new();
    for probe in probes {
        let machine = if probe.experiment.cpus == Cpus::All { &chosen } else { machine };
        for point in probe.plan(&request.input, machine) {
            // A point of one probe may also be planned with those of another.
            if !planned.insert((point.probe.clone(), point.params.clone(), point.title.clone())) {
                continue;
            }
            let directory = directory(probe.experiment, &point);
            let same = |group: &&mut (&'static Experiment, Option<PathBuf>, Vec<MeasurementPoint>)| {
                std::ptr::eq(group.0, probe.experiment) && group.1 == directory
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.2.push(point),
                None => groups.push((probe.experiment, directory, vec![point])),
            }
        }
    }
    let cpus = if request.cpus.is_empty() { preferred(&machine.allowed.0) } else { request.cpus.clone() };
    let mut steps: Vec<PlanStep> = groups
        .into_iter()
        .map(|(experiment, scratch_in, points)| {
            let number = match experiment.cpus {
                Cpus::One => 1,
                Cpus::Two => 2,
                Cpus::All => cpus.len(),
            };
            let cpus = cpus.iter().copied().take(number).collect();
            PlanStep {
                conditions: Conditions { scratch_in, ..request.conditions.clone() },
                periodic: request.periodic.clone(),
                seed: request.seed,
                ..PlanStep::new(experiment.name, points, cpus, stop_conditions(request))
            }
        })
        .collect();
    // A quick survey has no time for them.
    let quick = request.input.profile == SurveyProfile::Quick;
    if request.input.survey && !quick && request.cpus.is_empty() {
        steps.extend(of_kinds(registry, &steps, machine));
    }
    for step in &mut steps {
        if let Some(experiment) = registry.experiment(&step.name) {
            (experiment.adapt)(step, &request.input);
        }
    }
    if request.input.survey && request.input.profile == SurveyProfile::Normal {
        steps.iter_mut().for_each(with_less_for_each_of_many);
    }
    let plan = Plan { budget_ns: budget(request), ..of_steps(steps, request, machine) };
    if request.input.survey && !request.rounds_asked {
        with_fewer_rounds(plan, |step| {
            let fewer = registry.experiment(step)?.fewer_rounds?;
            let quick = request.input.profile == SurveyProfile::Quick;
            Some((if quick { 1 } else { fewer.usual }, fewer.reason))
        })
    } else {
        plan
    }
}

/// Points of a step that are so many that a survey takes less time for each: those of a curve support each other.
const MANY: usize = 30;

/// Halves the batches, and the time for each point, of a step that has many. The number of samples stays.
fn with_less_for_each_of_many(step: &mut PlanStep) {
    if step.points.len() >= MANY {
        for whole in [&mut step.stop.batch_ns, &mut step.stop.budget_ns] {
            *whole = if *whole == u64::MAX { u64::MAX } else { *whole / 2 };
        }
    }
}

/// Time for a survey of any machine, however busy, ns: half as much again as it takes on a quiet one. `None` where the
/// user chose the rounds, samples or time, or all that there is.
fn budget(request: &RunRequest) -> Option<u64> {
    let chosen = request.rounds_asked || request.count.is_some() || request.duration.is_some();
    match request.input.profile {
        _ if chosen || !request.input.survey || request.job != "survey" => None,
        SurveyProfile::Quick => Some(15_000_000_000),
        SurveyProfile::Normal => Some(75_000_000_000),
        SurveyProfile::Full => None,
    }
}

/// Returns the machine with no more CPUs than the request chose: an experiment that takes all CPUs has no points of
/// others.
fn on_chosen_cpus(request: &RunRequest, machine: &Machine) -> Machine {
    let mut chosen = machine.clone();
    if !request.cpus.is_empty() {
        chosen.allowed.0.retain(|cpu| request.cpus.contains(cpu));
    }
    chosen
}

/// Steps with the rows that a survey has of each kind of core; none where all cores are alike.
fn of_kinds(registry: &Registry, steps: &[PlanStep], machine: &Machine) -> Vec<PlanStep> {
    let last =
        |kind: &CoreKind| kind.cpus.0.iter().rev().find(|cpu| machine.allowed.0.contains(cpu)).copied();
    let kinds: Vec<(&CoreKind, u32)> =
        machine.kinds.iter().filter_map(|kind| Some((kind, last(kind)?))).collect();
    if kinds.len() < 2 {
        return Vec::new();
    }
    let mut of_kinds = Vec::new();
    for (kind, cpu) in kinds {
        for step in steps {
            let Some(chosen) = registry.experiment(&step.name).and_then(|experiment| experiment.per_kind)
            else {
                continue;
            };
            let points = step.points.iter().filter(|point| chosen(point));
            let points: Vec<MeasurementPoint> = points.map(|point| on_kind(point, kind, cpu)).collect();
            if !points.is_empty() {
                of_kinds.push(PlanStep { points, cpus: vec![cpu], ..step.clone() });
            }
        }
    }
    of_kinds
}

/// The row of a point on a CPU of this kind.
fn on_kind(point: &MeasurementPoint, kind: &CoreKind, cpu: u32) -> MeasurementPoint {
    let mut point = point.clone();
    point.params.insert(KIND.to_owned(), kind.name.as_str().into());
    point.title = format!("{}, {} (CPU {cpu})", point.title, kind.name);
    point.row = true;
    point
}

/// The plan of these steps: their order is kept, and of `request` only what concerns the run as a whole matters.
pub fn of_steps(steps: Vec<PlanStep>, request: &RunRequest, machine: &Machine) -> Plan {
    let plan = Plan {
        load: request.load.clone(),
        timeline: request.timeline.clone(),
        on_threshold: request.on_threshold.clone(),
        notes: request.notes.clone(),
        ..Plan::new(&request.job, steps, machine.allowed.clone())
    };
    plan.in_rounds(request.rounds)
}

/// A survey's plan in which steps that are dear to set up have fewer rounds, with a note of them.
fn with_fewer_rounds(mut plan: Plan, fewer: impl Fn(&str) -> Option<(u32, &'static str)>) -> Plan {
    let mut said: Vec<(u32, &str, Vec<&str>)> = Vec::new();
    for step in &mut plan.steps {
        let Some((rounds, why)) = fewer(&step.name).filter(|(rounds, _)| *rounds < step.rounds) else {
            continue;
        };
        step.rounds = rounds;
        match said.iter_mut().find(|(known, reason, _)| (*known, *reason) == (rounds, why)) {
            // The steps of other kinds of cores have the same name.
            Some((_, _, steps)) if steps.contains(&step.name.as_str()) => {}
            Some((_, _, steps)) => steps.push(&step.name),
            None => said.push((rounds, why, vec![&step.name])),
        }
    }
    let note = |(rounds, why, steps): (u32, &str, Vec<&str>)| {
        format!(
            "{} in {} of {}: {why}",
            steps.join(", "),
            count_with_noun(rounds.into(), "round"),
            plan.rounds
        )
    };
    let notes: Vec<String> = said.into_iter().map(note).collect();
    plan.notes.extend(notes);
    plan
}

/// Directory for the files of a point; `None` if its experiment uses no files.
fn directory(experiment: &Experiment, point: &MeasurementPoint) -> Option<PathBuf> {
    let asked = point.params.get(param::DIRECTORY).and_then(ParamValue::as_text);
    experiment.scratch.then(|| asked.map_or_else(std::env::temp_dir, PathBuf::from))
}

/// The last CPU first: the first ones get most interrupts.
fn preferred(allowed: &[u32]) -> Vec<u32> {
    allowed.iter().rev().copied().collect()
}

fn stop_conditions(request: &RunRequest) -> latscope_core::plan::Stop {
    let mut stop = request.input.profile.stop_conditions();
    if request.timeline.is_some() {
        // A time line is read by eyes: a few hundred events of each point tell all.
        (stop.samples, stop.events) = (stop.samples.min(10), stop.events.min(200));
        stop.budget_ns = stop.budget_ns.min(20_000_000);
    }
    if let Some(count) = request.count {
        (stop.samples, stop.events, stop.budget_ns) = (count, count, u64::MAX);
        stop.limit_ns = u64::MAX;
    }
    if let Some(duration) = request.duration {
        stop.limit_ns = duration;
        stop.budget_ns = duration;
        if request.count.is_none() {
            (stop.samples, stop.events) = (u64::MAX, u64::MAX);
        }
    }
    stop
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> RunRequest {
        RunRequest::new("survey", PlanInput { survey: true, ..PlanInput::default() })
    }

    #[test]
    fn a_survey_has_a_budget_unless_the_user_chose_its_extent() {
        let survey = request();
        assert_eq!(budget(&survey), Some(75_000_000_000));
        assert_eq!(budget(&RunRequest { rounds_asked: true, ..survey.clone() }), None);
        assert_eq!(budget(&RunRequest { count: Some(5), ..survey.clone() }), None);
        assert_eq!(budget(&RunRequest { job: "memory".to_owned(), ..survey }), None);
        assert_eq!(budget(&RunRequest::new("survey", PlanInput::default())), None);
    }

    #[test]
    fn a_count_replaces_the_limits_of_time() {
        let counted = stop_conditions(&RunRequest { count: Some(7), ..request() });
        assert_eq!((counted.samples, counted.events, counted.limit_ns), (7, 7, u64::MAX));
        let timed = stop_conditions(&RunRequest { duration: Some(5), ..request() });
        assert_eq!((timed.samples, timed.limit_ns), (u64::MAX, 5));
    }
}
