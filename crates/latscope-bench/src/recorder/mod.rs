//! Histograms in shared memory: one slot for each point of a step, each
//! with a single writer, read by the coordinator at any time.

mod layout;
mod progress;
pub mod ring;

pub use layout::HistogramSlotLayout;
pub use progress::{STARVED_NS, ThreadDueState};

use crate::blocks::SampleBlockSeries;
use crate::gate::Taint;
use latscope_core::histogram::{self, BUCKETS, Histogram, Totals};
use latscope_core::plan::Linear;
use latscope_core::report::{Exceedance, LinearRecord, SampleBlock, Sampling};
use latscope_os::shared::{self, SharedCounters};
use layout::{EXCEEDANCES, HEADER, PAGE, RING, SAMPLE, ring_words};
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
/// Values below zero: an event before its time.
const EARLY: usize = 10;
/// The value recorded last, and when the largest was.
const LAST: usize = 11;
const MAX_AT: usize = 12;
/// Word of the thread id of the writer, if the writer has set it.
const THREAD: usize = 13;
/// Words of the instants at which the writer's thread is due, and after which no activation of it is.
const DUE: usize = 14;
const ENDS_AT: usize = 15;

/// Word of the first page that asks the measuring threads to end, with the reason.
const STOP: usize = 0;
const DONE: u64 = 1;
const INTERRUPTED: u64 = 2;

/// Word of the first page that sets another threshold than the plan's. It holds the complement, so that a page of zeros
/// sets none.
const THRESHOLD: usize = 8;

/// The shared histograms of a step.
#[derive(Debug, Clone)]
pub struct Slots {
    counters: Arc<SharedCounters>,
    layout: HistogramSlotLayout,
}

/// Contents of a slot at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Histogram of the clean samples.
    pub histogram: Histogram,
    /// Kind of the samples; `None` when nothing has been recorded.
    pub sampling: Option<Sampling>,
    /// Samples thrown away because of a context switch.
    pub preempted: u64,
    /// Samples thrown away because time was missing.
    pub stolen: u64,
    /// Activations that did not take place.
    pub missed: u64,
    /// Events before their time.
    pub early: u64,
    /// The value recorded last, in ticks.
    pub last: u64,
    /// Time of the largest value, ns of the clock that the writer was given.
    pub max_at: u64,
    /// Thread id of the writer; 0 if the writer has not set it.
    pub thread: u32,
    /// The distribution with the swallowed activations, where the plan asks.
    pub corrected: Option<Histogram>,
}

/// Position of a reader in a ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleRingCursor(u64);

impl Slots {
    /// A memfd for the slots of a layout.
    ///
    /// # Errors
    /// As [`shared::create_memfd`].
    pub fn create_memfd(layout: &HistogramSlotLayout) -> io::Result<OwnedFd> {
        shared::create_memfd(layout.total_words())
    }

    /// Maps the slots of a memfd from [`create_memfd`](Self::create_memfd).
    ///
    /// # Errors
    /// As [`SharedCounters::map_memfd`].
    pub fn map_memfd(fd: impl AsFd, layout: HistogramSlotLayout) -> io::Result<Slots> {
        let counters = Arc::new(SharedCounters::map_memfd(fd, layout.total_words())?);
        Ok(Slots { counters, layout })
    }

    /// Ends the step by its own rules: the measuring threads end after what they are at.
    pub fn ask_to_stop(&self) {
        // Where it was interrupted before, it stays so.
        let _ = self.counters.as_slice()[STOP].compare_exchange(0, DONE, Relaxed, Relaxed);
    }

    /// Ends the step because the run is asked to end.
    pub fn interrupt(&self) {
        let _ = self.counters.as_slice()[STOP].compare_exchange(0, INTERRUPTED, Relaxed, Relaxed);
    }

    /// Returns true if the run was asked to end before the step was done.
    pub fn interrupted(&self) -> bool {
        self.counters.as_slice()[STOP].load(Relaxed) == INTERRUPTED
    }

