//! A watching thread: its notes of each gap, its rests, and its end.

use super::duty::Duty;
use super::watch::{self, GapWatchHost, GapWatchLimits, GapWatchResult};
use crate::prelude::*;
use latscope_bench::alarm::ExceedanceAlarm;
use latscope_bench::gate::SampleGateReading;
use latscope_bench::hold::{Shortfall, apply_policy};
use latscope_bench::waits;
use latscope_os::usage::ResourceUsageCounts;
use std::sync::RwLock;

/// Orders of a watching thread.
#[derive(Debug, Clone, Copy)]
pub struct GapLoopOrder {
    /// Shortest gap wanted, ns.
    pub gap_ns: u64,
    /// Scheduling policy of the thread.
    pub policy: sched::ThreadSchedPolicy,
    /// Turns of watching and resting; `None` for a thread that never rests.
    pub duty: Option<Duty>,
    /// Limits of the time and of the number of gaps.
    pub stop: Stop,
    /// Timebase of the run's clock.
    pub timebase: Timebase,
    /// `CLOCK_MONOTONIC` at the epoch of the run, ns.
    pub epoch_ns: u64,
    /// True if the first gap above the threshold of the run ends all threads.
    pub ends: bool,
}

/// State that the threads share.
#[derive(Debug)]
pub struct GapLoopState {
    /// Lock that is held for writing until all threads have been started; true if they have.
    pub started: RwLock<bool>,
    /// Alarm at a gap above the threshold.
    alarm: ExceedanceAlarm,
    over: AtomicBool,
    /// `CLOCK_MONOTONIC` when all threads had been started, ns.
    began: AtomicU64,
}

impl GapLoopState {
    /// Returns the state for threads that are about to start.
    pub fn new(alarm: ExceedanceAlarm) -> GapLoopState {
        let (started, over, began) = (RwLock::new(false), AtomicBool::new(false), AtomicU64::new(0));
        GapLoopState { started, alarm, over, began }
    }

    /// States that all threads are to watch from now on.
    pub fn begin_watching(&self, now: u64) {
        self.began.store(now, Relaxed);
    }
}

words! {
    /// Cause to which a gap is attributed; its words are in the names of values.
    pub(crate) enum GapCauseKind {
        /// Another thread ran on the CPU.
        Preemption = "preemption",
        /// No other thread ran, and by the kernel's figures most of the time was not this thread's: the hypervisor
        /// kept it.
        Steal = "steal",
        /// Neither of these: an interrupt, or an event that no kernel sees. The word names no cause, since none is
        /// known.
        Unattributed = "unattributed",
    }
}

impl GapCauseKind {
    /// Returns the class of a gap of `gap_ns`. `switched` is true if thread switches were counted since the
    /// last reading; `missing_ns` is the time since then that was not the thread's own.
    fn classify_gap(gap_ns: f64, switched: bool, missing_ns: f64) -> GapCauseKind {
        match (switched, missing_ns > gap_ns / 2.0) {
            (true, _) => GapCauseKind::Preemption,
            (false, true) => GapCauseKind::Steal,
            (false, false) => GapCauseKind::Unattributed,
        }
    }
}

/// Gaps with a known cause.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GapCauseTotal {
    /// Number of these gaps.
    pub gaps: u64,
    /// Sum of these gaps, ns.
    pub lost_ns: f64,
}

/// Result of a watching thread.
#[derive(Debug)]
pub(crate) struct GapsSeen {
    /// Turns of the loop; each gap between two stretches of them counts as well.
    pub turns: u64,
    /// Time from the first reading to the last without rests, ns: busy or lost.
    pub watched_ns: f64,
    /// Time in which the thread slept, ns.
    pub rested_ns: f64,
    /// Number of gaps found.
    pub gaps: u64,
    /// The longest distance of two readings beyond the usual one, ns.
    pub longest_ns: f64,
    /// The gaps of each [`GapCauseKind`].
    pub classes: [GapCauseTotal; 3],
    /// The loop's own time, ns.
    pub loop_ns: f64,
    /// Shortest gap looked for, ns.
    pub gap_ns: f64,
    /// Number of times that another thread took the CPU.
    pub switches: u64,
    /// Page faults of the thread.
    pub faults: u64,
    /// Conditions that the thread did not get, or lost.
    pub shortfalls: Vec<Shortfall>,
    /// Writer of the thread's histogram.
    pub writer: HistogramSlotWriter,
}

/// Readings of the clock from which the loop's own time is known.
const CALIBRATION: usize = 10_000;

/// Least ratio of a threshold to the loop's own time.
const FACTOR: f64 = 10.0;

