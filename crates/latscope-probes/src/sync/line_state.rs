//! Loads of lines that another core has, by how that core got them.

use super::core_to_core::{CpuPairTopology, SURVEYED, cpus_of, sample_pairs};
use super::placement;
use crate::available;
use crate::classes::{CpuPairClass, CpuTopologyMap};
use crate::memory::page_size_doubt;
use crate::prelude::*;
use latscope_os::kernels::chase::shared::SharedCycle;
use std::sync::atomic::Ordering::{Acquire, Release};

probes! {
    EXPERIMENT, LineStateSettings, plan_line_loads, ..ProbeFacts::BATCHES;
    LINE_STATE "sync.line-state", "load of a line that another core has",
        "the processor's cache coherence protocol (MESI); no instruction reads the state of a line",
        "One load in a chain of dependent loads, each of a line that another core has in its caches. State modified: that core \
            wrote to the line. State exclusive: the line was flushed, then that core alone loaded it. State \
            shared: it was flushed, then that core and a third one loaded it."
        { revision: 2, by_name_only: true, sensitive_to: &[Condition::SharedCore, Condition::PageSize], };
}

static EXPERIMENT: Experiment = Experiment::new("sync.line-state", Cpus::All, run_line_loads)
    .setup_per_point(0.01)
    .setup_once(0.3)
    .fewer_rounds(4, placement::AWAKE);

words! {
    /// Way in which another core got a line.
    enum CacheLineState {
        /// Written to.
        Modified = "modified",
        /// Loaded by that core alone.
        Exclusive = "exclusive",
        /// Loaded by that core and a third one.
        Shared = "shared",
    }
}

settings! {
    /// Lines of one core that another loads.
    struct LineStateSettings, requested as LineStateRequest {
        /// The two CPUs.
        pair: String, axis;
        /// Lines that the second CPU wrote to (`modified`), that it alone loaded (`exclusive`), or that it and a third
        /// CPU loaded (`shared`).
        state: CacheLineState;
        /// The third CPU, for the state `shared`.
        sharer: Option<String>;
        /// Nearest thing that the two CPUs share.
        class: Option<String>;
    }
}

/// Lines in a chain, one of each page: few enough for the first cache of each core of today, whose sets they fill
/// evenly. With one line in a page no prefetcher finds a pattern, and the other line of a pair of 128 bytes is not in
/// the chain.
const LINES: usize = 256;

/// Bytes of such a page, and of a line.
const PAGE: usize = 4096;
const LINE: usize = 64;

/// Bound of the ratio to the same walk in the own cache from which on the lines came from elsewhere.
const ELSEWHERE: f64 = 1.25;

fn plan_line_loads(_: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let pairs: Vec<CpuPairTopology> = match machine.allowed.0.as_slice() {
        // Reported as unsupported rather than left out.
        [only] => vec![(*only, *only, None)],
        _ => sample_pairs(machine, SURVEYED),
    };
    let places = CpuTopologyMap::of_machine(machine);
    let mut points = Vec::new();
    for state in LineStateRequest::of(input).state.or(CacheLineState::ALL) {
        let mut classes: Vec<Option<CpuPairClass>> = Vec::new();
        for (a, b, class) in &pairs {
            let row = !classes.contains(class);
            if row {
                classes.push(*class);
            }
            points.push(make_point(machine, state, (*a, *b), places.class(*a, *b), row));
        }
    }
    points
}

fn make_point(
    machine: &Machine,
    state: CacheLineState,
    (a, b): (u32, u32),
    class: CpuPairClass,
    row: bool,
) -> MeasurementPoint {
    let third = machine.allowed.0.iter().find(|cpu| ![a, b].contains(cpu));
    let sharer = third.filter(|_| state == CacheLineState::Shared).map(u32::to_string);
    let state_of = match state {
        CacheLineState::Modified => "modified by another core",
        CacheLineState::Exclusive => "loaded by another core alone",
        CacheLineState::Shared => "loaded by two other cores",
    };
    let class = (a != b).then_some(class.word());
    let title =
        format!("line {state_of}{} {a}-{b}", class.map_or(String::new(), |class| format!(", {class}")));
    let line = LineStateSettings { pair: format!("{a}-{b}"), state, sharer, class: class.map(str::to_owned) };
    LINE_STATE.make_point(line, title, row)
}

