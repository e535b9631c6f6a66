//! The threads of schbench: those that pass messages, and those that work for them.

use super::SchbenchOptions;
use super::text::{Delay, SchbenchDelays, SchbenchWorkTotals};
use anyhow::{Context as _, Result};
use latscope_os::clock::monotonic_ns;
use latscope_os::futex::Tokens;
use latscope_probes::matrices::Matrices;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// All threads of a run.
pub(super) struct Crew {
    shared: Arc<SchbenchCrewState>,
    messengers: Vec<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
}

/// State that all threads share.
struct SchbenchCrewState {
    options: SchbenchOptions,
    desks: Vec<Desk>,
    workers: Vec<Worker>,
    /// Lock of each CPU, held during the work of a request.
    cpus: Vec<Mutex<()>>,
    over: AtomicBool,
}

/// Place of a thread that passes messages.
#[derive(Default)]
struct Desk {
    bell: Tokens,
    queue: Mutex<SchbenchDeskQueue>,
    thread: AtomicU32,
}

/// Workers that wait for a message, and requests that wait for a worker.
#[derive(Default)]
struct SchbenchDeskQueue {
    idle: Vec<usize>,
    waiting: u64,
}

/// Place of a worker.
#[derive(Default)]
struct Worker {
    bell: Tokens,
    /// `CLOCK_MONOTONIC` when the worker was woken.
    woken: AtomicU64,
    seen: Mutex<SchbenchWorkTotals>,
    thread: AtomicU32,
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread of the crew panics")
}

impl Crew {
    /// Starts all threads, `workers` for each thread that passes messages.
    pub fn start_threads(options: &SchbenchOptions, workers: u64) -> Result<Crew> {
        let (desks, workers) = (options.message_threads as usize, workers as usize);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from).max(possible_cpus());
        let shared = Arc::new(SchbenchCrewState {
            options: options.clone(),
            desks: (0..desks).map(|_| Desk::default()).collect(),
            workers: (0..desks * workers).map(|_| Worker::default()).collect(),
            cpus: (0..cpus).map(|_| Mutex::default()).collect(),
            over: AtomicBool::new(false),
        });
        let mut crew = Crew { shared, messengers: Vec::new(), workers: Vec::new() };
        for desk in 0..desks {
            crew.start_at(desk, workers).inspect_err(|_| crew.stop_threads())?;
        }
        Ok(crew)
    }

    fn start_at(&mut self, desk: usize, workers: usize) -> Result<()> {
        const NO_THREAD: &str = "no thread can be created";
        let shared = self.shared.clone();
        self.messengers.push(Builder::new().spawn(move || shared.pass_messages(desk)).context(NO_THREAD)?);
        for worker in desk * workers..(desk + 1) * workers {
            let shared = self.shared.clone();
            self.workers
                .push(Builder::new().spawn(move || shared.run_worker(worker, desk)).context(NO_THREAD)?);
        }
        Ok(())
    }

    /// Returns what all workers did since the begin of the figures.
    pub fn seen(&self) -> SchbenchWorkTotals {
        let mut all = SchbenchWorkTotals::default();
        for worker in &self.shared.workers {
            let seen = lock_mutex(&worker.seen);
            all.wake_ups.merge(&seen.wake_ups);
            all.requests.merge(&seen.requests);
            all.done += seen.done;
        }
        all
    }

    /// Begins all figures anew.
    pub fn reset_totals(&self) {
        self.shared
            .workers
            .iter()
            .for_each(|worker| *lock_mutex(&worker.seen) = SchbenchWorkTotals::default());
    }

    /// Returns the delays of all threads so far; those of a kernel that does not count them have no turns.
    pub fn delays(&self) -> SchbenchDelays {
        SchbenchDelays {
            message: sum_delays(self.shared.desks.iter().map(|desk| &desk.thread)),
            worker: sum_delays(self.shared.workers.iter().map(|worker| &worker.thread)),
        }
    }

    /// Ends all threads of the crew.
    pub fn shut_down(mut self) {
        self.stop_threads();
    }

    fn stop_threads(&mut self) {
        self.shared.over.store(true, Relaxed);
        self.shared.desks.iter().for_each(|desk| desk.bell.give_token());
        for messenger in self.messengers.drain(..) {
            messenger.join().expect("no thread of the crew panics");
        }
        self.shared.workers.iter().for_each(|worker| worker.bell.give_token());
        for worker in self.workers.drain(..) {
            worker.join().expect("no thread of the crew panics");
        }
    }
}

/// Returns the sum of the delays of threads. One that has ended counts for nothing.
fn sum_delays<'a>(threads: impl Iterator<Item = &'a AtomicU32>) -> Delay {
    let mut sum = Delay::default();
    for delay in threads.filter_map(delay) {
        sum.ns += delay.ns;
        sum.times += delay.times;
    }
    sum
}

fn delay(thread: &AtomicU32) -> Option<Delay> {
    let path = format!("/proc/self/task/{}/schedstat", thread.load(Relaxed));
    Delay::parse(&std::fs::read_to_string(path).ok()?)
}

/// Number of CPUs that this machine may ever have.
fn possible_cpus() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or(1, |last| last + 1)
}

