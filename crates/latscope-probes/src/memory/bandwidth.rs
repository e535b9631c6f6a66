//! Bandwidth of the caches and the memory, by operation, step, size and number of threads.

use super::nodes::{self, NodePairSettings};
use super::sizes::{self, KIB, LINE, MIB};
use super::thread_group;
use super::traffic::{MemoryTraffic, STRIP};
use crate::prelude::*;
use latscope_os::kernels::bandwidth::{self, BLOCK_BYTES, BandwidthStride, Operation, Width};

probes! {
    EXPERIMENT, MemoryTransferSettings, plan_bandwidth, ..ProbeFacts::LOOPS;
    BANDWIDTH "memory.bandwidth", "memory bandwidth, per line of 64 bytes",
        "LMbench's bw_mem counts alike; write-allocation: the processor's manual",
        "One line of 64 bytes of a pass over a region, of which each byte (or 4 of every 16) is read, written, \
        doubled or copied by the widest vectors; of several threads until the slowest is done, divided by the \
        lines of all. Bytes moved are whole lines, with the fetch before a write."
        { may_be_zero: nodes::MAY_BE_ZERO, footprint, exclusive_cpus: ExclusiveCpus::Threads, subject: Subject::Many,
          sensitive_to: &[Condition::TwoCpus], };
}

settings! {
    /// Operation, and memory that it works on.
    struct MemoryTransferSettings, requested as MemoryTransferRequest {
        /// Bytes that all threads together work on; a copy is from one half to the other.
        size: u64 as Size, axis;
        /// `modify` doubles each element in place; `non-temporal-write` goes past the caches; the mixes double some
        /// lines in place and read the others, in strips of 4 KiB, so that memory reads two or three lines for each
        /// that it writes.
        operation: MemoryTraffic;
        /// Every element; or every fourth integer of 32 bits, which fetches just as many lines; or, where asked for,
        /// each integer by itself.
        step: BandwidthStride;
        /// Threads, one on each CPU, each with memory of its own.
        threads: u64, axis;
        ..between: NodePairSettings;
    }
}

static EXPERIMENT: Experiment =
    Experiment::new("memory.bandwidth", Cpus::All, run_bandwidth).fewer_rounds(3, super::LARGE);

/// Largest working set in a survey or a quick run.
const SURVEY_CAP: u64 = 256 * MIB;

/// Bytes of a piece. A thread works through its memory in pieces, so that a batch is short for any size.
const PIECE: u64 = 256 * KIB;

/// Words between the halves of a copy: half of a page, so that no load looks
/// like one of the stores just before it.
const GAP: usize = 2048 / size_of::<u64>();

/// Operations of a quick survey, and of the survey's rows.
const QUICK: [MemoryTraffic; 3] = [MemoryTraffic::Read, MemoryTraffic::Write, MemoryTraffic::Copy];

fn footprint(params: &Params) -> Option<Footprint> {
    let transfer = MemoryTransferSettings::from_params(params)?;
    Some(Footprint::of_threads(transfer.size, transfer.threads))
}

fn plan_bandwidth(_: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    if nodes::are_asked(input) {
        return between_nodes(input, machine);
    }
    let quick = input.survey && input.profile == SurveyProfile::Quick;
    let operations: &[MemoryTraffic] = if quick { &QUICK } else { &MemoryTraffic::USUAL };
    let asked = MemoryTransferRequest::of(input);
    let threads = if quick { vec![1] } else { thread_group::thread_counts(machine.allowed.0.len()) };
    let mut points = Vec::new();
    for threads in asked.threads.or(&threads) {
        for operation in asked.operation.or(operations) {
            // In a survey one thread shows what the steps cost.
            let only_every = input.profile == SurveyProfile::Quick || input.survey && threads > 1;
            let steps = [BandwidthStride::Every, BandwidthStride::EveryFourth];
            for step in asked.step.or(&steps[..if only_every { 1 } else { 2 }]) {
                for (size, place) in sizes_for(input, machine, threads.max(1)) {
                    let between = NodePairSettings::default();
                    points.push(make_point(
                        &place,
                        MemoryTransferSettings { size, operation, step, threads, between },
                    ));
                }
            }
        }
    }
    points
}

