//! Every order visits each of its elements once and comes back.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::*;

const SIZES: [usize; 8] = [8, 9, 16, 64, 520, 4_096, 5_000, 40_000];

/// The order of one walk around, checked to be a single cycle through `length` elements.
fn order(map: &ChaseMap<'_>, length: usize, element: usize) -> Vec<usize> {
    let order: Vec<usize> = map.offsets().collect();
    assert_eq!(order.len(), length);
    assert_eq!(map.len(), length);
    assert!(order.iter().all(|offset| offset % element == 0 && *offset < map.bytes()));
    assert_eq!(order.iter().collect::<HashSet<_>>().len(), length, "an element is visited twice");
    let base = start_address(map.memory);
    assert_eq!(map.memory[order[length - 1] / WORD] - base, order[0], "the walk does not return");
    order
}

#[test]
fn random_is_one_cycle_through_every_line() {
    for words in SIZES {
        for line in [8, 64] {
            for seed in 0..3 {
                let mut memory = vec![0; words];
                let map = ChaseMap::random(&mut memory, line, seed);
                order(&map, words * 8 / line, line);
            }
        }
    }
}

#[test]
fn windows_are_visited_one_after_the_other() {
    for words in SIZES {
        for window in [64, 1_024, 4_096, 1 << 20] {
            let mut memory = vec![0; words];
            let map = ChaseMap::window(&mut memory, 64, window, 5);
            let mut windows: Vec<usize> =
                order(&map, words / 8, 64).into_iter().map(|offset| offset / window).collect();
            windows.dedup();
            assert_eq!(windows.len(), (words / 8 * 64).div_ceil(window));
        }
    }
}

#[test]
fn windows_and_their_insides_are_not_in_order() {
    let mut memory = vec![0; 64 * 512];
    let map = ChaseMap::window(&mut memory, 64, 4_096, 5);
    let order: Vec<usize> = map.offsets().collect();
    let ascending = |items: &[usize]| items.is_sorted();
    assert!(!ascending(&order[..64]));
    assert!(!ascending(&order.iter().step_by(64).map(|o| o / 4_096).collect::<Vec<_>>()));
}

#[test]
fn pages_are_touched_once_each_at_moving_lines() {
    let mut memory = vec![0; 512 * 300];
    let map = ChaseMap::page_order(&mut memory, 4_096, 64, 9);
    let order = order(&map, 300, 64);
    let pages: HashSet<usize> = order.iter().map(|offset| offset / 4_096).collect();
    assert_eq!(pages.len(), 300);
    let mut lines = [0; 64];
    for offset in order {
        lines[offset % 4_096 / 64] += 1;
    }
    assert!(lines.iter().all(|&count| (4..=5).contains(&count)));
    assert_eq!(map.bytes(), 300 * 4_096);
}

#[test]
fn strides_go_forward() {
    let mut memory = vec![0; 1_000];
    let map = ChaseMap::stride(&mut memory, 128);
    assert_eq!(order(&map, 62, 128), (0..62).map(|i| i * 128).collect::<Vec<_>>());
}

#[test]
fn seeds_repeat_and_differ() {
    let of = |seed| {
        let mut memory = vec![0; 8_000];
        ChaseMap::random(&mut memory, 64, seed).offsets().collect::<Vec<_>>()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn a_walk_follows_the_order() {
    let mut memory = vec![0; 8 * 1_000];
    let map = ChaseMap::random(&mut memory, 64, 3);
    let order: Vec<usize> = map.offsets().collect();
    for (steps, taken) in [(0, 0), (1, 64), (64, 64), (65, 128), (1_000, 1_024), (64_000, 64_000)] {
        let reached = map.walk_from(map.start(), steps);
        assert_eq!(map.offset(reached), order[taken % 1_000], "{steps} steps");
    }
}

#[test]
fn all_chains_follow_the_order() {
    let mut memory = vec![0; 8 * 1_000];
    let all = Chains::random(&mut memory, 64, 3);
    let order: Vec<usize> = all.map().offsets().collect();
    assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 1_000);
    for count in 1..=MAX_CHAINS {
        let mut chains = all.select_chains(count);
        assert_eq!(chains.count(), count);
        let of = |chain: usize| chain * MAX_CHAINS / count * 1_000 / MAX_CHAINS;
        let places: Vec<usize> = (0..count).map(of).collect();
        assert!(chains.offsets().eq(places.iter().map(|&place| order[place])));
        for (steps, taken) in [(0, 0), (1, 64), (130, 192)] {
            let mut chains = chains.clone();
            assert_eq!(chains.walk_all(steps), taken as u64 * count as u64);
            let expected = places.iter().map(|&place| order[(place + taken) % 1_000]);
            assert!(chains.offsets().eq(expected), "{count} chains, {steps} steps");
        }
        chains.walk_all(64_000);
        assert!(chains.offsets().eq(places.iter().map(|&place| order[place])));
    }
    let mut around = all.select_chains(4);
    around.walk_around();
    // 250 steps, rounded up.
    assert!(around.offsets().eq([256, 506, 756, 6].map(|place: usize| order[place])));
    assert_eq!(all.select_chains(0).count(), 1);
    assert_eq!(all.select_chains(99).count(), MAX_CHAINS);
}

#[test]
fn chains_follow_every_cycle_with_the_same_probability() {
    let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
    for seed in 0..6_000 {
        let mut memory = [0; 4];
        let chains = Chains::random(&mut memory, WORD, seed);
        let from_zero = |offset: &usize| *offset != 0;
        let order = chains.map().offsets().chain(chains.map().offsets()).skip_while(from_zero).take(4);
        *seen.entry(order.collect()).or_default() += 1;
    }
    assert_eq!(seen.len(), 6);
    assert!(seen.values().all(|count| (850..1150).contains(count)), "{seen:?}");
}

#[test]
fn one_element_leads_to_itself() {
    let mut memory = vec![0; 8];
    let map = ChaseMap::random(&mut memory, 64, 0);
    assert_eq!(map.offset(map.walk_from(map.start(), 1_000)), 0);
}

#[test]
#[should_panic(expected = "multiple of the pointer size")]
fn an_odd_line_is_refused() {
    ChaseMap::random(&mut [0; 64], 12, 0);
}

#[test]
#[should_panic(expected = "smaller than one page")]
fn a_small_region_is_refused() {
    ChaseMap::page_order(&mut [0; 64], 4_096, 64, 0);
}