fn run_line_loads(bench: &mut Bench) -> Result<()> {
    if bench.cpus().len() > 1 {
        placement::warm_up_cpus(bench);
    }
    for (index, line) in bench.settings::<LineStateSettings>()?.iter().enumerate() {
        let measured = measure_point(bench, index, line);
        close_failed(bench, &[index], measured, placement::REMEDY);
    }
    threads::pin(bench.cpus()[0])
}

fn measure_point(bench: &mut Bench, index: usize, line: &LineStateSettings) -> Result<()> {
    let (here, there) = cpus_of(&line.pair)?;
    if here == there {
        available::lacks_a_cpu(bench, index);
        return Ok(());
    }
    if line.state == CacheLineState::Shared && line.sharer.is_none() {
        let reason =
            "it takes three CPUs, one that loads and two that share the line, and this run may use two";
        bench.unsupported(index, reason, "allow a third CPU (--cpus, taskset, the cgroup's cpuset)");
        return Ok(());
    }
    // The memory is on the node of the CPU that touches it first.
    threads::pin(here)?;
    let mut region = MemoryRegion::new(LINES * PAGE, RegionPageSize::Huge)?;
    page_size_doubt(&region, RegionPageSize::Huge)
        .iter()
        .for_each(|doubt| doubt.degrade_points(bench, &[index]));
    let cycle = cycle(&mut region, bench.seed());
    if line.state != CacheLineState::Modified && !cycle.flush() {
        bench.unsupported(index, "no program may take a line out of all caches on this architecture", "");
        return Ok(());
    }
    let mut others = vec![there];
    others.extend(line.sharer.as_ref().and_then(|cpu| cpu.parse::<u32>().ok()));
    let taken = measure_loads(bench, &cycle, line.state, &others)?;
    report_loads(bench, index, line, &taken);
    Ok(())
}

/// Returns a walk of all lines. A region of large pages may be longer than was asked for.
fn cycle(region: &mut MemoryRegion, seed: u64) -> SharedCycle<'_> {
    SharedCycle::page_order(&mut region.links()[..LINES * PAGE / size_of::<usize>()], PAGE, LINE, seed)
}

/// Measured times of a point.
#[derive(Debug, Default)]
struct LineLoadTimes {
    /// Time of a load in each undisturbed walk, ns, and the stamp at its begin.
    clean: Vec<(f64, u64)>,
    /// The same of walks beside which something else ran.
    disturbed: Vec<(f64, u64)>,
    /// Time of a load in the same walk right afterwards, from the own cache, ns, where nothing disturbed that one.
    own: Vec<f64>,
    /// The same of walks from the own cache beside which something else ran.
    own_disturbed: Vec<f64>,
}

fn report_loads(bench: &mut Bench, index: usize, line: &LineStateSettings, taken: &LineLoadTimes) {
    let nothing_clean = taken.clean.is_empty();
    let walks = if nothing_clean { &taken.disturbed } else { &taken.clean };
    bench.batch_means(index, LINES as u64, walks, nothing_clean);
    // A disturbed control is shown, and says nothing about where the lines were.
    let is_known = !taken.own.is_empty();
    let own = median(if is_known { &taken.own } else { &taken.own_disturbed });
    let Some((load, own)) = bench.median(index).zip(own) else { return };
    bench.add_value(index, "own-cache", own, "ns", Better::Neither);
    let siblings = line.class.as_deref() == Some(CpuPairClass::Siblings.word());
    if is_known && !siblings && is_own_cache(load, own) {
        let reason = format!(
            "a load took {load:.1} ns, and {own:.1} ns when the core had the line itself: the two CPUs share a cache, or the \
             other one had lost the lines"
        );
        bench.degrade(index, "own-cache", reason, "choose CPUs of different cores (--cpus)");
    }
}

/// Returns true if loads of lines of another core take no longer than those of lines in the own cache.
fn is_own_cache(load: f64, own: f64) -> bool {
    load < ELSEWHERE * own
}

