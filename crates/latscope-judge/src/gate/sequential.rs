//! Sequential test of the share of bad runs, which decides when enough runs have been judged.
//!
//! Wald's sequential probability ratio test ("Sequential tests of statistical hypotheses", 1945) between a share of 10
//! % and one of 90 %, each error at most 1 %. Good and bad runs weigh alike, so that it decides as soon as one kind is
//! three ahead.

/// Largest share of bad runs of a good program; a bad program has the complement at least.
const BAD_AMONG_GOOD: f64 = 0.1;

/// Probability of error of either decision.
const ERROR: f64 = 0.01;

/// Runs judged so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sequential {
    /// Runs that held the budget.
    pub good: usize,
    /// Runs that exceeded it.
    pub bad: usize,
}

/// Decision on the share of bad runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Few runs exceed the budget.
    Good,
    /// Most runs exceed the budget.
    Bad,
}

impl Sequential {
    /// Lead in runs that one kind needs over the other.
    pub fn lead() -> usize {
        let weight = ((1.0 - BAD_AMONG_GOOD) / BAD_AMONG_GOOD).ln();
        (((1.0 - ERROR) / ERROR).ln() / weight).ceil() as usize
    }

    /// Decision from the runs so far; `None` if further runs are needed.
    pub fn decision(&self) -> Option<Decision> {
        match self.bad as i64 - self.good as i64 {
            ahead if ahead >= Sequential::lead() as i64 => Some(Decision::Bad),
            ahead if -ahead >= Sequential::lead() as i64 => Some(Decision::Good),
            _ => None,
        }
    }

    /// The fewest further runs that can decide.
    pub fn fewest_left(&self) -> usize {
        Sequential::lead().saturating_sub(self.bad.abs_diff(self.good))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::statistics::SplitMix;

    #[test]
    fn three_ahead_decide() {
        let decision = |good, bad| Sequential { good, bad }.decision();
        assert_eq!(Sequential::lead(), 3);
        assert_eq!([decision(3, 0), decision(4, 1), decision(0, 3), decision(5, 8)].map(Option::unwrap), {
            use Decision::*;
            [Good, Good, Bad, Bad]
        });
        assert_eq!([decision(0, 0), decision(2, 0), decision(3, 1), decision(3, 5)], [None; 4]);
        assert_eq!(Sequential { good: 3, bad: 5 }.fewest_left(), 1);
    }

    #[test]
    fn it_is_wrong_as_seldom_as_it_says() {
        let mut random = SplitMix::new(11);
        for (share, right) in [(10, Decision::Good), (90, Decision::Bad)] {
            let (mut wrong, mut runs) = (0, 0);
            for _ in 0..10_000 {
                let mut seen = Sequential::default();
                let decided = loop {
                    if random.below(100) < share {
                        seen.bad += 1
                    } else {
                        seen.good += 1
                    }
                    runs += 1;
                    if let Some(decided) = seen.decision() {
                        break decided;
                    }
                };
                wrong += usize::from(decided != right);
            }
            // 1 in 730 is expected, and four runs.
            assert!(wrong <= 30 && runs < 50_000, "share {share}: {wrong} of 10,000, {runs} runs");
        }
    }
}
