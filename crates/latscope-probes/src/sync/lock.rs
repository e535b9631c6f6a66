//! A lock for which more threads want a CPU than there are: what waiters pay when its holder is preempted.
//!
//! The evidence is the kernel's count of involuntary switches of the holder, read with the lock held, before and after
//! its work. A holder that was switched out raises a number before it unlocks, so that all who waited for it see that
//! the number has changed.

use crate::prelude::*;
use latscope_os::futex::{OneWordLock, PiLock, PlainLock, SpinLock};
use latscope_os::kernels::cycle::dependent_adds;
use latscope_os::slice_extension::SliceExtension;

probes! {
    EXPERIMENT, LockContentionSettings, plan_contention, ..ProbeFacts::DELAYS;
    LOCK "sync.lock", "lock whose holder may be preempted",
        "futex(2), getrusage(2) ru_nivcsw; Documentation/userspace-api/rseq.rst",
        "From a failed first try until a thread has a lock that a thread for each CPU and `extra` more want. \
        Each holds it for fixed work and pauses so long that the lock is free for half of the time."
        { by_name_only: true, may_be_zero: &["extra"],
          sensitive_to: &[Condition::Isolation, Condition::Tick], };
}

static EXPERIMENT: Experiment = Experiment::new("sync.lock", Cpus::All, run_contention)
    .setup_per_point(0.05)
    .fewer_rounds(3, "preemptions are rare: each round lasts longer")
    .adapted_by(adapt);

words! {
    /// Kind of a lock.
    pub(crate) enum ContendedLockKind {
        /// A word that is tried again and again.
        Spin = "spin",
        /// A futex on which waiters sleep.
        Futex = "futex",
        /// A futex whose holder inherits the priority of its waiters.
        Pi = "pi",
    }
}

words! {
    /// Request of a holder to the scheduler.
    enum SliceExtensionRequest {
        /// None.
        Nothing = "nothing",
        /// A little more time, should the slice end meanwhile.
        Extension = "extension",
    }
}

settings! {
    /// Threads and the lock that they want.
    struct LockContentionSettings, requested as LockContentionRequest {
        /// Kind of the lock: a word that is tried again and again, a futex on which waiters sleep, or one
        /// with priority inheritance.
        lock: ContendedLockKind;
        /// Threads above the number of CPUs.
        extra: u64;
        /// Time for which a thread holds the lock if nothing interrupts it.
        hold: u64 as Time;
        /// What a holder asks the scheduler for: nothing, or an extension of its slice (rseq, Linux 7.0).
        asks: SliceExtensionRequest;
    }
}

/// Time for which the lock is held, unless asked otherwise, ns.
const HOLD: u64 = 5_000;
/// Multiple of the time for a point, in a family's own run and in a survey.
const OWN: u64 = 10;
const SURVEYED: u64 = 2;
/// Most waits that are kept, of all threads together.
const KEPT: usize = 1 << 21;
/// Time by which a hold without a switch is longer than it should be, ns, that no cache miss explains.
const STALLED_NS: f64 = 20_000.0;

fn plan_contention(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = LockContentionRequest::of(input);
    let mut points = Vec::new();
    let (locks, extras): (&[ContendedLockKind], &[u64]) = match (input.survey, input.profile) {
        (true, _) => (&[ContendedLockKind::Futex], &[1]),
        (false, SurveyProfile::Full) => (ContendedLockKind::ALL, &[1, 2, 4]),
        (false, _) => (ContendedLockKind::ALL, &[1]),
    };
    for hold in asked.hold.or(&[HOLD]) {
        for lock in asked.lock.or(locks) {
            // A thread for each CPU is the comparison, of one lock.
            let compared = !input.survey && lock == ContendedLockKind::Futex && !asked.extra.given();
            for extra in compared.then_some(0).into_iter().chain(asked.extra.or(extras)) {
                // The request is worth a row only where a holder can be preempted.
                let usual = if input.survey || extra == 0 {
                    &SliceExtensionRequest::ALL[..1]
                } else {
                    SliceExtensionRequest::ALL
                };
                for asks in asked.asks.or(usual) {
                    let setting = LockContentionSettings { lock, extra, hold, asks };
                    points.push(probe.make_point(setting.clone(), format_title(&setting), input.survey));
                }
            }
        }
    }
    points
}

