use super::*;
use latscope_core::machine::{CpuCache, Machine};
use latscope_core::statistics::SplitMix;
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sizes from 2 KiB to `end`, so many an octave.
fn sizes(end: u64, per_octave: u32) -> Vec<u64> {
    (0..)
        .map(|i| (2048.0 * (f64::from(i) / f64::from(per_octave)).exp2()).round() as u64)
        .take_while(|size| *size <= end)
        .collect()
}

/// The curve of a machine with these caches (capacity, ns of a hit).
fn curve(sizes: &[u64], caches: &[(u64, f64)], memory: f64) -> Vec<(u64, f64)> {
    let latency = |size: u64| {
        let mut left = 1.0;
        let mut ns = 0.0;
        for (capacity, hit) in caches {
            // Beyond its capacity a cache with LRU-like replacement loses its
            // hits within an octave.
            let over = (size as f64 / *capacity as f64).log2();
            let hits = (1.0 - over / 0.6).clamp(0.0, 1.0);
            ns += (left * hits) * hit;
            left *= 1.0 - hits;
        }
        ns + left * memory
    };
    sizes.iter().map(|size| (*size, latency(*size))).collect()
}

fn noisy(curve: &[(u64, f64)], percent: f64, seed: u64) -> Vec<(u64, f64)> {
    let mut random = SplitMix::new(seed);
    curve
        .iter()
        .map(|(size, ns)| {
            // Two uniform numbers: triangular, bounded noise.
            let wobble = (random.below(2001) + random.below(2001)) as f64 / 2000.0 - 1.0;
            (*size, ns * (1.0 + wobble * percent / 100.0))
        })
        .collect()
}

fn intel_guest(per_octave: u32) -> Vec<(u64, f64)> {
    curve(&sizes(512 * MIB, per_octave), &[(48 * KIB, 1.7), (2 * MIB, 6.0), (4608 * KIB, 43.0)], 132.0)
}

fn zen4(per_octave: u32) -> Vec<(u64, f64)> {
    curve(&sizes(512 * MIB, per_octave), &[(32 * KIB, 1.1), (MIB, 4.0), (32 * MIB, 13.0)], 100.0)
}

/// Latencies within 10 %; capacities within the half octave of a soft edge.
fn assert_levels(curve: &[(u64, f64)], expected: &[(Option<u64>, f64)]) {
    let levels = detect(curve);
    let found: Vec<(Option<u64>, f64)> =
        without_ramps(&levels).map(|l| (l.edge.map(|edge| edge.log_midpoint()), l.latency_ns)).collect();
    assert_eq!(found.len(), expected.len(), "{levels:#?}");
    for ((capacity, ns), (wanted, wanted_ns)) in found.iter().zip(expected) {
        assert!((ns / wanted_ns).log2().abs() < 0.14, "{ns} ns, expected {wanted_ns}: {levels:#?}");
        assert_eq!(capacity.is_some(), wanted.is_some(), "{levels:#?}");
        if let (Some(capacity), Some(wanted)) = (capacity, wanted) {
            let octaves = (*capacity as f64 / *wanted as f64).log2();
            assert!((-0.2..0.5).contains(&octaves), "{capacity} bytes, expected {wanted}: {levels:#?}");
        }
    }
}

fn machine(caches: &[(u32, u64)]) -> Machine {
    let cache = |(level, size): &(u32, u64)| CpuCache {
        level: *level,
        kind: if *level == 1 { "Data" } else { "Unified" }.to_owned(),
        size: *size,
        ..CpuCache::default()
    };
    let mut machine = Machine { caches: caches.iter().map(cache).collect(), ..Machine::default() };
    let instructions =
        CpuCache { level: 1, kind: "Instruction".to_owned(), size: 7 * KIB, ..CpuCache::default() };
    machine.caches.insert(0, instructions);
    machine
}

#[test]
fn two_levels() {
    let curve = curve(&sizes(64 * MIB, 8), &[(32 * KIB, 1.2)], 90.0);
    assert_levels(&curve, &[(Some(32 * KIB), 1.2), (None, 90.0)]);
}

#[test]
fn three_levels() {
    let curve = curve(&sizes(64 * MIB, 8), &[(64 * KIB, 2.0), (512 * KIB, 9.0)], 120.0);
    assert_levels(&curve, &[(Some(64 * KIB), 2.0), (Some(512 * KIB), 9.0), (None, 120.0)]);
}