    /// Returns true if the measuring threads are asked to end.
    #[inline]
    pub fn stopping(&self) -> bool {
        self.counters.as_slice()[STOP].load(Relaxed) != 0
    }

    /// Sets another threshold than the plan's, ns.
    pub fn set_threshold(&self, ns: u64) {
        self.counters.as_slice()[THRESHOLD].store(!ns, Relaxed);
    }

    /// Current threshold, ns: a larger value is an exceedance. `u64::MAX` if there is no threshold.
    #[inline]
    pub fn threshold(&self) -> u64 {
        match self.counters.as_slice()[THRESHOLD].load(Relaxed) {
            0 => self.layout.threshold.unwrap_or(u64::MAX),
            set => !set,
        }
    }

    /// Id of a point's measuring thread; 0 if the thread has not set it.
    pub fn thread(&self, point: usize) -> u32 {
        self.slot(point)[THREAD].load(Relaxed) as u32
    }

    fn first_page(&self, word: usize) -> &AtomicU64 {
        &self.counters.as_slice()[word]
    }

    fn slot_part(&self, point: usize, at: usize, length: usize) -> &[AtomicU64] {
        &self.counters.as_slice()[PAGE + point * self.layout.slot() + at..][..length]
    }

    fn slot(&self, point: usize) -> &[AtomicU64] {
        self.slot_part(point, 0, HEADER + BUCKETS)
    }

    /// The only writer of a slot; a second writer mixes up the counts.
    pub fn writer(&self, point: usize, sampling: Sampling) -> HistogramSlotWriter {
        let (tick_ps, ops, blocks) = match sampling {
            Sampling::Event => (1000, 0, 256),
            Sampling::Batch { ops } => (1, ops, 16),
        };
        let slot = self.slot(point);
        slot[TICK_PS].store(tick_ps, Relaxed);
        slot[BATCH_OPS].store(ops, Relaxed);
        HistogramSlotWriter { slots: self.clone(), point, blocks: SampleBlockSeries::new(blocks) }
    }

    /// Returns the current contents of a slot.
    pub fn snapshot(&self, point: usize) -> Snapshot {
        let slot = self.slot(point);
        let get = |word: usize| slot[word].load(Relaxed);
        let tick_ps = get(TICK_PS).max(1);
        let sampling = match (get(TICK_PS), get(BATCH_OPS)) {
            (0, _) => None,
            (1, ops) => Some(Sampling::Batch { ops }),
            _ => Some(Sampling::Event),
        };
        let corrected = self.layout.corrected.then(|| {
            let slot = self.slot_part(point, self.layout.corrected_at(), HEADER + BUCKETS);
            histogram_of(slot, tick_ps)
        });
        Snapshot {
            histogram: histogram_of(slot, tick_ps),
            sampling,
            preempted: get(PREEMPTED),
            stolen: get(STOLEN),
            missed: get(MISSED),
            early: get(EARLY),
            last: get(LAST),
            max_at: get(MAX_AT),
            thread: get(THREAD) as u32,
            corrected,
        }
    }

