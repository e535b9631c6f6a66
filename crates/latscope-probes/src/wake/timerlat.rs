//! Wake-up latency as the kernel's timerlat tracer sees it, at three stages: the timer's interrupt ran, the
//! thread ran, the thread was back in user space.

use super::setup::WakeStepSetup;
use crate::noise::{self, kernel};
use crate::prelude::*;
use latscope_core::units::CpuList;
use latscope_trace::kernel_tracer::{self, LatencyTracer, LatencyTracerLine, LatencyTracerRequest};
use std::fs::File;
use std::io::Read;

probes! {
    EXPERIMENT, TimerlatSettings, plan_timerlat, ..ProbeFacts::DELAYS;
    TIMERLAT "wake.timerlat", "timer latency",
        "the timerlat tracer, Documentation/trace/timerlat-tracer.rst (Linux 5.14; user 6.5)",
        "From the programmed instant of a timer to its interrupt (irq), to the thread that it wakes (thread), \
        and to that thread's return to user space (user); stamped by the kernel."
        { times: Semantics::OneWay, by_name_only: true, };
}

static EXPERIMENT: Experiment =
    Experiment::new("wake.timerlat", Cpus::All, run_timerlat).adapted_by(noise::for_a_time);

settings! {
    /// Parameters of a timed part of the activations of a CPU.
    struct TimerlatSettings, requested as TimerlatRequest {
        /// Time from one wake-up to the next.
        interval: u64 as Time;
        /// How far the activation had come.
        context: TimerlatContext as Stated;
        /// CPU of the timer; `all` is their sum.
        cpu: u32 as Stated, axis;
        /// Scheduling policy of the thread.
        policy: TimerlatPolicy as Stated;
        /// Its priority.
        priority: u32 as Stated;
    }
}

words! {
    /// Stage of an activation.
    enum TimerlatContext {
        /// The timer's interrupt ran.
        Irq = "irq",
        /// The thread ran in the kernel.
        Thread = "thread",
        /// The thread was back in user space.
        User = "user",
    }
}

words! {
    /// The policy of the thread.
    enum TimerlatPolicy {
        /// The real-time policy, SCHED_FIFO.
        Fifo = "fifo",
    }
}

/// Priority that the kernel gives its own thread.
const PRIORITY: u32 = 95;

/// Activations of each CPU that are not recorded.
const WARM_UP: u64 = 10;

/// Usual time from one activation to the next, ns.
const INTERVAL: u64 = 1_000_000;

/// The intervals that the kernel accepts, ns.
const INTERVALS: std::ops::RangeInclusive<u64> = 100_000..=1_000_000_000;

fn plan_timerlat(_: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let of_cpus = |interval| machine.allowed.0.iter().flat_map(move |cpu| cpu_points(interval, *cpu));
    TimerlatRequest::of(input).interval.or(&[INTERVAL]).into_iter().flat_map(of_cpus).collect()
}

fn cpu_points(interval: u64, cpu: u32) -> impl Iterator<Item = MeasurementPoint> {
    TimerlatContext::ALL.iter().map(move |context| {
        let latency = TimerlatSettings {
            interval,
            context: *context,
            cpu,
            policy: TimerlatPolicy::Fifo,
            priority: PRIORITY,
        };
        let (every, context) = (format_time(interval as f64), context.word());
        TIMERLAT.make_point(latency, format!("timerlat every {every}, {context}, CPU {cpu}"), false)
    })
}

/// The step in which the kernel times the threads of `setup`: its CPUs, interval, count and duration, by its
/// rules.
pub fn plan_step(setup: &WakeStepSetup) -> PlanStep {
    let step = setup.plan_step();
    let interval = setup.threads.first().map_or(INTERVAL, |thread| thread.interval);
    let points = step.cpus.iter().flat_map(|cpu| cpu_points(interval, *cpu)).collect();
    PlanStep { name: EXPERIMENT.name.to_owned(), points, ..step }
}

fn run_timerlat(bench: &mut Bench) -> Result<()> {
    let latencies: Vec<TimerlatSettings> = bench.settings()?;
    for interval in latencies.iter().map(|latency| latency.interval).collect::<BTreeSet<_>>() {
        let chosen = latencies.iter().enumerate().filter(|(_, latency)| latency.interval == interval);
        let chosen: Vec<Chosen> = chosen.collect();
        if let Err((reason, remedy)) = measure_cpus(bench, &chosen, interval)? {
            chosen.iter().for_each(|(point, _)| bench.unsupported(*point, reason.as_str(), remedy));
        }
    }
    Ok(())
}

