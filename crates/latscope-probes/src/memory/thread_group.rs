//! A thread group of pinned threads that do the same work at the same time, timed from
//! the common start to the end of the slowest.

use super::regions;
use crate::prelude::*;
use std::hint::spin_loop;

/// Signals between the members of a thread group.
#[derive(Default)]
struct MemoryBatchSignals {
    /// Number of the batch to work on.
    round: AtomicU64,
    /// Iterations in that batch.
    iterations: AtomicU64,
    /// Helpers that finished a batch, summed over all batches.
    finished: AtomicU64,
    /// True if no batch follows, or if a helper is lost.
    over: AtomicBool,
    /// True if something else ran on a helper's CPU during a batch.
    disturbed: Arc<AtomicBool>,
}

/// Measures a point with one thread for each event, the first of them the
/// calling one, on the CPUs of the step in this order. `batch.ops` are the operations of all
/// threads together in one iteration; its gate is replaced.
///
/// # Errors
/// A CPU cannot be used.
pub fn measure_group<E>(bench: &mut Bench, point: usize, batch: Batch, events: Vec<E>) -> Result<()>
where
    E: FnMut(u64) + Send,
{
    let cpus = bench.cpus().to_vec();
    measure_on(bench, point, &cpus, batch, events)
}

/// Measures a point as [`measure`] does, on these CPUs; the calling thread is on the first of them.
///
/// # Errors
/// A CPU cannot be used.
pub fn measure_on<E>(
    bench: &mut Bench,
    point: usize,
    cpus: &[u32],
    mut batch: Batch,
    events: Vec<E>,
) -> Result<()>
where
    E: FnMut(u64) + Send,
{
    let signals = MemoryBatchSignals::default();
    let timebase = bench.timebase();
    let mut events = events.into_iter();
    let Some(mut own) = events.next() else { return Ok(()) };
    let helpers = events.len() as u64;
    batch.gate =
        if helpers == 0 { SampleGate::Thread } else { SampleGate::ThreadGroup(signals.disturbed.clone()) };
    std::thread::scope(|scope| {
        let signals = &signals;
        let _over = threads::StopFlagGuard(&signals.over);
        for (event, cpu) in events.zip(&cpus[1..]) {
            threads::start_in(scope, *cpu, move || run_helper(signals, timebase, event))?;
        }
        let mut expected = 0;
        bench.batch(point, batch, |iterations| {
            signals.iterations.store(iterations, Ordering::Relaxed);
            signals.round.fetch_add(1, Ordering::Release);
            own(iterations);
            expected += helpers;
            while signals.finished.load(Ordering::Acquire) < expected && !signals.over.load(Ordering::Relaxed)
            {
                spin_loop();
            }
        });
        Ok(())
    })
}

/// Number of looks for a new batch before the watch is opened again. A watch that was opened long ago would
/// blame a batch for events before it.
const LOOKS: u32 = 2_000;

/// Runs a helper: works on each batch until all are over.
fn run_helper(signals: &MemoryBatchSignals, timebase: Timebase, mut event: impl FnMut(u64)) {
    let _over = threads::StopFlagGuard(&signals.over);
    let clock = timebase.clock();
    let mut done = 0;
    loop {
        let watch = DisturbanceWatch::watch_thread();
        let opened = clock.stamp_start();
        let begun = (0..LOOKS).any(|_| {
            spin_loop();
            signals.round.load(Ordering::Acquire) != done
        });
        if begun {
            done += 1;
            event(signals.iterations.load(Ordering::Relaxed));
            if watch.disturbed(timebase.interval_ns(clock.stamp_end() - opened)) {
                signals.disturbed.store(true, Ordering::Relaxed);
            }
            signals.finished.fetch_add(1, Ordering::Release);
        } else if signals.over.load(Ordering::Acquire) {
            return;
        }
    }
}

/// The numbers of threads a probe measures with by default: one, and one for each CPU.
pub fn thread_counts(cpus: usize) -> Vec<u64> {
    if cpus > 1 { vec![1, cpus as u64] } else { vec![1] }
}

/// Returns a region of such pages for each thread, and the points that can be measured in them. A wanted point has its
/// index, the number of its threads, and its bytes; the region of a thread has `bytes` of the largest part that the
/// thread has in any of them. Points for which there are too few CPUs, or too little memory, are closed.
pub(crate) fn regions(
    bench: &mut Bench,
    pages: RegionPageSize,
    wanted: &[(usize, u64, u64)],
    bytes: impl Fn(usize) -> usize,
) -> (Vec<MemoryRegion>, Vec<usize>) {
    let cpus = bench.cpus().to_vec();
    let count = cpus.len() as u64;
    let (few, many): (Vec<_>, Vec<_>) =
        wanted.iter().copied().partition(|(_, threads, _)| (1..=count).contains(threads));
    for (index, threads, _) in many {
        let reason = too_few_cpus(threads, "thread", count, "allowed");
        bench.unsupported(index, reason, "give more CPUs (--cpus) or fewer --threads");
    }
    // Thread i is wanted by the points with more than i threads.
    let users = |i: u64| few.iter().filter(move |(_, threads, _)| *threads > i);
    let largest = (0..count).map_while(|i| users(i).map(|(_, threads, all)| all / threads).max());
    let bytes: Vec<usize> = largest.map(|part| bytes(part as usize)).collect();
    let few: Vec<usize> = few.iter().map(|(index, ..)| *index).collect();
    match regions::for_threads(&cpus, &bytes, pages) {
        Ok(regions) => {
            regions::first_doubt(&regions, pages)
                .into_iter()
                .for_each(|doubt| doubt.degrade_points(bench, &few));
            (regions, few)
        }
        Err(error) => {
            let reason = format!("{error:#}");
            few.iter().for_each(|point| bench.unsupported(*point, reason.as_str(), regions::SMALLER));
            (Vec::new(), Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    static EXPERIMENT: Experiment = Experiment::new("test.team", Cpus::All, run);
    static PROBE: Probe = Probe {
        facts: ProbeFacts {
            id: "test.team",
            title: "test",
            timed: "Nothing.",
            times: Semantics::Operation,
            source: "this test",
            revision: 1,
            params: <()>::LIST,
            ..ProbeFacts::DEFAULT
        },
        check: <()>::check,
        experiment: &EXPERIMENT,
        plan: |probe, _, _| vec![probe.make_point((), "team", false)],
    };

    /// Runs all members through the same iterations; each is done when the batch is.
    fn run(bench: &mut Bench) -> Result<()> {
        let cpus = bench.cpus().to_vec();
        let counts: Vec<AtomicU64> = cpus.iter().map(|_| AtomicU64::new(0)).collect();
        let events: Vec<_> = counts
            .iter()
            .map(|count| {
                move |n: u64| {
                    for _ in 0..n {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
            .collect();
        measure_group(bench, 0, Batch { ops: cpus.len() as u64, ..Batch::default() }, events)?;
        let first = counts[0].load(Ordering::Relaxed);
        assert!(first > 0);
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == first));
        Ok(())
    }

    #[test]
    fn all_members_do_the_same() {
        harness::measure(&EXPERIMENT, harness::points(&PROBE)).iter().for_each(harness::check);
    }

    #[test]
    fn one_thread_and_all() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(8), [1, 8]);
    }
}
