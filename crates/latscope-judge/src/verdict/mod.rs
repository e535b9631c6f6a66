//! Verdicts on measurements by criteria, with their certainty.
//!
//! A quantile criterion such as "p99.9 at most 50 µs" requires that at most a thousandth of all activations is above 50
//! µs. The samples above are counted, and the [exact bounds](crate::binomial) of their share decide: the criterion
//! holds, does not hold, or there are too few samples. Of samples of one bout, or of threads that share a CPU, only the
//! independent ones count. `max` and `threshold` require that no sample is above. If none was, that bounds how often
//! one recurs; it does not exclude one. A measurement under distorting conditions proves nothing in either direction.

mod above;
mod confidence;
mod criterion;
pub mod tested;
#[cfg(test)]
mod tests;

pub use confidence::{HOW_SURE, confidence_of};
pub use criterion::{Criterion, CriterionError, Metric, QUANTILES, Quantile, Share, describe, in_words};

use crate::binomial::{proves_at_most, proves_more, samples_needed, share_bounds};
use above::{Above, Lost};
use latscope_core::merged::{is_merged, is_part_of};
use latscope_core::quality::{CUT_SHORT, LOAD_ENDED, Level, NO_VALID_REPLY, Reason};
use latscope_core::report::{Account, Better, Check, Measurement, Report, Sampling, Status, Value, Verdict};
use latscope_core::rounds::Prediction;
use latscope_core::units::{counted, format_apart, format_count, format_share, format_span, format_time};

/// Judges a measurement by criteria; without any it passes.
///
/// Quantiles are those of the activation-corrected distribution if there is one: a stall that swallowed activations
/// counts as often as it was felt.
pub fn judge(m: &Measurement, criteria: &[Criterion]) -> Verdict {
    let checks: Vec<Check> = criteria.iter().map(|criterion| check(m, criterion)).collect();
    let status = checks.iter().map(|check| check.status).max().unwrap_or(Status::Pass);
    Verdict { status, checks }
}

/// Judges every measurement of a report that is a [subject](subjects), and
/// leaves the verdicts in it.
pub fn judge_report(report: &mut Report, criteria: &[Criterion]) {
    if criteria.is_empty() {
        return;
    }
    tested::note(report);
    for at in subjects(report) {
        let verdict = judge(&report.measurements[at], criteria);
        if let Some(only) = only_part(report, &report.measurements[at]) {
            report.measurements[only].verdict = Some(verdict.clone());
        }
        report.measurements[at].verdict = Some(verdict);
    }
}

