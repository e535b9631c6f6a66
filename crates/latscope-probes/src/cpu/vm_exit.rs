//! The way out of a virtual machine and back: an instruction that the hypervisor carries out.

use crate::noise::counters::CpuKernelCounters;
use crate::prelude::*;
use latscope_os::cpuid;

probes! {
    EXPERIMENT, (), plan_vm_exits, ..crate::ProbeFacts::BATCHES;
    VM_EXIT "cpu.vm-exit", "CPUID: in a virtual machine, an exit", "CPUID of x86, which serialises and always leaves a virtual machine",
        "One CPUID of leaf 0. In a virtual machine the hypervisor answers it: out of the guest and back. On bare \
        metal it is the instruction alone; value `virtual` says which."
        { sensitive_to: &[Condition::Virtualisation], };
}

static EXPERIMENT: Experiment = Experiment::new("cpu.vm-exit", Cpus::One, run_vm_exits).first_rounds();

/// The only point; a survey has it where there is such an instruction.
fn plan_vm_exits(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    if input.survey && !cpuid::EXISTS { Vec::new() } else { crate::only_point(probe, input, machine) }
}

fn run_vm_exits(bench: &mut Bench) -> Result<()> {
    if !cpuid::EXISTS {
        let reason =
            "this architecture has no instruction that leaves a virtual machine and that programs may use";
        bench.unsupported(0, reason, "");
        return Ok(());
    }
    let before = CpuKernelCounters::read_current();
    bench.calls(0, Batch { cycles: true, ..Batch::default() }, cpuid::serialise);
    let stolen: u64 =
        bench.cpus().iter().map(|cpu| CpuKernelCounters::read_current().since(&before, *cpu).stolen_ms).sum();
    let guest = cpuid::hypervisor_vendor().is_some();
    bench.add_value(0, "virtual", f64::from(u8::from(guest)), "count", Better::Neither);
    bench.add_value(0, "steal", stolen as f64, "ms", Better::Less);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    /// The second method: the kernel lists the flag `hypervisor` of a virtual machine.
    #[test]
    fn it_is_measured_on_x86_and_knows_a_guest() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        for m in harness::measure(&EXPERIMENT, harness::points(&VM_EXIT)) {
            harness::check(&m);
            assert_eq!(m.quality.level == QualityLevel::Unsupported, !cpuid::EXISTS);
            if let (Some(guest), true) = (m.values.get("virtual"), info.contains("flags")) {
                assert_eq!(guest.value == 1.0, info.contains(" hypervisor"), "{m:?}");
            }
        }
    }
}