fn format_title(crowd: &LockContentionSettings) -> String {
    let kind = match crowd.lock {
        ContendedLockKind::Spin => "spinning lock",
        ContendedLockKind::Futex => "futex lock",
        ContendedLockKind::Pi => "PI lock",
    };
    let threads = match crowd.extra {
        0 => "a thread a CPU".to_owned(),
        extra => format!("{} above the CPUs", count_with_noun(extra, "thread")),
    };
    let asks = if crowd.asks == SliceExtensionRequest::Extension { ", slice extended" } else { "" };
    format!("wait for a {kind}, {threads}{asks}")
}

/// Lets a step run for a time in which holders are preempted, unless a time or a count was asked for.
fn adapt(step: &mut PlanStep, input: &PlanInput) {
    let planned = &mut step.stop;
    if planned.budget_ns != u64::MAX && planned.limit_ns != planned.budget_ns {
        let times = if input.survey { SURVEYED } else { OWN };
        (planned.limit_ns, planned.events) = (planned.budget_ns * times, u64::MAX);
    }
}

fn run_contention(bench: &mut Bench) -> Result<()> {
    for (index, crowd) in bench.settings::<LockContentionSettings>()?.into_iter().enumerate() {
        if let Some((reason, remedy)) = find_refusal(&crowd) {
            bench.unsupported(index, reason, remedy);
            continue;
        }
        match crowd.lock {
            ContendedLockKind::Spin => measure_contention(bench, index, &crowd, &SpinLock::default()),
            ContendedLockKind::Futex => measure_contention(bench, index, &crowd, &PlainLock::default()),
            ContendedLockKind::Pi => measure_contention(bench, index, &crowd, &PiLock::default()),
        }?;
    }
    Ok(())
}

/// Tries out that the lock and the request exist; otherwise returns the reason and the remedy.
fn find_refusal(crowd: &LockContentionSettings) -> Option<(String, &'static str)> {
    if crowd.lock == ContendedLockKind::Pi
        && let Err(error) = PiLock::supported()
    {
        return Some((format!("FUTEX_LOCK_PI: {error}"), "use a kernel with CONFIG_FUTEX_PI"));
    }
    if crowd.asks == SliceExtensionRequest::Extension {
        // A thread of its own, since it stays enabled.
        let tried = std::thread::spawn(|| SliceExtension::enable().map(drop));
        let error = tried.join().expect("a trial does not panic").err()?;
        return Some((error.to_string(), "use a kernel that extends slices"));
    }
    None
}

fn measure_contention<L: OneWordLock>(
    bench: &mut Bench,
    point: usize,
    crowd: &LockContentionSettings,
    lock: &L,
) -> Result<()> {
    let cpus = bench.cpus().to_vec();
    let threads = cpus.len() + crowd.extra as usize;
    let timebase = bench.timebase();
    let hold = iterations(timebase, crowd.hold);
    let contest = LockContention {
        lock,
        clock: timebase.clock(),
        hold,
        // Half of the time the lock is free if every CPU has a thread that wants it.
        pause: hold * (2 * cpus.len() as u64 - 1),
        stalled: timebase.ticks(crowd.hold + STALLED_NS as u64),
        extended: crowd.asks == SliceExtensionRequest::Extension,
        most: KEPT / threads,
        switched_out: AtomicU64::new(0),
        waits: AtomicU64::new(0),
        over: AtomicBool::new(false),
    };
    let writer = bench.writer(point);
    let began = timebase.clock().stamp_start();
    let began_ns = latscope_os::clock::monotonic_ns().saturating_sub(bench.epoch_ns());
    let stop = bench.stop();
    let started = Instant::now();
    let seen = contest.contend(&cpus, threads, || stop_now(&writer, &contest.waits, stop, started))?;
    let lasted = started.elapsed();
    let writer =
        record_waits(writer, &seen, timebase, |at| began_ns + timebase.span(at.saturating_sub(began)) as u64);
    report_contention(bench, point, crowd, &seen, lasted);
    bench.finish_writer(point, writer);
    Ok(())
}

