//! Rounds: each point is measured several times in a run, seconds apart. The figure is the median over the rounds. The
//! differences between the rounds show where the figure of the next run will be.

use crate::account::Account;
use crate::statistics::{NORMAL_95, median, student_95};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of one round of a point, ns. Quantiles with fewer than ten
/// samples above them are `None`, as in a [`Summary`](crate::report::Summary).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundSummary {
    /// Number of samples of the round.
    pub count: u64,
    /// Smallest sample of the round, ns.
    pub min: Option<f64>,
    /// Median of the samples, ns.
    pub p50: Option<f64>,
    /// 90th percentile of the samples, ns.
    pub p90: Option<f64>,
    /// 99th percentile of the samples, ns.
    pub p99: Option<f64>,
    /// 99.9th percentile of the samples, ns.
    pub p99_9: Option<f64>,
    /// Largest sample of the round, ns.
    pub max: Option<f64>,
    /// Core cycles of the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
    /// Account of the CPU time of the step in this round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// Named quantities that are no durations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// Place of the run among the merged runs, from 0; `None` in a result of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
}

/// Least number of samples of a round that counts, by that of the largest round, which took what was planned. With a
/// quarter or more in each round, at least a tenth of all samples lie on either side of the median of the rounds.
/// Merged runs were planned apart: each counts, however short it was.
const ENOUGH: f64 = 0.25;

/// Samples of the largest round.
fn largest_count(rounds: &[RoundSummary]) -> u64 {
    rounds.iter().map(|round| round.count).max().unwrap_or(0)
}

/// Returns true if a round counts beside one of `largest` samples.
fn is_enough(round: &RoundSummary, largest: u64) -> bool {
    round.count > 0 && (round.run.is_some() || round.count as f64 >= ENOUGH * largest as f64)
}

/// The medians of the rounds, in order of time. A round with less than a quarter of the samples of the largest one was
/// starved, and is left out. Empty if a round has its median beyond the last bin: those of the other rounds are then
/// not those of the point.
pub fn round_figures(rounds: &[RoundSummary]) -> Vec<f64> {
    let largest = largest_count(rounds);
    let measured = rounds.iter().filter(|round| is_enough(round, largest));
    measured.map(|round| round.p50).collect::<Option<_>>().unwrap_or_default()
}

/// Rounds with samples that are left out of the figure, since they have too few.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseRounds {
    /// Number of these rounds.
    pub rounds: usize,
    /// The smallest of their medians, ns.
    pub low: f64,
    /// The largest of their medians, ns.
    pub high: f64,
}

/// Returns the rounds that were left out, if their medians lie further from those of all other rounds than groups of
/// rounds do: they saw something that the figure does not show.
pub fn sparse_rounds(rounds: &[RoundSummary]) -> Option<SparseRounds> {
    let kept = round_figures(rounds);
    let (least, most) = (kept.iter().copied().reduce(f64::min)?, kept.iter().copied().reduce(f64::max)?);
    let largest = largest_count(rounds);
    let out = rounds.iter().filter(|round| round.count > 0 && !is_enough(round, largest));
    let out: Vec<f64> = out.filter_map(|round| round.p50).collect();
    let (low, high) = (out.iter().copied().reduce(f64::min)?, out.iter().copied().reduce(f64::max)?);
    let apart = low < least / GROUPS_APART || high > most * GROUPS_APART;
    apart.then_some(SparseRounds { rounds: out.len(), low, high })
}

/// Figure of a point from those of its rounds: their median. If two groups have half of the rounds each, no round is
/// near the median: it is then the median of the lower group. `None` without rounds.
pub fn point_figure(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let halves =
        sorted.len() >= 4 && sorted.len().is_multiple_of(2) && sorted[0] > 0.0 && are_apart(&sorted, half);
    median(if halves { &sorted[..half] } else { &sorted })
}

/// Interval in which the figure of the next run is expected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Lower end of the interval, ns.
    pub low: f64,
    /// Upper end of the interval, ns.
    pub high: f64,
    /// Share of next runs that lie in the interval, 0 to 1.
    pub level: f64,
}

impl Prediction {
    /// Returns true if `ns` lies in the interval, ends included.
    pub fn contains(&self, ns: f64) -> bool {
        self.low <= ns && ns <= self.high
    }

    /// Returns the interval cut off at the smallest and largest sample if it is too wide to show where the next figure
    /// lies.
    pub fn clamp_range(self, smallest: f64, largest: f64) -> Prediction {
        if self.end_ratio() <= SCATTER_OVER {
            return self;
        }
        Prediction { low: self.low.max(smallest), high: self.high.min(largest), ..self }
    }

