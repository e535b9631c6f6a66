//! Segments of the report: the measurements of each step.

use super::{Coordinator, marks};
use crate::{collect, timeline};
use latscope_core::plan::PlanStep;
use latscope_core::report::Measurement;
use latscope_os::kernels;
use std::ops::Range;

impl Coordinator<'_> {
    /// Adds the points of a step to the report, and what they come to together:
    /// in the order of the plan, whatever the order of the rounds, and to what
    /// earlier rounds of the step found.
    pub(super) fn insert_points(&mut self, index: usize, mut measured: Vec<Measurement>) {
        if let Some(emulator) = marks::emulator(&self.report.machine) {
            measured.iter_mut().for_each(|m| marks::mark_emulated(m, &emulator));
        }
        if !kernels::ARE_ASSEMBLY {
            measured.iter_mut().for_each(|m| {
                marks::mark_compiled(m, self.registry.find_probe(&m.probe).map(|probe| &probe.facts))
            });
        }
        measured.extend(collect::merge_points(self.registry, &measured));
        let segment = self.segment(index);
        let known = &mut self.report.measurements[segment.clone()];
        if known.is_empty() {
            self.entered[index] = measured.len();
            measured.iter_mut().for_each(Measurement::derive_results);
            self.report.measurements.splice(segment, measured);
        } else {
            known.iter_mut().zip(measured).for_each(|(known, next)| known.add_round(next));
        }
        let segment = self.segment(index);
        for m in &mut self.report.measurements[segment] {
            let footprint = self.registry.find_probe(&m.probe).and_then(|probe| (probe.footprint)(&m.params));
            m.settle_shared_cache(&self.report.machine, footprint);
        }
    }

    /// Range of the report's measurements that belongs to a step, or would belong to it.
    pub(super) fn segment(&self, index: usize) -> Range<usize> {
        let start = self.entered[..index].iter().sum();
        start..start + self.entered[index]
    }

    /// Takes what was recorded of a step: into the file, and its shares into
    /// the measurements and findings.
    pub(super) fn add_timeline(&mut self, step: &PlanStep, measured: &mut [Measurement]) {
        let Some(recorder) = &mut self.timeline else { return };
        match recorder.write_step() {
            Ok(recorded) => {
                measured.iter_mut().for_each(|m| timeline::add_shares(m, &recorded));
                self.report.findings.extend(latscope_trace::timeline::finding(&recorded, &step.name));
            }
            Err(error) => self
                .add_warning(timeline::LOST, &format!("the time line of {} is lost: {error:#}", step.name)),
        }
    }
}