/// Iterations of the chain of additions that take `ns`.
fn iterations(timebase: Timebase, ns: u64) -> u64 {
    const TRIED: u64 = 200;
    let clock = timebase.clock();
    let fastest = (0..20)
        .map(|_| {
            let start = clock.stamp_start();
            std::hint::black_box(dependent_adds(TRIED));
            clock.stamp_end() - start
        })
        .min();
    let each = timebase.interval_ns(fastest.unwrap_or(1)).max(1.0) / TRIED as f64;
    ((ns as f64 / each) as u64).max(1)
}

fn stop_now(writer: &HistogramSlotWriter, waits: &AtomicU64, stop: Stop, started: Instant) -> bool {
    let late = started.elapsed() >= Duration::from_nanos(stop.limit_ns);
    late || waits.load(Relaxed) >= stop.events || writer.should_stop()
}

/// A wait for the lock.
#[derive(Debug, Clone, Copy)]
struct LockWaitTime {
    /// Length of the wait, and its end, ticks.
    ticks: u64,
    at: u64,
    /// True if a holder was switched out meanwhile.
    met: bool,
}

/// Observations of a thread.
#[derive(Debug, Default)]
struct LockThreadTally {
    waits: Vec<LockWaitTime>,
    /// Times that it had the lock; was switched out then; was held up then without a switch; was granted more time.
    holds: u64,
    switched_out: u64,
    stalled: u64,
    granted: u64,
    /// Waits, with the pause before, in which the waiting thread itself was switched out by others.
    lost_its_cpu: u64,
}

/// The lock and all who want it.
struct LockContention<'a, L> {
    lock: &'a L,
    clock: AnyClock,
    hold: u64,
    pause: u64,
    /// Time after which a hold without a switch was held up, ticks.
    stalled: u64,
    extended: bool,
    /// Most waits that a thread keeps.
    most: usize,
    /// Number of holders so far that were switched out; raised with the lock held.
    switched_out: AtomicU64,
    waits: AtomicU64,
    over: AtomicBool,
}

impl<L: OneWordLock> LockContention<'_, L> {
    /// Lets `threads` threads contend on all `cpus` until `is_over`.
    fn contend(
        &self,
        cpus: &[u32],
        threads: usize,
        is_over: impl Fn() -> bool,
    ) -> Result<Vec<LockThreadTally>> {
        std::thread::scope(|scope| {
            let started: std::io::Result<Vec<_>> = (0..threads)
                .map(|_| std::thread::Builder::new().spawn_scoped(scope, || self.take_part(cpus)))
                .collect();
            while started.is_ok() && !is_over() {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.over.store(true, Relaxed);
            let threads = started.context("no thread can be created")?;
            threads.into_iter().map(|thread| thread.join().expect("a contender does not panic")).collect()
        })
    }

    fn take_part(&self, cpus: &[u32]) -> Result<LockThreadTally> {
        let extension = if self.extended { Some(SliceExtension::enable()?) } else { None };
        let mut seen = LockThreadTally {
            waits: Vec::with_capacity(self.most.min(1 << 12)),
            ..LockThreadTally::default()
        };
        sched::pin(cpus).context("the CPUs cannot be used")?;
        let mut switches = thread_counts().involuntary;
        while !self.over.load(Relaxed) {
            if let Some(extension) = &extension {
                extension.request_extension();
            }
            let waited = !self.lock.try_lock();
            if waited {
                let wait = self.lock_and_time();
                if seen.waits.len() < self.most {
                    seen.waits.push(wait);
                }
                self.waits.fetch_add(1, Relaxed);
            }
            let before = thread_counts().involuntary;
            seen.lost_its_cpu += u64::from(waited && before != switches);
            switches = self.work_with_lock(before, &mut seen);
            self.lock.unlock();
            if let Some(extension) = &extension {
                seen.granted += u64::from(extension.withdraw_request());
            }
            std::hint::black_box(dependent_adds(self.pause));
        }
        Ok(seen)
    }

    fn lock_and_time(&self) -> LockWaitTime {
        let before = self.switched_out.load(Relaxed);
        let asked = self.clock.stamp_start();
        self.lock.lock();
        let at = self.clock.stamp_end();
        LockWaitTime { ticks: at - asked, at, met: self.switched_out.load(Relaxed) != before }
    }

    /// Works with the lock held. Returns the involuntary switches of the thread so far.
    fn work_with_lock(&self, before: u64, seen: &mut LockThreadTally) -> u64 {
        let since = self.clock.stamp_start();
        std::hint::black_box(dependent_adds(self.hold));
        let lasted = self.clock.stamp_end() - since;
        let after = thread_counts().involuntary;
        seen.holds += 1;
        if after != before {
            seen.switched_out += 1;
            self.switched_out.fetch_add(1, Relaxed);
        } else if lasted > self.stalled {
            seen.stalled += 1;
        }
        after
    }
}

