//! How late a periodic thread runs after its timer.

use crate::engine::bench::Bench;
use crate::engine::recorder::Writer;
use crate::probe::{Ask, Cpus, Experiment, Kind, Param, Probe};
use anyhow::{Context, Result};
use latscope_core::machine::Machine;
use latscope_core::plan::{Point, Policy, Stop, params};
use latscope_core::report::{Better, Times};
use latscope_core::units::format_time;
use latscope_sys::clock::monotonic_ns;
use latscope_sys::{sched, usage};
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use std::sync::RwLock;

/// Difference between the programmed and the real wake-up of a thread.
pub static TIMER: Probe = Probe {
    id: "wake.timer",
    title: "timer wake-up, late by",
    timed: "From the instant an absolute clock_nanosleep was programmed for to the first stamp of the woken thread.",
    times: Times::OneWay,
    source: "clock_nanosleep(2), TIMER_ABSTIME on CLOCK_MONOTONIC",
    params: &[
        Param { name: "interval", help: "Time from one wake-up to the next.", kind: Kind::Time, axis: false },
        Param {
            name: "cpu",
            help: "CPU of the measuring thread; `all` is their sum.",
            kind: Kind::Stated,
            axis: true,
        },
        Param { name: "policy", help: "Scheduling policy asked for.", kind: Kind::Stated, axis: false },
    ],
    experiment: &EXPERIMENT,
    plan,
};

static EXPERIMENT: Experiment =
    Experiment { name: "wake.timer", cpus: Cpus::All, scratch: false, policy: Policy::Fifo(80), run };

const MILLISECOND: u64 = 1_000_000;

fn plan(ask: &Ask, machine: &Machine) -> Vec<Point> {
    let mut points = Vec::new();
    for interval in ask.numbers("interval", &[MILLISECOND]) {
        for cpu in &machine.allowed.0 {
            let params = params([
                ("interval", interval.into()),
                ("cpu", u64::from(*cpu).into()),
                ("policy", "fifo".into()),
            ]);
            let title = format!("wake-up every {}, lateness on CPU {cpu}", format_time(interval as f64));
            points.push(TIMER.point(params, title, false));
        }
    }
    points
}

/// Wake-ups of each thread: as many as asked for, as many as fit into the time
/// asked for, or a second's worth of milliseconds.
fn activations(stop: Stop, interval: u64) -> u64 {
    let count = match (stop.events, stop.budget_ns) {
        (events, u64::MAX) => events,
        (u64::MAX, _) => stop.limit_ns / interval.max(1),
        (events, _) => events / 2,
    };
    count.max(1)
}

struct Measured {
    point: usize,
    writer: Writer,
    early: u64,
    faults: u64,
}

fn run(bench: &mut Bench) -> Result<()> {
    let points = bench.points();
    let stop = bench.stop();
    let intervals: std::collections::BTreeSet<u64> = points.iter().map(|p| p.number("interval")).collect();
    for interval in intervals {
        let chosen: Vec<usize> =
            (0..points.len()).filter(|i| points[*i].number("interval") == interval).collect();
        let activations = activations(stop, interval);
        let begin = RwLock::new(false);
        let tasks: Vec<_> =
            chosen.iter().map(|i| (*i, points[*i].number("cpu") as u32, bench.writer(*i))).collect();
        let measured = std::thread::scope(|scope| -> Result<_> {
            // Nobody measures while others are being started, or if one does not start.
            let mut started = begin.write().expect("no thread panics while it holds this");
            let threads: Vec<_> = tasks
                .into_iter()
                .map(|(point, cpu, writer)| {
                    let begin = &begin;
                    let body = move || measure(point, cpu, interval, activations, writer, begin);
                    std::thread::Builder::new().spawn_scoped(scope, body)
                })
                .collect::<std::io::Result<_>>()
                .context("no thread can be created")?;
            *started = true;
            drop(started);
            Ok(threads
                .into_iter()
                .map(|thread| thread.join().expect("a measuring thread does not panic"))
                .collect::<Vec<_>>())
        })?;
        for result in measured {
            let Measured { point, writer, early, faults } = result?;
            bench.value(point, "early", early as f64, "count", Better::Neither);
            bench.value(point, "faults", faults as f64, "count", Better::Less);
            bench.recorded(point, writer);
        }
    }
    Ok(())
}

/// One measuring thread: it inherits the policy of the worker's main thread.
fn measure(
    point: usize,
    cpu: u32,
    interval: u64,
    activations: u64,
    mut writer: Writer,
    begin: &RwLock<bool>,
) -> Result<Measured> {
    let pinned = sched::pin(&[cpu]).with_context(|| format!("CPU {cpu} cannot be used"));
    anyhow::ensure!(*begin.read().expect("the starter does not panic"), "another thread did not start");
    pinned?;
    let faults = usage::thread_counts().minor_faults;
    let epoch = monotonic_ns();
    let mut due = epoch + interval;
    let mut early = 0;
    // The first wake-ups warm caches and the timer's path.
    let warm_up = 10.min(activations / 2);
    for turn in 0..activations + warm_up {
        sleep_until(due);
        let now = monotonic_ns();
        if turn >= warm_up {
            early += u64::from(now < due);
            writer.record(now.saturating_sub(due), now - epoch);
        }
        due += interval;
        // An activation that is already over is missed, not made up for at once.
        let now = monotonic_ns();
        if due <= now {
            let missed = (now - due) / interval + 1;
            writer.miss(missed);
            due += missed * interval;
        }
    }
    Ok(Measured { point, writer, early, faults: usage::thread_counts().minor_faults - faults })
}

fn sleep_until(ns: u64) {
    let due =
        rustix::thread::Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    while clock_nanosleep_absolute(ClockId::Monotonic, &due) == Err(rustix::io::Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Profile;
    use latscope_core::plan::ParamValue;

    #[test]
    fn a_point_for_each_allowed_cpu() {
        let machine = Machine { allowed: "0,3".parse().unwrap(), ..Machine::default() };
        let ask =
            Ask { profile: Profile::Normal, survey: true, values: Default::default(), directories: vec![] };
        let cpus: Vec<_> = plan(&ask, &machine).iter().map(|p| p.params["cpu"].clone()).collect();
        assert_eq!(cpus, [ParamValue::Number(0), ParamValue::Number(3)]);
    }

    #[test]
    fn it_runs_on_every_cpu() {
        use crate::engine::harness;
        for m in harness::measure(&EXPERIMENT, harness::points(&TIMER)) {
            harness::check(&m);
            assert_eq!(m.summary.count, 10);
            assert_eq!(m.values["early"].value, 0.0);
        }
    }
}
