//! Branches: the cost of one that the processor guesses right, and of one that it guesses wrong.

use crate::prelude::*;
use latscope_os::kernels::branch;

settings! {
    /// Settings of a branch.
    struct BranchSettings, requested as BranchRequest {
        /// Whether the processor can know where the branch goes.
        mode: BranchPrediction;
    }
}

words! {
    /// Prediction of a jump by the processor.
    enum BranchPrediction {
        /// On clear bits: taken, and predicted.
        Predicted = "predicted",
        /// On random bits: half of the guesses are wrong.
        Mispredicted = "mispredicted",
    }
}

probes! {
    EXPERIMENT, BranchSettings, plan_branches, ..crate::ProbeFacts::LOOPS;
    BRANCH "cpu.branch", "branch", "the processor's optimisation manual: branch misprediction penalty",
        "One conditional jump on a bit and the shift to the next: on clear bits (taken, predicted); on random bits a \
        mispredicted jump and a predicted one, since half of the guesses are right.";
}

static EXPERIMENT: Experiment = Experiment::new("cpu.branch", Cpus::One, run_branches);

/// Words of bits in one iteration.
const WORDS: usize = 64;

/// Random bits are guessed wrong half of the time: jumps to one miss.
const JUMPS_PER_MISS: u64 = 2;

fn plan_branches(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let point = |mode: BranchPrediction| {
        probe.make_point(BranchSettings { mode }, format!("branch, {}", mode.word()), true)
    };
    BranchRequest::of(input).mode.or(BranchPrediction::ALL).into_iter().map(point).collect()
}

fn run_branches(bench: &mut Bench) -> Result<()> {
    let mut predicted = None;
    for (index, BranchSettings { mode }) in bench.settings()?.into_iter().enumerate() {
        let mispredicted = mode == BranchPrediction::Mispredicted;
        let bits = if mispredicted { branch::random_bits(bench.seed()) } else { branch::clear_bits() };
        let mut next = bits.chunks_exact(WORDS).cycle();
        let jumps = if mispredicted { JUMPS_PER_MISS } else { 1 };
        let batch = Batch { ops: 64 * WORDS as u64 / jumps, cycles: true, ..Batch::default() };
        bench.calls(index, batch, || branch::mispredict(next.next().unwrap_or_default()));
        if !mispredicted {
            predicted = bench.median(index);
        } else if let Some((hit, pair)) = predicted.zip(bench.median(index)) {
            bench.add_value(index, "miss", pair - JUMPS_PER_MISS as f64 * hit, "ns", Better::Less);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn the_price_of_a_miss_is_a_pair_less_two_hits() {
        let measured = harness::measure(&EXPERIMENT, harness::points(&BRANCH));
        measured.iter().for_each(harness::check);
        let p50 = |m: usize| measured[m].summary.p50.unwrap();
        let miss = measured[1].values["miss"].value;
        assert!((miss - (p50(1) - 2.0 * p50(0))).abs() < 1e-9);
        assert!(!measured[0].values.contains_key("miss"));
    }
}
