//! More threads than CPUs: a pool whose threads all get their task at once.

use super::{ThreadPlacement, pin_to_placement};
use crate::prelude::*;
use latscope_core::statistics::quantile;
use latscope_os::child::sum_words;
use latscope_os::usage::ResourceUsageCounts;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

probes! {
    EXPERIMENT, PoolTaskSettings, plan_pools;
    POOL "thread.pool", "pool of threads, one task each", "sem_post(3), sem_wait(3), sched(7)",
        "From posting the semaphore of a pool, once for each thread, to the notification that each task is done: \
        a sum over the thread's own memory."
        { subject: Subject::Many, sensitive_to: &[Condition::TwoCpus], };
}

settings! {
    /// A pool and its tasks.
    struct PoolTaskSettings, requested as PoolTaskRequest {
        /// Threads in the pool, with a task each.
        threads: u64, axis;
        /// Memory of its own that each thread sums.
        size: u64 as Size;
    }
}

static EXPERIMENT: Experiment = Experiment::new("thread.pool", Cpus::All, run_pools)
    .setup_per_point(0.08)
    .fewer_rounds(4, "its threads compute on all CPUs");

/// Bytes of a task, as in the talk that this probe comes from.
const TASK: u64 = 10 << 20;

/// Largest number of threads in a pool, so that a typing error cannot start too many.
const MOST_THREADS: u64 = 1024;

fn plan_pools(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let cores = machine.allowed.0.len().max(1) as u64;
    let quick = input.survey && input.profile == SurveyProfile::Quick;
    let mut usual: BTreeSet<u64> = [1, cores, 16].into();
    if !quick {
        usual.extend([2 * cores, 3 * cores, 4 * cores]);
    }
    let usual: Vec<u64> = usual.into_iter().filter(|threads| fits(*threads, machine)).collect();
    let asked = PoolTaskRequest::of(input);
    let mut points = Vec::new();
    for size in asked.size.or(&[TASK]) {
        for threads in asked.threads.or(&usual) {
            let threads = threads.clamp(1, MOST_THREADS);
            let title = format!("pool of {}, {} each", count_with_noun(threads, "thread"), format_size(size));
            points.push(probe.make_point(PoolTaskSettings { threads, size }, title, threads == 16));
        }
    }
    points
}

/// Returns true if the tasks of a pool of the default size leave half of the available memory free, or if that
/// is not known.
fn fits(threads: u64, machine: &Machine) -> bool {
    machine.memory_available == 0 || threads * TASK <= machine.memory_available / 2
}

fn run_pools(bench: &mut Bench) -> Result<()> {
    pin_to_placement(bench, ThreadPlacement::Free).context("the CPUs cannot be used")?;
    let cores = bench.cpus().len() as f64;
    // What one task takes on one thread, by size: the measure of a slowdown.
    let mut alone: BTreeMap<u64, f64> = BTreeMap::new();
    for (index, PoolTaskSettings { threads, size }) in bench.settings()?.into_iter().enumerate() {
        if let Err(error) = measure_pool(bench, index, threads as usize, size as usize) {
            let remedy = "ask for fewer threads or less memory (--threads, --size)";
            bench.unsupported(index, format!("{error:#}"), remedy);
            continue;
        }
        let Some(took) = bench.median(index) else { continue };
        if threads == 1 {
            alone.insert(size, took);
        }
        let one = match alone.get(&size) {
            Some(one) => *one,
            None => *alone.entry(size).or_insert(one_task(&bench.timebase(), size as usize)?),
        };
        let fair = one * (threads as f64 / cores).max(1.0);
        if fair > 0.0 {
            bench.add_value(index, "slowdown", took / fair, "ratio", Better::Less);
        }
    }
    Ok(())
}

/// Rounds of which the median stands for one task on one thread.
const ROUNDS: usize = 5;

