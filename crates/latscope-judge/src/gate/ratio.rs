//! Limits relative to a baseline: the ratio of both sides, with its interval and a test over runs against the limit.

use super::against::other_machine;
use super::budget::{Bound, BudgetLimit, GateBudget};
use super::{GateCheck, blank, format_figure, unmatched};
use crate::compare::ranks::{FALSE_DISCOVERIES, MannWhitney, adjust_p_values, superiority};
use crate::compare::{
    self, ComparisonOptions, ComparisonPoint, ComparisonResult, Contrast, SUPERIOR, WouldTell, reach,
};
use crate::runs::RunResult;
use crate::verdict::Metric;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Better, Measurement, VerdictStatus};
use latscope_core::units::count_with_noun;
use std::collections::BTreeSet;

/// A check whose verdict depends on the number of others tested beside it.
pub(super) struct Pending {
    pub check: GateCheck,
    found: Option<BaselineRatioTest>,
}

/// A ratio against its limit, on the log scale, the worse direction up.
struct BaselineRatioTest {
    contrast: Contrast,
    /// Distance of the ratio beyond the limit, on the log scale.
    beyond: f64,
    /// Lower end of the interval of `beyond`.
    low: f64,
    high: f64,
    /// Probability that runs at the limit lie as far beyond it; `None` without several runs a side.
    p: Option<f64>,
    superior: bool,
}

impl Pending {
    /// A check whose verdict depends on no other check.
    pub(super) fn decided(check: GateCheck) -> Pending {
        Pending { check, found: None }
    }

    fn inconclusive(check: GateCheck, text: String) -> Pending {
        Pending::decided(GateCheck { text, ..check })
    }
}

/// Comparison of the runs with the baseline, restricted to the points that the budget limits.
pub(super) struct Baseline<'a> {
    runs: &'a [&'a RunResult],
    compared: Option<ComparisonResult>,
}

impl<'a> Baseline<'a> {
    pub(super) fn from_runs(
        budget: &GateBudget,
        baseline: &[&RunResult],
        runs: &'a [&'a RunResult],
    ) -> Baseline<'a> {
        let limits = budget.limits.iter().filter(|limit| limit.is_relative());
        let only: BTreeSet<String> = limits.map(|limit| limit.probe.clone()).collect();
        let options = ComparisonOptions {
            only: only.into_iter().collect(),
            accept_busy: budget.accepted.busy,
            ..ComparisonOptions::default()
        };
        let needed = !options.only.is_empty() && !baseline.is_empty();
        let compared = needed.then(|| {
            let machine = other_machine(baseline, runs).filter(|_| !budget.accepted.machine);
            let compared = compare::compare_runs(baseline, runs, &options);
            ComparisonResult { unlike: machine.or(compared.unlike.clone()), ..compared }
        });
        Baseline { runs, compared }
    }

    /// The checks of a limit on one figure.
    pub(super) fn check_limit(&self, limit: &BudgetLimit, bound: &Bound, ratio: f64) -> Vec<Pending> {
        let unmatched = unmatched(limit, bound, None, self.runs);
        let Some(compared) = &self.compared else {
            let text = "there is no baseline".to_owned();
            return vec![Pending::decided(GateCheck { text, ..unmatched })];
        };
        // Each point once, in the order in which it was measured.
        let mut seen = BTreeSet::new();
        let measured = self.runs.iter().flat_map(|run| &run.report.measurements);
        let points = measured.filter(|m| limit.is_about(m) && seen.insert((&m.probe, &m.params)));
        let checks: Vec<Pending> = points.map(|m| of_point(limit, bound, ratio, m, compared)).collect();
        if checks.is_empty() { vec![Pending::decided(unmatched)] } else { checks }
    }
}

fn of_point(
    limit: &BudgetLimit,
    bound: &Bound,
    ratio: f64,
    m: &Measurement,
    compared: &ComparisonResult,
) -> Pending {
    let check = blank(limit, bound, None, Some(m));
    let mut points = compared.points.iter();
    let Some(point) = points.find(|point| point.probe == m.probe && point.params == m.params) else {
        let id = crate::runs::point_id(&m.probe, &m.params);
        let refused = compared.refused.iter().find(|refused| refused.id == id);
        return Pending::inconclusive(
            check,
            match refused {
                Some(refused) => format!("it is not the same work: {}", refused.why),
                None => "only one side has measured it".to_owned(),
            },
        );
    };
    let (contrast, unit, at_least) = contrast(point, &bound.metric);
    let check = GateCheck { at_least, ..check };
    let Some(contrast) = contrast else {
        let text = match &point.beyond {
            Some(_) if bound.metric.name() == "p50" => {
                "a run has its median beyond its last bin: it has no ratio"
            }
            _ => "a side has no such figure, or one of 0 or beyond its last bin, which has no ratio",
        };
        return Pending::inconclusive(check, text.to_owned());
    };
    let (of_a, of_b) = (format_figure(contrast.a, &unit), format_figure(contrast.b, &unit));
    let runs = count_with_noun(contrast.runs[1] as u64, "run");
    let seen = format!("{of_b} in {runs}, and {of_a} in {} of the baseline", contrast.runs[0]);
    let check = GateCheck { value: Some(contrast.ratio), interval: contrast.interval, text: seen, ..check };
    if point.level > QualityLevel::Ok {
        let text = format!("not to be trusted ({}): {}", point.reasons.join(", "), check.text);
        return Pending::inconclusive(check, text);
    }
    if let Some(unlike) = &compared.unlike {
        let text = format!("{}; {unlike}", check.text);
        return Pending::inconclusive(check, text);
    }
    match BaselineRatioTest::from_contrast(contrast, ratio, at_least) {
        Some(found) => Pending { check, found: Some(found) },
        None => {
            let text = format!("{}; single rounds do not say how far that scatters", check.text);
            Pending::inconclusive(check, text)
        }
    }
}