/// Judged measurements with their verdicts, each once: a sum of a single part is left out, as it repeats that part.
pub fn judged(report: &Report) -> impl Iterator<Item = (&Measurement, &Verdict)> {
    let distinct = report.measurements.iter().filter(|m| only_part(report, m).is_none());
    distinct.filter_map(|m| Some((m, m.verdict.as_ref()?)))
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
pub fn report_status(report: &Report) -> Option<Status> {
    let worst =
        report.measurements.iter().filter_map(|m| m.verdict.as_ref()).map(|verdict| verdict.status).max()?;
    Some(if is_cut_short(report) { worst.max(Status::Inconclusive) } else { worst })
}

/// Returns true if a run ended before it had measured all requested points. If points are measured one after the other,
/// a worker that crashes loses only its own, and the run goes on; periodic points are the purpose of the run.
pub fn is_cut_short(report: &Report) -> bool {
    let periodic = report.plan.steps.iter().all(|step| step.periodic.is_some());
    report.is_unfinished() || periodic && report.measurements.iter().any(|m| m.incomplete)
}

/// The exit code of a run. An exceeded criterion counts even before an early end. A run that was cut short has not
/// passed, and is an error if it has no criteria.
pub fn exit_code(status: Option<Status>, cut_short: bool) -> u8 {
    match (status, cut_short) {
        (Some(Status::Exceeded), _) => 2,
        (Some(_), true) | (Some(Status::Inconclusive), false) => 3,
        (None, true) => 1,
        (Some(Status::Pass) | None, false) => 0,
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
pub(crate) fn out_of_reach(m: &Measurement, criterion: &Criterion) -> Option<OutOfReach> {
    let count = Independent::of(m).number(m.corrected.as_ref().unwrap_or(&m.histogram).count());
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
struct Found {
    value: Option<f64>,
    status: Status,
    text: String,
}

fn check(m: &Measurement, criterion: &Criterion) -> Check {
    let quiet = uneventful(m, criterion);
    let wrong = wrong_messages(m, criterion);
    let seen = m.summary.count > 0 || quiet.is_some() || wrong.is_some();
    let of_content = wrong.is_some() || is_of_content(criterion);
    let quiet = quiet.or(wrong);
    let mut found = quiet.unwrap_or_else(|| if seen { find(m, criterion) } else { nothing(m) });
    // A wrong message is wrong on a busy machine, too.
    if let Some(doubt) = doubt(m).filter(|_| seen && !of_content) {
        found.status = Status::Inconclusive;
        found.text = format!("{doubt}: not judged; as measured, {}", found.text);
    } else if m.incomplete && seen && found.status == Status::Pass {
        found.status = Status::Inconclusive;
        let why = m.reason().as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        found.text = format!("the run ended before this measurement did{why}; so far, {}", found.text);
    } else if ended_load(m) && seen && found.status == Status::Pass {
        found.status = Status::Inconclusive;
        found.text = format!("not all was measured under the load; as measured, {}", found.text);
    } else if is_unstable(m) && seen && found.status == Status::Pass {
        found.status = Status::Inconclusive;
        let why = m.reason().unwrap_or_else(|| "its rounds disagree".to_owned());
        found.text = format!("unstable ({why}): another run may not pass; in this one, {}", found.text);
    }
    let Found { value, status, text } = found;
    let (above, of) = above(m, criterion).unzip();
    let metric = criterion.metric.name().to_owned();
    Check { metric, limit: criterion.limit, value, above, of, status, text }
}

/// Events above the limit of a duration, and how many there are.
fn above(m: &Measurement, criterion: &Criterion) -> Option<(u64, u64)> {
    let histogram = match criterion.metric {
        Metric::Max | Metric::Threshold => &m.histogram,
        Metric::Quantile(_) => m.corrected.as_ref().unwrap_or(&m.histogram),
        _ => return None,
    };
    let lost = Lost::of(m);
    let above = lost.added_to(Above::of(histogram, criterion.limit), criterion.limit);
    (m.sampling == Sampling::Event).then(|| (above.most, histogram.count() + lost.count))
}

/// Returns true if a criterion is about the content of messages, not about a duration.
fn is_of_content(criterion: &Criterion) -> bool {
    const CONTENT: [&str; 4] = ["mismatches", "duplicates", "reorderings", "faults"];
    matches!(&criterion.metric, Metric::Value(name) if CONTENT.contains(&name.as_str()))
}

/// Result for lost or wrong messages, even if no other message came.
fn wrong_messages(m: &Measurement, criterion: &Criterion) -> Option<Found> {
    let Metric::Value(name) = &criterion.metric else { return None };
    let value = m.values.get(name).filter(|value| value.better == Better::Less && value.unit == "count")?;
    let alone = m.summary.count == 0 && value.value > criterion.limit;
    alone.then(|| count(name, value.value, criterion.limit))
}

/// Result if nothing was measured.
fn nothing(m: &Measurement) -> Found {
    let says_it = |reason: &Reason| [NO_VALID_REPLY, "nothing-measured"].contains(&reason.id.as_str());
    let text = match &m.reason() {
        Some(reason) if m.quality.reasons.iter().any(says_it) && reason.starts_with("no") => reason.clone(),
        Some(reason) => format!("nothing was measured: {reason}"),
        None => "nothing was measured".to_owned(),
    };
    Found { value: None, status: Status::Inconclusive, text }
}

/// Result if there was no gap and gaps are searched from a length on: none was longer than that.
fn uneventful(m: &Measurement, criterion: &Criterion) -> Option<Found> {
    let gap = m.values.get("gap").filter(|_| m.summary.count == 0)?.value;
    if !criterion.metric.is_duration() || m.quality.level == Level::Unsupported {
        return None;
    }
    let status = if gap <= criterion.limit { Status::Pass } else { Status::Inconclusive };
    let gap = format_time(gap);
    let text = match m.tested {
        None => format!("there was no gap of {gap} or more"),
        Some(tested) => {
            let (time, what) = (format_span(tested.time_ns as f64), confidence::what_was_tested(tested));
            format!("in {time} there was no gap of {gap} or more: {what}")
        }
    };
    Some(Found { value: None, status, text })
}

/// Reason why the numbers of a measurement prove nothing; `None` without one.
fn doubt(m: &Measurement) -> Option<String> {
    let why = m.reason().as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    match m.quality.level {
        Level::Unsupported => Some(format!("not supported here{why}")),
        Level::Degraded if is_distorted(m) => Some(format!("measured under conditions that distort it{why}")),
        _ => None,
    }
}

/// Returns true if conditions distort the measurement. The early end of the run or of the load, or rounds that
/// disagree, do not invalidate the values seen; they only limit predictions.
fn is_distorted(m: &Measurement) -> bool {
    let ended = |reason: &Reason| m.incomplete && reason.id == CUT_SHORT || reason.id == LOAD_ENDED;
    let reasons = &m.quality.reasons;
    reasons.is_empty() || reasons.iter().any(|reason| reason.level >= Level::Degraded && !ended(reason))
}

fn ended_load(m: &Measurement) -> bool {
    m.quality.reasons.iter().any(|reason| reason.id == LOAD_ENDED)
}

fn is_unstable(m: &Measurement) -> bool {
    m.quality.reasons.iter().any(|reason| reason.level == Level::Unstable)
}

fn find(m: &Measurement, criterion: &Criterion) -> Found {
    let limit = criterion.limit;
    match &criterion.metric {
        Metric::Missed if !m.can_miss() && !m.is_imported() => Found {
            value: None,
            status: Status::Inconclusive,
            text: format!("nothing of {} can be missed: it has no interval and no deadline", m.probe),
        },
        Metric::Missed => match m.missed() {
            Some(missed) => count("missed", missed as f64, limit),
            None => Found {
                value: None,
                status: Status::Inconclusive,
                text: "another program measured it, which does not say how many activations were missed"
                    .to_owned(),
            },
        },
        Metric::Share(share) => enough(m, *share, limit),
        Metric::Value(name) => match m.values.get(name) {
            Some(value) if value.better == Better::More => reach(name, value, limit),
            Some(value) => count(name, value.value, limit),
            None => Found {
                value: None,
                status: Status::Inconclusive,
                text: format!("{} has no value called {name}", m.probe),
            },
        },
        Metric::Quantile(quantile) if is_of_rounds(m, *quantile) => median_of_rounds(m, limit),
        Metric::Max | Metric::Threshold if is_batch(m) && m.histogram.max() > Some(limit) => Found {
            value: m.histogram.max(),
            status: Status::Exceeded,
            text: "the mean of a batch of operations was above, and so was the longest of them".to_owned(),
        },
        _ if is_batch(m) => Found {
            value: None,
            status: Status::Inconclusive,
            text: "many operations were timed at once: of single ones nothing is known".to_owned(),
        },
        Metric::Max | Metric::Threshold => none_above(m, limit),
        Metric::Quantile(quantile) => few_above(m, *quantile, limit),
    }
}

fn is_batch(m: &Measurement) -> bool {
    matches!(m.sampling, Sampling::Batch { .. })
}

/// The share of values above the median.
const MEDIAN: f64 = 0.5;

/// Returns true if a quantile is the median of those of the rounds, as every table shows it: for batches, and for
/// events that were measured in several rounds without missed or lost ones.
fn is_of_rounds(m: &Measurement, quantile: Quantile) -> bool {
    let missed = m.corrected.as_ref().is_some_and(|corrected| corrected.count() > m.histogram.count());
    let whole = !missed && Lost::of(m).count == 0;
    quantile.above == MEDIAN && (is_batch(m) || m.rounds.len() > 1 && whole)
}

/// Returns true if an interval holds nearly all next runs; that of two rounds does not.
fn is_sure(next: &Prediction) -> bool {
    next.level >= 0.9
}

/// The median of rounds: the figure of the row, which is known as well as they agree.
fn median_of_rounds(m: &Measurement, limit: f64) -> Found {
    let beside_limit = |ns: f64| -> String {
        let [_, text] = format_apart([limit, ns], "ns");
        text
    };
    let shown = m.typical().map(beside_limit).unwrap_or_default();
    let (status, text) = match m.interval.filter(is_sure) {
        None => (
            Status::Inconclusive,
            format!(
                "the median is {shown}; fewer than three rounds do not say where that of another run will be"
            ),
        ),
        Some(next) => {
            let status = match () {
                () if next.high <= limit => Status::Pass,
                () if next.low > limit => Status::Exceeded,
                () => Status::Inconclusive,
            };
            let unsure = if status == Status::Inconclusive { ", on both sides of the limit" } else { "" };
            let (low, high) = (beside_limit(next.low), beside_limit(next.high));
            let busy = m.account.as_ref().is_some_and(Account::is_disturbed);
            let run = if busy { "the next run of a machine as busy as this" } else { "the next run" };
            let expected = format!(", and that of {run} expected in {low} to {high}{unsure}");
            // Rounds that were distorted say nothing of the next run.
            let expected = m.next_run().map_or_else(String::new, |_| expected);
            (status, format!("the median is {shown}{expected}"))
        }
    };
    Found { value: m.typical(), status, text }
}

/// The smallest limit of a duration, ns, that the samples of a measurement pass; other doubts do not count. `None` if
/// they pass no limit, or if nothing bounds how rare longer ones are: there are too few samples, or it is a maximum.
pub fn passes_from(m: &Measurement, quantile: Quantile) -> Option<f64> {
    if is_batch(m) || is_of_rounds(m, quantile) {
        let next = m.interval.filter(|next| is_of_rounds(m, quantile) && is_sure(next));
        return next.map(|next| next.high);
    }
    let histogram = m.corrected.as_ref().unwrap_or(&m.histogram);
    let (lost, max) = (Lost::of(m).count, histogram.max()?);
    let n = histogram.count() + lost;
    let (mut allowed, mut too_many) = (lost, n);
    let independent = Independent::of(m);
    if !independent.prove_at_most(allowed, n, quantile.above) {
        return None;
    }
    while too_many - allowed > 1 {
        let middle = allowed + (too_many - allowed) / 2;
        if independent.prove_at_most(middle, n, quantile.above) {
            allowed = middle
        } else {
            too_many = middle
        }
    }
    let mut above = histogram.overflow().saturating_add(lost);
    let buckets: Vec<(f64, f64, u64)> = histogram.buckets_ns().collect();
    let passing = buckets.iter().rev().take_while(|(_, _, count)| {
        above = above.saturating_add(*count);
        above <= allowed
    });
    // A limit inside of a bucket has all of it above: the end of the next one has none.
    let passed = passing.count();
    Some(match buckets.len().checked_sub(passed + 1) {
        Some(at) if histogram.overflow().saturating_add(lost) <= allowed => buckets[at].1.min(max),
        _ => max,
    })
}

/// Upper bound of a duration, ns, if a criterion holds and only the bound is known: a quantile of few samples, or the
/// length from which on gaps were searched.
pub(crate) fn at_most(m: &Measurement, metric: &Metric) -> Option<f64> {
    match metric {
        _ if m.summary.count == 0 && metric.is_duration() => m.values.get("gap").map(|gap| gap.value),
        Metric::Quantile(quantile) => passes_from(m, *quantile),
        _ => None,
    }
}

/// Result for a named quantity of which more is better: it must be at least `limit`.
fn reach(name: &str, value: &Value, limit: f64) -> Found {
    let status = if value.value >= limit { Status::Pass } else { Status::Exceeded };
    let [wanted, found] = format_apart([limit, value.value], &value.unit);
    Found { value: Some(value.value), status, text: format!("{name} {found}, at least {wanted} wanted") }
}

/// Result for a number that must be at most `limit`.
fn count(name: &str, value: f64, limit: f64) -> Found {
    let status = if value <= limit { Status::Pass } else { Status::Exceeded };
    let (value_text, limit_text) = (format_number(value), format_number(limit));
    Found { value: Some(value), status, text: format!("{name} {value_text}, at most {limit_text} allowed") }
}

/// Number of calls for which a priority was both inherited and restored, and of all calls with it.
fn inherited(m: &Measurement, kind: &str) -> Option<(f64, f64)> {
    let [inherited, restored, calls] = ["inherited", "restored", "calls"]
        .map(|name| m.values.get(&format!("{kind}-{name}")).map(|value| value.value));
    Some((inherited?.min(restored?), calls?))
}

/// Result for a share of calls that must be reached, with the number of calls and of those for which it is known.
fn enough(m: &Measurement, share: Share, limit: f64) -> Found {
    let value = |name: &str| m.values.get(name).map(|value| value.value);
    let (found, what) = match share {
        Share::Sync => {
            let of = value("sync-of").filter(|of| *of > 0.0);
            let found = of.and_then(|of| Some(((value("sync")? * of / 100.0).round(), of)));
            (found, "were served on the caller's CPU")
        }
        Share::InheritsFifo => {
            (inherited(m, "rt"), "were served at the caller's real-time priority, and it was given back")
        }
        Share::InheritsNice => {
            (inherited(m, "nice"), "were served at the caller's nice value, and it was given back")
        }
    };
    let Some((held, of)) = found.filter(|(_, of)| *of > 0.0) else {
        let text = "of no call it is known: the caller did not get its priority, or the run does not look"
            .to_owned();
        return Found { value: None, status: Status::Inconclusive, text };
    };
    let reached = 100.0 * held / of;
    let status = if reached >= limit { Status::Pass } else { Status::Exceeded };
    let text = format!(
        "{} of {} calls {what}; {} wanted",
        format_count(held as u64),
        format_count(of as u64),
        format_share(limit / 100.0)
    );
    Found { value: Some(reached), status, text }
}

fn format_number(value: f64) -> String {
    if value >= 0.0 && value.fract() == 0.0 { format_count(value as u64) } else { value.to_string() }
}

/// Share of samples that are independent of each other; all bounds on shares count only these.
#[derive(Debug, Clone, Copy)]
struct Independent(f64);

impl Independent {
    /// Share from which on all samples count as independent, because of the scatter of the estimate.
    const ALL: f64 = 0.8;

    fn of(m: &Measurement) -> Independent {
        let share = m.tested.map_or(1.0, |tested| tested.independent);
        Independent(if share < Independent::ALL { share } else { 1.0 })
    }

    /// Number of independent samples of `n`, rounded down.
    fn number(self, n: u64) -> u64 {
        if self.0 < 1.0 { (n as f64 * self.0) as u64 } else { n }
    }

    /// Number of independent samples of `k` above a limit, rounded up: at least 1 unless `k` is 0.
    fn above(self, k: u64) -> u64 {
        if self.0 < 1.0 { (k as f64 * self.0).ceil() as u64 } else { k }
    }

    fn prove_at_most(self, k: u64, n: u64, share: f64) -> bool {
        proves_at_most(self.above(k), self.number(n), share)
    }

    fn prove_more(self, k: u64, n: u64, share: f64) -> bool {
        proves_more(self.number(k), self.number(n), share)
    }

    /// Number of further samples, none of them above the limit, that would prove that at most a share is above it.
    fn wanting(self, k: u64, n: u64, share: f64) -> u64 {
        let needed = samples_needed(self.above(k), share) as f64 / self.0;
        (needed.ceil() as u64).saturating_sub(n)
    }

    /// ` (12,000 of them are independent: the others are of the same bouts, or of threads that share a CPU)`.
    fn words(self, n: u64) -> String {
        if self.0 >= 1.0 {
            return String::new();
        }
        format!(
            " (as {} independent ones: the others are of the same bouts, or of threads that share a CPU)",
            format_count(self.number(n))
        )
    }
}

/// Result of `max` and `threshold`: no value may be above the limit.
fn none_above(m: &Measurement, limit: f64) -> Found {
    let (histogram, lost) = (&m.histogram, Lost::of(m));
    let above = lost.added_to(Above::of(histogram, limit), limit);
    let n = histogram.count() + lost.count;
    let longest = histogram.max();
    // A lost message took longer than the timeout, and may have taken longer than all others.
    let value = longest.filter(|longest| lost.count == 0 || *longest > limit);
    if above.most == 0 {
        return Found { value, status: Status::Pass, text: confidence::none_seen(n, limit, m.tested) };
    }
    let [limit, worst] = format_apart([limit, longest.unwrap_or_default()], "ns");
    let (words, with) = (above.words(n, &limit), lost.words());
    if above.least == 0 {
        let text = format!(
            "{words}{with}: too little is known of the lost to judge; the longest other took {worst}"
        );
        return Found { value, status: Status::Inconclusive, text };
    }
    let of_replies = if lost.count > 0 { " that had a reply" } else { "" };
    let text = format!("{words}{with}; the longest{of_replies} took {worst}");
    Found { value, status: Status::Exceeded, text }
}

/// Result of a quantile criterion: at most the quantile's share may be above the limit, in the distribution with the
/// missed activations if there is one. The values of the bucket around the limit count against either verdict.
fn few_above(m: &Measurement, quantile: Quantile, limit: f64) -> Found {
    let (histogram, missed) = match &m.corrected {
        Some(corrected) => (corrected, m.summary.missed),
        None => (&m.histogram, 0),
    };
    let lost = Lost::of(m);
    let (n, share, independent) = (histogram.count() + lost.count, quantile.above, Independent::of(m));
    let timed = Above::of(histogram, limit);
    let unsure = timed.unsure();
    let above = lost.added_to(timed, limit);
    let allowed = format_share(share);
    let value = histogram.tail_quantile(1.0 - share).filter(|_| share < 0.5);
    let value = value.or_else(|| histogram.quantile(0.5).filter(|_| share == 0.5));
    // A quantile of the messages with a reply is not one of all messages.
    let value = value.filter(|_| lost.count == 0);
    let seen = above.words(n, &format_time(limit)) + unsure + &lost.words() + &independent.words(n);
    let bounds = |k: u64| share_bounds(k, independent.number(n));
    let (status, text) = if independent.prove_at_most(above.most, n, share) {
        let bound = format_share(bounds(independent.above(above.most)).high);
        let condition = confidence::condition(m.tested);
        let text =
            format!("{seen}: at most {bound} are {condition}, with 95 % confidence, and {allowed} may be");
        (Status::Pass, text)
    } else if independent.prove_more(above.least, n, share) {
        let bound = format_share(bounds(independent.number(above.least)).low);
        let text = format!("{seen}: at least {bound} are, with 95 % confidence, and {allowed} may be");
        (Status::Exceeded, text)
    } else {
        let needed = format_count(independent.wanting(above.most, n, share));
        let text = format!(
            "{seen}, where {allowed} may be: too few to judge. It takes {needed} more, none of them above"
        );
        (Status::Inconclusive, text)
    };
    let text = match missed {
        0 => text,
        missed => format!("{text} (with the {})", counted(missed, "missed activation")),
    };
    Found { value, status, text }
}
