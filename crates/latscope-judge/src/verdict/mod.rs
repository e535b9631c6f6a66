//! Verdicts on measurements by criteria, with their certainty.
//!
//! A quantile criterion such as "p99.9 at most 50 µs" requires that at most a thousandth of all activations is above 50
//! µs. The samples above are counted, and the [exact bounds](crate::binomial) of their share decide: the criterion
//! holds, does not hold, or there are too few samples. Of samples of one bout, or of threads that share a CPU, only the
//! independent ones count. `max` and `threshold` require that no sample is above. If none was, that bounds how often
//! one recurs; it does not exclude one. A measurement under distorting conditions proves nothing in either direction.

mod above;
mod confidence;
mod counts;
mod criterion;
mod doubt;
mod events;
mod rounds;
pub mod tested;
#[cfg(test)]
mod tests;

pub use confidence::{HOW_SURE, confidence_of};
pub use criterion::{
    CallShareKind, CriterionError, CriterionQuantile, Metric, MetricCriterion, QUANTILES, describe_plan,
    in_words, limit_in_words,
};
pub use events::passes_from;
pub(crate) use events::{at_most, events_above};

use crate::binomial::samples_needed;
use above::MessageLosses;
use counts::{enough, judge_at_least, judge_at_most};
use doubt::weaken_outcome;
use events::{Independent, few_above, none_above};
use latscope_core::events::event_groups;
use latscope_core::merged::{is_merged, is_part_of};
use latscope_core::quality::{NO_VALID_REPLY, NOT_RUN, QualityLevel, Reason};
use latscope_core::report::{
    BEYOND, Better, CriterionCheck, Measurement, Merged, Report, Sampling, Verdict, VerdictStatus,
};
use latscope_core::units::{count_with_noun, format_span, format_time};
use rounds::{is_of_rounds, median_of_rounds};

/// Judges a measurement by criteria; without any it passes.
///
/// Quantiles are those of the activation-corrected distribution if there is one: a stall that swallowed activations
/// counts as often as it was felt.
pub fn judge_measurement(m: &Measurement, criteria: &[MetricCriterion]) -> Verdict {
    let checks: Vec<CriterionCheck> =
        criteria.iter().map(|criterion| check_criterion(m, criterion)).collect();
    let status = checks.iter().map(|check| check.status).max().unwrap_or(VerdictStatus::Pass);
    Verdict { status, checks }
}

/// Judges a measurement of a report as [`judge_measurement`] does. Merged runs that are of several things have not
/// passed: a limit that one of them exceeds is exceeded all the same.
pub fn judge_of(report: &Report, m: &Measurement, criteria: &[MetricCriterion]) -> Verdict {
    let mut verdict = judge_measurement(m, criteria);
    let Some(unlike) = report.merged.as_ref().and_then(Merged::unlike) else { return verdict };
    for check in verdict.checks.iter_mut().filter(|check| check.status == VerdictStatus::Pass) {
        check.status = VerdictStatus::Inconclusive;
        check.text = format!("{unlike}: not judged together; as measured, {}", check.text);
    }
    verdict.status = verdict.checks.iter().map(|check| check.status).max().unwrap_or(verdict.status);
    verdict
}

/// Judges every measurement of a report that is a [subject](subjects), and
/// leaves the verdicts in it.
pub fn judge_report(report: &mut Report, criteria: &[MetricCriterion]) {
    if criteria.is_empty() {
        return;
    }
    tested::record_evidence(report);
    for at in subjects(report) {
        let mut verdict = judge_of(report, &report.measurements[at], criteria);
        exceed_by_parts(report, at, criteria, &mut verdict);
        if let Some(only) = only_part(report, &report.measurements[at]) {
            report.measurements[only].verdict = Some(verdict.clone());
        }
        report.measurements[at].verdict = Some(verdict);
    }
}

/// Takes quantiles that a part of a sum exceeds for exceeded: among many CPUs one that is always late is a small share
/// of all events.
fn exceed_by_parts(report: &Report, at: usize, criteria: &[MetricCriterion], verdict: &mut Verdict) {
    let all = &report.measurements[at];
    let parts: Vec<&Measurement> = report.measurements.iter().filter(|part| is_part_of(part, all)).collect();
    for (criterion, found) in criteria.iter().zip(&mut verdict.checks) {
        if !matches!(criterion.metric, Metric::Quantile(_)) || found.status == VerdictStatus::Exceeded {
            continue;
        }
        let exceeded = parts.iter().filter_map(|part| {
            let check = check_criterion(part, criterion);
            let share = check.above.zip(check.of).map_or(0.0, |(above, of)| above as f64 / of as f64);
            (check.status == VerdictStatus::Exceeded).then_some((share, part, check))
        });
        if let Some((_, part, worst)) = exceeded.max_by(|a, b| a.0.total_cmp(&b.0)) {
            let text = format!("{}: {}", label_of(report, part), worst.text);
            *found = CriterionCheck { text, ..worst };
        }
    }
    verdict.status = verdict.checks.iter().map(|check| check.status).max().unwrap_or(verdict.status);
}

