//! The measuring threads: set up one by one, started together.

use super::activations::{self, ActivationLimits, ActivationSink, ThreadActivation, Waiter};
use super::thread::{ClockName, WakeThreadPolicy, WakeThreadSettings};
use super::waiter::{self, KernelClock, Monotonic, Realtime, WithWaiter, now};
use crate::prelude::*;
use latscope_bench::alarm::ExceedanceAlarm;
use latscope_bench::hold::{Shortfall, apply_policy};
use latscope_bench::recorder::Slots;
use latscope_core::plan::{PeriodicEndCondition, Phase};
use latscope_core::units::{self, format_count};
use latscope_os::usage;
use std::sync::{RwLock, mpsc};

/// State that all periodic threads share.
pub(crate) struct PeriodicThreads {
    /// The rules of the step.
    pub periodic: Periodic,
    /// Activations of each thread.
    pub count: u64,
    /// Time of the run, ns.
    pub duration: u64,
    /// `CLOCK_MONOTONIC` at the epoch of the run.
    pub epoch: u64,
    /// Random phases, one for each thread, in parts of 2^64.
    pub phases: Vec<u64>,
    over: AtomicBool,
    begin: RwLock<Option<Begin>>,
}

/// Shortfall of a thread that is set up, if any.
type Settled = Option<Shortfall>;

/// The common first instant, by `CLOCK_MONOTONIC` and by `CLOCK_REALTIME`, ns.
type Begin = [u64; 2];

/// A member: its thread, and the writers of its samples.
pub(crate) struct Member {
    /// Point of the member in the step.
    pub point: usize,
    /// Parameters of the thread.
    pub thread: WakeThreadSettings,
    /// Writer of the samples.
    pub writer: HistogramSlotWriter,
    /// Point and writer of the time from the due instant to the end of the work.
    pub response: Option<(usize, HistogramSlotWriter)>,
    /// Alarm at an activation above the threshold.
    pub alarm: ExceedanceAlarm,
}

/// Results of a member.
pub struct PeriodicThreadResult {
    /// The member, whose writers have the samples.
    pub member: Member,
    /// Counts of its activations.
    pub counted: ActivationCounts,
    /// True if another thread ended the run before the first activation of this thread.
    pub unbegun: bool,
    /// Conditions that the thread did not get, or lost.
    pub shortfalls: Vec<Shortfall>,
}

/// Counts of a thread's activations.
#[derive(Debug, Default)]
pub struct ActivationCounts {
    /// Number of recorded activations.
    recorded: u64,
    /// Number of activations before their time.
    pub early: u64,
    /// Number of page faults during the measurement.
    pub faults: u64,
    /// Involuntary switches to another thread.
    pub involuntary: u64,
    /// Number of activations on another CPU than the one before.
    pub migrations: u64,
    /// Activations on other CPUs than the thread's own.
    elsewhere: u64,
}

/// Time by which a free thread begins later than all were to, ns, that counts as its lateness: less is the time that a
/// busy machine takes to let threads begin.
const BEGAN_LATE_NS: u64 = 100_000_000;

/// Time between the set-up of the last thread and the first instant: all threads must be asleep by then.
const LEAD_NS: u64 = 5_000_000;

const SECOND: u64 = 1_000_000_000;

/// Longest time from the set-up of one thread to that of the next: several thousand times the usual one.
const SET_UP: Duration = Duration::from_secs(1);

/// Memory of a measuring thread's stack: all of it is locked.
pub const STACK_BYTES: usize = 256 << 10;

impl PeriodicThreads {
    /// Returns periodic threads, one for each phase, with `count` activations each.
    pub fn new(periodic: Periodic, count: u64, duration: u64, epoch: u64, phases: Vec<u64>) -> Self {
        let (over, begin) = (AtomicBool::new(false), RwLock::new(None));
        PeriodicThreads { periodic, count, duration, epoch, phases, over, begin }
    }

