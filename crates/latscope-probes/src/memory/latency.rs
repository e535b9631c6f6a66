//! The latency of a load, by the size of the working set: a chain of pointers,
//! each load waiting for the address from the one before.

use super::nodes::{self, NodePairSettings};
use super::regions;
use super::sizes::{self, KIB, LINE, MIB};
use crate::prelude::*;
use latscope_os::kernels::chase::growing::GrowingChase;
use latscope_os::kernels::chase::{ChaseMap, UNROLL};
use std::cell::Cell;

probes! {
    EXPERIMENT, PointerChaseSettings, plan_walks, ..ProbeFacts::LOOPS;
    LATENCY "memory.latency", "load",
        "the processor's manual: load-to-use latency; the order is a single random cycle (Sattolo)",
        "One load in a chain of dependent loads that visits each line (or page, or stride) of the working set once a round, in the given order."
        { may_be_zero: nodes::MAY_BE_ZERO, footprint,
          sensitive_to: &[Condition::PageSize, Condition::UnaskedHugePages], };
}

probes! {
    EXPERIMENT, PointerChaseSettings, single_loads;
    SINGLE_LOAD "memory.single-load", "load, each timed alone",
        "the processor's manual: load-to-use latency, and stamps that wait for the load",
        "One load of a chain of dependent random loads, between two stamps of its own, whose time is in it."
        { revision: 3, may_be_zero: nodes::MAY_BE_ZERO, by_name_only: true, footprint,
          sensitive_to: &[Condition::PageSize, Condition::UnaskedHugePages], };
}

settings! {
    /// A walk along a chain.
    struct PointerChaseSettings, requested as PointerChaseRequest {
        /// Bytes of the working set.
        size: u64 as Size, axis;
        /// `random`: lines in random order; `window`: random inside of 256 KiB, one window after the
        /// other, without TLB misses; `page`: one line of each page, TLB misses only; `stride`:
        /// upwards, as prefetchers like it.
        order: CacheAccessOrder;
        /// Bytes from one load to the next, for the order `stride`.
        stride: Option<u64> as Size;
        /// Size of the pages; those of 2 MiB are verified.
        pages: RegionPageSize;
        ..between: NodePairSettings;
    }
}

words! {
    /// Order in which the working set is visited.
    enum CacheAccessOrder {
        /// Lines in random order.
        Random = "random",
        /// Random inside of a window, one window after the other.
        Window = "window",
        /// A line of each page.
        Page = "page",
        /// Upwards, by a fixed stride.
        Stride = "stride",
    }
}

static EXPERIMENT: Experiment = Experiment::new("memory.latency", Cpus::One, run_walks)
    .setup_per_point(0.018)
    .fewer_rounds(3, super::LARGE)
    .per_kind(is_of_each_kind);

/// Working sets that a survey measures on each kind of core, if cores are of several kinds: one for each level of most
/// processors of today, and small ones, since each kind fills its own.
const OF_EACH_KIND: [u64; 3] = [32 * KIB, 512 * KIB, 64 * MIB];

/// The smallest working set.
const SMALLEST: u64 = 2 * KIB;
/// The smallest one of a survey's curves beside the main one: all smaller ones lie in the first cache.
const SMALLEST_BESIDE: u64 = 16 * KIB;
/// The largest one in a survey, which has little time.
pub(crate) const SURVEY_CAP: u64 = 512 * MIB;
/// Bytes from load to load in the order `stride`: more than the pair of lines that some prefetchers fetch
/// together.
const STRIDE: u64 = 256;
/// Bytes of a window: 64 small pages, which the first level of every TLB of today holds.
const WINDOW: u64 = 256 * KIB;
/// Largest working set that is visited completely before it is timed; of larger ones as much as [`WARM_STEPS`]
/// loads reach.
const WARM_SIZE: u64 = 64 * MIB;
const WARM_STEPS: u64 = 128 << 10;

/// The lines that a walk loads, however far apart they are.
fn footprint(params: &Params) -> Option<Footprint> {
    let walk = PointerChaseSettings::from_params(params)?;
    let distance = match walk.order {
        CacheAccessOrder::Random | CacheAccessOrder::Window => LINE,
        CacheAccessOrder::Page => walk.pages.bytes(),
        CacheAccessOrder::Stride => walk.stride?,
    };
    Some(Footprint::from_bytes(walk.size / distance.max(LINE) * LINE))
}

