//! STREAM: what memory carries in loops over arrays of floating-point numbers.

use super::sizes::{self, KIB, MIB};
use super::{regions, thread_group};
use crate::{Cpus, Experiment, Kind, Param, PlanInput, Probe, Profile};
use anyhow::Result;
use latscope_bench::bench::{Batch, Bench};
use latscope_core::machine::Machine;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::{Semantics, Work};
use latscope_core::units::format_size;
use latscope_os::kernels::stream::{self, Stream};
use latscope_os::memory::Region;
use std::hint::black_box;

/// One element of a STREAM loop.
pub static STREAM: Probe = Probe {
    id: "memory.stream",
    title: "STREAM, per element",
    timed: "One element of a pass over arrays of 8-byte floating-point numbers by vectors with ordinary stores; with several threads, until the slowest is done, divided by the elements of all.",
    times: Semantics::Operation,
    source: "STREAM (McCalpin): copy c = a, scale b = s*c, add c = a + b, triad a = b + s*c",
    params: &[
        Param {
            name: "operation",
            help: "Which of the loops.",
            kind: Kind::Choice(&OPERATIONS),
            axis: false,
        },
        Param {
            name: "size",
            help: "Bytes of each array, of all threads together.",
            kind: Kind::Size,
            axis: false,
        },
        Param {
            name: "threads",
            help: "Threads, one on each CPU, each with its part of the arrays.",
            kind: Kind::Number,
            axis: false,
        },
    ],
    experiment: &EXPERIMENT,
    revision: 1,
    plan,
};

static EXPERIMENT: Experiment =
    Experiment { name: "memory.stream", cpus: Cpus::All, scratch: false, policy: Policy::Other, run };

const OPERATIONS: [&str; 4] = ["copy", "scale", "add", "triad"];

/// The largest array in a survey: three of them have to be made.
const SURVEY_CAP: u64 = 128 * MIB;
/// A thread works through its part in pieces of so many bytes of each array.
const PIECE: u64 = 64 * KIB;
/// Elements between one array and the next: no load looks like one of the
/// stores just before it, in the lower bits of its address.
const GAP: usize = 1408 / size_of::<f64>();
const ELEMENT: u64 = size_of::<f64>() as u64;
const SCALAR: f64 = 3.0;

fn plan(input: &PlanInput, machine: &Machine) -> Vec<Point> {
    let quick = input.survey && input.profile == Profile::Quick;
    let beyond = sizes::beyond_caches(machine);
    let size = match (input.survey, quick) {
        (true, true) => beyond.min(SURVEY_CAP / 2),
        (true, false) => beyond.min(SURVEY_CAP),
        (false, _) => beyond,
    };
    let threads = if quick { vec![1] } else { thread_group::thread_counts(machine.allowed.0.len()) };
    let operations: &[&str] = if quick { &["triad"] } else { &OPERATIONS };
    let mut points = Vec::new();
    for threads in input.numbers("threads", &threads) {
        for operation in input.choices("operation", operations, &OPERATIONS) {
            for size in input.numbers("size", &[size]) {
                let unit = PIECE * threads.max(1);
                points.push(point((size / unit).max(1) * unit, &operation, threads));
            }
        }
    }
    points
}

fn point(size: u64, operation: &str, threads: u64) -> Point {
    let params =
        params([("operation", operation.into()), ("size", size.into()), ("threads", threads.into())]);
    let threads = if threads == 1 { String::new() } else { format!(", {threads} threads") };
    let title = format!("STREAM {operation}, {}{threads}", format_size(size));
    STREAM.point(params, title, operation == "triad" && threads.is_empty())
}

fn kind(point: &Point) -> Stream {
    Stream::from_name(point.text("operation")).unwrap_or(Stream::Triad)
}