#[test]
fn four_levels() {
    let expected = [(Some(32 * KIB), 1.1), (Some(MIB), 4.0), (Some(32 * MIB), 13.0), (None, 100.0)];
    assert_levels(&zen4(8), &expected);
    assert_levels(&zen4(12), &expected);
}

#[test]
fn a_partitioned_last_level_of_one_octave_is_found() {
    let expected = [(Some(48 * KIB), 1.7), (Some(2 * MIB), 6.0), (Some(4608 * KIB), 43.0), (None, 132.0)];
    assert_levels(&intel_guest(8), &expected);
}

#[test]
fn five_levels() {
    let caches = [(32 * KIB, 1.0), (256 * KIB, 3.0), (4 * MIB, 11.0), (64 * MIB, 40.0)];
    let curve = curve(&sizes(1024 * MIB, 8), &caches, 110.0);
    assert_eq!(without_ramps(&detect(&curve)).count(), 5);
}

#[test]
fn two_points_an_octave_show_wide_levels() {
    let levels = detect(&zen4(2));
    let found: Vec<f64> = without_ramps(&levels).map(|level| level.latency_ns).collect();
    assert_eq!(found.len(), 4, "{levels:#?}");
    assert!((found[0] - 1.1).abs() < 0.1 && (found[3] - 100.0).abs() < 5.0, "{levels:#?}");
}

#[test]
fn noise_of_ten_percent_changes_nothing() {
    let expected = [(Some(32 * KIB), 1.1), (Some(MIB), 4.0), (Some(32 * MIB), 13.0), (None, 100.0)];
    for seed in 0..50 {
        assert_levels(&noisy(&zen4(8), 10.0, seed), &expected);
    }
    let expected = [(Some(48 * KIB), 1.7), (Some(2 * MIB), 6.0), (Some(4608 * KIB), 43.0), (None, 132.0)];
    for seed in 0..50 {
        assert_levels(&noisy(&intel_guest(8), 5.0, seed), &expected);
    }
}

#[test]
fn dips_are_not_levels() {
    let mut curve = zen4(8);
    for at in [40, 41, 100, 101, 102] {
        curve[at].1 *= 0.5;
    }
    let expected = [(Some(32 * KIB), 1.1), (Some(MIB), 4.0), (Some(32 * MIB), 13.0), (None, 100.0)];
    assert_levels(&curve, &expected);
}

#[test]
fn one_giant_outlier_anywhere_is_ignored() {
    let clean = zen4(8);
    let expected = [(Some(32 * KIB), 1.1), (Some(MIB), 4.0), (Some(32 * MIB), 13.0), (None, 100.0)];
    for at in 0..clean.len() {
        for factor in [1000.0, 0.001] {
            let mut curve = clean.clone();
            curve[at].1 *= factor;
            assert_levels(&curve, &expected);
        }
    }
}

#[test]
fn a_flat_curve_is_one_level() {
    let curve: Vec<(u64, f64)> = sizes(64 * MIB, 8).into_iter().map(|size| (size, 3.0)).collect();
    let levels = detect(&curve);
    assert_eq!(levels.len(), 1);
    assert_eq!((levels[0].edge, levels[0].latency_ns, levels[0].ramp), (None, 3.0, false));
    assert_eq!((levels[0].from_size, levels[0].to_size), (curve[0].0, curve[curve.len() - 1].0));
    for seed in 0..50 {
        assert_eq!(detect(&noisy(&curve, 15.0, seed)).len(), 1, "seed {seed}");
    }
}

#[test]
fn no_points_are_no_levels() {
    assert_eq!(detect(&[]), []);
    assert_eq!(detect(&[(0, 1.0), (4096, 0.0), (4096, f64::NAN), (4096, f64::INFINITY), (64, -1.0)]), []);
}

#[test]
fn a_single_point_is_one_level() {
    let levels = detect(&[(4096, 2.5)]);
    assert_eq!(levels.len(), 1);
    assert_eq!((levels[0].edge, levels[0].from_size, levels[0].ramp), (None, 4096, false));
    assert!((levels[0].latency_ns - 2.5).abs() < 1e-9);
}

#[test]
fn points_of_one_size_count_as_their_median() {
    let levels = detect(&[(4096, 2.0), (4096, 90.0), (4096, 2.5)]);
    assert!((levels[0].latency_ns - 2.5).abs() < 1e-9, "{levels:?}");
}