fn plan_walks(_: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    if nodes::are_asked(input) {
        let idle = between_nodes(input, machine).map(|walk| make_point(input, machine, walk));
        return idle.chain(SINGLE_LOAD.plan(input, machine)).collect();
    }
    let asked = PointerChaseRequest::of(input);
    let mut points = Vec::new();
    for pages in asked.pages.or(&[RegionPageSize::Huge, RegionPageSize::Base]) {
        for order in asked.order.or(CacheAccessOrder::ALL) {
            let strides = order == CacheAccessOrder::Stride;
            let steps = if strides { asked.stride.or(&[STRIDE]) } else { vec![LINE] };
            for step in sizes::round_sizes(steps, 8) {
                let step = if order == CacheAccessOrder::Page { pages.bytes() } else { step };
                let usual = usual_sizes(input, machine, (order, pages), step);
                for size in sizes::round_sizes(asked.size.or(&usual), step) {
                    let stride = strides.then_some(step);
                    let walk = PointerChaseSettings {
                        size,
                        order,
                        stride,
                        pages,
                        between: NodePairSettings::default(),
                    };
                    points.push(make_point(input, machine, walk));
                }
            }
        }
    }
    if input.survey {
        points.extend(of_other_nodes(machine));
    }
    points
}

/// Returns true for a point that a survey measures on each kind of core.
fn is_of_each_kind(point: &MeasurementPoint) -> bool {
    let Some(walk) =
        PointerChaseSettings::from_params(&point.params).filter(|walk| walk.between.node().is_none())
    else {
        return false;
    };
    (walk.order, walk.pages) == (CacheAccessOrder::Random, RegionPageSize::Huge)
        && OF_EACH_KIND.contains(&walk.size)
}

/// Largest memory of a survey's rows of nodes: it has to be made for each of them.
const NODE_CAP: u64 = 128 * MIB;

/// A survey's rows of the memory of other nodes, and of the own beside it.
fn of_other_nodes(machine: &Machine) -> Vec<MeasurementPoint> {
    let (size, order, pages) =
        (nodes::pair_size(machine, NODE_CAP), CacheAccessOrder::Random, RegionPageSize::Huge);
    let place = sizes::place_in_caches(machine, size);
    let read = if place.is_empty() { "memory read".to_owned() } else { format!("read {place}") };
    let mut points = Vec::new();
    for (what, between) in nodes::surveyed(machine) {
        let walk = PointerChaseSettings { size, order, stride: None, pages, between };
        points.push(LATENCY.make_point(walk, format!("{read}, {what}"), true));
    }
    points
}

/// Walks from each pair of nodes that is asked for: in random order, which no prefetcher follows, unless another is
/// asked for.
fn between_nodes(input: &PlanInput, machine: &Machine) -> impl Iterator<Item = PointerChaseSettings> {
    let asked = PointerChaseRequest::of(input);
    let orders = asked.order.or(&[CacheAccessOrder::Random]);
    let sizes = asked.size.or(&[nodes::pair_size(machine, SURVEY_CAP)]);
    let mut walks = Vec::new();
    for pages in asked.pages.or(RegionPageSize::ALL) {
        for order in orders.iter().copied() {
            let unit = if order == CacheAccessOrder::Random { LINE } else { pages.bytes() };
            for size in sizes::round_sizes(sizes.clone(), unit) {
                let stride =
                    (order == CacheAccessOrder::Stride).then(|| asked.stride.first().unwrap_or(STRIDE));
                let pairs = nodes::requested_pairs(input, machine, Some(1)).into_iter();
                walks.extend(pairs.map(|between| PointerChaseSettings {
                    size,
                    order,
                    stride,
                    pages,
                    between,
                }));
            }
        }
    }
    walks.into_iter()
}

fn single_load(walk: PointerChaseSettings) -> MeasurementPoint {
    let (size, pages) = (format_size(walk.size), format_size(walk.pages.bytes()));
    let title = match walk.between.node() {
        Some(_) => format!("single load{}, {pages} pages", walk.between.title_suffix()),
        None => format!("single load, {size}, pages of {pages}"),
    };
    SINGLE_LOAD.make_point(walk, title, false)
}

