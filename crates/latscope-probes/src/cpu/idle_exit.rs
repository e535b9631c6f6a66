//! The way out of idle: how late a thread runs whose CPU slept, by what woke it and by the state in which the CPU was.
//!
//! The kernel counts how often a CPU entered each of its idle states. A sample belongs to the state whose count rose by
//! one while the thread slept; no state is disabled for it.

use crate::prelude::*;
use rustix::thread::{ClockId, Timespec, set_current_timer_slack};
use std::fs;

probes! {
    EXPERIMENT, IdleExitSettings, plan_idle_exits, ..ProbeFacts::DELAYS;
    IDLE_EXIT "cpu.idle-exit", "out of idle",
        "Documentation/admin-guide/pm/cpuidle.rst: stateN/usage, current_governor",
        "By timer: from the instant for which clock_nanosleep was asked, with a timer slack of 1 ns, until the \
        thread runs. By ipi: from before FUTEX_WAKE on another CPU until it runs. Its CPU idled for `pause` if \
        nothing else wanted it; values are median and share of the samples of each state."
        { times: Semantics::OneWay, by_name_only: true,
          sensitive_to: &[Condition::WakeUp, Condition::Isolation, Condition::Virtualisation], };
}

static EXPERIMENT: Experiment = Experiment::new("cpu.idle-exit", Cpus::Two, run_idle_exits)
    .setup_per_point(0.02)
    .adapted_by(|step, _| super::sleepy(step, 10, 200));

words! {
    /// Source of the wake-up.
    enum IdleWakeSource {
        /// The timer of the CPU.
        Timer = "timer",
        /// An interrupt by another CPU.
        Ipi = "ipi",
    }
}

settings! {
    /// Settings of the end of an idle state.
    struct IdleExitSettings, requested as IdleExitRequest {
        /// What ends it: the timer of the CPU, or an interrupt by another CPU.
        by: IdleWakeSource;
        /// Time for which the CPU idles: the longer, the deeper the state.
        pause: u64 as Time;
        /// Governor that chooses the state; `none` without a driver.
        governor: Option<String>;
    }
}

const US: u64 = 1_000;

fn plan_idle_exits(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let pauses: &[u64] = match input.profile {
        SurveyProfile::Quick => &[100 * US],
        SurveyProfile::Normal => &[20 * US, 2_000 * US],
        SurveyProfile::Full => &[10 * US, 50 * US, 200 * US, 1_000 * US, 5_000 * US, 20_000 * US],
    };
    let asked = IdleExitRequest::of(input);
    let mut points = Vec::new();
    for by in asked.by.or(IdleWakeSource::ALL) {
        for pause in asked.pause.or(pauses) {
            let cause = if by == IdleWakeSource::Timer { "its timer" } else { "another CPU" };
            let title = format!("out of idle after {}, by {cause}", format_time(pause as f64));
            points.push(probe.make_point(IdleExitSettings { by, pause, governor: None }, title, false));
        }
    }
    points
}

fn run_idle_exits(bench: &mut Bench) -> Result<()> {
    // The timer of this thread is not to wait for others.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let cpus = bench.cpus().to_vec();
    let states = States::of_cpu(Path::new("/sys/devices/system/cpu"), cpus[0]);
    for (point, IdleExitSettings { by, pause, .. }) in bench.settings()?.into_iter().enumerate() {
        bench.set_param(point, "governor", ParamValue::from(states.governor.as_str()));
        match (by, cpus.as_slice()) {
            (IdleWakeSource::Timer, _) => measure_exits(bench, point, &states, || timer(pause)),
            (IdleWakeSource::Ipi, [_, other, ..]) => {
                let mut waker = Waker::start_thread(bench.timebase().clock(), *other, pause)?;
                measure_exits(bench, point, &states, || waker.sleep_until_woken());
            }
            (IdleWakeSource::Ipi, _) => crate::available::lacks_a_cpu(bench, point),
        }
    }
    Ok(())
}

/// Exit from idle: its length, in the unit of its clock.
#[derive(Debug, Clone, Copy)]
enum IdleExitLatency {
    Ns(u64),
    Ticks(u64),
}

/// Sleeps for `pause` ns; how late the thread runs.
fn timer(pause: u64) -> Option<IdleExitLatency> {
    let at = monotonic_ns() + pause;
    let until = Timespec { tv_sec: (at / 1_000_000_000) as _, tv_nsec: (at % 1_000_000_000) as _ };
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err() {}
    monotonic_ns().checked_sub(at).map(IdleExitLatency::Ns)
}

/// A thread on another CPU that wakes the measuring one.
struct Waker {
    shared: Arc<IdleWakeSignals>,
    clock: AnyClock,
    thread: Option<Partner<()>>,
}

#[derive(Debug, Default)]
struct IdleWakeSignals {
    asked: Tokens,
    woken: Tokens,
    /// Stamp before the call that wakes.
    stamp: AtomicU64,
    ending: AtomicBool,
}

impl Waker {
    fn start_thread(clock: AnyClock, cpu: u32, pause: u64) -> Result<Waker> {
        let shared = Arc::new(IdleWakeSignals::default());
        let theirs = shared.clone();
        let body = move || loop {
            theirs.asked.take_token();
            if theirs.ending.load(Relaxed) {
                return;
            }
            std::thread::sleep(Duration::from_nanos(pause));
            theirs.stamp.store(clock.stamp_start(), Relaxed);
            theirs.woken.give_token();
        };
        let thread = threads::start_partner(move || threads::pin(cpu), body).context("the waking thread")?;
        Ok(Waker { shared, clock, thread: Some(thread) })
    }

