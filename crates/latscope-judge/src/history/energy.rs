//! Largest change of a series of figures, and the probability that chance alone changes it as much: the energy
//! statistic of Matteson and James ("A nonparametric approach for multiple change point analysis of multivariate data",
//! 2014), on ranks.
//!
//! The permutation distribution on ranks is the same for every series of one length, so that it is a table (`nulls.rs`)
//! and not a simulation for each series. A single figure far away has only the highest rank.

use super::false_changes::FALSE_CHANGES;
use super::nulls::{COUNTED, LENGTHS, SHARES};
use latscope_core::statistics::SplitMix;

/// Fewest runs before and after a change.
pub const LEAST: usize = 4;

/// Fewest runs of a series in which a change can be found. Of nine runs, 2.9 % of all orders are as much of a step as
/// four low figures before five high ones, which is more than [`FALSE_CHANGES`] allows; of ten
/// runs, five and five, 1.1 %.
pub const SHORTEST: usize = 10;

/// Number of runs from which on the change of a single figure, in the middle, can be found among so many tests.
pub fn runs_for_one(tests: usize) -> usize {
    let level = FALSE_CHANGES / tests.max(1) as f64;
    // Figures that only rise have the largest statistic of all orders.
    let rising = (SHORTEST..LONGEST).map(|runs| (runs, largest(&(0..runs as i32).collect::<Vec<i32>>()).0));
    let mut decisive = rising.filter(|(runs, statistic)| p_value(*statistic, *runs) <= level);
    decisive.next().map_or(LONGEST, |(runs, _)| runs)
}

/// The longest series that is searched at once.
pub const LONGEST: usize = 128;

/// The place at which a series changes most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// The first figure after the change.
    pub at: usize,
    /// Probability that a series in random order changes as much at some place.
    pub p: f64,
}

/// The ranks of values from 0; equal ones are in a random order, which keeps the test exact.
fn rank_values(values: &[f64], seed: u64) -> Vec<i32> {
    let mut random = SplitMix::new(seed);
    let order: Vec<u64> = values.iter().map(|_| random.bits()).collect();
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_unstable_by(|x, y| values[*x].total_cmp(&values[*y]).then(order[*x].cmp(&order[*y])));
    let mut ranks = vec![0; values.len()];
    for (place, rank) in places.into_iter().zip(0..) {
        ranks[place] = rank;
    }
    ranks
}

fn add_distances(sums: &mut [i32], rank: i32, others: &[i32]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += (rank - other).abs();
    }
}

/// The largest energy statistic of any two neighbouring segments of at least [`LEAST`] that begin with the first rank,
/// by the number of ranks, and where the second segment begins.
fn largest(ranks: &[i32]) -> (f64, usize) {
    let n = ranks.len();
    // Distances of each rank to all before it, and of all pairs of the first ranks.
    let (mut to_before, mut pairs) = (vec![0i32; n], vec![0i32; n + 1]);
    for (at, rank) in ranks.iter().enumerate() {
        pairs[at + 1] = pairs[at] + to_before[at];
        add_distances(&mut to_before[at + 1..], *rank, &ranks[at + 1..]);
    }
    to_before.fill(0);
    let (mut most, mut place) = (0.0f32, LEAST);
    for at in 1..=n.saturating_sub(LEAST) {
        add_distances(&mut to_before[at..], ranks[at - 1], &ranks[at..]);
        if at < LEAST {
            continue;
        }
        let within_first = pairs[at] as f32 * 2.0 / (at * (at - 1)) as f32;
        let mut between = 0;
        for end in at + 1..=n {
            between += to_before[end - 1];
            let length = end - at;
            if length < LEAST {
                continue;
            }
            let inside = pairs[end] - pairs[at] - between;
            let within_second = inside as f32 * 2.0 / (length * (length - 1)) as f32;
            let statistic = (2.0 * between as f32 - (at * length) as f32 * (within_first + within_second))
                / (at + length) as f32;
            if statistic > most {
                (most, place) = (statistic, at);
            }
        }
    }
    (f64::from(most) / n as f64, place)
}

/// The place at which a series of at most [`LONGEST`] figures changes most; `None` below [`SHORTEST`].
pub fn split(values: &[f64], seed: u64) -> Option<Split> {
    if !(SHORTEST..=LONGEST).contains(&values.len()) {
        return None;
    }
    let (statistic, at) = largest(&rank_values(values, seed));
    Some(Split { at, p: p_value(statistic, values.len()) })
}