/// Time between two looks at the host, ns: the longest delay until an end is noticed.
const LOOK_NS: u64 = 5_000_000;

/// Time longer than a thread takes between two stretches of the loop, ns.
const HOST_NS: f64 = 20_000.0;

/// Time by which a thread begins later than all were to, ns, that is counted as a gap: less is the time that a busy
/// machine takes to let threads begin.
const BEGAN_LATE_NS: u64 = 100_000_000;

/// Time by which a rest lasts longer than planned, ns, that is counted as a gap: less is the lateness of a wake-up.
const OVERSLEPT_NS: f64 = 1_000_000.0;

/// Number of looks at what came between two stretches, before the loop goes on in any case.
const TRIES: usize = 3;

/// Watches on one CPU.
///
/// # Errors
/// The CPU cannot be used, or another thread did not start.
pub fn watch_cpu(
    order: GapLoopOrder,
    cpu: u32,
    writer: HistogramSlotWriter,
    shared: &GapLoopState,
) -> Result<GapsSeen> {
    let pinned = threads::pin(cpu);
    let asked = (order.policy != sched::ThreadSchedPolicy::Other).then_some(order.policy);
    let shortfall = asked.and_then(apply_policy);
    writer.adopt();
    ensure!(*shared.started.read().expect("the starter does not panic"), "another thread did not start");
    pinned?;
    // The clock is chosen here, once: the loop is compiled for each.
    match order.timebase.clock() {
        AnyClock::Counter(clock) => Ok(run_gap_loop(clock, order, cpu, writer, shortfall, shared)),
        AnyClock::MonotonicRaw(clock) => Ok(run_gap_loop(clock, order, cpu, writer, shortfall, shared)),
    }
}

fn run_gap_loop<C: Clock>(
    clock: C,
    order: GapLoopOrder,
    cpu: u32,
    writer: HistogramSlotWriter,
    shortfall: Option<Shortfall>,
    shared: &GapLoopState,
) -> GapsSeen {
    let timebase = order.timebase;
    let own = watch::own_ticks(clock, CALIBRATION).max(1);
    let gap_ns = (order.gap_ns as f64).max(FACTOR * timebase.span(own));
    let rules = GapWatchLimits {
        own,
        threshold: timebase.ticks(gap_ns as u64).max(1),
        look: timebase.ticks(LOOK_NS),
    };
    let before = thread_counts();
    let now = clock.stamp_end();
    let mut gap_loop = GapLoop {
        clock,
        order,
        cpu,
        elsewhere: 0,
        writer,
        shared,
        classes: Default::default(),
        gaps: 0,
        unseen: 0,
        least_ns: gap_ns,
        reading: SampleGate::Thread.take_reading(),
        read_at: now,
        switched: false,
        last: now,
        end: now.saturating_add(timebase.ticks(order.stop.limit_ns)),
        rest_at: now + timebase.ticks(order.duty.map_or(0, |duty| duty.watch_ns)),
        rests: 0,
        rested: 0,
        unwatched_ns: 0.0,
    };
    let watched = if gap_loop.misses_all() {
        GapWatchResult { turns: 1, watched: own, ..GapWatchResult::default() }
    } else {
        watch::watch_gaps(clock, rules, &mut gap_loop)
    };
    let ResourceUsageCounts { voluntary, involuntary, minor_faults, major_faults } = thread_counts();
    let mut shortfalls = Vec::from_iter(shortfall);
    let let_go = gap_loop.writer.let_go_at().is_some();
    shortfalls.extend(gap_loop.left_cpu(now).filter(|_| !let_go));
    gap_loop.writer.mark_over();
    let own_turns = (watched.turns - watched.gaps).max(1) as f64;
    GapsSeen {
        turns: watched.turns + gap_loop.unseen,
        watched_ns: timebase.span(gap_loop.last.saturating_sub(now + gap_loop.rested))
            + gap_loop.unwatched_ns,
        rested_ns: timebase.span(gap_loop.rested),
        gaps: gap_loop.gaps,
        longest_ns: timebase.span(watched.longest),
        classes: gap_loop.classes,
        loop_ns: (timebase.span(watched.watched) - timebase.span(watched.lost)) / own_turns,
        gap_ns,
        switches: (involuntary - before.involuntary)
            + (voluntary - before.voluntary).saturating_sub(gap_loop.rests),
        faults: minor_faults + major_faults - before.minor_faults - before.major_faults,
        shortfalls,
        writer: gap_loop.writer,
    }
}

/// Returns the time that the calling thread has spent in the run queue, ns; `None` if the kernel does not count it.
fn own_run_delay() -> Option<u64> {
    waits::run_delay(rustix::thread::gettid().as_raw_nonzero().get())
}

