//! Locks, hand-offs, threads and pools.

use super::finding;
use super::select::{is, is_slower, many, measured, number, one_way, times, typical, value};
use crate::report::{Finding, Measurement, Report, Times};
use crate::units::format_time;

/// The ways to hand over that are compared, the one of the talk first.
const MECHANISMS: [(&str, &str); 6] = [
    ("sync.semaphore", "semaphore"),
    ("sync.futex", "futex"),
    ("sync.condvar", "condition variable"),
    ("sync.eventfd", "eventfd"),
    ("sync.pipe", "pipe"),
    ("sync.unix-stream", "Unix socket"),
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
    fn placed(
        report: &'a Report,
        (placement, words): (&'static str, &'static str),
        least_blocked: f64,
    ) -> Option<Self> {
        MECHANISMS.iter().find_map(|(probe, mechanism)| {
            let blocks =
                |m: &&Measurement| value(m, "blocked").is_none_or(|percent| percent >= least_blocked);
            let point = measured(report, probe).filter(blocks).find(|m| is(m, "placement", placement))?;
            Some(HandOff { point, mechanism, placement: words })
        })
    }

    /// The first placement of which there is one.
    fn any(report: &'a Report, least_blocked: f64) -> Option<Self> {
        PLACEMENTS.into_iter().find_map(|placement| HandOff::placed(report, placement, least_blocked))
    }

    /// Time there and back, where the probe times that or a half of it.
    fn round_trip(&self) -> f64 {
        if self.point.times == Times::RoundTrip { typical(self.point) } else { 2.0 * typical(self.point) }
    }
}

/// The talk puts a semaphore of 8 µs beside the classic mutex of 25 ns. These
/// are two different things.
fn mutex_and_hand_off(report: &Report) -> Option<Finding> {
    let mutex = measured(report, "sync.mutex").next()?;
    // One that mostly finds its token there is no blocking hand-off.
    let hand_off = HandOff::any(report, 50.0)?;
    let (lock, way) = (typical(mutex), one_way(hand_off.point));
    let mut text = format!(
        "A mutex that nobody else holds takes {}, a blocking hand-off by {} {} {} one way",
        format_time(lock),
        hand_off.mechanism,
        hand_off.placement,
        format_time(way),
    );
    text += &match way > lock {
        true => format!(" ({})", times(way / lock)),
        false => String::new(),
    };
    text += ". They are not the same thing: the mutex never leaves the program, the hand-off puts one thread to \
             sleep in the kernel and wakes another. Compare like with like.";
    let mut values = vec![("mutex_ns", lock), ("hand_off_one_way_ns", way)];
    values.extend(value(hand_off.point, "blocked").map(|percent| ("blocked_percent", percent)));
    Some(finding("mutex-and-hand-off", text, &values))
}

/// What making a thread costs beside waking one that waits.
fn why_pools(report: &Report) -> Option<Finding> {
    let total = measured(report, "thread.total").find(|m| !is(m, "mode", "cold"))?;
    let hand_off = HandOff::any(report, 0.0)?;
    let (create, wake) = (typical(total), hand_off.round_trip());
    let figures = format!(
        "Creating, running and joining a thread takes {}, handing over to a waiting thread and back by {} {} {}",
        format_time(create),
        hand_off.mechanism,
        hand_off.placement,
        format_time(wake),
    );
    let text = match create / wake {
        ratio if ratio >= 1.5 => {
            format!("{figures}: {} cheaper. That is why thread pools exist.", times(ratio))
        }
        ratio => format!("{figures} ({}): a thread pool saves little here.", times(ratio)),
    };
    Some(finding("thread-pools", text, &[("thread_total_ns", create), ("hand_off_round_trip_ns", wake)]))
}

/// What the idle state of the other core adds to waking a thread there.
fn idle_exit(report: &Report) -> Option<Finding> {
    let (idle, awake, mechanism) = MECHANISMS.iter().find_map(|(probe, mechanism)| {
        let placed = |placement| measured(report, probe).find(|m| is(m, "placement", placement));
        Some((placed("two-cores")?, placed("two-cores-awake")?, mechanism))
    })?;
    let (from_idle, from_awake) = (typical(idle), typical(awake));
    let what = match idle.times {
        Times::RoundTrip => "there and back",
        Times::OneWay | Times::Operation => "one way",
    };
    let figures = format!(
        "A hand-off by {mechanism} between two cores takes {} {what}, {} while both cores are kept awake",
        format_time(from_idle),
        format_time(from_awake),
    );
    let mut values = vec![("two_cores_ns", from_idle), ("two_cores_awake_ns", from_awake)];
    if is_slower(awake, idle) {
        return None; // Something else disturbed it: no conclusion.
    }
    if !is_slower(idle, awake) {
        let text = format!("{figures}: leaving the idle state costs nothing measurable here.");
        return Some(finding("idle-exit", text, &values));
    }
    values.push(("idle_exit_ns", from_idle - from_awake));
    let mut text = format!(
        "{figures}: {} of it ({:.0} %) is the sleeping core leaving its idle state",
        format_time(from_idle - from_awake),
        100.0 * (from_idle - from_awake) / from_idle,
    );
    text += match report.machine.hypervisor {
        Some(_) => ", which in a virtual machine includes the hypervisor's wake-up of the virtual CPU.",
        None => ".",
    };
    Some(finding("idle-exit", text, &values))
}

/// Whether more threads than cores slow the work down: what `slowdown` says
/// beyond that of a pool that just fills the CPUs, for two threads at work
/// already share memory and caches.
fn oversubscription(report: &Report) -> Option<Finding> {
    let cpus = report.machine.allowed.0.len() as u64;
    let pools: Vec<(u64, f64, &Measurement)> = measured(report, "thread.pool")
        .filter_map(|m| Some((number(m, "threads")?, value(m, "slowdown")?, m)))
        .filter(|(_, slowdown, _)| *slowdown > 0.0)
        .collect();
    let crowded = pools.iter().filter(|(threads, ..)| cpus > 0 && *threads > cpus);
    let (threads, slowdown, pool) = *crowded.max_by_key(|(threads, ..)| *threads)?;
    let full = pools.iter().find(|(count, ..)| *count == cpus);
    let base = full.map_or(1.0, |(_, slowdown, _)| *slowdown);
    let mut text = format!(
        "A pool of {threads} threads on {cpus} CPU{} needs {} the time of its tasks dealt out evenly",
        if cpus == 1 { "" } else { "s" },
        times_of(slowdown)
    );
    text += &full.map_or(String::new(), |_| format!(", one of {cpus} {}", times_of(base)));
    text += &match slowdown / base {
        extra if extra < 1.1 => ": more threads than CPUs as such slow nothing down".to_owned(),
        extra => format!(": {:.0} % is lost to more threads than CPUs", 100.0 * (extra - 1.0) / extra),
    };
    let mut values = vec![
        ("threads", threads as f64),
        ("cpus", cpus as f64),
        ("slowdown", slowdown),
        ("slowdown_of_full_pool", base),
    ];
    if let (Some(p50), Some(p99)) = (value(pool, "wait_p50"), value(pool, "wait_p99")) {
        let (half, most) = (format_time(p50), format_time(p99));
        text +=
            &format!(", but half of the tasks wait {half} or more for their turn, one in a hundred {most}");
        values.extend([("wait_p50_ns", p50), ("wait_p99_ns", p99)]);
    }
    Some(finding("oversubscription", text + ".", &values))
}

/// A ratio near one, to a hundredth.
fn times_of(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.2} times") } else { format!("{} times", many(ratio)) }
}