fn own_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

impl SchbenchCrewState {
    fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Body of a thread that passes messages.
    fn pass_messages(&self, desk: usize) {
        self.desks[desk].thread.store(own_id(), Relaxed);
        if self.options.rate > 0 && self.options.pipe == 0 {
            self.pace(&self.desks[desk]);
        } else {
            self.run_messenger(&self.desks[desk]);
        }
    }

    /// Wakes each worker that asks for a message.
    fn run_messenger(&self, desk: &Desk) {
        let mut passed = vec![0u8; self.options.pipe as usize];
        while !self.is_over() {
            desk.bell.take_token();
            let asking = std::mem::take(&mut lock_mutex(&desk.queue).idle);
            for worker in asking {
                fill_bytes(&mut passed);
                self.wake_worker(worker);
            }
        }
    }

    /// Makes requests at their rate; those for which there is no worker wait.
    fn pace(&self, desk: &Desk) {
        let gap = 1_000_000_000 * self.desks.len() as u64 / self.options.rate;
        let mut next = monotonic_ns();
        while !self.is_over() {
            next += gap;
            std::thread::sleep(Duration::from_nanos(next.saturating_sub(monotonic_ns())));
            let mut queue = lock_mutex(&desk.queue);
            match queue.idle.pop() {
                Some(worker) => {
                    drop(queue);
                    self.wake_worker(worker);
                }
                None => queue.waiting += 1,
            }
        }
    }

    fn wake_worker(&self, worker: usize) {
        let worker = &self.workers[worker];
        worker.woken.store(monotonic_ns(), Relaxed);
        worker.bell.give_token();
    }

    /// Body of a worker.
    fn run_worker(&self, index: usize, desk: usize) {
        let (own, desk) = (&self.workers[index], &self.desks[desk]);
        own.thread.store(own_id(), Relaxed);
        let mut matrices = Matrices::of_footprint(self.options.footprint);
        let mut passed = vec![0u8; self.options.pipe as usize];
        loop {
            if !self.has_more(desk, index) {
                desk.bell.give_token();
                own.bell.take_token();
                let ran = monotonic_ns();
                if self.is_over() {
                    return;
                }
                if self.options.rate == 0 || self.options.pipe > 0 {
                    lock_mutex(&own.seen).wake_ups.record(ran.saturating_sub(own.woken.load(Relaxed)));
                }
            } else if self.is_over() {
                return;
            }
            if self.options.pipe > 0 {
                fill_bytes(&mut passed);
                lock_mutex(&own.seen).done += 1;
                continue;
            }
            let began = monotonic_ns();
            self.serve_request(&mut matrices);
            let lasted = monotonic_ns() - began;
            let mut seen = lock_mutex(&own.seen);
            seen.requests.record(lasted);
            seen.done += 1;
        }
    }

    /// Takes a request that waits; otherwise the worker waits for a message.
    fn has_more(&self, desk: &Desk, worker: usize) -> bool {
        let mut queue = lock_mutex(&desk.queue);
        let has = queue.waiting > 0;
        if has {
            queue.waiting -= 1;
        } else {
            queue.idle.push(worker);
        }
        has
    }

    /// Carries out a request: a sleep, then work with the lock of the CPU.
    fn serve_request(&self, matrices: &mut Matrices) {
        let options = &self.options;
        if options.calibrate {
            matrices.multiply(options.operations);
            return;
        }
        if options.sleep > 0 {
            std::thread::sleep(Duration::from_micros(options.sleep));
        }
        let lock = self.cpus.get(rustix::thread::sched_getcpu()).filter(|_| !options.no_locking);
        let guard = lock.map(lock_mutex);
        matrices.multiply(options.operations);
        drop(guard);
    }
}

fn fill_bytes(bytes: &mut [u8]) {
    bytes.fill(1);
    black_box(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worked(options: SchbenchOptions, enough: impl Fn(&SchbenchWorkTotals) -> bool) -> SchbenchWorkTotals {
        let options = SchbenchOptions { footprint: 1, operations: 1, sleep: 0, ..options };
        let crew = Crew::start_threads(&options, 2).unwrap();
        while !enough(&crew.seen()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let seen = crew.seen();
        crew.shut_down();
        seen
    }

    #[test]
    fn each_request_follows_a_wake_up() {
        let options = SchbenchOptions { message_threads: 2, ..SchbenchOptions::default() };
        let seen = worked(options, |seen| seen.done > 20);
        assert!(seen.wake_ups.count() >= seen.done && seen.requests.count() == seen.done, "{seen:?}");
    }

    #[test]
    fn requests_at_a_rate_have_no_wake_ups_and_bytes_have_no_requests() {
        let paced = worked(SchbenchOptions { rate: 500, ..SchbenchOptions::default() }, |seen| seen.done > 5);
        assert_eq!((paced.wake_ups.count(), paced.requests.count()), (0, paced.done));
        let piped = worked(SchbenchOptions { pipe: 100, ..SchbenchOptions::default() }, |seen| seen.done > 5);
        assert!(piped.wake_ups.count() >= piped.done && piped.requests.count() == 0, "{piped:?}");
    }
}
