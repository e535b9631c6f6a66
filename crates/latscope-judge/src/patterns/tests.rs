use super::*;

const MS: u64 = 1_000_000;

/// Random generator of the tests, whose sequence is the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() << 31 | self.next()) % limit
    }
}

fn outlier(cpu: u32, at: u64, value: u64) -> Outlier {
    Outlier { at, cpu, value, ..Outlier::default() }
}

fn period(patterns: &[Pattern]) -> Option<u64> {
    patterns.iter().find_map(|pattern| match pattern {
        Pattern::Periodic { period, .. } => Some(*period),
        Pattern::Simultaneous { .. } => None,
    })
}

fn is_simultaneous(patterns: &[Pattern]) -> bool {
    patterns.iter().any(|pattern| matches!(pattern, Pattern::Simultaneous { .. }))
}

/// Events on both CPUs at some multiples of 100 ms, each 94 to 95 ms after it, 3 to 5 ms long.
fn quota(random: &mut Random) -> Vec<Outlier> {
    let turns = [3, 11, 12, 27, 31, 48, 60, 77];
    let both = turns.into_iter().flat_map(|turn| {
        let begin = turn * 100 * MS + 94 * MS + random.below(MS);
        let length = 3 * MS + random.below(2 * MS);
        [0, 1].map(|cpu| outlier(cpu, begin + length + random.below(MS / 10), length))
    });
    both.collect()
}

#[test]
fn a_quota_of_the_host_is_seen_with_its_period_and_on_both_cpus() {
    let mut random = Random(1);
    let mut events = quota(&mut random);
    // Beside many short ones without order.
    events.extend((0..120).map(|_| outlier(1, random.below(8_000 * MS), 100_000 + random.below(MS))));
    let found = patterns(&events, MS);
    let Some(Pattern::Periodic { fitting, above, period, phase, begins, chance }) = found.first() else {
        panic!("{found:?}")
    };
    assert_eq!((*fitting, *period, *begins), ((8, 8), 100 * MS, true));
    assert!(*above >= 3 * MS && *chance < 1e-6);
    assert!(phase.0 >= 94 * MS && phase.1 <= 95 * MS, "{phase:?}");
    let found = patterns(&quota(&mut random), MS);
    let fits = |pattern: &Pattern| matches!(pattern, Pattern::Simultaneous { fitting: (8, 8), chance, .. } if *chance < 1e-9);
    assert!(found.iter().any(fits), "{found:?}");
}

#[test]
fn a_period_that_is_not_round_is_seen_too() {
    let mut random = Random(5);
    let at = |turn: u64, random: &mut Random| 1234 * MS + turn * 37_310_000 + random.below(200_000);
    let events: Vec<Outlier> = (0..40).map(|turn| outlier(0, at(turn, &mut random), 2 * MS)).collect();
    let found = period(&patterns(&events, MS)).unwrap();
    assert!(found.abs_diff(37_310_000) < 37_310, "{found}");
    // Also where some are missing.
    let some: Vec<Outlier> =
        events.iter().enumerate().filter(|(at, _)| at % 3 != 1).map(|(_, o)| o.clone()).collect();
    assert!(period(&patterns(&some, MS)).is_some());
}

#[test]
fn few_events_show_nothing() {
    let four: Vec<Outlier> = (1..5).map(|turn| outlier(0, turn * 100 * MS, 3 * MS)).collect();
    assert_eq!(patterns(&four, MS), []);
    assert_eq!(patterns(&[], MS), []);
}

/// Runs in which a pattern is claimed, of a number of random ones.
fn false_claims(runs: u64, make: impl Fn(&mut Random) -> Vec<Outlier>) -> (usize, usize) {
    let found: Vec<Vec<Pattern>> =
        (0..runs).map(|run| patterns(&make(&mut Random(run * 7919 + 3)), MS)).collect();
    let periodic = found.iter().filter(|found| period(found).is_some()).count();
    (periodic, found.iter().filter(|found| is_simultaneous(found)).count())
}

#[test]
fn random_events_have_no_pattern() {
    // On two CPUs, without order; on the grid of the thread; short ones, which end soon after the grid.
    let free = |random: &mut Random| -> Vec<Outlier> {
        let count = 5 + random.below(100);
        (0..count).map(|_| outlier(random.below(2) as u32, random.below(60_000 * MS), 2 * MS)).collect()
    };
    let grid = |random: &mut Random| -> Vec<Outlier> {
        let count = 5 + random.below(60);
        let late = |random: &mut Random| 30_000 + random.below(20_000);
        (0..count)
            .map(|_| {
                let (cpu, late) = (random.below(2), late(random));
                outlier(cpu as u32, random.below(20_000) * MS + cpu * MS / 2 + late, late)
            })
            .collect()
    };
    // Bouts: what is busy once stays so for a while.
    let bouts = |random: &mut Random| -> Vec<Outlier> {
        let mut events = Vec::new();
        for _ in 0..3 + random.below(12) {
            let (begin, cpu) = (random.below(30_000 * MS), random.below(2) as u32);
            let count = 1 + random.below(12);
            events.extend((0..count).map(|_| outlier(cpu, begin + random.below(80 * MS), MS)));
        }
        events
    };
    for (periodic, simultaneous) in
        [false_claims(500, free), false_claims(500, grid), false_claims(500, bouts)]
    {
        // One in a thousand is allowed, at the most; of 500 hardly ever three.
        assert!(periodic <= 2 && simultaneous <= 2, "{periodic} {simultaneous}");
    }
}