    /// Upper end by lower end.
    pub fn end_ratio(&self) -> f64 {
        self.high / self.low
    }
}

/// Subject of each figure of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicationUnit {
    /// A round of a run; the next run has as many.
    Round,
    /// A run of merged ones.
    Run,
}

/// The level of intervals from three rounds on.
const LEVEL: f64 = 0.95;

/// By how much runs differ beside what their rounds do, as a standard deviation on
/// the log scale: another boot, another placement of the virtual machine. Seen in the
/// rows whose rounds hardly differ, over twelve surveys of one machine.
pub const BETWEEN_RUNS: f64 = 0.01;

/// Standard deviation of the difference between two runs that their rounds do not show, on the log scale. Fewer rounds
/// show less of how the machine changes. With this factor the interval of three to eight rounds contained the median of
/// the next run in 94.5 to 95.7 % of the cases, in 51 surveys of an idle guest.
fn to_the_next_run(rounds: usize) -> f64 {
    0.18 / rounds as f64
}

/// The prediction interval for the figure of the next run: from the medians of the rounds of this run for the median of
/// as many, or from the figures of runs for that of one more. `resolution` is what one step of the recorded figures
/// means at the median, ns. `None` below two figures, or where a figure is not above 0.
///
/// On the log scale, since noise multiplies. From three rounds on it is Student's interval for a further mean of as
/// many values, widened by how much more a median varies than a mean, and by what runs differ beside that. Of runs it
/// is that for one further value: the spread between runs is known. Two figures are shown as they are: a third one lies
/// between them in one of three cases.
pub fn prediction(figures: &[f64], unit: ReplicationUnit, resolution: f64) -> Option<Prediction> {
    if figures.len() < 2 || figures.iter().any(|figure| !(*figure > 0.0 && figure.is_finite())) {
        return None;
    }
    let logs: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
    let n = logs.len() as f64;
    let (low, high, level) = if figures.len() == 2 {
        (logs[0].min(logs[1]), logs[0].max(logs[1]), 1.0 / 3.0)
    } else {
        let mean = logs.iter().sum::<f64>() / n;
        let deviation = (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        // The error of the median here, in deviations.
        let of_median = median_by_mean(figures.len()) / n.sqrt();
        let spread = student_95(logs.len() - 1) * deviation;
        let half = match unit {
            // Each of the two runs has its own place.
            ReplicationUnit::Round => (spread * of_median * 2f64.sqrt())
                .hypot(NORMAL_95 * to_the_next_run(figures.len()) * 2f64.sqrt()),
            ReplicationUnit::Run => spread * of_median.hypot(1.0),
        };
        let centre = median(&logs)?;
        (centre - half, centre + half, LEVEL)
    };
    // What is recorded in steps of `resolution` cannot be known more exactly.
    let (low, high) = (low.exp(), high.exp());
    Some(Prediction { low: (low - resolution).max(low / 2.0), high: high + resolution, level })
}

/// Ratio of the standard error of the median of `n` normal values to that of their mean: exact for small `n` (order
/// statistics of the normal distribution), and its limit, the root of π/2.
pub fn median_by_mean(n: usize) -> f64 {
    const EXACT: [f64; 11] = [1.0, 1.0, 1.0, 1.160, 1.092, 1.198, 1.135, 1.214, 1.160, 1.223, 1.177];
    EXACT.get(n).copied().unwrap_or_else(|| std::f64::consts::FRAC_PI_2.sqrt())
}

/// Pattern in rounds that do not repeat the same figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unsteady {
    /// The rounds fall into two groups, with these medians.
    Groups(f64, f64),
    /// The rounds lie too far apart to predict the next run; the lowest and the highest.
    Scatter(f64, f64),
    /// The rounds move in one direction, from the median of the first half to that of the second.
    Drift(f64, f64),
}

/// Least ratio of the gap between two groups of rounds.
const GROUPS_APART: f64 = 1.2;

/// Ratio below which a trend is not a drift.
const DRIFT_BY: f64 = 1.15;

/// Returns how the figures of rounds, in order of time, are unsteady: two groups, a drift, or too far apart. Groups
/// need at least four rounds, a drift five, and all else three.
pub fn unsteady(figures: &[f64], unit: ReplicationUnit) -> Option<Unsteady> {
    if figures.len() < 3 || figures.iter().any(|figure| !(*figure > 0.0 && figure.is_finite())) {
        return None;
    }
    find_groups(figures).or_else(|| drift(figures)).or_else(|| scatter(figures, unit))
}

/// Intervals wider than this ratio say that the figure is not known.
const SCATTER_OVER: f64 = 3.0;

