//! Calls of a function that does nothing.

use crate::{Cpus, Experiment, Kind, Param, PlanInput, Probe};
use anyhow::Result;
use latscope_bench::bench::{Batch, Bench};
use latscope_core::machine::Machine;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::Semantics;
use latscope_os::kernels::call;
use std::hint::black_box;

/// A call and its return.
pub static CALL: Probe = Probe {
    id: "cpu.call",
    title: "function call",
    timed: "One call of an empty function and its return, well predicted.",
    times: Semantics::Operation,
    source: "the processor's optimisation manual: call, return stack, indirect branches",
    params: &[Param {
        name: "mode",
        help: "Whether the address stands in the instruction or in a register.",
        kind: Kind::Choice(&MODES),
        axis: false,
    }],
    experiment: &EXPERIMENT,
    revision: 1,
    plan,
};

const MODES: [&str; 2] = ["direct", "indirect"];

static EXPERIMENT: Experiment =
    Experiment { name: "cpu.call", cpus: Cpus::One, scratch: false, policy: Policy::Other, run };

fn plan(input: &PlanInput, _: &Machine) -> Vec<Point> {
    let point = |mode: &String| {
        CALL.point(params([("mode", mode.as_str().into())]), format!("function call, {mode}"), true)
    };
    input.choices("mode", &MODES, &MODES).iter().map(point).collect()
}

fn run(bench: &mut Bench) -> Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        let kernel = if point.text("mode") == "direct" { call::direct } else { call::indirect };
        let batch = Batch { ops: call::CALLS_PER_ITERATION, cycles: true, ..Batch::default() };
        bench.batch(index, batch, |n| {
            black_box(kernel(n));
        })?;
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