fn one_task(timebase: &Timebase, size: usize) -> Result<f64> {
    let mut pool = ProbeThreadPool::start(*timebase, 1, size)?;
    pool.round();
    let rounds = (0..ROUNDS).map(|_| {
        let start = timebase.clock().stamp_start();
        pool.round();
        timebase.interval_ns(timebase.clock().stamp_end() - start)
    });
    let rounds: Vec<f64> = rounds.collect();
    pool.stop_threads();
    Ok(latscope_core::statistics::median(&rounds).unwrap_or(0.0))
}

fn measure_pool(bench: &mut Bench, point: usize, threads: usize, size: usize) -> Result<()> {
    let mut pool = ProbeThreadPool::start(bench.timebase(), threads, size)?;
    pool.round();
    let bytes = (threads * size) as u64;
    bench.set_work(point, OperationWork { ops: threads as u64, bytes_touched: bytes, bytes_moved: bytes });
    let mut waits: Vec<f64> = Vec::with_capacity(1 << 16);
    bench.each(point, SampleGate::Open, || {
        pool.round();
        // Between rounds, when all threads sleep again.
        pool.waits_of_last_round(&mut waits);
    });
    let rounds = pool.rounds;
    let switches = pool.stop_threads();
    for (name, q) in [("wait_p50", 0.5), ("wait_p99", 0.99)] {
        if let Some(wait) = quantile(&waits, q) {
            bench.add_value(point, name, wait, "ns", Better::Less);
        }
    }
    let each = (rounds * threads as u64) as f64;
    bench.add_value(point, "voluntary", switches.voluntary as f64 / each, "per task", Better::Neither);
    bench.add_value(point, "involuntary", switches.involuntary as f64 / each, "per task", Better::Less);
    Ok(())
}

/// State that the threads of a pool share.
struct ThreadPoolState {
    start: SharedCell<Semaphore>,
    finished: SharedCell<Semaphore>,
    over: AtomicBool,
    /// Start of each task of the last round, ticks.
    began: Vec<AtomicU64>,
    /// Tasks taken up so far.
    taken: AtomicUsize,
}

/// Threads that wait on one semaphore and sum, each its own memory.
struct ProbeThreadPool {
    shared: Arc<ThreadPoolState>,
    threads: Vec<JoinHandle<ResourceUsageCounts>>,
    timebase: Timebase,
    posted: u64,
    rounds: u64,
}

impl ProbeThreadPool {
    fn start(timebase: Timebase, threads: usize, size: usize) -> Result<ProbeThreadPool> {
        let shared = Arc::new(ThreadPoolState {
            start: SharedCell::create_zeroed(SharingScope::Threads)?,
            finished: SharedCell::create_zeroed(SharingScope::Threads)?,
            over: AtomicBool::new(false),
            began: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            taken: AtomicUsize::new(0),
        });
        let mut pool = ProbeThreadPool { shared, threads: Vec::new(), timebase, posted: 0, rounds: 0 };
        for _ in 0..threads {
            let mut memory = Vec::new();
            memory.try_reserve_exact(size / 8).context("not enough memory for the tasks")?;
            memory.resize(size / 8, 1u64);
            let shared = pool.shared.clone();
            let thread =
                std::thread::Builder::new().spawn(move || run_pool_thread(&shared, &timebase, &memory));
            pool.threads.push(thread.context("no further thread can be created")?);
        }
        ensure!(pool.threads.len() == threads, "a pool is complete");
        Ok(pool)
    }

    /// Runs a round: each task is done once.
    fn round(&mut self) {
        self.rounds += 1;
        self.posted = self.timebase.clock().stamp_start();
        for _ in &self.threads {
            // It has room for any number of threads.
            let _ = self.shared.start.post();
        }
        for _ in &self.threads {
            self.shared.finished.wait();
        }
    }

    /// Adds how long each task of the last round waited for a CPU, ns.
    fn waits_of_last_round(&self, waits: &mut Vec<f64>) {
        for began in &self.shared.began {
            let began = began.load(Ordering::Relaxed);
            if waits.len() < waits.capacity() {
                waits.push(self.timebase.interval_ns(began.saturating_sub(self.posted)));
            }
        }
    }