    fn sleep_until_woken(&mut self) -> Option<IdleExitLatency> {
        self.shared.asked.give_token();
        self.shared.woken.take_token();
        let now = self.clock.stamp_end();
        now.checked_sub(self.shared.stamp.load(Relaxed)).map(IdleExitLatency::Ticks)
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.shared.ending.store(true, Relaxed);
        self.shared.asked.give_token();
        let _ = self.thread.take().map(Partner::join);
    }
}

fn measure_exits(
    bench: &mut Bench,
    point: usize,
    states: &States,
    mut exit: impl FnMut() -> Option<IdleExitLatency>,
) {
    let timebase = bench.timebase();
    let mut by_state: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut samples = 0u64;
    bench.splits(&[point], SampleGate::Open, |splits| {
        let before = states.usage();
        let Some(exit) = exit() else { return };
        samples += 1;
        let (ticks, ns) = match exit {
            IdleExitLatency::Ns(ns) => (timebase.ticks(ns), ns as f64),
            IdleExitLatency::Ticks(ticks) => (ticks, timebase.interval_ns(ticks)),
        };
        splits.set_part(0, 0, ticks);
        if let Some(state) = entered(&before, &states.usage()) {
            by_state.entry(state).or_default().push(ns);
        }
    });
    for (state, exits) in by_state {
        let name = &states.names[state];
        let share = 100.0 * exits.len() as f64 / samples as f64;
        bench.add_value(point, &format!("in:{name}"), share, "%", Better::Neither);
        if let Some(median) = median(&exits) {
            bench.add_value(point, &format!("exit:{name}"), median, "ns", Better::Less);
        }
    }
}

/// The one state that was entered between two readings, once; `None` if several were, or one several times.
fn entered(before: &[u64], after: &[u64]) -> Option<usize> {
    let mut risen = before.iter().zip(after).enumerate().filter(|(_, (before, after))| after > before);
    let (state, (before, after)) = risen.next()?;
    (risen.next().is_none() && after - before == 1).then_some(state)
}

/// The idle states of a CPU.
#[derive(Debug, Default)]
struct States {
    governor: String,
    names: Vec<String>,
    counts: Vec<PathBuf>,
}

impl States {
    /// Finds the states below `/sys/devices/system/cpu`; none where the kernel has no driver for them.
    fn of_cpu(root: &Path, cpu: u32) -> States {
        let read = |path: PathBuf| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let folder = |state: usize| root.join(format!("cpu{cpu}/cpuidle/state{state}"));
        let names: Vec<String> = (0..).map_while(|state| read(folder(state).join("name"))).collect();
        let governor = ["current_governor", "current_governor_ro"]
            .iter()
            .find_map(|file| read(root.join("cpuidle").join(file)))
            .filter(|_| !names.is_empty());
        States {
            governor: governor.unwrap_or_else(|| "none".to_owned()),
            counts: (0..names.len()).map(|state| folder(state).join("usage")).collect(),
            names: names.into_iter().map(|name| name.replace(' ', "-")).collect(),
        }
    }

    /// Returns how often each state was entered so far; nothing if that cannot be read.
    fn usage(&self) -> Vec<u64> {
        let count = |path: &PathBuf| fs::read_to_string(path).ok()?.trim().parse().ok();
        self.counts.iter().map_while(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    #[test]
    fn a_sample_belongs_to_the_one_state_that_was_entered_once() {
        assert_eq!(entered(&[4, 7], &[4, 8]), Some(1));
        assert_eq!(entered(&[4, 7], &[5, 8]), None);
        assert_eq!(entered(&[4, 7], &[4, 9]), None);
        assert_eq!(entered(&[4, 7], &[4, 7]), None);
        assert_eq!(entered(&[], &[]), None);
    }

    #[test]
    fn states_and_their_governor_are_found_or_none() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(States::of_cpu(root.path(), 3).governor, "none");
        put("cpuidle/current_governor_ro", "menu\n");
        assert_eq!(States::of_cpu(root.path(), 3).governor, "none", "a governor without a driver");
        for (state, name) in ["POLL", "haltpoll idle"].iter().enumerate() {
            put(&format!("cpu3/cpuidle/state{state}/name"), name);
            put(&format!("cpu3/cpuidle/state{state}/usage"), &format!("{state}2\n"));
        }
        let states = States::of_cpu(root.path(), 3);
        assert_eq!((states.governor.as_str(), states.usage()), ("menu", vec![2, 12]));
        assert_eq!(states.names, ["POLL", "haltpoll-idle"]);
    }

    #[test]
    fn both_causes_are_measured_and_the_governor_is_named() {
        for m in harness::measure(&EXPERIMENT, harness::points(&IDLE_EXIT)) {
            harness::check(&m);
            assert!(m.params.contains_key("governor"), "{m:?}");
            let states = m.values.keys().filter(|name| name.starts_with("in:")).count();
            assert!(
                m.quality.level == QualityLevel::Unsupported
                    || states > 0
                    || m.has_param_value("governor", "none")
                    || m.summary.count > 0
            );
        }
    }
}
