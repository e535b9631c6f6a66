//! Wake-up latency, and the tracers of the kernel that tell its parts.

use super::{ALL, Check, Kernel, REAL_TIME};
use anyhow::ensure;

pub const CHECKS: &[Check] = &[
    Check::new("latscope wake measures every CPU", ALL, "latscope wake --duration 1s --json -", |ran| {
        let points = ran.result()?.of_probe("wake.timer").count();
        ensure!(points == 3, "{points} points instead of two CPUs and both together: {}", ran.stdout);
        ran.measured("wake.timer")
    }),
    Check::new("latscope wake measures under SCHED_DEADLINE", ALL, DEADLINE, |ran| {
        ran.measured("wake.timer")
    }),
    Check::new("the kernel has the tracer timerlat", REAL_TIME, TRACERS, |ran| ran.says("timerlat")),
    Check::new("the kernel has the tracer osnoise", REAL_TIME, TRACERS, |ran| ran.says("osnoise")),
    Check::new("timerlat measures", REAL_TIME, TIMERLAT, |ran| ran.says("timer_latency")),
    Check::new(
        "timerlat can wake threads of a program",
        &[Kernel::Rt612],
        "ls /sys/kernel/tracing/osnoise/per_cpu/cpu0",
        |ran| ran.says("timerlat_fd"),
    ),
];

const DEADLINE: &str = "latscope wake --policy deadline --duration 1s --json -";

const TRACERS: &str = "cat /sys/kernel/tracing/available_tracers";

const TIMERLAT: &str = "cd /sys/kernel/tracing && echo timerlat >current_tracer && sleep 1 && cat trace
    status=$?; echo nop >current_tracer; exit $status";
