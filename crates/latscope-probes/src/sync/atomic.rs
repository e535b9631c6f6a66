//! Atomic operations: on a private line, on a line that others want too, and on a line of which others want the
//! other half.

use super::placement;
use super::thread_group::{BatchWork, BatchWorkTotal, CacheLineCell, ThreadGroup};
use crate::available;
use crate::prelude::*;
use latscope_os::kernels::atomics::{self, Atomic, UNROLL};

probes! {
    EXPERIMENT, AtomicSettings, plan_atomics, ..ProbeFacts::LOOPS;
    ATOMIC "sync.atomic", "atomic operation",
        "C++ memory model, sequentially consistent operations (std::sync::atomic)",
        "One atomic operation of one thread; a compare-exchange counts when it succeeds, the failed \
        attempts before it included. Loads do not wait for each other: theirs is a throughput."
        { exclusive_cpus: ExclusiveCpus::Threads, sensitive_to: &[Condition::SharedCore], };
}

static EXPERIMENT: Experiment = Experiment::new("sync.atomic", Cpus::All, run_atomics)
    .setup_per_point(0.02)
    .fewer_rounds(4, placement::AWAKE);

words! {
    /// Words on which the threads work.
    enum AtomicSharing {
        /// Each on a line of its own.
        Private = "private",
        /// All on the same word.
        Contended = "contended",
        /// Each on its own word of one line.
        FalselyShared = "false-sharing",
    }
}

settings! {
    /// Threads and what they do.
    struct AtomicSettings, requested as AtomicRequest {
        /// What is done: fetch-add, compare-exchange, swap and store are sequentially consistent,
        /// load is an acquire load, fence a full one after a plain store.
        operation: Atomic;
        /// Threads that do it at once, each on its own CPU.
        threads: u64, axis;
        /// Each thread on a line of its own; all on one word; or each on its own word of one line.
        sharing: AtomicSharing;
    }
}

fn plan_atomics(_: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let given = AtomicRequest::of(input);
    let chosen = given.operation.given() || given.threads.given() || given.sharing.given();
    let combinations = if chosen {
        requested_settings(&given)
    } else {
        usual_settings(input, machine.allowed.0.len() as u64)
    };
    combinations.into_iter().map(make_point).collect()
}

/// Every combination of the values given; values that are not given are the simplest.
fn requested_settings(given: &AtomicRequest) -> Vec<AtomicSettings> {
    let mut all = Vec::new();
    for sharing in given.sharing.or(&[AtomicSharing::Private]) {
        let threads = if sharing == AtomicSharing::Private { 1 } else { 2 };
        for threads in given.threads.or(&[threads]) {
            for operation in given.operation.or(Atomic::ALL) {
                all.push(AtomicSettings { operation, threads: threads.max(1), sharing });
            }
        }
    }
    all
}

/// Usual settings: each operation alone, the cost of contention, and that of false sharing beside two threads
/// that share nothing.
fn usual_settings(input: &PlanInput, cpus: u64) -> Vec<AtomicSettings> {
    let setting = |operation, threads, sharing| AtomicSettings { operation, threads, sharing };
    let alone = |operation: &Atomic| setting(*operation, 1, AtomicSharing::Private);
    let mut all: Vec<AtomicSettings> = Atomic::ALL.iter().map(alone).collect();
    for operation in [Atomic::FetchAdd, Atomic::CompareExchange] {
        let contended = |threads| setting(operation, threads, AtomicSharing::Contended);
        all.extend(contenders(input, cpus).into_iter().map(contended));
    }
    all.push(setting(Atomic::FetchAdd, 2, AtomicSharing::Private));
    all.push(setting(Atomic::FetchAdd, 2, AtomicSharing::FalselyShared));
    all
}

/// Numbers of contending threads: 2, all CPUs, and powers of two between;
/// every number when there is time. With one CPU 2 stays, to be reported.
fn contenders(input: &PlanInput, cpus: u64) -> BTreeSet<u64> {
    let all = cpus.max(2);
    if input.survey {
        (1..7).map(|power| 1 << power).filter(|threads| *threads <= all).chain([all]).collect()
    } else {
        (2..=all).collect()
    }
}