/// Orders to a thread that gets the lines: odd numbers begin a sample, even ones end it.
#[repr(align(128))]
#[derive(Default)]
struct LineStateOrder {
    number: AtomicU64,
    done: AtomicU64,
    /// True if something else ran on the CPU of the thread during the sample.
    disturbed: AtomicBool,
}

/// Number of an order after which none comes.
const OVER: u64 = u64::MAX;

/// Looks at a word before a thread lets others run.
const LOOKS: u32 = 20_000;

impl LineStateOrder {
    /// Gives an order and waits until it is done.
    fn give_order(&self, number: u64) {
        self.number.store(number, Release);
        wait_until(|| self.done.load(Acquire) == number);
    }

    /// Waits for an order other than the last.
    fn wait_for_order(&self, last: u64) -> u64 {
        wait_until(|| self.number.load(Acquire) != last);
        self.number.load(Acquire)
    }
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let mut looks = 0;
    while !condition() {
        looks += 1;
        if looks % LOOKS == 0 {
            std::thread::yield_now();
        }
    }
}

/// Ends the threads of all orders when dropped, also by an error.
struct Dismissal<'a>(&'a [LineStateOrder]);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|order| order.number.store(OVER, Release));
    }
}

/// Starts the threads that get the lines, and measures.
fn measure_loads(
    bench: &Bench,
    cycle: &SharedCycle,
    state: CacheLineState,
    others: &[u32],
) -> Result<LineLoadTimes> {
    let (timebase, stop) = (bench.timebase(), bench.stop());
    let orders: Vec<LineStateOrder> = others.iter().map(|_| LineStateOrder::default()).collect();
    std::thread::scope(|scope| {
        let _dismissal = Dismissal(&orders);
        for (cpu, order) in others.iter().zip(&orders) {
            threads::start_in(scope, *cpu, move || follow_orders(cycle, order, state, timebase))?;
        }
        Ok(lead(cycle, &orders, state, (timebase, stop), || bench.is_stopping()))
    })
}

/// Loads the lines again and again after the others got them. The first sample brings code and page tables into the
/// caches and is not kept.
fn lead(
    cycle: &SharedCycle,
    orders: &[LineStateOrder],
    state: CacheLineState,
    (timebase, stop): (Timebase, Stop),
    is_over: impl Fn() -> bool,
) -> LineLoadTimes {
    let clock = timebase.clock();
    let (begun, limit) = (Instant::now(), Duration::from_nanos(stop.limit_ns));
    let mut taken = LineLoadTimes::default();
    let mut spent = 0.0;
    for sample in 0_u64.. {
        if state != CacheLineState::Modified {
            cycle.flush();
        }
        orders.iter().for_each(|order| order.give_order(2 * sample + 1));
        let watch = DisturbanceWatch::watch_thread();
        let start = clock.stamp_start();
        cycle.walk_lines();
        let ns = timebase.interval_ns(clock.stamp_end() - start);
        let mut bad = watch.disturbed(ns);
        for order in orders {
            order.give_order(2 * sample + 2);
            bad |= order.disturbed.load(Relaxed);
        }
        let watch = DisturbanceWatch::watch_thread();
        let again = clock.stamp_start();
        cycle.walk_lines();
        let own = timebase.interval_ns(clock.stamp_end() - again);
        let own_bad = watch.disturbed(own);
        if sample > 0 {
            if bad { &mut taken.disturbed } else { &mut taken.clean }.push((ns / cycle.len() as f64, start));
            if own_bad { &mut taken.own_disturbed } else { &mut taken.own }.push(own / cycle.len() as f64);
            spent += if bad { 0.0 } else { ns };
        }
        let enough = taken.clean.len() as u64 >= stop.samples || spent >= stop.budget_ns as f64;
        if is_over() || (sample > 0 && (enough || begun.elapsed() > limit)) {
            break;
        }
    }
    taken
}

