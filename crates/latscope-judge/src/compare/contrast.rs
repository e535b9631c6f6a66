//! Contrast of one figure of two sides: their ratio, its interval, and the test behind it.
//!
//! The run is the unit, the round the level below. All is on the log scale, since noise multiplies.

use super::ranks::{MannWhitney, superiority};
use latscope_core::rounds::{BETWEEN_RUNS, median_by_mean};
use latscope_core::statistics::{NORMAL_95, SplitMix, student_95};
use schemars::JsonSchema;
use serde::Serialize;

/// A figure of each round of each run of a side.
pub type Levels = Vec<Vec<f64>>;

/// Difference of two sides in one figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Contrast {
    /// The figure of A: the median over its runs of the medians over their rounds.
    pub a: f64,
    /// The figure of B.
    pub b: f64,
    /// Figure of B divided by the figure of A.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` if neither rounds nor runs show the spread.
    pub interval: Option<Range>,
    /// Runs of A and of B that have the figure.
    pub runs: [usize; 2],
    /// Fewest rounds of a run of A and of B.
    pub rounds: [usize; 2],
    /// Probability that runs that are alike differ by as much (Mann and Whitney); `None` with one run on a side.
    pub p: Option<f64>,
    /// Probability `p`, adjusted for the number of figures compared.
    pub p_adjusted: Option<f64>,
    /// The probability that a run of B is above one of A; `None` with one run on a side.
    pub superiority: Option<f64>,
    /// Share of the interval's variance that lies between the rounds of a run, 0 to 1; `None` where that is
    /// not known.
    pub within_runs: Option<f64>,
    /// The logarithms of the figures of the runs of A and of B: for tests against other ratios than 1.
    #[serde(skip)]
    pub(crate) logs: [Vec<f64>; 2],
}

/// Ends of an interval of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Range {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Range {
    /// Half of the width of the interval on the log scale.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).ln() / 2.0
    }
}

impl Contrast {
    /// Returns the contrast without the p value.
    pub(crate) fn without_test(self) -> Contrast {
        Contrast { p: None, ..self }
    }
}

/// Medians of resampled rounds that stand for all those of a run.
const MEDIANS: usize = 64;

/// Standard deviation between runs, on the log scale, that is assumed of a side of a single run, as its rounds do not
/// show it. It is twice the least deviation of runs of one machine.
pub const ASSUMED_BETWEEN_RUNS: f64 = 2.0 * BETWEEN_RUNS;

/// Number of resampled comparisons.
const RESAMPLES: usize = 1000;

/// Compares a figure of two sides; `step` is by how much recorded figures differ at least, as a share of them.
/// `None` where a figure is not above 0 or a side has none.
pub fn contrast(a: &Levels, b: &Levels, step: f64, seed: u64, test: &mut MannWhitney) -> Option<Contrast> {
    contrast_with_test(a, b, step, seed, |a, b| Some(test.p(a, b)))
}

/// Compares a figure like [`contrast`], but with the test `p` over the logarithms of the figures of runs. `p` may
/// return `None`: then there is no test.
pub(crate) fn contrast_with_test(
    a: &Levels,
    b: &Levels,
    step: f64,
    seed: u64,
    mut p: impl FnMut(&[f64], &[f64]) -> Option<f64>,
) -> Option<Contrast> {
    let mut random = SplitMix::new(seed);
    let (a, b) = (ContrastSample::from_levels(a, &mut random)?, ContrastSample::from_levels(b, &mut random)?);
    let log_ratio = b.figure - a.figure;
    let several = a.runs.len() > 1 && b.runs.len() > 1;
    let half = a.knows_spread(&b).then(|| half_widths(&a, &b, &mut random));
    let interval = half.map(|(below, above)| {
        // What is recorded in steps cannot be known more exactly.
        let step = step.max(0.0).ln_1p();
        Range { low: (log_ratio - below - step).exp(), high: (log_ratio + above + step).exp() }
    });
    Some(Contrast {
        a: a.figure.exp(),
        b: b.figure.exp(),
        ratio: log_ratio.exp(),
        interval,
        runs: [a.runs.len(), b.runs.len()],
        rounds: [a.rounds, b.rounds],
        p: several.then(|| p(&a.runs, &b.runs)).flatten(),
        p_adjusted: None,
        superiority: several.then(|| superiority(&a.runs, &b.runs)),
        within_runs: several.then(|| within_runs(&a, &b)),
        logs: [a.runs, b.runs],
    })
}