/// Returns true if time that is missing from a stretch, apart from the gap that the loop saw, was another
/// thread's. A switch `before` the stretch may have ended in it; without a switch, interrupts may have taken
/// it.
fn is_gap(missing_ns: f64, least_ns: f64, switched: bool, before: bool) -> bool {
    missing_ns >= least_ns && (switched || before && missing_ns >= HOST_NS)
}

/// A thread around its loop.
struct GapLoop<'a, C> {
    clock: C,
    order: GapLoopOrder,
    /// CPU of the thread.
    cpu: u32,
    /// Time between readings of which the later one was on another CPU, ticks.
    elsewhere: u64,
    writer: HistogramSlotWriter,
    shared: &'a GapLoopState,
    classes: [GapCauseTotal; 3],
    gaps: u64,
    /// Gaps that the loop did not see.
    unseen: u64,
    /// Shortest gap looked for, ns.
    least_ns: f64,
    /// Last figures of the kernel for this thread; `read_at` is a reading of the clock just before, ticks.
    reading: SampleGateReading,
    read_at: u64,
    /// True if there was a switch between that reading and the one before.
    switched: bool,
    /// The loop's last reading of the clock.
    last: u64,
    end: u64,
    rest_at: u64,
    rests: u64,
    /// Time spent in rests, ticks.
    rested: u64,
    /// Time in which the thread was to watch and had not begun, ns.
    unwatched_ns: f64,
}

impl<C: Clock> GapLoop<'_, C> {
    /// Reads again. Returns true if there was a switch since the last reading, and the time that was not the
    /// thread's, ns. The clock is read first, each time: a switch at the end of a system call is then missing
    /// from the stretch that begins with it.
    fn read_counters(&mut self) -> (bool, f64) {
        let (before, since) = (self.reading, self.read_at);
        self.read_at = self.clock.stamp_end();
        self.reading = SampleGate::Thread.take_reading();
        if rustix::thread::sched_getcpu() as u32 != self.cpu {
            self.elsewhere += self.read_at - since;
        }
        let passed = self.order.timebase.span(self.read_at - since);
        (self.reading.switches != before.switches, passed - (self.reading.cpu_ns - before.cpu_ns) as f64)
    }

    /// Returns the shortfall of a thread that was not on its CPU all the time since `began`, ticks.
    fn left_cpu(&self, began: u64) -> Option<Shortfall> {
        let span = |ticks| format_time(self.order.timebase.span(ticks));
        let lasted = self.last.saturating_sub(began);
        (self.elsewhere > 0).then(|| {
            Shortfall::other_cpu(format!(
                "{} of {} were not on CPU {}, where the thread was to stay",
                span(self.elsewhere.min(lasted)),
                span(lasted),
                self.cpu
            ))
        })
    }

    /// Notes the gap of a thread that had no CPU when all were to begin. Returns true if it had none until the end.
    fn misses_all(&mut self) -> bool {
        let now = self.clamp_instant(monotonic_ns());
        let late = now.saturating_sub(self.shared.began.load(Relaxed));
        if late >= BEGAN_LATE_NS {
            self.unseen += 1;
            self.unwatched_ns = late as f64;
            self.record_gap(GapCauseKind::Preemption, late as f64, now);
        }
        self.writer.let_go_at().is_some()
    }

    /// Returns an instant, or the one before at which this thread was let go: later it does not watch.
    fn clamp_instant(&self, now: u64) -> u64 {
        self.writer.let_go_at().map_or(now, |at| at.min(now))
    }

    fn sleep_for(&mut self, rest: std::time::Duration) {
        let (since, delayed) = (self.read_at, own_run_delay());
        std::thread::sleep(rest);
        self.rests += 1;
        self.read_counters();
        self.switched = false;
        let now = monotonic_ns();
        let at = self.clamp_instant(now);
        let slept = self.order.timebase.span(self.read_at - since) - (now - at) as f64;
        let overrun = slept - rest.as_nanos() as f64;
        if overrun < OVERSLEPT_NS {
            self.rested += self.read_at - since;
            return;
        }
        // The loop was to watch again.
        self.rested += self.order.timebase.ticks(rest.as_nanos() as u64);
        if self.gaps < self.order.stop.events {
            self.unseen += 1;
            // In the run queue it waited for other threads; else it was not woken in time, which no kernel explains.
            let waited = own_run_delay().zip(delayed).map_or(0, |(now, before)| now.saturating_sub(before));
            let class = if waited as f64 > overrun / 2.0 {
                GapCauseKind::Preemption
            } else {
                GapCauseKind::Unattributed
            };
            self.record_gap(class, overrun, at);
        }
    }

    /// Accounts for missing time that no gap of the loop explains. Other threads can also take the CPU while
    /// this thread is outside of the loop, at the end of its system calls.
    fn account_missing_time(&mut self, switched: bool, missing_ns: f64) {
        let before = std::mem::replace(&mut self.switched, switched);
        if !is_gap(missing_ns, self.least_ns, switched, before) || self.gaps >= self.order.stop.events {
            return;
        }
        let now = monotonic_ns();
        let at = self.clamp_instant(now);
        let missing_ns = missing_ns - (now - at) as f64;
        if missing_ns >= self.least_ns {
            self.unseen += 1;
            self.record_gap(GapCauseKind::Preemption, missing_ns, at);
        }
    }

    /// Returns a reading of the clock, or that at which this thread was let go if it is later.
    fn watched_until(&self, reading: u64) -> u64 {
        let after = self.writer.let_go_at().map_or(0, |at| monotonic_ns().saturating_sub(at));
        reading.saturating_sub(self.order.timebase.ticks(after))
    }

    fn record_gap(&mut self, class: GapCauseKind, gap_ns: f64, at: u64) {
        let share = &mut self.classes[class as usize];
        share.gaps += 1;
        share.lost_ns += gap_ns;
        let sample = Exceedance { turn: self.gaps, at, value: gap_ns.round() as u64 };
        self.writer.record_event(sample, self.order.epoch_ns, 0, 1);
        self.gaps += 1;
        if sample.value > self.writer.threshold() {
            self.shared.alarm.notify_coordinator(&self.writer, sample);
            self.shared.over.fetch_or(self.order.ends, Relaxed);
        }
    }
}

