//! State of the criteria while a run lasts: checked several times a second, judged as the result is in the end.

use latscope_core::plan::{Plan, PlanStep};
use latscope_core::report::{CriterionCheck, Report, VerdictStatus};
use latscope_core::units::{format_count, format_share};
use latscope_judge::verdict::{Metric, MetricCriterion, judged_measurements, limit_in_words};
use std::time::Duration;

/// State of a criterion over all measurements that it judges.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Criterion that this is the state of.
    pub criterion: MetricCriterion,
    /// True if the events so far exceed it.
    pub exceeded: bool,
    /// True if the criterion holds for the events so far; `None` if there are no events yet, or too few.
    pub holds: Option<bool>,
    /// Events above the limit of a duration, and how many there are.
    pub above: Option<(u64, u64)>,
    /// Value so far, for a criterion on a number.
    pub value: Option<f64>,
    /// Time at which the criterion was first seen not to hold, ns after the start of the run.
    pub first: Option<u64>,
}

impl Standing {
    /// `✘ max 100 µs: 16 above, first at 0:02`.
    pub fn status_line(&self) -> String {
        let sign = match (self.exceeded, self.holds) {
            (true, _) => '✘',
            (false, Some(true)) => '✔',
            (false, _) => '?',
        };
        let first = match self.first {
            Some(at) if !matches!(self.criterion.metric, Metric::Quantile(_)) => {
                format!(", first at {}", clock(at))
            }
            _ => String::new(),
        };
        format!("{sign} {}: {}{first}", self.limit_text(), self.value_text())
    }

    fn limit_text(&self) -> String {
        let limit = self.criterion.limit;
        let limit = match &self.criterion.metric {
            metric if metric.is_duration() => trim_zeros(&limit_in_words(limit)),
            Metric::Share(_) => format_share(limit / 100.0),
            _ => limit.to_string(),
        };
        format!("{} {limit}", self.criterion.metric.name().replace('_', "."))
    }

    fn value_text(&self) -> String {
        match (self.above, self.value, &self.criterion.metric) {
            (Some((_, 0)), ..) | (None, None, _) => "not known yet".to_owned(),
            (Some((0, _)), ..) => "none above".to_owned(),
            (Some((above, of)), _, Metric::Quantile(_)) => {
                format!("{} above, {}", format_count(above), format_share(above as f64 / of as f64))
            }
            (Some((above, _)), ..) => format!("{} above", format_count(above)),
            (None, Some(value), Metric::Share(_)) => format_share(value / 100.0),
            (None, Some(value), _) => value.to_string(),
        }
    }
}

/// `100 µs`, not `100.0 µs`.
fn trim_zeros(time: &str) -> String {
    match time.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => time.to_owned(),
    }
}

/// An instant of the run as a clock shows it: `0:02`, `1:00:07`.
fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Looks at the criteria of a run.
#[derive(Debug)]
pub(crate) struct CriteriaMonitor {
    /// Criteria of the run.
    pub criteria: Vec<MetricCriterion>,
    /// Time at which each criterion was first seen not to hold.
    first: Vec<Option<u64>>,
    /// For each criterion: true if it was exceeded so far.
    exceeded: Vec<bool>,
}

impl CriteriaMonitor {
    pub fn for_plan(plan: &Plan) -> CriteriaMonitor {
        let criteria = MetricCriterion::of_plan(plan);
        CriteriaMonitor { first: vec![None; criteria.len()], exceeded: vec![false; criteria.len()], criteria }
    }

    /// Time between two checks of the criteria; `None` without criteria.
    pub fn period(&self, step: &PlanStep) -> Option<Duration> {
        // Hundreds of threads take time to look at, and their coordinator may share a CPU with them.
        let times = 1 + step.points.len() as u32 / 64;
        (!self.criteria.is_empty()).then(|| Duration::from_millis(200) * times)
    }

    /// Returns the state of each criterion in a judged report, `at` ns after the start, and true if a criterion is
    /// exceeded that was not exceeded before.
    pub fn check_criteria(&mut self, report: &Report, at: u64) -> (Vec<Standing>, bool) {
        let mut fresh = false;
        let standings = self.criteria.iter().enumerate().map(|(index, criterion)| {
            let checks = judged_measurements(report).filter_map(|(_, verdict)| {
                verdict.checks.get(index).filter(|check| check.metric == criterion.metric.name())
            });
            let mut standing = combine_checks(criterion, checks);
            if standing.exceeded || standing.holds == Some(false) {
                self.first[index].get_or_insert(at);
            }
            fresh |= standing.exceeded && !self.exceeded[index];
            self.exceeded[index] |= standing.exceeded;
            standing.first = self.first[index];
            standing
        });
        let standings = standings.collect();
        (standings, fresh)
    }

