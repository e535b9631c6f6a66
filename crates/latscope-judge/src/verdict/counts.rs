//! Criteria on numbers of events and on shares of calls.

use super::{CallShareKind, CriterionOutcome};
use latscope_core::report::{MeasuredQuantity, Measurement, VerdictStatus};
use latscope_core::units::{format_apart, format_count, format_share};

/// Result for a named quantity of which more is better: it must be at least `limit`.
pub(super) fn judge_at_least(name: &str, value: &MeasuredQuantity, limit: f64) -> CriterionOutcome {
    let status = if value.value >= limit { VerdictStatus::Pass } else { VerdictStatus::Exceeded };
    let [wanted, found] = format_apart([limit, value.value], &value.unit);
    CriterionOutcome {
        value: Some(value.value),
        status,
        text: format!("{name} {found}, at least {wanted} wanted"),
    }
}

/// Result for a number that must be at most `limit`.
pub(super) fn judge_at_most(name: &str, value: f64, limit: f64) -> CriterionOutcome {
    let status = if value <= limit { VerdictStatus::Pass } else { VerdictStatus::Exceeded };
    let (value_text, limit_text) = (format_number(value), format_number(limit));
    CriterionOutcome {
        value: Some(value),
        status,
        text: format!("{name} {value_text}, at most {limit_text} allowed"),
    }
}

/// Number of calls for which a priority was both inherited and restored, and of all calls with it.
fn inherited(m: &Measurement, kind: &str) -> Option<(f64, f64)> {
    let [inherited, restored, calls] = ["inherited", "restored", "calls"]
        .map(|name| m.values.get(&format!("{kind}-{name}")).map(|value| value.value));
    Some((inherited?.min(restored?), calls?))
}

/// Result for a share of calls that must be reached, with the number of calls and of those for which it is known.
pub(super) fn enough(m: &Measurement, share: CallShareKind, limit: f64) -> CriterionOutcome {
    let value = |name: &str| m.values.get(name).map(|value| value.value);
    let (found, what) = match share {
        CallShareKind::Sync => {
            let of = value("sync-of").filter(|of| *of > 0.0);
            let found = of.and_then(|of| Some(((value("sync")? * of / 100.0).round(), of)));
            (found, "were served on the caller's CPU")
        }
        CallShareKind::InheritsFifo => {
            (inherited(m, "rt"), "were served at the caller's real-time priority, and it was given back")
        }
        CallShareKind::InheritsNice => {
            (inherited(m, "nice"), "were served at the caller's nice value, and it was given back")
        }
    };
    let Some((held, of)) = found.filter(|(_, of)| *of > 0.0) else {
        let text =
            "unknown for every call: the caller lacked the priority, or the run did not check".to_owned();
        return CriterionOutcome { value: None, status: VerdictStatus::Inconclusive, text };
    };
    let reached = 100.0 * held / of;
    let status = if reached >= limit { VerdictStatus::Pass } else { VerdictStatus::Exceeded };
    let text = format!(
        "{} of {} calls {what}; {} wanted",
        format_count(held as u64),
        format_count(of as u64),
        format_share(limit / 100.0)
    );
    CriterionOutcome { value: Some(reached), status, text }
}

fn format_number(value: f64) -> String {
    if value >= 0.0 && value.fract() == 0.0 { format_count(value as u64) } else { value.to_string() }
}
