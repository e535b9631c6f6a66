//! Nothing takes no time, an injected delay is found, and two runs of one
//! thing do not differ.

use super::{Verdict, measure_plan};
use crate::cli::measure::CalibratedMachine;
use anyhow::{Context, Result};
use latscope_core::machine::Machine;
use latscope_core::plan::Plan;
use latscope_core::report::{Measurement, Report};
use latscope_core::statistics;
use latscope_core::units::{count_with_noun, format_time};
use latscope_engine::planner::{self, RunRequest};
use latscope_probes::selftest::{self, DELAY_NS};
use latscope_probes::{PlanInput, REGISTRY};

/// Measures the plan, and judges the result.
///
/// # Errors
/// No worker can be started.
pub fn measure_and_judge(plan: Plan, environment: CalibratedMachine) -> Result<Vec<Verdict>> {
    let report = measure_plan(plan, environment, Vec::new())?;
    Ok(vec![empty(&report)?, delay(&report)?, judge_equal_runs(&report)?])
}

pub fn plan(machine: &Machine) -> Plan {
    let request = RunRequest::new("selftest", PlanInput::default());
    planner::plan_probes(&REGISTRY, selftest::MEASURING, &request, machine)
}

fn find_measurement<'a>(report: &'a Report, probe: &'a str) -> Result<&'a Measurement> {
    report.of_probe(probe).find(|m| m.summary.count > 0).with_context(|| format!("{probe} was not measured"))
}

/// Nothing takes no time, within the clock's resolution and the rounding to ns.
fn empty(report: &Report) -> Result<Verdict> {
    let m = find_measurement(report, selftest::EMPTY.id)?;
    let (ns, allowed) = (m.summary.p50.unwrap_or(f64::MAX), report.machine.clock.resolution_ns + 1.0);
    let text = format!("nothing takes {} (at most {} may be left)", format_time(ns), format_time(allowed));
    Ok(Verdict { holds: ns <= allowed, text })
}

/// Each injected delay is found, and together they are as long as they were.
fn delay(report: &Report) -> Result<Verdict> {
    let m = find_measurement(report, selftest::DELAY.id)?;
    let value = |name: &str| m.values.get(name).map_or(f64::NAN, |value| value.value);
    let (injected, injected_ns) = (value("injected"), value("injected-ns"));
    let long = m.histogram.buckets_ns().filter(|(_, high, _)| *high >= DELAY_NS as f64 * 0.99);
    let (found, found_ns) = long.fold((0.0, 0.0), |(count, sum), (low, high, n)| {
        (count + n as f64, sum + (low + high) / 2.0 * n as f64)
    });
    // A disturbance of the machine may be found beside them, never one delay less.
    let holds = injected > 0.0
        && found >= injected
        && found <= injected * 1.1
        && (found_ns / injected_ns - 1.0).abs() < 0.1;
    let text = format!(
        "of {injected:.0} delays of {} injected, {found:.0} are found; together {} of {}",
        format_time(DELAY_NS as f64),
        format_time(found_ns),
        format_time(injected_ns)
    );
    Ok(Verdict { holds, text })
}

/// Two runs of one thing do not differ: the interval of their ratio holds 1,
/// or lies within 2 % of it.
fn judge_equal_runs(report: &Report) -> Result<Verdict> {
    let medians = |run: &'static str| {
        let of_run = report.of_probe(selftest::SAME.id).filter(move |m| m.has_param_value("run", run));
        of_run.filter_map(|m| m.summary.p50).collect::<Vec<_>>()
    };
    let pairs: Vec<(f64, f64)> = medians("a").into_iter().zip(medians("b")).collect();
    let (ratio, interval) =
        statistics::ratio_of_medians(&pairs, 1).context("selftest.same was not measured")?;
    let holds = interval.contains(1.0) || (interval.low > 0.98 && interval.high < 1.02);
    let ratios = || pairs.iter().map(|(a, b)| a / b);
    let text = format!(
        "the same operation twice, in {}: medians of the two differ by a ratio of {:.4} to {:.4}; the median of these \
         ratios is {ratio:.4}, 95 % interval {:.4} to {:.4}",
        count_with_noun(pairs.len() as u64, "pair"),
        ratios().fold(f64::MAX, f64::min),
        ratios().fold(0.0, f64::max),
        interval.low,
        interval.high
    );
    Ok(Verdict { holds, text })
}
