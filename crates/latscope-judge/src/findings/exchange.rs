//! Locks, hand-offs, threads and pools.

use super::evidence::{EvidenceFigure, FindingBuilder, Ratio, alike, compare_figures};
use super::select::{finite_value, measured_points};
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::report::{Finding, Measurement, Report, Semantics};
use latscope_core::units::count_with_noun;

/// The ways to hand over that are compared, the one of the talk first.
const MECHANISMS: [(&str, &str); 6] = [
    (ids::SEMAPHORE, "semaphore"),
    (ids::FUTEX, "futex"),
    (ids::CONDVAR, "condition variable"),
    (ids::EVENTFD, "eventfd"),
    (ids::PIPE, "pipe"),
    (ids::UNIX_STREAM, "Unix socket"),
];

/// Placements from the least to the most that lies in the way.
const PLACEMENTS: [(&str, &str); 3] = [
    ("same-core", "on one core"),
    ("two-cores-awake", "between two cores kept awake"),
    ("two-cores", "between two cores"),
];

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    [mutex_and_hand_off, why_pools, idle_exit, oversubscription]
        .iter()
        .filter_map(|conclusion| conclusion(report))
        .collect()
}

/// A hand-off that was measured, with its name in words.
struct HandOff<'a> {
    point: &'a Measurement,
    mechanism: &'static str,
    placement: &'static str,
}

impl<'a> HandOff<'a> {
    /// The first mechanism measured in this placement of whose waits at least
    /// this percentage slept.
    fn in_placement(
        report: &'a Report,
        (placement, words): (&'static str, &'static str),
        least_blocked: f64,
    ) -> Option<Self> {
        MECHANISMS.iter().find_map(|(probe, mechanism)| {
            let point = measured_points(report, probe).find(|m| {
                m.has_param_value(param::PLACEMENT, placement)
                    && finite_value(m, "blocked").is_none_or(|percent| percent >= least_blocked)
            })?;
            Some(HandOff { point, mechanism, placement: words })
        })
    }

    /// The first placement of which there is one.
    fn any(report: &'a Report, least_blocked: f64) -> Option<Self> {
        PLACEMENTS.into_iter().find_map(|placement| HandOff::in_placement(report, placement, least_blocked))
    }

    /// Time there and back, where the probe times that or a half of it.
    fn round_trip(&self) -> Option<EvidenceFigure> {
        let figure = EvidenceFigure::p50(self.point)?;
        Some(if self.point.times == Semantics::RoundTrip { figure } else { figure.scale_by(2.0) })
    }
}

/// The talk puts a semaphore of 8 µs beside the classic mutex of 25 ns. These
/// are two different things.
fn mutex_and_hand_off(report: &Report) -> Option<Finding> {
    let lock = EvidenceFigure::p50(measured_points(report, ids::MUTEX).next()?)?;
    // One that mostly finds its token there is no blocking hand-off.
    let hand_off = HandOff::any(report, 50.0)?;
    let way = hand_off.round_trip()?.scale_by(0.5);
    let ratio = compare_figures(&way, &lock)?;
    let text = format!(
        "An uncontended mutex takes {}, a blocking hand-off by {} {} {} one way ({}). They are not the same \
         thing: the mutex never leaves the program, the hand-off puts one thread to sleep in the kernel and wakes another. \
         Compare like with like.",
        lock.format_duration(),
        hand_off.mechanism,
        hand_off.placement,
        way.format_duration(),
        ratio.at_least()
    );
    let mut told = FindingBuilder::claim("mutex-and-hand-off")
        .figure("mutex_ns", &lock)
        .figure("hand_off_one_way_ns", &way);
    if let Some(blocked) = EvidenceFigure::from_value(hand_off.point, "blocked") {
        told = told.figure("blocked_percent", &blocked);
    }
    Some(told.ratio("ratio", &ratio).into_finding(text))
}

/// Compares the cost of creating a thread with that of waking a waiting thread.
fn why_pools(report: &Report) -> Option<Finding> {
    let create = EvidenceFigure::p50(
        measured_points(report, ids::THREAD_TOTAL).find(|m| !m.has_param_value(param::MODE, "cold"))?,
    )?;
    let hand_off = HandOff::any(report, 0.0)?;
    let wake = hand_off.round_trip()?;
    let figures = format!(
        "Creating, running and joining a thread takes {}, handing over to a waiting thread and back by {} {} {}",
        create.format_duration(),
        hand_off.mechanism,
        hand_off.placement,
        wake.format_duration(),
    );
    let told = FindingBuilder::claim("thread-pools")
        .figure("thread_total_ns", &create)
        .figure("hand_off_round_trip_ns", &wake);
    let ratio = Ratio::between(&create, &wake);
    let told = told.ratio("ratio", &ratio);
    if compare_figures(&create, &wake).is_some_and(|ratio| ratio.low >= 1.5) {
        return Some(told.into_finding(format!(
            "{figures}: a new thread takes {} as long. A pool of waiting threads saves that.",
            ratio.at_least()
        )));
    }
    (ratio.high < 1.5).then(|| told.into_finding(format!("{figures}: a thread pool saves little here.")))
}