    /// The exact linear histogram, where the plan asks for one.
    pub fn linear(&self, point: usize) -> Option<LinearRecord> {
        let Linear { buckets, tick_ns } = self.layout.linear?;
        let words = self.slot_part(point, self.layout.linear_at(), self.layout.linear_words());
        let (counts, rest) = words.split_at(buckets as usize);
        let overflow = rest[0].load(Relaxed);
        let mut counts: Vec<u64> = counts.iter().map(|count| count.load(Relaxed)).collect();
        counts.truncate(counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
        let turns = rest[1..].iter().take(overflow as usize).map(|turn| turn.load(Relaxed));
        Some(LinearRecord { tick_ns, buckets, counts, overflow, overflow_turns: turns.collect() })
    }

    /// Takes the exceedances that came since the cursor; returns how many
    /// were overwritten before they could be taken.
    pub fn exceedances(
        &self,
        point: usize,
        cursor: &mut SampleRingCursor,
        mut take: impl FnMut(Exceedance),
    ) -> u64 {
        if !self.layout.exceedances {
            return 0;
        }
        let (head, samples) = self.ring(point, self.layout.exceedances_at(), EXCEEDANCES);
        ring::drain(head, samples, &mut cursor.0, &mut take)
    }

    /// Takes the samples of the raw stream that came since the cursor; returns
    /// how many were overwritten before they could be taken.
    pub fn samples(
        &self,
        point: usize,
        cursor: &mut SampleRingCursor,
        mut take: impl FnMut(Exceedance),
    ) -> u64 {
        if !self.layout.stream {
            return 0;
        }
        let (head, samples) = self.ring(point, self.layout.stream_at(), RING);
        ring::drain(head, samples, &mut cursor.0, &mut take)
    }

    /// The head of a ring, and its samples.
    fn ring(&self, point: usize, at: usize, capacity: usize) -> (&AtomicU64, &[AtomicU64]) {
        let words = self.slot_part(point, at, ring_words(capacity));
        (&words[0], &words[PAGE..][..capacity * SAMPLE])
    }
}

fn histogram_of(slot: &[AtomicU64], tick_ps: u64) -> Histogram {
    let get = |word: usize| slot[word].load(Relaxed);
    let totals = Totals { overflow: get(OVERFLOW), min: get(MIN), max: get(MAX), sum: get(SUM) };
    // Only where values are: reading a page never written would allocate it.
    let first = histogram::bucket_of(totals.min).unwrap_or(BUCKETS);
    let last = histogram::bucket_of(totals.max).unwrap_or(BUCKETS - 1);
    let counts = (first..=last).map(|bucket| (bucket, get(HEADER + bucket)));
    match get(COUNT) {
        0 => Histogram::new(tick_ps),
        _ => Histogram::from_counts(tick_ps, counts, totals),
    }
}

/// Adds `n` to a word. There is a single writer, so plain loads and stores suffice, without a locked instruction.
#[inline(always)]
fn add_to_word(slot: &[AtomicU64], word: usize, n: u64) {
    slot[word].store(slot[word].load(Relaxed).wrapping_add(n), Relaxed);
}

#[inline(always)]
fn count_value(slot: &[AtomicU64], value: u64) {
    if slot[COUNT].load(Relaxed) == 0 || value < slot[MIN].load(Relaxed) {
        slot[MIN].store(value, Relaxed);
    }
    add_to_word(slot, SUM, value);
    match histogram::bucket_of(value) {
        Some(bucket) => add_to_word(slot, HEADER + bucket, 1),
        None => add_to_word(slot, OVERFLOW, 1),
    }
    add_to_word(slot, COUNT, 1);
}

/// Counts a value and those of the activations it swallowed, each an interval less and none below 0: a step for
/// each bucket, however many they are. A clock that is set may swallow those of decades.
fn count_down(slot: &[AtomicU64], value: u64, missed: u64, interval: u64) {
    let (mut value, mut left) = (value, missed.saturating_add(1));
    while left > 0 {
        let bucket = histogram::bucket_of(value);
        let low = bucket.map_or(BEYOND, |bucket| histogram::bounds(bucket).0);
        // What stays in the bucket: all that is left, where that begins at 0.
        let inside = (value - low).checked_div(interval).filter(|_| low > 0);
        let n = inside.map_or(left, |steps| left.min(steps + 1));
        // Of those that are above 0.
        let above = value.checked_div(interval).map_or(n, |steps| n.min(steps + 1));
        let last = value.saturating_sub((n - 1).saturating_mul(interval));
        let (first, above, step) = (u128::from(value), u128::from(above), u128::from(interval));
        let sum = above * first - step * (above * above.saturating_sub(1) / 2);
        if slot[COUNT].load(Relaxed) == 0 || last < slot[MIN].load(Relaxed) {
            slot[MIN].store(last, Relaxed);
        }
        let sum = slot[SUM].load(Relaxed).saturating_add(u64::try_from(sum).unwrap_or(u64::MAX));
        slot[SUM].store(sum, Relaxed);
        add_to_word(slot, bucket.map_or(OVERFLOW, |bucket| HEADER + bucket), n);
        add_to_word(slot, COUNT, n);
        (value, left) = (last.saturating_sub(interval), left - n);
    }
}

/// The least value that no bucket is for.
const BEYOND: u64 = histogram::bounds(BUCKETS - 1).1 + 1;

/// Records into one slot; belongs to one thread.
#[derive(Debug)]
pub struct HistogramSlotWriter {
    slots: Slots,
    point: usize,
    blocks: SampleBlockSeries,
}

impl HistogramSlotWriter {
    /// Adds a value in ticks of the histogram (ns for events, ps per
    /// operation for batches), taken `at` ns after the epoch of the run.
    #[inline]
    pub fn record_value(&mut self, value: u64, at: u64) {
        let slot = self.slots.slot(self.point);
        if value > slot[MAX].load(Relaxed) {
            slot[MAX].store(value, Relaxed);
            slot[MAX_AT].store(at, Relaxed);
        }
        slot[LAST].store(value, Relaxed);
        count_value(slot, value);
        self.blocks.add_value(value, at);
    }