#[test]
fn a_gradual_rise_between_two_levels_is_a_ramp() {
    // Random replacement: half of the hits are left at twice the capacity.
    let latency = |size: u64| {
        let hits = (4.0 * MIB as f64 / size as f64).min(1.0);
        if size <= 32 * KIB { 1.1 } else { 13.0 * hits + 100.0 * (1.0 - hits) }
    };
    let curve: Vec<(u64, f64)> = sizes(512 * MIB, 8).into_iter().map(|s| (s, latency(s))).collect();
    let levels = detect(&curve);
    assert_eq!(without_ramps(&levels).count(), 3, "{levels:#?}");
    let ramp = levels.iter().find(|level| level.ramp).expect("a ramp");
    assert!(ramp.from_size >= 4 * MIB && ramp.to_size <= 64 * MIB && ramp.edge.is_none(), "{ramp:?}");
    assert!(ramp.latency_ns > 13.0 && ramp.latency_ns < 100.0, "{ramp:?}");
}

#[test]
fn a_slope_from_end_to_end_is_one_ramp_and_no_level() {
    for octave_ratio in [1.15, 1.25, 1.4] {
        let rise = |size: u64| (size as f64 / 2048.0).powf(f64::log2(octave_ratio));
        let curve: Vec<(u64, f64)> = sizes(512 * MIB, 8).into_iter().map(|s| (s, rise(s))).collect();
        let levels = detect(&curve);
        assert!(levels.len() == 1 && levels[0].ramp, "{octave_ratio}: {levels:#?}");
    }
}

#[test]
fn a_curve_that_ends_while_rising_does_not_name_memory() {
    let curve: Vec<(u64, f64)> = zen4(8).into_iter().filter(|(size, _)| *size <= 44 * KIB).collect();
    let levels = detect(&curve);
    assert_eq!(without_ramps(&levels).count(), 1, "{levels:#?}");
    assert!(levels[0].edge.is_some_and(|e| 30 * KIB <= e.from && e.to < 44 * KIB), "{levels:#?}");
    assert!(levels[1].ramp, "{levels:#?}");
}

#[test]
fn declared_caches_that_agree() {
    let matches = match_declared(&detect(&zen4(8)), &machine(&[(1, 32 * KIB), (2, MIB), (3, 32 * MIB)]));
    let names: Vec<&str> = matches.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["L1", "L2", "L3", "memory"]);
    let agreements: Vec<Agreement> = matches.iter().map(|m| m.agreement).collect();
    use Agreement::{Agrees, Memory};
    assert_eq!(agreements, [Agrees, Agrees, Agrees, Memory], "{matches:#?}");
    assert_eq!(matches[2].declared, Some(32 * MIB));
}

#[test]
fn a_coarse_sweep_does_not_contradict_a_declaration_between_its_points() {
    let matches = match_declared(&detect(&zen4(2)), &machine(&[(1, 32 * KIB), (2, MIB), (3, 32 * MIB)]));
    let agreements: Vec<Agreement> = matches.iter().map(|m| m.agreement).collect();
    assert_eq!(agreements[..2], [Agreement::Agrees, Agreement::Agrees], "{matches:#?}");
}

#[test]
fn a_partitioned_cache_is_smaller_than_declared() {
    let levels = detect(&intel_guest(8));
    let matches = match_declared(&levels, &machine(&[(1, 48 * KIB), (2, 2 * MIB), (3, 105 * MIB)]));
    assert_eq!((matches[2].name.as_str(), matches[2].agreement), ("L3", Agreement::Smaller));
    assert_eq!(matches[2].declared, Some(105 * MIB));
    assert!(matches[..2].iter().all(|m| m.agreement == Agreement::Agrees), "{matches:#?}");
}

#[test]
fn a_declared_cache_without_a_step_is_not_seen() {
    let curve = curve(&sizes(512 * MIB, 8), &[(32 * KIB, 1.1), (MIB, 4.0)], 100.0);
    let matches = match_declared(&detect(&curve), &machine(&[(1, 32 * KIB), (2, MIB), (3, 32 * MIB)]));
    let l3 = matches.iter().find(|m| m.name == "L3").expect("L3");
    assert_eq!((l3.agreement, l3.level.as_ref()), (Agreement::NotSeen, None));
    assert_eq!(matches.last().map(|m| m.name.as_str()), Some("memory"));
}

