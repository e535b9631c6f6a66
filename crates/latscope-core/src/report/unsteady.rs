//! Reasons against a point whose rounds disagree.

use crate::quality::{QualityLevel, Reason};
use crate::rounds::{SparseRounds, Unsteady};
use crate::units;

/// Rounds that disagree, with these figures, as a reason.
pub(super) fn unsteady_reason(unsteady: Unsteady, figures: &[f64]) -> Reason {
    let time = units::format_time;
    match unsteady {
        Unsteady::Groups(low, high) => {
            let is_low = |figure: &&f64| (*figure / low).ln().abs() < (*figure / high).ln().abs();
            let (lower, all) = (figures.iter().filter(is_low).count(), figures.len());
            // The median of two groups of equal size is a figure that no round has.
            let shown = if 2 * lower == all { "; the figure is that of the lower group" } else { "" };
            let text = format!(
                "{lower} of its {all} rounds are around {}, the rest around {}{shown}",
                time(low),
                time(high)
            );
            let reason = Reason::new(QualityLevel::Unstable, "rounds-in-two-groups", text, "");
            let reason = reason.with_number("share", lower as f64 / all as f64);
            reason.with_number("low", low).with_number("high", high)
        }
        Unsteady::Scatter(low, high) => {
            let text =
                format!("its rounds differ, from {} to {}; the next run may, too", time(low), time(high));
            Reason::new(QualityLevel::Unstable, "rounds-scatter", text, "")
                .with_number("low", low)
                .with_number("high", high)
        }
        Unsteady::Drift(from, to) => {
            let text = format!("drifted from {} to {} over the rounds", time(from), time(to));
            Reason::new(QualityLevel::Unstable, "rounds-drift", text, "")
                .with_number("from", from)
                .with_number("to", to)
        }
    }
}

/// Rounds that were left out of the figure, of so many, as a reason.
pub(super) fn starved_reason(starved: SparseRounds, all: usize) -> Reason {
    let (low, high) = (units::format_time(starved.low), units::format_time(starved.high));
    let text = format!(
        "{} of its {all} rounds took less than a quarter of the samples, with medians of {low} to {high}, \
         and are left out of the figure",
        starved.rounds
    );
    let reason = Reason::new(QualityLevel::Unstable, "rounds-starved", text, "");
    reason.with_number("low", starved.low).with_number("high", starved.high)
}

#[cfg(test)]
mod tests {
    use crate::account::Account;
    use crate::plan::Params;
    use crate::report::{Measurement, Semantics};
    use crate::testing::{in_rounds, point};

    fn measured(others: f64, run: Option<u32>) -> Measurement {
        let mut m = point("sync.futex", Params::new(), Semantics::RoundTrip, 100.0);
        m.account = Some(Account { wall_ns: 1_000_000_000, cpus: 2, others, ..Account::default() });
        let mut m = in_rounds(m, &[99.0, 100.0, 102.0, 101.0]);
        m.rounds.iter_mut().for_each(|round| round.run = run);
        m.derive_results();
        m
    }

    #[test]
    fn no_interval_is_stated_where_others_used_the_cpus() {
        assert_eq!(measured(0.049, None).next_run().map(|next| next.level), Some(0.95));
        for others in [0.05, 0.3, 0.97] {
            let busy = measured(others, None);
            assert_eq!((busy.next_run(), busy.typical()), (None, Some(100.5)), "{others}");
        }
        let unknown = in_rounds(point("sync.futex", Params::new(), Semantics::RoundTrip, 1.0), &[1.0; 3]);
        assert!(unknown.next_run().is_some(), "an account that is not known says nothing");
        assert!(
            measured(0.9, Some(1)).next_run().is_some(),
            "the spread of merged runs is that of busy runs"
        );
    }
}
