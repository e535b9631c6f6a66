use super::*;

const MS: u64 = 1_000_000;

/// Random generator of the tests, whose sequence is the same each time.
struct PatternRng(u64);

impl PatternRng {
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
fn quota(random: &mut PatternRng) -> Vec<Outlier> {
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
    let mut random = PatternRng(1);
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
    let mut random = PatternRng(5);
    let at = |turn: u64, random: &mut PatternRng| 1234 * MS + turn * 37_310_000 + random.below(200_000);
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
fn false_claims(runs: u64, make: impl Fn(&mut PatternRng) -> Vec<Outlier>) -> (usize, usize) {
    let found: Vec<Vec<Pattern>> =
        (0..runs).map(|run| patterns(&make(&mut PatternRng(run * 7919 + 3)), MS)).collect();
    let periodic = found.iter().filter(|found| period(found).is_some()).count();
    (periodic, found.iter().filter(|found| is_simultaneous(found)).count())
}

#[test]
fn random_events_have_no_pattern() {
    // On two CPUs, without order; on the grid of the thread; short ones, which end soon after the grid.
    let free = |random: &mut PatternRng| -> Vec<Outlier> {
        let count = 5 + random.below(100);
        (0..count).map(|_| outlier(random.below(2) as u32, random.below(60_000 * MS), 2 * MS)).collect()
    };
    let grid = |random: &mut PatternRng| -> Vec<Outlier> {
        let count = 5 + random.below(60);
        let late = |random: &mut PatternRng| 30_000 + random.below(20_000);
        (0..count)
            .map(|_| {
                let (cpu, late) = (random.below(2), late(random));
                outlier(cpu as u32, random.below(20_000) * MS + cpu * MS / 2 + late, late)
            })
            .collect()
    };
    // Bouts: what is busy once stays so for a while.
    let bouts = |random: &mut PatternRng| -> Vec<Outlier> {
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

/// A made source of late events: it begins at `phase` after multiples of its period, up to `jitter` later, ns.
#[derive(Clone, Copy)]
struct LateEventSource {
    period: u64,
    phase: u64,
    jitter: u64,
    length: u64,
    /// Share of its periods that have an event, in percent.
    kept: u64,
}

impl LateEventSource {
    fn every(period: u64) -> LateEventSource {
        LateEventSource { period, phase: 95 * MS, jitter: MS, length: 8 * MS, kept: 100 }
    }

    /// Events during so many ns on a thread that wakes each 1 ms.
    fn events(self, during: u64, random: &mut PatternRng) -> Vec<Outlier> {
        let mut events = Vec::new();
        for turn in 0..during / self.period {
            let begin =
                (turn * self.period + self.phase + random.below(self.jitter + 1)).next_multiple_of(MS);
            let length = self.length + random.below(MS);
            if random.below(100) < self.kept {
                events.push(outlier(0, begin + length, length));
            }
        }
        events
    }
}

#[test]
fn the_period_of_a_source_is_found_and_no_divisor_of_it() {
    let second = 1000 * MS;
    for (period, during) in [
        (3 * second, 31 * second),
        (3 * second, 300 * second),
        (second, 30 * second),
        (200 * MS, 30 * second),
        (100 * MS, 6 * second),
        (100 * MS, 60 * second),
        (1_370 * MS, 60 * second),
    ] {
        for (jitter, kept, seed) in [(0, 100, 1), (MS, 100, 2), (5 * MS, 100, 3), (MS, 75, 4), (0, 75, 5)] {
            let source = LateEventSource { jitter, kept, ..LateEventSource::every(period) };
            let events = source.events(during, &mut PatternRng(seed));
            let found = patterns(&events, MS);
            let claimed = self::period(&found);
            // Few events of many periods may fit a larger one by chance: nothing is claimed then.
            if claimed.is_none() && kept < 100 && events.len() < 10 {
                continue;
            }
            let is_right = claimed.is_some_and(|claimed| claimed.abs_diff(period) <= period / 1000);
            assert!(is_right, "{period} {jitter} {kept}: {found:?}");
            let Some(Pattern::Periodic { fitting, .. }) = found.first() else { panic!("{found:?}") };
            assert_eq!(*fitting, (events.len(), events.len()));
        }
    }
}

#[test]
fn a_few_events_in_common_are_no_source_of_their_own() {
    // A quota of 100 ms that stops the thread in a few periods, which may all be odd.
    let odd: Vec<Outlier> =
        [3, 11, 27, 31, 77].map(|turn| outlier(0, (turn * 100 + 98) * MS, 3 * MS)).to_vec();
    assert_eq!(period(&patterns(&odd, MS)), None);
    let mut claims = [0; 2];
    for seed in 0..300 {
        let random = &mut PatternRng(seed * 7919 + 3);
        let few = LateEventSource { kept: 5 + random.below(10), ..LateEventSource::every(100 * MS) };
        let found = period(&patterns(&few.events(12_000 * MS, random), MS));
        claims[0] += usize::from(found == Some(100 * MS));
        claims[1] += usize::from(found.is_some_and(|found| found != 100 * MS));
    }
    assert!(claims[0] >= 150 && claims[1] <= 6, "{claims:?}");
}

#[test]
fn of_two_sources_no_period_is_claimed_that_neither_has() {
    let second = 1000 * MS;
    let phases = [95, 325, 465, 555].map(|ms| ms * MS);
    for (a, b) in [
        (second, second),
        (second, 3 * second),
        (100 * MS, 3 * second),
        (second, 700 * MS),
        (3 * second, 3 * second),
    ] {
        for (seed, phase) in phases.into_iter().enumerate() {
            for length in [8 * MS, 20 * MS] {
                let random = &mut PatternRng(seed as u64);
                let other = LateEventSource { phase, length, ..LateEventSource::every(b) };
                let mut events = LateEventSource { phase: 15 * MS, ..LateEventSource::every(a) }
                    .events(60 * second, random);
                events.extend(other.events(60 * second, random));
                let found = patterns(&events, MS);
                let claimed = period(&found);
                let is_true =
                    claimed.is_none_or(|found| [a, b].iter().any(|own| found.abs_diff(*own) <= own / 1000));
                assert!(is_true, "{a} and {b} from {phase}: {found:?}");
            }
        }
    }
}

#[test]
fn events_beside_a_source_do_not_change_its_period() {
    for seed in 0..100 {
        let random = &mut PatternRng(seed * 7919 + 3);
        let mut events = LateEventSource::every(3000 * MS).events(60_000 * MS, random);
        events.extend((0..3).map(|_| outlier(0, 20 * MS + random.below(60_000 * MS), 8 * MS)));
        let found = patterns(&events, MS);
        assert!(period(&found).is_none_or(|found| found == 3000 * MS), "{found:?}");
    }
}

#[test]
fn a_limit_of_real_time_threads_is_named_as_surely_as_it_is_known() {
    use latscope_core::report::RealTime;
    let of = |period, logged| {
        let real_time = Some(RealTime { period_ns: 1000 * MS, logged, ..RealTime::default() });
        known_source(period, &Account { real_time, ..Account::default() })
    };
    assert_eq!(of(100 * MS, true), None);
    assert!(of(1000 * MS + 900, true).unwrap().contains("which stopped some"));
    assert!(of(1000 * MS, false).unwrap().contains("which may have stopped some"));
    assert_eq!(known_source(1000 * MS, &Account::default()), None);
}
