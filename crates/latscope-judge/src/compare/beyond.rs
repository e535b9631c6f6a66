//! Points with a median beyond the last bin of another program. Such a median is at least so long: a direction can
//! follow from that, but no figure.

use super::contrast::{Contrast, Levels, contrast};
use super::pair::ComparisonPair;
use super::ranks::MannWhitney;
use super::verdict::ComparisonVerdict;
use super::{round_medians, step};
use latscope_core::report::Measurement;
use latscope_core::statistics::median;
use schemars::JsonSchema;
use serde::Serialize;

/// The medians of a point of which a run has its median beyond its last bin.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Beyond {
    /// Median over the runs of each side, ns. A run counts by its last bin if its median is beyond.
    pub figures: [f64; 2],
    /// True for a side with such a run: its median is longer than the figure says.
    pub longer: [bool; 2],
    /// Comparison of the least medians that the runs can have.
    #[serde(skip)]
    pub least: Option<Contrast>,
}

impl Beyond {
    /// Returns what is known of the medians of a pair; `None` if all of them are known.
    pub(super) fn from_pair(pair: &ComparisonPair, seed: u64, test: &mut MannWhitney) -> Option<Beyond> {
        let sides = [&pair.a, &pair.b];
        let longer = sides.map(|side| side.iter().any(|m| m.median_beyond().is_some()));
        if longer == [false; 2] {
            return None;
        }
        let of_run = |m: &&Measurement| m.typical().or_else(|| m.median_beyond());
        let figure = |side: &Vec<&Measurement>| median(&side.iter().filter_map(of_run).collect::<Vec<_>>());
        let figures = [figure(sides[0])?, figure(sides[1])?];
        let [a, b] = sides.map(|side| side.iter().map(|m| at_least(m)).collect::<Levels>());
        Some(Beyond { figures, longer, least: contrast(&a, &b, step(pair), seed, test) })
    }

    /// Returns the part of a verdict on the least medians that also holds for the real ones: only a longer side can be
    /// the one of which not all is known.
    pub(super) fn weaken_verdict(&self, verdict: ComparisonVerdict) -> ComparisonVerdict {
        let ratio = self.least.as_ref().map_or(1.0, |least| least.ratio);
        let holds = match self.longer {
            [false, true] => ratio > 1.0,
            [true, false] => ratio < 1.0,
            _ => false,
        };
        match verdict {
            ComparisonVerdict::Slower | ComparisonVerdict::Faster | ComparisonVerdict::Differs if holds => {
                verdict
            }
            _ => ComparisonVerdict::CannotTell,
        }
    }
}

/// The medians of the rounds of a run, or the least that its median can be.
fn at_least(m: &Measurement) -> Vec<f64> {
    match m.median_beyond() {
        Some(_) => m.histogram.overflow_from().into_iter().collect(),
        None => round_medians(m),
    }
}
