//! Remaining time of a run: the planned time of the rest, scaled by the time taken so far. For a step that was measured
//! in an earlier round the time of that round is used instead of a plan.

use humantime::format_duration;
use latscope_core::catalogue::families;
use latscope_core::param;
use latscope_core::plan::{MeasurementPoint, Plan, PlanStep, Stop};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Time of a step beside its points, s: a worker is started, and ends.
const WORKER: f64 = 0.015;

/// The part of its budget that a point uses: some have enough samples before.
const USED: f64 = 0.55;

/// Lookup of the time that a step takes beside the budgets of its points, s, by its name and their number.
pub type SetupCost = fn(&str, usize) -> f64;

/// Weight of the plan against the time taken, s.
const TRUST: f64 = 5.0;

/// The weight of the last round against those before.
const LAST: f64 = 0.4;

/// Time in which a thread is started on its CPU, s.
const STARTED: f64 = 50e-6;

/// Comparisons of a class of pairs at once and alone.
const COMPARED: usize = 12;

/// Planned time of the pairs of CPUs of which many are measured at once, in the rounds of a tournament, s.
fn of_all_pairs(pairs: &[&MeasurementPoint], stop: &Stop) -> f64 {
    let modes = different(pairs, param::MODE) as f64;
    let of_mode = pairs.len() as f64 / modes.max(1.0);
    // n CPUs have n (n - 1) / 2 pairs, in n - 1 rounds; of an odd number one CPU rests in each of n rounds.
    let cpus = ((1.0 + (1.0 + 8.0 * of_mode).sqrt()) / 2.0).round();
    let rounds = cpus - 1.0 + cpus % 2.0;
    let batches = stop.samples.clamp(1, 100) as f64 * stop.batch_ns as f64 / 1e9;
    let compared = (different(pairs, param::CLASS) * COMPARED) as f64;
    let at_once = batches + cpus * STARTED;
    let alone = batches + 2.0 * STARTED;
    modes * (rounds * at_once + compared * (at_once + alone))
}

/// Number of different values of a parameter.
fn different(points: &[&MeasurementPoint], param: &str) -> usize {
    let values: BTreeSet<String> =
        points.iter().filter_map(|point| point.params.get(param)).map(ToString::to_string).collect();
    values.len()
}

/// Planned time of a step of a round, s; `None` if the step ends by an event, or never.
fn planned(step: &PlanStep, round: u32, setup: impl Fn(&str, usize) -> f64) -> Option<f64> {
    let stop = &step.stop_in_round(round);
    let limited = |ns: u64| (ns != u64::MAX).then_some(ns as f64 / 1e9);
    let (pairs, alone): (Vec<&MeasurementPoint>, Vec<&MeasurementPoint>) =
        step.points.iter().partition(|point| point.params.contains_key(param::ALL_PAIRS));
    let before = setup(&step.name, alone.len());
    // Points of a CPU each are measured at the same time.
    let together = step.points.iter().all(|point| point.params.contains_key(param::CPU));
    let points = if together { 1.0 } else { alone.len() as f64 };
    // Threads and callers run at the same time; a remote, and payloads, are measured one after the other.
    let in_turn = |point: &MeasurementPoint| {
        families::of_probe(&point.probe) == families::REMOTE
            || point.params.get(param::MODE) == Some(&"throughput".into())
    };
    if step.periodic.is_some() && !step.points.iter().any(in_turn) {
        let intervals = step.points.iter().filter_map(|point| point.params.get(param::INTERVAL)?.as_number());
        let interval = intervals.map(|ns| ns as f64 / 1e9);
        let events = (stop.events != u64::MAX).then_some(stop.events as f64);
        let counted = interval.reduce(f64::max).zip(events).map(|(interval, events)| interval * events);
        let once = limited(stop.limit_ns).into_iter().chain(counted).reduce(f64::min);
        return Some(WORKER + before + once.or(limited(stop.budget_ns))?);
    }
    let point = [stop.budget_ns, stop.limit_ns].into_iter().filter_map(limited).reduce(f64::min)?;
    let used = if stop.samples == u64::MAX { 1.0 } else { USED };
    Some(WORKER + points * used * point + of_all_pairs(&pairs, stop) + before)
}

/// Expected time of a plan, all rounds of all steps; `None` if a step has no limit.
pub fn expected(plan: &Plan, setup: SetupCost) -> Option<Duration> {
    let steps = plan.schedule().into_iter().map(|(round, index)| planned(&plan.steps[index], round, setup));
    Some(Duration::from_secs_f64(steps.sum::<Option<f64>>()?.min(1e9)))
}

/// Progress of a run.
#[derive(Debug, Clone, Default)]
pub struct RunTimeEstimate {
    /// Schedule: the index of each step to measure, in order, and its planned time, s.
    schedule: Vec<(usize, Option<f64>)>,
    /// Time that each step took in its last rounds, s.
    taken: Vec<Option<f64>>,
    /// Number of entries of the schedule that are over; `since` is the time at which the last of them ended.
    done: usize,
    since: Option<Instant>,
    /// Time of the steps that were measured for the first time, s: planned, and taken.
    first: (f64, f64),
}

