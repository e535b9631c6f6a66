//! The latency of a load while other CPUs keep the memory busy.

use super::latency;
use super::nodes::{self, NodePairSettings};
use super::regions;
use super::sizes::{self, KIB, LINE, MIB};
use crate::prelude::*;
use latscope_os::kernels::bandwidth::{self, BandwidthStride, Operation};
use latscope_os::kernels::chase::growing::GrowingChase;
use latscope_os::kernels::chase::{ChaseCursor, ChaseMap, UNROLL};

probes! {
    EXPERIMENT, LoadedLatencySettings, plan_loaded, ..ProbeFacts::LOOPS;
    LOADED "memory.loaded", "load from memory under load",
        "loaded latency, as Intel's Memory Latency Checker plots it",
        "One load in a chain of dependent random loads, while other threads copy memory on other CPUs; `load` is \
        what these read and write."
        { revision: 2, footprint: |params| Some(Footprint::from_bytes(LoadedLatencySettings::from_params(params)?.size)), exclusive_cpus: ExclusiveCpus::ThreadsAndOne,
          may_be_zero: &["delay", "threads", "nodes", "cpu-nodes"], sensitive_to: &[Condition::TwoCpus], };
}

settings! {
    /// A load beside copying threads.
    struct LoadedLatencySettings, requested as LoadedLatencyRequest {
        /// Copying threads, one on each other CPU.
        threads: u64, axis;
        /// Pause of the copying threads after each 4 KiB.
        delay: u64 as Time, axis;
        /// Bytes that the chain leads through.
        size: u64 as Size;
        ..between: NodePairSettings;
    }
}

static EXPERIMENT: Experiment = Experiment::new("memory.loaded", Cpus::All, run_loaded)
    .setup_per_point(0.08)
    .fewer_rounds(3, super::LARGE);

/// Pauses, from none to so long that there is hardly any load.
const DELAYS: [u64; 7] = [0, 100, 300, 1_000, 3_000, 10_000, 30_000];
/// Longest wait for the copying threads to begin.
const START_TIMEOUT: Duration = Duration::from_millis(50);
/// Bytes from one pause to the next.
const PIECE: usize = 4 * KIB as usize;
/// Largest memory of the chain, unless another is asked for.
const CAP: u64 = 256 * MIB;
/// Memory of each copying thread; between nodes of all together.
const COPIED: u64 = 64 * MIB;

fn plan_loaded(_: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let asked = LoadedLatencyRequest::of(input);
    let mut points = Vec::new();
    if nodes::are_asked(input) {
        for size in sizes::round_sizes(asked.size.or(&[nodes::pair_size(machine, CAP)]), LINE) {
            let pairs = nodes::requested_pairs(input, machine, None).into_iter();
            points.extend(pairs.flat_map(|between| curve(input, size, between)));
        }
    } else {
        for size in sizes::round_sizes(asked.size.or(&[sizes::beyond_caches(machine).min(CAP)]), LINE) {
            points.extend(of_size(input, machine, size));
        }
    }
    for point in &mut points {
        let idle = LoadedLatencySettings::from_params(&point.params).filter(|loaded| loaded.threads == 0);
        let place = idle.map_or(String::new(), |idle| sizes::place_in_caches(machine, idle.size));
        if !place.is_empty() {
            point.title += &format!(", {place}");
        }
    }
    points
}

/// The points of a size: first nothing beside it, to compare with.
fn of_size(input: &PlanInput, machine: &Machine, size: u64) -> Vec<MeasurementPoint> {
    let quick = input.survey && input.profile == SurveyProfile::Quick;
    let others = (machine.allowed.0.len() as u64).saturating_sub(1).max(1);
    let asked = LoadedLatencyRequest::of(input);
    let mut points = Vec::new();
    if !asked.threads.given() {
        points.push(make_point(size, 0, 0, NodePairSettings::default()));
    }
    for threads in asked.threads.or(&[others]) {
        let delays: &[u64] = if quick { &DELAYS[..1] } else { &DELAYS };
        let delays = if threads == 0 { vec![0] } else { asked.delay.or(delays) };
        points.extend(
            delays.into_iter().map(|delay| make_point(size, threads, delay, NodePairSettings::default())),
        );
    }
    points
}