impl<C: Clock> GapWatchHost for GapLoop<'_, C> {
    fn gap(&mut self, ticks: u64) {
        let now = monotonic_ns();
        let at = self.clamp_instant(now);
        let gap_ns = self.order.timebase.span(ticks) - (now - at) as f64;
        let (switched, missing) = self.read_counters();
        self.record_gap(GapCauseKind::classify_gap(gap_ns, switched, missing), gap_ns, at);
        if at == now {
            self.account_missing_time(switched, missing - gap_ns);
        }
    }

    fn look(&mut self, now: u64) -> bool {
        if self.writer.let_go_at().is_some() {
            self.last = self.last.max(self.watched_until(now));
            return false;
        }
        self.writer.set_due(monotonic_ns());
        self.last = now;
        if now > self.read_at {
            let (switched, missing) = self.read_counters();
            self.account_missing_time(switched, missing);
        }
        if let Some(duty) = self.order.duty
            && now >= self.rest_at
        {
            self.sleep_for(duty.rest);
            self.rest_at = self.read_at + self.order.timebase.ticks(duty.watch_ns);
        }
        let enough = now >= self.end || self.gaps >= self.order.stop.events;
        if !(enough || self.writer.should_stop() || self.shared.over.load(Relaxed)) {
            return true;
        }
        // Another thread may have had the CPU since the reading above.
        let unseen = self.unseen;
        let now = self.next_reading();
        if self.unseen > unseen {
            self.last = self.last.max(self.watched_until(now));
        }
        false
    }

    fn next_reading(&mut self) -> u64 {
        for _ in 0..TRIES {
            let now = self.clock.stamp_end();
            if self.order.timebase.span(now - self.read_at) < HOST_NS {
                return now;
            }
            let (switched, missing) = self.read_counters();
            self.account_missing_time(switched, missing);
        }
        self.clock.stamp_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeywordEnum;

    #[test]
    fn the_word_of_a_class_names_a_cause_only_where_one_was_seen() {
        let words: Vec<&str> = GapCauseKind::ALL.iter().map(|class| class.word()).collect();
        assert_eq!(words, ["preemption", "steal", "unattributed"]);
    }

    #[test]
    fn a_gap_is_put_down_to_who_had_the_cpu() {
        assert_eq!(GapCauseKind::classify_gap(4e6, true, 4e6), GapCauseKind::Preemption);
        assert_eq!(GapCauseKind::classify_gap(4e6, false, 3.9e6), GapCauseKind::Steal);
        assert_eq!(GapCauseKind::classify_gap(4e3, false, 150.0), GapCauseKind::Unattributed);
        assert!(
            !is_gap(4e6, 1e3, false, false) && is_gap(4e6, 1e3, false, true) && is_gap(4e3, 1e3, true, false)
        );
        assert!(!is_gap(900.0, 1e3, true, true) && !is_gap(4e3, 1e3, false, true));
        assert!(GapCauseKind::ALL.iter().enumerate().all(|(place, class)| place == *class as usize));
    }
}