fn scatter(figures: &[f64], unit: ReplicationUnit) -> Option<Unsteady> {
    prediction(figures, unit, 0.0).filter(|next| next.end_ratio() > SCATTER_OVER)?;
    let (lowest, highest) =
        (figures.iter().copied().reduce(f64::min)?, figures.iter().copied().reduce(f64::max)?);
    Some(Unsteady::Scatter(lowest, highest))
}

/// Two groups of at least two rounds each, with a gap between them that is
/// wider than each of them.
fn find_groups(figures: &[f64]) -> Option<Unsteady> {
    if figures.len() < 4 {
        return None;
    }
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let split = (2..=sorted.len() - 2).find(|split| are_apart(&sorted, *split))?;
    let (low, high) = sorted.split_at(split);
    Some(Unsteady::Groups(median(low)?, median(high)?))
}

/// Returns true if the gap between the smaller and the larger ones is wide, and wider than the range of either.
fn are_apart(sorted: &[f64], split: usize) -> bool {
    let (low, high) = sorted.split_at(split);
    let gap = (high[0] / low[low.len() - 1]).ln();
    let range = |group: &[f64]| (group[group.len() - 1] / group[0]).ln();
    gap >= GROUPS_APART.ln() && gap > range(low).max(range(high))
}

/// A trend by Kendall's test: so many more pairs of rounds go one way than the
/// other that chance does so in less than 1 of 100, or all do.
fn drift(figures: &[f64]) -> Option<Unsteady> {
    let n = figures.len();
    if n < 5 {
        return None;
    }
    let score = rising_pairs(figures) as f64;
    let deviation = ((n * (n - 1) * (2 * n + 5)) as f64 / 18.0).sqrt();
    let half = n / 2;
    let (from, to) = (median(&figures[..half])?, median(&figures[n - half..])?);
    let far = (to / from).ln().abs() >= DRIFT_BY.ln();
    let sure = (score.abs() - 1.0) / deviation >= 2.58 || score.abs() as usize == n * (n - 1) / 2;
    (sure && far).then_some(Unsteady::Drift(from, to))
}