    /// Measures with all members, in threads of their own. No member measures while another is being set up, or
    /// if that fails. `forewarn` gets their shortfalls before they measure.
    ///
    /// # Errors
    /// A thread cannot be started or set up.
    pub fn measure_members(
        &self,
        members: Vec<Member>,
        forewarn: impl FnMut(&Shortfall),
    ) -> Result<Vec<PeriodicThreadResult>> {
        let slots: Vec<_> = members
            .iter()
            .flat_map(|member| {
                let points = [Some(member.point), member.response.as_ref().map(|(point, _)| *point)];
                let one = |point| (member.writer.slots().clone(), point, member.thread.clone());
                points.into_iter().flatten().map(one)
            })
            .collect();
        std::thread::scope(|scope| {
            let mut begin = self.begin.write().expect("no member panics while it holds this");
            let (tell, set_up) = mpsc::channel();
            let threads: Vec<_> = members
                .into_iter()
                .map(|member| {
                    let tell = tell.clone();
                    let name = format!("wake/{}", member.thread.index);
                    let builder = std::thread::Builder::new().name(name).stack_size(STACK_BYTES);
                    builder.spawn_scoped(scope, move || self.run_member(member, tell))
                })
                .collect::<std::io::Result<_>>()
                .context("no thread can be created")?;
            drop(tell);
            // A thread that has no CPU to be set up on is due with the others all the same.
            let settled: Vec<Option<Settled>> =
                std::iter::from_fn(|| set_up.recv_timeout(SET_UP).ok()).collect();
            let shortfalls: BTreeSet<&Shortfall> = settled.iter().flatten().flatten().collect();
            shortfalls.into_iter().for_each(forewarn);
            *begin = settled.iter().all(Option::is_some).then(|| self.first_instant());
            begin.iter().for_each(|begin| self.announce(&slots, begin[0]));
            drop(begin);
            let ended = threads.into_iter().map(|thread| {
                let done = thread.join().expect("a measuring thread does not panic");
                done.transpose()
            });
            ended.flatten().collect()
        })
    }

    /// States when each thread is due first, and when the last one is through.
    fn announce(&self, members: &[(Slots, usize, WakeThreadSettings)], begin: u64) {
        for (slots, point, thread) in members {
            let warm_up = self.periodic.warm_up.saturating_mul(thread.interval);
            let first = self.first(thread, begin, begin).saturating_add(warm_up);
            let end = first.saturating_add(self.duration);
            slots.set_due(*point, first);
            slots.set_end(*point, end);
        }
    }

    /// Runs a measuring thread: reports that it is set up, waits for the others, and measures. Returns nothing if
    /// another thread could not be set up.
    fn run_member(
        &self,
        member: Member,
        tell: mpsc::Sender<Option<Settled>>,
    ) -> Result<Option<PeriodicThreadResult>> {
        let settled = place_thread(&member.thread);
        let policy = sched::policy().ok();
        member.writer.adopt();
        touch_stack();
        let _ = tell.send(settled.as_ref().ok().cloned());
        drop(tell);
        let begin = *self.begin.read().expect("the starter does not panic");
        // A thread that had no CPU before it had read its policy back reads the one by which it was let go.
        let shortfall = settled?.filter(|_| member.writer.slots().let_go_at().is_none());
        let Some([monotonic, realtime]) = begin else { return Ok(None) };
        let mut done = match member.thread.clock {
            ClockName::Monotonic => self.measure_member(member, Monotonic, monotonic, shortfall),
            ClockName::Realtime => self.measure_member(member, Realtime, realtime, shortfall),
        }?;
        // The coordinator changes the policy of what it lets go, also of a thread that ran just before.
        if done.member.writer.slots().let_go_at().is_none() {
            done.shortfalls.extend(left_policy(policy));
        }
        Ok(Some(done))
    }

