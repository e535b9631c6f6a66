//! A watching thread: what it notes of each gap, and when it rests and ends.

use super::duty::Duty;
use super::watch::{self, Host, Rules, Watched};
use crate::conditions::hold::{Shortfall, granted};
use crate::engine::gate::{Gate, Reading};
use crate::engine::recorder::Writer;
use crate::engine::timebase::{AnyClock, Timebase};
use anyhow::{Context, Result, ensure};
use latscope_core::plan::Stop;
use latscope_core::report::Exceedance;
use latscope_sys::clock::{Clock, monotonic_ns};
use latscope_sys::sched;
use latscope_sys::usage::{Counts, thread_counts};
use rustix::fd::OwnedFd;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What a thread is to do.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// Shortest gap wanted, ns.
    pub gap_ns: u64,
    /// How it is scheduled.
    pub policy: sched::Policy,
    /// Whether it rests from time to time.
    pub duty: Option<Duty>,
    /// When it has had enough: this time, or this many gaps.
    pub stop: Stop,
    /// The run's clock.
    pub timebase: Timebase,
    /// `CLOCK_MONOTONIC` at the epoch of the run, ns.
    pub epoch_ns: u64,
    /// Whether the first gap above the threshold of the run ends all.
    pub ends: bool,
}

/// What the threads share.
#[derive(Debug)]
pub struct Shared {
    /// Held for writing until all have been started; whether they have.
    pub started: RwLock<bool>,
    /// Calls the coordinator to an exceedance.
    bell: Option<OwnedFd>,
    over: AtomicBool,
}

impl Shared {
    /// For threads that are about to be started.
    pub fn new(bell: Option<OwnedFd>) -> Shared {
        Shared { started: RwLock::new(false), bell, over: AtomicBool::new(false) }
    }
}

/// Who a gap is put down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Another thread ran on the CPU.
    Preemption,
    /// No other thread ran, and the kernel says that most of the time was not
    /// this thread's: the hypervisor kept it.
    Steal,
    /// Neither: an interrupt, or what no kernel sees.
    Interrupt,
}

impl Class {
    /// All of them; their place is their number.
    pub const ALL: [Class; 3] = [Class::Preemption, Class::Steal, Class::Interrupt];

    /// Its word in the names of values.
    pub fn word(self) -> &'static str {
        match self {
            Class::Preemption => "preemption",
            Class::Steal => "steal",
            Class::Interrupt => "interrupt",
        }
    }

    /// Of a gap of `gap_ns`, when switches of threads were counted since the
    /// last reading or not, and so much time was not the thread's own.
    fn of(gap_ns: f64, switched: bool, missing_ns: f64) -> Class {
        match (switched, missing_ns > gap_ns / 2.0) {
            (true, _) => Class::Preemption,
            (false, true) => Class::Steal,
            (false, false) => Class::Interrupt,
        }
    }
}

/// Gaps put down to somebody.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    /// How many.
    pub gaps: u64,
    /// Their sum, ns.
    pub lost_ns: f64,
}

/// What a thread saw.
#[derive(Debug)]
pub struct Outcome {
    /// What the loop counted.
    pub watched: Watched,
    /// The gaps of each [`Class`].
    pub classes: [Share; 3],
    /// The loop's own time, ns.
    pub loop_ns: f64,
    /// Shortest gap looked for, ns.
    pub gap_ns: f64,
    /// How often another thread was put in its place.
    pub switches: u64,
    /// Page faults.
    pub faults: u64,
    /// A condition that could not be had: why, and what to do.
    pub shortfall: Option<Shortfall>,
    /// Its histogram.
    pub writer: Writer,
}

/// Readings of the clock from which the loop's own time is known.
const CALIBRATION: usize = 10_000;

/// A threshold lies at least so many of the loop's own times above it.
const FACTOR: f64 = 10.0;

/// From one look at the host to the next, ns: how late an end may be noticed.
const LOOK_NS: u64 = 5_000_000;

/// Watches on one CPU.
///
/// # Errors
/// The CPU cannot be had, or another thread did not start.
pub fn watch(order: Order, cpu: u32, writer: Writer, shared: &Shared) -> Result<Outcome> {
    let pinned = sched::pin(&[cpu]).with_context(|| format!("CPU {cpu} cannot be used"));
    let asked = (order.policy != sched::Policy::Other).then_some(order.policy);
    let shortfall = asked.and_then(granted);
    writer.touch();
    ensure!(*shared.started.read().expect("the starter does not panic"), "another thread did not start");
    pinned?;
    // The clock is chosen here, once: the loop is compiled for each.
    match order.timebase.clock() {
        AnyClock::Counter(clock) => Ok(run(clock, order, writer, shortfall, shared)),
        AnyClock::MonotonicRaw(clock) => Ok(run(clock, order, writer, shortfall, shared)),
    }
}

