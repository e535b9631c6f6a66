//! `latscope ipc`: transactions between processes.

mod arguments;
mod request;

pub use arguments::IpcArguments;

use super::measure::Measures;
use super::options::RunArguments;
use anyhow::Result;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{Action, OnThreshold, Plan};
use latscope_core::report::{Report, Warning};
use latscope_engine::observers::Observer;
use latscope_engine::planner::{self, RunRequest};
use latscope_judge::verdict::MetricCriterion;
use latscope_probes::{PlanInput, ipc};

impl Measures for IpcArguments {
    const IN_FULL: bool = false;

    fn run_arguments(&self) -> &RunArguments {
        &self.run
    }

    fn plan(&self, machine: &Machine) -> Result<Plan> {
        let (steps, notes) = request::steps(self, machine)?;
        let ends = |file| OnThreshold {
            blame: true,
            worst: None,
            actions: vec![Action::Stop],
            trace_file: Some(file),
            ..OnThreshold::default()
        };
        let on_threshold = self.trace.clone().map(ends);
        let request =
            RunRequest { notes, on_threshold, ..self.run.build_request("ipc", PlanInput::default(), 1) };
        let plan = planner::of_steps(steps, &request, machine);
        Ok(Plan { stop_when_exceeded: self.criteria.stop, ..plan })
    }

    fn criteria(&self, plan: &Plan) -> Vec<MetricCriterion> {
        let threshold = plan.steps[0].periodic.as_ref().and_then(|rules| rules.threshold);
        let mut criteria = self.criteria.with_threshold(threshold);
        criteria.extend(self.call_criteria.all_criteria());
        criteria
    }

    fn warnings(&self, plan: &Plan, machine: &Machine) -> Vec<Warning> {
        ipc::warnings(&plan.steps, machine)
    }

    fn create_observer(&self) -> Result<Box<dyn Observer>> {
        self.live.create_observer(self.run.progress)
    }

    /// Transports that were not asked for by name and are not available here are listed, and not judged.
    fn add_findings(&self, report: &mut Report) {
        let absent = request::absent_transports(self);
        for m in &mut report.measurements {
            if absent.iter().any(|name| m.params.get(param::TRANSPORT) == Some(&(*name).into())) {
                m.verdict = None;
            }
        }
    }
}
