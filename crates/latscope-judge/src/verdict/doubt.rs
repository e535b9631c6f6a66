//! Doubts about a measurement, and which results of a criterion they leave standing.

use super::above::MessageLosses;
use super::events::{Independent, events_above};
use super::{CallShareKind, CriterionOutcome, Metric, MetricCriterion, not_run};
use latscope_core::param;
use latscope_core::quality::{CUT_SHORT, LOAD_ENDED, NOT_RUN, QualityLevel, Reason};
use latscope_core::report::{LATE, LOSSES, MESSAGES_LOST, MISMATCHES, Measurement, VerdictStatus};

/// Returns the result of a criterion with what speaks against the measurement: a distorted one proves nothing, and one
/// that ended early or is unstable has not passed. What a doubt about times leaves as it is [stands](stands).
pub(super) fn weaken_outcome(
    m: &Measurement,
    criterion: &MetricCriterion,
    found: CriterionOutcome,
) -> CriterionOutcome {
    let stands = stands(m, criterion, found.status);
    let why = || m.joined_reasons().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let words = match (reason_for_doubt(m).filter(|_| !stands), not_run(m)) {
        (Some(doubt), _) => format!("{doubt}: not judged; as measured"),
        _ if found.status != VerdictStatus::Pass => return found,
        _ if m.incomplete => format!("the run ended before this measurement did{}; so far", why()),
        (None, Some(reason)) => format!("{}; so far", reason.text),
        _ if may_lack_missed(m, criterion) => {
            "activations longer than the interval swallowed others, and how many is not known; as recorded"
                .to_owned()
        }
        _ if has_reason(m, |reason| reason.id == LOAD_ENDED) => {
            "not all was measured under the load; as measured".to_owned()
        }
        _ if !stands && has_reason(m, |reason| reason.level == QualityLevel::Unstable) => {
            let why = m.joined_reasons().unwrap_or_else(|| "its rounds disagree".to_owned());
            format!("unstable ({why}): another run may not pass; in this one")
        }
        _ => return found,
    };
    CriterionOutcome {
        status: VerdictStatus::Inconclusive,
        text: format!("{words}, {}", found.text),
        ..found
    }
}

/// Returns true if a result holds whatever distorts the times: it is about facts. A disturbed machine makes replies
/// late, not wrong; no fewer messages are lost because of it, and those whose reply never came are lost for sure.
fn stands(m: &Measurement, criterion: &MetricCriterion, status: VerdictStatus) -> bool {
    const CONTENT: [&str; 4] = [MISMATCHES, "duplicates", "reorderings", "faults"];
    let never_came = m.losses().saturating_sub(m.event_count(LATE));
    match &criterion.metric {
        Metric::Share(CallShareKind::InheritsFifo | CallShareKind::InheritsNice) => true,
        Metric::Value(name) if CONTENT.contains(&name.as_str()) => true,
        Metric::Value(name) if name == LOSSES && status == VerdictStatus::Exceeded => {
            never_came as f64 > criterion.limit
        }
        Metric::Value(name) => [LOSSES, LATE].contains(&name.as_str()) && status == VerdictStatus::Pass,
        Metric::Max | Metric::Threshold if status == VerdictStatus::Exceeded && never_came > 0 => true,
        // No time was distorted where there is none.
        metric => {
            metric.is_duration() && m.summary.count == 0 && MessageLosses::from_measurement(m).count > 0
        }
    }
}

/// Returns true if activations that were missed may decide a quantile: another program measured it, and does not state
/// them. One that is longer than the interval may have swallowed as many as it has intervals.
fn may_lack_missed(m: &Measurement, criterion: &MetricCriterion) -> bool {
    let Metric::Quantile(quantile) = &criterion.metric else { return false };
    let interval = m.numeric_param(param::INTERVAL).filter(|_| m.is_imported() && m.corrected.is_none());
    let (Some(interval), Some((above, of))) = (interval, events_above(m, criterion.limit)) else {
        return false;
    };
    let swallowed = |ns: f64| (ns / interval as f64) as u64;
    let longest = m.summary.max.unwrap_or_default();
    let beyond = m.histogram.overflow().saturating_mul(swallowed(longest));
    // Whatever a file says: what is as many as all that it has leaves no quantile.
    let missed = m
        .histogram
        .buckets_ns()
        .fold(beyond, |sum, (_, high, n)| sum.saturating_add(n.saturating_mul(swallowed(high))));
    missed >= of
        || !Independent::from_measurement(m).prove_at_most(above + missed, of + missed, quantile.above)
}

/// Reason why the numbers of a measurement prove nothing; `None` without one.
fn reason_for_doubt(m: &Measurement) -> Option<String> {
    let why = m.joined_reasons().as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    match m.quality.level {
        QualityLevel::Unsupported => Some(format!("not supported here{why}")),
        QualityLevel::Degraded if is_distorted(m) => {
            Some(format!("measured under conditions that distort it{why}"))
        }
        _ => None,
    }
}

/// Returns true if conditions distort the measurement. The early end of the run or of the load, an event that had not
/// come at the end, or rounds that disagree, do not invalidate the values seen; they only limit predictions. A lost
/// message is a value above every limit.
fn is_distorted(m: &Measurement) -> bool {
    let limits = |reason: &Reason| match reason.id.as_str() {
        CUT_SHORT => m.incomplete,
        id => [LOAD_ENDED, MESSAGES_LOST, NOT_RUN].contains(&id),
    };
    m.quality.reasons.is_empty()
        || has_reason(m, |reason| reason.level >= QualityLevel::Degraded && !limits(reason))
}

fn has_reason(m: &Measurement, wanted: impl Fn(&Reason) -> bool) -> bool {
    m.quality.reasons.iter().any(wanted)
}
