//! Layout of a slot in the shared memory.

use latscope_core::histogram::BUCKETS;
use latscope_core::plan::{Linear, PlanStep};

/// Counters before the buckets of a histogram.
pub(super) const HEADER: usize = 16;

/// Counters in a page.
pub(super) const PAGE: usize = 512;

/// Counters of a histogram: a whole number of pages.
const HISTOGRAM: usize = (HEADER + BUCKETS).next_multiple_of(PAGE);

/// Samples a ring holds, and the words of one: turn, end, value.
pub(super) const RING: usize = 16_384;
pub(super) const SAMPLE: usize = 3;

/// Contents of a slot beside its histogram, which determine its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistogramSlotLayout {
    pub(super) points: usize,
    pub(super) corrected: bool,
    pub(super) linear: Option<Linear>,
    pub(super) exceedances: bool,
    /// Threshold of the plan, ns.
    pub(super) threshold: Option<u64>,
    pub(super) stream: bool,
}

/// Exceedances kept until the coordinator takes them.
pub(super) const EXCEEDANCES: usize = 1024;

impl HistogramSlotLayout {
    /// Slots for a step.
    pub fn of_step(step: &PlanStep) -> HistogramSlotLayout {
        let points = step.points.len();
        match &step.periodic {
            None => HistogramSlotLayout { points, ..HistogramSlotLayout::default() },
            Some(periodic) => HistogramSlotLayout {
                points,
                corrected: periodic.corrected,
                linear: periodic.linear,
                exceedances: true,
                threshold: periodic.threshold,
                stream: periodic.stream,
            },
        }
    }

    pub(super) fn corrected_at(&self) -> usize {
        HISTOGRAM
    }

    pub(super) fn linear_at(&self) -> usize {
        self.corrected_at() + if self.corrected { HISTOGRAM } else { 0 }
    }

    /// The buckets, the number of values beyond, and the turns of the first of these.
    pub(super) fn linear_words(&self) -> usize {
        self.linear.map_or(0, |linear| 2 * linear.buckets as usize + 1)
    }

    pub(super) fn exceedances_at(&self) -> usize {
        (self.linear_at() + self.linear_words()).next_multiple_of(PAGE)
    }

    pub(super) fn stream_at(&self) -> usize {
        self.exceedances_at() + if self.exceedances { ring_words(EXCEEDANCES) } else { 0 }
    }

    pub(super) fn slot(&self) -> usize {
        self.stream_at() + if self.stream { ring_words(RING) } else { 0 }
    }

    /// The first page belongs to the step as a whole.
    pub(super) fn total_words(&self) -> usize {
        PAGE + self.points * self.slot()
    }
}

/// A ring is its head, on a page of its own, and its samples.
pub(super) const fn ring_words(samples: usize) -> usize {
    PAGE + (samples * SAMPLE).next_multiple_of(PAGE)
}
