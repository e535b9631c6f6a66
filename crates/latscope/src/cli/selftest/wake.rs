//! A thread of the highest priority steals known times from the measured CPU:
//! the report must find each preemption, its length, and the CPU hog.

use super::{Verdict, measure_plan};
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
use latscope_views::groups;

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
pub fn measure_and_judge(plan: Plan, environment: CalibratedMachine) -> Result<Vec<Verdict>> {
    let cpu = plan.steps[0].cpus[0];
    let orders = CpuHogOrders { cpu, preemptions: PREEMPTIONS, pause: PAUSE, length: LENGTH };
    let mut starter = HogStarter { cpu_hog: cpu_hog::start_cpu_hog()?, orders, begun: Ok(()) };
    let process = starter.cpu_hog.process();
    let report = measure_plan(plan, environment, vec![&mut starter])?;
    starter.begun?;
    let preemptions = starter.cpu_hog.preemptions()?;
    Ok(judge_preemptions(&report, &preemptions, process))
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
            self.begun = self.cpu_hog.send_orders(self.orders);
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
        threads: vec![WakeThreadSettings { interval: INTERVAL, ..timer::usual_thread(0, Some(cpu)) }],
        periodic: Periodic { threshold: Some(LENGTH / 2), ..timer::usual_rules() },
        count: u64::MAX,
        duration: u64::from(PREEMPTIONS + 3) * (PAUSE + LENGTH),
        conditions: timer::usual_conditions(),
        seed: 1,
    };
    let on_threshold = Some(OnThreshold { blame: true, ..OnThreshold::default() });
    let request = RunRequest { on_threshold, ..RunRequest::new("selftest", PlanInput::default()) };
    Ok(planner::of_steps(vec![setup.plan_step()], &request, machine))
}

/// A preemption with the outlier that shares most of its time.
type FoundPreemption<'a> = (&'a Preemption, Option<&'a Outlier>);

fn judge_preemptions(report: &Report, preemptions: &[Preemption], process: u32) -> Vec<Verdict> {
    let outliers: Vec<&Outlier> = report.of_probe(timer::TIMER.id).flat_map(|m| &m.outliers).collect();
    let epoch = epoch(report).unwrap_or(0);
    let with_outlier = |preemption| {
        let overlapping = outliers.iter().filter(|outlier| overlap(outlier, epoch, preemption) > 0);
        (preemption, overlapping.max_by_key(|outlier| overlap(outlier, epoch, preemption)).copied())
    };
    let found: Vec<FoundPreemption> = preemptions.iter().map(with_outlier).collect();
    let stamped = format_time(preemptions.iter().map(preemption_length).sum::<u64>() as f64);
    let (all, each, within) = (found.len(), format_time(LENGTH as f64), format_share(ERROR));
    let number_found = |number| format!("of {all} injected preemptions of {each} each, {number} are found");
    let number_close = |number| {
        format!("{number} of them with their length within {within}; the CPU hog stamped {stamped} in all")
    };
    let number_named =
        |number| format!("{number} of them with thread {NAME} ({process}) as the one that took the time");
    vec![
        preemption_verdict(&found, |(_, outlier)| outlier.is_some(), number_found),
        preemption_verdict(&found, is_close, number_close),
        preemption_verdict(&found, |found| is_named(found, epoch, process), number_named),
    ]
}

/// Verdict on all preemptions. Its text has how the report explains those for which it does not hold.
fn preemption_verdict(
    found: &[FoundPreemption],
    holds: impl Fn(&FoundPreemption) -> bool,
    text: impl Fn(usize) -> String,
) -> Verdict {
    let others: Vec<&FoundPreemption> = found.iter().filter(|found| !holds(found)).collect();
    let mut text = text(found.len() - others.len());
    for (preemption, outlier) in &others {
        let causes = outlier.map_or_else(|| "not found".to_owned(), groups::causes);
        text += &format!("; one of {}: {causes}", format_time(preemption_length(preemption) as f64));
    }
    Verdict { holds: !found.is_empty() && others.is_empty(), text }
}

fn preemption_length(preemption: &Preemption) -> u64 {
    preemption.until - preemption.from
}

fn is_close((preemption, outlier): &FoundPreemption) -> bool {
    let length = preemption_length(preemption) as f64;
    outlier.is_some_and(|outlier| (stolen(outlier) as f64 / length - 1.0).abs() <= ERROR)
}

/// Returns true if the time of a preemption is put down to the hog, by its name, and no other thread took more.
fn is_named((preemption, outlier): &FoundPreemption, epoch: u64, process: u32) -> bool {
    let Some(outlier) = outlier else { return false };
    let shared = overlap(outlier, epoch, preemption) as f64;
    let first = outlier.cause.iter().find(|cause| cause.kind == "thread");
    let is_cpu_hog = first.is_some_and(|cause| cause.name == NAME && cause.pid == process);
    is_cpu_hog && time_of(outlier, names_cpu_hog) as f64 >= (1.0 - ERROR) * shared
}

/// The time of an outlier that the report attributes to the hog: its own, the
/// hypervisor's while it ran, and that of interrupts, which the hog's stamps
/// have in them too. What came after the hog is not its doing.
fn stolen(outlier: &Outlier) -> u64 {
    time_of(outlier, |cause| names_cpu_hog(cause) || matches!(cause.kind.as_str(), "irq" | "softirq" | "nmi"))
}

/// Returns true for time of the hog, and of the hypervisor while it ran.
fn names_cpu_hog(cause: &Cause) -> bool {
    cause.name.contains(NAME)
}

fn time_of(outlier: &Outlier, is_meant: impl Fn(&Cause) -> bool) -> u64 {
    outlier.cause.iter().filter(|cause| is_meant(cause)).map(|cause| cause.ns).sum()
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