/// Points for each pair of nodes that is asked for, by all CPUs of a node unless a number of threads is.
fn between_nodes(input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let asked = MemoryTransferRequest::of(input);
    let mut points = Vec::new();
    for operation in asked.operation.or(MemoryTraffic::ALL) {
        for step in asked.step.or(&[BandwidthStride::Every]) {
            for size in asked.size.or(&[nodes::pair_size(machine, SURVEY_CAP)]) {
                for between in nodes::requested_pairs(input, machine, None) {
                    let all = between.cpus().len() as u64;
                    for threads in asked.threads.or(&[all]) {
                        let size = thread_share(size, threads.max(1)) * threads.max(1);
                        let between = between.clone();
                        if size > 0 {
                            points.push(make_point(
                                "",
                                MemoryTransferSettings { size, operation, step, threads, between },
                            ));
                        }
                    }
                }
            }
        }
    }
    points
}

/// Sizes for all threads together, in whole pieces for each thread; each with the name of the level that holds
/// it.
fn sizes_for(input: &PlanInput, machine: &Machine, threads: u64) -> Vec<(u64, String)> {
    let beyond = sizes::beyond_caches(machine);
    let asked = MemoryTransferRequest::of(input).size;
    let mut sizes = if asked.given() {
        asked.or(&[]).into_iter().map(|size| (size, String::new())).collect()
    } else if input.survey {
        levels(machine, threads)
    } else {
        let beyond = if sizes::is_capped(input) { beyond.min(SURVEY_CAP) } else { beyond };
        let per_octave = if input.profile == SurveyProfile::Quick { 1 } else { 2 };
        let curve = sizes::sweep(4 * KIB * threads, beyond.max(4 * KIB * threads), per_octave);
        curve.into_iter().map(|size| (size, String::new())).collect()
    };
    for (size, _) in &mut sizes {
        *size = thread_share(*size, threads) * threads;
    }
    sizes.retain(|(size, _)| *size > 0);
    sizes.dedup_by_key(|(size, _)| *size);
    sizes
}

/// Half of each declared cache, and the largest size of a survey: memory, unless a cache is declared larger. Of a cache
/// that has about as much in either there is one size.
fn levels(machine: &Machine, threads: u64) -> Vec<(u64, String)> {
    let largest = sizes::beyond_caches(machine).min(SURVEY_CAP);
    let mut levels = sizes::inside_caches(machine, threads);
    levels.retain(|(size, _)| 2 * size <= largest);
    let inside = sizes::place_in_caches(machine, largest);
    levels.push((largest, if inside.is_empty() { "memory".to_owned() } else { inside }));
    levels
}

/// Bytes of one thread: whole pieces, or for less than a piece a whole number of blocks in each half; 0 for less than
/// these.
fn thread_share(size: u64, threads: u64) -> u64 {
    let unit = if size / threads >= PIECE { PIECE } else { 2 * BLOCK_BYTES as u64 };
    size / threads / unit * unit
}

fn make_point(place: &str, transfer: MemoryTransferSettings) -> MeasurementPoint {
    let MemoryTransferSettings { size, operation, step, threads, .. } = transfer;
    let is_largest = place == "memory" || place.contains("in the declared");
    let row = is_largest && step == BandwidthStride::Every && threads == 1 && QUICK.contains(&operation);
    let mut title = format!("{} 64 B", operation.word().replace('-', " "));
    title += &match place {
        "" => format!(", {}", format_size(size)),
        place => format!(", {place}, {}", format_size(size)),
    };
    title += match step {
        BandwidthStride::Every => "",
        BandwidthStride::EveryFourth => ", every fourth integer",
        BandwidthStride::EachInteger => ", integer by integer",
    };
    if threads != 1 {
        title += &format!(", {threads} threads");
    }
    title += &transfer.between.title_suffix();
    BANDWIDTH.make_point(transfer, title, row)
}

fn run_bandwidth(bench: &mut Bench) -> Result<()> {
    let transfers: Vec<MemoryTransferSettings> = bench.settings()?;
    let (between, here): (Vec<usize>, Vec<usize>) =
        (0..transfers.len()).partition(|index| transfers[*index].between.node().is_some());
    for index in &between {
        measure_between(bench, *index, &transfers[*index])?;
    }
    if !between.is_empty() {
        threads::pin(bench.cpus()[0])?;
    }
    if here.is_empty() {
        return Ok(());
    }
    let all = transfers.iter().enumerate();
    let wanted: Vec<(usize, u64, u64)> =
        all.map(|(index, asked)| (index, asked.threads, asked.size)).collect();
    let (mut regions, possible) =
        thread_group::regions(bench, RegionPageSize::Huge, &wanted, |part| part + 2 * GAP * size_of::<u64>());
    let cpus = bench.cpus().to_vec();
    for index in possible.into_iter().filter(|index| here.contains(index)) {
        measure_transfer(bench, index, &transfers[index], &cpus, &mut regions)?;
    }
    Ok(())
}

