//! Sum of an array from its beginning to its end. Most programs use memory in this way, and the caches hardly
//! show, since prefetchers run ahead.

use super::regions;
use crate::prelude::*;
use latscope_core::units::three_digits;
use latscope_os::kernels::bandwidth::{sequential_sum, sequential_xor};

probes! {
    EXPERIMENT, ArraySumSettings, plan_sums, ..ProbeFacts::LOOPS;
    SEQUENTIAL_SUM "memory.sequential-sum", "sequential sum, per element",
        "the processor's optimisation manual: hardware prefetching",
        "One element of 8 bytes of an array that is added up in order, each addition waiting for the one before."
        { footprint: |params| Some(Footprint::from_bytes(ArraySumSettings::from_params(params)?.size)), };
}

settings! {
    /// An array and what is done with it.
    struct ArraySumSettings, requested as ArraySumRequest {
        /// Bytes of the array.
        size: u64 as Size, axis;
        /// What is done with the elements.
        mode: ElementCombination;
    }
}

words! {
    /// Combination of the elements.
    enum ElementCombination {
        /// Sum of all elements.
        Sum = "sum",
        /// Exclusive or of all elements.
        Xor = "xor",
    }
}

static EXPERIMENT: Experiment = Experiment::new("memory.sequential-sum", Cpus::One, run_sums);

/// Sizes of the talk that made the question known: 50 KB, 500 KB and 5 MB.
const SIZES: [u64; 3] = [50_000, 500_000, 5_000_000];

/// Bytes of a block. The kernels work on whole blocks, and so leave out a few elements at the end.
const BLOCK: u64 = 512;

const ELEMENT: u64 = size_of::<u64>() as u64;

fn plan_sums(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = ArraySumRequest::of(input);
    let mut points = Vec::new();
    for mode in asked.mode.or(ElementCombination::ALL) {
        for size in asked.size.or(&SIZES).into_iter().filter(|size| *size >= BLOCK) {
            let title = format!("{} of {}, an element", mode.word(), decimal(size));
            points.push(probe.make_point(
                ArraySumSettings { size, mode },
                title,
                mode == ElementCombination::Sum,
            ));
        }
    }
    points
}

/// Formats a size in decimal units, in which these sizes are round.
fn decimal(bytes: u64) -> String {
    let (value, unit) = match bytes {
        b if b < 1_000_000 => (b as f64 / 1e3, "kB"),
        b => (b as f64 / 1e6, "MB"),
    };
    let digits = if value.fract() == 0.0 { format!("{value}") } else { three_digits(value) };
    format!("{digits} {unit}")
}

fn run_sums(bench: &mut Bench) -> Result<()> {
    let wanted: Vec<ArraySumSettings> = bench.settings()?;
    let all = (0..wanted.len()).collect();
    let Some((mut region, fitting)) =
        regions::for_points(bench, all, RegionPageSize::Base, |i| wanted[i].size)
    else {
        return Ok(());
    };
    for index in fitting {
        let ArraySumSettings { size, mode } = wanted[index];
        let blocks = size / BLOCK;
        let array = &region.words()[..(blocks * BLOCK / ELEMENT) as usize];
        let kernel = if mode == ElementCombination::Sum { sequential_sum } else { sequential_xor };
        let work = Some(OperationWork { ops: 1, bytes_touched: ELEMENT, bytes_moved: ELEMENT });
        let batch = Batch { ops: array.len() as u64, work, cycles: true, warm: 1, ..Batch::default() };
        bench.calls(index, batch, || kernel(array));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn three_sizes_of_two_kinds_and_rows_for_sums() {
        let points = harness::points(&SEQUENTIAL_SUM);
        let titles: Vec<_> = points.iter().filter(|p| p.row).map(|p| p.title.as_str()).collect();
        let expected = ["sum of 50 kB, an element", "sum of 500 kB, an element", "sum of 5 MB, an element"];
        assert_eq!(titles, expected);
        assert_eq!(points.len(), 6);
    }

    #[test]
    fn both_kinds_are_measured() {
        let measured = harness::measure(&EXPERIMENT, harness::points(&SEQUENTIAL_SUM));
        measured.iter().for_each(harness::check);
        assert!(
            measured
                .iter()
                .all(|m| m.work == Some(OperationWork { ops: 1, bytes_touched: 8, bytes_moved: 8 }))
        );
    }
}
