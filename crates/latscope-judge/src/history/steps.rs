//! The steps of one series: its cuts, the cuts that are a drift, and the single odd figures.

use super::energy::{LEAST, LONGEST, split};
use latscope_core::statistics::{median, quantile};

/// A place at which a stretch of a series changes most, with its probability by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cut {
    /// The first figure after it.
    pub at: usize,
    /// Probability that a random order of the stretch changes as much.
    pub p: f64,
    /// The place of the cut that made the stretch among all of the series; `None` for the first one.
    within: Option<usize>,
}

/// Value of p from which on no further cuts are searched within a cut.
const HOPELESS: f64 = 0.05;

/// Distance between the begins of windows, in figures.
const STRIDE: usize = LONGEST / 2;

/// The best cut of each stretch, hierarchically. A series that is too long is searched in windows that overlap by half
/// and begin at fixed places, so that a later figure does not move early cuts.
pub(super) fn cuts(values: &[f64], seed: u64) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut from = 0;
    loop {
        let end = values.len().min(from + LONGEST);
        bisect(values, from, end, None, seed, &mut cuts);
        if end == values.len() {
            return cuts;
        }
        from += STRIDE;
    }
}

fn bisect(values: &[f64], from: usize, end: usize, within: Option<usize>, seed: u64, cuts: &mut Vec<Cut>) {
    let Some(found) = split(&values[from..end], seed ^ from as u64) else { return };
    let (at, this) = (from + found.at, cuts.len());
    cuts.push(Cut { at, p: found.p, within });
    if found.p < HOPELESS {
        bisect(values, from, at, Some(this), seed, cuts);
        bisect(values, at, end, Some(this), seed, cuts);
    }
}

/// The places of the believed cuts; `adjusted` are their p values among all. A cut within one that is not believed is
/// not believed, either. If two windows have cuts of one change, the surer cut counts.
pub(super) fn accepted_cuts(cuts: &[Cut], adjusted: &[f64], most: f64) -> Vec<usize> {
    let mut good = vec![false; cuts.len()];
    for (this, cut) in cuts.iter().enumerate() {
        good[this] = adjusted[this] <= most && cut.within.is_none_or(|parent| good[parent]);
    }
    let mut order: Vec<&Cut> =
        cuts.iter().zip(&good).filter(|(_, good)| **good).map(|(cut, _)| cut).collect();
    order.sort_by(|a, b| a.p.total_cmp(&b.p).then(a.at.cmp(&b.at)));
    let mut places: Vec<usize> = Vec::new();
    for cut in order {
        if places.iter().all(|place| place.abs_diff(cut.at) >= LEAST) {
            places.push(cut.at);
        }
    }
    places.sort_unstable();
    places
}

/// Changes of a series over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Steps {
    /// The first figures after its steps, ascending.
    pub steps: Vec<usize>,
    /// First and last figure of stretches that move steadily.
    pub drifts: Vec<(usize, usize)>,
    /// Believed cuts that are smaller than the margin, each with the difference of the medians.
    pub small: Vec<(usize, f64)>,
    /// Single figures far from those around.
    pub odd: Vec<usize>,
}

/// Returns the steps of at least `margin` among the believed cuts of a series (on the log scale), with drifts and odd
/// figures.
pub(super) fn steps(values: &[f64], mut cuts: Vec<usize>, margin: f64) -> Steps {
    let mut small = Vec::new();
    // The smallest first: what it divides becomes one stretch, and the others are measured anew.
    loop {
        let sizes = sizes(values, &cuts);
        let smallest = (0..cuts.len()).min_by(|a, b| sizes[*a].abs().total_cmp(&sizes[*b].abs()));
        match smallest.filter(|at| sizes[*at].abs() < margin) {
            Some(at) => small.push((cuts.remove(at), sizes[at])),
            None => break,
        }
    }
    small.sort_by_key(|(at, _)| *at);
    refine(values, &mut cuts);
    let drifts = drifts(values, &mut cuts);
    let odd = if drifts.is_empty() { odd(values, &cuts, margin) } else { Vec::new() };
    Steps { steps: cuts, drifts, small, odd }
}

/// Places each cut anew between its neighbours, at the least sum of distances from the medians. The energy statistic
/// also counts disturbed runs before a step, and then places the step at the first of them.
fn refine(values: &[f64], cuts: &mut [usize]) {
    for this in 0..cuts.len() {
        let before = if this == 0 { 0 } else { cuts[this - 1] };
        let after = cuts.get(this + 1).copied().unwrap_or(values.len());
        let from = before.max(cuts[this].saturating_sub(LONGEST / 2));
        let end = after.min(cuts[this] + LONGEST / 2);
        let places = from + LEAST..=end.saturating_sub(LEAST);
        let places = places.map(|at| (beside_steps(&values[from..end], &[at - from]), at));
        let best = places.min_by(|a, b| a.0.total_cmp(&b.0));
        cuts[this] = best.map_or(cuts[this], |(_, at)| at);
    }
}

