//! The length of a core cycle.

use crate::prelude::*;
use latscope_os::kernels::cycle;

probes! {
    EXPERIMENT, (), crate::only_point, ..crate::ProbeFacts::LOOPS;
    CYCLE "cpu.cycle", "core cycle", "the processor's optimisation manual: latency of add register, register",
        "One addition in a chain of dependent additions of registers: one cycle on every core of today.";
}

static EXPERIMENT: Experiment =
    Experiment::new("cpu.cycle", Cpus::One, run_cycle_probe).per_kind(|point| point.row);

fn run_cycle_probe(bench: &mut Bench) -> Result<()> {
    for point in 0..bench.points().len() {
        let batch = Batch { ops: cycle::ADDS_PER_ITERATION, cycles: true, ..Batch::default() };
        bench.batch(point, batch, cycle::dependent_adds);
        if let Some(ns) = bench.median(point).filter(|ns| *ns > 0.0) {
            bench.add_value(point, "frequency", 1.0 / ns, "GHz", Better::More);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn a_cycle_has_a_length_and_a_frequency() {
        let measured = harness::measure(&EXPERIMENT, harness::points(&CYCLE));
        assert_eq!(measured.len(), 1);
        harness::check(&measured[0]);
        let frequency = measured[0].values["frequency"].value;
        assert!((frequency * measured[0].summary.p50.unwrap() - 1.0).abs() < 1e-9);
        assert!(measured[0].summary.cycles.is_some());
    }
}