/// A point and its parameters.
type Chosen<'a> = (usize, &'a TimerlatSettings);

/// Reason why a measurement is impossible, and the remedy.
type TimerlatRefusal = (String, &'static str);

/// Points of one CPU by context, and the number of its recorded activations.
#[derive(Default)]
struct TimerlatCpuPoints {
    writers: BTreeMap<TimerlatContext, (usize, HistogramSlotWriter)>,
    recorded: u64,
}

fn measure_cpus(bench: &mut Bench, chosen: &[Chosen], interval: u64) -> Result<Result<(), TimerlatRefusal>> {
    if !INTERVALS.contains(&interval) {
        let reason = format!("the kernel accepts no interval of {} here", format_time(interval as f64));
        return Ok(Err((reason, "choose 100us to 1s (--interval)")));
    }
    let tracefs = match kernel_tracer::tracefs_with("timerlat") {
        Ok(tracefs) => tracefs,
        Err(refusal) => return Ok(Err((refusal.reason, refusal.remedy))),
    };
    let cpus: BTreeSet<u32> = chosen.iter().map(|(_, latency)| latency.cpu).collect();
    let cpus = Vec::from_iter(cpus);
    let user = descriptor_path(&tracefs, cpus[0]).exists();
    let settings = settings(&cpus, interval, user);
    let wanted = LatencyTracerRequest { tracer: "timerlat", settings, events: &[], cpus: &cpus };
    kernel::stay_off(bench, &cpus);
    let mut tracer = match LatencyTracer::set_up_tracer(&wanted) {
        Ok(tracer) => tracer,
        Err(refusal) => return Ok(Err((refusal.reason, refusal.remedy))),
    };
    let traced = traced(bench, chosen, user);
    let waiting = if user { cpus.as_slice() } else { &[] };
    let shortfalls = with_user_threads(&tracefs, waiting, |end_threads| {
        follow_tracer(bench, &mut tracer, traced, interval, end_threads)
    })?;
    kernel::check_lost(bench, &tracer, &Vec::from_iter(chosen.iter().map(|(point, _)| *point)));
    for (reason, remedy) in shortfalls {
        chosen.iter().for_each(|(point, _)| bench.degrade(*point, "not-as-asked", reason.as_str(), remedy));
    }
    Ok(Ok(()))
}

fn settings(cpus: &[u32], interval: u64, user: bool) -> Vec<(String, String)> {
    let mut settings = vec![
        ("cpus", CpuList(cpus.to_vec()).to_string()),
        ("timerlat_period_us", (interval / 1000).to_string()),
        ("stop_tracing_us", "0".to_owned()),
        ("stop_tracing_total_us", "0".to_owned()),
        ("print_stack", "0".to_owned()),
    ];
    // Before 6.1 or so there are no options, and always a workload.
    settings.extend(user.then(|| ("options", "NO_OSNOISE_WORKLOAD".to_owned())));
    settings.into_iter().map(|(file, value)| (format!("osnoise/{file}"), value)).collect()
}

/// The file whose reading is a wake-up of a measuring thread.
fn descriptor_path(tracefs: &Path, cpu: u32) -> PathBuf {
    tracefs.join(format!("osnoise/per_cpu/cpu{cpu}/timerlat_fd"))
}

fn traced(bench: &mut Bench, chosen: &[Chosen], user: bool) -> BTreeMap<u32, TimerlatCpuPoints> {
    let mut traced: BTreeMap<u32, TimerlatCpuPoints> = BTreeMap::new();
    for (index, latency) in chosen.iter().copied() {
        if latency.context == TimerlatContext::User && !user {
            let reason =
                "this kernel does not time the return to user space (osnoise/per_cpu/cpuN/timerlat_fd)";
            bench.unsupported(index, reason, "use Linux 6.5 or later");
            continue;
        }
        let writer = bench.writer(index);
        traced.entry(latency.cpu).or_default().writers.insert(latency.context, (index, writer));
    }
    traced
}

/// Records lines until there are enough.
fn follow_tracer(
    bench: &mut Bench,
    tracer: &mut LatencyTracer,
    traced: BTreeMap<u32, TimerlatCpuPoints>,
    interval: u64,
    ending: &mut dyn FnMut(),
) -> Result<()> {
    let (stop, epoch_ns) = (bench.stop(), bench.epoch_ns());
    let limit = bench.periodic().and_then(|rules| Some((rules.threshold?, rules.stop_at_threshold)));
    let wanted = stop.events.max(1);
    let over = AtomicBool::new(false);
    let traced = std::cell::RefCell::new(traced);
    let line = |line: LatencyTracerLine| {
        let mut traced = traced.borrow_mut();
        let Some(cpu) = traced.get_mut(&line.cpu) else { return };
        let exceeded =
            record_line(cpu, line, wanted, epoch_ns, interval, limit.map(|(threshold, _)| threshold));
        over.fetch_or(exceeded && limit.is_some_and(|(_, ends)| ends), Relaxed);
    };
    let enough = || {
        let traced = traced.borrow();
        let stopping = |cpu: &TimerlatCpuPoints| cpu.writers.values().any(|(_, writer)| writer.should_stop());
        traced.values().all(|cpu| cpu.recorded >= wanted)
            || traced.values().any(stopping)
            || over.load(Relaxed)
    };
    let lasted = kernel::follow_tracer(tracer, Duration::from_nanos(stop.limit_ns), line, enough, ending)?;
    for (point, writer) in traced.into_inner().into_values().flat_map(|cpu| cpu.writers.into_values()) {
        bench.add_value(point, "watched", lasted.as_secs_f64(), "s", Better::Neither);
        bench.finish_writer(point, writer);
    }
    Ok(())
}

/// A line of the tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimerlatTraceRecord {
    /// Number of the activation on its CPU, from 1.
    activation: u64,
    /// Stage of the activation.
    context: TimerlatContext,
    /// Lateness of the activation, ns.
    latency: u64,
}

