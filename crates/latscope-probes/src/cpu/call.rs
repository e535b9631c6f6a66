//! Calls of a function that does nothing.

use crate::prelude::*;
use latscope_os::kernels::call;

settings! {
    /// Settings of a call of a function.
    struct FunctionCallSettings, requested as FunctionCallRequest {
        /// Whether the address stands in the instruction or in a register.
        mode: CallTarget;
    }
}

words! {
    /// Place of the address: the instruction or a register.
    enum CallTarget {
        /// The address of the function is in the instruction.
        Direct = "direct",
        /// The address of the function is in a register.
        Indirect = "indirect",
    }
}

probes! {
    EXPERIMENT, FunctionCallSettings, plan_calls, ..crate::ProbeFacts::LOOPS;
    CALL "cpu.call", "function call", "the processor's optimisation manual: call, return stack, indirect branches",
        "One call of an empty function and its return, well predicted; on x86-64 the calls are 16 bytes apart."
        { revision: 2, };
}

static EXPERIMENT: Experiment = Experiment::new("cpu.call", Cpus::One, run_calls);

fn plan_calls(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let point = |mode: CallTarget| {
        probe.make_point(FunctionCallSettings { mode }, format!("function call, {}", mode.word()), true)
    };
    FunctionCallRequest::of(input).mode.or(CallTarget::ALL).into_iter().map(point).collect()
}

fn run_calls(bench: &mut Bench) -> Result<()> {
    for (index, FunctionCallSettings { mode }) in bench.settings()?.into_iter().enumerate() {
        let kernel = if mode == CallTarget::Direct { call::direct } else { call::indirect };
        let batch = Batch { ops: call::CALLS_PER_ITERATION, cycles: true, ..Batch::default() };
        bench.batch(index, batch, kernel);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn both_kinds_of_call_are_measured() {
        let measured = harness::measure(&EXPERIMENT, harness::points(&CALL));
        assert_eq!(measured.len(), 2);
        measured.iter().for_each(harness::check);
    }
}
