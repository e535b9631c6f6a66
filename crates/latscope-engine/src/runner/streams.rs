//! Raw streams of a step's samples, for the observers.

use crate::observers::RunEvent;
use latscope_bench::recorder::{SampleRingCursor, Slots};
use latscope_core::plan::PlanStep;

/// Positions of the observers in the raw streams of a step.
pub(super) struct Streams(Vec<SampleRingCursor>);

impl Streams {
    pub(super) fn new(step: &PlanStep) -> Streams {
        let streamed = step.periodic.as_ref().is_some_and(|periodic| periodic.stream);
        Streams(if streamed { vec![SampleRingCursor::default(); step.points.len()] } else { Vec::new() })
    }

    /// Passes on the samples that came since the last call.
    pub(super) fn forward_samples(&mut self, slots: &Slots, mut tell: impl FnMut(&RunEvent)) {
        for (point, cursor) in self.0.iter_mut().enumerate() {
            let mut samples = Vec::new();
            let lost = slots.samples(point, cursor, |sample| samples.push(sample));
            if lost > 0 || !samples.is_empty() {
                tell(&RunEvent::Samples { point, samples: &samples, lost });
            }
        }
    }
}