    fn measure_member<C: KernelClock>(
        &self,
        mut member: Member,
        clock: C,
        begin: u64,
        shortfall: Settled,
    ) -> Result<PeriodicThreadResult> {
        let thread = member.thread.clone();
        let first = self.first(&thread, begin, now::<C>());
        let job =
            PeriodicThreadLoop { all: self, first, member: &mut member, to_monotonic: to_monotonic::<C>() };
        let mut shortfalls = Vec::from_iter(shortfall);
        let counted = match waiter::hop(&thread)? {
            None => waiter::with_waiter(clock, &thread, job)?,
            Some((hop, hopper)) => std::thread::scope(|scope| -> Result<ActivationCounts> {
                let of = thread.clone();
                let body = move || {
                    // The same place and policy as the receiver, which has read its own back.
                    let _ = place_thread(&of);
                    touch_stack();
                    hopper.run_hops(of.clock, first, of.interval);
                    threads::moved()
                };
                let hopper = std::thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, body)
                    .context("no second thread for the hop")?;
                let counted = job.run_with(hop);
                shortfalls.extend(hopper.join().expect("the second thread does not panic"));
                Ok(counted)
            })?,
        };
        shortfalls.extend(left_cpu(&thread, &counted));
        let unbegun = counted.recorded == 0 && self.over.load(Ordering::Relaxed);
        Ok(PeriodicThreadResult { member, counted, unbegun, shortfalls })
    }

    fn first_instant(&self) -> Begin {
        [now::<Monotonic>(), now::<Realtime>()].map(|now| match self.periodic.align_second {
            true => (now + LEAD_NS).next_multiple_of(SECOND),
            false => now + LEAD_NS,
        })
    }

    /// The first instant of a thread that is due `begin` with all others.
    fn first(&self, thread: &WakeThreadSettings, begin: u64, now: u64) -> u64 {
        let size = self.phases.len().max(1) as u64;
        let index = thread.index % size;
        match self.periodic.phase {
            // One that gets a CPU much later than all others was due when they were.
            Phase::Free if now.saturating_sub(begin) > BEGAN_LATE_NS => begin + thread.interval,
            Phase::Free => now + thread.interval,
            Phase::Aligned(offset) => begin + index * offset,
            Phase::Later(offset) => begin + offset,
            Phase::Staggered => begin + index * thread.interval / size,
            Phase::Random => {
                let part = self.phases[index as usize];
                begin + ((u128::from(part) * u128::from(thread.interval)) >> 64) as u64
            }
        }
    }
}

/// Returns the shortfall of a thread of whose activations some were on other CPUs than its own.
fn left_cpu(thread: &WakeThreadSettings, counted: &ActivationCounts) -> Option<Shortfall> {
    let cpu = thread.cpu.filter(|_| counted.elsewhere > 0)?;
    Some(Shortfall::other_cpu(format!(
        "{} of {} were not on CPU {cpu}, where the thread was to stay",
        format_count(counted.elsewhere),
        units::count_with_noun(counted.recorded, "activation")
    )))
}

/// Returns the shortfall of the calling thread if its policy or priority is no longer that of the begin.
fn left_policy(began: Option<sched::ThreadSchedPolicy>) -> Option<Shortfall> {
    let reason = "another program changed the policy or the priority of the thread meanwhile";
    let remedy = "leave the scheduling of measuring threads as it is (chrt, sched_setscheduler)";
    (began != sched::policy().ok()).then(|| Shortfall {
        id: "not-as-asked",
        reason: reason.to_owned(),
        remedy,
    })
}

/// Difference to add to an instant of the clock to have it in `CLOCK_MONOTONIC`, ns.
fn to_monotonic<C: KernelClock>() -> i64 {
    monotonic_ns() as i64 - now::<C>() as i64
}

/// Puts the calling thread on its CPU and under its policy; returns the shortfall, if any.
fn place_thread(thread: &WakeThreadSettings) -> Result<Settled> {
    if let Some(cpu) = thread.cpu {
        threads::pin(cpu)?;
    }
    let wanted = match thread.policy {
        WakeThreadPolicy::Other => {
            // Without it a sleep of the normal class may last 50 µs longer (prctl(2)).
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            return Ok(thread.slice.and_then(granted_slice));
        }
        WakeThreadPolicy::Fifo(priority) => sched::ThreadSchedPolicy::Fifo(priority),
        WakeThreadPolicy::RoundRobin(priority) => sched::ThreadSchedPolicy::RoundRobin(priority),
        WakeThreadPolicy::Deadline { runtime, deadline } => {
            let wanted = sched::ThreadSchedPolicy::Deadline { runtime, deadline, period: thread.interval };
            sched::set_policy(wanted).with_context(|| refused_deadline(runtime, thread))?;
            wanted
        }
    };
    let shortfall = apply_policy(wanted);
    if shortfall.is_some() {
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }
    Ok(shortfall)
}

/// Gives the calling thread a time slice and reads it back; the answer is why it has another.
fn granted_slice(wanted: u64) -> Option<Shortfall> {
    let has = sched::set_slice(wanted).and_then(|()| sched::slice());
    other_slice(wanted, has.map_err(|error| error.to_string()))
}

