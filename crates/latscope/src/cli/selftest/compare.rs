//! Comparisons of runs of one thing give no alarm, and a loop that is longer by a known share is found.

use super::{Verdict, measure_plan};
use crate::cli::measure::CalibratedMachine;
use anyhow::{Context, Result};
use latscope_core::machine::Machine;
use latscope_core::plan::{ParamValue, Plan};
use latscope_core::report::{Measurement, Report};
use latscope_core::rounds;
use latscope_core::statistics::SplitMix;
use latscope_core::units::{format_percent, format_share};
use latscope_engine::planner::{self, RunRequest};
use latscope_judge::binomial::share_bounds;
use latscope_judge::compare::{self, Levels, verdicts as judged};
use latscope_probes::selftest::{self, COPIES, LONGER};
use latscope_probes::{PlanInput, REGISTRY};

/// Runs measured: nine a side.
const RUNS: usize = 18;

/// Number of rounds of each run.
const ROUNDS: u32 = 4;

/// Random ways to make two sides of the runs.
const SPLITS: u64 = 200;

/// Difference below which two figures are the same, a share.
const MARGIN: f64 = 0.05;

/// The share that may be wrong.
const WRONG: f64 = 0.05;

pub fn comparison_plan(machine: &Machine) -> Plan {
    let request = RunRequest::new("selftest compare", PlanInput::default());
    planner::plan_probes(&REGISTRY, selftest::COMPARING, &request, machine).in_rounds(ROUNDS)
}

/// Measures the runs, and compares halves of them.
///
/// # Errors
/// No worker can be started, or a run was interrupted.
pub fn measure_and_judge(plan: &Plan) -> Result<Vec<Verdict>> {
    let run = |_| measure_plan(plan.clone(), CalibratedMachine::detect_machine(), Vec::new());
    let runs: Vec<Loops> =
        (0..RUNS).map(run).map(|report| Loops::from_report(&report?)).collect::<Result<_>>()?;
    let mut found = vec![no_alarm(&runs)];
    for percent in LONGER.into_iter().filter(|percent| *percent > 0) {
        let factor = 1.0 + percent as f64 / 100.0;
        let samples = |run: &Loops, copy| run.round_medians(0, copy).iter().map(|ns| ns * factor).collect();
        found.push(power(&runs, percent, "samples multiplied", &samples));
        found.push(power(&runs, percent, "a longer loop", &|run, copy| {
            run.round_medians(percent, copy).to_vec()
        }));
    }
    Ok(found)
}

/// The medians of the rounds of all loops of a run, by the places of their share and copy.
struct Loops(Vec<Vec<Vec<f64>>>);

impl Loops {
    fn from_report(report: &Report) -> Result<Loops> {
        let figures = |percent: u64, copy: u64| {
            let mut points = report.of_probe(selftest::SLOWER.id);
            let m =
                points.find(|m| has_param_value(m, "percent", percent) && has_param_value(m, "copy", copy));
            let figures = m.map(|m| rounds::round_figures(&m.rounds)).filter(|figures| !figures.is_empty());
            figures.context("selftest.slower was not measured")
        };
        let copies = |percent| (0..COPIES).map(|copy| figures(percent, copy)).collect::<Result<Vec<_>>>();
        Ok(Loops(LONGER.into_iter().map(copies).collect::<Result<_>>()?))
    }

    fn round_medians(&self, percent: u64, copy: u64) -> &[f64] {
        let place = LONGER.iter().position(|longer| *longer == percent).unwrap_or(0);
        &self.0[place][copy as usize]
    }
}

fn has_param_value(m: &Measurement, name: &str, wanted: u64) -> bool {
    m.params.get(name) == Some(&ParamValue::Number(wanted))
}

/// Two sides of half of the runs each, at random; the same for the same number.
fn split(runs: &[Loops], number: u64) -> (Vec<&Loops>, Vec<&Loops>) {
    let mut random = SplitMix::new(number);
    let mut order: Vec<&Loops> = runs.iter().collect();
    (1..order.len()).rev().for_each(|at| order.swap(at, random.below(at as u64 + 1) as usize));
    let b = order.split_off(order.len() / 2);
    (order, b)
}

/// Compares the loops that are alike, with those of B as `of_b` gives them.
fn compare_halves(
    runs: &[Loops],
    number: u64,
    of_b: &dyn Fn(&Loops, u64) -> Vec<f64>,
) -> Vec<compare::ComparisonVerdict> {
    let (a, b) = split(runs, number);
    let of_copy = |copy: u64| -> (Levels, Levels) {
        let of_a = a.iter().map(|run| run.round_medians(0, copy).to_vec()).collect();
        (of_a, b.iter().map(|run| of_b(run, copy)).collect())
    };
    judged(&(0..COPIES).map(of_copy).collect::<Vec<_>>(), MARGIN, number)
}

/// A rate with its bounds, as if splits that share runs were independent.
fn rate(count: u64, of: u64) -> String {
    let bounds = share_bounds(count, of);
    let share = count as f64 / of as f64;
    format!("{} ({} to {})", format_share(share), format_share(bounds.low), format_share(bounds.high))
}

fn no_alarm(runs: &[Loops]) -> Verdict {
    let is_alarm = |verdict: &compare::ComparisonVerdict| {
        matches!(verdict, compare::ComparisonVerdict::Slower | compare::ComparisonVerdict::Faster)
    };
    let unchanged = |run: &Loops, copy| run.round_medians(0, copy).to_vec();
    let alarms = (0..SPLITS)
        .filter(|number| compare_halves(runs, *number, &unchanged).iter().any(is_alarm))
        .count() as u64;
    let text = format!(
        "A/A: of {SPLITS} random halves of {RUNS} runs, {COPIES} points each, with an alarm: {}",
        rate(alarms, SPLITS)
    );
    Verdict { holds: share_bounds(alarms, SPLITS).low <= WRONG, text }
}

/// Half of the points of B are slower. Up to the margin they must not be called so; from twice the margin on they must.
fn power(runs: &[Loops], percent: u64, how: &str, slower: &dyn Fn(&Loops, u64) -> Vec<f64>) -> Verdict {
    let half = COPIES / 2;
    let of_b =
        |run: &Loops, copy| if copy < half { slower(run, copy) } else { run.round_medians(0, copy).to_vec() };
    let called = |number| {
        let verdicts = compare_halves(runs, number, &of_b);
        verdicts[..half as usize]
            .iter()
            .filter(|verdict| **verdict == compare::ComparisonVerdict::Slower)
            .count() as u64
    };
    let (found, of) = ((0..SPLITS).map(called).sum(), SPLITS * half);
    let bounds = share_bounds(found, of);
    let is_more = percent as f64 / 100.0 > MARGIN;
    let holds = if is_more { bounds.high >= 1.0 - WRONG } else { bounds.low <= WRONG };
    let expected = if is_more { "more than" } else { "not more than" };
    let text = format!(
        "+{} by {how} ({expected} the margin of {}): called slower in {}",
        format_percent(percent as f64),
        format_share(MARGIN),
        rate(found, of)
    );
    Verdict { holds, text }
}
