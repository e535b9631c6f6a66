//! Arms of a trial: the results of their runs, and the effect of what one arm changes.

use crate::compare::{
    ComparisonPoint, ComparisonResult, ComparisonVerdict, Contrast, TAIL_MARGIN, Undecided, WouldTell,
};
use crate::runs::{RunResult, point_id};
use crate::verdict::{report_status, subjects};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Summary, VerdictStatus};
use latscope_core::statistics::median;
use schemars::JsonSchema;
use serde::Serialize;

/// Judgement on B beside A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialVerdict {
    /// Something is faster, or reaches its tail less often, and nothing is worse.
    Helps,
    /// Something is slower, or reaches its tail more often, and nothing is better.
    Hurts,
    /// Some is better, some is worse.
    Mixed,
    /// The runs differ, but there are too few of them for a direction.
    Differs,
    /// All medians are the same, and no tail is known to differ.
    Same,
    /// The figures support no other answer.
    CannotTell,
}

/// The answer of a comparison with the counts behind it. Points that are degraded or unstable do not count.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrialArmEffect {
    /// Judgement on B as a whole.
    pub answer: TrialVerdict,
    /// Number of points compared.
    pub compared: usize,
    /// Points whose median is faster in B.
    pub faster: usize,
    /// Points whose median is slower in B.
    pub slower: usize,
    /// Points in which the runs differ without a direction.
    pub differ: usize,
    /// Points whose median is the same.
    pub same: usize,
    /// Points that are undecided.
    pub cannot_tell: usize,
    /// Tails that B reaches less often.
    pub less_often: usize,
    /// Tails that B reaches more often.
    pub more_often: usize,
    /// Tails that are undecided, or in which the runs only differ.
    pub tails_unknown: usize,
    /// Lowest and highest ratio B/A of the medians that are faster or slower.
    pub ratios: Option<[f64; 2]>,
    /// The largest advised number of runs a side, over the undecided points or tails.
    pub runs: Option<usize>,
    /// Points that so many runs would decide; tails if all medians are decided.
    pub told_by_runs: usize,
    /// The largest advised number of rounds in each run, over the undecided points or tails.
    pub rounds: Option<usize>,
    /// Points or tails that so many rounds would decide.
    pub told_by_rounds: usize,
    /// Points or tails whose ratio is nearly the margin: no number of runs within reach would decide.
    pub too_near: usize,
    /// Points or tails whose figures scatter too far for any number of runs within reach.
    pub too_wide: usize,
}

impl TrialArmEffect {
    /// Returns true if all medians are decided, so that the advice is about tails.
    pub fn told_is_of_tails(&self) -> bool {
        self.differ + self.cannot_tell == 0
    }
}

/// Further measurement that would decide an undecided figure, or the reason why nothing within reach would.
type Open = (Option<WouldTell>, Option<Undecided>);

/// The undecided medians; if all are decided, the undecided tails.
fn undecided_figures(trusted: &[&ComparisonPoint]) -> Vec<Open> {
    let points = trusted.iter().filter(|point| point.verdict.is_open());
    let points: Vec<Open> = points
        .map(|point| (point.would_tell, why_open(point.would_tell, point.p50.as_ref(), point.margin)))
        .collect();
    if !points.is_empty() {
        return points;
    }
    let tails = trusted.iter().flat_map(|point| &point.tails).filter(|tail| tail.verdict.is_open());
    tails.map(|tail| (tail.would_tell, why_open(tail.would_tell, Some(&tail.rate), TAIL_MARGIN))).collect()
}

/// The reason why nothing within reach would decide.
fn why_open(would: Option<WouldTell>, contrast: Option<&Contrast>, margin: f64) -> Option<Undecided> {
    contrast.filter(|_| would.is_none()).and_then(|contrast| Undecided::from_contrast(contrast, margin))
}

