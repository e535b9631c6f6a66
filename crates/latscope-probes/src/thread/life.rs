//! The life of a thread that does nothing, in parts.

use super::{ThreadPlacement, pin_to_placement};
use crate::prelude::*;
use latscope_os::thread::{self, PosixThreadAttributes};

settings! {
    /// A thread that does nothing.
    struct ThreadLifeSettings, requested as ThreadLifeRequest {
        /// warm: a stack that libc kept from a thread before (musl keeps none). cold: a stack of 64 MiB, more
        /// than libc keeps, so that it is mapped by the creation and unmapped by the join.
        mode: ThreadStackKind;
        /// Where the threads run: on whichever allowed CPU the kernel chooses, as in most programs, or all on one.
        placement: ThreadPlacement;
    }
}

words! {
    /// The stack that a thread gets.
    enum ThreadStackKind {
        /// A stack that libc keeps and gives again.
        Warm = "warm",
        /// A stack that libc does not keep.
        Cold = "cold",
    }
}

impl ThreadStackKind {
    /// Bytes of the stack. glibc keeps up to 40 MiB of stacks (glibc.pthread.stack_cache_size).
    fn stack(self) -> usize {
        match self {
            ThreadStackKind::Warm => 256 << 10,
            ThreadStackKind::Cold => 64 << 20,
        }
    }
}

static EXPERIMENT: Experiment = Experiment::new("thread.life", Cpus::All, run_lifecycles);

/// The parts, in the order of the stamps in [`once`].
const PARTS: [&str; 5] = ["thread.create", "thread.start", "thread.end", "thread.join", "thread.total"];

probes! {
    EXPERIMENT, ThreadLifeSettings, plan_lifecycles, ..ProbeFacts { by: Some(SyscallInvocation::Libc), ..ProbeFacts::DEFAULT };
    CREATE "thread.create", "thread create, call", "pthread_create(3), clone3(2)",
        "The call of pthread_create, from before it to after its return.";
    START "thread.start", "thread start", "pthread_create(3), clone3(2)",
        "From before the call of pthread_create to the first instruction of the new thread."
        { times: Semantics::OneWay, };
    END "thread.end", "thread end", "pthread_join(3), exit(2)",
        "From the last instruction of the thread to the return of pthread_join in the thread that waits for it."
        { times: Semantics::OneWay, };
    JOIN "thread.join", "thread join, call", "pthread_join(3)",
        "The call of pthread_join right after pthread_create: the wait for a thread that does nothing is part of it.";
    TOTAL "thread.total", "thread create + join", "pthread_create(3), pthread_join(3)",
        "From before the call of pthread_create of a thread that does nothing to the return of pthread_join."
        { headline: Some(ProbeHeadline { name: "thread", preferred: &[("mode", "warm")] }), };
}

fn plan_lifecycles(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = ThreadLifeRequest::of(input);
    let mut points = Vec::new();
    for placement in asked.placement.or(&[ThreadPlacement::Free]) {
        for mode in asked.mode.or(ThreadStackKind::ALL) {
            let title = format!("{}, {} stack{}", probe.title, mode.word(), placement.suffix());
            points.push(probe.make_point(
                ThreadLifeSettings { mode, placement },
                title,
                mode == ThreadStackKind::Warm,
            ));
        }
    }
    points
}

fn run_lifecycles(bench: &mut Bench) -> Result<()> {
    let lives: Vec<ThreadLifeSettings> = bench.settings()?;
    for (first, life) in lives.iter().enumerate() {
        if lives[..first].contains(life) {
            continue;
        }
        let together: Vec<usize> = (first..lives.len()).filter(|i| lives[*i] == *life).collect();
        let measured = measure_lifecycle(bench, life, &together);
        close_failed(bench, &together, measured, &more_tasks());
    }
    Ok(())
}

/// Stamps of a thread, at its first and its last instruction.
#[derive(Default)]
struct Traces {
    first: AtomicU64,
    last: AtomicU64,
}

/// Runs the measured thread: it only takes two stamps.
fn run_thread_body(traces: &Traces, clock: AnyClock) {
    traces.first.store(clock.stamp_start(), Ordering::Relaxed);
    traces.last.store(clock.stamp_end(), Ordering::Relaxed);
}

