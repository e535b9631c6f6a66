//! Verdict on a contrast, and advice if it is undecided.

use super::contrast::Contrast;
use super::ranks::{FALSE_DISCOVERIES, adjust_p_values, runs_needed, smallest_p};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Verdict on the comparison of one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// B is above A: so by its interval, by the test over runs, and in nearly all pairs of runs.
    Slower,
    /// B is below A.
    Faster,
    /// The runs differ, but there are too few of them for a direction.
    Differs,
    /// The sides do not differ by more than the margin.
    Same,
    /// The figures support no other verdict.
    CannotTell,
}

impl ComparisonVerdict {
    /// Returns true if more runs could give another verdict: it is not known whether B is slower, faster or the same.
    pub fn is_open(self) -> bool {
        matches!(self, ComparisonVerdict::CannotTell | ComparisonVerdict::Differs)
    }
}

/// The probability of superiority from which a difference is one of nearly all runs.
pub(crate) const SUPERIOR: f64 = 0.85;

/// Adjusts the p values of a family of contrasts for their number; returns the number of contrasts that have a p value.
pub(crate) fn adjust(family: &mut [&mut Contrast]) -> usize {
    let mut tested: Vec<&mut &mut Contrast> =
        family.iter_mut().filter(|contrast| contrast.p.is_some()).collect();
    let ps: Vec<f64> = tested.iter().filter_map(|contrast| contrast.p).collect();
    for (contrast, p) in tested.iter_mut().zip(adjust_p_values(&ps)) {
        contrast.p_adjusted = Some(p);
    }
    ps.len()
}

/// Judges a contrast by a margin (0.05: 5 %), as one of so many compared.
pub(crate) fn verdict(contrast: &Contrast, margin: f64, compared: usize) -> ComparisonVerdict {
    let Some(interval) = contrast.interval else { return ComparisonVerdict::CannotTell };
    let most = 1.0 + margin;
    if interval.low >= 1.0 / most && interval.high <= most {
        return ComparisonVerdict::Same;
    }
    let up = interval.low > most;
    if !up && interval.high >= 1.0 / most {
        return ComparisonVerdict::CannotTell;
    }
    let superior = contrast.superiority.map(|b_above| if up { b_above } else { 1.0 - b_above });
    if superior.is_some_and(|share| share < SUPERIOR) {
        return ComparisonVerdict::CannotTell;
    }
    let findable =
        smallest_p(contrast.runs[0], contrast.runs[1]) <= FALSE_DISCOVERIES / compared.max(1) as f64;
    match contrast.p_adjusted {
        Some(p) if p <= FALSE_DISCOVERIES => {
            if up {
                ComparisonVerdict::Slower
            } else {
                ComparisonVerdict::Faster
            }
        }
        Some(_) if findable => ComparisonVerdict::CannotTell,
        _ => ComparisonVerdict::Differs,
    }
}

/// Largest advised number of runs or rounds.
const MOST: f64 = 100.0;

/// Further measurement that would decide a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WouldTell {
    /// Number of runs needed on each side.
    Runs(usize),
    /// Number of rounds needed in each run.
    Rounds(usize),
}

impl fmt::Display for WouldTell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WouldTell::Runs(runs) => write!(f, "{runs} runs a side"),
            WouldTell::Rounds(rounds) => write!(f, "--rounds {rounds}"),
        }
    }
}

/// Reason why no number of runs within reach would decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// The ratio is nearly that of the margin.
    TooNear,
    /// The figures scatter too far.
    TooWide,
}

impl Undecided {
    /// The reason why an undecided contrast has no [advice](WouldTell); `None` if it has no interval.
    pub fn from_contrast(contrast: &Contrast, margin: f64) -> Option<Undecided> {
        let half = contrast.interval?.half_width();
        Some(if half <= margin.ln_1p() { Undecided::TooNear } else { Undecided::TooWide })
    }
}

/// Further measurement that would decide a contrast: `9 runs a side`, `--rounds 10`. `None` if nothing within reach
/// would, or if the verdict needs no more.
pub(crate) fn suggest_measurement(
    contrast: &Contrast,
    margin: f64,
    compared: usize,
    verdict: ComparisonVerdict,
) -> Option<WouldTell> {
    if !verdict.is_open() {
        return None;
    }
    let (shift, margin) = (contrast.ratio.ln().abs(), margin.ln_1p());
    reach(contrast, (shift - margin).abs(), shift > margin, compared)
}

