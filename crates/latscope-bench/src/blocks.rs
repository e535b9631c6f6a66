//! Samples in order of time, in a few blocks.

use latscope_core::report::SampleBlock;

/// Samples of a block that are kept, for its median: a power of two.
const KEPT: u64 = 16;

/// A block, and samples of it as far apart as each other.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    block: SampleBlock,
    kept: [u64; KEPT as usize],
}

/// Keeps the order of time in constant memory: when full, neighbours merge.
#[derive(Debug)]
pub(crate) struct SampleBlockSeries {
    done: Vec<Stretch>,
    capacity: usize,
    samples_each: u64,
    /// Binary logarithm of the distance between kept samples: one of 2^`apart` samples is kept.
    apart: u32,
}

impl SampleBlockSeries {
    pub(crate) fn new(capacity: usize) -> SampleBlockSeries {
        // Written once, so that no page is missing while something is timed.
        let mut done = vec![Stretch { kept: [1; KEPT as usize], ..Stretch::default() }; capacity];
        done.clear();
        SampleBlockSeries { done, capacity, samples_each: 1, apart: 0 }
    }

    #[inline]
    pub(crate) fn add_value(&mut self, value: u64, at: u64) {
        match self.done.last_mut() {
            Some(Stretch { block, kept }) if block.count < self.samples_each => {
                if block.count.trailing_zeros() >= self.apart {
                    kept[((block.count >> self.apart) % KEPT) as usize] = value;
                }
                block.count += 1;
                block.sum = block.sum.saturating_add(value);
                block.max = block.max.max(value);
            }
            _ => self.open_block(value, at),
        }
    }

    fn open_block(&mut self, value: u64, at: u64) {
        if self.done.len() == self.capacity {
            for pair in 0..self.capacity / 2 {
                self.done[pair] =
                    self.done[2 * pair].merged_with(&self.done[2 * pair + 1], self.samples_each);
            }
            self.done.truncate(self.capacity / 2);
            self.samples_each *= 2;
            self.apart = self.samples_each.div_ceil(KEPT).trailing_zeros();
        }
        let block = SampleBlock { from: at, count: 1, sum: value, max: value, median: 0 };
        let mut kept = [0; KEPT as usize];
        kept[0] = value;
        self.done.push(Stretch { block, kept });
    }

    pub(crate) fn done(self) -> Vec<SampleBlock> {
        self.done
            .iter()
            .map(|stretch| SampleBlock { median: self.median(stretch), ..stretch.block })
            .collect()
    }

    fn median(&self, stretch: &Stretch) -> u64 {
        let mut kept = stretch.kept;
        let kept = &mut kept[..stretch.block.count.div_ceil(1 << self.apart).min(KEPT) as usize];
        kept.sort_unstable();
        let middle = kept.len() / 2;
        let below = kept[(kept.len() - 1) / 2];
        below + (kept[middle] - below) / 2
    }
}

impl Stretch {
    /// Returns the stretch merged with the next; each of the two has `samples` samples.
    fn merged_with(&self, next: &Stretch, samples: u64) -> Stretch {
        let of_each = samples.min(KEPT) as usize;
        let both = self.kept[..of_each].iter().chain(&next.kept[..of_each]);
        // Of more than there is room for, every other one.
        let mut kept = [0; KEPT as usize];
        let apart = (2 * of_each).div_ceil(KEPT as usize);
        kept.iter_mut().zip(both.step_by(apart)).for_each(|(to, value)| *to = *value);
        let (a, b) = (&self.block, &next.block);
        let block = SampleBlock {
            from: a.from,
            count: a.count + b.count,
            sum: a.sum.saturating_add(b.sum),
            max: a.max.max(b.max),
            median: 0,
        };
        Stretch { block, kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_median_of_samples_from_all_of_it() {
        let medians = |samples: u64| -> Vec<SampleBlock> {
            let mut blocks = SampleBlockSeries::new(4);
            (0..samples).for_each(|at| blocks.add_value(at, at));
            blocks.done()
        };
        // As many as fit: exact.
        assert_eq!(medians(3).iter().map(|block| block.median).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(medians(64)[1].median, 23);
        // Of 512 samples every 32nd: that of 0, 32, …, 480.
        let long = medians(4 * 512);
        assert_eq!((long.len(), long[0].count, long[0].median), (4, 512, 240));
        assert_eq!(long[3].median, 3 * 512 + 240);
        // The last one is not full.
        assert_eq!(medians(3 * 512 + 1)[3].median, 3 * 512);
        let stall = (0..4 * 512).map(|at| if at == 77 { 1 << 40 } else { 5 });
        let mut blocks = SampleBlockSeries::new(4);
        stall.for_each(|value| blocks.add_value(value, 0));
        assert!(blocks.done().iter().all(|block| block.median == 5));
    }
}