/// Smallest probability that is claimed, because of the size of the table.
const SMALLEST: f64 = 1e-8;

/// The probability of so large a statistic in a random order of so many ranks.
pub fn p_value(statistic: f64, n: usize) -> f64 {
    let Some((_, counted)) = COUNTED.iter().find(|(length, _)| *length == n) else {
        return interpolate_p(statistic, n);
    };
    // Few ranks have few statistics: between two of them the share is that of the smaller one.
    let reached = counted.iter().find(|(least, _)| statistic >= least - ROUNDED).map(|(_, share)| *share);
    let most = counted.last().map_or(0.0, |(_, share)| *share);
    reached.unwrap_or_else(|| interpolate_p(statistic, n).max(most))
}

/// Statistics in the table of short series are rounded by half of this at most.
const ROUNDED: f64 = 2e-5;

/// The probability by the table of random orders, interpolated on a line between its shares.
fn interpolate_p(statistic: f64, n: usize) -> f64 {
    let above = LENGTHS.partition_point(|(length, _)| *length < n).min(LENGTHS.len() - 1);
    let below = if LENGTHS[above].0 > n { above.saturating_sub(1) } else { above };
    let ((shorter, low), (longer, high)) = (LENGTHS[below], LENGTHS[above]);
    let part = if longer > shorter { (n - shorter) as f64 / (longer - shorter) as f64 } else { 0.0 };
    let limit = |at: usize| f64::from(low[at]) * (1.0 - part) + f64::from(high[at]) * part;
    let last = SHARES.len() - 1;
    // Two places of the table between or beyond which the statistic lies; on the log scale the tail is a line.
    let next = (0..=last).find(|at| limit(*at) > statistic).unwrap_or(last);
    if next == 0 {
        return 1.0;
    }
    let from = if limit(last) <= statistic { tail_begin(last, &limit) } else { next - 1 };
    let (x, y) = (limit(from), limit(next));
    let slope = (SHARES[next].ln() - SHARES[from].ln()) / (y - x).max(1e-9);
    let p = (SHARES[next].ln() + slope * (statistic - y)).exp();
    p.clamp(least_possible_p(n), SHARES[0])
}

/// Place from which on the table is extrapolated as a line: a decade before its end, where it still rises.
fn tail_begin(last: usize, limit: &impl Fn(usize) -> f64) -> usize {
    let mut from = last.saturating_sub(4);
    while from > 0 && limit(last) <= limit(from) {
        from -= 1;
    }
    from
}