#[test]
fn a_second_step_before_a_declared_size_is_no_cache_of_its_own() {
    let caches = [(32 * KIB, 1.1), (MIB, 4.0), (13 * MIB, 15.0), (26 * MIB, 60.0)];
    let curve = curve(&sizes(256 * MIB, 8), &caches, 140.0);
    let matches = match_declared(&detect(&curve), &machine(&[(1, 32 * KIB), (2, MIB), (3, 32 * MIB)]));
    let names: Vec<&str> = matches.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["L1", "L2", "step", "L3", "memory"]);
    assert_eq!((matches[2].agreement, matches[2].declared), (Agreement::Undeclared, None));
    assert_eq!((matches[3].agreement, matches[3].declared), (Agreement::Agrees, Some(32 * MIB)));
}

#[test]
fn an_edge_is_two_sizes_that_were_measured() {
    let coarse =
        curve(&[4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB], &[(512 * KIB, 4.0)], 90.0);
    let levels = detect(&coarse);
    assert_eq!(levels[0].edge, Some(Edge { from: 256 * KIB, to: MIB }), "{levels:#?}");
    // Any declared size between them is met, no other is.
    let judged = |size| match_declared(&levels, &machine(&[(2, size)]))[0].agreement;
    assert_eq!(judged(512 * KIB), Agreement::Agrees);
    assert_eq!(judged(4 * MIB), Agreement::Smaller);
    assert_eq!(judged(128 * KIB), Agreement::Larger);
}

#[test]
fn undeclared_levels_are_numbered() {
    let matches = match_declared(&detect(&zen4(8)), &Machine::default());
    let names: Vec<&str> = matches.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["L1", "L2", "L3", "memory"]);
    assert!(matches[..3].iter().all(|m| m.agreement == Agreement::Undeclared));
}

#[test]
fn larger_capacities_are_sums_or_wrong_tables() {
    let level = |capacity: u64| MemoryHierarchyLevel {
        edge: Some(Edge { from: capacity, to: capacity }),
        latency_ns: 1.0,
        from_size: 1,
        to_size: 2,
        ramp: false,
    };
    let against = |capacity, caches: &[(u32, u64)]| {
        match_declared(&[level(capacity)], &machine(caches)).last().unwrap().agreement
    };
    assert_eq!(against(24 * MIB, &[(2, 8 * MIB), (3, 16 * MIB)]), Agreement::ExclusiveSum);
    assert_eq!(against(40 * MIB, &[(2, MIB), (3, 16 * MIB)]), Agreement::Larger);
}

fn any_curve() -> impl Strategy<Value = Vec<(u64, f64)>> {
    let wild = proptest::collection::vec((any::<u64>(), any::<f64>()), 0..60);
    let tame = proptest::collection::vec((1u64..1 << 32, 0.1f64..1000.0), 0..200);
    // Regular sizes, latencies out of a few: many steps, dips and repeats.
    let steps = proptest::collection::vec(0u32..12, 1..160).prop_map(|heights| {
        let place = |(i, height): (usize, u32)| {
            ((2048.0 * (i as f64 / 8.0).exp2()) as u64, 1.3f64.powi(height as i32))
        };
        heights.into_iter().enumerate().map(place).collect()
    });
    prop_oneof![wild, tame, steps]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn levels_ascend_whatever_the_curve(curve in any_curve()) {
        let levels = detect(&curve);
        let usable = curve.iter().any(|(size, ns)| *size > 0 && ns.is_finite() && *ns > 0.0);
        prop_assert_eq!(levels.is_empty(), !usable);
        let found: Vec<&MemoryHierarchyLevel> = without_ramps(&levels).collect();
        prop_assert!(found.len() <= 5);
        for pair in found.windows(2) {
            prop_assert!(pair[1].latency_ns >= 1.29 * pair[0].latency_ns, "{:?}", levels);
            prop_assert!(pair[0].to_size < pair[1].from_size, "{:?}", levels);
            let edge = pair[0].edge.unwrap();
            prop_assert!(edge.from < edge.to && pair[1].edge.is_none_or(|next| next.from >= edge.to), "{:?}", levels);
        }
        for level in &levels {
            prop_assert!(level.from_size <= level.to_size && level.latency_ns > 0.0);
            prop_assert!(level.edge.is_none_or(|edge| edge.from >= level.to_size), "{:?}", level);
        }
        prop_assert!(levels.windows(2).all(|pair| pair[0].from_size <= pair[1].from_size));
        let matches = match_declared(&levels, &machine(&[(1, 32 * KIB), (2, MIB), (3, 32 * MIB)]));
        prop_assert_eq!(matches.iter().filter(|m| m.level.is_some()).count(), found.len());
    }
}
