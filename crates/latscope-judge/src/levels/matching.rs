//! Detected levels beside the caches a machine declares.

use super::{Edge, MemoryHierarchyLevel, without_ramps};
use latscope_core::machine::Machine;

/// Largest distance of a declared size from the two sizes of an edge at which it is met, in octaves (19 %).
const SAME_OCTAVES: f64 = 0.25;

/// Largest distance, in octaves, from the place by the curve at which a declared size between the last point of a level
/// and the first of the next is as good as met, because the edge is soft.
const GAP_OCTAVES: f64 = 0.5;

/// Cost of leaving a level or a declared cache without a partner, in octaves: sizes up to 64 times apart are still
/// partners.
const ALONE_OCTAVES: f64 = 3.0;

/// Agreement of the end of a level with the declared size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The level ends where it is declared to, within 19 %.
    Agrees,
    /// Less than declared: the cache is partitioned, shared or contended, if it
    /// is so each time.
    Smaller,
    /// More than declared, and about the sum with the level before: the two
    /// hold different lines (an exclusive or victim cache).
    ExclusiveSum,
    /// More than declared: the edge is soft, or the cache is larger than declared.
    Larger,
    /// Detected, but nothing is declared for it.
    Undeclared,
    /// Declared, but the curve shows no step for it.
    NotSeen,
    /// The slowest level: memory, which declares no cache.
    Memory,
}

/// A level and the declared cache it is taken for.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelMatch {
    /// Name of the level: `L1`, `L2`, …, or `memory`. A step that no declared cache accounts for, on a machine that
    /// declares some, is `step`, as its nature is unknown.
    pub name: String,
    /// The detected level; `None` for [`Agreement::NotSeen`].
    pub level: Option<MemoryHierarchyLevel>,
    /// Declared capacity of the cache, bytes.
    pub declared: Option<u64>,
    /// Agreement of the level with the declared capacity.
    pub agreement: Agreement,
}

/// Names the levels found by `detect` after the machine's
/// declared caches, and compares the capacities. In order of level; declared
/// caches of which the curve shows nothing stand among them.
pub fn match_declared(levels: &[MemoryHierarchyLevel], machine: &Machine) -> Vec<LevelMatch> {
    let declared = declared_caches(machine);
    let bounded: Vec<(&MemoryHierarchyLevel, Edge)> =
        without_ramps(levels).filter_map(|level| level.edge.map(|edge| (level, edge))).collect();
    // The first size that the next level serves, for each level.
    let next: Vec<u64> = without_ramps(levels).skip(1).map(|level| level.from_size).collect();
    let mut matches = Vec::new();
    let mut last_number = 0;
    for (detected, cache) in align(&bounded, &declared) {
        let before = cache.and_then(|cache| cache.checked_sub(1)).map(|before| declared[before].1);
        let cache = cache.map(|cache| declared[cache]);
        let gap = detected.and_then(|at| Some((bounded[at].0.to_size, *next.get(at)?)));
        let detected = detected.map(|at| bounded[at]);
        last_number = cache.map_or(last_number + 1, |(number, _)| number);
        let unknown = cache.is_none() && !declared.is_empty();
        matches.push(LevelMatch {
            name: if unknown { "step".to_owned() } else { format!("L{last_number}") },
            level: detected.map(|(level, _)| level.clone()),
            declared: cache.map(|(_, size)| size),
            agreement: compare_edge(detected.map(|(_, edge)| edge), cache.map(|(_, size)| size), before, gap),
        });
    }
    matches.extend(without_ramps(levels).filter(|level| level.edge.is_none()).map(|level| LevelMatch {
        name: "memory".to_owned(),
        level: Some(level.clone()),
        declared: None,
        agreement: Agreement::Memory,
    }));
    matches
}

/// Level number and size of each declared data cache, one for each level.
fn declared_caches(machine: &Machine) -> Vec<(u32, u64)> {
    let mut caches: Vec<(u32, u64)> = machine
        .caches
        .iter()
        .filter(|cache| cache.kind != "Instruction" && cache.size > 0)
        .map(|cache| (cache.level, cache.size))
        .collect();
    caches.sort_unstable();
    caches.dedup_by_key(|(level, _)| *level);
    caches
}

fn compare_edge(
    detected: Option<Edge>,
    declared: Option<u64>,
    before: Option<u64>,
    gap: Option<(u64, u64)>,
) -> Agreement {
    let (edge, declared) = match (detected, declared) {
        (Some(edge), Some(declared)) => (edge, declared),
        (Some(_), None) => return Agreement::Undeclared,
        (None, _) => return Agreement::NotSeen,
    };
    let in_gap = gap.is_some_and(|(last, first)| (last..=first).contains(&declared));
    let distance = octaves(edge.log_midpoint(), declared);
    if outside(edge, declared) == 0.0 || in_gap && distance.abs() < GAP_OCTAVES {
        return Agreement::Agrees;
    }
    if distance < 0.0 {
        return Agreement::Smaller;
    }
    let sum = before.map(|before| before.saturating_add(declared));
    let is_sum = sum.is_some_and(|sum| outside(edge, sum) == 0.0);
    if is_sum { Agreement::ExclusiveSum } else { Agreement::Larger }
}

/// Distance of a size from the two sizes of an edge, in octaves; 0 between them and close to them.
fn outside(edge: Edge, size: u64) -> f64 {
    let beyond = octaves(size, edge.to).max(octaves(edge.from, size));
    if beyond < SAME_OCTAVES { 0.0 } else { beyond }
}

fn octaves(a: u64, b: u64) -> f64 {
    (a as f64).log2() - (b as f64).log2()
}

/// Pairs levels with declared caches, both in ascending order, so that the
/// sum of distances is least; either may stay alone.
fn align(
    bounded: &[(&MemoryHierarchyLevel, Edge)],
    declared: &[(u32, u64)],
) -> Vec<(Option<usize>, Option<usize>)> {
    let (m, n) = (bounded.len(), declared.len());
    // cost[i][j]: of what remains from level i and cache j on.
    let mut cost = vec![vec![0.0f64; n + 1]; m + 1];
    let pair = |i: usize, j: usize| octaves(bounded[i].1.log_midpoint().max(1), declared[j].1).abs();
    for i in (0..=m).rev() {
        for j in (0..=n).rev() {
            let alone = (m - i + n - j) as f64 * ALONE_OCTAVES;
            cost[i][j] = match (i < m, j < n) {
                (true, true) => (pair(i, j) + cost[i + 1][j + 1])
                    .min(ALONE_OCTAVES + cost[i + 1][j])
                    .min(ALONE_OCTAVES + cost[i][j + 1]),
                _ => alone,
            };
        }
    }
    let (mut i, mut j, mut path) = (0, 0, Vec::new());
    while i < m || j < n {
        if i < m && j < n && cost[i][j] == pair(i, j) + cost[i + 1][j + 1] {
            path.push((Some(i), Some(j)));
            (i, j) = (i + 1, j + 1);
        } else if i < m && (j == n || cost[i][j] == ALONE_OCTAVES + cost[i + 1][j]) {
            path.push((Some(i), None));
            i += 1;
        } else {
            path.push((None, Some(j)));
            j += 1;
        }
    }
    path
}