/// Returns the shortfall of a thread that `has` a time slice, or why that is not known; 0 where the kernel does not
/// say.
fn other_slice(wanted: u64, has: Result<u64, String>) -> Option<Shortfall> {
    let asked = format_time(wanted as f64);
    let newer = "use Linux 6.12 or later";
    let (reason, remedy) = match has {
        Ok(slice) if slice == wanted => return None,
        Ok(0) => (format!("no slice of {asked}: this kernel lets no thread choose its slice"), newer),
        Ok(slice) => {
            let slice = format_time(slice as f64);
            let granted = "the kernel grants 100 µs to 100 ms";
            (format!("ran with a slice of {slice}, not {asked}: {granted}"), "choose --slice 100us to 100ms")
        }
        Err(error) => (format!("no slice of {asked}: {error}"), newer),
    };
    Some(Shortfall { id: "not-as-asked", reason, remedy })
}

fn refused_deadline(runtime: u64, thread: &WakeThreadSettings) -> String {
    let (runtime, interval) = (format_time(runtime as f64), format_time(thread.interval as f64));
    format!(
        "SCHED_DEADLINE with {runtime} in every {interval} is not granted: it takes root, all CPUs (no --cpus, no \
         cpuset), and reservations below the limit in /proc/sys/kernel/sched_rt_runtime_us"
    )
}

/// Brings the pages of the stack into memory that the loop may use.
#[inline(never)]
fn touch_stack() {
    let mut used = [0u8; STACK_BYTES / 2];
    std::hint::black_box(&mut used);
}

/// A member's loop, for any waiter.
struct PeriodicThreadLoop<'a> {
    all: &'a PeriodicThreads,
    first: u64,
    member: &'a mut Member,
    to_monotonic: i64,
}

impl WithWaiter for PeriodicThreadLoop<'_> {
    type Output = ActivationCounts;

    fn run_with(self, mut waiter: impl Waiter) -> ActivationCounts {
        let PeriodicThreadLoop { all, first, member, to_monotonic } = self;
        let thread = &member.thread;
        let warm_up = all.periodic.warm_up;
        let rules = ActivationLimits {
            interval: thread.interval,
            warm_up,
            count: all.count,
            until: first.saturating_add(all.duration).saturating_add(warm_up * thread.interval),
        };
        let mut sink = ActivationRecorder {
            all,
            to_monotonic,
            touched: vec![1; member.thread.touch as usize],
            counted: ActivationCounts::default(),
            cpu: member.thread.cpu.unwrap_or_else(current_cpu),
            member,
        };
        sink.writers().for_each(|writer| writer.set_end(rules.until.saturating_add_signed(to_monotonic)));
        let before = usage::thread_counts();
        let recorded = activations::run_activations(rules, first, &mut waiter, &mut sink);
        let after = usage::thread_counts();
        sink.writers().for_each(HistogramSlotWriter::mark_ended);
        if recorded >= all.count && all.periodic.end == PeriodicEndCondition::Any {
            all.over.store(true, Ordering::Relaxed);
        }
        let faults = |counts: usage::ResourceUsageCounts| counts.minor_faults + counts.major_faults;
        ActivationCounts {
            recorded,
            faults: faults(after) - faults(before),
            involuntary: after.involuntary - before.involuntary,
            ..sink.counted
        }
    }
}

/// Records activations and does the work of each.
struct ActivationRecorder<'a> {
    all: &'a PeriodicThreads,
    member: &'a mut Member,
    to_monotonic: i64,
    touched: Vec<u8>,
    counted: ActivationCounts,
    /// CPU of the last activation; before the first one the thread's own.
    cpu: u32,
}

fn current_cpu() -> u32 {
    rustix::thread::sched_getcpu() as u32
}