/// Measures a transfer between nodes, in memory of its own.
fn measure_between(bench: &mut Bench, index: usize, transfer: &MemoryTransferSettings) -> Result<()> {
    let cpus = transfer.between.cpus();
    let threads = transfer.threads as usize;
    if !(1..=cpus.len()).contains(&threads) {
        let reason = too_few_cpus(threads as u64, "thread", cpus.len() as u64, "on the node");
        bench.unsupported(index, reason, "give fewer --threads");
        return Ok(());
    }
    let bytes = vec![transfer.size as usize / threads + 2 * GAP * size_of::<u64>(); threads];
    let made = nodes::regions(bench, vec![index], &transfer.between, RegionPageSize::Huge, &bytes);
    let Some((mut regions, placed)) = made else { return Ok(()) };
    if !placed.is_empty() && nodes::go_to(bench, index, &transfer.between) {
        measure_transfer(bench, index, transfer, &cpus, &mut regions)?;
    }
    Ok(())
}

fn measure_transfer(
    bench: &mut Bench,
    index: usize,
    transfer: &MemoryTransferSettings,
    cpus: &[u32],
    regions: &mut [MemoryRegion],
) -> Result<()> {
    let threads = transfer.threads as usize;
    let words = transfer.size as usize / threads / size_of::<u64>();
    if transfer.size / transfer.threads < transfer.operation.mix_bytes() {
        let reason = format!("a mix takes {} for each thread", format_size(transfer.operation.mix_bytes()));
        bench.unsupported(index, reason, "choose a larger --size");
        return Ok(());
    }
    let passes: Vec<BufferSweep> = regions[..threads]
        .iter_mut()
        .map(|region| BufferSweep::new(transfer, region.words(), words))
        .collect();
    let lines = passes[0].line_count() * threads as u64;
    // Once through all of it, as far as caches can hold it.
    let warm = passes[0].piece_count().min(64);
    let work = Some(transfer.operation.operation_work(transfer.step));
    let batch = Batch { ops: lines, work, cycles: threads == 1, warm, ..Batch::default() };
    let events = passes.into_iter().map(|mut pass| move |n| (0..n).for_each(|_| pass.piece())).collect();
    thread_group::measure_on(bench, index, cpus, batch, events)
}

/// A walk through a thread's memory, piece by piece, over and over.
struct BufferSweep<'a> {
    operation: MemoryTraffic,
    step: BandwidthStride,
    /// The memory; for a copy its second half.
    destination: &'a mut [u64],
    /// First half of the memory, for a copy.
    source: &'a mut [u64],
    /// Words in a piece.
    piece: usize,
    /// Passes over a piece that is all of the memory.
    passes: u64,
    width: Width,
    next: usize,
}

