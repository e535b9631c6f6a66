//! STREAM: bandwidth of memory in loops over arrays of floating-point numbers.

use super::sizes::{self, KIB, MIB};
use super::thread_group;
use crate::prelude::*;
use latscope_os::kernels::stream::{self, StreamKernel};

probes! {
    EXPERIMENT, StreamLoopSettings, plan_stream, ..ProbeFacts::LOOPS;
    STREAM "memory.stream", "STREAM, per element",
        "STREAM (McCalpin): copy c = a, scale b = s*c, add c = a + b, triad a = b + s*c",
        "One element of a pass over arrays of 8-byte floating-point numbers by vectors with ordinary stores; of \
        several threads until the slowest is done, divided by the elements of all."
        { footprint, exclusive_cpus: ExclusiveCpus::Threads, subject: Subject::Many,
          sensitive_to: &[Condition::TwoCpus], };
}

settings! {
    /// A loop over how much memory.
    struct StreamLoopSettings, requested as StreamLoopRequest {
        /// Which of the loops.
        operation: StreamKernel;
        /// Bytes of each array, of all threads together.
        size: u64 as Size;
        /// Threads, one on each CPU, each with its part of the arrays.
        threads: u64;
        /// Size of the pages: `4KiB`, where asked for or next to huge ones; 2 MiB, verified, if none is stated.
        pages: Option<RegionPageSize>;
    }
}

static EXPERIMENT: Experiment = Experiment::new("memory.stream", Cpus::All, run_stream)
    .setup_per_point(0.17)
    .fewer_rounds(3, super::LARGE);

/// The largest array in a survey: three of them have to be made.
const SURVEY_CAP: u64 = 128 * MIB;
/// Bytes of each array in a piece; a thread works through its part piece by piece.
const PIECE: u64 = 64 * KIB;
/// Elements between one array and the next, so that no load has the lower address bits of a store just before
/// it.
const GAP: usize = 1408 / size_of::<f64>();
const ELEMENT: u64 = size_of::<f64>() as u64;
const SCALAR: f64 = 3.0;

/// Two arrays or three, as the loop has them.
fn footprint(params: &Params) -> Option<Footprint> {
    let asked = StreamLoopSettings::from_params(params)?;
    let arrays = asked.operation.bytes_per_element() / ELEMENT;
    Some(Footprint::of_threads(arrays * asked.size, asked.threads))
}

fn plan_stream(_: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let quick = input.survey && input.profile == SurveyProfile::Quick;
    let beyond = sizes::beyond_caches(machine);
    let size = match (input.survey, quick) {
        (true, true) => beyond.min(SURVEY_CAP / 2),
        _ if sizes::is_capped(input) => beyond.min(SURVEY_CAP),
        _ => beyond,
    };
    let threads = if quick { vec![1] } else { thread_group::thread_counts(machine.allowed.0.len()) };
    let operations: &[StreamKernel] = if quick { &[StreamKernel::Triad] } else { StreamKernel::ALL };
    let asked = StreamLoopRequest::of(input);
    let mut points = Vec::new();
    for threads in asked.threads.or(&threads) {
        for operation in asked.operation.or(operations) {
            let both = operation == StreamKernel::Triad && threads == 1;
            let usual: &[RegionPageSize] =
                if both { &[RegionPageSize::Huge, RegionPageSize::Base] } else { &[RegionPageSize::Huge] };
            for pages in asked.pages.or(usual) {
                let pages = Some(pages).filter(|pages| *pages != RegionPageSize::Huge);
                for size in sizes::round_sizes(asked.size.or(&[size]), PIECE * threads.max(1)) {
                    points.push(make_point(StreamLoopSettings { operation, size, threads, pages }));
                }
            }
        }
    }
    points
}

fn make_point(asked: StreamLoopSettings) -> MeasurementPoint {
    let StreamLoopSettings { operation, size, threads, pages } = asked;
    let pages = format_size(pages.unwrap_or(RegionPageSize::Huge).bytes());
    let together = if threads == 1 { String::new() } else { format!(", {threads} threads") };
    let title = format!("STREAM {operation}, {}, pages of {pages}{together}", format_size(size));
    STREAM.make_point(asked, title, operation == StreamKernel::Triad && threads == 1)
}

