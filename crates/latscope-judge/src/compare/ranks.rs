//! Tests by ranks: is one side larger than the other, and which of many such findings may be believed.

use statrs::function::erf::erfc;
use std::collections::HashMap;

/// The share of findings that may be false.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// Number of values in all above which the normal approximation replaces the exact distribution.
const EXACT_UP_TO: usize = 40;

/// Mann and Whitney's test, with the null distributions computed so far.
#[derive(Debug, Default)]
pub struct MannWhitney {
    /// Probabilities of each sum of doubled ranks, by the sizes of the groups of equal values and the size of the first
    /// side.
    nulls: HashMap<(Vec<usize>, usize), Vec<f64>>,
}

impl MannWhitney {
    /// Probability that sides that are alike differ by so much or more. The test is two-sided. It is exact, also with
    /// equal values, up to 40 values in all, and else the normal approximation with the correction for ties. Returns 1
    /// if a side is empty.
    pub fn p(&mut self, a: &[f64], b: &[f64]) -> f64 {
        if a.is_empty() || b.is_empty() {
            return 1.0;
        }
        let (sum, ties) = doubled_ranks(a, b);
        if a.len() + b.len() > EXACT_UP_TO {
            return approximate(sum as f64 / 2.0, a.len() as f64, b.len() as f64, &ties);
        }
        let null = self.nulls.entry((ties, a.len())).or_insert_with_key(|(ties, n)| null(ties, *n));
        let (below, above): (f64, f64) = (null[..=sum].iter().sum(), null[sum..].iter().sum());
        (2.0 * below.min(above)).min(1.0)
    }
}

/// Twice the sum of the ranks of `a` among both, and the sizes of the groups of equal values, ascending.
/// Doubled, the mean rank of a group is a whole number.
fn doubled_ranks(a: &[f64], b: &[f64]) -> (usize, Vec<usize>) {
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|x| (*x, true)).chain(b.iter().map(|x| (*x, false))).collect();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    let (mut sum, mut before, mut sizes) = (0, 0, Vec::new());
    for group in all.chunk_by(|x, y| x.0 == y.0) {
        let doubled = 2 * before + group.len() + 1;
        sum += doubled * group.iter().filter(|(_, of_a)| *of_a).count();
        before += group.len();
        sizes.push(group.len());
    }
    (sum, sizes)
}

/// Probability of each sum of doubled ranks of `n` values, if all choices of `n` values are equally likely.
fn null(ties: &[usize], n: usize) -> Vec<f64> {
    let all: usize = ties.iter().sum();
    let most = all * (all + 1);
    // Ways to have chosen so many with such a sum.
    let mut ways = vec![vec![0.0; most + 1]; n + 1];
    ways[0][0] = 1.0;
    let mut before = 0;
    for size in ties {
        let doubled = 2 * before + size + 1;
        for _ in 0..*size {
            for chosen in (1..=n).rev() {
                let (fewer, more) = ways.split_at_mut(chosen);
                let (from, to) = (&fewer[chosen - 1], &mut more[0]);
                for (to, from) in to[doubled..].iter_mut().zip(from) {
                    *to += from;
                }
            }
        }
        before += size;
    }
    let chosen = ways.pop().unwrap_or_default();
    let total: f64 = chosen.iter().sum();
    chosen.into_iter().map(|ways| ways / total).collect()
}

fn approximate(sum: f64, n: f64, m: f64, ties: &[usize]) -> f64 {
    let all = n + m;
    let tied: f64 = ties.iter().map(|t| (*t as f64).powi(3) - *t as f64).sum();
    let variance = n * m / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let away = ((sum - n * (all + 1.0) / 2.0).abs() - 0.5).max(0.0);
    erfc(away / (2.0 * variance).sqrt())
}

/// The smallest p that a test of these numbers of runs can give.
pub fn smallest_p(a: usize, b: usize) -> f64 {
    let (few, all) = (a.min(b), a + b);
    let choices = (1..=few).fold(1.0, |choices, i| choices * (all - few + i) as f64 / i as f64);
    (2.0 / choices).min(1.0)
}

/// Number of runs a side from which on a single point that differs among so many compared can be found.
pub fn runs_needed(points: usize) -> usize {
    let level = FALSE_DISCOVERIES / points.max(1) as f64;
    (2..).find(|runs| smallest_p(*runs, *runs) <= level).unwrap_or(usize::MAX)
}

