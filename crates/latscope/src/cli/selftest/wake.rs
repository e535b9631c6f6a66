//! A thread of the highest priority steals known times from the measured CPU:
//! the report must find each preemption, its length, and the CPU hog.

use super::{Verdict, measured};
use crate::cli::measure::CalibratedMachine;
use anyhow::{Context, Result};
use latscope_core::machine::Machine;
use latscope_core::plan::{OnThreshold, Periodic, Plan};
use latscope_core::report::{Cause, Outlier, Report};
use latscope_core::units::{format_share, format_time};
use latscope_engine::observers::{Observer, RunEvent};
use latscope_engine::planner::{self, RunRequest};
use latscope_probes::PlanInput;
use latscope_probes::wake::setup::WakeStepSetup;
use latscope_probes::wake::thread::WakeThreadSettings;
use latscope_probes::wake::timer;
use latscope_process::cpu_hog::{self, CpuHog, CpuHogOrders, NAME, Preemption};

const PREEMPTIONS: u32 = 20;

/// Length of a preemption: many intervals, so that where in one it begins matters little.
const LENGTH: u64 = 5_000_000;

const PAUSE: u64 = 100_000_000;

const INTERVAL: u64 = 200_000;

/// Largest difference of the length found from that of the hog's own stamps, a share.
const ERROR: f64 = 0.1;

/// Measures beside a CPU hog, and judges.
///
/// # Errors
/// No worker or CPU hog can be started, or SCHED_FIFO was refused to the hog.
pub fn verdicts(plan: Plan, environment: CalibratedMachine) -> Result<Vec<Verdict>> {
    let cpu = plan.steps[0].cpus[0];
    let orders = CpuHogOrders { cpu, preemptions: PREEMPTIONS, pause: PAUSE, length: LENGTH };
    let mut starter = HogStarter { cpu_hog: cpu_hog::start()?, orders, begun: Ok(()) };
    let process = starter.cpu_hog.process();
    let report = measured(plan, environment, vec![&mut starter])?;
    starter.begun?;
    let preemptions = starter.cpu_hog.preemptions()?;
    Ok(judge(&report, &preemptions, process))
}

/// Lets the hog begin with the measuring threads, which a slow machine takes long to set up.
struct HogStarter {
    cpu_hog: CpuHog,
    orders: CpuHogOrders,
    begun: Result<()>,
}

impl Observer for HogStarter {
    fn observe(&mut self, event: &RunEvent) {
        if matches!(event, RunEvent::Point { .. }) {
            self.begun = self.cpu_hog.begin(self.orders);
        }
    }
}

/// A thread on the last CPU.
///
/// # Errors
/// No CPU may be used.
pub fn plan(machine: &Machine) -> Result<Plan> {
    let cpu = *machine.allowed.0.last().context("no CPU may be used")?;
    let setup = WakeStepSetup {
        threads: vec![WakeThreadSettings { interval: INTERVAL, ..timer::usual(0, Some(cpu)) }],
        periodic: Periodic { threshold: Some(LENGTH / 2), ..timer::usual_rules() },
        count: u64::MAX,
        duration: u64::from(PREEMPTIONS + 3) * (PAUSE + LENGTH),
        conditions: timer::usual_conditions(),
        seed: 1,
    };
    let on_threshold = Some(OnThreshold { blame: true, ..OnThreshold::default() });
    let request = RunRequest { on_threshold, ..RunRequest::new("selftest", PlanInput::default()) };
    Ok(planner::of_steps(vec![setup.step()], &request, machine))
}

fn judge(report: &Report, preemptions: &[Preemption], process: u32) -> Vec<Verdict> {
    let outliers: Vec<&Outlier> = report.of_probe(timer::TIMER.id).flat_map(|m| &m.outliers).collect();
    let epoch = epoch(report).unwrap_or(0);
    let found: Vec<(&Preemption, Option<&&Outlier>)> = preemptions
        .iter()
        .map(|preemption| {
            let overlapping = outliers.iter().filter(|outlier| overlap(outlier, epoch, preemption) > 0);
            (preemption, overlapping.max_by_key(|outlier| overlap(outlier, epoch, preemption)))
        })
        .collect();
    let close = |(preemption, outlier): &&(&Preemption, Option<&&Outlier>)| {
        let length = (preemption.until - preemption.from) as f64;
        outlier.is_some_and(|outlier| (stolen(outlier) as f64 / length - 1.0).abs() <= ERROR)
    };
    let named = |(_, outlier): &&(&Preemption, Option<&&Outlier>)| {
        let first = outlier.and_then(|outlier| outlier.cause.first());
        first.is_some_and(|cause| cause.kind == "thread" && cause.name == NAME && cause.pid == process)
    };
    let all = preemptions.len();
    let verdict = |count: usize, text: String| Verdict { holds: all > 0 && count == all, text };
    let number = found.iter().filter(|(_, outlier)| outlier.is_some()).count();
    let (lengths, names) = (found.iter().filter(close).count(), found.iter().filter(named).count());
    let stamped: u64 = preemptions.iter().map(|preemption| preemption.until - preemption.from).sum();
    let [length, stamped] = [LENGTH, stamped].map(|ns| format_time(ns as f64));
    let found = format!("of {all} injected preemptions of {length} each, {number} are found");
    let within = format_share(ERROR);
    let close =
        format!("{lengths} of them with their length within {within}; the CPU hog stamped {stamped} in all");
    let named = format!("{names} of them with thread {NAME} ({process}) as what took most of the time");
    vec![verdict(number, found), verdict(lengths, close), verdict(names, named)]
}

/// The time of an outlier that the report attributes to the hog: its own, the
/// hypervisor's while it ran, and that of interrupts, which the hog's stamps
/// have in them too. What came after the hog is not its doing.
fn stolen(outlier: &Outlier) -> u64 {
    let of_cpu_hog = |cause: &&Cause| {
        cause.name.contains(NAME) || matches!(cause.kind.as_str(), "irq" | "softirq" | "nmi")
    };
    outlier.cause.iter().filter(of_cpu_hog).map(|cause| cause.ns).sum()
}

/// `CLOCK_MONOTONIC` at the epoch of the run: an exceedance has the one time, its outlier the other.
fn epoch(report: &Report) -> Option<u64> {
    report.of_probe(timer::TIMER.id).find_map(|m| {
        let exceedances = &m.recordings.as_ref()?.exceedances;
        // Not every outlier is among the exceedances that are kept.
        m.outliers.iter().find_map(|outlier| {
            let same = exceedances.iter().find(|exceedance| exceedance.value == outlier.value)?;
            same.at.checked_sub(outlier.at)
        })
    })
}

/// Time that an outlier shares with a preemption, ns. Other outliers may touch it at its ends.
fn overlap(outlier: &Outlier, epoch: u64, preemption: &Preemption) -> u64 {
    let until = epoch + outlier.at;
    let from = until.saturating_sub(outlier.value);
    until.min(preemption.until).saturating_sub(from.max(preemption.from))
}
