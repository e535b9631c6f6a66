//! Checks of the kernel's tracers of noise and of timers: their results, and the state that they leave.

use super::{ALL, REAL_TIME, Ran, VmCheck, VmKernel};
use anyhow::{Result, ensure};
use latscope_core::param;

pub const CHECKS: &[VmCheck] = &[
    VmCheck::new("latscope noise watches every CPU", ALL, "latscope noise --duration 1s --json -", |ran| {
        values(ran, "noise.busy", &["lost", "gaps", "loop", "interrupts"])
    }),
    VmCheck::new("osnoise is read", REAL_TIME, OSNOISE, |ran| {
        values(ran, "noise.osnoise", &["lost", "lost-irq", "lost-thread"])
    }),
    VmCheck::new("hwlat is read", REAL_TIME, "latscope noise hwlat --duration 3s --json -", |ran| {
        values(ran, "noise.hwlat", &["gaps", "watched"])
    }),
    VmCheck::new("a kernel without osnoise says so", &[VmKernel::Std], "latscope noise osnoise", |ran| {
        ran.complains("this kernel has no osnoise tracer")
    })
    .exits(1),
    VmCheck::new(
        "timerlat tells what the interrupt and the thread waited",
        REAL_TIME,
        "latscope wake timerlat --duration 2s --json -",
        |ran| contexts(ran, &["irq", "thread"]),
    ),
    VmCheck::new(
        "timerlat tells what the return to user space took",
        &[VmKernel::Rt612],
        "latscope wake timerlat --duration 2s --json -",
        |ran| contexts(ran, &["irq", "thread", "user"]),
    ),
    VmCheck::new("tracers are restored at the end", REAL_TIME, RESTORED, |ran| ran.prints("restored")),
    VmCheck::new("tracers are restored after a kill", REAL_TIME, KILLED, |ran| ran.prints("restored")),
];

/// Commands that raise the threshold of the tracer. In the emulator, every turn of the kernel's loop exceeds the 1 µs
/// from which on the tracer reports a gap, and there would be more lines than can be read.
macro_rules! threshold {
    () => {
        "cd /sys/kernel/tracing; trap 'echo 0 >/sys/kernel/tracing/tracing_thresh' EXIT
        echo 20 >tracing_thresh
        "
    };
}

const OSNOISE: &str = concat!(threshold!(), "latscope noise osnoise --duration 3s --json -");

/// Commands that save all state that a run of a tracer may change.
macro_rules! state {
    () => {
        "state() { for f in osnoise/* hwlat_detector/* current_tracer tracing_on tracing_thresh; do
            echo $f $(cat $f 2>&1); done; ls instances; }
        state >/tmp/before
        "
    };
}

macro_rules! compare {
    () => {
        "
        for i in $(seq 100); do state >/tmp/after; cmp -s /tmp/before /tmp/after && break; sleep 0.1; done
        diff /tmp/before /tmp/after && echo restored"
    };
}

const RESTORED: &str = concat!(
    threshold!(),
    state!(),
    "for probe in osnoise hwlat; do latscope noise $probe --duration 1s -q || exit 1; done
    latscope wake timerlat --duration 1s -q",
    compare!()
);

const KILLED: &str = concat!(
    threshold!(),
    state!(),
    "for words in 'noise osnoise' 'noise hwlat' 'wake timerlat'; do
        latscope $words --duration 60s -q &
        until ls instances | grep -q latscope; do sleep 0.1; done
        sleep 1; kill -9 $!; wait $!
        until test -z \"$(ls instances)\"; do sleep 0.1; done
    done",
    compare!()
);

/// Checks that a probe was measured, and has these values.
fn values(ran: &Ran, probe: &str, names: &[&str]) -> Result<()> {
    let report = ran.parse_report()?;
    ensure!(report.of_probe(probe).next().is_some(), "no {probe} in the result");
    for m in report.of_probe(probe) {
        let missing = names.iter().find(|name| !m.values.contains_key(**name));
        ensure!(missing.is_none(), "{probe} has no {missing:?}: {:?} {:?}", m.values, m.joined_reasons());
    }
    Ok(())
}

/// Checks that timerlat measured these parts of an activation.
fn contexts(ran: &Ran, names: &[&str]) -> Result<()> {
    let report = ran.parse_report()?;
    let told = |name: &&str| {
        let mut of_context =
            report.of_probe("wake.timerlat").filter(|m| m.has_param_value(param::CONTEXT, name));
        of_context.any(|m| m.summary.count > 0)
    };
    let missing = names.iter().find(|name| !told(name));
    ensure!(missing.is_none(), "{missing:?} is not told: {}", ran.output_text());
    Ok(())
}
