//! Lateness of a periodic thread after its timer.

use super::activations::Waiter;
use super::periodic_threads::{Member, PeriodicThreadResult, PeriodicThreads};
use super::thread::{ClockName, WakeHopKind, WakeMethod, WakeThreadPolicy, WakeThreadSettings};
use super::waiter::{Monotonic, Nanosleep};
use crate::classes;
use crate::prelude::*;
use latscope_bench::hold::Shortfall;
use latscope_core::plan::{Conditions, Phase};
use latscope_os::kernels::random::ShuffleGenerator;

probes! {
    EXPERIMENT, WakeThreadSettings, plan_survey, ..ProbeFacts::DELAYS;
    TIMER "wake.timer", "timer wake-up, late by",
        "clock_nanosleep(2), timerfd_create(2), timer_create(2), sched_setattr(2)",
        "From the programmed instant of a timer to the first stamp of the thread that it woke, or, with `via`, \
        of the thread that this one handed over to."
        { times: Semantics::OneWay,
          headline: Some(ProbeHeadline { name: "wake-up", preferred: &[("cpu", "all")] }), };
}

// Measured beside the wake-up, and only where there is work.
probes! {
    EXPERIMENT, WakeThreadSettings, |_, _, _| Vec::new(), ..ProbeFacts::DELAYS;
    RESPONSE "wake.response", "timer wake-up and work, done after", "clock_nanosleep(2)",
        "From the programmed instant of a timer to the end of the work (`work`, `touch`) of the woken thread."
        { times: Semantics::OneWay, };
}

static EXPERIMENT: Experiment = Experiment::new("wake.timer", Cpus::All, run_timer_threads)
    .setup_per_point(0.001)
    .setup_once(0.1)
    .adapted_by(|step, _| step.conditions = usual_conditions());

/// Usual priority, below the kernel's own threads of highest priority (migration, watchdog).
pub const PRIORITY: u32 = 95;

/// The usual interval, ns.
pub const INTERVAL: u64 = 1_000_000;

/// The usual thread: SCHED_FIFO, absolute sleeps, and no work.
pub fn usual_thread(index: u64, cpu: Option<u32>) -> WakeThreadSettings {
    WakeThreadSettings {
        index,
        cpu,
        interval: INTERVAL,
        policy: WakeThreadPolicy::Fifo(PRIORITY),
        method: WakeMethod::Nanosleep,
        clock: ClockName::Monotonic,
        via: WakeHopKind::Direct,
        work: 0,
        touch: 0,
        slice: None,
    }
}

/// Usual conditions of the machine: memory locked, CPUs kept from deep sleep.
pub fn usual_conditions() -> Conditions {
    Conditions { lock_memory: true, cpu_dma_latency: Some(0), scratch_in: None }
}

/// Returns how many intervals a usual warm-up has: those of 100 ms, from one to 100 of them. Of long intervals 100
/// would take longer than many a run.
pub fn warm_up(interval: u64) -> u64 {
    (100 * INTERVAL / interval).clamp(1, 100)
}

/// Usual rules of a run with the usual interval.
pub fn usual_rules() -> Periodic {
    Periodic { corrected: true, ..Periodic::new(Phase::Staggered, warm_up(INTERVAL)) }
}

/// The points of a survey: a thread on each CPU, of very many on some of each node.
fn plan_survey(probe: &Probe, _: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let (cpus, some) = classes::surveyed(machine);
    let threads = cpus.iter().zip(0..).map(|(cpu, index)| usual_thread(index, Some(*cpu)));
    threads
        .map(|thread| {
            let place = thread.cpu.map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
            let title =
                format!("wake-up every {}, lateness, {place}{some}", format_time(thread.interval as f64));
            probe.make_point(thread, title, false)
        })
        .collect()
}

/// Number of activations in a survey: the requested number, as many as fit into the requested time, or a
/// second's worth of milliseconds.
fn activations(stop: Stop) -> u64 {
    let count = match (stop.events, stop.budget_ns) {
        (events, u64::MAX) => events,
        (u64::MAX, _) => stop.limit_ns / INTERVAL,
        (events, _) => events / 2,
    };
    count.max(1)
}

fn run_timer_threads(bench: &mut Bench) -> Result<()> {
    let stop = bench.stop();
    let surveyed = bench.periodic().is_none();
    let periodic = bench.periodic().cloned().unwrap_or_else(|| Periodic { warm_up: 10, ..usual_rules() });
    let count = if surveyed { activations(stop) } else { stop.events };
    let members = members(bench)?;
    check_interval(&members)?;
    let phases = random_phases(bench.seed(), members.len());
    let duration = if surveyed { u64::MAX } else { stop.limit_ns };
    let periodic_threads = PeriodicThreads::new(periodic, count, duration, bench.epoch_ns(), phases);
    let forewarn = |shortfall: &Shortfall| bench.announce_shortfall(shortfall);
    for done in periodic_threads.measure_members(members, forewarn)? {
        report_thread(bench, done);
    }
    Ok(())
}

fn members(bench: &mut Bench) -> Result<Vec<Member>> {
    let (points, threads): (_, Vec<WakeThreadSettings>) = (bench.points(), bench.settings()?);
    let of_probe = |probe: &Probe| (0..points.len()).filter(|i| points[*i].probe == probe.id).collect();
    let (timers, responses): (Vec<usize>, Vec<usize>) = (of_probe(&TIMER), of_probe(&RESPONSE));
    let mut members = Vec::new();
    for point in timers {
        let thread = threads[point].clone();
        let response = responses.iter().find(|response| threads[**response] == thread);
        let response = response.map(|point| (*point, bench.writer(*point)));
        members.push(Member { point, thread, writer: bench.writer(point), response, alarm: bench.alarm() });
    }
    Ok(members)
}