/// Records the waits of all threads in order of time.
fn record_waits(
    mut writer: HistogramSlotWriter,
    seen: &[LockThreadTally],
    timebase: Timebase,
    at: impl Fn(u64) -> u64,
) -> HistogramSlotWriter {
    let mut waits: Vec<LockWaitTime> = seen.iter().flat_map(|thread| thread.waits.iter().copied()).collect();
    waits.sort_unstable_by_key(|wait| wait.at);
    for wait in waits {
        writer.record_value(timebase.interval_ns(wait.ticks).round() as u64, at(wait.at));
    }
    writer
}

/// Quantities beside the waits: name, value, unit, the better direction.
type LockContentionFigure = (&'static str, f64, &'static str, Better);

/// Figures of a contest of `lasted` seconds; `ns` is the length of so many ticks.
fn contention_figures(
    seen: &[LockThreadTally],
    ns: impl Fn(u64) -> f64,
    lasted: f64,
) -> Vec<LockContentionFigure> {
    let sum = |count: fn(&LockThreadTally) -> u64| seen.iter().map(count).sum::<u64>();
    let (holds, waits) = (sum(|seen| seen.holds), sum(|seen| seen.waits.len() as u64));
    let share = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    let lengths = |met: bool| -> Vec<f64> {
        let waits = seen.iter().flat_map(|seen| &seen.waits).filter(|wait| wait.met == met);
        waits.map(|wait| ns(wait.ticks)).collect()
    };
    let (met, other) = (lengths(true), lengths(false));
    let mut figures = vec![
        ("waited", share(waits, holds), "%", Better::Neither),
        ("met-preempted", share(met.len() as u64, waits), "%", Better::Less),
        ("holders-preempted", share(sum(|seen| seen.switched_out), holds), "%", Better::Less),
        ("holders-held-up", share(sum(|seen| seen.stalled), holds), "%", Better::Less),
        ("waiters-preempted", share(sum(|seen| seen.lost_its_cpu), waits), "%", Better::Less),
        ("rate", holds as f64 / lasted, "1/s", Better::More),
    ];
    figures.extend(median(&met).map(|wait| ("wait-preempted", wait, "ns", Better::Less)));
    figures.extend(median(&other).map(|wait| ("wait-other", wait, "ns", Better::Less)));
    figures
}

fn report_contention(
    bench: &mut Bench,
    point: usize,
    crowd: &LockContentionSettings,
    seen: &[LockThreadTally],
    lasted: Duration,
) {
    let timebase = bench.timebase();
    let mut figures = contention_figures(seen, |ticks| timebase.interval_ns(ticks), lasted.as_secs_f64());
    let holds: u64 = seen.iter().map(|seen| seen.holds).sum();
    if crowd.asks == SliceExtensionRequest::Extension {
        let granted: u64 = seen.iter().map(|seen| seen.granted).sum();
        figures.push(("granted", 100.0 * granted as f64 / holds.max(1) as f64, "%", Better::Neither));
        figures.extend(request_ns(timebase).map(|ns| ("request", ns, "ns", Better::Less)));
    }
    for (name, value, unit, better) in figures {
        bench.add_value(point, name, value, unit, better);
    }
    if seen.iter().all(|seen| seen.waits.is_empty()) {
        let lasted = format_time(lasted.as_nanos() as f64);
        bench.uneventful(point, format!("no thread waited in {lasted}"));
    }
}

