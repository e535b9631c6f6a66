//! Several threads that do a batch together, each on a CPU of its own.
//!
//! The leader is the measuring thread; its mates spin until it begins a batch,
//! take part, and tell before the batch ends whether they were disturbed. What
//! that adds to a batch, some hundred nanoseconds at the beginning and the
//! reading of two counters at the end, is below a hundredth of it.

use crate::engine::gate::{Gate, Watch};
use crate::engine::timebase::Timebase;
use anyhow::{Context, Result};
use latscope_sys::clock::Clock;
use latscope_sys::sched;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// On cache lines of its own.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Line<T>(pub T);

/// What a mate does in a batch: gets the iterations of the leader and a flag
/// that is raised when the leader is through with them, and returns the
/// operations it did.
pub type Share = Box<dyn FnMut(u64, &AtomicBool) -> u64 + Send>;

/// Operations of a mate and the time it took for them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Done {
    /// Operations in batches in which the mate was not disturbed.
    pub operations: u64,
    /// Time of those batches, ns.
    pub ns: f64,
}

#[derive(Debug, Default)]
struct Control {
    /// The number of the batch; [`DISMISSED`] at the end.
    batch: Line<AtomicU64>,
    iterations: Line<AtomicU64>,
    over: Line<AtomicBool>,
    ready: Line<AtomicU32>,
    done: Line<AtomicU32>,
    tainted: Arc<AtomicBool>,
}

const DISMISSED: u64 = u64::MAX;

/// How long a mate looks at one reading of its counters while it waits, and
/// how long the leader waits for a mate before it takes it for descheduled, ns.
const PATIENCE: f64 = 20_000.0;

/// The mates of the measuring thread.
#[derive(Debug)]
pub struct Team {
    control: Arc<Control>,
    timebase: Timebase,
    batch: u64,
    mates: Vec<JoinHandle<Done>>,
}

impl Team {
    /// Starts a mate on each of these CPUs, with its share of the work.
    ///
    /// # Errors
    /// A thread cannot be started or put on its CPU.
    pub fn start(timebase: Timebase, mates: Vec<(u32, Share)>) -> Result<Team> {
        let mut team = Team { control: Arc::default(), timebase, batch: 0, mates: Vec::new() };
        for (cpu, share) in mates {
            let control = team.control.clone();
            let (placed, place) = std::sync::mpsc::channel();
            let mate = std::thread::Builder::new().spawn(move || {
                let pinned = sched::pin(&[cpu]);
                let on_its_cpu = pinned.is_ok();
                // The starter waits for the answer: it cannot be gone.
                let _ = placed.send(pinned);
                if on_its_cpu { take_part(&control, timebase, share) } else { Done::default() }
            })?;
            team.mates.push(mate);
            place
                .recv()
                .context("a thread ended early")?
                .with_context(|| format!("CPU {cpu} cannot be used"))?;
        }
        Ok(team)
    }

    /// The gate of batches that the team does.
    pub fn gate(&self) -> Gate {
        Gate::Team(self.control.tainted.clone())
    }

    /// Does a batch: `work` is the leader's share.
    pub fn batch(&mut self, iterations: u64, work: impl FnOnce()) {
        let control = &*self.control;
        let mates = self.mates.len() as u32;
        self.batch += 1;
        control.iterations.0.store(iterations, Ordering::Relaxed);
        control.over.0.store(false, Ordering::Relaxed);
        control.ready.0.store(0, Ordering::Relaxed);
        control.done.0.store(0, Ordering::Relaxed);
        control.batch.0.store(self.batch, Ordering::Release);
        let began = self.timebase.clock().start();
        while control.ready.0.load(Ordering::Acquire) < mates {}
        if self.timebase.ns(self.timebase.clock().end() - began) > PATIENCE {
            // A mate was not running when the batch began, and this wait is in its time.
            control.tainted.store(true, Ordering::Relaxed);
        }
        work();
        control.over.0.store(true, Ordering::Release);
        while control.done.0.load(Ordering::Acquire) < mates {}
    }

    /// Ends the team; returns what each mate did.
    pub fn dismiss(mut self) -> Vec<Done> {
        self.control.batch.0.store(DISMISSED, Ordering::Release);
        self.mates.drain(..).map(|mate| mate.join().expect("a mate does not panic")).collect()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.control.batch.0.store(DISMISSED, Ordering::Release);
        for mate in self.mates.drain(..) {
            let _ = mate.join();
        }
    }
}

fn take_part(control: &Control, timebase: Timebase, mut share: Share) -> Done {
    let clock = timebase.clock();
    let mut total = Done::default();
    let mut last = 0;
    loop {
        let mut opened = clock.start();
        let mut watch = Watch::open();
        let batch = loop {
            let batch = control.batch.0.load(Ordering::Acquire);
            if batch != last {
                break batch;
            }
            if timebase.ns(clock.end() - opened) > PATIENCE {
                opened = clock.start();
                watch = Watch::open();
            }
        };
        if batch == DISMISSED {
            return total;
        }
        last = batch;
        let began = clock.start();
        control.ready.0.fetch_add(1, Ordering::Release);
        let operations = share(control.iterations.0.load(Ordering::Relaxed), &control.over.0);
        let ended = clock.end();
        if watch.disturbed(timebase.ns(ended - opened)) {
            control.tainted.store(true, Ordering::Relaxed);
        } else {
            total.operations += operations;
            total.ns += timebase.ns(ended - began);
        }
        control.done.0.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mate_takes_part_in_each_batch_once() {
        let cpu = sched::allowed_cpus().unwrap()[0];
        let (timebase, _) = Timebase::calibrate();
        let total = Arc::new(AtomicU64::new(0));
        let mates = (0..2).map(|_| {
            let total = total.clone();
            let share: Share = Box::new(move |iterations, _| total.fetch_add(iterations, Ordering::Relaxed));
            (cpu, share)
        });
        let mut team = Team::start(timebase, mates.collect()).unwrap();
        for batch in 1..=3 {
            team.batch(10, || {
                total.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(total.load(Ordering::Relaxed), batch * 21);
        }
        assert_eq!(team.dismiss().len(), 2);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        let (timebase, _) = Timebase::calibrate();
        assert!(Team::start(timebase, vec![(8191, Box::new(|_, _| 0))]).is_err());
    }
}