fn run_stream(bench: &mut Bench) -> Result<()> {
    let loops: Vec<StreamLoopSettings> = bench.settings()?;
    for pages in [RegionPageSize::Huge, RegionPageSize::Base] {
        let of_pages = |index: &usize| loops[*index].pages.unwrap_or(RegionPageSize::Huge) == pages;
        let indices: Vec<usize> = (0..loops.len()).filter(of_pages).collect();
        let wanted = indices.iter().map(|index| (*index, loops[*index].threads, loops[*index].size));
        let (mut regions, possible) =
            thread_group::regions(bench, pages, &wanted.collect::<Vec<_>>(), |part| {
                3 * (part + GAP * size_of::<f64>())
            });
        // Words that a region was touched with are tiny numbers, slow to compute with.
        regions.iter_mut().for_each(|region| region.floats().fill(1.0));
        for index in possible {
            measure_kernel(bench, index, &loops[index], &mut regions)?;
        }
    }
    Ok(())
}

fn measure_kernel(
    bench: &mut Bench,
    index: usize,
    asked: &StreamLoopSettings,
    regions: &mut [MemoryRegion],
) -> Result<()> {
    let (kind, threads) = (asked.operation, asked.threads as usize);
    let elements = (asked.size / threads as u64 / ELEMENT) as usize;
    let events = regions[..threads].iter_mut().map(|region| {
        let mut arrays = Arrays::new(region.floats(), elements);
        move |n| (0..n).for_each(|_| arrays.piece(kind))
    });
    let work = OperationWork {
        ops: 1,
        bytes_touched: kind.bytes_per_element(),
        bytes_moved: kind.bytes_per_element_moved(),
    };
    let ops = PIECE / ELEMENT * threads as u64;
    let batch = Batch { ops, work: Some(work), cycles: threads == 1, ..Batch::default() };
    let events = events.collect();
    thread_group::measure_group(bench, index, batch, events)
}

/// A thread's part of the three arrays, worked through piece by piece.
struct Arrays<'a> {
    to: &'a mut [f64],
    x: &'a [f64],
    y: &'a [f64],
    next: usize,
}

impl<'a> Arrays<'a> {
    fn new(memory: &'a mut [f64], elements: usize) -> Arrays<'a> {
        let (to, rest) = memory.split_at_mut(elements + GAP);
        let (x, y) = rest.split_at(elements + GAP);
        Arrays { to: &mut to[..elements], x: &x[..elements], y: &y[..elements], next: 0 }
    }

    fn piece(&mut self, kind: StreamKernel) {
        let length = (PIECE / ELEMENT) as usize;
        let piece = self.next..self.next + length;
        self.next = if piece.end + length > self.to.len() { 0 } else { piece.end };
        let done = stream::run_pass(
            kind,
            &mut self.to[piece.clone()],
            &self.x[piece.clone()],
            &self.y[piece],
            SCALAR,
        );
        black_box(done);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizes::tests::machine;
    use super::*;
    use latscope_core::plan::ParamValue;
    use latscope_engine::harness;

    #[test]
    fn four_loops_with_one_thread_and_with_all() {
        let input = PlanInput { profile: SurveyProfile::Normal, ..harness::input() };
        let points = STREAM.plan(&input, &machine());
        assert_eq!(points.len(), 9);
        let rows: Vec<&str> = points.iter().filter(|p| p.row).map(|p| p.title.as_str()).collect();
        assert_eq!(rows, ["STREAM triad, 128 MiB, pages of 2 MiB", "STREAM triad, 128 MiB, pages of 4 KiB"]);
        assert_eq!(STREAM.plan(&harness::input(), &machine()).len(), 2);
    }

    #[test]
    fn a_pass_computes_the_loop_over_whole_arrays() {
        let elements = 2 * (PIECE / ELEMENT) as usize;
        let mut memory = vec![2.0; 3 * (elements + GAP)];
        let mut arrays = Arrays::new(&mut memory, elements);
        (0..3).for_each(|_| arrays.piece(StreamKernel::Triad));
        assert_eq!(arrays.next, elements / 2);
        assert!(arrays.to.iter().all(|value| *value == 2.0 + SCALAR * 2.0));
        assert_eq!(memory[elements], 2.0);
    }

    #[test]
    fn all_loops_are_measured_and_count_bytes_both_ways() {
        let mut input = PlanInput { profile: SurveyProfile::Normal, ..harness::input() };
        input.values.insert("size".into(), vec![ParamValue::Number(MIB)]);
        let measured = harness::measure(&EXPERIMENT, STREAM.plan(&input, &harness::machine()));
        measured.iter().for_each(harness::check);
        let triad = measured.iter().find(|m| m.has_param_value("operation", "triad")).unwrap();
        assert_eq!(triad.work, Some(OperationWork { ops: 1, bytes_touched: 24, bytes_moved: 32 }));
    }
}
