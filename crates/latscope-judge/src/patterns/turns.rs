//! The whole period of a source. Events that recur each 3 s also lie at multiples of 100 ms and of 10 ms: the period is
//! the largest multiple that they have in common.

use super::CHANCE;
use crate::binomial::at_least;
use std::collections::HashMap;

/// Chance up to which fewer periods than those of the events are excluded.
const SURE: f64 = 0.01;

/// Largest divisor that is tried.
const LARGEST: u64 = 10_000;

/// Returns the largest multiple of a period that the events have in common, and its remainder. `turns` are the numbers
/// of the periods with an event in order, each once; `all` counts the events elsewhere, too. `None` if a larger
/// multiple is possible but not sure, or if the events come from several sources.
pub(super) fn multiple(turns: &[u64], all: usize) -> Option<(u64, u64)> {
    let mut turns = turns.to_vec();
    let (mut multiple, mut remainder, mut divisor) = (1, 0, 2);
    loop {
        let span = turns.last()? - turns.first()?;
        let largest = (span / 4).min(LARGEST);
        if divisor > largest {
            return is_whole(turns.len() as u64, span + 1).then_some((multiple, remainder));
        }
        let (class, count) = largest_class(&turns, divisor);
        let fits = count * 5 >= all * 4;
        let chance = divisor as f64 * at_least(count as u64, turns.len() as u64, 1.0 / divisor as f64);
        if fits && (count == turns.len() || chance <= CHANCE) {
            turns.retain(|turn| turn % divisor == class);
            turns.iter_mut().for_each(|turn| *turn /= divisor);
            remainder += class * multiple;
            multiple *= divisor;
        } else if fits || chance * largest as f64 <= CHANCE {
            return None;
        } else {
            divisor += 1;
        }
    }
}

/// Returns true if half the period would hardly show such events: they are in most of the periods, or are so many that
/// they would not all miss the halves between by chance.
fn is_whole(events: u64, periods: u64) -> bool {
    2 * events >= periods || 0.5f64.powf(events as f64 - 1.0) <= SURE
}

/// The remainder that most of the numbers have, the least of several, and how many have it.
fn largest_class(turns: &[u64], divisor: u64) -> (u64, usize) {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for turn in turns {
        *counts.entry(turn % divisor).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|(class, count)| (*count, std::cmp::Reverse(*class))).unwrap_or((0, 0))
}