    /// Ends the threads; returns the switches of all of them.
    fn stop_threads(mut self) -> ResourceUsageCounts {
        let mut total = ResourceUsageCounts::default();
        for counts in self.join_threads() {
            total.voluntary += counts.voluntary;
            total.involuntary += counts.involuntary;
        }
        total
    }

    fn join_threads(&mut self) -> Vec<ResourceUsageCounts> {
        self.shared.over.store(true, Ordering::Relaxed);
        for _ in &self.threads {
            let _ = self.shared.start.post();
        }
        let threads = self.threads.drain(..);
        threads.map(|thread| thread.join().expect("a thread of the pool does not panic")).collect()
    }
}

impl Drop for ProbeThreadPool {
    fn drop(&mut self) {
        self.join_threads();
    }
}

/// Runs a thread of the pool. A thread that is done early may take a second task before a late thread has taken
/// its first, as in any pool.
fn run_pool_thread(shared: &ThreadPoolState, timebase: &Timebase, memory: &[u64]) -> ResourceUsageCounts {
    let before = thread_counts();
    loop {
        shared.start.wait();
        if shared.over.load(Ordering::Relaxed) {
            let now = thread_counts();
            return ResourceUsageCounts {
                voluntary: now.voluntary - before.voluntary,
                involuntary: now.involuntary - before.involuntary,
                ..ResourceUsageCounts::default()
            };
        }
        let task = shared.taken.fetch_add(1, Ordering::Relaxed) % shared.began.len();
        shared.began[task].store(timebase.clock().stamp_end(), Ordering::Relaxed);
        black_box(sum_words(black_box(memory)));
        let _ = shared.finished.post();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn pools_grow_to_four_times_the_cores_and_sixteen() {
        let input = PlanInput { profile: SurveyProfile::Normal, ..harness::input() };
        let threads = |cpus: &str, memory_available| -> Vec<u64> {
            let machine = Machine { allowed: cpus.parse().unwrap(), memory_available, ..Machine::default() };
            POOL.plan(&input, &machine).iter().map(|p| p.numeric_param("threads")).collect()
        };
        assert_eq!(threads("0-1", 0), [1, 2, 4, 6, 8, 16]);
        assert_eq!(threads("0", 0), [1, 2, 3, 4, 16]);
        assert_eq!(threads("0", 8 * TASK), [1, 2, 3, 4], "what fits into half of the free memory");
        let quick =
            POOL.plan(&harness::input(), &Machine { allowed: "0-1".parse().unwrap(), ..Machine::default() });
        assert_eq!(quick.iter().map(|point| point.numeric_param("threads")).collect::<Vec<_>>(), [1, 2, 16]);
    }

    #[test]
    fn every_task_of_a_round_is_done_and_the_threads_end() {
        let (timebase, _) = Timebase::calibrate();
        let mut pool = ProbeThreadPool::start(timebase, 5, 4096).unwrap();
        let mut waits = Vec::with_capacity(100);
        for round in 1..=3 {
            pool.round();
            pool.waits_of_last_round(&mut waits);
            assert_eq!(pool.shared.taken.load(Ordering::Relaxed), 5 * round);
        }
        assert_eq!(waits.len(), 15);
        assert_eq!(pool.shared.start.value(), 0);
        pool.stop_threads();
    }

    #[test]
    fn a_small_pool_is_measured_with_its_slowdown_and_waits() {
        let mut input = harness::input();
        input.values.insert("size".into(), vec![4096.into()]);
        input.values.insert("threads".into(), vec![1.into(), 4.into()]);
        for m in harness::measure(&EXPERIMENT, POOL.plan(&input, &harness::machine())) {
            harness::check(&m);
            assert!(m.values["slowdown"].value > 0.0);
            assert!(m.values["wait_p50"].value <= m.values["wait_p99"].value);
            assert!(m.values.contains_key("voluntary") && m.values.contains_key("involuntary"));
        }
    }
}
