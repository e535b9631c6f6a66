//! Threads that do a batch together, each on a CPU of its own.
//!
//! The leader is the measuring thread. Its helpers are called before a batch, spin until it begins, take part,
//! and report before it ends if they were disturbed. That report, the reading of two counters, adds less than a
//! hundredth to a batch. A helper that is not needed for a while sleeps: on a busy machine a thread that has
//! slept gets its CPU at once, but a thread that has spun all the time waits for its turn.

use crate::prelude::*;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

/// A value on cache lines of its own.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct CacheLineCell<T>(pub T);

/// Work of a helper in a batch. It gets the iterations of the leader and a flag that is raised when the leader
/// is done with them, and returns the number of its own operations.
pub type BatchWork = Box<dyn FnMut(u64, &AtomicBool) -> u64 + Send>;

/// Operations of a helper and the time it took for them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BatchWorkTotal {
    /// Operations in batches in which the helper was not disturbed.
    pub operations: u64,
    /// Time of those batches, ns.
    pub ns: f64,
}

#[derive(Debug, Default)]
struct ThreadGroupControl {
    /// The number of the batch; [`DISMISSED`] at the end.
    batch: CacheLineCell<AtomicU64>,
    iterations: CacheLineCell<AtomicU64>,
    over: CacheLineCell<AtomicBool>,
    done: CacheLineCell<AtomicU32>,
    tainted: Arc<AtomicBool>,
}

const DISMISSED: u64 = u64::MAX;

/// Time for which a helper trusts one reading of its counters while it spins, ns.
const FRESH: f64 = 20_000.0;

/// Time for which a helper spins for the next batch before it sleeps, and for which the leader spins for an
/// absent helper, ns.
const ARRIVAL_TIMEOUT_NS: f64 = 100_000.0;

/// Time for which the leader sleeps after that.
const RESPITE: Duration = Duration::from_micros(100);

/// Length of a time slice, as short as the kernel grants: wake-ups preempt others sooner.
const SLICE_NS: u64 = 100_000;

#[derive(Debug)]
struct Helper {
    call: SharedCell<Semaphore>,
    /// True if the helper spins for the next batch.
    present: Arc<CacheLineCell<AtomicBool>>,
    thread: Partner<BatchWorkTotal>,
}

/// The helpers of the measuring thread.
#[derive(Debug)]
pub struct ThreadGroup {
    control: Arc<ThreadGroupControl>,
    timebase: Timebase,
    helpers: Vec<Helper>,
}

impl ThreadGroup {
    /// Starts a helper on each of these CPUs, with its share of the work.
    ///
    /// # Errors
    /// A thread cannot be started or put on its CPU.
    pub fn start_helpers(timebase: Timebase, helpers: Vec<(u32, BatchWork)>) -> Result<ThreadGroup> {
        let mut thread_group = ThreadGroup { control: Arc::default(), timebase, helpers: Vec::new() };
        // Not granted by old kernels; it only helps on a busy machine.
        let _ = sched::set_slice(SLICE_NS);
        for (cpu, share) in helpers {
            let call = SharedCell::<Semaphore>::create_zeroed(SharingScope::Threads)?;
            let present = Arc::<CacheLineCell<AtomicBool>>::default();
            let mut part = ThreadGroupWorker {
                control: thread_group.control.clone(),
                timebase,
                call: call.clone(),
                present: present.clone(),
                share,
                last: 0,
            };
            let thread = threads::start_partner(move || threads::pin(cpu), move || part.run_batches())?;
            thread_group.helpers.push(Helper { call, present, thread });
        }
        Ok(thread_group)
    }

    /// Measures `work`, the leader's share, in batches the thread group does together. An iteration has `ops`
    /// operations.
    pub fn measure_batches(&self, bench: &mut Bench, point: usize, ops: u64, mut work: impl FnMut(u64)) {
        // The engine's own calibration would take a helper that waits for its CPU for a long operation.
        let iterations = self.calibrate(bench.stop().batch_ns as f64, &mut work);
        let gate = SampleGate::ThreadGroup(self.control.tainted.clone());
        let batch = Batch { ops: iterations * ops, gate, ..Batch::default() };
        bench.batch_prepared(point, batch, &mut || self.call_helpers(), &mut |times| {
            self.batch(times * iterations, || work(times * iterations))
        });
    }

