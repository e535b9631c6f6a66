//! Number of loads from memory that are under way at once.

use super::latency;
use super::regions;
use super::sizes::{self, LINE, MIB};
use crate::prelude::*;
use latscope_os::kernels::chase::{Chains, MAX_CHAINS, UNROLL};

probes! {
    EXPERIMENT, ParallelLoadSettings, plan_chains, ..ProbeFacts::LOOPS;
    PARALLELISM "memory.parallelism", "load, several chains at once",
        "memory-level parallelism: line fill buffers and misses outstanding, the processor's manual",
        "One load, where several chains of dependent random loads are followed at once: the time of a step of all chains, divided by their number."
        { revision: 2, footprint: |params| Some(Footprint::from_bytes(ParallelLoadSettings::from_params(params)?.size)), sensitive_to: &[Condition::PageSize, Condition::UnaskedHugePages], most: &[("chains", MAX_CHAINS as u64)], };
}

settings! {
    /// Chains that are followed at once.
    struct ParallelLoadSettings, requested as ParallelLoadRequest {
        /// Chains followed at once, 1 to 32.
        chains: u64, axis;
        /// Bytes of the working set.
        size: u64 as Size;
        /// Size of the pages; those of 2 MiB are verified.
        pages: RegionPageSize;
    }
}

static EXPERIMENT: Experiment = Experiment::new("memory.parallelism", Cpus::One, run_chains)
    .setup_per_point(0.07)
    .fewer_rounds(3, super::LARGE);

const CHAINS: [u64; 8] = [1, 2, 4, 8, 12, 16, 24, 32];
const QUICK_CHAINS: [u64; 3] = [1, 8, 16];
/// The largest working set in a survey.
const SURVEY_CAP: u64 = 256 * MIB;

fn plan_chains(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let chains: &[u64] =
        if input.survey && input.profile == SurveyProfile::Quick { &QUICK_CHAINS } else { &CHAINS };
    let beyond = sizes::beyond_caches(machine);
    let size = if sizes::is_capped(input) { beyond.min(SURVEY_CAP) } else { beyond };
    let asked = ParallelLoadRequest::of(input);
    let mut points = Vec::new();
    for pages in asked.pages.or(&[RegionPageSize::Huge]) {
        for size in sizes::round_sizes(asked.size.or(&[size]), LINE) {
            for chains in asked.chains.or(chains) {
                let title =
                    format!("load, {} at once, {}", count_with_noun(chains, "chain"), format_size(size));
                points.push(probe.make_point(ParallelLoadSettings { chains, size, pages }, title, false));
            }
        }
    }
    points
}

fn run_chains(bench: &mut Bench) -> Result<()> {
    let loads: Vec<ParallelLoadSettings> = bench.settings()?;
    for pages in [RegionPageSize::Huge, RegionPageSize::Base] {
        let indices: Vec<usize> = (0..loads.len()).filter(|i| loads[*i].pages == pages).collect();
        let made = regions::for_points(bench, indices, pages, |index| loads[index].size);
        let Some((mut region, fitting)) = made else { continue };
        for of_one_size in fitting.chunk_by(|a, b| loads[*a].size == loads[*b].size) {
            let words = loads[of_one_size[0]].size as usize / size_of::<usize>();
            let all = Chains::random(&mut region.links()[..words], LINE as usize, bench.seed());
            measure_chains(bench, &loads, of_one_size, all);
        }
    }
    Ok(())
}

/// Batches of so many chains through `elements` lines.
fn batch(chains: u64, elements: u64) -> Batch {
    let ops = UNROLL * chains;
    Batch { ops, cycles: true, warm: latency::warm_up(elements, ops), ..Batch::default() }
}

/// Measures the points of one size, and compares them with a single chain.
fn measure_chains(bench: &mut Bench, loads: &[ParallelLoadSettings], indices: &[usize], mut all: Chains) {
    for index in indices {
        let chains = loads[*index].chains;
        if !(1..=MAX_CHAINS as u64).contains(&chains) {
            let reason = format!("{chains} chains cannot be followed at once");
            bench.unsupported(*index, reason, "choose 1 to 32 --chains");
            continue;
        }
        // Else the chains begin in lines that those of the point before left in a cache.
        all.walk_around();
        let mut chains = all.select_chains(chains as usize);
        let batch = batch(chains.count() as u64, loads[*index].size / LINE);
        bench.batch(*index, batch, |n| chains.walk_all(n * UNROLL));
    }
    let single = indices.iter().find(|index| loads[**index].chains == 1);
    let Some(alone) = single.and_then(|index| bench.median(*index)) else { return };
    for index in indices {
        if let Some(together) = bench.median(*index).filter(|ns| *ns > 0.0) {
            bench.add_value(*index, "speedup", alone / together, "x", Better::More);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizes::tests::machine;
    use super::*;
    use latscope_core::plan::ParamValue;
    use latscope_engine::harness;

    #[test]
    fn one_to_thirty_two_chains_through_memory() {
        let input = PlanInput { profile: SurveyProfile::Normal, ..harness::input() };
        let points = PARALLELISM.plan(&input, &machine());
        assert_eq!(points.iter().map(|p| p.numeric_param("chains")).collect::<Vec<_>>(), CHAINS);
        assert!(
            points.iter().all(|p| p.numeric_param("size") == 128 * MIB && p.text_param("pages") == "2MiB")
        );
    }

    /// Another process took the page tables out of the caches.
    #[test]
    fn what_the_walks_need_is_brought_back_before_a_batch() {
        for chains in [1, 8, 32] {
            let batch = batch(chains, 1 << 22);
            assert!(batch.warm * batch.ops >= 6_000, "{batch:?}");
        }
    }

    #[test]
    fn each_number_of_chains_is_compared_with_one() {
        let mut input = harness::input();
        input.values.insert("size".into(), vec![ParamValue::Number(MIB)]);
        input.values.insert("chains".into(), [1, 2, 32, 33].map(ParamValue::Number).to_vec());
        let measured = harness::measure(&EXPERIMENT, PARALLELISM.plan(&input, &machine()));
        measured.iter().for_each(harness::check);
        assert_eq!(measured[0].values["speedup"].value, 1.0);
        assert!(measured[2].values.contains_key("speedup"));
        assert!(measured[3].joined_reasons().as_ref().unwrap().contains("33 chains"));
    }
}
