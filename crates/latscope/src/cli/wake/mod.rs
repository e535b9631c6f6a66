//! `latscope wake`: periodic wake-up latency, and why.

mod arguments;
mod profile;
mod request;

pub use arguments::WakeArguments;

use super::measure::Measures;
use super::options::RunArguments;
use anyhow::Result;
use arguments::WakeProbe;
use latscope_core::machine::{CheckState, DoctorCheck, Machine};
use latscope_core::param;
use latscope_core::plan::Plan;
use latscope_core::report::{Report, Warning};
use latscope_engine::observers::Observer;
use latscope_engine::planner::{self, RunRequest};
use latscope_judge::extremes;
use latscope_judge::verdict::{Metric, MetricCriterion};
use latscope_probes::PlanInput;
use latscope_probes::wake::timer::TIMER;
use latscope_probes::wake::timerlat;

impl Measures for WakeArguments {
    const IN_FULL: bool = false;

    fn run_arguments(&self) -> &RunArguments {
        &self.run
    }

    fn plan(&self, machine: &Machine) -> Result<Plan> {
        let setup = request::step_setup(self, machine)?;
        let step = match self.probe {
            WakeProbe::Timer => setup.plan_step(),
            WakeProbe::Timerlat => timerlat::plan_step(&setup),
        };
        let request = RunRequest {
            timeline: self.timeline.timeline.clone(),
            on_threshold: self.outliers.rules()?,
            notes: self.profile.iter().map(|p| format!("profile {}: {}", p.name, p.source)).collect(),
            ..self.run.build_request("wake", PlanInput::default(), 1)
        };
        let plan = planner::of_steps(vec![step], &request, machine);
        Ok(Plan { stop_when_exceeded: self.criteria.stop, ..plan })
    }

    fn criteria(&self, _: &Plan) -> Vec<MetricCriterion> {
        let mut criteria = self.criteria.with_threshold(self.outliers.threshold);
        if let Some(max) = self.profile.and_then(|profile| profile.max)
            && criteria.iter().all(|criterion| criterion.metric != Metric::Max)
        {
            criteria.push(MetricCriterion { metric: Metric::Max, limit: max as f64 });
        }
        criteria
    }

    fn warnings(&self, plan: &Plan, machine: &Machine) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn = |id: &str, text: String, remedy: Option<&str>| {
            warnings.push(Warning { id: id.to_owned(), text, remedy: remedy.map(str::to_owned) });
        };
        if let Some(text) = request::left_out(machine).filter(|_| self.run.cpus.is_none()) {
            warn("cpus-left-out", text, None);
        }
        if machine.clock.source == "monotonic-raw" {
            let reason = &machine.clock.reason;
            let text = format!("the clock is not the processor's own: {reason}; each stamp costs more");
            warn("clock", text, Some("see clocksource in `latscope doctor`"));
        }
        let threads = plan.steps[0].points.iter().filter(|point| point.probe == TIMER.id);
        let busy: f64 = threads.map(|point| share_of_work(&point.params)).sum();
        let cpus = plan.steps[0].cpus.len().max(1) as f64;
        let throttling =
            |check: &&DoctorCheck| check.id == "real-time-throttling" && check.state != CheckState::Good;
        if let Some(check) = machine.checks.iter().find(throttling).filter(|_| busy / cpus > 0.9) {
            let remedy = check.remedy.iter().map(|remedy| format!(", or {remedy}")).collect::<String>();
            warn("rt-throttling", check.found.clone(), Some(&format!("less --work{remedy}")));
        }
        warnings
    }

    fn create_observer(&self) -> Result<Box<dyn Observer>> {
        self.live.create_observer(self.run.progress)
    }

    fn add_findings(&self, report: &mut Report) {
        if let Some(activations) = self.extrapolate {
            let findings = extremes::extrapolation_findings(report, activations, self.run.seed);
            report.findings.extend(findings);
        }
    }
}

fn share_of_work(params: &latscope_core::plan::Params) -> f64 {
    let number = |name: &str| params.get(name).and_then(|value| value.to_string().parse::<f64>().ok());
    number(param::WORK).unwrap_or(0.0) / number(param::INTERVAL).unwrap_or(f64::MAX)
}
