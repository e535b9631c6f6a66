//! Priority inversion: on one CPU, the time for which the owner of a lock, of low priority, blocks a waiter of
//! high priority, while a hog of middle priority wants the CPU.
//!
//! Under SCHED_FIFO the course of a round is given: the owner takes the lock and
//! wakes the waiter, which preempts it, finds the lock taken and sleeps; the owner
//! wakes the hog. It preempts the owner of a plain lock for as long as it likes.
//! The owner of a lock with priority inheritance has the waiter's priority by
//! then, and the hog waits.

use super::hog::{HIGH, HOG, HOLD, LOW, MIDDLE, consume_cpu_time, fifo};
use super::point::{self, PriorityInversionSettings};
use super::setup::usual_rules;
use crate::prelude::*;
use latscope_bench::hold::real_time_remedy;
use latscope_bench::recorder::HistogramSlotWriter;
use latscope_core::plan::{Periodic, PlanStep};
use latscope_exchange::transaction::{IpcTransport, TransportSetupError};
use latscope_os::futex::{OneWordLock, PiLock, PlainLock, Tokens};
use std::thread::Scope;

probes! {
    EXPERIMENT, PriorityInversionSettings, |_, _, _| points();
    INVERSION point::INVERSION, "blocked by a lock's owner of low priority", "futex(2), FUTEX_LOCK_PI",
        "From before a SCHED_FIFO thread of high priority wants a lock to when it has it; the owner of low priority and \
            a hog of middle priority share its CPU.";
}

static EXPERIMENT: Experiment = Experiment::new(point::INVERSION, Cpus::One, run_inversion);

/// Rounds of each lock.
const ROUNDS: u64 = 50;

/// Parameters of a round: the lock, and the CPU times of its owner and of the hog.
fn round_settings(lock: &str) -> PriorityInversionSettings {
    PriorityInversionSettings { lock: lock.to_owned(), hold: HOLD, hog: HOG }
}

fn points() -> Vec<MeasurementPoint> {
    let point = |lock: &str, title: &str| INVERSION.make_point(round_settings(lock), title, false);
    vec![
        point("plain", "blocked by a plain lock"),
        point("pi", "blocked by a lock with priority inheritance"),
    ]
}

/// The step that measures the time for which a server without a priority of its own blocks a client of high
/// priority, in the same rounds: the transaction takes the place of the lock.
pub fn of_transport(transport: &IpcTransport, locks: &PlanStep) -> PlanStep {
    let title = format!("blocked by the server of a transaction, {}", transport.title);
    PlanStep {
        name: super::STEP.to_owned(),
        points: vec![INVERSION.make_point(round_settings(transport.name), &title, false)],
        periodic: Some(Periodic { warm_up: 0, ..usual_rules() }),
        ..locks.clone()
    }
}

/// The step that measures both locks, `rounds` rounds each, on `cpu`.
pub fn plan_step(cpu: u32, rounds: Option<u64>, duration: u64, seed: u64) -> PlanStep {
    let events = rounds.unwrap_or(ROUNDS);
    PlanStep {
        seed,
        ..PlanStep::new(EXPERIMENT.name, points(), vec![cpu], Stop::after_events(events, duration))
    }
}

fn run_inversion(bench: &mut Bench) -> Result<()> {
    for (point, PriorityInversionSettings { lock, .. }) in bench.settings()?.into_iter().enumerate() {
        let pi = match lock.as_str() {
            "plain" => false,
            "pi" => true,
            other => bail!("no lock is called {other:?}"),
        };
        if let Err(refusal) = check_support(pi) {
            bench.unsupported(point, refusal.reason, refusal.remedy);
            continue;
        }
        let writer = bench.writer(point);
        let (rounds, limit) = (bench.stop().events, bench.stop().limit_ns);
        let stage = Stage { cpu: bench.cpus()[0], epoch: bench.epoch_ns(), rounds, limit };
        let writer = match pi {
            true => stage.run_rounds(&PiLock::default(), writer),
            false => stage.run_rounds(&PlainLock::default(), writer),
        };
        bench.finish_writer(point, writer);
    }
    Ok(())
}

/// Tries out that the threads get their priorities and that the lock exists; otherwise returns the refusal.
fn check_support(pi: bool) -> Result<(), TransportSetupError> {
    let refuse =
        |reason: String, remedy: &str| Err(TransportSetupError { reason, remedy: remedy.to_owned() });
    let trial = std::thread::spawn(|| fifo(HIGH)).join().expect("a trial does not panic");
    if let Some(reason) = trial {
        let reason = format!("without real-time priorities nothing is inverted: {reason}");
        return refuse(reason, real_time_remedy());
    }
    match PiLock::supported() {
        Err(error) if pi => refuse(format!("FUTEX_LOCK_PI: {error}"), "use a kernel with CONFIG_FUTEX_PI"),
        _ => Ok(()),
    }
}