/// Judges B of a comparison beside A.
pub fn judge_effect(comparison: &ComparisonResult) -> TrialArmEffect {
    let trusted = comparison.trusted();
    let points = |verdict| trusted.iter().filter(|point| point.verdict == verdict).count();
    let tails = |verdict| comparison.counts.tail_verdicts.get(&verdict).copied().unwrap_or(0);
    let decided =
        trusted.iter().filter(|p| matches!(p.verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower));
    let ratios: Vec<f64> = decided.filter_map(|point| Some(point.p50.as_ref()?.ratio)).collect();
    let open = undecided_figures(&trusted);
    let (mut runs, mut rounds) = (Vec::new(), Vec::new());
    for would in open.iter().filter_map(|(would, _)| *would) {
        match would {
            WouldTell::Runs(number) => runs.push(number),
            WouldTell::Rounds(number) => rounds.push(number),
        }
    }
    let mut judged = TrialArmEffect {
        answer: TrialVerdict::CannotTell,
        compared: trusted.len(),
        faster: points(ComparisonVerdict::Faster),
        slower: points(ComparisonVerdict::Slower),
        differ: points(ComparisonVerdict::Differs),
        same: points(ComparisonVerdict::Same),
        cannot_tell: points(ComparisonVerdict::CannotTell),
        less_often: tails(ComparisonVerdict::Faster),
        more_often: tails(ComparisonVerdict::Slower),
        tails_unknown: tails(ComparisonVerdict::CannotTell) + tails(ComparisonVerdict::Differs),
        ratios: ratios
            .iter()
            .copied()
            .reduce(f64::min)
            .zip(ratios.iter().copied().reduce(f64::max))
            .map(Into::into),
        runs: runs.iter().copied().max(),
        told_by_runs: runs.len(),
        rounds: rounds.iter().copied().max(),
        told_by_rounds: rounds.len(),
        too_near: open.iter().filter(|(_, why)| *why == Some(Undecided::TooNear)).count(),
        too_wide: open.iter().filter(|(_, why)| *why == Some(Undecided::TooWide)).count(),
    };
    let better = judged.faster + judged.less_often > 0;
    let worse = judged.slower + judged.more_often > 0;
    judged.answer = match (better, worse) {
        (true, false) => TrialVerdict::Helps,
        (false, true) => TrialVerdict::Hurts,
        (true, true) => TrialVerdict::Mixed,
        _ if judged.differ + tails(ComparisonVerdict::Differs) > 0 => TrialVerdict::Differs,
        _ if judged.compared > 0 && judged.same == judged.compared => TrialVerdict::Same,
        _ => TrialVerdict::CannotTell,
    };
    judged
}

/// A row of a table of measurements under loads: one point over the runs of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TrialArmRow {
    /// Stable name: probe and parameters.
    pub id: String,
    /// Title of the point for a reader.
    pub title: String,
    /// True if the survey's table has a row for the point.
    pub row: bool,
    /// Runs that have it.
    pub runs: usize,
    /// The median over the runs of their medians, with the activations that were missed, ns.
    pub p50: Option<f64>,
    /// The median over the runs of their 99th percentiles, with the activations that were missed, ns.
    pub p99: Option<f64>,
    /// Largest sample of all runs, ns.
    pub max: Option<f64>,
    /// Activations that did not take place, of all runs.
    pub missed: u64,
    /// True if the medians have activations that were missed.
    #[serde(skip)]
    pub with_missed: bool,
    /// Runs that hold every criterion.
    pub held: usize,
    /// Runs that exceeded a criterion.
    pub exceeded: usize,
    /// Runs in which a criterion cannot be judged.
    pub inconclusive: usize,
    /// Runs in which the point is degraded or unstable.
    pub marked: usize,
}

/// A measurement under a load in an arm: the summary of its runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TrialArmCell {
    /// Name of the measurement.
    pub measurement: String,
    /// Name of the load; `None` where the plan has no loads.
    pub load: Option<String>,
    /// Name of the arm.
    pub arm: String,
    /// Runs that were planned.
    pub planned: usize,
    /// Runs that count: those that ended by themselves with a result.
    pub runs: usize,
    /// Reason why no run counts.
    pub why: Option<String>,
    /// Rows of the measured points.
    pub rows: Vec<TrialArmRow>,
}

/// Summary of the runs of one command, a row for each point that criteria would be [about](subjects).
pub fn rows(runs: &[&RunResult]) -> Vec<TrialArmRow> {
    let mut names: Vec<String> = Vec::new();
    let mut found: Vec<Vec<&Measurement>> = Vec::new();
    for run in runs {
        for at in subjects(&run.report) {
            let m = &run.report.measurements[at];
            let id = point_id(&m.probe, &m.params);
            match names.iter().position(|name| *name == id) {
                Some(place) => found[place].push(m),
                None => {
                    names.push(id);
                    found.push(vec![m]);
                }
            }
        }
    }
    names.into_iter().zip(&found).map(|(id, all)| row(id, all)).collect()
}

