//! How long a run will still take: what is planned of the rest, scaled by what was taken so far. Of a step that was
//! measured in an earlier round that is known better than any plan says.

use humantime::format_duration;
use latscope_core::plan::{ParamValue, Plan, Point, Step};
use std::time::{Duration, Instant};

/// What steps take beside their points, s: a worker is started, and ends.
const WORKER: f64 = 0.015;

/// The part of its budget that a point uses: some have enough samples before.
const USED: f64 = 0.55;

/// What a point takes beside its budget, s, where that is more: buffers to fill, processes with memory, CPUs to be kept
/// awake first. Measured on a virtual machine with two CPUs; on others the scale makes up for it.
const BEFORE: [(&str, f64); 11] = [
    ("memory.stream", 0.17),
    ("sync.core-to-core", 0.15),
    ("thread.pool", 0.08),
    ("memory.loaded", 0.08),
    ("memory.parallelism", 0.07),
    ("process.fork", 0.05),
    ("wake.timer", 0.05),
    ("memory.latency", 0.018),
    ("remote", 0.02),
    ("sync.atomic", 0.02),
    ("sync.hand-off", 0.02),
];

/// How much the plan weighs against what was taken, s.
const TRUST: f64 = 5.0;

/// The weight of the last round against those before.
const LAST: f64 = 0.4;

/// How long a step of a round is planned to take, s; `None` if it ends by what happens, or never.
fn planned(step: &Step) -> Option<f64> {
    let stop = &step.stop;
    let limited = |ns: u64| (ns != u64::MAX).then_some(ns as f64 / 1e9);
    let before = BEFORE.iter().find(|(name, _)| *name == step.name).map_or(0.0, |(_, before)| *before);
    let points = step.points.len() as f64;
    // Threads and callers run at the same time; a remote, and payloads, are measured one after the other.
    let in_turn = |point: &Point| point.params.get("mode") == Some(&"throughput".into());
    if step.periodic.is_some() && step.name != "remote" && !step.points.iter().any(in_turn) {
        let interval = step.points.iter().filter_map(|point| match point.params.get("interval") {
            Some(ParamValue::Number(ns)) => Some(*ns as f64 / 1e9),
            _ => None,
        });
        let events = (stop.events != u64::MAX).then_some(stop.events as f64);
        let counted = interval.reduce(f64::max).zip(events).map(|(interval, events)| interval * events);
        let once = limited(stop.limit_ns).into_iter().chain(counted).reduce(f64::min);
        return Some(WORKER + points * before + once.or(limited(stop.budget_ns))?);
    }
    let point = [stop.budget_ns, stop.limit_ns].into_iter().filter_map(limited).reduce(f64::min)?;
    let used = if stop.samples == u64::MAX { 1.0 } else { USED };
    Some(WORKER + points * (used * point + before))
}

/// How long a plan is expected to take, all rounds of all steps; `None` where it does not say.
pub fn expected(plan: &Plan) -> Option<Duration> {
    let steps = plan.schedule().into_iter().map(|(round, index)| planned(&plan.steps[index].in_round(round)));
    Some(Duration::from_secs_f64(steps.sum::<Option<f64>>()?.min(1e9)))
}

/// How far a run is.
#[derive(Debug, Clone, Default)]
pub struct Remaining {
    /// Which step is measured when, and how long it is planned to take, s.
    schedule: Vec<(usize, Option<f64>)>,
    /// How long each step took in its last rounds, s.
    taken: Vec<Option<f64>>,
    /// How many of the schedule are over, and since when.
    done: usize,
    since: Option<Instant>,
    /// Of the steps that were measured for the first time, s: planned, and taken.
    first: (f64, f64),
}

impl Remaining {
    /// The run begins.
    pub fn of(plan: &Plan) -> Remaining {
        let planned = |(round, index): (u32, usize)| (index, planned(&plan.steps[index].in_round(round)));
        Remaining {
            schedule: plan.schedule().into_iter().map(planned).collect(),
            taken: vec![None; plan.steps.len()],
            since: Some(Instant::now()),
            ..Remaining::default()
        }
    }