/// The probability that a value of `b` is above one of `a`, equal ones counted half; 0.5 where a side is empty.
pub fn superiority(a: &[f64], b: &[f64]) -> f64 {
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    let sum: f64 = pairs.map(|(x, y)| if y > x { 1.0 } else { 0.5 * f64::from(u8::from(x == y)) }).sum();
    if a.is_empty() || b.is_empty() { 0.5 } else { sum / (a.len() * b.len()) as f64 }
}

/// The p values adjusted for their number: of those at most 5 %, at most 5 % are expected to be false
/// (Benjamini and Hochberg, 1995).
pub fn adjust_p_values(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_unstable_by(|x, y| ps[*x].total_cmp(&ps[*y]));
    let mut adjusted = vec![1.0; ps.len()];
    let mut least: f64 = 1.0;
    for (rank, at) in order.into_iter().enumerate().rev() {
        least = least.min(ps[at] * ps.len() as f64 / (rank + 1) as f64);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::statistics::SplitMix;

    fn p(a: &[f64], b: &[f64]) -> f64 {
        MannWhitney::default().p(a, b)
    }

    /// Computes p from every way to choose the values of the first side.
    fn by_enumeration(a: &[f64], b: &[f64]) -> f64 {
        let (n, all) = (a.len(), [a, b].concat());
        let (observed, _) = doubled_ranks(a, b);
        let (mut below, mut above, mut total) = (0, 0, 0);
        for chosen in (0u32..1 << all.len()).filter(|set| set.count_ones() as usize == n) {
            let pick = |wanted: bool| -> Vec<f64> {
                let at = (0..all.len()).filter(|at| (chosen >> at & 1 == 1) == wanted);
                at.map(|at| all[at]).collect()
            };
            let (sum, _) = doubled_ranks(&pick(true), &pick(false));
            total += 1;
            below += u32::from(sum <= observed);
            above += u32::from(sum >= observed);
        }
        (2.0 * f64::from(below.min(above)) / f64::from(total)).min(1.0)
    }

    #[test]
    fn the_test_is_exact_with_and_without_equal_values() {
        let five = |from: f64| -> Vec<f64> { (0..5).map(|i| from + f64::from(i)).collect() };
        assert!((p(&five(0.0), &five(10.0)) - 2.0 / 252.0).abs() < 1e-12);
        assert!((smallest_p(5, 5) - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(p(&[1.0, 1.0], &[1.0, 1.0, 1.0]), 1.0);
        assert_eq!(p(&[], &[1.0]), 1.0);
        let mut random = SplitMix::new(11);
        for range in [3, 6, 1000] {
            for sizes in [(2, 5), (4, 4), (6, 3)] {
                let mut values =
                    |n: usize| -> Vec<f64> { (0..n).map(|_| random.below(range) as f64).collect() };
                let (a, b) = (values(sizes.0), values(sizes.1));
                assert!((p(&a, &b) - by_enumeration(&a, &b)).abs() < 1e-12, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn the_approximation_continues_the_exact_test() {
        let side = |n: usize, shift: f64| -> Vec<f64> {
            (0..n).map(|i| ((i * 7919) % 101) as f64 + shift).collect()
        };
        for shift in [5.0, 20.0, 30.0] {
            let (exact, near) = (p(&side(20, 0.0), &side(20, shift)), p(&side(21, 0.0), &side(21, shift)));
            assert!((exact - near).abs() < 0.05, "{shift}: {exact} {near}");
        }
    }

    #[test]
    fn nine_runs_a_side_find_one_point_among_a_survey() {
        assert_eq!([1, 100, 500, 650].map(runs_needed), [4, 8, 9, 9]);
        assert!(smallest_p(1, 1) >= 1.0 && smallest_p(1, 9) > 0.05);
    }

    #[test]
    fn superiority_counts_pairs() {
        assert_eq!(superiority(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(superiority(&[1.0, 2.0], &[2.0, 0.0]), 0.375);
        assert_eq!(superiority(&[], &[2.0]), 0.5);
    }

    #[test]
    fn adjusted_values_are_those_of_the_published_procedure() {
        // The example of Benjamini and Hochberg (1995): of 15 tests four are significant at 5 %.
        let ps = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        let significant = adjust_p_values(&ps).iter().filter(|p| **p <= 0.05).count();
        assert_eq!(significant, 4);
        assert_eq!(adjust_p_values(&[0.04, 0.01]), [0.04, 0.02]);
        assert!(adjust_p_values(&[]).is_empty());
    }
}