/// Time that the idle state of the other core adds to waking a thread there.
fn idle_exit(report: &Report) -> Option<Finding> {
    let (idle, awake, mechanism) = MECHANISMS.iter().find_map(|(probe, mechanism)| {
        let placed = |placement| {
            measured_points(report, probe).find(|m| m.has_param_value(param::PLACEMENT, placement))
        };
        Some((placed("two-cores")?, placed("two-cores-awake")?, mechanism))
    })?;
    let what = match idle.times {
        Semantics::RoundTrip => "there and back",
        Semantics::OneWay | Semantics::Operation => "one way",
    };
    let (idle, awake) = (EvidenceFigure::p50(idle)?, EvidenceFigure::p50(awake)?);
    let figures = format!(
        "A hand-off by {mechanism} between two cores takes {} {what}, {} while both cores are kept awake",
        idle.format_duration(),
        awake.format_duration(),
    );
    let told =
        FindingBuilder::claim("idle-exit").figure("two_cores_ns", &idle).figure("two_cores_awake_ns", &awake);
    if alike(&idle, &awake) {
        return Some(
            told.into_finding(format!("{figures}: leaving the idle state costs nothing measurable here.")),
        );
    }
    // Neither alike nor apart, or apart the wrong way round: something else disturbed one of them.
    compare_figures(&idle, &awake)?;
    let exit = idle.less(&awake);
    let mut text =
        format!("{figures}: {} of it is the sleeping core leaving its idle state", exit.format_duration());
    text += match report.machine.hypervisor {
        Some(_) => ", which in a virtual machine includes the hypervisor's wake-up of the virtual CPU.",
        None => ".",
    };
    Some(told.figure("idle_exit_ns", &exit).into_finding(text))
}

/// Reports if more threads than cores slow the work down. The figure is the excess of `slowdown` over that of a pool
/// that just fills the CPUs, as two busy threads already share memory and caches.
fn oversubscription(report: &Report) -> Option<Finding> {
    let cpus = report.machine.allowed.0.len() as u64;
    let pools: Vec<(u64, &Measurement)> = measured_points(report, ids::THREAD_POOL)
        .filter_map(|m| Some((m.numeric_param(param::THREADS)?, m)))
        .collect();
    let crowded = pools.iter().filter(|(threads, _)| cpus > 0 && *threads > cpus);
    let (threads, pool) = *crowded.max_by_key(|(threads, _)| *threads)?;
    let slowdown = EvidenceFigure::from_value(pool, "slowdown")?;
    let full = pools.iter().find(|(count, _)| *count == cpus);
    let base = full.and_then(|(_, pool)| EvidenceFigure::from_value(pool, "slowdown"));
    // No pool beats its tasks dealt out evenly: then what they are compared with was disturbed.
    if slowdown.high < 1.0 || base.as_ref().is_some_and(|base| base.high < 1.0) {
        return None;
    }
    let mut text = format!(
        "A pool of {} on {} needs {} times the time of its tasks dealt out evenly",
        count_with_noun(threads, "thread"),
        count_with_noun(cpus, "CPU"),
        slowdown.format_number()
    );
    let mut told = FindingBuilder::claim("oversubscription")
        .values([("threads", threads as f64), ("cpus", cpus as f64)])
        .figure("slowdown", &slowdown);
    if let Some(base) = base {
        told = told.figure("slowdown_of_full_pool", &base);
        text += &format!(", a pool of {cpus} {} times", base.format_number());
        if let Some(extra) = compare_figures(&slowdown, &base) {
            text += &format!(": more threads than CPUs take {} as long", extra.at_least());
        } else if alike(&slowdown, &base) {
            text += ": more threads than CPUs as such slow nothing down";
        }
    }
    if let (Some(half), Some(most)) =
        (EvidenceFigure::from_value(pool, "wait_p50"), EvidenceFigure::from_value(pool, "wait_p99"))
    {
        let (typical, long) = (half.format_duration(), most.format_duration());
        text += &format!(
            ". Half of the tasks wait {typical} or more for their turn, one in a hundred {long} or more"
        );
        told = told.figure("wait_p50_ns", &half).figure("wait_p99_ns", &most);
    }
    Some(told.into_finding(text + "."))
}