/// Time of a request for more time and its end, without a lock between, ns.
fn request_ns(timebase: Timebase) -> Option<f64> {
    const TIMES: u64 = 10_000;
    let requests = move || {
        let extension = SliceExtension::enable().ok()?;
        let start = timebase.clock().stamp_start();
        for _ in 0..TIMES {
            extension.request_extension();
            extension.withdraw_request();
        }
        Some(timebase.interval_ns(timebase.clock().stamp_end() - start) / TIMES as f64)
    };
    std::thread::spawn(requests).join().expect("a request does not panic")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;
    use latscope_os::usage::process_counts;

    fn planned(survey: bool, values: &[(&str, latscope_core::plan::ParamValue)]) -> Vec<MeasurementPoint> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), vec![value.clone()])).collect();
        let input = PlanInput { profile: SurveyProfile::Normal, survey, values, directories: vec![] };
        LOCK.plan(&input, &Machine::default())
    }

    #[test]
    fn more_time_is_asked_for_where_a_holder_can_be_preempted() {
        assert_eq!(planned(true, &[]).len(), 1);
        let titles: Vec<String> = planned(false, &[]).into_iter().map(|point| point.title).collect();
        assert_eq!(
            titles,
            [
                "wait for a spinning lock, 1 thread above the CPUs",
                "wait for a spinning lock, 1 thread above the CPUs, slice extended",
                "wait for a futex lock, a thread a CPU",
                "wait for a futex lock, 1 thread above the CPUs",
                "wait for a futex lock, 1 thread above the CPUs, slice extended",
                "wait for a PI lock, 1 thread above the CPUs",
                "wait for a PI lock, 1 thread above the CPUs, slice extended",
            ]
        );
        assert_eq!(planned(false, &[("extra", 0.into()), ("hold", 9.into())])[0].numeric_param("hold"), 9);
    }

    #[test]
    fn shares_are_of_all_holds_or_all_waits() {
        let wait = |ticks, met| LockWaitTime { ticks, at: 0, met };
        let waits = vec![wait(1_000, true), wait(10, false), wait(30, false), wait(3_000, true)];
        let first = LockThreadTally {
            waits,
            holds: 30,
            switched_out: 1,
            stalled: 2,
            lost_its_cpu: 1,
            ..LockThreadTally::default()
        };
        let second = LockThreadTally { holds: 10, switched_out: 1, ..LockThreadTally::default() };
        let figures = contention_figures(&[first, second], |ticks| ticks as f64 * 2.0, 4.0);
        let values: Vec<(&str, f64)> = figures.iter().map(|(name, value, ..)| (*name, *value)).collect();
        let expected = [
            ("waited", 10.0),
            ("met-preempted", 50.0),
            ("holders-preempted", 5.0),
            ("holders-held-up", 5.0),
            ("waiters-preempted", 25.0),
            ("rate", 10.0),
            ("wait-preempted", 4_000.0),
            ("wait-other", 40.0),
        ];
        assert_eq!(values, expected);
    }

    /// The kernel counts at least as many switches of the process as holders noticed, on a CPU that all share.
    #[test]
    fn a_holder_that_was_switched_out_was_counted_by_the_kernel() {
        let cpu = sched::allowed_cpus().unwrap()[0];
        let (timebase, _) = Timebase::calibrate();
        let contest = LockContention {
            lock: &PlainLock::default(),
            clock: timebase.clock(),
            hold: iterations(timebase, 2_000_000),
            pause: 1,
            stalled: u64::MAX,
            extended: false,
            most: 100,
            switched_out: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            over: AtomicBool::new(false),
        };
        let before = process_counts().involuntary;
        let began = Instant::now();
        let done = || contest.switched_out.load(Relaxed) > 2 || began.elapsed() > Duration::from_secs(5);
        let seen = contest.contend(&[cpu], 3, done).unwrap();
        let noticed: u64 = seen.iter().map(|seen| seen.switched_out).sum();
        assert_eq!(noticed, contest.switched_out.into_inner());
        assert!(process_counts().involuntary - before >= noticed);
        assert!(noticed == 0 || seen.iter().flat_map(|seen| &seen.waits).any(|wait| wait.met), "{seen:?}");
    }

    #[test]
    fn every_lock_is_waited_for_and_the_shares_are_shares() {
        let points = planned(false, &[("extra", 2.into())]);
        assert_eq!(points.len(), 6);
        for m in harness::measure(&EXPERIMENT, points) {
            if m.quality.level == QualityLevel::Unsupported {
                assert!(m.joined_reasons().is_some() && m.joined_remedies().is_some(), "{m:?}");
                continue;
            }
            harness::check(&m);
            for (name, value) in m.values.iter().filter(|(_, value)| value.unit == "%") {
                assert!((0.0..=100.0).contains(&value.value), "{name}: {value:?}");
            }
        }
    }
}
