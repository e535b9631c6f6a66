//! A random cycle that grows with the size being swept, so that a sweep over many sizes costs no more than the
//! largest of them.

use super::{ChaseMap, WORD, bytes_to_words, start_address};
use crate::kernels::random::ShuffleGenerator;

/// A random cycle over the first part of a region, which can be made longer.
///
/// Each new element is put behind one of those before it, each of these with the same probability. By that, every
/// cycle over the elements is equally likely at every length, just as with Sattolo's algorithm.
#[derive(Debug)]
pub struct GrowingChase<'m> {
    memory: &'m mut [usize],
    line: usize,
    length: usize,
    random: ShuffleGenerator,
}

impl<'m> GrowingChase<'m> {
    /// Starts with a cycle of one element: a pointer to itself at the start of the region.
    ///
    /// # Panics
    ///
    /// When `line` is not a positive multiple of the pointer size, or the region is smaller than one line.
    pub fn new(memory: &'m mut [usize], line: usize, seed: u64) -> Self {
        assert!(memory.len() >= bytes_to_words(line), "the region is smaller than one line of {line} bytes");
        memory[0] = start_address(memory);
        Self { memory, line, length: 1, random: ShuffleGenerator::new(seed) }
    }

    /// Makes the cycle at least as long as the first `bytes` bytes of the region have room for, one element a
    /// line, and returns the map of it. It never becomes shorter.
    ///
    /// # Panics
    ///
    /// When the region is smaller than `bytes`.
    pub fn grow(&mut self, bytes: usize) -> ChaseMap<'_> {
        assert!(bytes <= self.memory.len() * WORD, "the region is smaller than {bytes} bytes");
        let (step, base) = (self.line / WORD, start_address(self.memory));
        for element in self.length..bytes / self.line {
            let before = self.random.below(element as u64) as usize * step;
            self.memory[element * step] = self.memory[before];
            self.memory[before] = base + element * self.line;
        }
        self.length = self.length.max(bytes / self.line);
        ChaseMap::new(self.memory, 0, self.length, self.length * self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_length_is_one_cycle_over_all_lines() {
        let mut memory = vec![0; 8 << 10];
        let mut chase = GrowingChase::new(&mut memory, 64, 3);
        for bytes in [64, 2048, 2304, 30_000, 65_536] {
            let map = chase.grow(bytes);
            assert_eq!(map.len(), bytes / 64);
            let offsets: BTreeSet<usize> = map.offsets().collect();
            assert_eq!(offsets, (0..bytes / 64).map(|line| line * 64).collect());
            assert_eq!(map.offset(map.walk_from(map.start(), 64 * map.len() as u64)), 0);
        }
        assert_eq!(chase.grow(64).len(), 1024);
    }

    #[test]
    fn every_cycle_is_equally_likely() {
        let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for seed in 0..6_000 {
            let mut memory = [0; 4];
            let mut chase = GrowingChase::new(&mut memory, WORD, seed);
            *seen.entry(chase.grow(4 * WORD).offsets().collect()).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| (850..1150).contains(count)), "{seen:?}");
    }

    #[test]
    #[should_panic(expected = "smaller than 128 bytes")]
    fn it_cannot_outgrow_the_region() {
        GrowingChase::new(&mut [0; 8], 64, 1).grow(128);
    }
}