    /// Adds an event of a periodic thread to all that the plan asks for:
    /// `sample.value` is recorded, `missed` activations of `interval` that it
    /// swallowed would have been late by so much less each.
    #[inline]
    pub fn record_event(&mut self, sample: Exceedance, epoch: u64, missed: u64, interval: u64) {
        self.record_late(sample.value, sample.at.saturating_sub(epoch), missed, interval);
        let layout = &self.slots.layout;
        if let Some(linear) = layout.linear {
            self.record_linear(linear, sample);
        }
        if layout.stream {
            let (head, samples) = self.slots.ring(self.point, layout.stream_at(), RING);
            ring::write_sample(head, samples, sample);
        }
    }

    /// Adds a value as [`HistogramSlotWriter::record_value`], and the `missed` activations of `interval` that it stands
    /// for.
    #[inline]
    pub fn record_late(&mut self, value: u64, at: u64, missed: u64, interval: u64) {
        self.record_value(value, at);
        if missed > 0 {
            self.miss(missed);
        }
        if self.slots.layout.corrected {
            self.correct(value, missed, interval);
        }
    }

    fn correct(&self, value: u64, missed: u64, interval: u64) {
        let at = self.slots.layout.corrected_at();
        let slot = self.slots.slot_part(self.point, at, HEADER + BUCKETS);
        if value > slot[MAX].load(Relaxed) {
            slot[MAX].store(value, Relaxed);
        }
        count_down(slot, value, missed, interval);
    }

    fn record_linear(&self, linear: Linear, sample: Exceedance) {
        let layout = &self.slots.layout;
        let words = self.slots.slot_part(self.point, layout.linear_at(), layout.linear_words());
        let (bucket, buckets) = (sample.value / linear.tick_ns, linear.buckets as usize);
        if bucket < linear.buckets {
            return add_to_word(words, bucket as usize, 1);
        }
        let before = words[buckets].load(Relaxed);
        if before < linear.buckets {
            words[buckets + 1 + before as usize].store(sample.turn, Relaxed);
        }
        add_to_word(words, buckets, 1);
    }

    /// Notes an event above the threshold, for the coordinator to take.
    pub fn exceed(&self, sample: Exceedance) {
        debug_assert!(self.slots.thread(self.point) != 0, "which thread is late is asked of the trace");
        let at = self.slots.layout.exceedances_at();
        let (head, samples) = self.slots.ring(self.point, at, EXCEEDANCES);
        ring::write_sample(head, samples, sample);
    }

