//! A small seeded generator of pseudo-random numbers, for shuffles and data that a run can repeat.

/// The generator SplitMix64 of Steele, Lea and Flood ("Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct ShuffleGenerator(u64);

impl ShuffleGenerator {
    /// Starts the sequence of `seed`; every seed is good, zero too.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`, evenly distributed (Lemire's multiplication with rejection).
    ///
    /// # Panics
    ///
    /// When `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// Puts `items` in an order in which each permutation is equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Fills `words` with random bits.
    pub fn fill_words(&mut self, words: &mut [u64]) {
        words.fill_with(|| self.next_u64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_its_published_sequence() {
        let mut random = ShuffleGenerator(1_234_567);
        let first: [u64; 5] = std::array::from_fn(|_| random.next_u64());
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut random = ShuffleGenerator::new(7);
        for bound in 1..20_u64 {
            let mut seen = vec![false; bound as usize];
            for _ in 0..1_000 {
                seen[random.below(bound) as usize] = true;
            }
            assert!(seen.iter().all(|&s| s), "bound {bound}");
        }
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..1_000).collect();
        ShuffleGenerator::new(1).shuffle(&mut items);
        assert_ne!(items, (0..1_000).collect::<Vec<u32>>());
        items.sort_unstable();
        assert_eq!(items, (0..1_000).collect::<Vec<u32>>());
    }
}