/// The curve of a pair of nodes: all other CPUs of the node copy, unless a number of threads is asked for.
fn curve(input: &PlanInput, size: u64, between: NodePairSettings) -> Vec<MeasurementPoint> {
    let asked = LoadedLatencyRequest::of(input);
    let others = between.cpus().len() as u64 - 1;
    let mut points = vec![make_point(size, 0, 0, between.clone())];
    for threads in asked.threads.or(&[others]).into_iter().filter(|threads| *threads > 0) {
        let delays = asked.delay.or(&DELAYS).into_iter();
        points.extend(delays.map(|delay| make_point(size, threads, delay, between.clone())));
    }
    points
}

fn make_point(size: u64, threads: u64, delay: u64, between: NodePairSettings) -> MeasurementPoint {
    let beside = match (threads, delay) {
        (0, _) => "memory idle".to_owned(),
        (threads, 0) => format!("{} copying without pause", count_with_noun(threads, "thread")),
        (threads, delay) => {
            let (threads, delay) = (count_with_noun(threads, "thread"), format_time(delay as f64));
            format!("{threads} copying 4 KiB every {delay} and its time")
        }
    };
    let title = format!("load, {beside}, {}{}", format_size(size), between.title_suffix());
    LOADED.make_point(LoadedLatencySettings { threads, delay, size, between }, title, false)
}

fn run_loaded(bench: &mut Bench) -> Result<()> {
    let wanted: Vec<LoadedLatencySettings> = bench.settings()?;
    let (between, here): (Vec<usize>, Vec<usize>) =
        (0..wanted.len()).partition(|index| wanted[*index].between.node().is_some());
    run_between(bench, &wanted, between)?;
    let cpus = bench.cpus().to_vec();
    let others = cpus.len() as u64 - 1;
    let (possible, impossible): (Vec<usize>, Vec<usize>) =
        here.into_iter().partition(|index| wanted[*index].threads <= others);
    for index in impossible {
        let threads = wanted[index].threads;
        let reason = too_few_cpus(threads, "copying thread", others, "left beside the measuring one");
        bench.unsupported(index, reason, "give more CPUs (--cpus) or fewer --threads");
    }
    let size = |index: usize| wanted[index].size;
    let Some((mut region, mut possible)) = regions::for_points(bench, possible, RegionPageSize::Huge, size)
    else {
        return Ok(());
    };
    let threads = possible.iter().map(|index| wanted[*index].threads).max().unwrap_or(0) as usize;
    let mut copies =
        match regions::for_threads(&cpus[1..], &vec![COPIED as usize; threads], RegionPageSize::Huge) {
            Ok(copies) => copies,
            Err(error) => {
                let loaded = possible.extract_if(.., |index| wanted[*index].threads > 0);
                loaded.for_each(|index| bench.unsupported(index, format!("{error:#}"), "free memory"));
                Vec::new()
            }
        };
    let mut chase = GrowingChase::new(region.links(), LINE as usize, bench.seed());
    for of_one_size in possible.chunk_by(|a, b| size(*a) == size(*b)) {
        let map = chase.grow(size(of_one_size[0]) as usize);
        let mut cursor = map.start();
        for index in of_one_size {
            measure_loaded(bench, *index, &map, &mut cursor, &cpus, &mut copies)?;
        }
    }
    Ok(())
}

/// Measures the curves between nodes: the chain and the copies of a pair are made once.
fn run_between(bench: &mut Bench, wanted: &[LoadedLatencySettings], mut waiting: Vec<usize>) -> Result<()> {
    let any = !waiting.is_empty();
    let pages = RegionPageSize::Huge;
    while let Some(first) = waiting.first().map(|index| &wanted[*index]) {
        let (curve, rest): (Vec<usize>, Vec<usize>) =
            waiting.iter().copied().partition(|index| is_alike(&wanted[*index], first));
        waiting = rest;
        let cpus = first.between.cpus();
        let most = curve.iter().map(|index| wanted[*index].threads as usize).max().unwrap_or(0);
        let copies = most.min(cpus.len() - 1);
        let mut bytes = vec![first.size as usize];
        bytes.resize(1 + copies, (COPIED as usize / copies.max(1)).max(2 * MIB as usize));
        let made = nodes::regions(bench, curve, &first.between, pages, &bytes);
        let Some((mut made, placed)) = made else { continue };
        let (chain, copying) = made.split_at_mut(1);
        let links = &mut chain[0].links()[..first.size as usize / size_of::<usize>()];
        let map = ChaseMap::random(links, LINE as usize, bench.seed());
        let mut cursor = map.start();
        for index in placed {
            if wanted[index].threads as usize > copies {
                let (threads, place) = (wanted[index].threads, "left beside the measuring one on the node");
                let reason = too_few_cpus(threads, "copying thread", copies as u64, place);
                bench.unsupported(index, reason, "give fewer --threads");
            } else if nodes::go_to(bench, index, &first.between) {
                measure_loaded(bench, index, &map, &mut cursor, &cpus, copying)?;
            }
        }
    }
    if any { threads::pin(bench.cpus()[0]) } else { Ok(()) }
}