/// CPU and epoch (ns) of the rounds, and their limits: the number of rounds, and the time in ns.
struct Stage {
    cpu: u32,
    epoch: u64,
    rounds: u64,
    limit: u64,
}

/// Tokens by which the three threads of a round signal each other.
#[derive(Default)]
struct InversionSignals {
    owner: Tokens,
    hog: Tokens,
    waiter: Tokens,
    done: Tokens,
}

impl Stage {
    /// Runs all rounds with one lock.
    fn run_rounds(&self, lock: &impl OneWordLock, writer: HistogramSlotWriter) -> HistogramSlotWriter {
        let rounds =
            Rounds { stage: self, lock, cues: InversionSignals::default(), over: AtomicBool::new(false) };
        std::thread::scope(|scope| rounds.run_threads(scope, writer))
    }

    fn place_thread(&self, priority: u32) {
        // Both were tried before.
        let _ = sched::pin(&[self.cpu]);
        let _ = fifo(priority);
    }
}

/// Rounds with one lock.
struct Rounds<'a, L> {
    stage: &'a Stage,
    lock: &'a L,
    cues: InversionSignals,
    over: AtomicBool,
}

impl<L: OneWordLock> Rounds<'_, L> {
    fn run_threads<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        writer: HistogramSlotWriter,
    ) -> HistogramSlotWriter {
        scope.spawn(|| self.run_owner());
        scope.spawn(|| self.run_hog());
        let waiter = scope.spawn(|| self.run_waiter(writer));
        self.direct();
        waiter.join().expect("the waiter does not panic")
    }

    /// Waits for a cue. Returns false if the rounds are over.
    fn goes_on(&self, cue: &Tokens) -> bool {
        cue.take_token();
        !self.over.load(Ordering::Relaxed)
    }

    /// Holds the lock, and wakes the waiter and the hog meanwhile: the thread of low priority.
    fn run_owner(&self) {
        self.stage.place_thread(LOW);
        self.cues.done.give_token();
        while self.goes_on(&self.cues.owner) {
            self.lock.lock();
            self.cues.waiter.give_token();
            self.cues.hog.give_token();
            consume_cpu_time(HOLD);
            self.lock.unlock();
            self.cues.done.give_token();
        }
    }

    /// Wants the CPU: the thread of middle priority.
    fn run_hog(&self) {
        self.stage.place_thread(MIDDLE);
        self.cues.done.give_token();
        while self.goes_on(&self.cues.hog) {
            consume_cpu_time(HOG);
            self.cues.done.give_token();
        }
    }

    /// Waits for the lock, and records for how long: the thread of high priority.
    fn run_waiter(&self, mut writer: HistogramSlotWriter) -> HistogramSlotWriter {
        self.stage.place_thread(HIGH);
        writer.adopt();
        self.cues.done.give_token();
        while self.goes_on(&self.cues.waiter) {
            let wanted = monotonic_ns();
            self.lock.lock();
            let had = monotonic_ns();
            self.lock.unlock();
            writer.record_value(had - wanted, had.saturating_sub(self.stage.epoch));
            self.cues.done.give_token();
        }
        writer
    }

    /// Starts each round, and then leaves the CPU to others for the same time: real-time threads are throttled
    /// otherwise.
    fn direct(&self) {
        let InversionSignals { owner, hog, waiter, done } = &self.cues;
        // All three wait for their cue.
        (0..3).for_each(|_| done.take_token());
        let begun = monotonic_ns();
        for _ in 0..self.stage.rounds {
            let from = monotonic_ns();
            owner.give_token();
            (0..3).for_each(|_| done.take_token());
            std::thread::sleep(Duration::from_nanos(monotonic_ns() - from));
            if monotonic_ns() - begun >= self.stage.limit {
                break;
            }
        }
        self.over.store(true, Ordering::Relaxed);
        [owner, hog, waiter].into_iter().for_each(Tokens::give_token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    #[test]
    fn both_locks_are_measured_or_the_reason_is_said() {
        let measured = harness::measure(&EXPERIMENT, points());
        assert_eq!(measured.len(), 2);
        for m in &measured {
            harness::check(m);
            if m.quality.level == QualityLevel::Unsupported {
                assert!(m.joined_reasons().as_ref().unwrap().contains("SCHED_FIFO"));
            }
        }
        let longest = |at: usize| measured[at].summary.max;
        if let (Some(plain), Some(_)) = (longest(0), longest(1)) {
            // The hog ran before the owner could give the lock back.
            assert!(plain >= HOG as f64);
        }
    }
}
