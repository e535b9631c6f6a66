//! A thread of the highest priority steals known times from the measured CPU:
//! the report must find each theft, its length, and the thief.

use super::{Verdict, measured};
use crate::cli::measure::Ground;
use anyhow::{Context, Result};
use latscope_core::plan::{OnThreshold, Periodic, Plan};
use latscope_core::report::{Cause, Outlier, Report};
use latscope_core::units::{format_share, format_time};
use latscope_engine::runner::Run;
use latscope_host::thief::{self, NAME, Orders, Theft};
use latscope_probes::REGISTRY;
use latscope_probes::wake::setup::Setup;
use latscope_probes::wake::timer;

const THEFTS: u32 = 20;

/// Length of a theft: many intervals, so that where in one it begins matters little.
const LENGTH: u64 = 5_000_000;

const PAUSE: u64 = 100_000_000;

const INTERVAL: u64 = 200_000;

/// How far the length found may be from that of the thief's own stamps.
const ERROR: f64 = 0.1;

/// Measures beside a thief, and judges.
///
/// # Errors
/// No worker or thief can be started, or the thief was not allowed to steal.
pub fn verdicts() -> Result<Vec<Verdict>> {
    let ground = Ground::survey();
    let cpu = *ground.machine.allowed.0.last().context("no CPU may be used")?;
    let thief = thief::start(Orders { cpu, thefts: THEFTS, pause: PAUSE, length: LENGTH })?;
    let process = thief.process();
    let Ground { machine, timebase, labels } = ground;
    let plan = plan(cpu, &machine.allowed);
    let report =
        measured(Run { registry: &REGISTRY, plan, machine, timebase, labels, observers: Vec::new() })?;
    let thefts = thief.confess()?;
    Ok(judge(&report, &thefts, process))
}

fn plan(cpu: u32, allowed: &latscope_core::units::CpuList) -> Plan {
    let setup = Setup {
        threads: vec![latscope_probes::wake::thread::Thread {
            interval: INTERVAL,
            ..timer::usual(0, Some(cpu))
        }],
        periodic: Periodic { threshold: Some(LENGTH / 2), ..timer::usual_rules() },
        count: u64::MAX,
        duration: u64::from(THEFTS + 3) * (PAUSE + LENGTH),
        conditions: timer::usual_conditions(),
        seed: 1,
    };
    Plan {
        rounds: 1,
        job: "selftest".to_owned(),
        steps: vec![setup.step()],
        load: None,
        timeline: None,
        on_threshold: Some(OnThreshold { blame: true, ..OnThreshold::default() }),
        cpus: allowed.clone(),
        notes: Vec::new(),
    }
}

fn judge(report: &Report, thefts: &[Theft], process: u32) -> Vec<Verdict> {
    let outliers: Vec<&Outlier> = report.of_probe(timer::TIMER.id).flat_map(|m| &m.outliers).collect();
    let epoch = epoch(report).unwrap_or(0);
    let found: Vec<(&Theft, Option<&&Outlier>)> =
        thefts.iter().map(|theft| (theft, outliers.iter().find(|o| overlaps(o, epoch, theft)))).collect();
    let close = |(theft, outlier): &&(&Theft, Option<&&Outlier>)| {
        let length = (theft.until - theft.from) as f64;
        outlier.is_some_and(|outlier| (stolen(outlier) as f64 / length - 1.0).abs() <= ERROR)
    };
    let named = |(_, outlier): &&(&Theft, Option<&&Outlier>)| {
        let first = outlier.and_then(|outlier| outlier.cause.first());
        first.is_some_and(|cause| cause.kind == "thread" && cause.name == NAME && cause.pid == process)
    };
    let all = thefts.len();
    let verdict = |count: usize, text: String| Verdict { holds: all > 0 && count == all, text };
    let number = found.iter().filter(|(_, outlier)| outlier.is_some()).count();
    let (lengths, names) = (found.iter().filter(close).count(), found.iter().filter(named).count());
    let stamped: u64 = thefts.iter().map(|theft| theft.until - theft.from).sum();
    vec![
        verdict(
            number,
            format!("of {all} thefts of {} each, {number} are found", format_time(LENGTH as f64)),
        ),
        verdict(
            lengths,
            format!(
                "{lengths} of them with their length within {}; the thief stamped {} in all",
                format_share(ERROR),
                format_time(stamped as f64)
            ),
        ),
        verdict(
            names,
            format!("{names} of them with thread {NAME} ({process}) as what took most of the time"),
        ),
    ]
}

/// The time of an outlier that the report lays to the thief: its own, the
/// hypervisor's while it ran, and that of interrupts, which the thief's stamps
/// have in them too. What came after the thief is not its doing.
fn stolen(outlier: &Outlier) -> u64 {
    let of_thief = |cause: &&Cause| {
        cause.name.contains(NAME) || matches!(cause.kind.as_str(), "irq" | "softirq" | "nmi")
    };
    outlier.cause.iter().filter(of_thief).map(|cause| cause.ns).sum()
}

/// `CLOCK_MONOTONIC` at the epoch of the run: an exceedance has the one time, its outlier the other.
fn epoch(report: &Report) -> Option<u64> {
    report.of_probe(timer::TIMER.id).find_map(|m| {
        let outlier = m.outliers.first()?;
        let exceedances = &m.recordings.as_ref()?.exceedances;
        let same = exceedances.iter().find(|exceedance| exceedance.value == outlier.value)?;
        same.at.checked_sub(outlier.at)
    })
}

/// Whether an outlier is the one that a theft caused.
fn overlaps(outlier: &Outlier, epoch: u64, theft: &Theft) -> bool {
    let until = epoch + outlier.at;
    let from = until.saturating_sub(outlier.value);
    from < theft.until && theft.from < until
}