/// Points of single loads: between the nodes asked for, or here, in memory.
fn single_loads(_: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    if nodes::are_asked(input) {
        let walks = between_nodes(input, machine).filter(|walk| walk.order == CacheAccessOrder::Random);
        return walks.map(single_load).collect();
    }
    let asked = PointerChaseRequest::of(input);
    let mut points = Vec::new();
    for pages in asked.pages.or(RegionPageSize::ALL) {
        let sizes = asked.size.or(&[sizes::beyond_caches(machine).min(SURVEY_CAP)]);
        let walk = |size| PointerChaseSettings {
            size,
            order: CacheAccessOrder::Random,
            stride: None,
            pages,
            between: NodePairSettings::default(),
        };
        points.extend(sizes::round_sizes(sizes, LINE).into_iter().map(|size| single_load(walk(size))));
    }
    points
}

/// Order and page size of a curve.
type LatencyCurveKey = (CacheAccessOrder, RegionPageSize);

/// The sizes of a curve.
fn usual_sizes(input: &PlanInput, machine: &Machine, curve: LatencyCurveKey, step: u64) -> Vec<u64> {
    let beyond = sizes::beyond_caches(machine);
    let largest = if sizes::is_capped(input) { beyond.min(SURVEY_CAP) } else { beyond };
    let usual = match density(input, curve) {
        Density::None => Vec::new(),
        Density::Few => vec![32 * KIB, 512 * KIB, 8 * MIB, largest],
        Density::PerOctave(points) => {
            let least = if is_beside(input, curve) { SMALLEST_BESIDE } else { SMALLEST };
            sizes::sweep(least.max(4 * step.min(4 * KIB)), largest, points)
        }
    };
    usual.into_iter().filter(|size| *size >= step && *size <= largest).collect()
}

/// Returns true for a curve that a usual survey shows beside that of the levels.
fn is_beside(input: &PlanInput, curve: LatencyCurveKey) -> bool {
    input.survey
        && input.profile == SurveyProfile::Normal
        && curve != (CacheAccessOrder::Random, RegionPageSize::Huge)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Density {
    None,
    Few,
    PerOctave(u64),
}

/// Returns how close the points of a curve are. Levels are found on the random curve on large pages; a survey
/// shows the others beside it.
fn density(input: &PlanInput, curve: LatencyCurveKey) -> Density {
    let main = curve == (CacheAccessOrder::Random, RegionPageSize::Huge);
    let few = curve == (CacheAccessOrder::Random, RegionPageSize::Base);
    let beside = match curve.1 {
        RegionPageSize::Base => curve.0 != CacheAccessOrder::Stride,
        RegionPageSize::Huge => curve.0 == CacheAccessOrder::Stride,
    };
    match (input.survey, input.profile) {
        (true, SurveyProfile::Quick) if main => Density::PerOctave(2),
        (true, SurveyProfile::Quick) if few => Density::Few,
        (true, SurveyProfile::Quick) => Density::None,
        (true, _) if main => Density::PerOctave(4),
        (true, SurveyProfile::Normal) if beside => Density::PerOctave(1),
        (true, SurveyProfile::Full) if beside => Density::PerOctave(4),
        (true, _) => Density::None,
        (false, SurveyProfile::Quick) if main => Density::PerOctave(2),
        (false, SurveyProfile::Quick) => Density::PerOctave(1),
        (false, _) => Density::PerOctave(8),
    }
}

fn make_point(input: &PlanInput, machine: &Machine, walk: PointerChaseSettings) -> MeasurementPoint {
    let stride = walk.stride.map_or(String::new(), |stride| format!(" {stride} B"));
    let (size, pages) = (format_size(walk.size), format_size(walk.pages.bytes()));
    let order = walk.order.word();
    let mut title = format!("load, {order}{stride}, {size}, pages of {pages}{}", walk.between.title_suffix());
    if walk.between.node().is_some() {
        return LATENCY.make_point(walk, title, false);
    }
    if sizes::is_capped(input) && walk.size == SURVEY_CAP && sizes::beyond_caches(machine) > SURVEY_CAP {
        title += match input.survey {
            true => " (a survey ends here; latscope memory goes on)",
            false => " (--quick ends here)",
        };
    }
    LATENCY.make_point(walk, title, false)
}

fn run_walks(bench: &mut Bench) -> Result<()> {
    let walks: Vec<PointerChaseSettings> = bench.settings()?;
    run_between(bench, &walks)?;
    for pages in [RegionPageSize::Huge, RegionPageSize::Base] {
        let indices: Vec<usize> = (0..walks.len())
            .filter(|i| walks[*i].pages == pages && walks[*i].between.node().is_none())
            .collect();
        let made = regions::for_points(bench, indices, pages, |index| walks[index].size);
        let Some((mut region, fitting)) = made else { continue };
        let of = |order: CacheAccessOrder| {
            fitting.iter().copied().filter(|i| walks[*i].order == order).collect::<Vec<_>>()
        };
        // Ascending sizes: the random chain grows from one to the next.
        let mut chase = GrowingChase::new(region.links(), LINE as usize, bench.seed());
        for index in of(CacheAccessOrder::Random) {
            let map = chase.grow(walks[index].size as usize);
            measure_walk(bench, index, &map);
        }
        for index in CacheAccessOrder::ALL[1..].iter().flat_map(|order| of(*order)) {
            let map = ordered(&walks[index], region.links(), bench.seed());
            measure_walk(bench, index, &map);
        }
    }
    Ok(())
}

/// Measures the walks between nodes: memory is made once for all CPUs that walk in it.
fn run_between(bench: &mut Bench, walks: &[PointerChaseSettings]) -> Result<()> {
    let mut waiting: Vec<usize> = (0..walks.len()).filter(|i| walks[*i].between.node().is_some()).collect();
    let any = !waiting.is_empty();
    while let Some(first) = waiting.first().map(|index| &walks[*index]) {
        let memory = |walk: &PointerChaseSettings| {
            (walk.size, walk.order, walk.stride, walk.pages, walk.between.nodes)
        };
        let (same, rest): (Vec<usize>, Vec<usize>) =
            waiting.iter().copied().partition(|index| memory(&walks[*index]) == memory(first));
        waiting = rest;
        let bytes = [first.size as usize];
        let made = nodes::regions(bench, same, &first.between, first.pages, &bytes);
        let Some((mut made, placed)) = made else { continue };
        let links = &mut made[0].links()[..first.size as usize / size_of::<usize>()];
        let map = match first.order {
            CacheAccessOrder::Random => ChaseMap::random(links, LINE as usize, bench.seed()),
            _ => ordered(first, links, bench.seed()),
        };
        for index in placed {
            if nodes::go_to(bench, index, &walks[index].between) {
                measure_walk(bench, index, &map);
            }
        }
    }
    if any { threads::pin(bench.cpus()[0]) } else { Ok(()) }
}

/// The chain of a walk whose order is not random.
fn ordered<'a>(walk: &PointerChaseSettings, links: &'a mut [usize], seed: u64) -> ChaseMap<'a> {
    let links = &mut links[..walk.size as usize / size_of::<usize>()];
    match walk.order {
        CacheAccessOrder::Window => ChaseMap::window(links, LINE as usize, WINDOW as usize, seed),
        CacheAccessOrder::Page => {
            ChaseMap::page_order(links, walk.pages.bytes() as usize, LINE as usize, seed)
        }
        CacheAccessOrder::Random | CacheAccessOrder::Stride => {
            ChaseMap::stride(links, walk.stride.unwrap_or(STRIDE) as usize)
        }
    }
}

