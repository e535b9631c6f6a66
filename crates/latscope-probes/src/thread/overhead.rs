//! Threads by the standard library, and the cost that a thread adds to a small task.

use super::{ThreadPlacement, pin_to_placement};
use crate::prelude::*;
use latscope_os::child::sum_words;
use latscope_os::thread::{self, PosixThreadAttributes};

probes! {
    STD_EXPERIMENT, ThreadSpawnSettings, plan_std;
    STD "thread.std", "std::thread spawn and join", "std::thread",
        "std::thread::Builder::spawn of a thread that does nothing, and its join.";
}

probes! {
    EXPERIMENT, ThreadSumSettings, plan_thread_overhead;
    OVERHEAD "thread.overhead", "a sum in a new thread, overhead", "pthread_create(3), pthread_join(3)",
        "Creating and joining a thread that sums a buffer, less the median time of summing it without a thread.";
}

settings! {
    /// A thread that does nothing.
    struct ThreadSpawnSettings, requested as ThreadSpawnRequest {
        /// Where the threads run: on whichever allowed CPU the kernel chooses, as in most programs, or all on one.
        placement: ThreadPlacement;
    }
}

settings! {
    /// A sum in a thread.
    struct ThreadSumSettings, requested as ThreadSumRequest {
        /// Bytes that are summed.
        size: u64 as Size;
        /// Where the threads run: on whichever allowed CPU the kernel chooses, as in most programs, or all on one.
        placement: ThreadPlacement;
    }
}

static STD_EXPERIMENT: Experiment = Experiment::new("thread.std", Cpus::All, run_std);

static EXPERIMENT: Experiment = Experiment::new("thread.overhead", Cpus::All, run_thread_overhead);

fn plan_std(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let point = |placement: ThreadPlacement| {
        let title = format!("std::thread spawn and join{}", placement.suffix());
        probe.make_point(ThreadSpawnSettings { placement }, title, true)
    };
    ThreadSpawnRequest::of(input).placement.or(&[ThreadPlacement::Free]).into_iter().map(point).collect()
}

fn plan_thread_overhead(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = ThreadSumRequest::of(input);
    let mut points = Vec::new();
    for placement in asked.placement.or(&[ThreadPlacement::Free]) {
        for size in asked.size.or(&[1 << 20]) {
            let title = format!("thread around {} sum, cost{}", format_size(size), placement.suffix());
            points.push(probe.make_point(ThreadSumSettings { size, placement }, title, true));
        }
    }
    points
}

fn run_std(bench: &mut Bench) -> Result<()> {
    for (index, ThreadSpawnSettings { placement }) in bench.settings()?.into_iter().enumerate() {
        pin_to_placement(bench, placement).context("the CPUs cannot be used")?;
        let mut failure = None;
        bench.each(index, SampleGate::Open, || {
            if failure.is_none() {
                failure = std::thread::Builder::new().spawn(|| ()).map(std::thread::JoinHandle::join).err();
            }
        });
        super::add_waits(bench, &[index]);
        if let Some(error) = failure {
            bench.unsupported(index, format!("no thread can be created: {error}"), more_tasks());
        }
    }
    Ok(())
}

fn run_thread_overhead(bench: &mut Bench) -> Result<()> {
    for (index, ThreadSumSettings { size, placement }) in bench.settings()?.into_iter().enumerate() {
        pin_to_placement(bench, placement).context("the CPUs cannot be used")?;
        let measured = measure_overhead(bench, index, size as usize / 8);
        close_failed(bench, &[index], measured, "");
    }
    Ok(())
}

/// Direct calls of which the median is taken.
const DIRECT: usize = 31;

fn measure_overhead(bench: &mut Bench, point: usize, words: usize) -> Result<()> {
    // Like the body, the memory lives for ever: the thread only borrows it.
    let memory: &'static [u64] = Vec::leak(vec![1; words]);
    let body: &'static _ = Box::leak(Box::new(move || {
        black_box(sum_words(black_box(memory)));
    }));
    let (timebase, clock) = (bench.timebase(), bench.timebase().clock());
    let direct = || {
        let start = clock.stamp_start();
        body();
        (clock.stamp_end() - start) as f64
    };
    direct();
    let direct: Vec<f64> = (0..DIRECT).map(|_| direct()).collect();
    let direct = median(&direct).unwrap_or(0.0) as u64;
    let attributes = PosixThreadAttributes::new(None)?;
    thread::create_thread(&attributes, body)
        .and_then(thread::PosixThread::join)
        .context("no thread can be created")?;
    let mut failed = false;
    bench.splits(&[point], SampleGate::Open, |splits| {
        let from = splits.now();
        failed =
            failed || thread::create_thread(&attributes, body).and_then(thread::PosixThread::join).is_err();
        let to = splits.now();
        // A thread whose sum was faster than the median has no overhead to show.
        splits.set_part(0, (from + direct).min(to), to);
    });
    ensure!(!failed, "a thread could not be created");
    super::add_waits(bench, &[point]);
    bench.add_value(point, "direct", timebase.interval_ns(direct), "ns", Better::Less);
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