/// The figure of both sides, its unit, and whether more of it is better.
fn contrast<'a>(point: &'a ComparisonPoint, metric: &Metric) -> (Option<&'a Contrast>, String, bool) {
    let quantile = match metric.name() {
        "p50" => Some(&point.p50),
        "p99" => Some(&point.p99),
        "p99_9" => Some(&point.p99_9),
        _ => None,
    };
    match (quantile, point.values.get(metric.name())) {
        (Some(quantile), _) => (quantile.as_ref(), "ns".to_owned(), false),
        (None, Some(value)) => (value.ratio.as_ref(), value.unit.clone(), value.better == Better::More),
        (None, None) => (None, String::new(), false),
    }
}

impl BaselineRatioTest {
    fn from_contrast(contrast: &Contrast, limit: f64, at_least: bool) -> Option<BaselineRatioTest> {
        let (sign, limit) = (if at_least { -1.0 } else { 1.0 }, limit.ln());
        let interval = contrast.interval?;
        let ends = [interval.low, interval.high].map(|end| sign * (end.ln() - limit));
        // The baseline moved to the limit: is B beyond that?
        let [a, b] = [(0, limit), (1, 0.0)]
            .map(|(side, by)| contrast.logs[side].iter().map(|log| sign * (log + by)).collect::<Vec<f64>>());
        let several = a.len() > 1 && b.len() > 1;
        Some(BaselineRatioTest {
            contrast: contrast.clone(),
            beyond: sign * (contrast.ratio.ln() - limit),
            low: ends[0].min(ends[1]),
            high: ends[0].max(ends[1]),
            p: several.then(|| MannWhitney::default().p(&a, &b)),
            superior: superiority(&a, &b) >= SUPERIOR,
        })
    }

    /// The verdict, its reason, and the further measurement that would decide; `p` is adjusted for the number of ratios
    /// tested.
    fn decide_verdict(
        &self,
        p: Option<f64>,
        tested: usize,
    ) -> (VerdictStatus, &'static str, Option<WouldTell>) {
        let advice = || reach(&self.contrast, self.beyond.abs(), self.beyond > 0.0, tested);
        let significant = p.is_some_and(|p| p <= FALSE_DISCOVERIES);
        match () {
            () if self.high <= 0.0 => (VerdictStatus::Pass, "the whole interval is within the limit", None),
            () if self.low <= 0.0 => {
                (VerdictStatus::Inconclusive, "the interval is on both sides of the limit", advice())
            }
            () if significant && self.superior => (
                VerdictStatus::Exceeded,
                "the whole interval is beyond the limit, and so is nearly every run",
                None,
            ),
            () if p.is_none() => (
                VerdictStatus::Inconclusive,
                match self.contrast.runs {
                    [1, 1] => "these runs are beyond the limit, and one run a side decides nothing",
                    [1, _] => "these runs are beyond the limit, and one run of the baseline decides nothing",
                    _ => "this run is beyond the limit, and one run to be judged decides nothing",
                },
                advice(),
            ),
            () if significant => (
                VerdictStatus::Inconclusive,
                "the whole interval is beyond the limit, but not nearly every run",
                advice(),
            ),
            () => (
                VerdictStatus::Inconclusive,
                "these runs are beyond the limit, but too few to be sure",
                advice(),
            ),
        }
    }
}

/// The further measurement that would decide, for the side that lacks runs.
fn further(told: WouldTell, [baseline, judged]: [usize; 2]) -> String {
    match told {
        WouldTell::Runs(needed) if baseline >= needed => format!("; {needed} runs to be judged would decide"),
        WouldTell::Runs(needed) if judged >= needed => {
            format!("; {needed} runs of the baseline would decide")
        }
        told => format!("; {told} would decide"),
    }
}

/// Gives each compared check its verdict: the tests of all checks are one family.
pub(super) fn decide_pending(pending: &mut [Pending]) {
    let ps: Vec<f64> = pending.iter().filter_map(|one| one.found.as_ref()?.p).collect();
    let mut adjusted = adjust_p_values(&ps).into_iter();
    let tested = pending.iter().filter(|one| one.found.is_some()).count();
    for Pending { check, found } in pending {
        let Some(found) = found else { continue };
        let p = found.p.and_then(|_| adjusted.next());
        let (status, why, would_tell) = found.decide_verdict(p, tested);
        let ends = check.interval.map(|range| format!(", 95 %: {:.3} to {:.3}", range.low, range.high));
        let advice = would_tell.map(|told| further(told, found.contrast.runs)).unwrap_or_default();
        check.text = format!(
            "{}: ratio {:.3}{}; {why}{advice}",
            check.text,
            found.contrast.ratio,
            ends.unwrap_or_default()
        );
        (check.status, check.would_tell) = (status, would_tell);
    }
}