/// Pairs of figures that rise in the order of time, less those that fall. Sums of a Fenwick tree count the earlier
/// figures below each, so that many rounds take little longer than few.
fn rising_pairs(figures: &[f64]) -> i64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut tree = vec![0i64; sorted.len() + 1];
    let sum_to = |tree: &[i64], end: usize| {
        let nodes = std::iter::successors(Some(end), |at| Some(at & at.wrapping_sub(1)));
        nodes.take_while(|at| *at > 0).map(|at| tree[at]).sum::<i64>()
    };
    let mut score = 0;
    for (earlier, figure) in figures.iter().enumerate() {
        let less = sorted.partition_point(|other| other < figure);
        let not_greater = sorted.partition_point(|other| other <= figure);
        score += sum_to(&tree, less) - (earlier as i64 - sum_to(&tree, not_greater));
        let nodes = std::iter::successors(Some(less + 1), |at| Some(at + (at & at.wrapping_neg())));
        let length = tree.len();
        nodes.take_while(|at| *at < length).for_each(|at| tree[at] += 1);
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::SplitMix;
    use proptest::prelude::*;

    fn round(count: u64, ns: f64) -> RoundSummary {
        RoundSummary { count, p50: Some(ns), ..RoundSummary::default() }
    }

    /// Rounds of any numbers of samples and any medians.
    fn any_rounds() -> impl Strategy<Value = Vec<RoundSummary>> {
        proptest::collection::vec((0u64..5000, 1.0..1e6f64).prop_map(|(count, ns)| round(count, ns)), 1..12)
    }

    proptest! {
        #[test]
        fn pairs_are_counted_as_one_by_one(figures in prop::collection::vec(1u8..9, 0..40)) {
            let figures: Vec<f64> = figures.into_iter().map(f64::from).collect();
            let sign = |a: f64, b: f64| i64::from(b > a) - i64::from(b < a);
            let of = |at: usize| figures[at + 1..].iter().map(|later| sign(figures[at], *later)).sum::<i64>();
            prop_assert_eq!(rising_pairs(&figures), (0..figures.len()).map(of).sum::<i64>());
        }
        #[test]
        fn enough_samples_lie_on_either_side_of_the_figure(rounds in any_rounds()) {
            let kept: Vec<&RoundSummary> = rounds.iter().filter(|round| is_enough(round, largest_count(&rounds))).collect();
            let all: u64 = kept.iter().map(|round| round.count).sum();
            // At least half of the samples of a round lie on either side of its median.
            let beyond = |is: &dyn Fn(f64) -> bool| -> u64 {
                kept.iter().filter(|round| round.p50.is_some_and(is)).map(|round| round.count).sum()
            };
            let Some(middle) = median(&round_figures(&rounds)) else { return Ok(()) };
            prop_assert!(beyond(&|ns| ns >= middle) as f64 / 2.0 >= 0.1 * all as f64);
            prop_assert!(beyond(&|ns| ns <= middle) as f64 / 2.0 >= 0.1 * all as f64);
        }

        #[test]
        fn starved_rounds_never_move_the_figure(
            ns in proptest::collection::vec(1.0..1e6f64, 1..9),
            others in proptest::collection::vec((0u64..250, 1.0..1e9f64), 0..9),
        ) {
            let good: Vec<RoundSummary> = ns.iter().map(|ns| round(1000, *ns)).collect();
            let starved: Vec<RoundSummary> = others.iter().map(|(count, ns)| round(*count, *ns)).collect();
            let both = [starved, good.clone()].concat();
            prop_assert_eq!(round_figures(&both), round_figures(&good));
        }

        #[test]
        fn the_figure_is_in_a_group_of_rounds(low in 2usize..6, high in 2usize..6, by in 2.0..50.0f64) {
            let groups = [vec![100.0; low], vec![100.0 * by; high]].concat();
            let figure = point_figure(&groups).unwrap();
            prop_assert_eq!(figure, if high > low { 100.0 * by } else { 100.0 });
        }
    }

    #[test]
    fn halves_of_rounds_show_the_lower_group() {
        assert_eq!(point_figure(&[203.0, 55.0, 57.0, 201.0]), Some(56.0));
        assert_eq!(point_figure(&[55.0, 203.0]), Some(129.0), "two rounds are no groups");
        assert_eq!(point_figure(&[55.0, 56.0, 57.0, 58.0]), Some(56.5));
        assert_eq!(point_figure(&[0.0, 0.0, 5.0, 5.0]), Some(2.5));
        assert_eq!(point_figure(&[]), None);
    }

    #[test]
    fn two_rounds_are_shown_as_they_are_and_one_tells_nothing() {
        assert_eq!(prediction(&[5.0], ReplicationUnit::Round, 0.0), None);
        assert_eq!(prediction(&[0.0, 5.0, 5.0], ReplicationUnit::Round, 0.0), None);
        let two = prediction(&[203.0, 55.0], ReplicationUnit::Round, 1.0).unwrap();
        assert!((two.low - 54.0).abs() < 1e-9 && (two.high - 204.0).abs() < 1e-9, "{two:?}");
        assert!((two.level - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_starved_round_does_not_outvote_a_good_one() {
        assert_eq!(round_figures(&[round(2668, 9e3), round(26, 14.9e3), round(43, 15.2e3)]), [9e3]);
        let left_out = SparseRounds { rounds: 2, low: 14.9e3, high: 15.2e3 };
        assert_eq!(sparse_rounds(&[round(2668, 9e3), round(26, 14.9e3), round(43, 15.2e3)]), Some(left_out));
        assert_eq!(sparse_rounds(&[round(2668, 9e3), round(26, 9.1e3), round(0, 1.0)]), None);
        assert_eq!(round_figures(&[round(300, 40.0), round(2, 152e6), round(250, 42.0)]), [40.0, 42.0]);
        assert_eq!(round_figures(&[round(1, 7.0), round(2, 8.0)]), [7.0, 8.0]);
        let night = |run, count, p50| RoundSummary { run: Some(run), ..round(count, p50) };
        let nights = [night(0, 36_000, 40.0), night(1, 3_600, 60.0)];
        assert_eq!(
            (round_figures(&nights), sparse_rounds(&nights)),
            (vec![40.0, 60.0], None),
            "a short night counts"
        );
    }

    #[test]
    fn a_round_with_its_median_beyond_the_last_bin_is_not_skipped() {
        let without = |count| RoundSummary { count, ..RoundSummary::default() };
        let rounds = [round(10, 7.0), without(0), round(10, 8.0)];
        assert_eq!(round_figures(&rounds), [7.0, 8.0], "a round without samples has no median");
        assert_eq!(round_figures(&[rounds[0].clone(), without(10), rounds[2].clone()]), [0.0; 0]);
    }

    #[test]
    fn equal_rounds_leave_the_resolution_and_what_runs_differ_by() {
        let same = prediction(&[100.0; 8], ReplicationUnit::Round, 1.0).unwrap();
        let apart = (1.96f64 * 0.18 / 8.0 * 2f64.sqrt()).exp();
        assert!((same.low - (100.0 / apart - 1.0)).abs() < 1e-3, "{same:?}");
        assert!((same.high - (100.0 * apart + 1.0)).abs() < 1e-3, "{same:?}");
        assert_eq!(same.level, 0.95);
    }

    /// A standard normal number.
    fn normal(random: &mut SplitMix) -> f64 {
        let uniform = |random: &mut SplitMix| (random.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
        let (a, b) = (uniform(random), uniform(random));
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    #[test]
    fn the_next_run_lies_in_the_interval_as_often_as_it_says() {
        let mut random = SplitMix::new(7);
        // Quantiles of Student's t are added as if they were normal: the interval of few rounds is too wide.
        for (rounds, most) in [(3, 3920), (5, 3880), (8, 3860)] {
            let mut run = || -> Vec<f64> {
                let place = 5.0 + to_the_next_run(rounds) * normal(&mut random);
                (0..rounds).map(|_| (place + 0.1 * normal(&mut random)).exp()).collect()
            };
            let covered = (0..4000)
                .filter(|_| {
                    let (this, next) = (run(), run());
                    prediction(&this, ReplicationUnit::Round, 0.0).unwrap().contains(median(&next).unwrap())
                })
                .count();
            assert!((3740..=most).contains(&covered), "{rounds} rounds: {covered} of 4000");
        }
    }

    #[test]
    fn the_run_after_merged_ones_lies_in_their_interval_as_often_as_it_says() {
        let mut random = SplitMix::new(11);
        for runs in [3, 5, 12] {
            let mut run = || (5.0 + 0.1 * normal(&mut random)).exp();
            let covered = (0..4000)
                .filter(|_| {
                    let known: Vec<f64> = (0..runs).map(|_| run()).collect();
                    prediction(&known, ReplicationUnit::Run, 0.0).unwrap().contains(run())
                })
                .count();
            assert!((3740..=3860).contains(&covered), "{runs} runs: {covered} of 4000");
        }
    }

    #[test]
    fn rounds_in_two_groups_are_told_from_noise() {
        let core_to_core = [55.0, 203.0, 56.0, 201.0, 205.0, 54.0, 55.0, 55.0];
        assert_eq!(unsteady(&core_to_core, ReplicationUnit::Round), Some(Unsteady::Groups(55.0, 203.0)));
        // One odd round is no group, but the next run may be anywhere.
        let odd = unsteady(&[55.0, 55.0, 56.0, 54.0, 203.0, 55.0, 54.0, 55.0], ReplicationUnit::Round);
        assert_eq!(odd, Some(Unsteady::Scatter(54.0, 203.0)));
        assert_eq!(unsteady(&[55.0, 203.0], ReplicationUnit::Round), None);
        assert!(matches!(
            unsteady(&[55.0, 203.0, 55.0], ReplicationUnit::Round),
            Some(Unsteady::Scatter(..))
        ));
        assert_eq!(unsteady(&[55.0, 57.0, 56.0], ReplicationUnit::Round), None);
        let mut random = SplitMix::new(3);
        let marked = (0..2000)
            .filter(|_| {
                let run: Vec<f64> = (0..8).map(|_| (0.15 * normal(&mut random)).exp()).collect();
                unsteady(&run, ReplicationUnit::Round).is_some()
            })
            .count();
        assert!(marked < 100, "{marked} of 2000 runs of plain noise are marked");
    }

    #[test]
    fn what_is_too_wide_to_say_anything_goes_no_further_than_the_samples() {
        let wide = prediction(&[55.0, 203.0, 55.0], ReplicationUnit::Round, 1.0).unwrap();
        assert!(wide.low < 20.0 && wide.high > 300.0, "{wide:?}");
        let known = wide.clamp_range(50.0, 210.0);
        assert_eq!((known.low, known.high, known.level), (50.0, 210.0, 0.95));
        let narrow = prediction(&[55.0, 56.0, 55.0], ReplicationUnit::Round, 0.0).unwrap();
        assert_eq!(narrow.clamp_range(54.9, 55.1), narrow);
    }

    #[test]
    fn a_drift_is_seen_and_names_both_ends() {
        let warming = [10.0, 10.4, 10.9, 11.2, 11.9, 12.3, 12.4, 13.0];
        assert!(
            matches!(unsteady(&warming, ReplicationUnit::Round), Some(Unsteady::Drift(from, to)) if from < 10.8 && to > 12.2)
        );
        // A trend too small to matter.
        assert_eq!(
            unsteady(&[10.0, 10.01, 10.02, 10.03, 10.04, 10.05, 10.06, 10.07], ReplicationUnit::Round),
            None
        );
    }
}
