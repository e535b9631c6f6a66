//! Checks of wake-up latency, and of the kernel's tracers that measure its parts.

use super::{ALL, REAL_TIME, Ran, VmCheck, VmKernel};
use crate::injected_preemptions;
use anyhow::{Context, Result, ensure};

pub const CHECKS: &[VmCheck] = &[
    VmCheck::new("latscope wake measures every CPU", ALL, "latscope wake --duration 1s --json -", |ran| {
        let points = ran.parse_report()?.of_probe("wake.timer").count();
        ensure!(points == 3, "{points} points instead of two CPUs and both together: {}", ran.stdout);
        ran.check_measured("wake.timer")
    }),
    VmCheck::new("latscope wake measures under SCHED_DEADLINE", ALL, DEADLINE, |ran| {
        ran.check_measured("wake.timer")
    }),
    VmCheck::new("a thread of SCHED_DEADLINE can sleep by sched_yield", ALL, YIELD, |ran| {
        ran.check_measured("wake.timer")
    }),
    VmCheck::new("late wake-ups are explained", REAL_TIME, BLAME, check_explanations).exits(3),
    VmCheck::new(
        "injected preemptions are found, with their thread",
        &[VmKernel::Rt612],
        INJECTED_PREEMPTIONS,
        injected_preemptions,
    ),
    VmCheck::new("the kernel has the tracer timerlat", REAL_TIME, TRACERS, |ran| {
        ran.check_stdout("timerlat")
    }),
    VmCheck::new("the kernel has the tracer osnoise", REAL_TIME, TRACERS, |ran| ran.check_stdout("osnoise")),
    VmCheck::new("timerlat measures", REAL_TIME, TIMERLAT, |ran| ran.check_stdout("timer_latency")),
    VmCheck::new(
        "timerlat can wake threads of a program",
        &[VmKernel::Rt612],
        "ls /sys/kernel/tracing/osnoise/per_cpu/cpu0",
        |ran| ran.check_stdout("timerlat_fd"),
    ),
];

const DEADLINE: &str = "latscope wake --policy deadline --duration 1s --json -";

const YIELD: &str = "latscope wake --policy deadline --method yield --duration 1s --json -";

/// Command whose result is inconclusive, since the emulator distorts it.
const BLAME: &str = "latscope wake --duration 1s --threshold 1ns --json -";

/// Checks that outliers have causes that add up to their length.
fn check_explanations(ran: &Ran) -> Result<()> {
    let report = ran.parse_report()?;
    let outliers = report.of_probe("wake.timer").flat_map(|m| &m.outliers);
    let explained: Vec<_> = outliers.filter(|outlier| !outlier.cause.is_empty()).collect();
    ensure!(!explained.is_empty(), "nothing is explained: {:?}", report.warnings);
    for outlier in explained {
        let sum: u64 = outlier.cause.iter().map(|cause| cause.ns).sum();
        ensure!(sum == outlier.value, "{outlier:?}");
    }
    Ok(())
}

/// Command whose output counts, not its exit status. An emulator that lacks CPU time stretches preemptions, and may let
/// a preemption pass between two wake-ups.
const INJECTED_PREEMPTIONS: &str = "latscope selftest wake; true";

fn injected_preemptions(ran: &Ran) -> Result<()> {
    injected_preemptions::most_are_found(&ran.stdout).with_context(|| ran.output_text())
}

const TRACERS: &str = "cat /sys/kernel/tracing/available_tracers";

const TIMERLAT: &str = "cd /sys/kernel/tracing && echo timerlat >current_tracer && sleep 1 && cat trace
    status=$?; echo nop >current_tracer; exit $status";