fn run<C: Clock>(
    clock: C,
    order: Order,
    writer: Writer,
    shortfall: Option<Shortfall>,
    shared: &Shared,
) -> Outcome {
    let timebase = order.timebase;
    let own = watch::own_ticks(clock, CALIBRATION).max(1);
    let gap_ns = (order.gap_ns as f64).max(FACTOR * timebase.span(own));
    let rules = Rules { own, threshold: timebase.ticks(gap_ns as u64).max(1), look: timebase.ticks(LOOK_NS) };
    let before = thread_counts();
    let now = clock.end();
    let mut station = Station {
        clock,
        order,
        writer,
        shared,
        classes: Default::default(),
        gaps: 0,
        reading: Gate::Thread.read(),
        read_at: now,
        end: now.saturating_add(timebase.ticks(order.stop.limit_ns)),
        rest_at: now + timebase.ticks(order.duty.map_or(0, |duty| duty.watch_ns)),
        rests: 0,
    };
    let watched = watch::watch(clock, rules, &mut station);
    let Counts { voluntary, involuntary, minor_faults, major_faults } = thread_counts();
    let own_turns = (watched.turns - watched.gaps).max(1) as f64;
    Outcome {
        watched,
        classes: station.classes,
        loop_ns: (timebase.span(watched.watched) - timebase.span(watched.lost)) / own_turns,
        gap_ns,
        switches: (involuntary - before.involuntary)
            + (voluntary - before.voluntary).saturating_sub(station.rests),
        faults: minor_faults + major_faults - before.minor_faults - before.major_faults,
        shortfall,
        writer: station.writer,
    }
}

/// A thread around its loop.
struct Station<'a, C> {
    clock: C,
    order: Order,
    writer: Writer,
    shared: &'a Shared,
    classes: [Share; 3],
    gaps: u64,
    /// What the kernel last said of this thread, and when.
    reading: Reading,
    read_at: u64,
    end: u64,
    rest_at: u64,
    rests: u64,
}

impl<C: Clock> Station<'_, C> {
    fn read(&mut self) -> (Reading, u64) {
        let before = (self.reading, self.read_at);
        (self.reading, self.read_at) = (Gate::Thread.read(), self.clock.end());
        before
    }

    fn rest(&mut self, rest: std::time::Duration) {
        std::thread::sleep(rest);
        self.rests += 1;
        self.read();
    }
}

impl<C: Clock> Host for Station<'_, C> {
    fn gap(&mut self, ticks: u64) {
        let at = monotonic_ns();
        let (before, since) = self.read();
        let timebase = self.order.timebase;
        let (gap_ns, passed) = (timebase.span(ticks), timebase.span(self.read_at - since));
        let missing = passed - (self.reading.cpu_ns - before.cpu_ns) as f64;
        let class = Class::of(gap_ns, self.reading.switches != before.switches, missing);
        let share = &mut self.classes[class as usize];
        share.gaps += 1;
        share.lost_ns += gap_ns;
        let sample = Exceedance { turn: self.gaps, at, value: gap_ns.round() as u64 };
        self.writer.record_event(sample, self.order.epoch_ns, 0, 1);
        self.gaps += 1;
        if sample.value > self.writer.threshold() {
            self.writer.exceed(sample);
            if let Some(bell) = &self.shared.bell {
                let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
            }
            self.shared.over.fetch_or(self.order.ends, Relaxed);
        }
    }

    fn look(&mut self, now: u64) -> bool {
        if now > self.read_at {
            self.read();
        }
        if let Some(duty) = self.order.duty
            && now >= self.rest_at
        {
            self.rest(duty.rest);
            self.rest_at = self.read_at + self.order.timebase.ticks(duty.watch_ns);
        }
        let enough = now >= self.end || self.gaps >= self.order.stop.events;
        !(enough || self.writer.stopping() || self.shared.over.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_put_down_to_who_had_the_cpu() {
        assert_eq!(Class::of(4e6, true, 4e6), Class::Preemption);
        assert_eq!(Class::of(4e6, false, 3.9e6), Class::Steal);
        assert_eq!(Class::of(4e3, false, 150.0), Class::Interrupt);
        assert!(Class::ALL.iter().enumerate().all(|(place, class)| place == *class as usize));
    }
}
