//! Translation of cyclictest's options into a plan, by pure functions.

use super::options::{Affinity, CyclictestOptions, CyclictestPolicy};
use crate::environment;
use crate::getopt::CommandLineRefusal;
use crate::rt::cpuset;
use crate::rt::row::RtFigureUnit;
use latscope_core::machine::Machine;
use latscope_core::plan::{Conditions, Linear, Periodic, PeriodicEndCondition, Phase, Plan};
use latscope_probes::wake::setup::WakeStepSetup;
use latscope_probes::wake::thread::{self, ClockName, WakeMethod, WakeThreadSettings};
use latscope_probes::wake::timer;
use std::path::Path;

/// Default distance between the threads' intervals, in µs.
const DISTANCE: u64 = 500;

/// Default interval, in µs.
const INTERVAL: u64 = 1000;

/// Returns the threads and rules of a measurement in cyclictest's way: the first thread that is done ends the run,
/// nothing is warmed up, and each thread begins when it is ready.
///
/// # Errors
/// A CPU does not exist, or the priorities would fall below the lowest.
pub fn step_setup(
    options: &CyclictestOptions,
    machine: &Machine,
) -> Result<WakeStepSetup, CommandLineRefusal> {
    Ok(WakeStepSetup {
        threads: threads(options, machine)?,
        periodic: periodic(options),
        count: options.loops.unwrap_or(u64::MAX),
        duration: options.common.duration.unwrap_or(u64::MAX),
        conditions: Conditions {
            lock_memory: options.lock_memory,
            cpu_dma_latency: (!options.leave_system).then_some(options.latency),
            scratch_in: None,
        },
        seed: 1,
    })
}

fn threads(
    options: &CyclictestOptions,
    machine: &Machine,
) -> Result<Vec<WakeThreadSettings>, CommandLineRefusal> {
    let allowed = &machine.allowed.0;
    let count = match options.threads {
        None => 1,
        Some(0) => allowed.len() as u64,
        Some(count) => count,
    };
    if count > MOST_THREADS {
        return Err(CommandLineRefusal::Usage(format!("{count} threads are more than {MOST_THREADS}")));
    }
    let cpus: Vec<Option<u32>> = match &options.affinity {
        Affinity::Any => vec![None],
        Affinity::Each => allowed.iter().copied().map(Some).collect(),
        Affinity::Set(text) => cpuset::parse_cpu_set(text, machine)?.into_iter().map(Some).collect(),
    };
    let distance = if options.histogram.is_some() { 0 } else { options.distance.unwrap_or(DISTANCE) };
    let interval = options.interval.unwrap_or(INTERVAL);
    (0..count)
        .map(|index| {
            let micros = distance.checked_mul(index).and_then(|further| further.checked_add(interval));
            let interval = micros.and_then(|us| us.checked_mul(1000)).filter(|ns| *ns < 1 << 60);
            Ok(WakeThreadSettings {
                interval: interval
                    .ok_or_else(|| CommandLineRefusal::Usage("an interval is too long".to_owned()))?,
                policy: policy(options, index, count)?,
                method: method(options),
                clock: options.clock.unwrap_or(ClockName::Monotonic),
                ..timer::usual_thread(index, cpus[index as usize % cpus.len()])
            })
        })
        .collect()
}

const MOST_THREADS: u64 = 4096;

fn policy(
    options: &CyclictestOptions,
    index: u64,
    count: u64,
) -> Result<thread::WakeThreadPolicy, CommandLineRefusal> {
    let lowered = || match options.spread {
        false => Ok(options.priority),
        true => {
            let priority = u64::from(options.priority).checked_sub(index).filter(|priority| *priority > 0);
            let text = || {
                format!("FATAL: priorities of {count} threads do not go down from {} to 1", options.priority)
            };
            priority.map(|priority| priority as u32).ok_or_else(|| CommandLineRefusal::Fatal(text()))
        }
    };
    Ok(match options.policy {
        Some(CyclictestPolicy::Fifo) => thread::WakeThreadPolicy::Fifo(lowered()?),
        Some(CyclictestPolicy::RoundRobin) => thread::WakeThreadPolicy::RoundRobin(lowered()?),
        _ => thread::WakeThreadPolicy::Other,
    })
}

fn method(options: &CyclictestOptions) -> WakeMethod {
    match (options.posix_timers, options.system, options.relative) {
        (true, true, _) | (false, false, false) => WakeMethod::Nanosleep,
        (true, false, _) => WakeMethod::PosixTimer,
        (false, true, _) => WakeMethod::System,
        (false, false, true) => WakeMethod::Relative,
    }
}

fn periodic(options: &CyclictestOptions) -> Periodic {
    let tick = options.unit.size_ns();
    Periodic {
        warm_up: 0,
        end: PeriodicEndCondition::Any,
        phase: match (options.aligned, options.second_aligned) {
            (None, _) => Phase::Free,
            (Some(offset), true) => Phase::Later(offset * 1000),
            (Some(apart), false) => Phase::Aligned(apart * 1000),
        },
        align_second: options.second_aligned,
        threshold: options.common.break_above.map(|limit| threshold_ns(limit, options.unit)),
        stop_at_threshold: options.common.break_above.is_some(),
        corrected: options.common.result.is_some(),
        linear: options.histogram.map(|buckets| Linear { buckets, tick_ns: tick }),
        // Spikes are picked out of all samples: the threshold may be another.
        stream: options.verbose || options.spike.is_some(),
    }
}

