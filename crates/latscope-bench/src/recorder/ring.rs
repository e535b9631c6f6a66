//! A ring of samples in shared memory: one writer that never waits, and a reader that counts what it missed.

use super::layout::SAMPLE;
use latscope_core::report::Exceedance;
use std::sync::atomic::{AtomicU64, Ordering, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A word of the ring: an atomic of the machine, or of a model of its memory.
pub trait SampleRingWord {
    /// Loads the word's value.
    fn load(&self, order: Ordering) -> u64;
    /// Stores `value` in the word.
    fn store(&self, value: u64, order: Ordering);
}

impl SampleRingWord for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
}

/// Writes a sample; the head counts them. There is one writer.
#[inline]
pub fn write_sample<W: SampleRingWord>(head: &W, samples: &[W], sample: Exceedance) {
    let turn = head.load(Relaxed);
    let at = turn as usize % (samples.len() / SAMPLE) * SAMPLE;
    for (word, value) in samples[at..at + SAMPLE].iter().zip([sample.turn, sample.at, sample.value]) {
        // Not before the head that announces it: a reader that sees a word of this turn sees that head, too.
        word.store(value, Release);
    }
    head.store(turn + 1, Release);
}

/// Takes the samples from `cursor` on, and returns how many are lost: the writer may be overwriting what is
/// read, and what it may have reached meanwhile is no sample.
pub fn drain<W: SampleRingWord>(
    head: &W,
    samples: &[W],
    cursor: &mut u64,
    take: &mut dyn FnMut(Exceedance),
) -> u64 {
    let capacity = (samples.len() / SAMPLE) as u64;
    let mut lost = 0;
    loop {
        let reached = head.load(Acquire);
        if *cursor == reached {
            return lost;
        }
        let oldest = reached.saturating_sub(capacity - 1);
        if *cursor < oldest {
            lost += oldest - *cursor;
            *cursor = oldest;
        }
        let at = (*cursor % capacity) as usize * SAMPLE;
        let word = |index: usize| samples[at + index].load(Acquire);
        let sample = Exceedance { turn: word(0), at: word(1), value: word(2) };
        // The place is rewritten only after the head came round to it.
        if head.load(Acquire) - *cursor < capacity {
            take(sample);
        } else {
            lost += 1;
        }
        *cursor += 1;
    }
}
