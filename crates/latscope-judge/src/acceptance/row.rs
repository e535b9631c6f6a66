//! Row of a record: one measurement of one run, how it was made, and what was found.

use super::{AcceptanceRun, HashedFile};
use crate::verdict::events_above;
use latscope_core::param;
use latscope_core::plan::{MeasuringThreadPolicy, ParamValue, PlanStep};
use latscope_core::quality::{POLICY_REFUSED, QualityLevel};
use latscope_core::report::{
    Account, Cause, CriterionCheck, Measurement, Outlier, Report, Verdict, VerdictStatus,
};
use latscope_core::units::{CpuList, count_with_noun, format_count, format_share, format_span, format_time};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Verdict on one measurement of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AcceptanceRow {
    /// Name of the measurement.
    pub measurement: String,
    /// Name of the load; empty without one.
    pub load: String,
    /// Name of the arm.
    pub arm: String,
    /// Title of the measurement for a reader, with the parameters in which measurements of that title differ.
    pub title: String,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// End of the run, RFC 3339.
    pub finished: Option<String>,
    /// Interval of the activations, ns; `None` where there is none.
    pub interval_ns: Option<u64>,
    /// Scheduling policy and priority of the measuring threads: `SCHED_FIFO 95`.
    pub policy: String,
    /// CPUs of the measuring threads: `0-1`.
    pub cpus: String,
    /// Limits that were asked for: `max 100 µs`.
    pub limits: Vec<String>,
    /// File of the result.
    pub file: HashedFile,
    /// Events, with the activations that were missed.
    pub events: u64,
    /// Activations among the events that were missed; of calls with a deadline those that took longer.
    pub missed: u64,
    /// Time in which an event would have been seen, ns.
    pub time_ns: Option<u64>,
    /// Quantiles of the distribution that has the missed activations, ns: the median, p99, p99.9, p99.99.
    pub quantiles: [Option<f64>; 4],
    /// Largest value of the measurement, ns.
    pub max: Option<f64>,
    /// Limit of `above`, ns: that of `max`, otherwise the first of a quantile.
    pub limit_ns: Option<f64>,
    /// Events above that limit, and how many there are, both with the activations that were missed.
    pub above: Option<(u64, u64)>,
    /// Verdict on the measurement.
    pub status: Option<VerdictStatus>,
    /// Each criterion with its result, which names the tested quantity.
    pub checks: Vec<String>,
    /// Causes that took the time of the traced events, the largest first.
    pub causes: Vec<String>,
    /// Longest events that were kept, each with its causes, and how many are not among them.
    pub stalls: Vec<String>,
    /// Conditions that distort the measurement.
    pub doubts: Vec<String>,
    /// Account of the processes that used the CPU time.
    pub account: Option<Account>,
}

/// Returns the row of a measurement.
pub(super) fn acceptance_row(
    run: &AcceptanceRun,
    m: &Measurement,
    verdict: &Verdict,
    title: String,
) -> AcceptanceRow {
    let report = run.report;
    let step = step_of(report, m);
    let figures = m.summary_with_missed();
    let limit = main_limit(m, verdict);
    let above = limit.and_then(|limit| events_above(m, limit));
    AcceptanceRow {
        measurement: run.measurement.to_owned(),
        load: run.load.to_owned(),
        arm: run.arm.to_owned(),
        title,
        started: report.started.clone(),
        finished: report.finished.clone(),
        interval_ns: m.numeric_param(param::INTERVAL).or_else(|| m.numeric_param(param::PACE)),
        policy: policy(m, step),
        cpus: step
            .map_or_else(|| report.plan.cpus.to_string(), |step| CpuList(step.cpus.clone()).to_string()),
        limits: verdict.checks.iter().filter(|check| !is_repeated(check, verdict)).map(limit_words).collect(),
        file: run.file.clone(),
        events: figures.count,
        missed: m.summary.missed.saturating_sub(untimed(m)),
        time_ns: m.tested.map(|tested| tested.time_ns),
        quantiles: [figures.p50, figures.p99, figures.p99_9, figures.p99_99],
        max: figures.max,
        limit_ns: limit,
        above,
        status: Some(verdict.status),
        checks: verdict
            .checks
            .iter()
            .filter(|check| !is_repeated(check, verdict))
            .map(format_check)
            .collect(),
        causes: causes(m),
        stalls: stalls(m, limit, above.map_or(0, |(above, _)| above)),
        doubts: doubts(m),
        account: m.account.clone().or_else(|| report.activity.clone()),
    }
}

/// Step of the plan that measured a point, or the parts of a sum.
fn step_of<'a>(report: &'a Report, m: &Measurement) -> Option<&'a PlanStep> {
    let steps = &report.plan.steps;
    let has = |step: &&PlanStep| step.points.iter().any(|point| point.probe == m.probe);
    steps.iter().find(has).or_else(|| steps.first().filter(|_| steps.len() == 1))
}

/// Returns true if what was missed are events that took longer than their deadline: every figure has them.
pub(super) fn misses_are_events(m: &Measurement) -> bool {
    m.params.contains_key(param::DEADLINE) && m.corrected.is_none()
}

/// Missed activations that no figure has: nothing tells how late they would have been.
fn untimed(m: &Measurement) -> u64 {
    let timed = m.with_missed().count().saturating_sub(m.histogram.count());
    if misses_are_events(m) { 0 } else { m.summary.missed.saturating_sub(timed) }
}