/// Returns true if two points are of one chain in the memory of one node.
fn is_alike(a: &LoadedLatencySettings, b: &LoadedLatencySettings) -> bool {
    a.size == b.size && a.between == b.between
}

/// Batches of a chain of so many loads.
fn batch(elements: u64) -> Batch {
    Batch { ops: UNROLL, cycles: true, warm: latency::warm_up(elements, UNROLL), ..Batch::default() }
}

/// Measures a point beside its copying threads. The chain goes on at the cursor: caches hold what the point before
/// led through.
fn measure_loaded<'a>(
    bench: &mut Bench,
    index: usize,
    map: &ChaseMap<'a>,
    cursor: &mut ChaseCursor<'a>,
    cpus: &[u32],
    copies: &mut [MemoryRegion],
) -> Result<()> {
    let LoadedLatencySettings { threads, delay, .. } = LoadedLatencySettings::read(&bench.points()[index])?;
    let threads = threads as usize;
    let (over, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let timebase = bench.timebase();
    std::thread::scope(|scope| {
        let (over, bytes) = (&over, &bytes);
        let _over = threads::StopFlagGuard(over);
        for (region, cpu) in copies[..threads].iter_mut().zip(&cpus[1..]) {
            let body = move || while copy(region.words(), delay, over, bytes, timebase) {};
            threads::start_in(scope, *cpu, body)?;
        }
        // The load is there when all threads copy; on a busy machine that takes a while.
        let waiting = Instant::now();
        let some = (threads * 16 * PIECE) as u64;
        while bytes.load(Ordering::Relaxed) < some && waiting.elapsed() < START_TIMEOUT {
            std::thread::yield_now();
        }
        let clock = timebase.clock();
        let (before, start) = (bytes.load(Ordering::Relaxed), clock.stamp_start());
        let batch = batch(map.len() as u64);
        bench.batch(index, batch, |n| *cursor = map.walk_from(*cursor, n * UNROLL));
        let (after, ns) = (bytes.load(Ordering::Relaxed), timebase.interval_ns(clock.stamp_end() - start));
        bench.add_value(index, "load", (after - before) as f64 / ns.max(1.0), "GB/s", Better::Neither);
        if threads > 0 && after == before {
            let reason = "the copying threads had no time on their CPUs: there was no load";
            bench.degrade(index, "no-load", reason, "run it on a quieter machine, or on other CPUs (--cpus)");
        }
        Ok(())
    })
}

/// Copies one half of the memory to the other, piece by piece with a pause after each, and counts the bytes
/// read and written. Returns false when it is to end.
fn copy(memory: &mut [u64], delay: u64, over: &AtomicBool, bytes: &AtomicU64, timebase: Timebase) -> bool {
    let clock = timebase.clock();
    let pause = timebase.ticks(delay);
    let words = PIECE / size_of::<u64>();
    let (source, destination) = memory.split_at_mut(memory.len() / 2);
    let pieces = source.chunks_exact(words).zip(destination.chunks_exact_mut(words));
    for (from, to) in pieces {
        if over.load(Ordering::Relaxed) {
            return false;
        }
        bandwidth::run_pass(Operation::Copy, BandwidthStride::Every, to, from);
        bytes.fetch_add(2 * PIECE as u64, Ordering::Relaxed);
        let paused = clock.stamp_start();
        while delay > 0 && clock.stamp_end() - paused < pause {
            std::hint::spin_loop();
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::sizes::tests::machine;
    use super::*;
    use latscope_core::plan::ParamValue;
    use latscope_engine::harness;

    #[test]
    fn the_load_falls_from_all_to_nothing() {
        let input = PlanInput { profile: SurveyProfile::Normal, ..harness::input() };
        let points = LOADED.plan(&input, &machine());
        let pairs: Vec<(u64, u64)> =
            points.iter().map(|p| (p.numeric_param("threads"), p.numeric_param("delay"))).collect();
        let mut expected = vec![(0, 0)];
        expected.extend(DELAYS.map(|delay| (3, delay)));
        assert_eq!(pairs, expected);
        assert_eq!(LOADED.plan(&harness::input(), &machine()).len(), 2);
    }

    #[test]
    fn each_size_that_is_asked_for_has_a_curve() {
        let mut input = harness::input();
        input.values.insert("size".into(), [8 * MIB, 64 * KIB].map(ParamValue::Number).to_vec());
        let points = LOADED.plan(&input, &machine());
        let sizes: Vec<u64> = points.iter().map(|point| point.numeric_param("size")).collect();
        assert_eq!(sizes, [64 * KIB, 64 * KIB, 8 * MIB, 8 * MIB]);
        assert!(points[2].title.ends_with(", 8 MiB, in the declared L3"), "{}", points[2].title);
        assert!(points[3].title.ends_with(" without pause, 8 MiB"), "{}", points[3].title);
        let measured = harness::measure(&EXPERIMENT, points);
        measured.iter().for_each(harness::check);
        input.values = nodes::tests::asked(&[("nodes", "all"), ("size", "65536")]).values;
        let points = LOADED.plan(&input, &nodes::tests::machine());
        assert!(!points.is_empty() && points.iter().all(|point| point.numeric_param("size") == 64 * KIB));
    }

    #[test]
    fn values_given_replace_the_list() {
        let mut input = harness::input();
        input.values.insert("threads".into(), vec![ParamValue::Number(1), ParamValue::Number(0)]);
        input.values.insert("delay".into(), vec![ParamValue::Number(5)]);
        let points = LOADED.plan(&input, &machine());
        let pairs: Vec<(u64, u64)> =
            points.iter().map(|p| (p.numeric_param("threads"), p.numeric_param("delay"))).collect();
        assert_eq!(pairs, [(1, 5), (0, 0)]);
    }

    /// Another process took the page tables out of the caches.
    #[test]
    fn what_a_walk_needs_is_brought_back_before_a_batch() {
        let batch = batch(1 << 22);
        assert!(batch.warm * batch.ops >= 6_000, "{batch:?}");
    }

    #[test]
    fn each_pair_of_nodes_has_a_curve() {
        let points = LOADED.plan(&nodes::tests::asked(&[("nodes", "all")]), &nodes::tests::machine());
        assert_eq!(points.len(), 6 * (1 + DELAYS.len()));
        assert!(
            points[..8]
                .iter()
                .all(|point| point.numeric_param("nodes") == 0 && point.numeric_param("cpu-nodes") == 0)
        );
        let eight = latscope_core::fixture::machines::eight_nodes();
        let points = LOADED.plan(&nodes::tests::asked(&[("nodes", "all")]), &eight);
        // Six nodes have CPUs, and all eight have memory.
        assert_eq!(points.len(), 6 * 8 * (1 + DELAYS.len()));
        let input = nodes::tests::asked(&[("nodes", "all"), ("delay", "1000")]);
        let measured = harness::measure(&EXPERIMENT, LOADED.plan(&input, &harness::machine()));
        assert!(!measured.is_empty());
        measured.iter().for_each(harness::check);
    }

    #[test]
    fn it_is_measured_where_there_is_a_second_cpu_and_refused_where_not() {
        let point = |threads| make_point(8 * MIB, threads, 0, NodePairSettings::default());
        let points = vec![point(0), point(1), point(100_000)];
        let measured = harness::measure(&EXPERIMENT, points);
        measured.iter().for_each(harness::check);
        assert_eq!(measured[0].values["load"].value, 0.0);
        if latscope_os::sched::allowed_cpus().unwrap().len() > 1 {
            let told = measured[1].quality.level.is_doubtful();
            assert!(measured[1].values["load"].value > 0.0 || told);
        }
        assert!(measured[2].joined_reasons().as_ref().unwrap().contains("copying threads"));
    }
}
