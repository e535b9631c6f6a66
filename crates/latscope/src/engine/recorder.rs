//! Histograms in shared memory: one slot for each point of a step, each
//! with a single writer, read by the coordinator at any time.

use super::gate::Taint;
use latscope_core::histogram::{self, BUCKETS, Histogram, Totals};
use latscope_core::report::{Block, Sampling};
use latscope_sys::shared::{self, Counters};
use rustix::fd::{AsFd, OwnedFd};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const TICK_PS: usize = 0;
const BATCH_OPS: usize = 1;
const COUNT: usize = 2;
const MIN: usize = 3;
const MAX: usize = 4;
const SUM: usize = 5;
const OVERFLOW: usize = 6;
const PREEMPTED: usize = 7;
const STOLEN: usize = 8;
const MISSED: usize = 9;
const HEADER: usize = 16;

/// Counters in a slot: a whole number of pages.
const SLOT: usize = (HEADER + BUCKETS).next_multiple_of(512);

/// The shared histograms of a step.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Counters>);

/// What a slot holds at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The clean samples.
    pub histogram: Histogram,
    /// How they were taken; `None` when nothing has been recorded.
    pub sampling: Option<Sampling>,
    /// Samples thrown away because of a context switch.
    pub preempted: u64,
    /// Samples thrown away because time was missing.
    pub stolen: u64,
    /// Activations that did not take place.
    pub missed: u64,
}

impl Slots {
    /// A memfd for `points` slots.
    ///
    /// # Errors
    /// As [`shared::create`].
    pub fn create(points: usize) -> io::Result<OwnedFd> {
        shared::create(points * SLOT)
    }

    /// Maps the slots of a memfd from [`create`](Self::create).
    ///
    /// # Errors
    /// As [`Counters::map`].
    pub fn map(fd: impl AsFd, points: usize) -> io::Result<Slots> {
        Counters::map(fd, points * SLOT).map(|counters| Slots(Arc::new(counters)))
    }

    fn slot(&self, point: usize) -> &[AtomicU64] {
        &self.0.as_slice()[point * SLOT..][..HEADER + BUCKETS]
    }

    /// The only writer of a slot; whoever asks twice mixes up the counts.
    pub fn writer(&self, point: usize, sampling: Sampling) -> Writer {
        let (tick_ps, ops, blocks) = match sampling {
            Sampling::Event => (1000, 0, 256),
            Sampling::Batch { ops } => (1, ops, 16),
        };
        let slot = self.slot(point);
        slot[TICK_PS].store(tick_ps, Relaxed);
        slot[BATCH_OPS].store(ops, Relaxed);
        Writer { slots: self.clone(), point, blocks: Blocks::new(blocks) }
    }

    /// What a slot holds now.
    pub fn snapshot(&self, point: usize) -> Snapshot {
        let slot = self.slot(point);
        let get = |word: usize| slot[word].load(Relaxed);
        let tick_ps = get(TICK_PS).max(1);
        let totals = Totals { overflow: get(OVERFLOW), min: get(MIN), max: get(MAX), sum: get(SUM) };
        // Only where values are: reading a page never written would allocate it.
        let first = histogram::bucket_of(totals.min).unwrap_or(BUCKETS);
        let last = histogram::bucket_of(totals.max).unwrap_or(BUCKETS - 1);
        let counts = (first..=last).map(|bucket| (bucket, get(HEADER + bucket)));
        let histogram = match get(COUNT) {
            0 => Histogram::new(tick_ps),
            _ => Histogram::from_counts(tick_ps, counts, totals),
        };
        let sampling = match (get(TICK_PS), get(BATCH_OPS)) {
            (0, _) => None,
            (1, ops) => Some(Sampling::Batch { ops }),
            _ => Some(Sampling::Event),
        };
        Snapshot { histogram, sampling, preempted: get(PREEMPTED), stolen: get(STOLEN), missed: get(MISSED) }
    }
}

/// Records into one slot; belongs to one thread.
#[derive(Debug)]
pub struct Writer {
    slots: Slots,
    point: usize,
    blocks: Blocks,
}