/// Policy of the measuring threads, or of the caller of a transaction: that of the point, otherwise that of its step.
fn policy(m: &Measurement, step: Option<&PlanStep>) -> String {
    let of_point =
        m.params.get(param::POLICY).or_else(|| m.params.get(param::CALLER)).map(ParamValue::to_string);
    let named = |name: &str| format!("SCHED_{}", name.to_uppercase());
    let words = match (of_point, m.numeric_param(param::PRIORITY), step.map(|step| step.policy)) {
        (Some(name), Some(priority), _) if priority > 0 => format!("{} {priority}", named(&name)),
        (Some(name), _, _) => named(&name),
        (None, _, Some(MeasuringThreadPolicy::Fifo(priority))) => format!("SCHED_FIFO {priority}"),
        (None, _, Some(MeasuringThreadPolicy::Other)) => named("other"),
        (None, _, None) => String::new(),
    };
    let is_refused = m.quality.reasons.iter().any(|reason| reason.id == POLICY_REFUSED);
    if is_refused { format!("{words} refused") } else { words }
}

/// The limit of `max` or of the threshold, otherwise the first of a quantile.
fn main_limit(m: &Measurement, verdict: &Verdict) -> Option<f64> {
    let durations = || verdict.checks.iter().filter(|check| check.above.is_some());
    let is_max = |check: &&CriterionCheck| ["max", "threshold"].contains(&check.metric.as_str());
    let check = durations().find(is_max).or_else(|| durations().next());
    check.filter(|_| m.summary.count > 0).map(|check| check.limit)
}

/// Returns true for a threshold that is the limit of `max`: a plan traces from there.
fn is_repeated(check: &CriterionCheck, verdict: &Verdict) -> bool {
    let is_max =
        |other: &CriterionCheck| other.metric == "max" && other.limit.total_cmp(&check.limit).is_eq();
    check.metric == "threshold" && verdict.checks.iter().any(is_max)
}

fn metric(check: &CriterionCheck) -> String {
    check.metric.replace('_', ".")
}

fn limit_words(check: &CriterionCheck) -> String {
    let limit = if check.above.is_some() { format_time(check.limit) } else { check.limit.to_string() };
    format!("{} {limit}", metric(check))
}

fn format_check(check: &CriterionCheck) -> String {
    format!("{}: {}", metric(check), check.text)
}

/// Causes of the events that were traced, by the time that each took of them.
fn causes(m: &Measurement) -> Vec<String> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for cause in m.outliers.iter().filter(|outlier| outlier.is_traced()).flat_map(|outlier| &outlier.cause) {
        *sums.entry(cause_name(cause)).or_default() += cause.ns;
    }
    let all = sums.values().sum::<u64>();
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    sums.into_iter().take(3).map(|(name, ns)| format!("{name} {}", format_time_share(ns, all))).collect()
}

fn cause_name(cause: &Cause) -> String {
    format!("{} {}", cause.kind, cause.name).trim_end().to_owned()
}

fn format_time_share(ns: u64, of: u64) -> String {
    format_share((ns as f64 / of.max(1) as f64 * 1e3).round() / 1e3)
}

/// Most events of a row that are listed with their causes.
const LISTED: usize = 10;

/// The longest events with their causes, and of how many nothing is said.
fn stalls(m: &Measurement, limit: Option<f64>, above: u64) -> Vec<String> {
    let is_above = |outlier: &&Outlier| limit.is_none_or(|limit| outlier.value as f64 > limit);
    let mut longest: Vec<&Outlier> = m.outliers.iter().filter(is_above).collect();
    longest.sort_by_key(|outlier| std::cmp::Reverse(outlier.value));
    longest.truncate(LISTED);
    let mut lines: Vec<String> = longest.iter().map(|outlier| stall(outlier)).collect();
    let rest = above.saturating_sub(lines.len() as u64);
    let of_rest = match (rest, lines.is_empty()) {
        (0, _) => None,
        (_, true) => Some(format!(
            "{} above the limit, none of them traced: the cause is unknown",
            count_with_noun(above, "event")
        )),
        (_, false) => {
            Some(format!("and {} more above the limit, the missed ones included", format_count(rest)))
        }
    };
    lines.extend(of_rest);
    lines
}

/// `3.41 ms on CPU 1, 20 s after the start: thread stress-ng-cpu (pid 4211) 83 %, irq virtio0-input.0 12 %`.
fn stall(outlier: &Outlier) -> String {
    let pid = |cause: &Cause| if cause.pid > 0 { format!(" (pid {})", cause.pid) } else { String::new() };
    let cause = |cause: &Cause| {
        format!("{}{} {}", cause_name(cause), pid(cause), format_time_share(cause.ns, outlier.value))
    };
    let causes: Vec<String> = outlier.cause.iter().take(3).map(cause).collect();
    let causes = if causes.is_empty() { "not traced".to_owned() } else { causes.join(", ") };
    let (value, at) = (format_time(outlier.value as f64), format_span(outlier.at as f64));
    format!("{value} on CPU {}, {at} after the start: {causes}", outlier.cpu)
}

/// What speaks against the row: the reasons against the measurement, and missed activations without a time.
fn doubts(m: &Measurement) -> Vec<String> {
    let reasons = m.quality.reasons.iter().filter(|reason| reason.level > QualityLevel::Ok);
    let mut doubts: Vec<String> = reasons.map(|reason| reason.text.clone()).collect();
    let untimed = untimed(m);
    if untimed > 0 {
        let (is, they) = if untimed == 1 { ("is", "it") } else { ("are", "they") };
        doubts.push(format!(
            "{} {is} in no figure of this row: it is unknown how late {they} would have been",
            count_with_noun(untimed, "missed activation")
        ));
    }
    doubts
}