fn measure_lifecycle(bench: &mut Bench, life: &ThreadLifeSettings, together: &[usize]) -> Result<()> {
    let points = bench.points();
    pin_to_placement(bench, life.placement).context("the CPUs cannot be used")?;
    let attributes = PosixThreadAttributes::new(Some(life.mode.stack())).context("no such stack")?;
    let clock = bench.timebase().clock();
    // The thread's body and what it writes to live for ever: neither side
    // allocates or frees while the stamps are taken.
    let traces: &'static Traces = Box::leak(Box::default());
    let body: &'static _ = Box::leak(Box::new(move || run_thread_body(traces, clock)));
    // The first thread of a process costs libc more than any other.
    thread::create_thread(&attributes, body)
        .and_then(thread::PosixThread::join)
        .context("no thread can be created")?;
    let split_of: Vec<Option<usize>> =
        PARTS.iter().map(|id| together.iter().position(|point| points[*point].probe == *id)).collect();
    let mut failure = None;
    bench.splits(together, SampleGate::Open, |splits| {
        if failure.is_none() {
            failure = time_one_thread(splits, &split_of, &attributes, body, traces).err();
        }
    });
    // The call that creates does not wait, and one that ends has its CPU.
    let waiting = |point: &&usize| [CREATE.id, END.id].iter().all(|id| points[**point].probe != *id);
    super::add_waits(bench, &together.iter().filter(waiting).copied().collect::<Vec<usize>>());
    failure.map_or(Ok(()), |error| Err(error).context("a thread could not be created"))
}

/// Creates and joins a thread, and sets the requested parts.
fn time_one_thread<F: Fn() + Sync>(
    splits: &mut Splits,
    split_of: &[Option<usize>],
    attributes: &PosixThreadAttributes,
    body: &'static F,
    traces: &Traces,
) -> std::io::Result<()> {
    let before = splits.now();
    let thread = thread::create_thread(attributes, body)?;
    let created = splits.now();
    thread.join()?;
    let joined = splits.now();
    // The join orders these loads after the thread's stores.
    let (first, last) = (traces.first.load(Ordering::Relaxed), traces.last.load(Ordering::Relaxed));
    let stamps = [(before, created), (before, first), (last, joined), (created, joined), (before, joined)];
    for (lap, (from, to)) in split_of.iter().zip(stamps) {
        if let Some(lap) = lap {
            splits.set_part(*lap, from, to);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::ParamValue;
    use latscope_engine::harness;

    fn all() -> Vec<MeasurementPoint> {
        [&CREATE, &START, &END, &JOIN, &TOTAL].into_iter().flat_map(harness::points).collect()
    }

    #[test]
    fn all_parts_are_measured_in_both_modes() {
        let measured = harness::measure(&EXPERIMENT, all());
        assert_eq!(measured.len(), PARTS.len() * ThreadStackKind::ALL.len());
        measured.iter().for_each(harness::check);
    }

    #[test]
    fn parts_can_be_measured_alone_and_on_one_core() {
        let mut input = harness::input();
        input.values.insert("placement".into(), vec![ParamValue::from("same-core")]);
        input.values.insert("mode".into(), vec![ParamValue::from("warm")]);
        let points = END.plan(&input, &harness::machine());
        assert_eq!(points.len(), 1);
        harness::measure(&EXPERIMENT, points).iter().for_each(harness::check);
    }

    #[test]
    fn the_whole_is_no_shorter_than_its_parts() {
        let measured = harness::measure(&EXPERIMENT, all());
        let fastest = |id: &str, mode: &str| {
            let of = measured.iter().find(|m| m.probe == id && m.has_param_value("mode", mode));
            of.unwrap().summary.min.unwrap()
        };
        for mode in ThreadStackKind::WORDS {
            // The same stamps bound them: this holds however long they take.
            assert!(fastest("thread.total", mode) >= fastest("thread.create", mode));
            assert!(fastest("thread.total", mode) >= fastest("thread.join", mode));
        }
    }
}