impl<'a> BufferSweep<'a> {
    /// A walk through the first `words` words of `memory`, for a copy with a gap
    /// between the halves.
    fn new(transfer: &MemoryTransferSettings, memory: &'a mut [u64], words: usize) -> BufferSweep<'a> {
        let MemoryTransferSettings { operation, step, .. } = *transfer;
        let halves = if operation == MemoryTraffic::Copy { 2 } else { 1 };
        let whole = words / halves;
        let full = PIECE as usize / halves / size_of::<u64>();
        // A piece has the whole mix some times.
        let mixed = (operation.mix_bytes() as usize / size_of::<u64>()).max(1);
        let piece = whole.min(full) / mixed * mixed;
        // So short that a call and its return would count.
        let passes = (full / piece) as u64;
        let (source, rest) = memory.split_at_mut(if halves == 2 { whole } else { 0 });
        let gap = if halves == 2 { GAP } else { 0 };
        let destination = &mut rest[gap..gap + whole];
        BufferSweep { operation, step, destination, source, piece, passes, width: Width::widest(), next: 0 }
    }

    fn line_count(&self) -> u64 {
        (self.piece * size_of::<u64>()) as u64 / LINE * self.passes
    }

    fn piece_count(&self) -> u64 {
        (self.destination.len() / self.piece) as u64
    }

    fn piece(&mut self) {
        let range = self.next..self.next + self.piece;
        self.next = if range.end + self.piece > self.destination.len() { 0 } else { range.end };
        let operation = self.operation.operation();
        if self.operation.reads() > 0 {
            let strips = self.operation.mix_bytes() as usize / STRIP as usize;
            for _ in 0..self.passes {
                mix(&mut self.destination[range.clone()], strips, self.step, self.width);
            }
            return;
        }
        let run = |destination: &mut [u64], source: &[u64]| {
            bandwidth::run_passes(operation, self.step, self.width, destination, source, self.passes)
        };
        black_box(match operation {
            // The kernel of a read takes a source.
            Operation::Read => run(&mut [], &self.destination[range]),
            Operation::Copy => run(&mut self.destination[range.clone()], &self.source[range]),
            _ => run(&mut self.destination[range], &[]),
        });
    }
}

/// Doubles the last of every few strips of memory in place and reads the others.
fn mix(memory: &mut [u64], strips: usize, step: BandwidthStride, width: Width) {
    let words = STRIP as usize / size_of::<u64>();
    for stretch in memory.chunks_exact_mut(strips * words) {
        let (read, doubled) = stretch.split_at_mut((strips - 1) * words);
        black_box(bandwidth::run_passes(Operation::Read, step, width, &mut [], read, 1));
        bandwidth::run_passes(Operation::Modify, step, width, doubled, &[], 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizes::tests::machine;
    use super::*;
    use latscope_core::plan::ParamValue;
    use latscope_core::report::OperationWork;
    use latscope_engine::harness;

    fn input(profile: SurveyProfile, survey: bool) -> PlanInput {
        PlanInput { profile, survey, ..PlanInput::default() }
    }

    #[test]
    fn a_survey_measures_half_of_each_cache_and_memory() {
        let points = BANDWIDTH.plan(&input(SurveyProfile::Normal, true), &machine());
        assert_eq!(points.len(), 5 * 2 * 4 + 5 * 4);
        let sizes = |threads| {
            let chosen = points.iter().filter(|p| {
                p.numeric_param("threads") == threads
                    && p.text_param("operation") == "copy"
                    && p.text_param("step") == "every"
            });
            chosen.map(|p| p.numeric_param("size")).collect::<Vec<_>>()
        };
        assert_eq!(sizes(1), [16 * KIB, 512 * KIB, 16 * MIB, 128 * MIB]);
        assert_eq!(sizes(4), [64 * KIB, 2 * MIB, 16 * MIB, 128 * MIB]);
        assert_eq!(rows(&points), ["read", "write", "copy"].map(|o| format!("{o} 64 B, memory, 128 MiB")));
    }

    fn rows(points: &[MeasurementPoint]) -> Vec<&str> {
        points.iter().filter(|p| p.row).map(|p| p.title.as_str()).collect()
    }

    /// A guest sees the size of its host's whole cache.
    #[test]
    fn no_row_is_of_memory_where_a_cache_is_declared_larger_than_a_survey_can_afford() {
        for (declared, place) in
            [(480, "in the declared L3"), (200, "partly in the declared L3"), (128, "memory")]
        {
            let mut machine = machine();
            machine.caches.last_mut().unwrap().size = declared * MIB;
            for profile in [SurveyProfile::Quick, SurveyProfile::Normal] {
                let points = BANDWIDTH.plan(&input(profile, true), &machine);
                let expected = ["read", "write", "copy"].map(|o| format!("{o} 64 B, {place}, 256 MiB"));
                assert_eq!(rows(&points), expected);
                let reads = points.iter().filter(|p| p.row && p.text_param("operation") == "read");
                let same = |p: &&MeasurementPoint| {
                    p.text_param("operation") == "read" && p.numeric_param("size") > 128 * MIB
                };
                let alike = points
                    .iter()
                    .filter(same)
                    .filter(|p| p.numeric_param("threads") == 1 && p.text_param("step") == "every");
                assert_eq!(alike.count(), reads.count(), "one size of about that much");
            }
        }
    }

    #[test]
    fn a_quick_survey_has_the_rows_and_the_caches_of_one_thread() {
        let points = BANDWIDTH.plan(&input(SurveyProfile::Quick, true), &machine());
        assert_eq!(points.len(), 3 * 4);
        assert_eq!(points.iter().filter(|p| p.row).count(), 3);
    }

    #[test]
    fn each_thread_gets_whole_pieces() {
        for threads in [1, 2, 3, 7] {
            for (size, _) in sizes_for(&input(SurveyProfile::Normal, false), &machine(), threads) {
                let share = size / threads;
                assert_eq!(share * threads, size);
                assert!(share % PIECE == 0 || (share < PIECE && share % 1024 == 0), "{share}");
            }
        }
        assert_eq!(
            (thread_share(1, 1), thread_share(5000, 2), thread_share(MIB + 1, 2)),
            (0, 2048, 512 * KIB)
        );
    }

    #[test]
    fn both_ways_to_count_bytes_are_stated() {
        let work = MemoryTraffic::operation_work;
        let read = work(MemoryTraffic::Read, BandwidthStride::Every);
        assert_eq!(read, OperationWork { ops: 1, bytes_touched: 64, bytes_moved: 64 });
        let copy = work(MemoryTraffic::Copy, BandwidthStride::Every);
        assert_eq!(copy, OperationWork { ops: 1, bytes_touched: 64, bytes_moved: 192 });
        let write = work(MemoryTraffic::Write, BandwidthStride::EveryFourth);
        assert_eq!(write, OperationWork { ops: 1, bytes_touched: 16, bytes_moved: 128 });
        assert_eq!(work(MemoryTraffic::NonTemporalWrite, BandwidthStride::Every).bytes_moved, 64);
    }

    #[test]
    fn a_pass_covers_all_of_its_memory_again_and_again() {
        let mut memory = vec![7; 96 * 1024];
        let operation = MemoryTraffic::Write;
        let between = NodePairSettings::default();
        let transfer = MemoryTransferSettings {
            size: 768 * KIB,
            operation,
            step: BandwidthStride::Every,
            threads: 1,
            between,
        };
        let mut pass = BufferSweep::new(&transfer, &mut memory, 96 * 1024);
        assert_eq!((pass.piece_count(), pass.line_count()), (3, 4096));
        (0..4).for_each(|_| pass.piece());
        assert_eq!(pass.next, 32 * 1024);
        let written = memory.iter().filter(|word| **word == 0x1_0000_0001).count();
        // A vector that is not aligned may miss the block at either end of a piece.
        assert!(written >= memory.len() - 3 * 2 * BLOCK_BYTES / 8, "{written}");
    }

    #[test]
    fn every_operation_runs_with_one_thread_and_with_all() {
        let mut input = input(SurveyProfile::Normal, true);
        input.values.insert("size".into(), [16 * KIB, MIB].map(ParamValue::Number).to_vec());
        let points = BANDWIDTH.plan(&input, &harness::machine());
        let measured = harness::measure(&EXPERIMENT, points);
        measured.iter().for_each(harness::check);
        assert!(measured.iter().all(|m| m.work.is_some()));
    }

    #[test]
    fn a_mix_doubles_its_share_of_the_lines() {
        let mut memory = vec![1; 128 * 1024];
        let operation = MemoryTraffic::ThreeReadsAWrite;
        let between = NodePairSettings::default();
        let transfer = MemoryTransferSettings {
            size: MIB,
            operation,
            step: BandwidthStride::Every,
            threads: 1,
            between,
        };
        let mut pass = BufferSweep::new(&transfer, &mut memory, 128 * 1024);
        assert_eq!((pass.line_count() * LINE, pass.piece_count()), (252 * KIB, 4));
        pass.piece();
        let doubled = memory.iter().filter(|word| **word != 1).count() as u64 * 8;
        // Of a strip that is not aligned, a block is left out.
        assert!((72 * KIB..=84 * KIB).contains(&doubled), "{doubled}");
    }

    #[test]
    fn between_nodes_every_mix_is_planned_and_measured_by_all_cpus_of_a_node() {
        let input = nodes::tests::asked(&[("nodes", "all")]);
        let points = BANDWIDTH.plan(&input, &nodes::tests::machine());
        assert_eq!(points.len(), 7 * 6);
        assert!(points.iter().all(|point| point.numeric_param("threads") == 2));
        let input = nodes::tests::asked(&[("nodes", "all"), ("size", "4194304")]);
        let measured = harness::measure(&EXPERIMENT, BANDWIDTH.plan(&input, &harness::machine()));
        assert!(measured.len() >= 7);
        measured.iter().for_each(harness::check);
    }

    #[test]
    fn more_threads_than_cpus_are_refused_by_name() {
        let mut input = input(SurveyProfile::Normal, true);
        input.values.insert("size".into(), vec![ParamValue::Number(16 * KIB)]);
        input.values.insert("threads".into(), vec![ParamValue::Number(100_000)]);
        let measured = harness::measure(&EXPERIMENT, BANDWIDTH.plan(&input, &harness::machine()));
        assert!(measured.iter().all(|m| m.joined_reasons().as_ref().unwrap().contains("100000 threads")));
        measured.iter().for_each(harness::check);
    }
}
