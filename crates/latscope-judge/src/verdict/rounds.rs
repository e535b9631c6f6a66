//! The median of a row as every table shows it: that of its rounds.

use super::above::MessageLosses;
use super::{CriterionOutcome, CriterionQuantile, is_batch};
use latscope_core::report::{Account, Measurement, VerdictStatus};
use latscope_core::rounds::{self, Prediction};
use latscope_core::units::format_apart;

/// The share of values above the median.
const MEDIAN: f64 = 0.5;

/// Returns true if a quantile is the median of those of the rounds, as every table shows it: for batches, and for
/// events that were measured in several rounds without missed or lost ones, and without a median beyond the last bin.
pub(super) fn is_of_rounds(m: &Measurement, quantile: CriterionQuantile) -> bool {
    let missed = m.corrected.as_ref().is_some_and(|corrected| corrected.count() > m.histogram.count());
    let whole = || {
        !missed
            && MessageLosses::from_measurement(m).is_none()
            && !rounds::round_figures(&m.rounds).is_empty()
    };
    quantile.above == MEDIAN && (is_batch(m) || m.rounds.len() > 1 && whole())
}

/// Returns true if an interval holds nearly all next runs; that of two rounds does not.
pub(super) fn is_sure(next: &Prediction) -> bool {
    next.level >= 0.9
}

/// The median of rounds: the figure of the row, which is known as well as they agree.
pub(super) fn median_of_rounds(m: &Measurement, limit: f64) -> CriterionOutcome {
    let beside_limit = |ns: f64| -> String {
        let [_, text] = format_apart([limit, ns], "ns");
        text
    };
    let shown = m.typical().map(beside_limit).unwrap_or_default();
    let (status, text) = match m.interval.filter(is_sure) {
        None => (
            VerdictStatus::Inconclusive,
            format!(
                "the median is {shown}; fewer than three rounds do not say where that of another run will be"
            ),
        ),
        Some(next) => {
            let status = match () {
                () if next.high <= limit => VerdictStatus::Pass,
                () if next.low > limit => VerdictStatus::Exceeded,
                () => VerdictStatus::Inconclusive,
            };
            let unsure =
                if status == VerdictStatus::Inconclusive { ", on both sides of the limit" } else { "" };
            let (low, high) = (beside_limit(next.low), beside_limit(next.high));
            let busy = m.account.as_ref().is_some_and(Account::is_disturbed);
            let run = if busy { "the next run of a machine as busy as this" } else { "the next run" };
            let expected = format!(", and that of {run} expected in {low} to {high}{unsure}");
            // Rounds that were distorted say nothing of the next run.
            let expected = m.next_run().map_or_else(String::new, |_| expected);
            (status, format!("the median is {shown}{expected}"))
        }
    };
    CriterionOutcome { value: m.typical(), status, text }
}
