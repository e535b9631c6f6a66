//! Costs of reading the time.

use crate::prelude::*;
use crate::syscall::calls::time_loop;
use latscope_os::clock;
use latscope_os::kernels::code::calls::SystemCallLoop;

probes! {
    EXPERIMENT, (), crate::only_point, ..crate::ProbeFacts::BATCHES;
    RDTSC "cpu.rdtsc", "clock: processor's counter", "RDTSC of x86; CNTVCT_EL0 between barriers on arm64",
        "One reading of the processor's counter of time.";
    VDSO "cpu.clock-vdso", "clock: vDSO", "clock_gettime(2), vdso(7), CLOCK_MONOTONIC",
        "One clock_gettime, answered by the vDSO where the clock source allows that."
        { sensitive_to: &[Condition::ClockCall, Condition::ClockSource], };
    SYSCALL "cpu.clock-syscall", "clock: system call", "clock_gettime(2), CLOCK_MONOTONIC",
        "One clock_gettime, by a real system call."
        { by: Some(SyscallInvocation::Instruction), at_addresses: true, sensitive_to: &[Condition::ClockSource], };
}

static EXPERIMENT: Experiment = Experiment::new("cpu.clock", Cpus::One, run_clock_reads);

fn run_clock_reads(bench: &mut Bench) -> Result<()> {
    let batch = || Batch { cycles: true, ..Batch::default() };
    let (mut vdso, mut syscall) = (None, None);
    for (index, point) in bench.points().iter().enumerate() {
        if point.probe == RDTSC.id {
            bench.calls(index, batch(), clock::bare_counter);
        } else if point.probe == VDSO.id {
            bench.calls(index, batch(), clock::monotonic_ns);
            vdso = bench.median(index).map(|ns| (index, ns));
        } else {
            time_loop(bench, index, "clock_gettime", &mut SystemCallLoop::clock_gettime(bench.seed()));
            syscall = bench.median(index);
        }
    }
    if let Some(((index, vdso), syscall)) = vdso.zip(syscall)
        && vdso > syscall * 0.7
    {
        let reason = "the vDSO takes as long as the system call: the kernel's clock source cannot be read in user space";
        bench.degrade(index, "slow-clock-source", reason, "choose another clock source: see latscope doctor");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::MeasurementPoint;
    use latscope_engine::harness;

    #[test]
    fn all_three_ways_to_the_time_are_measured() {
        let points: Vec<MeasurementPoint> =
            [&RDTSC, &VDSO, &SYSCALL].into_iter().flat_map(harness::points).collect();
        let measured = harness::measure(&EXPERIMENT, points);
        let ids: Vec<&str> = measured.iter().map(|m| m.probe.as_str()).collect();
        assert_eq!(ids, ["cpu.rdtsc", "cpu.clock-vdso", "cpu.clock-syscall"]);
        measured.iter().for_each(harness::check);
    }
}