/// Gets the lines at each odd order and says at each even one whether it was disturbed since.
fn follow_orders(cycle: &SharedCycle, order: &LineStateOrder, state: CacheLineState, timebase: Timebase) {
    let clock = timebase.clock();
    let (mut last, mut opened, mut watch) = (0, clock.stamp_start(), DisturbanceWatch::watch_thread());
    loop {
        last = order.wait_for_order(last);
        if last == OVER {
            return;
        }
        if last % 2 == 1 {
            (opened, watch) = (clock.stamp_start(), DisturbanceWatch::watch_thread());
            if state == CacheLineState::Modified { cycle.write_lines() } else { cycle.read_lines() }
        } else {
            order.disturbed.store(watch.disturbed(timebase.interval_ns(clock.stamp_end() - opened)), Relaxed);
        }
        order.done.store(last, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::machines;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    fn planned(machine: &Machine) -> Vec<MeasurementPoint> {
        LINE_STATE.plan(&PlanInput { survey: false, ..harness::input() }, machine)
    }

    #[test]
    fn each_class_of_pairs_has_a_row_of_each_state() {
        let points = planned(&machines::two_packages());
        assert_eq!(points.len(), 3 * SURVEYED);
        assert_eq!(points.iter().filter(|point| point.row).count(), 3 * 4);
        let shared = points.iter().find(|point| point.text_param("state") == "shared").unwrap();
        assert!(
            !shared.text_param("pair").split('-').any(|cpu| cpu == shared.text_param("sharer")),
            "{shared:?}"
        );
        let title = &points.iter().find(|point| point.text_param("pair") == "0-192").unwrap().title;
        assert_eq!(title, "line modified by another core, threads of a core 0-192");
    }

    #[test]
    fn one_cpu_is_refused_and_two_have_no_third_that_shares() {
        let alone = Machine { allowed: "5".parse().unwrap(), ..Machine::default() };
        let points = planned(&alone);
        assert_eq!((points.len(), points[0].text_param("pair")), (3, "5-5"));
        let reasons = harness::measure(&EXPERIMENT, points);
        assert!(
            reasons.iter().all(|m| m.joined_reasons().as_ref().unwrap().contains("two CPUs")),
            "{reasons:?}"
        );
        let two = Machine { allowed: "0-1".parse().unwrap(), ..Machine::default() };
        assert!(planned(&two).iter().all(|point| !point.params.contains_key("sharer")));
    }

    #[test]
    fn lines_of_each_state_are_loaded() {
        let cpus = harness::machine().allowed.0.len();
        for m in harness::measure(&EXPERIMENT, planned(&harness::machine())) {
            harness::check(&m);
            let needed = if m.has_param_value("state", "shared") { 3 } else { 2 };
            assert_eq!(m.quality.level == QualityLevel::Unsupported, cpus < needed, "{m:?}");
            assert_eq!(m.values.contains_key("own-cache"), cpus >= needed);
        }
    }

    #[test]
    fn a_load_as_quick_as_one_of_the_own_cache_is_told_from_a_slower_one() {
        assert!(is_own_cache(1.9, 1.8) && is_own_cache(1.0, 1.8));
        assert!(!is_own_cache(60.0, 1.8));
    }

    #[test]
    fn a_walk_has_as_many_loads_as_it_is_divided_by() {
        let mut region = MemoryRegion::new(LINES * PAGE, RegionPageSize::Huge).unwrap();
        assert_eq!(cycle(&mut region, 1).len(), LINES);
    }

    #[test]
    fn a_third_thread_takes_part_where_lines_are_shared() {
        let (timebase, _) = Timebase::calibrate();
        let mut memory = vec![0_usize; LINES * PAGE / size_of::<usize>()];
        let cycle = SharedCycle::page_order(&mut memory, PAGE, LINE, 1);
        let orders = [LineStateOrder::default(), LineStateOrder::default()];
        let taken = std::thread::scope(|scope| {
            let _dismissal = Dismissal(&orders);
            for order in &orders {
                let cycle = &cycle;
                scope.spawn(move || follow_orders(cycle, order, CacheLineState::Shared, timebase));
            }
            lead(&cycle, &orders, CacheLineState::Shared, (timebase, harness::STOP), || false)
        });
        let walks = taken.clean.len() + taken.disturbed.len();
        assert!(walks > 0 && walks == taken.own.len() + taken.own_disturbed.len());
        let last = 2 * (walks as u64 + 1);
        assert!(orders.iter().all(|order| order.done.load(Relaxed) == last));
    }
}
