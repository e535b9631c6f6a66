//! Reasons that what the whole command runs on gives to every measurement.

use super::Coordinator;
use crate::link::WorkerLink;
use crate::outliers::Outliers;
use anyhow::Result;
use latscope_bench::hold::Shortfall;
use latscope_core::catalogue::ProbeFacts;
use latscope_core::machine::Machine;
use latscope_core::plan::PlanStep;
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::Measurement;
use latscope_os::worker;
use latscope_process::halted::Standstill;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between two looks at a worker that is silent, at most.
pub(super) const LOOK: Duration = Duration::from_secs(1);

impl Coordinator<'_> {
    /// Notes the points in which the worker was frozen or stopped, `begun` being the last that it began, and lets the
    /// causes of events be searched accordingly.
    pub(super) fn note_halt(
        &mut self,
        step: &PlanStep,
        link: &mut WorkerLink,
        begun: usize,
        outliers: Option<&mut Outliers>,
    ) {
        let why = link.was_halted();
        if why.is_some() || link.may_have_halted() {
            outliers.into_iter().for_each(Outliers::note_halt);
        }
        if let Some(why) = why {
            self.halted.extend(halted(step, begun, &why));
        }
    }

    /// Lets a worker go on that stands still although its time is over.
    ///
    /// # Errors
    /// It stands still again.
    pub(super) fn resume_stopped(
        &self,
        step: &PlanStep,
        link: &mut WorkerLink,
        standstill: &mut Standstill,
    ) -> Result<()> {
        let over = Duration::from_nanos(step.stop.limit_ns).saturating_add(LOOK);
        let is_over = self.told.is_some() || self.since.elapsed() > over;
        if is_over && standstill.note_look(link.is_halted()) { link.resume() } else { Ok(()) }
    }
}

/// The emulator that all figures are those of, if there is one.
pub(super) fn emulator(machine: &Machine) -> Option<String> {
    let runner = std::env::var(worker::RUNNER).ok();
    runner.or_else(|| machine.hypervisor.clone().filter(|name| name.contains("emulated")))
}

/// Marks a figure as an emulator's.
pub(super) fn mark_emulated(measurement: &mut Measurement, emulator: &str) {
    if measurement.quality.level != QualityLevel::Unsupported {
        let text = format!("emulated ({emulator}): the figure is the emulator's");
        measurement.lower(Reason::new(
            QualityLevel::Degraded,
            "emulated",
            text,
            "measure on the machine itself",
        ));
    }
}

/// Marks the figure of a probe whose loop is assembly on other architectures than this.
pub(super) fn mark_compiled(measurement: &mut Measurement, probe: Option<&ProbeFacts>) {
    if measurement.quality.level != QualityLevel::Unsupported && probe.is_some_and(|facts| facts.is_loop) {
        let text =
            "the timed loop is compiled: it may have further instructions, and loads and stores between";
        measurement.lower(Reason::new(
            QualityLevel::Degraded,
            "compiled-loop",
            text,
            "measure on x86-64 or arm64",
        ));
    }
}

/// Returns the points that were measured when the worker was stopped, `begun` being the last that it began. Periodic
/// threads are stopped together.
fn halted(step: &PlanStep, begun: usize, why: &Shortfall) -> BTreeMap<usize, Shortfall> {
    let points = if step.periodic.is_some() { 0..step.points.len() } else { begun..begun + 1 };
    points.map(|point| (point, why.clone())).collect()
}

/// Marks the points in which the worker was stopped, unless a gate threw those samples away.
pub(super) fn mark_halted(measured: &mut [Measurement], points: BTreeMap<usize, Shortfall>) {
    for (point, Shortfall { id, reason, remedy }) in points {
        let Some(m) = measured.get_mut(point) else { continue };
        if !m.contention.as_ref().is_some_and(|contention| contention.gated) {
            m.lower(Reason::new(QualityLevel::Degraded, id, reason, remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::histogram::Histogram;
    use latscope_core::plan::{MeasurementPoint, params};
    use latscope_core::report::{Sampling, Semantics};

    #[test]
    fn only_figures_of_loops_are_marked_as_compiled() {
        let marked = |level, facts| {
            let point = MeasurementPoint {
                probe: "cpu.cycle".to_owned(),
                revision: 1,
                params: params([]),
                title: "core cycle".to_owned(),
                row: true,
            };
            let (sampling, times) = (Sampling::Event, Semantics::Operation);
            let mut measurement = Measurement::from_samples(point, sampling, times, Histogram::new(1));
            measurement.lower(Reason::new(level, "one-cpu", "a test", ""));
            mark_compiled(&mut measurement, facts);
            measurement.quality.reasons.iter().any(|reason| reason.id == "compiled-loop")
        };
        assert!(marked(QualityLevel::Degraded, Some(&ProbeFacts::LOOPS)));
        assert!(!marked(QualityLevel::Degraded, Some(&ProbeFacts::BATCHES)));
        assert!(!marked(QualityLevel::Degraded, None));
        assert!(!marked(QualityLevel::Unsupported, Some(&ProbeFacts::LOOPS)));
    }
}