/// The smallest p of so many ranks: that of two orders of halves among all choices of a half.
fn least_possible_p(n: usize) -> f64 {
    let half = n / 2;
    let choices = (1..=half).fold(1.0, |choices, i| choices * (n - half + i) as f64 / i as f64);
    (2.0 / choices).max(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statistic by its definition: means of distances between and within.
    fn by_definition(ranks: &[i32]) -> f64 {
        let distance = |a: &[i32], b: &[i32]| -> f64 {
            a.iter().flat_map(|x| b.iter().map(move |y| f64::from((x - y).abs()))).sum()
        };
        let mut most = 0.0f64;
        for at in LEAST..=ranks.len() - LEAST {
            for end in at + LEAST..=ranks.len() {
                let (a, b) = (&ranks[..at], &ranks[at..end]);
                let (n, m) = (a.len() as f64, b.len() as f64);
                let energy = 2.0 / (n * m) * distance(a, b)
                    - distance(a, a) / (n * (n - 1.0))
                    - distance(b, b) / (m * (m - 1.0));
                most = most.max(n * m / (n + m) * energy);
            }
        }
        most / ranks.len() as f64
    }

    fn shuffled(n: usize, random: &mut SplitMix) -> Vec<f64> {
        let mut values: Vec<f64> = (0..n).map(|i| i as f64).collect();
        (1..n).rev().for_each(|i| values.swap(i, random.below(i as u64 + 1) as usize));
        values
    }

    #[test]
    fn the_statistic_is_that_of_its_definition() {
        let mut random = SplitMix::new(3);
        for n in [9, 12, 15, 31] {
            let order = rank_values(&shuffled(n, &mut random), 1);
            assert!((largest(&order).0 - by_definition(&order)).abs() < 1e-4, "{n}");
        }
    }

    #[test]
    fn random_orders_have_the_p_values_that_the_table_says() {
        let mut random = SplitMix::new(8);
        // Also lengths between those of the table, and values of which most are equal.
        for (n, different) in [(10, 100), (12, 100), (17, 100), (40, 100), (61, 3), (100, 100), (128, 2)] {
            let ps: Vec<f64> = (0..1500)
                .map(|seed| {
                    let values = shuffled(n, &mut random);
                    let step = n as f64 / f64::from(different);
                    let values: Vec<f64> = values.iter().map(|x| (x / step).floor()).collect();
                    split(&values, seed).unwrap().p
                })
                .collect();
            for level in [0.2, 0.05, 0.01] {
                let share = ps.iter().filter(|p| **p <= level).count() as f64 / ps.len() as f64;
                let deviation = (level * (1.0 - level) / ps.len() as f64).sqrt();
                // Few ranks have few values of the statistic: then p is larger than it need be.
                assert!(share <= level + 4.0 * deviation, "{n}: {share} at {level}");
                assert!(n < 13 || share >= level - 4.0 * deviation, "{n}: {share} at {level}");
            }
        }
    }

    /// Counts the orders of so many ranks by their statistic.
    fn count(ranks: &mut Vec<i32>, from: usize, counts: &mut std::collections::BTreeMap<u64, u32>) {
        if from == ranks.len() {
            *counts.entry((largest(ranks).0 * 1e5).round() as u64).or_insert(0) += 1;
        }
        for at in from..ranks.len() {
            ranks.swap(from, at);
            count(ranks, from + 1, counts);
            ranks.swap(from, at);
        }
    }

    #[test]
    fn the_shares_of_short_series_are_those_of_every_order() {
        let mut counts = std::collections::BTreeMap::new();
        count(&mut (0..9).collect(), 0, &mut counts);
        let all: u32 = counts.values().sum();
        let mut above = 0;
        for (statistic, orders) in counts.iter().rev() {
            above += orders;
            let (share, told) = (f64::from(above) / f64::from(all), p_value(*statistic as f64 / 1e5, 9));
            assert!(told >= share - 1e-9 || share > 0.12, "{statistic}: told {told}, true {share}");
            assert!(share > 0.1 || told <= share * 1.2, "{statistic}: told {told}, true {share}");
        }
        // The order that crossed the limit when shares between were interpolated: told 0.0200, true 0.0286.
        assert!(p_value(1.31687, 9) > 0.0285 && p_value(1.48148, 9) < 0.025);
    }

    #[test]
    fn an_undisturbed_step_is_found_from_the_runs_on_that_are_said() {
        assert_eq!([1, 10, 100, 300].map(runs_for_one), [10, 13, 17, 20]);
        let step =
            |runs: usize| (0..runs).map(|at| if at < runs / 2 { at } else { at + 100 } as f64).collect();
        for tests in [1, 10, 100, 300] {
            let values: Vec<f64> = step(runs_for_one(tests));
            let p = split(&values, 1).unwrap().p;
            assert!(p <= FALSE_CHANGES / tests as f64, "{tests}: {p}");
        }
    }

    #[test]
    fn a_step_and_a_stretch_are_found_where_they_begin_and_a_single_figure_is_not() {
        let noise = |i: usize| ((i * 7919) % 101) as f64 / 100.0;
        let step: Vec<f64> = (0..40).map(|i| noise(i) + if i < 25 { 0.0 } else { 2.0 }).collect();
        let found = split(&step, 1).unwrap();
        assert_eq!(found.at, 25);
        assert!(found.p <= 1e-7, "{found:?}");
        let stretch: Vec<f64> =
            (0..60).map(|i| noise(i) + if (30..36).contains(&i) { 2.0 } else { 0.0 }).collect();
        let found = split(&stretch, 1).unwrap();
        assert!(found.at == 30 && found.p < 0.01, "{found:?}");
        let single: Vec<f64> = (0..40).map(|i| noise(i) + if i == 20 { 1e9 } else { 0.0 }).collect();
        assert!(split(&single, 1).unwrap().p > 0.05);
        assert_eq!(split(&[1.0; 9], 1), None);
        assert!(split(&[1.0; 40], 1).unwrap().p > 0.01);
    }
}