    /// The criteria that were exceeded, `max 100 µs and p99.9 50 µs`; `None` where none was.
    pub fn exceeded(&self) -> Option<String> {
        let exceeded = self.criteria.iter().zip(&self.exceeded).filter(|(_, exceeded)| **exceeded);
        let words: Vec<String> =
            exceeded.map(|(criterion, _)| combine_checks(criterion, [].into_iter()).limit_text()).collect();
        (!words.is_empty()).then(|| words.join(" and "))
    }
}

/// A criterion over all that was judged by it: the worst decides, events add up.
fn combine_checks<'a>(
    criterion: &MetricCriterion,
    checks: impl Iterator<Item = &'a CriterionCheck>,
) -> Standing {
    let none = Standing {
        criterion: criterion.clone(),
        exceeded: false,
        holds: None,
        above: None,
        value: None,
        first: None,
    };
    checks.fold(none, |sum, check| Standing {
        exceeded: sum.exceeded || check.status == VerdictStatus::Exceeded,
        holds: match (sum.holds, holds(criterion, check)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (known, None) | (None, known) => known,
            (Some(true), Some(true)) => Some(true),
        },
        above: match (sum.above, check.above.zip(check.of)) {
            (Some(sum), Some(more)) => Some((sum.0 + more.0, sum.1 + more.1)),
            (known, None) | (None, known) => known,
        },
        value: worse(criterion, sum.value, check.value),
        ..sum
    })
}

/// Returns true if the events so far keep to a limit, however certain that is.
fn holds(criterion: &MetricCriterion, check: &CriterionCheck) -> Option<bool> {
    match (&criterion.metric, check.above.zip(check.of)) {
        (_, Some((_, 0))) => None,
        (Metric::Quantile(quantile), Some((above, of))) => Some(above as f64 <= quantile.above * of as f64),
        (_, Some((above, _))) => Some(above == 0),
        (Metric::Share(_), None) => check.value.map(|value| value >= check.limit),
        (Metric::Value(_) | Metric::Missed, None) => {
            check.value.map(|_| check.status != VerdictStatus::Exceeded)
        }
        _ => None,
    }
}

fn worse(criterion: &MetricCriterion, a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) if matches!(criterion.metric, Metric::Share(_)) => Some(a.min(b)),
        (Some(a), Some(b)) => Some(a.max(b)),
        (known, None) | (None, known) => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_judge::verdict::judge_report;

    fn looked(criteria: &[(&str, f64)]) -> (Vec<Standing>, bool, CriteriaMonitor) {
        let mut report = fixture::wake();
        let criteria: Vec<MetricCriterion> =
            criteria.iter().map(|(name, limit)| MetricCriterion::new(name, *limit).unwrap()).collect();
        report.plan.criteria = criteria.iter().map(MetricCriterion::to_plan_criterion).collect();
        judge_report(&mut report, &criteria);
        let mut watch = CriteriaMonitor::for_plan(&report.plan);
        let (standings, fresh) = watch.check_criteria(&report, 2_900_000_000);
        let (_, again) = watch.check_criteria(&report, 5_000_000_000);
        assert!(!again, "it is exceeded for the first time once");
        (standings, fresh, watch)
    }

    #[test]
    fn each_criterion_says_how_it_stands() {
        let asked = [
            ("max", 50_000.0),
            ("p99_9", 60_000.0),
            ("missed", 3.0),
            ("max", 5e6),
            ("faults", 0.0),
            ("max", 5_300_200.0),
        ];
        let (standings, fresh, watch) = looked(&asked);
        let words: Vec<String> = standings.iter().map(Standing::status_line).collect();
        // With the three that were missed meanwhile.
        assert_eq!(words[0], "✘ max 50 µs: 5 above, first at 0:02");
        assert!(words[1].starts_with("✔ p99.9 60 µs: ") && words[1].ends_with(" %"), "{words:?}");
        assert_eq!(
            words[2..],
            ["✔ missed 3: 3", "✔ max 5 ms: none above", "✔ faults 0: 0", "✔ max 5.3002 ms: none above"]
        );
        assert_eq!((fresh, watch.exceeded().as_deref()), (true, Some("max 50 µs")));
        let (standings, fresh, watch) = looked(&[("gap", 1.0)]);
        assert_eq!(standings[0].status_line(), "? gap 1: not known yet");
        assert!(!fresh && watch.exceeded().is_none());
    }
}