impl TimerlatTraceRecord {
    /// Parses a line such as `#463   context    irq timer_latency   1185220 ns`.
    fn parse(text: &str) -> Option<TimerlatTraceRecord> {
        let mut words = text.strip_prefix('#')?.split_whitespace();
        let activation = words.next()?.parse().ok()?;
        let context = match (words.next()?, words.next()?) {
            ("context", "irq") => TimerlatContext::Irq,
            ("context", "thread") => TimerlatContext::Thread,
            ("context", "user-ret") => TimerlatContext::User,
            _ => return None,
        };
        let latency = words.next().filter(|word| *word == "timer_latency").and_then(|_| words.next())?;
        Some(TimerlatTraceRecord { activation, context, latency: latency.parse().ok()? })
    }
}

/// Records a line, if it is of a wanted activation; returns true if it is above the threshold.
fn record_line(
    cpu: &mut TimerlatCpuPoints,
    line: LatencyTracerLine,
    wanted: u64,
    epoch_ns: u64,
    interval: u64,
    threshold: Option<u64>,
) -> bool {
    let Some(told) = TimerlatTraceRecord::parse(line.text) else { return false };
    let turn = told.activation.checked_sub(WARM_UP + 1).filter(|turn| *turn < wanted);
    let (Some(turn), Some((_, writer))) = (turn, cpu.writers.get_mut(&told.context)) else { return false };
    let sample = Exceedance { turn, at: line.at, value: told.latency };
    writer.record_event(sample, epoch_ns, 0, interval);
    // The thread comes after the interrupt; its return is reported with the next one.
    if told.context == TimerlatContext::Thread {
        cpu.recorded = turn + 1;
    }
    let exceeds = threshold.is_some_and(|threshold| sample.value > threshold);
    if exceeds {
        writer.exceed(sample);
    }
    exceeds
}

/// Runs `body` while a thread on each CPU waits for the kernel's timer. `body` gets a function that ends the
/// threads, to be called before the tracer stops: that kills the threads that still wait for it.
fn with_user_threads(
    tracefs: &Path,
    cpus: &[u32],
    body: impl FnOnce(&mut dyn FnMut()) -> Result<()>,
) -> Result<Vec<TimerlatRefusal>> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ending = threads::StopFlagGuard(&over);
        let mut threads = Vec::new();
        for cpu in cpus {
            let (over, path) = (&over, descriptor_path(tracefs, *cpu));
            threads.push(scope.spawn(move || wait_for_timer(*cpu, &path, over)));
        }
        let mut shortfalls = Vec::new();
        body(&mut || {
            over.store(true, Relaxed);
            let joined =
                threads.drain(..).map(|thread| thread.join().expect("a waiting thread does not panic"));
            shortfalls.extend(joined.filter_map(Result::err));
        })?;
        Ok(shortfalls)
    })
}