/// Longest chain that is brought back into the caches after something else ran: 2 MiB, as much as a core has
/// for itself. Memory in caches that cores share cannot be kept there.
const PRIVATE_LINES: u64 = 2 * MIB / LINE;

/// Loads that bring back most page tables of a large set; from memory they take a millisecond.
const PAGE_WALKS: u64 = 6_000;

/// Iterations of `loads` each that bring back what another process took out of the caches: all of a small chain. A
/// larger one is not brought back, but its page tables are: the process evicted them, in a virtual machine those of the
/// host as well, and each load would pay for that.
pub(super) fn warm_up(elements: u64, loads: u64) -> u64 {
    if elements <= PRIVATE_LINES { elements } else { PAGE_WALKS }.div_ceil(loads)
}

/// Times a walk along a chain.
pub fn measure_walk(bench: &mut Bench, index: usize, map: &ChaseMap) {
    if bench.points()[index].probe == SINGLE_LOAD.id {
        return measure_single(bench, index, map);
    }
    let elements = map.len() as u64;
    let warm = if map.bytes() as u64 <= WARM_SIZE { elements } else { elements.min(WARM_STEPS) };
    let mut cursor = map.walk_from(map.start(), warm);
    // The walk goes on from batch to batch: a large working set is not walked
    // in full, but no line of it is seen again before all the others were.
    let batch = Batch { ops: UNROLL, cycles: true, warm: warm_up(elements, UNROLL), ..Batch::default() };
    bench.batch(index, batch, |n| cursor = map.walk_from(cursor, n * UNROLL));
}

