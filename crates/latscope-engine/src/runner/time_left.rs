//! The time of a whole run: what of its rounds is left out on a machine on which it takes too long.

use super::Coordinator;
use crate::remaining::RunTimeEstimate;
use latscope_core::histogram::Histogram;
use latscope_core::plan::{MeasurementPoint, Plan, PlanStep};
use latscope_core::quality::{NO_TIME, QualityLevel, Reason};
use latscope_core::report::{Measurement, Sampling, Semantics, Warning};
use latscope_core::units::count_with_noun;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Id of the warning, and of the reason of each row, that rounds were left out.
const LEFT_OUT: &str = "rounds-left-out";

/// Time of a run, and the steps that are left out of its later rounds.
pub(super) struct TimeLeft {
    /// Time for the run; `None` without a limit.
    budget: Option<Duration>,
    /// True if each step is measured once.
    single: bool,
    since: Instant,
    remaining: RunTimeEstimate,
    /// Rounds that each step has had.
    rounds: Vec<u32>,
    /// Rounds that a step had had when its others were left out.
    left_out: BTreeMap<usize, u32>,
}

impl TimeLeft {
    pub(super) fn for_plan(plan: &Plan, setup: impl Fn(&str, usize) -> f64) -> TimeLeft {
        TimeLeft {
            budget: plan.budget_ns.map(Duration::from_nanos),
            single: plan.rounds <= 1,
            since: Instant::now(),
            remaining: RunTimeEstimate::for_plan(plan, setup),
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
        let time = budget.saturating_sub(self.since.elapsed());
        let later = self.remaining.leave_out(time.as_secs_f64());
        // There are no later rounds of one: what has not begun in time is left out as a whole.
        let rest = if self.single && time.is_zero() { 0..self.rounds.len() } else { 0..0 };
        let unmeasured: Vec<usize> = rest.filter(|index| self.rounds[*index] == 0).collect();
        for index in later.into_iter().chain(unmeasured) {
            self.left_out.insert(index, self.rounds[index]);
        }
    }

    /// Warning that names the steps whose rounds were left out; `None` without any.
    fn warning(&self, steps: &[PlanStep]) -> Option<Warning> {
        let budget = self.budget?;
        let mut names: Vec<&str> = self.left_out.keys().map(|index| steps[*index].name.as_str()).collect();
        names.dedup();
        if self.single {
            let left_out = count_with_noun(self.left_out.len() as u64, "step");
            let text = format!("the {} s of the run were over: {left_out} not begun", budget.as_secs());
            let remedy = Some("measure on a quieter machine, or a family at a time".to_owned());
            return (!names.is_empty()).then(|| Warning { id: LEFT_OUT.to_owned(), text, remedy });
        }
        let text = format!(
            "the run would have taken more than its {} s: later rounds of {} were left out, those first that took \
             longest beyond their plan ({})",
            budget.as_secs(),
            count_with_noun(self.left_out.len() as u64, "step"),
            names.join(", ")
        );
        let remedy = Some("measure on a quieter machine, or ask for --rounds".to_owned());
        (!names.is_empty()).then(|| Warning { id: LEFT_OUT.to_owned(), text, remedy })
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

    #[test]
    fn a_run_without_time_leaves_out_the_rest_of_what_was_measured_once() {
        let plan = plan(Some(0));
        let mut time = TimeLeft::for_plan(&plan, |_, _| 0.0);
        let mut measured = vec![0; plan.steps.len()];
        for (_, index) in plan.schedule() {
            if !time.is_left_out(index) {
                measured[index] += 1;
                time.finish_step(index);
            }
        }
        assert_eq!(measured, [1, 1], "each row is measured once, whatever the time");
        let warning = time.warning(&plan.steps).expect("a warning");
        assert_eq!(warning.id, LEFT_OUT);
        assert!(
            warning.text.contains("later rounds of 2 steps were left out") && warning.text.contains("(a, b)")
        );
    }

    #[test]
    fn a_single_round_without_time_leaves_out_what_has_not_begun() {
        let plan = Plan { budget_ns: Some(0), ..plan(None).in_rounds(1) };
        let mut time = TimeLeft::for_plan(&plan, |_, _| 0.0);
        assert!(!time.is_left_out(0) && !time.is_left_out(1));
        time.finish_step(0);
        assert_eq!((time.is_left_out(0), time.is_left_out(1)), (false, true));
        assert!(time.warning(&plan.steps).expect("a warning").text.ends_with("1 step not begun"));
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
        let mut time = TimeLeft::for_plan(&plan, |_, _| 0.0);
        for (_, index) in plan.schedule() {
            assert!(!time.is_left_out(index));
            time.finish_step(index);
        }
        assert_eq!(time.warning(&plan.steps), None);
    }
}