/// Name of a part of a sum, as the tables have it: `CPU 1`.
fn label_of(report: &Report, part: &Measurement) -> String {
    let groups = event_groups(report);
    let row = groups.iter().flat_map(|group| &group.singles).find(|row| std::ptr::eq(row.m, part));
    row.map_or_else(|| part.title.clone(), |row| row.label.clone())
}

/// Judged measurements with their verdicts, each once: a sum of a single part is left out, as it repeats that part.
pub fn judged_measurements(report: &Report) -> impl Iterator<Item = (&Measurement, &Verdict)> {
    let distinct = report.measurements.iter().filter(|m| only_part(report, m).is_none());
    distinct.filter_map(|m| Some((m, m.verdict.as_ref()?)))
}

/// The reason that a thread was due and had not run at the end: its longest event is known to have been longer.
fn not_run(m: &Measurement) -> Option<&Reason> {
    m.quality.reasons.iter().find(|reason| reason.id == NOT_RUN)
}

/// The index of the only measurement of which `all` is the sum; `None` if there are several.
fn only_part(report: &Report, all: &Measurement) -> Option<usize> {
    if !is_merged(all) {
        return None;
    }
    let mut parts = (0..report.measurements.len()).filter(|at| is_part_of(&report.measurements[*at], all));
    parts.next().filter(|_| parts.next().is_none())
}

/// The worst verdict in a report; `None` without criteria. A run that was [cut short](is_cut_short) has not passed.
pub fn report_status(report: &Report) -> Option<VerdictStatus> {
    let worst =
        report.measurements.iter().filter_map(|m| m.verdict.as_ref()).map(|verdict| verdict.status).max()?;
    Some(if is_cut_short(report) { worst.max(VerdictStatus::Inconclusive) } else { worst })
}

/// Returns true if a run ended before it had measured all requested points. If points are measured one after the other,
/// a worker that crashes loses only its own, and the run goes on; periodic points are the purpose of the run.
pub fn is_cut_short(report: &Report) -> bool {
    let periodic = report.plan.steps.iter().all(|step| step.periodic.is_some());
    report.is_unfinished() || periodic && report.measurements.iter().any(|m| m.incomplete)
}

/// The exit code of a run. An exceeded criterion counts even before an early end. A run that was cut short has not
/// passed, and is an error if it has no criteria.
pub fn exit_code(status: Option<VerdictStatus>, cut_short: bool) -> u8 {
    match (status, cut_short) {
        (Some(VerdictStatus::Exceeded), _) => 2,
        (Some(_), true) | (Some(VerdictStatus::Inconclusive), false) => 3,
        (None, true) => 1,
        (Some(VerdictStatus::Pass) | None, false) => 0,
    }
}

/// The measurements criteria are about, by index: those merged over CPUs or
/// pairs, and those that are part of no merged one.
pub fn subjects(report: &Report) -> Vec<usize> {
    let merged: Vec<&Measurement> = report.measurements.iter().filter(|m| is_merged(m)).collect();
    let alone = |m: &Measurement| is_merged(m) || !merged.iter().any(|all| is_part_of(m, all));
    (0..report.measurements.len()).filter(|at| alone(&report.measurements[*at])).collect()
}

/// Reason why no measurement of the same plan can hold a criterion, however short its samples are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OutOfReach {
    /// The figure is not of what was measured.
    Never,
    /// It takes so many times as many samples.
    Samples(f64),
    /// It takes three rounds or more.
    Rounds,
}

/// Fewest rounds that say where the median of another run will be.
pub(crate) const FEWEST_ROUNDS: usize = 3;

/// Returns the reason why a criterion is out of reach; `None` if another run can hold it.
pub(crate) fn out_of_reach(m: &Measurement, criterion: &MetricCriterion) -> Option<OutOfReach> {
    let count = Independent::from_measurement(m).effective_count(m.with_missed().count());
    match &criterion.metric {
        Metric::Quantile(quantile) if is_of_rounds(m, *quantile) => {
            (m.rounds.len() < FEWEST_ROUNDS).then_some(OutOfReach::Rounds)
        }
        Metric::Quantile(_) | Metric::Max | Metric::Threshold if is_batch(m) => Some(OutOfReach::Never),
        Metric::Quantile(quantile) => {
            let needed = samples_needed(0, quantile.above);
            (needed > count).then(|| OutOfReach::Samples(needed as f64 / count.max(1) as f64))
        }
        _ => None,
    }
}

/// Result of a criterion, apart from doubts about the measurement.
struct CriterionOutcome {
    value: Option<f64>,
    status: VerdictStatus,
    text: String,
}

fn check_criterion(m: &Measurement, criterion: &MetricCriterion) -> CriterionCheck {
    let without_times = judge_without_gaps(m, criterion).or_else(|| unanswered(m, criterion));
    let found = match without_times {
        Some(found) => weaken_outcome(m, criterion, found),
        None if m.summary.count > 0 => weaken_outcome(m, criterion, judge_metric(m, criterion)),
        None => nothing(m),
    };
    let CriterionOutcome { value, status, text } = found;
    let events = events_above(m, criterion.limit).filter(|_| criterion.metric.is_duration());
    let (above, of) = events.unzip();
    let metric = criterion.metric.name().to_owned();
    CriterionCheck { metric, limit: criterion.limit, value, above, of, status, text }
}