    /// A step is over.
    pub fn closed(&mut self) {
        let took = self.since.replace(Instant::now()).map_or(0.0, |since| since.elapsed().as_secs_f64());
        self.took(took);
    }

    fn took(&mut self, took: f64) {
        let Some((step, planned)) = self.schedule.get(self.done).copied() else { return };
        self.done += 1;
        match &mut self.taken[step] {
            Some(before) => *before += LAST * (took - *before),
            first => {
                *first = Some(took);
                if let Some(planned) = planned {
                    self.first = (self.first.0 + planned, self.first.1 + took);
                }
            }
        }
    }

    /// How long the rest will take; `None` if nothing is known of a part of it.
    pub fn left(&self) -> Option<Duration> {
        let since = self.since.map_or(0.0, |since| since.elapsed().as_secs_f64());
        self.left_after(since)
    }

    /// The same when the present step has been measured for so long, s.
    fn left_after(&self, since: f64) -> Option<Duration> {
        let scale = (self.first.1 + TRUST) / (self.first.0 + TRUST);
        let one = |(step, planned): &(usize, Option<f64>)| {
            self.taken[*step].or_else(|| planned.map(|planned| planned * scale))
        };
        let (present, rest) = self.schedule.get(self.done..)?.split_first()?;
        let present = (one(present)? - since).max(0.0);
        let rest = rest.iter().map(one).sum::<Option<f64>>()?;
        Some(Duration::from_secs_f64((present + rest).min(1e9)))
    }
}

/// A duration as people say it: whole seconds, minutes from an hour on.
pub fn about(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    let step = if seconds >= 3600 { 60 } else { 1 };
    format!("about {}", format_duration(Duration::from_secs((seconds / step * step).max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schedule: &[(usize, Option<f64>)]) -> Remaining {
        let steps = schedule.iter().map(|(step, _)| step + 1).max().unwrap_or(0);
        Remaining { schedule: schedule.to_vec(), taken: vec![None; steps], ..Remaining::default() }
    }

    fn seconds(remaining: &Remaining, since: f64) -> Option<f64> {
        remaining.left_after(since).map(|left| (left.as_secs_f64() * 1e3).round() / 1e3)
    }

    #[test]
    fn the_plan_is_scaled_by_what_was_taken_and_rounds_by_those_before() {
        let mut remaining = of(&[(0, Some(2.0)), (1, Some(4.0)), (0, Some(2.0)), (1, Some(4.0))]);
        assert_eq!(seconds(&remaining, 0.0), Some(12.0));
        assert_eq!(seconds(&remaining, 1.5), Some(10.5));
        // As long as it lasts, it does not take time from the others.
        assert_eq!(seconds(&remaining, 100.0), Some(10.0));
        remaining.took(6.0);
        // Three times as long, with the weight of the plan: (6 + 5) / (2 + 5).
        assert_eq!(seconds(&remaining, 0.0), Some(18.571));
        remaining.took(4.0);
        assert_eq!(seconds(&remaining, 0.0), Some(6.0 + 4.0));
        remaining.took(1.0);
        assert_eq!(seconds(&remaining, 0.0), Some(4.0));
        remaining.took(4.0);
        assert_eq!(seconds(&remaining, 0.0), None);
        remaining.took(4.0);
    }

    #[test]
    fn what_never_ends_has_no_end() {
        let mut remaining = of(&[(0, None), (1, Some(1.0)), (0, None)]);
        assert_eq!(seconds(&remaining, 0.0), None);
        remaining.took(1.0);
        assert_eq!(seconds(&remaining, 0.0), Some(2.0), "it is known now");
    }

    #[test]
    fn durations_are_rounded_for_people() {
        assert_eq!(about(Duration::from_millis(150_400)), "about 2m 30s");
        assert_eq!(about(Duration::from_secs(7_325)), "about 2h 2m");
        assert_eq!(about(Duration::from_millis(3)), "about 1s");
    }
}
