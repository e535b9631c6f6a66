//! `latscope noise`: time stolen from a busy loop, and whether that is too much.

use super::criteria::Criteria;
use super::family::{self, FamilyArguments};
use super::live::LiveArguments;
use super::measure::Measures;
use super::options::{Dynamic, RunArguments};
use super::outliers::OutlierArguments;
use anyhow::Result;
use clap::Args;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{Plan, PlanStep};
use latscope_core::units::format_time;
use latscope_engine::observers::Observer;
use latscope_engine::planner::RunRequest;
use latscope_judge::verdict::MetricCriterion;
use latscope_probes::noise::Duty;

// The options of the family, and what is asked of a result.
#[derive(Debug, Args)]
#[command(
    mut_arg("count", |arg| arg.help("Gaps on each CPU, after which it ends")),
    mut_arg("duration", |arg| arg.help("Time of the run [default: 3s]")),
    mut_arg("threshold", |arg| arg.help("A gap longer than this is an outlier: traced, explained, acted upon"))
)]
pub struct NoiseArguments {
    #[command(flatten)]
    family: FamilyArguments,
    #[command(flatten)]
    live: LiveArguments,
    #[command(flatten, next_help_heading = "Outliers")]
    outliers: OutlierArguments,
    #[command(flatten)]
    criteria: Dynamic<Criteria<false>>,
}

impl Measures for NoiseArguments {
    const IN_FULL: bool = true;

    fn run_arguments(&self) -> &RunArguments {
        &self.family.run
    }

    fn plan(&self, machine: &Machine) -> Result<Plan> {
        // One long stretch: its maximum is what is asked for.
        let (probes, request) = self.family.probe_request("noise", 1)?;
        let request = RunRequest { on_threshold: self.outliers.rules()?, ..request };
        let mut plan = family::plan_request(&probes, &request, machine)?;
        plan.stop_when_exceeded = self.criteria.stop;
        for rules in plan.steps.iter_mut().filter_map(|step| step.periodic.as_mut()) {
            rules.threshold = self.outliers.threshold;
            rules.stop_at_threshold = self.outliers.stops();
        }
        note_rests(&mut plan);
        Ok(plan)
    }

    fn criteria(&self, _: &Plan) -> Vec<MetricCriterion> {
        self.criteria.with_threshold(self.outliers.threshold)
    }

    fn create_observer(&self) -> Result<Box<dyn Observer>> {
        self.live.create_observer(self.family.run.progress)
    }
}

/// A real-time loop does not watch all of the time.
fn note_rests(plan: &mut Plan) {
    let real_time =
        |step: &PlanStep| step.points.iter().any(|point| point.params.contains_key(param::PRIORITY));
    let duty = Duty::for_this_machine().filter(|_| plan.steps.iter().any(real_time));
    plan.notes.extend(duty.map(|duty| {
        let rest = format_time(duty.rest.as_nanos() as f64);
        format!(
            "real-time loops rest for {rest} of every 100 ms: --duration includes the rests, the time watched does not"
        )
    }));
}