/// Further measurement that would show on which side of a limit a figure lies, if it is `distance` from the limit on
/// the log scale: enough runs for the test, if it is to be `tested`, and an interval that ends before the limit. `None`
/// if nothing within reach would.
pub(crate) fn reach(contrast: &Contrast, distance: f64, tested: bool, compared: usize) -> Option<WouldTell> {
    let needed = runs_needed(compared);
    let runs = contrast.runs[0].min(contrast.runs[1]);
    let Some(interval) = contrast.interval.filter(|_| runs > 1) else { return Some(WouldTell::Runs(needed)) };
    // By how much wider the interval is than it may be; its width goes with the root of what is measured.
    let wider = (interval.half_width() / distance.max(1e-9)).powi(2).max(1.0);
    let more =
        |now: usize| Some((now as f64 * wider).ceil()).filter(|more| *more <= MOST).map(|more| more as usize);
    if contrast.within_runs.is_some_and(|share| share > 0.5) && (!tested || runs >= needed) && wider > 1.0 {
        return more(contrast.rounds[0].min(contrast.rounds[1])).map(WouldTell::Rounds);
    }
    let least = if tested { needed.max(runs + 1) } else { runs + 1 };
    more(runs).map(|runs| WouldTell::Runs(least.max(runs)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::contrast::Range;

    fn contrast(low: f64, high: f64, runs: usize) -> Contrast {
        let several = runs > 1;
        let ratio = (low * high).sqrt();
        Contrast {
            a: 1.0,
            b: ratio,
            ratio,
            interval: Some(Range { low, high }),
            runs: [runs; 2],
            rounds: [8; 2],
            p: several.then(|| smallest_p(runs, runs)),
            p_adjusted: several.then(|| (smallest_p(runs, runs) * 500.0).min(1.0)),
            superiority: several.then_some(f64::from(u8::from(ratio > 1.0))),
            within_runs: several.then_some(0.1),
            logs: Default::default(),
        }
    }

    fn judged(contrast: &Contrast) -> ComparisonVerdict {
        verdict(contrast, 0.05, 500)
    }

    #[test]
    fn each_verdict_takes_all_that_it_rests_on() {
        assert_eq!(judged(&contrast(1.1, 1.2, 9)), ComparisonVerdict::Slower);
        assert_eq!(judged(&contrast(0.8, 0.9, 9)), ComparisonVerdict::Faster);
        assert_eq!(judged(&contrast(0.96, 1.04, 9)), ComparisonVerdict::Same);
        assert_eq!(judged(&contrast(1.0, 1.2, 9)), ComparisonVerdict::CannotTell);
        assert_eq!(judged(&contrast(0.9, 1.2, 9)), ComparisonVerdict::CannotTell);
        // Too few runs for the test: these runs differ, and that is all.
        assert_eq!(judged(&contrast(1.1, 1.2, 4)), ComparisonVerdict::Differs);
        assert_eq!(judged(&contrast(1.1, 1.2, 1)), ComparisonVerdict::Differs);
        let overlapping = Contrast { superiority: Some(0.8), ..contrast(1.1, 1.2, 9) };
        assert_eq!(judged(&overlapping), ComparisonVerdict::CannotTell);
        let by_chance = Contrast { p_adjusted: Some(0.06), ..contrast(1.1, 1.2, 9) };
        assert_eq!(judged(&by_chance), ComparisonVerdict::CannotTell);
        assert_eq!(
            judged(&Contrast { interval: None, ..contrast(1.1, 1.2, 9) }),
            ComparisonVerdict::CannotTell
        );
    }

    #[test]
    fn what_would_tell_follows_from_the_width_and_its_level() {
        let told = |contrast: &Contrast| {
            Some(suggest_measurement(contrast, 0.05, 500, judged(contrast))?.to_string())
        };
        assert_eq!(told(&contrast(1.1, 1.2, 9)), None);
        assert_eq!(told(&contrast(1.1, 1.2, 1)).unwrap(), "9 runs a side");
        assert_eq!(told(&contrast(0.9, 1.1, 9)).unwrap(), "48 runs a side");
        let of_rounds = Contrast { within_runs: Some(0.9), ..contrast(0.94, 1.06, 9) };
        assert_eq!(told(&of_rounds).unwrap(), "--rounds 14");
        // Nothing tells whether 5.01 % is more than 5 %.
        let near = contrast(1.01, 1.09, 9);
        assert_eq!((told(&near), Undecided::from_contrast(&near, 0.05)), (None, Some(Undecided::TooNear)));
        let wide = contrast(0.3, 3.3, 9);
        assert_eq!((told(&wide), Undecided::from_contrast(&wide, 0.05)), (None, Some(Undecided::TooWide)));
        // Far beyond the margin more runs decide, whatever the interval is.
        assert_eq!(told(&contrast(3.04, 4.17, 3)).unwrap(), "9 runs a side");
    }

    #[test]
    fn a_family_is_adjusted_together() {
        let mut family = [contrast(1.1, 1.2, 9), contrast(1.1, 1.2, 1), contrast(1.0, 1.0, 9)];
        family[2].p = Some(0.5);
        assert_eq!(adjust(&mut family.iter_mut().collect::<Vec<_>>()), 2);
        assert_eq!(family[1].p_adjusted, None);
        assert!((family[0].p_adjusted.unwrap() - 2.0 * smallest_p(9, 9)).abs() < 1e-12);
    }
}
