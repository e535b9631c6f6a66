//! Adding up an array from its beginning to its end: the way most programs use
//! memory, and where the caches hardly show, since prefetchers run ahead.

use super::regions;
use crate::{Cpus, Experiment, Kind, Param, PlanInput, Probe};
use anyhow::Result;
use latscope_bench::bench::{Batch, Bench};
use latscope_core::machine::Machine;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::{Semantics, Work};
use latscope_core::units::three_digits;
use latscope_os::kernels::bandwidth::{sequential_sum, sequential_xor};
use latscope_os::memory::Pages;
use std::hint::black_box;

/// One element of a sum.
pub static SEQUENTIAL_SUM: Probe = Probe {
    id: "memory.sequential-sum",
    title: "sequential sum, per element",
    timed: "One element of 8 bytes of an array that is added up from its beginning to its end, each addition waiting for the one before.",
    times: Semantics::Operation,
    source: "the processor's optimisation manual: hardware prefetching",
    params: &[
        Param { name: "size", help: "Bytes of the array.", kind: Kind::Size, axis: true },
        Param {
            name: "mode",
            help: "What is done with the elements.",
            kind: Kind::Choice(&MODES),
            axis: false,
        },
    ],
    experiment: &EXPERIMENT,
    revision: 1,
    plan,
};

const MODES: [&str; 2] = ["sum", "xor"];

static EXPERIMENT: Experiment =
    Experiment { name: "memory.sequential-sum", cpus: Cpus::One, scratch: false, policy: Policy::Other, run };

/// 50 KB, 500 KB and 5 MB, as in the talk that made the question known.
const SIZES: [u64; 3] = [50_000, 500_000, 5_000_000];

/// The kernels work on blocks of this many bytes, and so leave a few elements
/// at the end out.
const BLOCK: u64 = 512;

const ELEMENT: u64 = size_of::<u64>() as u64;

fn plan(input: &PlanInput, _: &Machine) -> Vec<Point> {
    let mut points = Vec::new();
    for mode in input.choices("mode", &MODES, &MODES) {
        for size in input.numbers("size", &SIZES) {
            let size = size.max(BLOCK);
            let params = params([("size", size.into()), ("mode", mode.as_str().into())]);
            let title = format!("{mode} of {}, an element", decimal(size));
            points.push(SEQUENTIAL_SUM.point(params, title, mode == "sum"));
        }
    }
    points
}

/// A size in decimal units, in which these are round.
fn decimal(bytes: u64) -> String {
    let (value, unit) = match bytes {
        b if b < 1_000_000 => (b as f64 / 1e3, "kB"),
        b => (b as f64 / 1e6, "MB"),
    };
    let digits = if value.fract() == 0.0 { format!("{value}") } else { three_digits(value) };
    format!("{digits} {unit}")
}

fn run(bench: &mut Bench) -> Result<()> {
    let points = bench.points();
    let all = (0..points.len()).collect();
    let Some((mut region, fitting)) = regions::for_points(bench, all, Pages::Base, |p| p.number("size"))
    else {
        return Ok(());
    };
    for index in fitting {
        let point = &points[index];
        let blocks = point.number("size") / BLOCK;
        let array = &region.words()[..(blocks * BLOCK / ELEMENT) as usize];
        let kernel = if point.text("mode") == "sum" { sequential_sum } else { sequential_xor };
        let work = Some(Work { ops: 1, bytes_touched: ELEMENT, bytes_moved: ELEMENT });
        let batch = Batch { ops: array.len() as u64, work, cycles: true, warm: 1, ..Batch::default() };
        bench.batch(index, batch, |n| {
            for _ in 0..n {
                black_box(kernel(array));
            }
        })?;
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
        assert!(measured.iter().all(|m| m.work == Some(Work { ops: 1, bytes_touched: 8, bytes_moved: 8 })));
    }
}