fn row(id: String, all: &[&Measurement]) -> TrialArmRow {
    // With the activations that were missed: else a stall counts once, however many instants it delayed.
    let summaries: Vec<Summary> = all.iter().map(|m| m.summary_with_missed()).collect();
    let over_runs =
        |of: fn(&Summary) -> Option<f64>| median(&summaries.iter().filter_map(of).collect::<Vec<_>>());
    let statuses = all.iter().filter_map(|m| Some(m.verdict.as_ref()?.status));
    let [held, exceeded, inconclusive] =
        [VerdictStatus::Pass, VerdictStatus::Exceeded, VerdictStatus::Inconclusive]
            .map(|status| statuses.clone().filter(|other| *other == status).count());
    let first = all.first();
    TrialArmRow {
        title: first.map(|m| m.title.clone()).filter(|title| !title.is_empty()).unwrap_or_else(|| id.clone()),
        row: first.is_some_and(|m| m.row),
        id,
        runs: all.len(),
        p50: over_runs(|summary| summary.p50),
        p99: over_runs(|summary| summary.p99),
        max: all.iter().filter_map(|m| m.summary.max).reduce(f64::max),
        with_missed: all.iter().any(|m| m.with_missed().count() > m.histogram.count()),
        missed: all.iter().fold(0u64, |sum, m| sum.saturating_add(m.summary.missed)),
        held,
        exceeded,
        inconclusive,
        marked: all.iter().filter(|m| m.quality.level > QualityLevel::Ok).count(),
    }
}

/// The worst verdict over runs; `None` if they have no criteria.
pub fn worst<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Option<VerdictStatus> {
    runs.into_iter().filter_map(|run| report_status(&run.report)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ComparisonOptions, compare_runs};
    use latscope_core::fixture;
    use latscope_core::rounds::RoundSummary;

    /// Runs of the fixture whose hand-offs take `factor` times as long.
    fn side(factor: f64) -> Vec<RunResult> {
        let run = |at: usize| {
            let mut report = fixture::report();
            report.run_id = format!("{factor}-{at}");
            for m in &mut report.measurements {
                let by = if m.probe.starts_with("sync.") { factor } else { 1.0 };
                let p50 = m.summary.p50;
                let noise = |round: usize| 1.0 + 0.001 * ((at * 7 + round * 3) % 9) as f64;
                let round = |round| RoundSummary {
                    count: 9,
                    p50: p50.map(|ns| ns * by * noise(round)),
                    ..RoundSummary::default()
                };
                m.rounds = (0..4).map(round).collect();
                m.derive_results();
            }
            RunResult::from_report(report)
        };
        (0..9).map(run).collect()
    }

    fn judged(a: &[RunResult], b: &[RunResult], only: &str) -> TrialArmEffect {
        let only = vec![only.to_owned()];
        let options = ComparisonOptions { only, ..ComparisonOptions::default() };
        judge_effect(&compare_runs(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &options))
    }

    #[test]
    fn the_answer_follows_from_the_verdicts() {
        let (normal, longer) = (side(1.0), side(1.3));
        let helps = judged(&longer, &normal, "sync");
        assert_eq!((helps.answer, helps.slower), (TrialVerdict::Helps, 0));
        assert!(helps.faster > 0 && helps.ratios.unwrap()[1] < 0.8, "{helps:?}");
        assert_eq!(judged(&normal, &longer, "sync").answer, TrialVerdict::Hurts);
        assert_eq!(judged(&normal, &side(1.0), "cpu").answer, TrialVerdict::Same);
        assert_eq!(judged(&normal, &longer, "nothing").answer, TrialVerdict::CannotTell);
        let few = judged(&normal[..1], &longer[..1], "sync");
        assert_eq!(few.answer, TrialVerdict::Differs);
        assert!(few.runs >= Some(2) && few.told_by_runs > 0, "{few:?}");
    }

    #[test]
    fn a_row_is_of_all_runs_of_an_arm() {
        let runs = side(1.0);
        let all = rows(&runs.iter().collect::<Vec<_>>());
        let mutex = all.iter().find(|row| row.id.starts_with("sync.mutex")).unwrap();
        assert_eq!((mutex.runs, mutex.held + mutex.exceeded + mutex.inconclusive), (9, 0));
        assert!(mutex.p50.is_some() && !mutex.title.is_empty());
        assert_eq!(worst(&runs), None);
    }
}