impl ActivationSink for ActivationRecorder<'_> {
    #[inline(always)]
    fn stopping(&self) -> bool {
        self.all.over.load(Ordering::Relaxed) || self.member.writer.should_stop()
    }

    fn is_overdue(&self, instant: u64) -> bool {
        let instant = instant.saturating_add_signed(self.to_monotonic);
        monotonic_ns() > instant.saturating_add(self.member.thread.interval)
    }

    #[inline(always)]
    fn due(&self, instant: u64) {
        let instant = instant.saturating_add_signed(self.to_monotonic);
        self.writers().for_each(|writer| writer.set_due(instant));
    }

    #[inline(always)]
    fn recorded(&self, next: u64) {
        self.member.writer.set_due(next.saturating_add_signed(self.to_monotonic));
    }

    #[inline(always)]
    fn let_go(&self) -> bool {
        self.member.writer.let_go_at().is_some()
    }

    #[inline(always)]
    fn record_activation(&mut self, sample: Exceedance, missed: u64, early: bool) {
        let sample = Exceedance { at: sample.at.saturating_add_signed(self.to_monotonic), ..sample };
        let interval = self.member.thread.interval;
        self.member.writer.record_event(sample, self.all.epoch, missed, interval);
        if early {
            self.counted.early += 1;
            self.member.writer.early();
        }
    }

    #[inline(always)]
    fn act(&mut self, woken: ThreadActivation, sample: Exceedance) -> bool {
        // Also of a thread that is to stay on one: it may be moved from outside, or its CPU taken offline.
        let cpu = current_cpu();
        // The coordinator moves what it lets go, also a thread that ran just before.
        if self.member.writer.slots().let_go_at().is_none() {
            self.counted.migrations += u64::from(cpu != self.cpu);
            self.counted.elsewhere += u64::from(self.member.thread.cpu.is_some_and(|own| cpu != own));
        }
        self.cpu = cpu;
        if sample.value > self.member.writer.threshold() {
            self.report_exceedance(sample);
            if self.all.periodic.stop_at_threshold {
                return false;
            }
        }
        if self.member.response.is_some() {
            self.perform_work(woken);
        }
        true
    }
}

impl ActivationRecorder<'_> {
    /// Writers of the wake-up and of its response.
    fn writers(&self) -> impl Iterator<Item = &HistogramSlotWriter> {
        [&self.member.writer].into_iter().chain(self.member.response.iter().map(|(_, writer)| writer))
    }

    /// Marks an exceedance in the trace and wakes the coordinator.
    #[cold]
    fn report_exceedance(&mut self, sample: Exceedance) {
        let sample = Exceedance { at: sample.at.saturating_add_signed(self.to_monotonic), ..sample };
        let stops = self.all.periodic.stop_at_threshold;
        let remark = format_args!("latscope: late by {} ns on CPU {}", sample.value, current_cpu());
        self.member.alarm.raise(&self.member.writer, sample, stops, remark);
        self.all.over.fetch_or(stops, Ordering::Relaxed);
    }

    /// Touches memory and computes, and records when that is done.
    fn perform_work(&mut self, woken: ThreadActivation) {
        for line in self.touched.iter_mut().step_by(64) {
            *line = line.wrapping_add(1);
        }
        std::hint::black_box(&mut self.touched);
        let now = match self.member.thread.clock {
            ClockName::Monotonic => now::<Monotonic>,
            ClockName::Realtime => now::<Realtime>,
        };
        let until = now() + self.member.thread.work;
        let mut at = now();
        while at < until {
            std::hint::spin_loop();
            at = now();
        }
        let interval = self.member.thread.interval;
        if let Some((_, writer)) =
            self.member.response.as_mut().filter(|(_, writer)| writer.let_go_at().is_none())
        {
            let since = at.saturating_add_signed(self.to_monotonic).saturating_sub(self.all.epoch);
            // Missed activations had no response before this one.
            writer.record_late(at.saturating_sub(woken.due), since, woken.swallowed.unwrap_or(0), interval);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_slice_than_asked_for_is_a_shortfall() {
        assert_eq!(other_slice(100_000, Ok(100_000)), None);
        let reason = |has| other_slice(50_000, has).unwrap().reason;
        let granted = "ran with a slice of 100 µs, not 50.0 µs: the kernel grants 100 µs to 100 ms";
        assert_eq!(reason(Ok(100_000)), granted);
        assert_eq!(other_slice(50_000, Ok(100_000)).unwrap().remedy, "choose --slice 100us to 100ms");
        assert!(reason(Ok(0)).contains("lets no thread choose"));
        assert!(reason(Err("refused".to_owned())).ends_with(": refused"));
    }
}
