//! Waking many threads that sleep on one futex: how long the call takes, when the first of them runs and when the last.

use crate::prelude::*;
use latscope_os::futex::{FutexWaiterGroup, hash_slots, set_hash_slots};
use std::sync::atomic::{AtomicU32, Ordering::AcqRel};

probes! {
    EXPERIMENT, FutexCrowdSettings, plan_futex_crowds, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    FUTEX_CROWD "sync.futex-crowd", "futex that many threads sleep on", "futex(2), PR_FUTEX_HASH(2const)",
        "Seen call: the call that wakes all (FUTEX_WAKE), or wakes one and moves the others to a second futex \
        (FUTEX_CMP_REQUEUE), from which each wakes the next. Seen first, last: from before it until the first, \
        the last thread runs."
        { times: Semantics::OneWay, by_name_only: true, sensitive_to: &[Condition::Isolation], };
}

static EXPERIMENT: Experiment =
    Experiment::new("sync.futex-crowd", Cpus::All, run_futex_crowds).setup_per_point(0.02);

words! {
    /// Way of waking.
    enum FutexWakeMethod {
        /// All by one call.
        WakeAll = "wake-all",
        /// One, and the others one after the other.
        Requeue = "requeue",
    }
}

words! {
    /// What of it is timed.
    enum FutexTimedPart {
        /// The call alone.
        Call = "call",
        /// Until the first of the threads runs.
        First = "first",
        /// Until the last of the threads runs.
        Last = "last",
    }
}

words! {
    /// Table in which the kernel finds the sleepers.
    enum FutexHashTable {
        /// The process's own (Linux 6.16).
        Private = "private",
        /// The one of all processes.
        Global = "global",
    }
}

settings! {
    /// Threads that are woken.
    struct FutexCrowdSettings, requested as FutexCrowdRequest {
        /// All by one call, or one, and the others moved to a second futex and woken one after the other.
        mode: FutexWakeMethod;
        /// Threads that sleep on the futex.
        threads: u64, axis;
        /// What is timed: the call, until the first thread runs, or until the last one does.
        seen: FutexTimedPart;
        /// Table in which the kernel finds the sleepers: the process's own (Linux 6.16), or that of all processes.
        hash: FutexHashTable;
    }
}

/// Slots of the process's own table, as many as the kernel gives a process with four CPUs.
const SLOTS: u32 = 16;
/// Time that sleepers get to fall asleep before they are woken.
const FALL_ASLEEP: Duration = Duration::from_micros(200);

fn plan_futex_crowds(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = FutexCrowdRequest::of(input);
    let threads: &[u64] = match input.profile {
        SurveyProfile::Quick => &[4],
        SurveyProfile::Normal => &[1, 4, 16],
        SurveyProfile::Full => &[1, 2, 4, 8, 16, 64],
    };
    let mut points = Vec::new();
    for hash in asked.hash.or(FutexHashTable::ALL) {
        for mode in asked.mode.or(FutexWakeMethod::ALL) {
            for threads in asked.threads.or(threads) {
                for seen in asked.seen.or(FutexTimedPart::ALL) {
                    let of = FutexCrowdSettings { mode, threads, seen, hash };
                    points.push(probe.make_point(of.clone(), format_title(&of), false));
                }
            }
        }
    }
    points
}

fn format_title(of: &FutexCrowdSettings) -> String {
    let what = match of.seen {
        FutexTimedPart::Call => "call",
        FutexTimedPart::First => "first runs",
        FutexTimedPart::Last => "last runs",
    };
    format!(
        "{} of {}, {} hash: {what}",
        of.mode.word(),
        count_with_noun(of.threads, "thread"),
        of.hash.word()
    )
}

fn run_futex_crowds(bench: &mut Bench) -> Result<()> {
    let wanted: Vec<FutexCrowdSettings> = bench.settings()?;
    // A process that uses the global table keeps it: the other one comes first.
    for hash in FutexHashTable::ALL {
        let set = set_hash_slots(if *hash == FutexHashTable::Private { SLOTS } else { 0 });
        let groups: BTreeSet<(FutexWakeMethod, u64)> =
            wanted.iter().filter(|of| of.hash == *hash).map(|of| (of.mode, of.threads)).collect();
        for (mode, threads) in groups {
            let mut parts = ActivityParts::default();
            let places = [FutexTimedPart::Call, FutexTimedPart::First, FutexTimedPart::Last].map(|seen| {
                let of = FutexCrowdSettings { mode, threads, seen, hash: *hash };
                parts.add_part(&wanted, |woken| *woken == of)
            });
            // A kernel without tables of processes has the global one only.
            match (&set, hash) {
                (Err(error), FutexHashTable::Private) => {
                    let reason = format!("the process gets no table of futexes of its own: {error}");
                    let remedy = "use Linux 6.16 or later with CONFIG_FUTEX_PRIVATE_HASH";
                    let points = parts.point_indices().iter();
                    points.for_each(|point| bench.unsupported(*point, reason.as_str(), remedy));
                }
                _ => measure_crowd(bench, mode, threads, parts.point_indices(), places)?,
            }
        }
    }
    Ok(())
}

/// State that the sleepers share.
#[derive(Debug)]
struct FutexCrowdState {
    crowd: FutexWaiterGroup,
    mode: FutexWakeMethod,
    clock: AnyClock,
    /// Stamps of the first and the last that ran.
    first: AtomicU64,
    last: AtomicU64,
    /// Threads that are about to sleep, and that have not run yet.
    about_to_sleep: AtomicU32,
    to_run: AtomicU32,
    all_ran: Tokens,
    ending: AtomicBool,
}