/// A side on the log scale.
struct ContrastSample {
    /// The figure of each run.
    runs: Vec<f64>,
    /// Medians of resampled rounds of each run.
    resampled: Vec<[f64; MEDIANS]>,
    /// Fewest rounds of a run.
    rounds: usize,
    /// The median of the runs.
    figure: f64,
    /// Variance that the rounds give the figure of a run.
    within: f64,
    /// Variance of the rounds of a run.
    of_rounds: f64,
    /// Factor that removes double counting: runs also scatter because their rounds do, and resampling both counts that
    /// twice (Davison and Hinkley, "Bootstrap methods and their application", 1997, 3.8).
    shrink: f64,
}

impl ContrastSample {
    fn from_levels(levels: &Levels, random: &mut SplitMix) -> Option<ContrastSample> {
        let mut figures = levels.iter().flatten();
        if levels.is_empty()
            || levels.iter().any(Vec::is_empty)
            || !figures.all(|figure| *figure > 0.0 && figure.is_finite())
        {
            return None;
        }
        let logs: Levels = levels.iter().map(|run| run.iter().map(|figure| figure.ln()).collect()).collect();
        let resampled: Vec<[f64; MEDIANS]> = logs.iter().map(|run| resampled(run, random)).collect();
        let rounds = logs.iter().map(Vec::len).min()?;
        let of_rounds = logs.iter().map(|run| variance(run)).sum::<f64>() / logs.len() as f64;
        let runs: Vec<f64> = logs.into_iter().map(|mut run| median_by_sorting(&mut run)).collect();
        let within = resampled.iter().map(|run| variance(run)).sum::<f64>() / runs.len() as f64;
        let between = variance(&runs);
        let shrink = if runs.len() > 1 && within > 0.0 { (between / (between + within)).sqrt() } else { 1.0 };
        Some(ContrastSample {
            figure: median_by_sorting(&mut runs.clone()),
            runs,
            resampled,
            rounds,
            within,
            of_rounds,
            shrink,
        })
    }

    /// The median over resampled runs of medians over their resampled rounds.
    fn draw_median(&self, places: &mut Vec<f64>, random: &mut SplitMix) -> f64 {
        places.clear();
        for _ in 0..self.runs.len() {
            let bits = random.bits();
            let run = ((bits >> 32) * self.runs.len() as u64) >> 32;
            places.push(self.resampled[run as usize][bits as usize % MEDIANS]);
        }
        self.figure + (median_by_sorting(places) - self.figure) * self.shrink
    }

    /// Returns true if rounds or runs show how far the figures scatter.
    fn knows_spread(&self, other: &ContrastSample) -> bool {
        self.runs.len() > 1 || other.runs.len() > 1 || self.rounds > 1 && other.rounds > 1
    }
}

/// Distances by which the log ratio may lie below and above the value found.
///
/// The percentile interval of the bootstrap is too narrow for few values: its halves are expanded by Student's
/// quantile over the normal one (Hesterberg, "What teachers should know about the bootstrap", 2015; his second
/// factor is for means: that of a median is wide enough without). A side of a single run has the spread of the
/// other's runs beside that of its rounds; where both are single, [`ASSUMED_BETWEEN_RUNS`] is added. A bootstrap of one
/// or two values has hardly any to draw, so that the interval is at least [Student's](students).
fn half_widths(a: &ContrastSample, b: &ContrastSample, random: &mut SplitMix) -> (f64, f64) {
    let centre = b.figure - a.figure;
    let mut places = Vec::new();
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .map(|_| b.draw_median(&mut places, random) - a.draw_median(&mut places, random))
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let (low, high) = (drawn[RESAMPLES / 40], drawn[RESAMPLES - 1 - RESAMPLES / 40]);
    let (degrees, extra) = match (a.runs.len(), b.runs.len()) {
        (1, 1) => (a.rounds + b.rounds - 2, NORMAL_95 * ASSUMED_BETWEEN_RUNS * 2f64.sqrt()),
        (1, runs) => (runs - 1, student_95(runs - 1) * deviation(&b.runs).max(ASSUMED_BETWEEN_RUNS)),
        (runs, 1) => (runs - 1, student_95(runs - 1) * deviation(&a.runs).max(ASSUMED_BETWEEN_RUNS)),
        (of_a, of_b) => (of_a + of_b - 2, 0.0),
    };
    let least = students(a, b, degrees, extra);
    let halves = [centre - low, high - centre];
    halves.map(|half| (half.max(0.0) * student_95(degrees) / NORMAL_95).hypot(extra).max(least)).into()
}