/// Single loads for each that a profile asks for: a tail takes many.
const SINGLE_LOADS: u64 = 20;

/// Times each load of a walk alone.
fn measure_single(bench: &mut Bench, index: usize, map: &ChaseMap) {
    let elements = map.len() as u64;
    let cursor = Cell::new(map.walk_from(map.start(), elements.min(WARM_STEPS)));
    let stop = bench.stop();
    let counted = stop.budget_ns == u64::MAX;
    let events = if counted { stop.events } else { stop.events.saturating_mul(SINGLE_LOADS) };
    bench.set_stop(Stop { events, ..stop });
    let warm = || cursor.set(map.walk_from(cursor.get(), warm_up(elements, 1)));
    bench.each_with_stamps(index, SampleGate::Thread, warm, || {
        cursor.set(black_box(map.step_from(cursor.get())))
    });
    bench.set_stop(stop);
}

#[cfg(test)]
mod tests {
    use super::super::sizes::tests::machine;
    use super::*;
    use latscope_core::machine::CpuCache;
    use latscope_core::plan::ParamValue;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;
    use std::collections::BTreeMap;

    fn curves(points: &[MeasurementPoint]) -> BTreeMap<(String, String), usize> {
        let mut curves = BTreeMap::new();
        for point in points {
            *curves
                .entry((point.text_param("order").into(), point.text_param("pages").into()))
                .or_default() += 1;
        }
        curves
    }

    fn input(profile: SurveyProfile, survey: bool) -> PlanInput {
        PlanInput { profile, survey, ..PlanInput::default() }
    }

    fn named(curves: [(&str, &str, usize); 5]) -> BTreeMap<(String, String), usize> {
        curves.into_iter().map(|(order, pages, n)| ((order.to_owned(), pages.to_owned()), n)).collect()
    }

    #[test]
    fn between_nodes_each_pair_has_idle_and_single_loads_on_both_pages() {
        let points = LATENCY.plan(&nodes::tests::asked(&[("nodes", "all")]), &nodes::tests::machine());
        assert_eq!(points.len(), 2 * 2 * 6);
        assert!(
            points.iter().all(|point| point.text_param("order") == "random" && point.numeric_param("size") == 64 * MIB)
        );
        assert!(points[0].title.ends_with("pages of 4 KiB, node 0 → 0"));
        let again = SINGLE_LOAD.plan(&nodes::tests::asked(&[("nodes", "all")]), &nodes::tests::machine());
        assert_eq!(again, points[12..]);
    }

    #[test]
    fn single_loads_are_of_the_size_that_was_asked_for_on_both_pages() {
        let mut input = input(SurveyProfile::Normal, false);
        input.values.insert("size".into(), vec![ParamValue::Number(16 * KIB)]);
        let points = SINGLE_LOAD.plan(&input, &machine());
        assert_eq!(points.iter().map(|point| point.numeric_param("size")).collect::<Vec<_>>(), [16 * KIB; 2]);
    }

    #[test]
    fn page_tables_of_a_large_chain_and_all_of_a_small_one_are_brought_back() {
        assert_eq!([warm_up(PRIVATE_LINES, 1), warm_up(PRIVATE_LINES, UNROLL)], [32_768, 512]);
        assert_eq!([warm_up(PRIVATE_LINES + 1, 1), warm_up(1 << 22, 32 * UNROLL)], [6_000, 3]);
    }

    #[test]
    fn no_single_load_is_shorter_than_the_stamps_in_it() {
        let mut input = input(SurveyProfile::Quick, false);
        input.values.insert("size".into(), vec![ParamValue::Number(4 * KIB)]);
        input.values.insert("pages".into(), vec!["4KiB".into()]);
        for m in harness::measure(&EXPERIMENT, SINGLE_LOAD.plan(&input, &harness::machine())) {
            harness::check(&m);
            assert!(m.summary.min.is_none_or(|min| min > 0.0), "{:?}", m.summary);
        }
    }

    #[test]
    fn memory_of_this_machines_nodes_is_measured_where_it_was_bound() {
        let machine = harness::machine();
        let mut input = nodes::tests::asked(&[("nodes", "all")]);
        input.values.insert("size".into(), vec![ParamValue::Number(4 * MIB)]);
        let measured = harness::measure(&EXPERIMENT, LATENCY.plan(&input, &machine));
        assert!(!measured.is_empty());
        for m in &measured {
            harness::check(m);
            let elsewhere = m.values.get("pages-elsewhere").map(|pages| pages.value);
            assert!(elsewhere.is_none_or(|pages| pages == 0.0) || m.quality.level != QualityLevel::Ok);
        }
    }

