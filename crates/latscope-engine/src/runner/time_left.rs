//! The time of a whole run: what of its rounds is left out on a machine on which it takes too long.

use super::Coordinator;
use crate::remaining::RunTimeEstimate;
use latscope_core::histogram::Histogram;
use latscope_core::plan::{MeasurementPoint, Plan, PlanStep};
use latscope_core::quality::{NO_TIME, QualityLevel, Reason};
use latscope_core::report::{Measurement, Sampling, Semantics, Warning};
use latscope_core::units::count_with_noun;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Id of the warning, and of the reason of each row, that rounds were left out.
const LEFT_OUT: &str = "rounds-left-out";

/// Time for the end of a run on a busy machine: the figures are derived, judged and saved.
const END: Duration = Duration::from_millis(1500);

/// Most steps that the warning names. Each row of a step has the reason.
const MOST_NAMES: usize = 6;

/// Time of a run, and the steps that are left out of its later rounds.
pub(super) struct TimeLeft {
    /// Time for the run; `None` without a limit.
    budget: Option<Duration>,
    since: Instant,
    remaining: RunTimeEstimate,
    /// Steps that are measured once, whatever the time.
    kept: BTreeSet<usize>,
    /// Rounds that each step has had.
    rounds: Vec<u32>,
    /// Rounds that a step had had when its others were left out.
    left_out: BTreeMap<usize, u32>,
}

impl TimeLeft {
    pub(super) fn for_plan(
        plan: &Plan,
        setup: impl Fn(&str, usize) -> f64,
        is_kept: impl Fn(&PlanStep) -> bool,
    ) -> TimeLeft {
        let kept = |(index, step): (usize, &PlanStep)| is_kept(step).then_some(index);
        TimeLeft {
            budget: plan.budget_ns.map(Duration::from_nanos),
            since: Instant::now(),
            remaining: RunTimeEstimate::for_plan(plan, setup),
            kept: plan.steps.iter().enumerate().filter_map(kept).collect(),
            rounds: vec![0; plan.steps.len()],
            left_out: BTreeMap::new(),
        }
    }

    /// Returns true if a step is left out of this round.
    pub(super) fn is_left_out(&self, index: usize) -> bool {
        self.left_out.contains_key(&index)
    }

    /// A step is over: chooses what is left out of the rest.
    pub(super) fn finish_step(&mut self, index: usize) {
        self.rounds[index] += 1;
        self.remaining.finish_step();
        let Some(budget) = self.budget else { return };
        let time = budget.saturating_sub(END + self.since.elapsed()).as_secs_f64();
        let mut left_out = self.remaining.leave_out_rounds(time);
        left_out.extend(self.remaining.leave_out_steps(time, |step| self.kept.contains(&step)));
        self.left_out.extend(left_out.into_iter().map(|index| (index, self.rounds[index])));
    }