fn run(bench: &mut Bench) -> Result<()> {
    let points = bench.points();
    let cpus = bench.cpus().to_vec();
    let affordable = thread_group::affordable(bench);
    let part = |index: &usize| points[*index].number("size") / points[*index].number("threads");
    let bytes: Vec<usize> = (0..cpus.len() as u64)
        .map_while(|i| affordable.iter().filter(|p| points[**p].number("threads") > i).map(part).max())
        .map(|bytes| 3 * (bytes as usize + GAP * size_of::<f64>()))
        .collect();
    let mut regions = match regions::for_threads(&cpus, &bytes) {
        Ok(regions) => regions,
        Err(error) => {
            for index in affordable {
                bench.unsupported(index, format!("{error:#}"), "choose a smaller --size, or free memory");
            }
            return Ok(());
        }
    };
    // Words that a region was touched with are tiny numbers, slow to compute with.
    regions.iter_mut().for_each(|region| region.floats().fill(1.0));
    regions::doubts(&regions).into_iter().for_each(|doubt| doubt.tell(bench, &affordable));
    for index in affordable {
        measure(bench, index, &cpus, &mut regions)?;
    }
    Ok(())
}

fn measure(bench: &mut Bench, index: usize, cpus: &[u32], regions: &mut [Region]) -> Result<()> {
    let point = &bench.points()[index];
    let (kind, threads) = (kind(point), point.number("threads") as usize);
    let elements = (point.number("size") / threads as u64 / ELEMENT) as usize;
    let events = regions[..threads].iter_mut().map(|region| {
        let mut arrays = Arrays::new(region.floats(), elements);
        move |n| (0..n).for_each(|_| arrays.piece(kind))
    });
    let work =
        Work { ops: 1, bytes_touched: kind.bytes_per_element(), bytes_moved: kind.bytes_per_element_moved() };
    let ops = PIECE / ELEMENT * threads as u64;
    let batch = Batch { ops, work: Some(work), cycles: threads == 1, ..Batch::default() };
    let events = events.collect();
    thread_group::measure(bench, index, batch, cpus, events)
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

    fn piece(&mut self, kind: Stream) {
        let length = (PIECE / ELEMENT) as usize;
        let piece = self.next..self.next + length;
        self.next = if piece.end + length > self.to.len() { 0 } else { piece.end };
        let done =
            stream::run(kind, &mut self.to[piece.clone()], &self.x[piece.clone()], &self.y[piece], SCALAR);
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
        let input = PlanInput { profile: Profile::Normal, ..harness::input() };
        let points = plan(&input, &machine());
        assert_eq!(points.len(), 8);
        let rows: Vec<&str> = points.iter().filter(|p| p.row).map(|p| p.title.as_str()).collect();
        assert_eq!(rows, ["STREAM triad, 128 MiB"]);
        assert_eq!(plan(&harness::input(), &machine()).len(), 1);
    }

    #[test]
    fn a_pass_computes_the_loop_over_whole_arrays() {
        let elements = 2 * (PIECE / ELEMENT) as usize;
        let mut memory = vec![2.0; 3 * (elements + GAP)];
        let mut arrays = Arrays::new(&mut memory, elements);
        (0..3).for_each(|_| arrays.piece(Stream::Triad));
        assert_eq!(arrays.next, elements / 2);
        assert!(arrays.to.iter().all(|value| *value == 2.0 + SCALAR * 2.0));
        assert_eq!(memory[elements], 2.0);
    }

    #[test]
    fn all_loops_are_measured_and_count_bytes_both_ways() {
        let mut input = PlanInput { profile: Profile::Normal, ..harness::input() };
        input.values.insert("size".into(), vec![ParamValue::Number(MIB)]);
        let measured = harness::measure(&EXPERIMENT, plan(&input, &harness::machine()));
        measured.iter().for_each(harness::check);
        let triad = measured.iter().find(|m| m.params["operation"] == "triad".into()).unwrap();
        assert_eq!(triad.work, Some(Work { ops: 1, bytes_touched: 24, bytes_moved: 32 }));
    }
}
