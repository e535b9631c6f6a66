//! Single loads, each timed alone: the tail that the mean of a chain hides.

use super::regions::{self, PageSize};
use super::sizes::{self, MIB};
use crate::{Condition, Cpus, Experiment, Facts, PlanInput, Probe, Settings, Word, settings};
use anyhow::Result;
use latscope_bench::bench::Bench;
use latscope_bench::gate::Gate;
use latscope_core::machine::Machine;
use latscope_core::plan::Point;
use latscope_core::report::Semantics;
use latscope_core::units::format_size;
use latscope_os::memory::Region;
use std::hint::black_box;

/// Probe of single loads.
pub static SINGLE: Probe = Probe {
    facts: Facts {
        id: "memory.single-load",
        title: "single load",
        timed: "One load from a random line of the working set, alone between two stamps with fences: all loads before it are done, none \
                is in flight beside it. Its tail has conflicts of rows and refreshes of the memory, walks of page \
                tables, and what other CPUs do with the memory.",
        times: Semantics::Operation,
        source: "the processor's manual: serialising instructions; JEDEC: refresh (tREFI, tRFC), row cycle (tRC)",
        revision: 1,
        params: Loads::LIST,
        by_name_only: true,
        sensitive_to: &[Condition::PageSize, Condition::UnaskedHugePages],
        ..Facts::DEFAULT
    },
    check: Loads::check,
    experiment: &EXPERIMENT,
    plan,
};

static EXPERIMENT: Experiment = Experiment::new("memory.single-load", Cpus::One, run);

settings! {
    /// Memory that is loaded from.
    struct Loads, asked for as LoadsAsked {
        /// Memory in which the lines lie
        size: u64 as Size, axis;
        /// Size of the pages; those of 2 MiB are verified.
        pages: PageSize;
    }
}

/// Memory that every first cache holds, for comparison.
const SMALL: u64 = 16 << 10;
const LINE: u64 = 64;
/// Longest tick of a clock, ns, by which single loads can be told apart.
const FINE: f64 = 5.0;

fn plan(input: &PlanInput, machine: &Machine) -> Vec<Point> {
    let large = sizes::beyond_caches(machine).min(256 * MIB);
    let asked = LoadsAsked::of(input);
    let mut points = Vec::new();
    for pages in asked.pages.or(&PageSize::ALL[1..]) {
        for size in sizes::rounded(asked.size.or(&[SMALL, large]), LINE) {
            let title =
                format!("single load, {}, pages of {}", format_size(size), format_size(pages.bytes()));
            points.push(SINGLE.point(Loads { size, pages }, title, true));
        }
    }
    points
}

fn run(bench: &mut Bench) -> Result<()> {
    let loads: Vec<Loads> = bench.settings()?;
    let tick = bench.timebase().span(1);
    if tick > FINE {
        let reason = format!("the clock of this machine ticks every {tick:.0} ns: a load is shorter");
        (0..loads.len()).for_each(|index| bench.unsupported(index, reason.as_str(), ""));
        return Ok(());
    }
    for pages in PageSize::ALL {
        let indices: Vec<usize> = (0..loads.len()).filter(|i| loads[*i].pages == *pages).collect();
        let size = |index: usize| loads[index].size;
        let Some((mut region, fitting)) = regions::for_points(bench, indices, pages.pages(), size) else {
            continue;
        };
        fitting.iter().for_each(|index| measure(bench, *index, &mut region, size(*index)));
    }
    Ok(())
}

fn measure(bench: &mut Bench, index: usize, region: &mut Region, size: u64) {
    let words = &region.words()[..(size / 8) as usize];
    let lines = size / LINE;
    let mut state = bench.seed() | 1;
    // Those of the small size are in the first cache then.
    for word in words.iter().step_by(8).take(1 << 16) {
        black_box(*word);
    }
    bench.splits(&[index], Gate::Thread, |splits| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let word = &words[(state % lines) as usize * 8];
        splits.start();
        black_box(*word);
        splits.stop(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::report::Sampling;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn loads_from_cache_and_memory_are_single_events() {
        let all = points(&SINGLE);
        assert_eq!(all.len(), 2);
        for m in measure(&EXPERIMENT, all) {
            check(&m);
            assert!(m.reason().is_some() || m.sampling == Sampling::Event);
        }
    }
}
