//! In which order the runs of a plan are made: each repetition is a block with every measurement in every arm under
//! every load once, in a random order of its own.

use super::plan_file::{PlanFile, Planned, TrialCellIndex, TrialRunOrder};
use latscope_os::kernels::random::ShuffleGenerator;

/// All runs of these places of a plan, in the order of its seed.
pub fn order(plan: &PlanFile, places: &[TrialCellIndex]) -> Vec<Planned> {
    let mut random = ShuffleGenerator::new(plan.seed);
    let mut all = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut block: Vec<Planned> = places.iter().map(|cell| Planned { repetition, cell: *cell }).collect();
        if plan.order == TrialRunOrder::Random {
            random.shuffle(&mut block);
        }
        all.extend(block);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64) -> PlanFile {
        let text = "repetitions = 40\n[[measurement]]\nname = \"a\"\nrun = \"wake\"\n[[arm]]\nname = \"x\"\n[[arm]]\nname = \"y\"";
        PlanFile { seed, ..PlanFile::parse(text).unwrap() }
    }

    #[test]
    fn each_block_has_every_arm_once_in_an_order_of_its_own() {
        let plan = plan(1);
        let runs = order(&plan, &plan.cell_indices());
        assert_eq!(runs.len(), 80);
        let first_is_a: usize = runs
            .chunks(2)
            .enumerate()
            .map(|(at, block)| {
                assert!(block.iter().all(|run| run.repetition as usize == at));
                assert_eq!(block[0].cell.arm + block[1].cell.arm, 1);
                usize::from(block[0].cell.arm == 0)
            })
            .sum();
        assert!((8..=32).contains(&first_is_a), "{first_is_a} of 40 blocks begin with A");
    }

    #[test]
    fn the_order_follows_from_the_seed() {
        let of = |seed| order(&plan(seed), &plan(seed).cell_indices());
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        let given = PlanFile { order: TrialRunOrder::Given, ..plan(7) };
        assert!(order(&given, &given.cell_indices()).chunks(2).all(|block| block[0].cell.arm == 0));
    }
}