fn make_point(setting: AtomicSettings) -> MeasurementPoint {
    let operation = setting.operation.word();
    let title = match (setting.sharing, setting.threads) {
        // Nothing waits for the word that was loaded: several loads are under way at once.
        (AtomicSharing::Private, 1) if setting.operation == Atomic::Load => {
            "atomic load, throughput".to_owned()
        }
        (AtomicSharing::Private, 1) => format!("atomic {operation}"),
        (AtomicSharing::Private, threads) => format!("{operation} by {threads}, own lines"),
        (sharing, threads) => format!("{operation} by {threads}, {}", sharing.word().replace('-', " ")),
    };
    let row = setting.threads <= 2;
    ATOMIC.make_point(setting, title, row)
}

/// Words on which the threads work, eight to a line, on lines of their own.
type AtomicWordLines = Arc<[CacheLineCell<[AtomicU64; 8]>]>;

/// Place of a thread's word: its line, and its index there.
fn word_position(sharing: AtomicSharing, thread: usize) -> (usize, usize) {
    match sharing {
        AtomicSharing::Private => (thread, 0),
        AtomicSharing::Contended => (0, 0),
        AtomicSharing::FalselyShared => (thread / 8, thread % 8),
    }
}

fn run_atomics(bench: &mut Bench) -> Result<()> {
    let mut cool = true;
    for (index, point) in bench.points().iter().enumerate() {
        let setting = AtomicSettings::read(point)?;
        let threads = setting.threads as usize;
        if cool && threads > 1 && bench.cpus().len() > 1 {
            placement::warm_up_cpus(bench);
            cool = false;
        }
        let cpus = bench.cpus().to_vec();
        if threads > cpus.len() {
            lacks_cpus(bench, index, threads, cpus.len());
        } else if let Err(error) = measure_operation(bench, index, setting, &cpus[..threads]) {
            bench.unsupported(index, format!("{error:#}"), "");
        }
    }
    Ok(())
}

fn lacks_cpus(bench: &mut Bench, point: usize, threads: usize, cpus: usize) {
    if threads == 2 {
        return available::lacks_a_cpu(bench, point);
    }
    let reason = format!("it takes {}, and this run may use {cpus}", count_with_noun(threads as u64, "CPU"));
    bench.unsupported(point, reason, "allow more CPUs, or ask for fewer threads (--threads)");
}

fn measure_operation(bench: &mut Bench, index: usize, setting: AtomicSettings, cpus: &[u32]) -> Result<()> {
    let AtomicSettings { operation, sharing, .. } = setting;
    let words: AtomicWordLines = cpus.iter().map(|_| CacheLineCell::default()).collect();
    let batch = Batch { ops: UNROLL, cycles: cpus.len() == 1, ..Batch::default() };
    let word = |words: &AtomicWordLines, thread: usize| {
        let (line, place) = word_position(sharing, thread);
        (words.clone(), line, place)
    };
    if cpus.len() == 1 {
        bench.batch(index, batch, |n| atomics::run_operations(operation, &words[0].0[0], n * UNROLL));
        return Ok(());
    }
    let helpers = cpus
        .iter()
        .enumerate()
        .skip(1)
        .map(|(thread, cpu)| (*cpu, helper_work(word(&words, thread), operation)));
    let thread_group = ThreadGroup::start_helpers(bench.timebase(), helpers.collect())?;
    let (words, line, place) = word(&words, 0);
    thread_group.measure_batches(bench, index, UNROLL, |iterations| {
        atomics::run_operations(operation, &words[line].0[place], iterations * UNROLL);
    });
    let helpers = thread_group.stop_helpers();
    if let Some(fairness) = bench.median(index).and_then(|own| fairness(own, &helpers)) {
        bench.add_value(index, "fairness", fairness, "ratio", Better::More);
    }
    Ok(())
}

/// Atomics of a helper between two looks if the leader is done; the leader waits for as many at the end.
const BETWEEN_LOOKS: u64 = 128;