/// Medians of figures drawn from those of a run.
fn resampled(run: &[f64], random: &mut SplitMix) -> [f64; MEDIANS] {
    let mut drawn = vec![0.0; run.len()];
    std::array::from_fn(|_| {
        for place in &mut drawn {
            *place = run[random.below(run.len() as u64) as usize];
        }
        median_by_sorting(&mut drawn)
    })
}

/// Variance of the median of this many values, from the variance of the values.
fn variance_of_median(variance: f64, values: usize) -> f64 {
    variance / values as f64 * median_by_mean(values).powi(2)
}

/// Half of Student's interval where a side has one or two runs; 0 where both have more. The variance of two runs is
/// itself hardly known: it counts with that of the other side, and is at least that of runs of one machine.
fn students(a: &ContrastSample, b: &ContrastSample, degrees: usize, extra: f64) -> f64 {
    let (of_a, of_b) = (a.runs.len(), b.runs.len());
    match of_a.min(of_b) {
        1 if of_a == of_b => {
            let rounds =
                variance_of_median(a.of_rounds, a.rounds) + variance_of_median(b.of_rounds, b.rounds);
            (student_95(degrees) * rounds.sqrt()).hypot(extra)
        }
        // The extra part is that of the single run: here that of the others beside it.
        1 => extra * (1.0 + variance_of_median(1.0, of_a.max(of_b))).sqrt(),
        2 => {
            let (in_a, in_b) = (variance(&a.runs), variance(&b.runs));
            let pooled = in_a * (of_a - 1) as f64 + in_b * (of_b - 1) as f64;
            let least = (pooled / degrees as f64).max(BETWEEN_RUNS.powi(2));
            let sum = variance_of_median(in_a.max(least), of_a) + variance_of_median(in_b.max(least), of_b);
            student_95(degrees) * sum.sqrt()
        }
        _ => 0.0,
    }
}

/// Share of the variance of a run's figure that its rounds explain.
fn within_runs(a: &ContrastSample, b: &ContrastSample) -> f64 {
    let (rounds, runs) = (a.within + b.within, variance(&a.runs) + variance(&b.runs));
    if runs > 0.0 { (rounds / runs).min(1.0) } else { 0.0 }
}

fn deviation(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

/// Variance of a sample.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    squares / (values.len().max(2) - 1) as f64
}