/// Result for lost or wrong messages if no message had a valid reply. Lost ones are above every limit.
fn unanswered(m: &Measurement, criterion: &MetricCriterion) -> Option<CriterionOutcome> {
    if m.summary.count > 0 {
        return None;
    }
    match &criterion.metric {
        Metric::Value(name) => {
            let value = m.values.get(name).filter(|it| it.better == Better::Less && it.unit == "count")?;
            (value.value > criterion.limit).then(|| judge_at_most(name, value.value, criterion.limit))
        }
        Metric::Max | Metric::Threshold | Metric::Quantile(_)
            if is_batch(m) || MessageLosses::from_measurement(m).count == 0 =>
        {
            None
        }
        Metric::Max | Metric::Threshold => Some(none_above(m, criterion.limit)),
        Metric::Quantile(quantile) => Some(few_above(m, *quantile, criterion.limit)),
        _ => None,
    }
}

/// Result if nothing was measured.
fn nothing(m: &Measurement) -> CriterionOutcome {
    let says_it = |reason: &Reason| [NO_VALID_REPLY, "nothing-measured"].contains(&reason.id.as_str());
    let text = match &m.joined_reasons() {
        Some(reason) if m.quality.reasons.iter().any(says_it) && reason.starts_with("no") => reason.clone(),
        Some(reason) => format!("nothing was measured: {reason}"),
        None => "nothing was measured".to_owned(),
    };
    CriterionOutcome { value: None, status: VerdictStatus::Inconclusive, text }
}

/// Result if there was no gap and gaps are searched from a length on: none was longer than that.
fn judge_without_gaps(m: &Measurement, criterion: &MetricCriterion) -> Option<CriterionOutcome> {
    let gap = m.values.get("gap").filter(|_| m.summary.count == 0)?.value;
    if !criterion.metric.is_duration() || m.quality.level == QualityLevel::Unsupported {
        return None;
    }
    let status = if gap <= criterion.limit { VerdictStatus::Pass } else { VerdictStatus::Inconclusive };
    let gap = format_time(gap);
    let text = match m.tested {
        None => format!("there was no gap of {gap} or more"),
        Some(tested) => {
            let (time, what) = (format_span(tested.time_ns as f64), confidence::what_was_tested(tested));
            format!("in {time} there was no gap of {gap} or more: {what}")
        }
    };
    Some(CriterionOutcome { value: None, status, text })
}

fn judge_metric(m: &Measurement, criterion: &MetricCriterion) -> CriterionOutcome {
    let limit = criterion.limit;
    match &criterion.metric {
        Metric::Missed if !m.can_miss() && !m.is_imported() => CriterionOutcome {
            value: None,
            status: VerdictStatus::Inconclusive,
            text: format!("nothing of {} can be missed: it has no interval and no deadline", m.probe),
        },
        Metric::Missed => match m.missed() {
            Some(missed) => judge_at_most("missed", missed as f64, limit),
            None if m.missed_at_least() as f64 > limit => {
                let least = m.missed_at_least();
                CriterionOutcome {
                    value: Some(least as f64),
                    status: VerdictStatus::Exceeded,
                    text: format!("at least {}", count_with_noun(least, "activation"))
                        + " did not take place",
                }
            }
            None => CriterionOutcome {
                value: None,
                status: VerdictStatus::Inconclusive,
                text: "another program measured it, which does not say how many activations were missed"
                    .to_owned(),
            },
        },
        Metric::Share(share) => enough(m, *share, limit),
        Metric::Value(name) => match m.values.get(name) {
            Some(value) if value.better == Better::More => judge_at_least(name, value, limit),
            Some(value) => judge_at_most(name, value.value, limit),
            // A row has the value only if a value is beyond the last bin.
            None if name == BEYOND && m.histogram.bins().is_some() => judge_at_most(name, 0.0, limit),
            None => CriterionOutcome {
                value: None,
                status: VerdictStatus::Inconclusive,
                text: format!("{} has no value called {name}", m.probe),
            },
        },
        Metric::Quantile(quantile) if is_of_rounds(m, *quantile) => median_of_rounds(m, limit),
        Metric::Max | Metric::Threshold if is_batch(m) && m.histogram.max() > Some(limit) => {
            CriterionOutcome {
                value: m.histogram.max(),
                status: VerdictStatus::Exceeded,
                text: "the mean of a batch of operations was above, and so was the longest of them"
                    .to_owned(),
            }
        }
        _ if is_batch(m) => CriterionOutcome {
            value: None,
            status: VerdictStatus::Inconclusive,
            text: "many operations were timed at once: of single ones nothing is known".to_owned(),
        },
        Metric::Max | Metric::Threshold => none_above(m, limit),
        Metric::Quantile(quantile) => few_above(m, *quantile, limit),
    }
}

fn is_batch(m: &Measurement) -> bool {
    matches!(m.sampling, Sampling::Batch { .. })
}
