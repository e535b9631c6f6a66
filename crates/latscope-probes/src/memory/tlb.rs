//! Cost of a TLB miss: a chain through as many pages as lines, against the same number of lines side by side.

use super::latency;
use super::regions;
use super::sizes::{self, LINE, MIB};
use crate::prelude::*;
use latscope_os::kernels::chase::ChaseMap;

probes! {
    EXPERIMENT, PageVisitSettings, plan_tlb_misses, ..ProbeFacts::LOOPS;
    TLB "memory.tlb", "load from another page each time",
        "the processor's manual: translation look-aside buffers and page walks",
        "One load in a chain of dependent loads from one line of each page, in random order; `cost`: longer than \
        a chain through as many lines side by side."
        { footprint, sensitive_to: &[Condition::PageSize, Condition::UnaskedHugePages, Condition::Virtualisation], };
}

settings! {
    /// A visit of pages.
    struct PageVisitSettings, requested as PageVisitRequest {
        /// Bytes of all the pages visited.
        size: u64 as Size, axis;
        /// Size of the pages; those of 2 MiB are verified.
        pages: RegionPageSize;
    }
}

static EXPERIMENT: Experiment =
    Experiment::new("memory.tlb", Cpus::One, run_tlb_misses).fewer_rounds(3, super::LARGE);

/// The largest size in a survey.
const SURVEY_CAP: u64 = 256 * MIB;
/// The fewest pages worth a point: every TLB holds them.
const FEWEST: u64 = 8;

/// A line of each page.
fn footprint(params: &Params) -> Option<Footprint> {
    let visits = PageVisitSettings::from_params(params)?;
    Some(Footprint::from_bytes(visits.size / visits.pages.bytes() * LINE))
}

fn plan_tlb_misses(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let quick = input.survey && input.profile == SurveyProfile::Quick;
    let beyond = sizes::beyond_caches(machine);
    let largest = if sizes::is_capped(input) { beyond.min(SURVEY_CAP) } else { beyond };
    let usual = if quick { &RegionPageSize::ALL[..1] } else { RegionPageSize::ALL };
    let asked = PageVisitRequest::of(input);
    let mut points = Vec::new();
    for pages in asked.pages.or(usual) {
        let page = pages.bytes();
        let per_octave =
            if pages == RegionPageSize::Base && input.profile != SurveyProfile::Quick { 2 } else { 1 };
        let default = sizes::sweep(FEWEST * page, largest.max(FEWEST * page), per_octave);
        for size in sizes::round_sizes(asked.size.or(&default), page) {
            let title = format!("load, each from another of {} pages of {}", size / page, format_size(page));
            points.push(probe.make_point(PageVisitSettings { size, pages }, title, false));
        }
    }
    points
}

fn run_tlb_misses(bench: &mut Bench) -> Result<()> {
    let visits: Vec<PageVisitSettings> = bench.settings()?;
    for pages in RegionPageSize::ALL.iter().copied() {
        let page = pages.bytes();
        let indices: Vec<usize> = (0..visits.len()).filter(|i| visits[*i].pages == pages).collect();
        let made = regions::for_points(bench, indices, pages, |index| visits[index].size);
        let Some((mut region, fitting)) = made else { continue };
        // The lines side by side stand on large pages, so that they miss no TLB.
        let lines = |index: &usize| visits[*index].size / page;
        let most = fitting.iter().map(lines).max().unwrap_or(1);
        let mut packed = MemoryRegion::new((most * LINE) as usize, RegionPageSize::Huge)?;
        for index in fitting {
            let words = visits[index].size as usize / size_of::<usize>();
            let map = ChaseMap::page_order(
                &mut region.links()[..words],
                page as usize,
                LINE as usize,
                bench.seed(),
            );
            latency::measure_walk(bench, index, &map);
            let words = (lines(&index) * LINE) as usize / size_of::<usize>();
            let packed = ChaseMap::random(&mut packed.links()[..words], LINE as usize, bench.seed());
            if let Some((apart, together)) = bench.median(index).zip(median_load_ns(bench, &packed)) {
                bench.add_value(index, "side-by-side", together, "ns", Better::Less);
                bench.add_value(index, "cost", apart - together, "ns", Better::Less);
            }
        }
    }
    Ok(())
}

/// Walks of a control, and how many of them are needed.
const WALKS: usize = 60;
const ENOUGH: usize = 15;
/// Loads in a walk of a control.
const STEPS: u64 = 16 << 10;

/// Median time of a load along a chain, ns, of a few undisturbed walks; of all
/// walks if none was. `None` without any.
fn median_load_ns(bench: &Bench, map: &ChaseMap) -> Option<f64> {
    let timebase = bench.timebase();
    let clock = timebase.clock();
    let mut cursor = map.walk_from(map.start(), map.len() as u64);
    let (mut clean, mut all) = (Vec::new(), Vec::new());
    for _ in 0..WALKS {
        let watch = DisturbanceWatch::watch_thread();
        let start = clock.stamp_start();
        cursor = map.walk_from(cursor, STEPS);
        let ns = timebase.interval_ns(clock.stamp_end() - start);
        all.push(ns / STEPS as f64);
        if !watch.disturbed(ns) {
            clean.push(ns / STEPS as f64);
        }
        if clean.len() == ENOUGH {
            break;
        }
    }
    median(if clean.is_empty() { &all } else { &clean })
}

#[cfg(test)]
mod tests {
    use super::super::sizes::tests::machine;
    use super::*;
    use latscope_core::plan::ParamValue;
    use latscope_engine::harness;

    #[test]
    fn both_kinds_of_pages_are_swept() {
        let input = PlanInput { profile: SurveyProfile::Normal, ..harness::input() };
        let points = TLB.plan(&input, &machine());
        let of = |pages| {
            points
                .iter()
                .filter(|p| p.text_param("pages") == pages)
                .map(|p| p.numeric_param("size"))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("2MiB"), [16, 32, 64, 128].map(|mib| mib * MIB));
        assert_eq!(of("4KiB").len(), 12 * 2 + 1);
        assert_eq!(points[1].title, "load, each from another of 12 pages of 4 KiB");
    }

    #[test]
    fn the_cost_is_the_difference_of_two_walks() {
        let mut input = PlanInput { profile: SurveyProfile::Normal, ..harness::input() };
        input.values.insert("size".into(), vec![ParamValue::Number(4 * MIB)]);
        let measured = harness::measure(&EXPERIMENT, TLB.plan(&input, &machine()));
        assert_eq!(measured.len(), 2);
        for m in &measured {
            harness::check(m);
            let (cost, packed) = (m.values["cost"].value, m.values["side-by-side"].value);
            assert!((cost + packed - m.summary.p50.unwrap()).abs() < 1e-9 && packed > 0.0);
        }
    }
}