    #[test]
    fn a_survey_has_one_dense_curve_and_four_coarse_ones() {
        let points = LATENCY.plan(&input(SurveyProfile::Normal, true), &machine());
        let expected = named([
            ("random", "2MiB", 65),
            ("random", "4KiB", 14),
            ("window", "4KiB", 14),
            ("stride", "2MiB", 14),
            ("page", "4KiB", 14),
        ]);
        assert_eq!(curves(&points), expected);
        assert!(points.iter().all(|p| !p.row && p.numeric_param("size") <= 128 * MIB));
        let unit = |p: &MeasurementPoint| if p.text_param("order") == "page" { 4 * KIB } else { LINE };
        let whole = |p: &MeasurementPoint| p.numeric_param("size").is_multiple_of(unit(p));
        assert!(points.iter().all(whole));
    }

    #[test]
    fn a_quick_survey_has_few_points_of_small_pages() {
        let curves = curves(&LATENCY.plan(&input(SurveyProfile::Quick, true), &machine()));
        assert_eq!(curves.values().sum::<usize>(), 33 + 4);
    }

    #[test]
    fn only_a_survey_stops_at_its_cap_and_says_so() {
        let mut machine = machine();
        machine.caches.push(CpuCache {
            level: 4,
            kind: "Unified".into(),
            size: 256 * MIB,
            ..CpuCache::default()
        });
        let last = |survey| {
            LATENCY
                .plan(&input(SurveyProfile::Normal, survey), &machine)
                .iter()
                .map(|p| p.numeric_param("size"))
                .max()
        };
        assert_eq!((last(true), last(false)), (Some(512 * MIB), Some(1024 * MIB)));
        let points = LATENCY.plan(&input(SurveyProfile::Normal, true), &machine);
        let told = points.iter().filter(|p| p.title.contains("a survey ends here"));
        assert_eq!(told.count(), 5);
    }

    #[test]
    fn a_family_run_takes_the_values_it_was_given() {
        let mut input = input(SurveyProfile::Normal, false);
        input.values.insert("size".into(), vec![ParamValue::Number(100_000), ParamValue::Number(1)]);
        input.values.insert("order".into(), vec!["stride".into(), "page".into()]);
        input.values.insert("stride".into(), vec![ParamValue::Number(128), ParamValue::Number(1024)]);
        input.values.insert("pages".into(), vec!["4KiB".into()]);
        let points: Vec<(u64, Option<u64>)> = LATENCY
            .plan(&input, &machine())
            .iter()
            .map(|p| {
                (p.numeric_param("size"), p.params.contains_key("stride").then(|| p.numeric_param("stride")))
            })
            .collect();
        let (a, b) = (Some(128), Some(1024));
        assert_eq!(
            points,
            [(99_968, a), (99_328, b), (98_304, None)],
            "none is larger than what was asked for"
        );
    }

    #[test]
    fn every_order_is_measured_on_both_pages() {
        let mut input = input(SurveyProfile::Quick, false);
        input.values.insert("size".into(), [4 * KIB, 3 * MIB].map(ParamValue::Number).to_vec());
        let measured = harness::measure(&EXPERIMENT, LATENCY.plan(&input, &machine()));
        // 4 KiB are less than a page of 2 MiB.
        assert_eq!(measured.len(), 2 * 7 + 1);
        measured.iter().for_each(harness::check);
        assert!(measured.iter().all(|m| m.summary.cycles.is_some()));
    }

    #[test]
    fn what_there_is_no_memory_for_is_reported_and_the_rest_measured() {
        let mut input = input(SurveyProfile::Quick, false);
        input.values.insert("size".into(), [4 * KIB, 1 << 50].map(ParamValue::Number).to_vec());
        input.values.insert("order".into(), vec!["random".into()]);
        let measured = harness::measure(&EXPERIMENT, LATENCY.plan(&input, &machine()));
        measured.iter().for_each(harness::check);
        let refused: Vec<bool> = measured.iter().map(|m| m.summary.count == 0).collect();
        assert_eq!(refused, [false, true, false, true]);
        assert!(measured[1].joined_reasons().as_ref().unwrap().contains("available"));
    }
}