/// First and end of the stretches between cuts.
pub(super) fn stretches(cuts: &[usize], len: usize) -> Vec<(usize, usize)> {
    let begins = [0].into_iter().chain(cuts.iter().copied());
    begins.zip(cuts.iter().copied().chain([len])).collect()
}

fn median_or_zero(values: &[f64]) -> f64 {
    median(values).unwrap_or(0.0)
}

/// Change of the median at each cut.
fn sizes(values: &[f64], cuts: &[usize]) -> Vec<f64> {
    let middles: Vec<f64> = stretches(cuts, values.len())
        .iter()
        .map(|(from, end)| median_or_zero(&values[*from..*end]))
        .collect();
    middles.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Takes out the neighbouring cuts of one direction that a line describes better than steps.
fn drifts(values: &[f64], cuts: &mut Vec<usize>) -> Vec<(usize, usize)> {
    let sizes = sizes(values, cuts);
    let mut found = Vec::new();
    let mut kept = Vec::new();
    let mut first = 0;
    while first < cuts.len() {
        let mut last = first;
        while last + 1 < cuts.len() && (sizes[last + 1] > 0.0) == (sizes[first] > 0.0) {
            last += 1;
        }
        let from = if first == 0 { 0 } else { cuts[first - 1] };
        let end = cuts.get(last + 1).copied().unwrap_or(values.len());
        let inner: Vec<usize> = cuts[first..=last].iter().map(|at| at - from).collect();
        // Each by the figures that it leaves free: a line has two numbers, steps have their places and levels.
        let [of_steps, of_line] =
            [2 * inner.len() + 1, 2].map(|numbers| (end - from).saturating_sub(numbers).max(1) as f64);
        if beside_line(&values[from..end]) / of_line < beside_steps(&values[from..end], &inner) / of_steps {
            found.push((from, end - 1));
        } else {
            kept.extend_from_slice(&cuts[first..=last]);
        }
        first = last + 1;
    }
    *cuts = kept;
    found
}

/// 95 % quantile of twice the logarithm of the likelihood ratio of the true place of a step (Hansen, "Sample splitting
/// and threshold estimation", 2000, table I).
const PLACED: f64 = 7.35;

/// The first and last place at which a single step, found at `at`, fits nearly as well; at most [`LEAST`] away.
pub(super) fn plausible_range(values: &[f64], at: usize) -> (usize, usize) {
    // The likelihood of distances from medians, which are of Laplace's distribution.
    let best = beside_steps(values, &[at]);
    let fits =
        |place: &usize| 2.0 * values.len() as f64 * (beside_steps(values, &[*place]) / best).ln() <= PLACED;
    // Less than half of the way to the next step: no place is near two of them.
    let [before, after] = [at, values.len() - at].map(|runs| LEAST.min(runs.saturating_sub(1) / 2));
    let first = (at - before..at).rev().take_while(fits).last().unwrap_or(at);
    let last = (at + 1..=at + after).take_while(fits).last().unwrap_or(at);
    (first, last)
}

/// The sum of the distances from the medians of the stretches.
fn beside_steps(values: &[f64], cuts: &[usize]) -> f64 {
    let sums = stretches(cuts, values.len()).into_iter().map(|(from, end)| {
        let middle = median_or_zero(&values[from..end]);
        values[from..end].iter().map(|value| (value - middle).abs()).sum::<f64>()
    });
    sums.sum()
}

/// Figures of which each pair gives the slope of a line, at most.
const SLOPES_OF: usize = 200;

/// The sum of the distances from a line: its slope is the median of those of all pairs (Theil and Sen).
fn beside_line(values: &[f64]) -> f64 {
    let stride = values.len().div_ceil(SLOPES_OF);
    let chosen: Vec<(f64, f64)> =
        values.iter().enumerate().step_by(stride).map(|(at, value)| (at as f64, *value)).collect();
    let pairs = chosen.iter().enumerate().flat_map(|(at, a)| chosen[at + 1..].iter().map(move |b| (a, b)));
    let slope = median_or_zero(&pairs.map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect::<Vec<f64>>());
    let flat: Vec<f64> = values.iter().enumerate().map(|(at, value)| value - slope * at as f64).collect();
    beside_steps(&flat, &[])
}

/// Number of deviations from the median of its stretch beyond which a figure is odd, if there are few of these.
const FAR: f64 = 6.0;
/// Standard deviation of normal values divided by their median distance from the median.
const DEVIATION: f64 = 1.4826;
/// Largest share of a stretch that may be odd; a single figure always may. More than that is a behaviour of the series.
const FEW: f64 = 0.05;

fn odd(values: &[f64], cuts: &[usize], margin: f64) -> Vec<usize> {
    let mut odd = Vec::new();
    for (from, end) in stretches(cuts, values.len()) {
        let stretch = &values[from..end];
        if stretch.len() < 2 * LEAST {
            continue;
        }
        let middle = median_or_zero(stretch);
        let distances: Vec<f64> = stretch.iter().map(|value| (value - middle).abs()).collect();
        let far = (FAR * DEVIATION * quantile(&distances, 0.5).unwrap_or(0.0)).max(margin);
        let places: Vec<usize> = (from..end).filter(|at| distances[at - from] > far).collect();
        if places.len() as f64 <= (FEW * stretch.len() as f64).max(1.0) {
            odd.extend(places);
        }
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(at: usize) -> f64 {
        ((at * 7919) % 101) as f64 / 101.0 * 0.02
    }

    fn found(values: &[f64]) -> Steps {
        let cuts = cuts(values, 1);
        let ps: Vec<f64> = cuts.iter().map(|cut| cut.p).collect();
        steps(values, accepted_cuts(&cuts, &ps, 0.001), 0.05)
    }

    fn of(len: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..len).map(|at| level(at) + noise(at)).collect()
    }

    #[test]
    fn steps_are_found_also_in_long_series_and_small_ones_are_counted() {
        assert_eq!(found(&of(40, |at| if at < 17 { 0.0 } else { 0.1 })).steps, [17]);
        let there_and_back = of(500, |at| if (200..260).contains(&at) { 0.2 } else { 0.0 });
        assert_eq!(found(&there_and_back).steps, [200, 260]);
        let small = found(&of(40, |at| if at < 20 { 0.0 } else { 0.03 }));
        assert_eq!((small.steps.len(), small.small.len(), small.small[0].0), (0, 1, 20));
        assert!((small.small[0].1 - 0.03).abs() < 0.01, "{small:?}");
        assert_eq!(found(&of(40, |_| 0.0)), Steps::default());
        assert_eq!(found(&[]), Steps::default());
    }

    #[test]
    fn disturbed_runs_before_a_step_do_not_place_it() {
        let disturbed = |at: usize| if (14..17).contains(&at) { 0.15 } else { 0.0 };
        let values = of(48, |at| disturbed(at) + if at < 24 { 0.0 } else { 0.08 });
        assert_eq!(found(&values).steps, [24]);
        let mut cuts = [14];
        refine(&values, &mut cuts);
        assert_eq!(cuts, [24]);
    }

    #[test]
    fn a_place_is_as_sure_as_the_step_is_large() {
        let step = |size: f64| of(40, |at| if at < 17 { 0.0 } else { size });
        assert_eq!(plausible_range(&step(0.5), 17), (17, 17));
        let (first, last) = plausible_range(&step(0.01), 17);
        assert!(first < 17 && last > 17 && first >= 13 && last <= 21, "{first} to {last}");
        // Equal figures: the place is exact.
        assert_eq!(plausible_range(&[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], 4), (4, 4));
    }

    #[test]
    fn a_slow_drift_is_no_step_and_two_steps_are_no_drift() {
        let drift = found(&of(60, |at| 0.005 * at as f64));
        assert_eq!((drift.steps.len(), &drift.drifts[..]), (0, &[(0, 59)][..]));
        let two = found(&of(60, |at| 0.2 * (at / 20) as f64));
        assert_eq!((&two.steps[..], two.drifts.len()), (&[20, 40][..], 0));
    }

    #[test]
    fn a_single_odd_figure_is_odd_and_two_groups_are_not() {
        let single = found(&of(40, |at| if at == 11 { 3.0 } else { 0.0 }));
        assert_eq!((&single.odd[..], single.steps.len()), (&[11][..], 0));
        let groups = found(&of(40, |at| if at % 3 == 0 { 0.5 } else { 0.0 }));
        assert_eq!((groups.odd.len(), groups.steps.len()), (0, 0));
    }

    #[test]
    fn what_comes_later_does_not_move_early_steps() {
        let values = of(600, |at| 0.1 * (at / 90) as f64);
        let whole = found(&values).steps;
        for len in [300, 420, 560] {
            let early: Vec<usize> = whole.iter().copied().filter(|at| at + LONGEST < len).collect();
            assert!(found(&values[..len]).steps.starts_with(&early), "{len}: {whole:?}");
        }
    }
}