    /// Iterations in a batch of `batch_ns`, from undisturbed batches only.
    fn calibrate(&self, batch_ns: f64, work: &mut impl FnMut(u64)) -> u64 {
        /// Batches that are tried before a disturbed one is accepted.
        const TRIALS: u32 = 200;
        let clock = self.timebase.clock();
        let mut iterations = 16u64;
        let mut best = f64::MAX;
        for _ in 0..TRIALS {
            self.call_helpers();
            self.control.tainted.store(false, Relaxed);
            let watch = DisturbanceWatch::watch_thread();
            let start = clock.stamp_start();
            self.batch(iterations, || work(iterations));
            let ns = self.timebase.interval_ns(clock.stamp_end() - start).max(1.0);
            if watch.disturbed(ns) || self.control.tainted.load(Relaxed) {
                continue;
            }
            // A helper that was away would leave the leader a fast line, and make the batches too long.
            best = best.min(ns / iterations as f64);
            if ns >= batch_ns / 4.0 {
                break;
            }
            iterations *= 4;
        }
        // Nothing was undisturbed: what was tried last has to do.
        if best == f64::MAX { iterations } else { ((batch_ns / best) as u64).max(1) }
    }

    /// Calls the helpers and waits until each of them runs.
    fn call_helpers(&self) {
        let clock = self.timebase.clock();
        let absent = |helper: &&Helper| !helper.present.0.load(SeqCst);
        while self.helpers.iter().any(|helper| absent(&helper)) {
            // A call that a helper does not need only makes it look twice.
            self.helpers.iter().filter(absent).for_each(|helper| {
                let _ = helper.call.post();
            });
            let began = clock.stamp_start();
            while self.helpers.iter().any(|helper| absent(&helper)) {
                if self.timebase.interval_ns(clock.stamp_end() - began) > ARRIVAL_TIMEOUT_NS {
                    std::thread::sleep(RESPITE);
                    break;
                }
            }
        }
    }

    /// Does a batch: `work` is the leader's share.
    fn batch(&self, iterations: u64, work: impl FnOnce()) {
        let control = &*self.control;
        let helpers = self.helpers.len() as u32;
        control.iterations.0.store(iterations, Relaxed);
        control.over.0.store(false, Relaxed);
        control.done.0.store(0, Relaxed);
        control.batch.0.fetch_add(1, SeqCst);
        // Sequentially consistent on both sides: either the helper is seen to
        // sleep here, or it sees the new batch before it sleeps.
        for helper in self.helpers.iter().filter(|helper| !helper.present.0.load(SeqCst)) {
            control.tainted.store(true, Relaxed);
            let _ = helper.call.post();
        }
        work();
        control.over.0.store(true, Release);
        let clock = self.timebase.clock();
        let began = clock.stamp_start();
        while control.done.0.load(Acquire) < helpers {
            if self.timebase.interval_ns(clock.stamp_end() - began) > ARRIVAL_TIMEOUT_NS {
                // A helper lost its CPU, and will say so.
                std::thread::sleep(RESPITE);
            }
        }
    }

    /// Ends the thread group; returns what each helper did.
    pub(crate) fn stop_helpers(mut self) -> Vec<BatchWorkTotal> {
        self.join_helpers()
    }

    fn join_helpers(&mut self) -> Vec<BatchWorkTotal> {
        self.control.batch.0.store(DISMISSED, SeqCst);
        self.helpers.iter().for_each(|helper| {
            let _ = helper.call.post();
        });
        self.helpers.drain(..).map(|helper| helper.thread.join()).collect()
    }
}

impl Drop for ThreadGroup {
    fn drop(&mut self) {
        self.join_helpers();
    }
}