impl FutexCrowdState {
    /// Body of a sleeper. Returns how often it slept.
    fn sleep(&self) -> u64 {
        let before = thread_counts().voluntary;
        loop {
            let seen = self.crowd.openings();
            self.about_to_sleep.fetch_add(1, AcqRel);
            self.crowd.wait_for_opening(seen);
            let ran = self.clock.stamp_end();
            if self.mode == FutexWakeMethod::Requeue {
                self.crowd.wake_requeued();
            }
            self.first.fetch_min(ran, Relaxed);
            self.last.fetch_max(ran, Relaxed);
            let ending = self.ending.load(Relaxed);
            if self.to_run.fetch_sub(1, AcqRel) == 1 {
                self.all_ran.give_token();
            }
            if ending {
                return thread_counts().voluntary - before;
            }
        }
    }
}

/// Sleepers, spread over the CPUs.
struct Sleepers {
    shared: Arc<FutexCrowdState>,
    count: u32,
    threads: Vec<Partner<u64>>,
}

impl Sleepers {
    fn start_threads(mode: FutexWakeMethod, clock: AnyClock, count: u64, cpus: &[u32]) -> Result<Sleepers> {
        let count = u32::try_from(count).context("too many threads")?;
        let shared = Arc::new(FutexCrowdState {
            crowd: FutexWaiterGroup::default(),
            mode,
            clock,
            first: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            about_to_sleep: AtomicU32::new(0),
            to_run: AtomicU32::new(count),
            all_ran: Tokens::default(),
            ending: AtomicBool::new(false),
        });
        let mut sleepers = Sleepers { shared, count, threads: Vec::new() };
        // The caller's CPU comes last: it is busy with the call.
        for cpu in cpus.iter().cycle().skip(1).take(count as usize) {
            let (shared, cpu) = (sleepers.shared.clone(), *cpu);
            let thread = threads::start_partner(move || threads::pin(cpu), move || shared.sleep());
            match thread {
                Ok(thread) => sleepers.threads.push(thread),
                Err(error) => {
                    sleepers.count = sleepers.threads.len() as u32;
                    sleepers.shared.to_run.store(sleepers.count, Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(sleepers)
    }

    /// Returns when all are asleep, as far as can be seen.
    fn fall_asleep(&self) {
        while self.shared.about_to_sleep.load(Relaxed) < self.count {
            std::thread::sleep(FALL_ASLEEP / 4);
        }
        std::thread::sleep(FALL_ASLEEP);
        self.shared.about_to_sleep.store(0, Relaxed);
        self.shared.to_run.store(self.count, Relaxed);
        self.shared.first.store(u64::MAX, Relaxed);
        self.shared.last.store(0, Relaxed);
    }

    /// Wakes all; returns the stamps around the call, and of the first and the last that ran.
    fn wake_threads(&self) -> [u64; 4] {
        let shared = &*self.shared;
        let start = shared.clock.stamp_start();
        match shared.mode {
            FutexWakeMethod::WakeAll => shared.crowd.wake_all(),
            FutexWakeMethod::Requeue => shared.crowd.requeue_all(),
        };
        let end = shared.clock.stamp_end();
        shared.all_ran.take_token();
        [start, end, shared.first.load(Relaxed), shared.last.load(Relaxed)]
    }

    /// Ends all threads; returns how often they slept.
    fn stop_threads(&mut self) -> u64 {
        if self.threads.is_empty() {
            return 0;
        }
        self.fall_asleep();
        self.shared.ending.store(true, Relaxed);
        self.shared.crowd.wake_all();
        self.threads.drain(..).map(Partner::join).sum()
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

fn measure_crowd(
    bench: &mut Bench,
    mode: FutexWakeMethod,
    threads: u64,
    points: &[usize],
    places: [ActivityPart; 3],
) -> Result<()> {
    let mut sleepers = Sleepers::start_threads(mode, bench.timebase().clock(), threads, bench.cpus())?;
    let mut rounds = 0u64;
    bench.splits(points, SampleGate::Open, |splits| {
        sleepers.fall_asleep();
        let [start, end, first, last] = sleepers.wake_threads();
        rounds += 1;
        for (part, stamp) in places.iter().zip([end, first, last]) {
            part.set_between(splits, start, stamp);
        }
    });
    let slept = sleepers.stop_threads();
    let blocked = 100.0 * slept as f64 / ((rounds + 1) * threads) as f64;
    for point in points {
        bench.add_value(*point, "blocked", blocked.min(100.0), "%", Better::Neither);
        // Without tables of processes there is nothing to tell.
        if let Ok(slots) = hash_slots() {
            bench.add_value(*point, "hash-slots", f64::from(slots), "count", Better::Neither);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    #[test]
    fn each_point_names_what_it_shows() {
        let points = harness::points(&FUTEX_CROWD);
        assert_eq!(points.len(), 12);
        assert_eq!(points[0].title, "wake-all of 4 threads, private hash: call");
        assert_eq!(points[11].title, "requeue of 4 threads, global hash: last runs");
    }

    #[test]
    fn all_run_in_order_and_the_kernel_says_which_table_it_used() {
        let measured = harness::measure(&EXPERIMENT, harness::points(&FUTEX_CROWD));
        for m in &measured {
            harness::check(m);
            if m.quality.level == QualityLevel::Unsupported {
                continue;
            }
            assert!(m.values["blocked"].value > 0.0, "{m:?}");
            if let Some(slots) = m.values.get("hash-slots") {
                assert_eq!(slots.value > 0.0, m.has_param_value("hash", "private"), "{m:?}");
            }
        }
        // The first is one of those of which the last is the latest.
        for of_one in measured.chunks(3).filter(|of_one| of_one[0].quality.level != QualityLevel::Unsupported)
        {
            assert!(of_one[1].summary.p50 <= of_one[2].summary.p50, "{of_one:?}");
        }
    }
}