    /// Counts an event before its time.
    #[inline]
    pub fn early(&self) {
        self.add_to_slot(EARLY, 1);
    }

    /// Makes the calling thread the measuring one, whose exceedances are explained, and brings all pages that a record
    /// may touch into memory.
    pub fn adopt(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u64;
        self.slots.slot(self.point)[THREAD].store(thread, Relaxed);
        let slot = self.slots.slot_part(self.point, 0, self.slots.layout.slot());
        slot.iter().step_by(PAGE).for_each(|word| {
            std::hint::black_box(word.fetch_add(0, Relaxed));
        });
    }

    /// Returns true if the measuring threads are asked to end.
    #[inline]
    pub fn should_stop(&self) -> bool {
        self.slots.stopping()
    }

    /// The threshold that holds now, as [`Slots::threshold`].
    #[inline]
    pub fn threshold(&self) -> u64 {
        self.slots.threshold()
    }

    /// Counts a sample that was thrown away.
    #[inline]
    pub fn reject(&self, taint: Taint) {
        self.add_to_slot(if taint == Taint::Preempted { PREEMPTED } else { STOLEN }, 1);
    }

    /// Counts activations that did not take place.
    #[inline]
    pub fn miss(&self, activations: u64) {
        self.add_to_slot(MISSED, activations);
    }

    /// Notes how many operations a batch has, once that is known.
    pub(crate) fn set_ops(&self, ops: u64) {
        self.slots.slot(self.point)[BATCH_OPS].store(ops, Relaxed);
    }

    /// The samples so far in order of time, in a few blocks.
    pub fn into_blocks(self) -> Vec<SampleBlock> {
        self.blocks.done()
    }

