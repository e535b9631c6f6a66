//! Samples that are shown although something else ran during them, because a round had no others.

use super::Measurement;
use crate::quality::{EVERY_SAMPLE_DISTURBED, Quality, QualityLevel, Reason, SAMPLES_DISTURBED};

/// Name of the number of disturbed samples in a reason.
const DISTURBED: &str = "disturbed";

/// Returns the reason against `count` samples, of which so many were disturbed.
pub fn disturbed_reason(disturbed: u64, count: u64) -> Reason {
    let (id, text) = if disturbed < count {
        let what = "in a round something else ran on the CPU each time";
        (SAMPLES_DISTURBED, format!("{disturbed} of {count} samples were disturbed: {what}"))
    } else {
        let what = "every sample was disturbed: something else ran on the CPU each time";
        (EVERY_SAMPLE_DISTURBED, what.to_owned())
    };
    let remedy = "run it on a quieter machine, or on a CPU of its own (--cpus)";
    Reason::new(QualityLevel::Degraded, id, text, remedy).with_number(DISTURBED, disturbed as f64)
}

impl Reason {
    /// Returns true if the reason is that samples were disturbed.
    pub fn is_disturbed(&self) -> bool {
        [EVERY_SAMPLE_DISTURBED, SAMPLES_DISTURBED].contains(&&*self.id)
    }

    /// Number of samples that were disturbed; `None` for another reason, and in results without that number.
    fn disturbed(&self) -> Option<f64> {
        self.values.get(DISTURBED).copied().filter(|_| self.is_disturbed())
    }
}

impl Quality {
    /// Adds the disturbed samples of `reason` to those already known. Returns false if one of both has no number.
    pub(crate) fn add_disturbed(&mut self, reason: &Reason) -> bool {
        let Some(more) = reason.disturbed() else { return false };
        let Some(known) = self.reasons.iter_mut().find(|known| known.disturbed().is_some()) else {
            return false;
        };
        *known.values.entry(DISTURBED.to_owned()).or_default() += more;
        true
    }
}

impl Measurement {
    /// Number of samples, of those that are shown, during which something else ran. They are among the rejected ones.
    pub fn disturbed(&self) -> u64 {
        let counted = self.quality.reasons.iter().find(|reason| reason.is_disturbed());
        let all = self.summary.count;
        counted.map_or(0, |reason| reason.disturbed().map_or(all, |count| (count as u64).min(all)))
    }

    /// Share of the samples taken that were rejected, 0 to 1.
    pub fn rejected_share(&self) -> f64 {
        let taken = self.summary.count + self.summary.rejected.saturating_sub(self.disturbed());
        if taken == 0 { 0.0 } else { (self.summary.rejected as f64 / taken as f64).min(1.0) }
    }

    /// Says of all rounds together how many samples were disturbed.
    pub(super) fn settle_disturbed(&mut self) {
        let count = self.histogram.count();
        for reason in &mut self.quality.reasons {
            if let Some(disturbed) = reason.disturbed() {
                *reason = disturbed_reason(disturbed as u64, count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::plan::params;
    use crate::report::Semantics;
    use crate::testing::point;

    /// A round of so many samples, of which so many were rejected; with `disturbed`, the samples are of the rejected
    /// ones.
    fn round(samples: u64, rejected: u64, disturbed: bool) -> Measurement {
        let mut m = point("memory.loaded", params([]), Semantics::Operation, 200.0);
        m.histogram = Histogram::new(1000);
        (0..samples).for_each(|_| m.histogram.record(200_000));
        m.summary.rejected = rejected;
        if disturbed {
            m.lower(disturbed_reason(samples, samples));
        }
        m.derive_results();
        m
    }

    fn together(rounds: &[(u64, u64, bool)]) -> Measurement {
        let mut rounds = rounds.iter().map(|(samples, rejected, all)| round(*samples, *rejected, *all));
        let mut m = rounds.next().unwrap();
        rounds.for_each(|next| m.add_round(next));
        m
    }

    #[test]
    fn a_row_says_of_as_many_samples_that_they_were_disturbed_as_were() {
        let row = together(&[(8, 8, true), (1, 0, false)]);
        let told = "8 of 9 samples were disturbed: in a round something else ran on the CPU each time";
        assert_eq!((row.disturbed(), row.summary.count, row.summary.rejected), (8, 9, 8));
        assert!(row.joined_reasons().unwrap().starts_with(told), "{:?}", row.joined_reasons());
        assert_eq!(row.quality.reasons[0].id, SAMPLES_DISTURBED);
        assert_eq!(row.rejected_share(), 8.0 / 9.0);
        let row = together(&[(4, 1, false), (3, 3, true), (3, 3, true), (5, 0, false)]);
        assert!(row.joined_reasons().unwrap().starts_with("6 of 15 samples"), "{:?}", row.joined_reasons());
        assert_eq!(row.rejected_share(), 7.0 / 16.0);
    }

    #[test]
    fn every_sample_was_disturbed_only_where_each_was() {
        let row = together(&[(8, 8, true), (2, 2, true), (0, 3, false)]);
        assert_eq!((row.disturbed(), row.summary.count), (10, 10));
        assert!(
            row.joined_reasons().unwrap().starts_with("every sample was disturbed"),
            "{:?}",
            row.joined_reasons()
        );
        assert_eq!(row.rejected_share(), 1.0);
        assert_eq!(together(&[(8, 2, false), (2, 2, false)]).rejected_share(), 4.0 / 14.0);
    }

    #[test]
    fn what_was_said_without_a_number_is_said_of_every_sample() {
        let mut row = round(5, 5, false);
        row.lower(Reason::new(
            QualityLevel::Degraded,
            EVERY_SAMPLE_DISTURBED,
            "every sample was disturbed",
            "",
        ));
        row.derive_results();
        assert_eq!(
            (row.disturbed(), row.joined_reasons().as_deref()),
            (5, Some("every sample was disturbed"))
        );
    }
}