/// The median of values, which are sorted by it.
fn median_by_sorting(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(random: &mut SplitMix) -> f64 {
        let mut uniform = || (random.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
        let (a, b) = (uniform(), uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Runs of rounds whose figure is `figure`, with these deviations between runs and rounds.
    fn side(
        runs: usize,
        rounds: usize,
        figure: f64,
        between: f64,
        within: f64,
        random: &mut SplitMix,
    ) -> Levels {
        let run = |random: &mut SplitMix| {
            let place = figure.ln() + between * normal(random);
            (0..rounds).map(|_| (place + within * normal(random)).exp()).collect()
        };
        (0..runs).map(|_| run(random)).collect()
    }

    fn of(a: &Levels, b: &Levels) -> Option<Contrast> {
        contrast(a, b, 0.0, 1, &mut MannWhitney::default())
    }

    #[test]
    fn the_true_ratio_lies_in_the_interval_as_often_as_it_says() {
        let mut random = SplitMix::new(5);
        // Runs of A and B, rounds, deviations between runs and between rounds.
        let cases = [
            (9, 9, 8, 0.02, 0.03),
            (4, 4, 8, 0.03, 0.01),
            (3, 5, 3, 0.01, 0.05),
            (1, 9, 8, 0.02, 0.02),
            (2, 9, 8, 0.02, 0.02),
            (1, 1, 8, 0.01, 0.03),
            (1, 1, 8, 0.02, 0.02),
            (1, 1, 2, 0.01, 0.03),
            (1, 2, 8, 0.02, 0.02),
            (1, 3, 8, 0.02, 0.02),
            // Runs that differ by far more than their rounds do, and figures that have no rounds: tails.
            (2, 2, 8, 0.03, 0.001),
            (2, 2, 8, 0.02, 0.03),
            (2, 2, 1, 0.30, 0.0),
            (2, 3, 8, 0.03, 0.001),
            (3, 3, 8, 0.03, 0.001),
            (3, 3, 1, 0.30, 0.0),
        ];
        for (of_a, of_b, rounds, between, within) in cases {
            let covered = (0..300)
                .filter(|_| {
                    let a = side(of_a, rounds, 100.0, between, within, &mut random);
                    let b = side(of_b, rounds, 120.0, between, within, &mut random);
                    let Range { low, high } = of(&a, &b).unwrap().interval.unwrap();
                    low <= 1.2 && 1.2 <= high
                })
                .count();
            println!("{of_a} v {of_b} runs of {rounds} rounds ({between}, {within}): {covered} of 300");
            // 275 of 300 is the 1 % quantile of 95 %.
            assert!(covered >= 275, "{of_a} and {of_b} runs of {rounds} rounds: {covered} of 300");
        }
    }

    #[test]
    fn what_scatters_more_has_a_wider_interval_and_its_level_is_named() {
        let mut random = SplitMix::new(9);
        let mut of_noise = |between, within| {
            let (a, b) = (
                side(9, 8, 1.0, between, within, &mut random),
                side(9, 8, 1.0, between, within, &mut random),
            );
            of(&a, &b).unwrap()
        };
        let (still, runs, rounds) = (of_noise(0.001, 0.001), of_noise(0.1, 0.001), of_noise(0.001, 0.1));
        let width = |c: &Contrast| c.interval.unwrap().half_width();
        assert!(width(&still) < 0.01 && width(&runs) > 0.03 && width(&rounds) > 0.02);
        assert!(runs.within_runs.unwrap() < 0.2 && rounds.within_runs.unwrap() > 0.5);
    }

    #[test]
    fn single_runs_have_no_test_and_single_rounds_no_interval() {
        let rounds: Vec<f64> = (0..8).map(|i| 100.0 + f64::from(i)).collect();
        let two = of(&vec![rounds.clone()], &vec![rounds.clone()]).unwrap();
        assert_eq!((two.ratio, two.p, two.superiority), (1.0, None, None));
        // Two runs whose rounds agree exactly may still differ by what runs do.
        let same = of(&vec![vec![5.0; 8]], &vec![vec![5.0; 8]]).unwrap().interval.unwrap();
        assert!(same.low < 0.98 && same.high > 1.02, "{same:?}");
        assert_eq!(of(&vec![vec![5.0]], &vec![rounds]).unwrap().interval, None);
    }

    #[test]
    fn figures_that_are_not_above_zero_have_no_ratio() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(of(&vec![vec![1.0, bad]], &vec![vec![1.0]]), None);
        }
        assert_eq!(of(&vec![], &vec![vec![1.0]]), None);
        assert_eq!(of(&vec![vec![]], &vec![vec![1.0]]), None);
    }

    #[test]
    fn the_step_of_the_figures_widens_the_interval() {
        let (a, b) = (vec![vec![10.0; 3]; 9], vec![vec![10.0; 3]; 9]);
        let known = contrast(&a, &b, 0.1, 1, &mut MannWhitney::default()).unwrap().interval.unwrap();
        assert!((known.high - 1.1).abs() < 1e-9 && (known.low - 1.0 / 1.1).abs() < 1e-9, "{known:?}");
    }
}