/// Returns the work of a helper: the leader's operation, for as long as the leader works.
fn helper_work((words, line, place): (AtomicWordLines, usize, usize), operation: Atomic) -> BatchWork {
    Box::new(move |_, over: &AtomicBool| {
        let mut operations = 0;
        while !over.load(Relaxed) {
            operations += atomics::run_operations(operation, &words[line].0[place], BETWEEN_LOOKS);
        }
        operations
    })
}

/// Ratio of the rate of the slowest thread to that of the fastest: 1 if all are equal. `own_ns` is the leader's
/// time for an operation.
fn fairness(own_ns: f64, helpers: &[BatchWorkTotal]) -> Option<f64> {
    let rates =
        helpers.iter().filter(|helper| helper.ns > 0.0).map(|helper| helper.operations as f64 / helper.ns);
    let rates: Vec<f64> = rates.chain((own_ns > 0.0).then(|| 1.0 / own_ns)).collect();
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    let slowest = rates.iter().copied().fold(f64::MAX, f64::min);
    (rates.len() == helpers.len() + 1 && fastest > 0.0).then(|| slowest / fastest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::ParamValue;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    fn machine(cpus: &str) -> Machine {
        Machine { allowed: cpus.parse().unwrap(), ..Machine::default() }
    }

    #[test]
    fn a_survey_has_each_operation_alone_and_contended() {
        let points = ATOMIC.plan(&harness::input(), &machine("0-5"));
        let counts: Vec<_> = points
            .iter()
            .filter(|p| p.text_param("sharing") == "contended" && p.text_param("operation") == "fetch-add")
            .map(|p| p.numeric_param("threads"))
            .collect();
        assert_eq!(counts, [2, 4, 6]);
        assert_eq!(points.iter().filter(|p| p.numeric_param("threads") == 1).count(), Atomic::ALL.len());
        let alone = ATOMIC.plan(&harness::input(), &machine("0"));
        assert!(alone.iter().any(|p| p.numeric_param("threads") == 2), "reported, not left out");
    }

    #[test]
    fn values_given_are_combined() {
        let mut input = harness::input();
        input.values.insert("threads".into(), vec![2.into(), 3.into()]);
        input.values.insert("sharing".into(), vec![ParamValue::from("false-sharing")]);
        assert_eq!(ATOMIC.plan(&input, &machine("0-3")).len(), 2 * Atomic::ALL.len());
    }

    #[test]
    fn threads_share_what_they_should() {
        assert_eq!(
            [word_position(AtomicSharing::Private, 0), word_position(AtomicSharing::Private, 9)],
            [(0, 0), (9, 0)]
        );
        assert_eq!(
            [word_position(AtomicSharing::Contended, 0), word_position(AtomicSharing::Contended, 9)],
            [(0, 0), (0, 0)]
        );
        assert_eq!(
            [word_position(AtomicSharing::FalselyShared, 1), word_position(AtomicSharing::FalselyShared, 9)],
            [(0, 1), (1, 1)]
        );
        assert_eq!(size_of::<CacheLineCell<[AtomicU64; 8]>>(), 128);
    }

    #[test]
    fn every_operation_offered_is_known_and_counts_whole() {
        for operation in Atomic::ALL {
            let word = AtomicU64::new(0);
            assert_eq!(atomics::run_operations(*operation, &word, UNROLL), UNROLL, "{operation:?}");
        }
    }

    #[test]
    fn fairness_is_the_slowest_to_the_fastest() {
        let helper = |operations, ns| BatchWorkTotal { operations, ns };
        assert_eq!(fairness(10.0, &[helper(10, 100.0), helper(5, 100.0)]), Some(0.5));
        assert_eq!(fairness(10.0, &[helper(0, 0.0)]), None);
    }

    #[test]
    fn all_are_measured_here_or_say_why_not() {
        for m in harness::measure(&EXPERIMENT, harness::points(&ATOMIC)) {
            harness::check(&m);
            let alone = m.numeric_param("threads") == Some(1);
            assert!(
                alone || m.quality.level != QualityLevel::Ok || m.values.contains_key("fairness"),
                "{:?}",
                m.params
            );
        }
    }
}
