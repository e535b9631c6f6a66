//! Threads by the standard library, and what a thread adds to a small task.

use super::{PLACEMENT, place};
use crate::{Cpus, Experiment, Kind, Param, PlanInput, Probe};
use anyhow::{Context, Result, ensure};
use latscope_bench::bench::Bench;
use latscope_bench::gate::Gate;
use latscope_core::machine::Machine;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::{Better, Semantics};
use latscope_core::statistics::median;
use latscope_core::units::format_size;
use latscope_os::child::sum;
use latscope_os::clock::Clock;
use latscope_os::thread::{self, Attributes};
use std::hint::black_box;

/// Spawn and join as Rust programs do it.
pub static STD: Probe = Probe {
    id: "thread.std",
    title: "std::thread spawn and join",
    timed: "std::thread::Builder::spawn of a thread that does nothing, and its join.",
    times: Semantics::Operation,
    source: "std::thread",
    params: &[PLACEMENT],
    experiment: &STD_EXPERIMENT,
    revision: 1,
    plan: plan_std,
};

/// A sum in a new thread less the same sum called directly.
pub static OVERHEAD: Probe = Probe {
    id: "thread.overhead",
    title: "a sum in a new thread, overhead",
    timed: "Creating and joining a thread that sums a buffer, less the median time of summing it without a thread.",
    times: Semantics::Operation,
    source: "pthread_create(3), pthread_join(3)",
    params: &[SIZE, PLACEMENT],
    experiment: &EXPERIMENT,
    revision: 1,
    plan,
};

const SIZE: Param = Param { name: "size", help: "Bytes that are summed.", kind: Kind::Size, axis: false };

static STD_EXPERIMENT: Experiment =
    Experiment { name: "thread.std", cpus: Cpus::All, scratch: false, policy: Policy::Other, run: run_std };

static EXPERIMENT: Experiment =
    Experiment { name: "thread.overhead", cpus: Cpus::All, scratch: false, policy: Policy::Other, run };

fn plan_std(input: &PlanInput, _: &Machine) -> Vec<Point> {
    let point = |placement: &String| {
        let title = format!("std::thread spawn and join{}", suffix(placement));
        STD.point(params([("placement", placement.as_str().into())]), title, true)
    };
    input.texts("placement", &["free"]).iter().map(point).collect()
}

fn plan(input: &PlanInput, _: &Machine) -> Vec<Point> {
    let mut points = Vec::new();
    for placement in input.texts("placement", &["free"]) {
        for size in input.numbers("size", &[1 << 20]) {
            let title = format!("thread around {} sum, cost{}", format_size(size), suffix(&placement));
            let params = params([("size", size.into()), ("placement", placement.as_str().into())]);
            points.push(OVERHEAD.point(params, title, true));
        }
    }
    points
}

fn suffix(placement: &str) -> &'static str {
    if placement == "free" { "" } else { ", same core" }
}

fn run_std(bench: &mut Bench) -> Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        place(bench, point.text("placement")).context("the CPUs cannot be used")?;
        let mut failure = None;
        bench.each(index, Gate::Open, || {
            if failure.is_none() {
                failure = std::thread::Builder::new().spawn(|| ()).map(std::thread::JoinHandle::join).err();
            }
        })?;
        if let Some(error) = failure {
            bench.unsupported(
                index,
                format!("no thread can be created: {error}"),
                "allow more threads (ulimit -u)",
            );
        }
    }
    Ok(())
}

fn run(bench: &mut Bench) -> Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        place(bench, point.text("placement")).context("the CPUs cannot be used")?;
        if let Err(error) = measure(bench, index, point.number("size") as usize / 8) {
            bench.unsupported(index, format!("{error:#}"), "");
        }
    }
    Ok(())
}

/// Direct calls of which the median is taken.
const DIRECT: usize = 31;

fn measure(bench: &mut Bench, point: usize, words: usize) -> Result<()> {
    // Like the body, the memory lives for ever: the thread only borrows it.
    let memory: &'static [u64] = Vec::leak(vec![1; words]);
    let body: &'static _ = Box::leak(Box::new(move || {
        black_box(sum(black_box(memory)));
    }));
    let (timebase, clock) = (bench.timebase(), bench.timebase().clock());
    let direct = || {
        let start = clock.start();
        body();
        (clock.end() - start) as f64
    };
    direct();
    let direct: Vec<f64> = (0..DIRECT).map(|_| direct()).collect();
    let direct = median(&direct).unwrap_or(0.0) as u64;
    let attributes = Attributes::new(None)?;
    thread::create(&attributes, body).and_then(thread::Thread::join).context("no thread can be created")?;
    let mut failed = false;
    bench.splits(&[point], Gate::Open, |splits| {
        let from = splits.now();
        failed = failed || thread::create(&attributes, body).and_then(thread::Thread::join).is_err();
        let to = splits.now();
        // A thread whose sum was faster than the median has no overhead to show.
        splits.between(0, (from + direct).min(to), to);
    })?;
    ensure!(!failed, "a thread could not be created");
    bench.value(point, "direct", timebase.ns(direct), "ns", Better::Less);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn threads_of_the_standard_library_are_measured() {
        harness::measure(&STD_EXPERIMENT, harness::points(&STD)).iter().for_each(harness::check);
    }

    #[test]
    fn the_overhead_comes_with_the_direct_call() {
        for m in harness::measure(&EXPERIMENT, harness::points(&OVERHEAD)) {
            harness::check(&m);
            assert!(m.values["direct"].value > 0.0);
        }
    }
}
