//! The loop that watches for stolen time: reads the clock and nothing else,
//! until two readings lie too far apart.

use latscope_os::clock::Clock;

/// Limits of the loop, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapWatchLimits {
    /// Ticks between two readings when nothing comes between them.
    pub own: u64,
    /// Ticks beyond these that make a gap.
    pub threshold: u64,
    /// Ticks from one look at the host to the next.
    pub look: u64,
}

/// Result of the loop; times are in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GapWatchResult {
    /// Readings of the clock.
    pub turns: u64,
    /// Time in the loop, gaps included.
    pub watched: u64,
    /// The sum of the gaps.
    pub lost: u64,
    /// Number of gaps found.
    pub gaps: u64,
    /// The longest distance of two readings beyond the usual one.
    pub longest: u64,
}

/// Surroundings of the loop: what happens between two of its stretches.
pub trait GapWatchHost {
    /// Takes a gap of so many ticks beyond the loop's own.
    fn gap(&mut self, ticks: u64);
    /// Looks around, also after a gap. Returns true to go on. `now` is the last reading.
    fn look(&mut self, now: u64) -> bool;
    /// The reading with which the loop goes on.
    fn next_reading(&mut self) -> u64;
}

/// Watches until the host ends the loop.
pub fn watch_gaps<C: Clock>(clock: C, rules: GapWatchLimits, host: &mut impl GapWatchHost) -> GapWatchResult {
    let mut seen = GapWatchResult::default();
    let limit = rules.own + rules.threshold;
    let mut began = clock.stamp_end();
    let (mut last, mut look) = (began, began + rules.look);
    loop {
        let now = clock.stamp_end();
        let step = now.saturating_sub(last);
        last = now;
        seen.turns += 1;
        seen.longest = seen.longest.max(step);
        if step < limit && now < look {
            continue;
        }
        seen.watched += now - began;
        if step >= limit {
            seen.gaps += 1;
            seen.lost += step - rules.own;
            host.gap(step - rules.own);
        }
        if !host.look(now) {
            seen.longest = seen.longest.saturating_sub(rules.own);
            return seen;
        }
        began = host.next_reading();
        (last, look) = (began, began + rules.look);
    }
}

/// The loop's own ticks: the median distance of two readings among `turns`.
pub(crate) fn own_ticks(clock: impl Clock, turns: usize) -> u64 {
    let mut last = clock.stamp_end();
    let mut steps: Vec<u64> = (0..turns.max(1))
        .map(|_| {
            let now = clock.stamp_end();
            now.saturating_sub(std::mem::replace(&mut last, now))
        })
        .collect();
    steps.sort_unstable();
    steps[steps.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A clock that ticks by a script, and then always by 20.
    #[derive(Clone, Copy)]
    struct Scripted<'a>(&'a Cell<u64>, &'a Cell<&'a [u64]>);

    impl Clock for Scripted<'_> {
        fn stamp_start(self) -> u64 {
            self.stamp_end()
        }

        fn stamp_end(self) -> u64 {
            let step = match self.1.get() {
                [] => 20,
                [first, rest @ ..] => {
                    self.1.set(rest);
                    *first
                }
            };
            self.0.set(self.0.get() + step);
            self.0.get()
        }
    }

    struct Noted<'a> {
        clock: Scripted<'a>,
        gaps: Vec<u64>,
        looks: u64,
        until: u64,
    }

    impl GapWatchHost for Noted<'_> {
        fn gap(&mut self, ticks: u64) {
            self.gaps.push(ticks);
        }

        fn look(&mut self, now: u64) -> bool {
            self.looks += 1;
            now < self.until
        }

        fn next_reading(&mut self) -> u64 {
            self.clock.stamp_end()
        }
    }

    /// Runs the loop; returns its result, the gaps, and the number of looks.
    fn run(script: &[u64], until: u64) -> (GapWatchResult, Vec<u64>, u64) {
        let (time, steps) = (Cell::new(0), Cell::new(script));
        let clock = Scripted(&time, &steps);
        let mut noted = Noted { clock, gaps: Vec::new(), looks: 0, until };
        let rules = GapWatchLimits { own: 20, threshold: 100, look: 1000 };
        let seen = watch_gaps(clock, rules, &mut noted);
        (seen, noted.gaps, noted.looks)
    }

    #[test]
    fn gaps_are_what_is_beyond_the_loops_own_time() {
        // The reading after a gap begins anew: what the host does there is not in the loop.
        let (seen, gaps, _) = run(&[0, 20, 520, 7_000, 20, 119, 120, 9_000], 20_000);
        assert_eq!(gaps, [500, 100]);
        assert_eq!((seen.gaps, seen.lost, seen.longest), (2, 600, 500));
        let first = 20 + 520;
        let second = 20 + 119 + 120;
        let rest = 20_000 - (first + 7_000 + second + 9_000);
        // The last looks come a whole interval of the loop apart.
        assert!(seen.watched.abs_diff(first + second + rest) <= 1_200, "{seen:?}");
    }

    #[test]
    fn a_quiet_loop_still_looks_around_and_ends() {
        let (seen, _, looks) = run(&[], 10_000);
        assert_eq!((seen.gaps, seen.lost, seen.longest), (0, 0, 0));
        assert!((9..=11).contains(&looks), "{looks}");
        assert_eq!(seen.turns, seen.watched / 20);
    }

    #[test]
    fn the_loops_own_time_is_not_moved_by_a_few_gaps() {
        let (time, steps) = (Cell::new(0), Cell::new([0, 20, 20, 900, 20, 30, 20].as_slice()));
        assert_eq!(own_ticks(Scripted(&time, &steps), 50), 20);
    }
}