/// Waits for the kernel's timer: each read returns at the next activation.
fn wait_for_timer(cpu: u32, path: &Path, over: &AtomicBool) -> Result<(), TimerlatRefusal> {
    let remedy = "run as root, on a CPU of its own";
    let failed = |what: &str, error: std::io::Error| (format!("{what}: {error}"), remedy);
    sched::pin(&[cpu]).map_err(|error| failed(&format!("CPU {cpu} cannot be used"), error))?;
    let policy = sched::set_policy(sched::ThreadSchedPolicy::Fifo(PRIORITY));
    let policy = policy.map_err(|error| failed("the thread ran as SCHED_OTHER", error));
    let mut file = File::open(path).map_err(|error| failed(&path.display().to_string(), error))?;
    while !over.load(Relaxed) {
        if let Err(error) = file.read(&mut [0]) {
            return Err(failed(&path.display().to_string(), error));
        }
    }
    policy?;
    threads::moved().map_or(Ok(()), |shortfall| Err((shortfall.reason, shortfall.remedy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(trace: &str) -> Vec<(u32, TimerlatTraceRecord)> {
        let lines = trace.lines().filter_map(LatencyTracerLine::parse);
        lines
            .map(|line| {
                (line.cpu, TimerlatTraceRecord::parse(line.text).unwrap_or_else(|| panic!("{line:?}")))
            })
            .collect()
    }

    #[test]
    fn a_recorded_trace_is_understood() {
        let told = told(include_str!("../../tests/traces/timerlat-6.1.txt"));
        assert!(told.len() > 40, "{}", told.len());
        for (cpu, thread) in told.iter().filter(|(_, told)| told.context == TimerlatContext::Thread) {
            let irq = told.iter().find(|(c, t)| c == cpu && t.activation == thread.activation).unwrap().1;
            assert!(
                irq.context == TimerlatContext::Irq && irq.latency <= thread.latency,
                "{irq:?} {thread:?}"
            );
        }
    }

    #[test]
    fn the_return_to_user_space_belongs_to_the_same_activation() {
        let told = told(include_str!("../../tests/traces/timerlat-user-6.12.txt"));
        let of = |context, number| {
            told.iter().map(|(_, told)| told).find(|t| t.context == context && t.activation == number)
        };
        let users: Vec<&TimerlatTraceRecord> =
            told.iter().map(|(_, told)| told).filter(|t| t.context == TimerlatContext::User).collect();
        assert!(users.len() > 3, "{told:?}");
        for user in users {
            if let Some(thread) = of(TimerlatContext::Thread, user.activation) {
                assert!(thread.latency <= user.latency, "{thread:?} {user:?}");
            }
        }
    }

    #[test]
    fn other_lines_tell_nothing() {
        for text in
            ["", "#1", "#x context irq timer_latency 1 ns", "#1 context nmi timer_latency 1 ns", "1 2 3"]
        {
            assert_eq!(TimerlatTraceRecord::parse(text), None, "{text}");
        }
    }

    #[test]
    fn there_are_three_points_for_each_cpu() {
        use crate::SurveyProfile;
        let input = PlanInput { profile: SurveyProfile::Normal, survey: false, ..PlanInput::default() };
        let machine = Machine { allowed: "1,3".parse().unwrap(), ..Machine::default() };
        let points = TIMERLAT.plan(&input, &machine);
        let contexts: Vec<&str> = points.iter().map(|point| point.text_param("context")).collect();
        assert_eq!(contexts, ["irq", "thread", "user", "irq", "thread", "user"]);
        let cpus: Vec<u64> = points.iter().map(|point| point.numeric_param("cpu")).collect();
        assert_eq!(cpus, [1, 1, 1, 3, 3, 3]);
        assert_eq!(
            settings(&[1, 3], 250_000, true)[..2],
            [
                ("osnoise/cpus".to_owned(), "1,3".to_owned()),
                ("osnoise/timerlat_period_us".to_owned(), "250".to_owned())
            ]
        );
    }
}