/// Largest value in ns that is not above a limit when figures are cut off.
pub fn threshold_ns(limit: u64, unit: RtFigureUnit) -> u64 {
    (limit + 1).saturating_mul(unit.size_ns()) - 1
}

/// Returns the whole plan.
///
/// # Errors
/// The errors are those of [`step_setup`].
pub fn plan_run(
    options: &CyclictestOptions,
    machine: &Machine,
    trace: Option<&Path>,
) -> Result<Plan, CommandLineRefusal> {
    let step = step_setup(options, machine)?.plan_step();
    let plan = environment::plan_single_step(
        step,
        "cyclictest",
        options.common.break_above.is_some(),
        trace,
        machine,
    );
    Ok(Plan { timeline: options.timeline.clone(), ..plan })
}

#[cfg(test)]
mod tests {
    use super::super::CYCLICTEST;
    use super::*;
    use crate::context::PersonalityContext;
    use latscope_core::units::CpuList;

    fn machine() -> Machine {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        Machine { online: list("0-5"), allowed: list("1-3"), ..Machine::default() }
    }

    fn of(line: &str) -> Result<WakeStepSetup, CommandLineRefusal> {
        step_setup(
            &CYCLICTEST.read_call(&PersonalityContext::new(line.split_whitespace())).unwrap(),
            &machine(),
        )
    }

    fn places(line: &str) -> Vec<(Option<u32>, u64, u32)> {
        let threads = of(line).unwrap().threads;
        threads.iter().map(|t| (t.cpu, t.interval / 1000, t.policy.priority())).collect()
    }

    #[test]
    fn without_options_one_thread_of_the_normal_class_runs_anywhere() {
        let setup = of("").unwrap();
        assert_eq!(places(""), [(None, 1000, 0)]);
        assert_eq!((setup.count, setup.duration), (u64::MAX, u64::MAX));
        assert_eq!(setup.periodic.phase, Phase::Free);
        assert_eq!((setup.periodic.end, setup.periodic.warm_up), (PeriodicEndCondition::Any, 0));
        assert_eq!(setup.conditions.cpu_dma_latency, Some(0));
        assert!(!setup.conditions.lock_memory && !setup.periodic.corrected);
    }

    #[test]
    fn threads_go_round_the_cpus_at_their_distances() {
        assert_eq!(places("-Sp90"), [(Some(1), 1000, 90), (Some(2), 1500, 90), (Some(3), 2000, 90)]);
        assert_eq!(places("-t2 -a 5,0 -d 0 -i 200"), [(Some(0), 200, 0), (Some(5), 200, 0)]);
        assert_eq!(places("-t 4 -a -d 1").last(), Some(&(Some(1), 1003, 0)));
        assert_eq!(places("-t2 -h 10 -d 99"), [(None, 1000, 0), (None, 1000, 0)]);
        assert_eq!(places("-t3 -p 5 --priospread").iter().map(|t| t.2).collect::<Vec<_>>(), [5, 4, 3]);
        assert!(of("-t3 -p 2 --priospread").unwrap_err().to_string().contains("from 2 to 1"));
        assert!(of("-a 9").is_err() && of("-t 5000").is_err());
    }

    #[test]
    fn figures_above_the_limit_are_cut_off_before_they_are_compared() {
        assert_eq!(threshold_ns(10, RtFigureUnit::Us), 10_999);
        assert_eq!(threshold_ns(10, RtFigureUnit::Ns), 10);
        let periodic = of("-b 10").unwrap().periodic;
        assert_eq!((periodic.threshold, periodic.stop_at_threshold), (Some(10_999), true));
        assert_eq!(of("-b 0").unwrap().periodic.threshold, None);
    }

    #[test]
    fn ways_to_wait() {
        let method = |line: &str| of(line).unwrap().threads[0].method;
        assert_eq!(method(""), WakeMethod::Nanosleep);
        assert_eq!((method("-r"), method("-s")), (WakeMethod::Relative, WakeMethod::System));
        assert_eq!((method("-x"), method("-xs")), (WakeMethod::PosixTimer, WakeMethod::Nanosleep));
    }

    #[test]
    fn first_instants() {
        let periodic = |line: &str| of(line).unwrap().periodic;
        assert_eq!(periodic("-A 50").phase, Phase::Aligned(50_000));
        let second = periodic("--secaligned=50");
        assert_eq!((second.phase, second.align_second), (Phase::Later(50_000), true));
    }

    #[test]
    fn what_is_recorded_is_what_is_printed() {
        let periodic = |line: &str| of(line).unwrap().periodic;
        assert_eq!(periodic("-h 40").linear, Some(Linear { buckets: 40, tick_ns: 1000 }));
        assert_eq!(periodic("-N -h 40").linear, Some(Linear { buckets: 40, tick_ns: 1 }));
        assert!(periodic("-v").stream && periodic("--spike=5").stream && !periodic("-q").stream);
        assert!(periodic("--result=x").corrected);
        assert_eq!(of("--laptop").unwrap().conditions.cpu_dma_latency, None);
        assert_eq!(of("--latency=7 -m").unwrap().conditions.cpu_dma_latency, Some(7));
    }
}