/// Unavoidable cost of a wake-up, ns: the fastest of some sleeps whose instant is over when they begin.
fn floor() -> u64 {
    // Without it, the kernel may stretch sleeps of a thread that is not real-time by 50 µs.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let sleep = || {
        let begun = monotonic_ns();
        Nanosleep(Monotonic).wait_until_due(begun + 1).now - begun
    };
    (0..50).map(|_| sleep()).min().unwrap_or(0)
}

fn check_interval(members: &[Member]) -> Result<()> {
    let floor = floor();
    let shortest = members.iter().map(|member| member.thread.interval).min().unwrap_or(u64::MAX);
    if shortest < floor {
        bail!(
            "an interval of {} is shorter than the fastest sleep and wake-up of this machine, {}: ask for at least {}",
            format_time(shortest as f64),
            format_time(floor as f64),
            format_time((2 * floor) as f64)
        );
    }
    Ok(())
}

/// Phases that differ from thread to thread, and are the same for a seed.
fn random_phases(seed: u64, threads: usize) -> Vec<u64> {
    let mut phases = vec![0; threads];
    ShuffleGenerator::new(seed).fill_words(&mut phases);
    phases
}

fn report_thread(bench: &mut Bench, done: PeriodicThreadResult) {
    let PeriodicThreadResult { member: Member { point, writer, response, .. }, counted, unbegun, shortfalls } =
        done;
    let counts = [
        ("early", counted.early, Better::Neither),
        ("faults", counted.faults, Better::Less),
        ("involuntary", counted.involuntary, Better::Less),
        ("migrations", counted.migrations, Better::Less),
    ];
    for (name, count, better) in counts {
        bench.add_value(point, name, count as f64, "count", better);
    }
    if unbegun {
        bench.uneventful(point, "another thread ended the run before the first activation of this one");
    }
    let points = [Some(point), response.as_ref().map(|(point, _)| *point)];
    for shortfall in &shortfalls {
        points.iter().flatten().for_each(|point| bench.fell_short(*point, shortfall));
    }
    bench.finish_writer(point, writer);
    if let Some((point, writer)) = response {
        bench.finish_writer(point, writer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeywordEnum, SurveyProfile};
    use latscope_core::plan::ParamValue;
    use latscope_engine::harness;

    #[test]
    fn a_point_for_each_allowed_cpu() {
        let machine = Machine { allowed: "0,3".parse().unwrap(), ..Machine::default() };
        let input = PlanInput { profile: SurveyProfile::Normal, survey: true, ..PlanInput::default() };
        let cpus: Vec<_> = TIMER.plan(&input, &machine).iter().map(|p| p.params["cpu"].clone()).collect();
        assert_eq!(cpus, [ParamValue::Number(0), ParamValue::Number(3)]);
    }

    #[test]
    fn it_runs_on_every_cpu() {
        for m in harness::measure(&EXPERIMENT, harness::points(&TIMER)) {
            harness::check(&m);
            assert_eq!(m.summary.count, 10);
            assert_eq!(m.values["early"].value, 0.0);
        }
    }

    #[test]
    fn every_method_hop_and_work_is_measured_without_an_early_wake_up() {
        let cpu = latscope_os::sched::allowed_cpus().unwrap()[0];
        let usual = WakeThreadSettings { policy: WakeThreadPolicy::Other, ..usual_thread(0, Some(cpu)) };
        let methods = WakeMethod::ALL.iter().filter(|method| **method != WakeMethod::Yield);
        let mut threads: Vec<WakeThreadSettings> =
            methods.map(|method| WakeThreadSettings { method: *method, ..usual.clone() }).collect();
        threads.extend(WakeHopKind::ALL.iter().map(|via| WakeThreadSettings { via: *via, ..usual.clone() }));
        threads.push(WakeThreadSettings { clock: ClockName::Realtime, cpu: None, ..usual.clone() });
        for thread in threads {
            let point = TIMER.make_point(thread.clone(), "a thread", true);
            let m = &harness::measure(&EXPERIMENT, vec![point])[0];
            harness::check(m);
            assert_eq!((m.summary.count, m.values["early"].value), (10, 0.0), "{thread:?}");
        }
    }

    #[test]
    fn the_response_contains_the_work() {
        let cpu = latscope_os::sched::allowed_cpus().unwrap()[0];
        let thread = WakeThreadSettings {
            work: 50_000,
            touch: 4096,
            policy: WakeThreadPolicy::Other,
            ..usual_thread(0, Some(cpu))
        };
        let points = [&TIMER, &RESPONSE].map(|probe| probe.make_point(thread.clone(), "a thread", true));
        let measured = harness::measure(&EXPERIMENT, points.into());
        measured.iter().for_each(harness::check);
        assert!(measured[1].summary.min.unwrap() >= 50_000.0);
        assert_eq!(measured[0].summary.count, measured[1].summary.count);
    }

    #[test]
    fn an_impossible_interval_is_refused_with_the_floor() {
        let thread =
            WakeThreadSettings { interval: 1, policy: WakeThreadPolicy::Other, ..usual_thread(0, None) };
        let measured = std::panic::catch_unwind(|| {
            harness::measure(&EXPERIMENT, vec![TIMER.make_point(thread.clone(), "a thread", true)])
        });
        assert!(measured.is_err());
        assert!(floor() > 0);
    }

    #[test]
    fn phases_are_the_same_for_a_seed_and_differ_from_thread_to_thread() {
        assert_eq!(random_phases(1, 3), random_phases(1, 3));
        assert_ne!(random_phases(1, 3), random_phases(2, 3));
        let phases = random_phases(1, 2);
        assert_ne!(phases[0], phases[1]);
    }
}
