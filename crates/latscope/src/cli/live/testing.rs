//! The run of the tests.

use latscope_bench::recorder::Snapshot;
use latscope_core::histogram::Histogram;
use latscope_core::plan::{Conditions, Periodic, Phase, Plan, PlanStep};
use latscope_core::report::{Cause, Outlier};
use latscope_core::units::CpuList;
use latscope_engine::observers::{StepRound, StepSnapshot};
use latscope_probes::wake::setup::WakeStepSetup;
use latscope_probes::wake::thread::{
    ClockName, WakeHopKind, WakeMethod, WakeThreadPolicy, WakeThreadSettings,
};

pub(super) const SECOND: u64 = 1_000_000_000;

fn thread(index: u64, cpu: u32) -> WakeThreadSettings {
    WakeThreadSettings {
        index,
        cpu: Some(cpu),
        interval: 1_000_000,
        policy: WakeThreadPolicy::Fifo(95),
        method: WakeMethod::Nanosleep,
        clock: ClockName::Monotonic,
        via: WakeHopKind::Direct,
        work: 0,
        touch: 0,
        slice: None,
    }
}

/// A thread every millisecond on each of these CPUs for a minute, 100 µs being the threshold.
pub(super) fn test_step(cpus: &[u32]) -> PlanStep {
    let periodic =
        Periodic { threshold: Some(100_000), corrected: true, ..Periodic::new(Phase::Staggered, 0) };
    let threads = cpus.iter().zip(0..).map(|(cpu, index)| thread(index, *cpu)).collect();
    let setup = WakeStepSetup {
        threads,
        periodic,
        count: u64::MAX,
        duration: 60 * SECOND,
        conditions: Conditions::default(),
        seed: 1,
    };
    setup.plan_step()
}

pub(super) fn test_plan(step: &PlanStep) -> Plan {
    Plan::new("wake", vec![step.clone()], CpuList(step.cpus.clone()))
}

/// A slot that holds these values, each so many times.
pub(super) fn snapshot(values: &[(u64, usize)], missed: u64, max_at: u64) -> Snapshot {
    let mut histogram = Histogram::new(1000);
    for (value, times) in values {
        (0..*times).for_each(|_| histogram.record(*value));
    }
    Snapshot {
        histogram,
        sampling: None,
        preempted: 0,
        stolen: 0,
        missed,
        early: 0,
        last: 0,
        max_at,
        thread: 0,
        corrected: None,
    }
}

pub(super) fn test_step_snapshot(step: &PlanStep, at: u64, points: Vec<Snapshot>) -> StepSnapshot<'_> {
    StepSnapshot { step, points, round: StepRound { number: 1, of: 1 }, began: SECOND.min(at), at }
}

pub(super) fn test_outlier(at: u64, cpu: u32, value: u64) -> Outlier {
    let cause = |kind: &str, name: &str, pid, percent| Cause {
        kind: kind.to_owned(),
        name: name.to_owned(),
        pid,
        ns: value * percent / 100,
    };
    let cause = vec![cause("thread", "stress-ng", 4711, 83), cause("irq", "timer", 0, 12)];
    Outlier { at, cpu, value, cause, ..Outlier::default() }
}