impl Writer {
    /// Adds a value in ticks of the histogram (ns for events, ps per
    /// operation for batches), taken `at` ns after the epoch of the run.
    #[inline]
    pub fn record(&mut self, value: u64, at: u64) {
        let slot = self.slots.slot(self.point);
        // One writer: plain loads and stores, no locked instruction.
        let add = |word: usize, n: u64| slot[word].store(slot[word].load(Relaxed).wrapping_add(n), Relaxed);
        if slot[COUNT].load(Relaxed) == 0 || value < slot[MIN].load(Relaxed) {
            slot[MIN].store(value, Relaxed);
        }
        if value > slot[MAX].load(Relaxed) {
            slot[MAX].store(value, Relaxed);
        }
        add(SUM, value);
        match histogram::bucket_of(value) {
            Some(bucket) => add(HEADER + bucket, 1),
            None => add(OVERFLOW, 1),
        }
        add(COUNT, 1);
        self.blocks.add(value, at);
    }

    /// Counts a sample that was thrown away.
    pub fn reject(&self, taint: Taint) {
        self.add(if taint == Taint::Preempted { PREEMPTED } else { STOLEN }, 1);
    }

    /// Counts activations that did not take place.
    pub fn miss(&self, activations: u64) {
        self.add(MISSED, activations);
    }

    /// Notes how many operations a batch has, once that is known.
    pub fn set_ops(&self, ops: u64) {
        self.slots.slot(self.point)[BATCH_OPS].store(ops, Relaxed);
    }

    /// The samples so far in order of time, in a few blocks.
    pub fn into_blocks(self) -> Vec<Block> {
        self.blocks.done
    }

    fn add(&self, word: usize, n: u64) {
        let slot = self.slots.slot(self.point);
        slot[word].store(slot[word].load(Relaxed) + n, Relaxed);
    }
}

/// Keeps the order of time in constant memory: when full, neighbours merge.
#[derive(Debug)]
struct Blocks {
    done: Vec<Block>,
    capacity: usize,
    samples_each: u64,
}

impl Blocks {
    fn new(capacity: usize) -> Blocks {
        Blocks { done: Vec::with_capacity(capacity), capacity, samples_each: 1 }
    }

    #[inline]
    fn add(&mut self, value: u64, at: u64) {
        match self.done.last_mut() {
            Some(block) if block.count < self.samples_each => {
                block.count += 1;
                block.sum = block.sum.saturating_add(value);
                block.max = block.max.max(value);
            }
            _ => self.open(value, at),
        }
    }

    fn open(&mut self, value: u64, at: u64) {
        if self.done.len() == self.capacity {
            for pair in 0..self.capacity / 2 {
                let (left, right) = (self.done[2 * pair].clone(), &self.done[2 * pair + 1]);
                self.done[pair] = Block {
                    from: left.from,
                    count: left.count + right.count,
                    sum: left.sum.saturating_add(right.sum),
                    max: left.max.max(right.max),
                };
            }
            self.done.truncate(self.capacity / 2);
            self.samples_each *= 2;
        }
        self.done.push(Block { from: at, count: 1, sum: value, max: value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slots(points: usize) -> Slots {
        Slots::map(Slots::create(points).unwrap(), points).unwrap()
    }

    #[test]
    fn an_untouched_slot_says_so() {
        let snapshot = slots(2).snapshot(1);
        assert_eq!((snapshot.sampling, snapshot.histogram.count()), (None, 0));
    }

    #[test]
    fn slots_do_not_touch_each_other() {
        let slots = slots(2);
        let mut writer = slots.writer(0, Sampling::Batch { ops: 10 });
        writer.record(1 << 60, 0);
        writer.reject(Taint::Stolen);
        let snapshot = slots.snapshot(0);
        assert_eq!((snapshot.histogram.overflow(), snapshot.stolen, snapshot.preempted), (1, 1, 0));
        assert_eq!(snapshot.sampling, Some(Sampling::Batch { ops: 10 }));
        assert_eq!(slots.snapshot(1).histogram.count(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_snapshot_equals_the_histogram_of_the_values(values in proptest::collection::vec(any::<u64>(), 1..600)) {
            let slots = slots(1);
            let mut writer = slots.writer(0, Sampling::Event);
            let mut expected = Histogram::new(1000);
            for (at, value) in values.iter().map(|v| v >> 3).enumerate() {
                writer.record(value, at as u64);
                expected.record(value);
            }
            let got = slots.snapshot(0).histogram;
            prop_assert_eq!(got.count(), expected.count());
            prop_assert_eq!((got.min(), got.max()), (expected.min(), expected.max()));
            prop_assert!(got.buckets_ns().eq(expected.buckets_ns()));
            let blocks = writer.into_blocks();
            prop_assert!(blocks.len() <= 256);
            prop_assert_eq!(blocks.iter().map(|b| b.count).sum::<u64>(), values.len() as u64);
            prop_assert!(blocks.windows(2).all(|w| w[0].from < w[1].from));
        }
    }
}