/// A helper, in its own thread.
struct ThreadGroupWorker {
    control: Arc<ThreadGroupControl>,
    timebase: Timebase,
    call: SharedCell<Semaphore>,
    present: Arc<CacheLineCell<AtomicBool>>,
    share: BatchWork,
    last: u64,
}

impl ThreadGroupWorker {
    fn run_batches(&mut self) -> BatchWorkTotal {
        let clock = self.timebase.clock();
        let mut total = BatchWorkTotal::default();
        loop {
            let (watch, opened) = self.wait_for_batch();
            if self.last == DISMISSED {
                return total;
            }
            let began = clock.stamp_start();
            let operations = (self.share)(self.control.iterations.0.load(Relaxed), &self.control.over.0);
            let ended = clock.stamp_end();
            if watch.disturbed(self.timebase.interval_ns(ended - opened)) {
                self.control.tainted.store(true, Relaxed);
            } else {
                total.operations += operations;
                total.ns += self.timebase.interval_ns(ended - began);
            }
            self.control.done.0.fetch_add(1, Release);
        }
    }

    /// Waits for the next batch. Returns the counters and the clock as read shortly before it began.
    fn wait_for_batch(&mut self) -> (DisturbanceWatch, u64) {
        let clock = self.timebase.clock();
        let mut arrived = clock.stamp_start();
        let mut opened = arrived;
        let mut watch = DisturbanceWatch::watch_thread();
        self.present.0.store(true, SeqCst);
        loop {
            let batch = self.control.batch.0.load(SeqCst);
            if batch != self.last {
                self.last = batch;
                return (watch, opened);
            }
            let now = clock.stamp_end();
            if self.timebase.interval_ns(now - arrived) > ARRIVAL_TIMEOUT_NS {
                self.present.0.store(false, SeqCst);
                if self.control.batch.0.load(SeqCst) == self.last {
                    self.call.wait();
                }
                arrived = clock.stamp_start();
                opened = arrived;
                watch = DisturbanceWatch::watch_thread();
                self.present.0.store(true, SeqCst);
            } else if self.timebase.interval_ns(now - opened) > FRESH {
                opened = clock.stamp_start();
                watch = DisturbanceWatch::watch_thread();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mate_takes_part_in_each_batch_once() {
        let cpu = sched::allowed_cpus().unwrap()[0];
        let (timebase, _) = Timebase::calibrate();
        let total = Arc::new(AtomicU64::new(0));
        let helpers = (0..2).map(|_| {
            let total = total.clone();
            let share: BatchWork = Box::new(move |iterations, _| total.fetch_add(iterations, Relaxed));
            (cpu, share)
        });
        let thread_group = ThreadGroup::start_helpers(timebase, helpers.collect()).unwrap();
        for batch in 1..=3 {
            thread_group.call_helpers();
            thread_group.batch(10, || {
                total.fetch_add(1, Relaxed);
            });
            assert_eq!(total.load(Relaxed), batch * 21);
            // Longer than a helper spins: the next batch finds it asleep.
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(thread_group.stop_helpers().len(), 2);
    }

    #[test]
    fn a_batch_without_a_call_is_done_all_the_same_and_tainted() {
        let cpu = sched::allowed_cpus().unwrap()[0];
        let (timebase, _) = Timebase::calibrate();
        let thread_group =
            ThreadGroup::start_helpers(timebase, vec![(cpu, Box::new(|iterations, _| iterations))]).unwrap();
        thread_group.call_helpers();
        // A helper called more than once looks as often before it stays asleep.
        let tainted = (0..10_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            thread_group.control.tainted.store(false, Relaxed);
            thread_group.batch(10, || ());
            thread_group.control.tainted.load(Relaxed)
        });
        assert!(tainted);
        assert_eq!(thread_group.stop_helpers().len(), 1);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        let (timebase, _) = Timebase::calibrate();
        assert!(ThreadGroup::start_helpers(timebase, vec![(8191, Box::new(|_, _| 0))]).is_err());
    }
}