impl RunTimeEstimate {
    /// Starts the estimate at the beginning of the run.
    pub fn for_plan(plan: &Plan, setup: impl Fn(&str, usize) -> f64) -> RunTimeEstimate {
        let planned = |(round, index): (u32, usize)| (index, planned(&plan.steps[index], round, &setup));
        RunTimeEstimate {
            schedule: plan.schedule().into_iter().map(planned).collect(),
            taken: vec![None; plan.steps.len()],
            since: Some(Instant::now()),
            ..RunTimeEstimate::default()
        }
    }

    /// A step is over.
    pub fn finish_step(&mut self) {
        let took = self.since.replace(Instant::now()).map_or(0.0, |since| since.elapsed().as_secs_f64());
        self.record_time(took);
    }

    fn record_time(&mut self, took: f64) {
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

    /// Takes later rounds of steps out of the rest until it ends in `time`, s, and returns the steps: those first that
    /// took longest beyond their plan.
    pub fn leave_out_rounds(&mut self, time: f64) -> Vec<usize> {
        let mut out = Vec::new();
        while self.left_after(0.0).is_some_and(|left| left.as_secs_f64() > time) {
            let beyond = self.rest().filter_map(|(step, planned)| {
                Some((step, self.taken[step]? / planned.filter(|planned| *planned > 0.0)?))
            });
            let Some((worst, _)) = beyond.max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            self.remove(worst);
            out.push(worst);
        }
        out
    }

    /// Takes steps that were not measured yet out of the rest, and returns them: those whose plan takes longer than
    /// `time`, s, without that of the steps that are kept, of which each is expected to take as long as those before.
    pub fn leave_out_steps(&mut self, time: f64, is_kept: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut unmeasured: Vec<(usize, Option<f64>)> =
            self.rest().filter(|(step, _)| self.taken[*step].is_none()).collect();
        // Later rounds of a step follow its first.
        unmeasured.sort_by_key(|(step, _)| *step);
        unmeasured.dedup_by_key(|(step, _)| *step);
        let taken: Vec<f64> = self.taken.iter().copied().flatten().collect();
        let mean = taken.iter().sum::<f64>() / taken.len().max(1) as f64;
        let (kept, others): (Vec<_>, Vec<_>) = unmeasured.into_iter().partition(|(step, _)| is_kept(*step));
        let free = time - mean * kept.len() as f64;
        let is_longer =
            |(step, planned): (usize, Option<f64>)| (planned.unwrap_or(0.0) > free).then_some(step);
        let out: Vec<usize> = others.into_iter().filter_map(is_longer).collect();
        out.iter().for_each(|step| self.remove(*step));
        out
    }

    /// The entries of the schedule that have not begun.
    fn rest(&self) -> impl Iterator<Item = (usize, Option<f64>)> {
        self.schedule[self.done..].iter().copied()
    }

    /// Takes a step out of the rest.
    fn remove(&mut self, left_out: usize) {
        let mut at = 0;
        self.schedule.retain(|(step, _)| {
            at += 1;
            at <= self.done || *step != left_out
        });
    }

    /// Expected time of an entry of the schedule, s: what the step took before, or its plan, scaled.
    fn expected(&self, (step, planned): &(usize, Option<f64>)) -> Option<f64> {
        let scale = (self.first.1 + TRUST) / (self.first.0 + TRUST);
        self.taken[*step].or_else(|| planned.map(|planned| planned * scale))
    }

    /// Remaining time; `None` if the time of a part is not known.
    pub fn time_left(&self) -> Option<Duration> {
        let since = self.since.map_or(0.0, |since| since.elapsed().as_secs_f64());
        self.left_after(since)
    }

    /// Remaining time when the present step has been measured for `since`, s.
    fn left_after(&self, since: f64) -> Option<Duration> {
        let (present, rest) = self.schedule.get(self.done..)?.split_first()?;
        let present = (self.expected(present)? - since).max(0.0);
        let rest = rest.iter().map(|planned| self.expected(planned)).sum::<Option<f64>>()?;
        Some(Duration::from_secs_f64((present + rest).min(1e9)))
    }
}

/// A duration as people say it: whole seconds, minutes from an hour on.
pub fn format_approximate(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    let step = if seconds >= 3600 { 60 } else { 1 };
    format!("about {}", format_duration(Duration::from_secs((seconds / step * step).max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;

    fn of(schedule: &[(usize, Option<f64>)]) -> RunTimeEstimate {
        let steps = schedule.iter().map(|(step, _)| step + 1).max().unwrap_or(0);
        RunTimeEstimate {
            schedule: schedule.to_vec(),
            taken: vec![None; steps],
            ..RunTimeEstimate::default()
        }
    }

    fn seconds(remaining: &RunTimeEstimate, since: f64) -> Option<f64> {
        remaining.left_after(since).map(|left| (left.as_secs_f64() * 1e3).round() / 1e3)
    }

    #[test]
    fn the_plan_is_scaled_by_what_was_taken_and_rounds_by_those_before() {
        let mut remaining = of(&[(0, Some(2.0)), (1, Some(4.0)), (0, Some(2.0)), (1, Some(4.0))]);
        assert_eq!(seconds(&remaining, 0.0), Some(12.0));
        assert_eq!(seconds(&remaining, 1.5), Some(10.5));
        // As long as it lasts, it does not take time from the others.
        assert_eq!(seconds(&remaining, 100.0), Some(10.0));
        remaining.record_time(6.0);
        // Three times as long, with the weight of the plan: (6 + 5) / (2 + 5).
        assert_eq!(seconds(&remaining, 0.0), Some(18.571));
        remaining.record_time(4.0);
        assert_eq!(seconds(&remaining, 0.0), Some(6.0 + 4.0));
        remaining.record_time(1.0);
        assert_eq!(seconds(&remaining, 0.0), Some(4.0));
        remaining.record_time(4.0);
        assert_eq!(seconds(&remaining, 0.0), None);
        remaining.record_time(4.0);
    }

    #[test]
    fn what_took_longest_beyond_its_plan_is_left_out_first_and_all_is_measured_once() {
        let round = [(0, Some(1.0)), (1, Some(1.0)), (2, Some(1.0))];
        let mut remaining = of(&[round, round, round].concat());
        remaining.record_time(1.0);
        remaining.record_time(5.0);
        // 1 s of the first in two rounds each, 5 s of the second in two, and the third.
        assert_eq!(remaining.leave_out_rounds(100.0), [0; 0]);
        assert_eq!(remaining.leave_out_rounds(9.0), [1]);
        let left: Vec<usize> = remaining.schedule[remaining.done..].iter().map(|(step, _)| *step).collect();
        assert_eq!(left, [2, 0, 2, 0, 2]);
        assert_eq!(remaining.leave_out_rounds(0.0), [0]);
        let left: Vec<usize> = remaining.schedule[remaining.done..].iter().map(|(step, _)| *step).collect();
        assert_eq!(left, [2, 2, 2], "what was not measured yet stays");
        assert_eq!(remaining.leave_out_rounds(0.0), [0; 0]);
    }

    #[test]
    fn what_is_not_measured_yet_is_left_out_if_it_takes_longer_than_what_is_kept_leaves() {
        let mut remaining =
            of(&[(0, Some(1.0)), (1, Some(2.0)), (2, Some(9.0)), (3, Some(3.0)), (3, Some(3.0))]);
        remaining.record_time(4.0);
        assert_eq!(remaining.leave_out_steps(7.0, |step| step == 2), [0; 0]);
        assert_eq!(remaining.leave_out_steps(6.5, |step| step == 2), [3]);
        assert_eq!(remaining.leave_out_steps(0.0, |step| step == 2), [1]);
        assert_eq!(remaining.schedule[remaining.done..], [(2, Some(9.0))]);
        assert_eq!(remaining.leave_out_steps(0.0, |_| false), [2]);
    }

    #[test]
    fn what_never_ends_has_no_end() {
        let mut remaining = of(&[(0, None), (1, Some(1.0)), (0, None)]);
        assert_eq!(seconds(&remaining, 0.0), None);
        remaining.record_time(1.0);
        assert_eq!(seconds(&remaining, 0.0), Some(2.0), "it is known now");
    }

    #[test]
    fn all_pairs_take_as_long_as_the_rounds_in_which_they_are_measured() {
        let stop = Stop { samples: 100, batch_ns: 250_000, ..Stop::after_events(0, 0) };
        let pairs = |cpus: usize| -> f64 {
            let params = params([("mode", "cas".into()), ("class", "same node".into())]);
            let pair = MeasurementPoint {
                probe: String::new(),
                revision: 1,
                params,
                title: String::new(),
                row: false,
            };
            of_all_pairs(&vec![&pair; cpus * (cpus - 1) / 2], &stop)
        };
        assert_eq!(of_all_pairs(&[], &stop), 0.0);
        // Three rounds of two pairs, and twelve comparisons at once and alone.
        assert!((pairs(4) - (15.0 * (0.025 + 4.0 * STARTED) + 12.0 * (0.025 + 2.0 * STARTED))).abs() < 1e-9);
        // One of three CPUs rests in each of three rounds.
        assert!((pairs(3) - (15.0 * (0.025 + 3.0 * STARTED) + 12.0 * (0.025 + 2.0 * STARTED))).abs() < 1e-9);
        // 1,023 rounds, not 523,776 pairs one after the other.
        assert!(pairs(1024) < 1200.0 * 0.025 + 1200.0 * 1024.0 * STARTED);
    }

    #[test]
    fn durations_are_rounded_for_people() {
        assert_eq!(format_approximate(Duration::from_millis(150_400)), "about 2m 30s");
        assert_eq!(format_approximate(Duration::from_secs(7_325)), "about 2h 2m");
        assert_eq!(format_approximate(Duration::from_millis(3)), "about 1s");
    }
}