    /// Warning that names the steps whose rounds were left out; `None` without any.
    fn warning(&self, steps: &[PlanStep]) -> Option<Warning> {
        let budget = self.budget.filter(|_| !self.left_out.is_empty())?;
        let (without, shorter): (Vec<_>, Vec<_>) =
            self.left_out.iter().partition(|(_, rounds)| **rounds == 0);
        let named = |left_out: &[(&usize, &u32)]| {
            let mut names: Vec<&str> =
                left_out.iter().map(|(index, _)| steps[**index].name.as_str()).collect();
            names.dedup();
            let more = names.len().saturating_sub(MOST_NAMES);
            names.truncate(MOST_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{} ({}{more})", count_with_noun(left_out.len() as u64, "step"), names.join(", "))
        };
        let parts = [
            (!without.is_empty()).then(|| format!("{} had no turn", named(&without))),
            (!shorter.is_empty()).then(|| {
                format!(
                    "later rounds of {} were left out, those first that took longest beyond their plan",
                    named(&shorter)
                )
            }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let text =
            format!("the run would have taken more than its {} s: {}", budget.as_secs(), parts.join("; "));
        let remedy = Some("measure on a quieter machine, a family at a time, or ask for --rounds".to_owned());
        Some(Warning { id: LEFT_OUT.to_owned(), text, remedy })
    }
}

impl Coordinator<'_> {
    /// States for the run and its rows which rounds were left out.
    pub(super) fn state_left_out(&mut self, time: &TimeLeft) {
        for (index, rounds) in &time.left_out {
            if *rounds == 0 {
                let without = self.report.plan.steps[*index].points.iter().map(without_time).collect();
                self.insert_points(*index, without);
                continue;
            }
            let of = self.report.plan.steps[*index].rounds;
            let text = format!(
                "measured in {} of {of}: the run had no time for more",
                count_with_noun((*rounds).into(), "round")
            );
            let segment = self.segment(*index);
            for m in &mut self.report.measurements[segment] {
                m.lower(Reason::new(QualityLevel::Ok, LEFT_OUT, text.as_str(), ""));
                // The order of reasons is that of a reader of the saved result.
                m.derive_results();
            }
        }
        if let Some(warning) = time.warning(&self.report.plan.steps) {
            self.pass_on(warning);
        }
    }
}

/// A point that had no turn.
fn without_time(point: &MeasurementPoint) -> Measurement {
    let mut m =
        Measurement::from_samples(point.clone(), Sampling::Event, Semantics::Operation, Histogram::new(1000));
    m.lower(Reason::new(
        QualityLevel::Unsupported,
        NO_TIME,
        "the time of the run was over before its turn",
        "",
    ));
    m
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::Stop;

    fn plan(budget_ns: Option<u64>) -> Plan {
        let stop = Stop { samples: 100, budget_ns: 100_000_000, ..Stop::after_events(100, 400_000_000) };
        let steps = ["a", "b"].map(|name| PlanStep::new(name, Vec::new(), vec![0], stop));
        Plan { budget_ns, ..Plan::new("survey", steps.to_vec(), "0".parse().expect("a CPU")).in_rounds(4) }
    }

    fn measured(plan: &Plan, time: &mut TimeLeft) -> Vec<u32> {
        let mut measured = vec![0; plan.steps.len()];
        for (_, index) in plan.schedule() {
            if !time.is_left_out(index) {
                measured[index] += 1;
                time.finish_step(index);
            }
        }
        measured
    }

    #[test]
    fn a_run_without_time_keeps_one_round_of_what_is_on_the_first_screen() {
        let plan = plan(Some(0));
        let first = plan.schedule()[0].1;
        let mut time = TimeLeft::for_plan(&plan, |_, _| 0.0, |_| true);
        assert_eq!(measured(&plan, &mut time), [1, 1]);
        let warning = time.warning(&plan.steps).expect("a warning");
        assert_eq!(warning.id, LEFT_OUT);
        assert!(warning.text.contains("later rounds of 2 steps (a, b) were left out"), "{}", warning.text);
        assert!(!warning.text.contains("no turn"), "{}", warning.text);
        let mut time = TimeLeft::for_plan(&plan, |_, _| 0.0, |_| false);
        let only = measured(&plan, &mut time);
        assert_eq!((only[first], only[1 - first]), (1, 0));
        let text = time.warning(&plan.steps).expect("a warning").text;
        assert!(text.contains("1 step (") && text.contains(") had no turn"), "{text}");
        let m = without_time(&MeasurementPoint {
            probe: "cpu.add".to_owned(),
            revision: 1,
            params: Default::default(),
            title: String::new(),
            row: true,
        });
        assert_eq!((m.quality.level, m.quality.reasons[0].id.as_str()), (QualityLevel::Unsupported, NO_TIME));
    }

    #[test]
    fn a_run_without_a_limit_leaves_out_nothing() {
        let plan = plan(None);
        let mut time = TimeLeft::for_plan(&plan, |_, _| 0.0, |_| false);
        assert_eq!(measured(&plan, &mut time), [4, 4]);
        assert_eq!(time.warning(&plan.steps), None);
    }
}