    fn add_to_slot(&self, word: usize, n: u64) {
        add_to_word(self.slots.slot(self.point), word, n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slots(points: usize) -> Slots {
        with(HistogramSlotLayout { points, ..HistogramSlotLayout::default() })
    }

    fn with(layout: HistogramSlotLayout) -> Slots {
        Slots::map_memfd(Slots::create_memfd(&layout).unwrap(), layout).unwrap()
    }

    fn sample(turn: u64, value: u64) -> Exceedance {
        Exceedance { turn, at: turn * 1000, value }
    }

    #[test]
    fn a_stall_is_felt_by_the_activations_it_swallowed() {
        let slots =
            with(HistogramSlotLayout { points: 1, corrected: true, ..HistogramSlotLayout::default() });
        let mut writer = slots.writer(0, Sampling::Event);
        writer.record_event(sample(0, 5), 0, 0, 1000);
        writer.record_event(sample(1, 3100), 0, 3, 1000);
        let snapshot = slots.snapshot(0);
        assert_eq!((snapshot.histogram.count(), snapshot.missed, snapshot.last), (2, 3, 3100));
        assert_eq!(snapshot.max_at, 1000);
        let corrected = snapshot.corrected.unwrap();
        assert_eq!((corrected.count(), corrected.max()), (5, Some(3100.0)));
        assert_eq!(corrected.mean(), Some((5 + 3100 + 2100 + 1100 + 100) as f64 / 5.0));
    }

    /// A clock that was at 1970 is set, and each millisecond since then was an activation.
    #[test]
    fn a_clock_that_is_set_takes_a_step_for_each_bucket_only() {
        let slots =
            with(HistogramSlotLayout { points: 1, corrected: true, ..HistogramSlotLayout::default() });
        let mut writer = slots.writer(0, Sampling::Event);
        let (interval, late) = (1_000_000, 56 * 365 * 86_400 * 1_000_000_000u64);
        let missed = (late - 1) / interval;
        writer.record_event(sample(0, late), 0, missed, interval);
        let corrected = slots.snapshot(0).corrected.unwrap();
        assert_eq!((corrected.count(), corrected.max()), (missed + 1, Some(late as f64)));
        assert_eq!(corrected.min(), Some(interval as f64));
        assert_eq!(corrected.overflow(), (late - BEYOND) / interval + 1);
        // Timers that count by themselves may say any number, and an interval may be nothing.
        for (missed, interval) in [(u64::MAX, 1), (u64::MAX - 1, 0), (1 << 40, u64::MAX)] {
            writer.record_event(sample(1, 5_000), 0, missed, interval);
        }
    }

    proptest! {
        #[test]
        fn counting_down_equals_counting_each(value in 0u64..1 << 50, missed in 0u64..3_000, interval in 0u64..1 << 40) {
            let interval = interval >> (value % 41);
            let slots = with(HistogramSlotLayout { points: 1, corrected: true, ..HistogramSlotLayout::default() });
            let mut writer = slots.writer(0, Sampling::Event);
            writer.record_event(sample(0, value), 0, missed, interval);
            let mut expected = Histogram::new(1000);
            (0..=missed).for_each(|swallowed| expected.record(value.saturating_sub(swallowed * interval)));
            prop_assert_eq!(slots.snapshot(0).corrected.unwrap(), expected);
        }
    }

    #[test]
    fn the_linear_record_is_exact_and_keeps_the_first_turns_beyond() {
        let linear = Linear { buckets: 3, tick_ns: 1000 };
        let slots =
            with(HistogramSlotLayout { points: 2, linear: Some(linear), ..HistogramSlotLayout::default() });
        let mut writer = slots.writer(1, Sampling::Event);
        for (turn, value) in [0, 999, 1000, 3000, 9000, 9000, 9000].into_iter().enumerate() {
            writer.record_event(sample(turn as u64, value), 0, 0, 1);
        }
        let record = slots.linear(1).unwrap();
        assert_eq!((record.counts, record.overflow, record.overflow_turns), (vec![2, 1], 4, vec![3, 4, 5]));
        assert_eq!(slots.linear(0).unwrap().overflow, 0);
    }

    #[test]
    fn what_a_slow_reader_of_a_ring_missed_is_counted() {
        let slots = with(HistogramSlotLayout {
            points: 1,
            exceedances: true,
            stream: true,
            ..HistogramSlotLayout::default()
        });
        let mut writer = slots.writer(0, Sampling::Event);
        let (mut cursor, mut seen) = (SampleRingCursor::default(), Vec::new());
        writer.adopt();
        writer.exceed(sample(7, 70));
        assert_eq!(slots.exceedances(0, &mut cursor, |sample| seen.push(sample)), 0);
        assert_eq!(seen, [sample(7, 70)]);
        let total = RING as u64 + 10;
        (0..total).for_each(|turn| writer.record_event(sample(turn, 1), 0, 0, 1));
        let (mut cursor, mut turns) = (SampleRingCursor::default(), Vec::new());
        let lost = slots.samples(0, &mut cursor, |sample| turns.push(sample.turn));
        assert_eq!(lost + turns.len() as u64, total);
        assert!(lost <= 11 && turns.is_sorted() && turns.last() == Some(&(total - 1)));
    }

    #[test]
    fn the_threshold_is_the_plans_until_another_is_set() {
        let slots =
            with(HistogramSlotLayout { points: 1, threshold: Some(60), ..HistogramSlotLayout::default() });
        let writer = slots.writer(0, Sampling::Event);
        assert_eq!(writer.threshold(), 60);
        slots.set_threshold(1);
        assert_eq!(writer.threshold(), 1);
        assert_eq!(self::slots(1).threshold(), u64::MAX);
        assert_eq!(slots.thread(0), 0);
        writer.adopt();
        assert_eq!(slots.thread(0), rustix::thread::gettid().as_raw_nonzero().get() as u32);
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
        writer.record_value(1 << 60, 0);
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
                writer.record_value(value, at as u64);
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
            prop_assert!(blocks.iter().all(|b| b.median <= b.max));
        }
    }
}
