//! Gaps in a busy loop on each CPU: the time that is taken from a program that only computes.

use super::counters::{CpuCounterDelta, CpuKernelCounters};
use super::duty::Duty;
use super::gap_loop::{GapCauseKind, GapLoopOrder, GapLoopState, GapsSeen};
use crate::classes;
use crate::prelude::*;
use latscope_bench::alarm::ExceedanceAlarm;

probes! {
    EXPERIMENT, BusyLoopSettings, plan_busy_loops, ..ProbeFacts::DELAYS;
    BUSY "noise.busy", "gap in a busy loop",
        "user space on each CPU at once; counts from /proc/interrupts, /proc/softirqs, /proc/stat, getrusage(2)",
        "Between two readings of the clock in a loop that does nothing else, the loop's own time subtracted; only what is \
            longer than `gap`."
        { revision: 2, most: &[("priority", 99)], };
}

settings! {
    /// Settings of a busy loop on a CPU.
    struct BusyLoopSettings, requested as BusyLoopRequest {
        /// Shortest gap that counts; at least ten times the loop's own time.
        gap: u64 as Time;
        /// Scheduling policy of the loops.
        policy: BusyLoopPolicy;
        /// Priority under SCHED_FIFO, 1 to 99.
        priority: Option<u32>;
        /// CPU of the loop; `all` is their sum.
        cpu: u32 as Stated, axis;
    }
}

words! {
    /// The policy of a loop.
    enum BusyLoopPolicy {
        /// The normal policy, SCHED_OTHER.
        Other = "other",
        /// SCHED_FIFO, with a priority.
        Fifo = "fifo",
    }
}

static EXPERIMENT: Experiment =
    Experiment::new("noise.busy", Cpus::All, run_busy_loops).adapted_by(super::adapt);

/// Shortest gap that counts, unless the loop itself is slow, ns.
const SHORTEST: u64 = 1_000;

/// Priority above all normal threads and below those of interrupts (50 on PREEMPT_RT).
const PRIORITY: u32 = 1;

/// Sources of interrupts and kinds of softirqs that are named.
const NAMED: usize = 5;

fn plan_busy_loops(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    // A priority means that a policy with priorities is wanted.
    let asked = BusyLoopRequest::of(input);
    let usual = if asked.priority.given() { BusyLoopPolicy::Fifo } else { BusyLoopPolicy::Other };
    let (cpus, some) = match input.survey {
        true => classes::surveyed(machine),
        false => (machine.allowed.0.clone(), String::new()),
    };
    let mut points = Vec::new();
    for gap in asked.gap.or(&[SHORTEST]) {
        for policy in asked.policy.or(&[usual]) {
            let priorities = match policy {
                BusyLoopPolicy::Other => vec![None],
                BusyLoopPolicy::Fifo => asked.priority.or(&[PRIORITY]).into_iter().map(Some).collect(),
            };
            for priority in priorities {
                points.extend(cpus.iter().map(|cpu| {
                    let title = format!("gaps of {} or more on CPU {cpu}{some}", format_time(gap as f64));
                    probe.make_point(BusyLoopSettings { gap, policy, priority, cpu: *cpu }, title, false)
                }));
            }
        }
    }
    points
}

fn run_busy_loops(bench: &mut Bench) -> Result<()> {
    let loops: Vec<BusyLoopSettings> = bench.settings()?;
    // Points that differ only in the CPU are measured at once.
    let group = |of: &BusyLoopSettings| (of.gap, of.policy, of.priority);
    for wanted in loops.iter().map(group).collect::<BTreeSet<_>>() {
        let chosen = loops.iter().enumerate().filter(|(_, of)| group(of) == wanted);
        let chosen: Vec<(usize, u32)> = chosen.map(|(index, of)| (index, of.cpu)).collect();
        let (gap, policy, priority) = wanted;
        let policy = match (policy, priority) {
            (BusyLoopPolicy::Other, None) => sched::ThreadSchedPolicy::Other,
            (BusyLoopPolicy::Fifo, Some(priority)) => sched::ThreadSchedPolicy::Fifo(priority),
            _ => bail!("SCHED_FIFO alone has a priority"),
        };
        measure_gaps(bench, &chosen, gap, policy)?;
    }
    Ok(())
}

fn measure_gaps(
    bench: &mut Bench,
    chosen: &[(usize, u32)],
    gap_ns: u64,
    policy: sched::ThreadSchedPolicy,
) -> Result<()> {
    let duty = Duty::for_this_machine();
    if policy != sched::ThreadSchedPolicy::Other && duty.is_none() {
        let reason = "the kernel grants real-time threads next to no time (sched_rt_runtime_us)";
        let remedy = "run `sysctl kernel.sched_rt_runtime_us=950000` as root, or use --policy other";
        chosen.iter().for_each(|(point, _)| bench.unsupported(*point, reason, remedy));
        return Ok(());
    }
    let order = GapLoopOrder {
        gap_ns,
        policy,
        duty: duty.filter(|_| policy != sched::ThreadSchedPolicy::Other),
        stop: bench.stop(),
        timebase: bench.timebase(),
        epoch_ns: bench.epoch_ns(),
        ends: bench.periodic().is_some_and(|rules| rules.stop_at_threshold),
    };
    let tasks = chosen.iter().map(|(index, cpu)| (*index, *cpu, bench.writer(*index))).collect();
    let (outcomes, before, after) = watch_all(order, tasks, ExceedanceAlarm::new(bench.bell(), None, None))?;
    for (point, cpu, outcome) in outcomes {
        report_gaps(bench, point, &order, outcome?, &after.since(&before, cpu));
    }
    Ok(())
}

/// Runs a thread on each CPU, and reads the kernel's counters before and after.
#[allow(clippy::type_complexity)]
fn watch_all(
    order: GapLoopOrder,
    tasks: Vec<(usize, u32, HistogramSlotWriter)>,
    alarm: ExceedanceAlarm,
) -> Result<(Vec<(usize, u32, Result<GapsSeen>)>, CpuKernelCounters, CpuKernelCounters)> {
    let shared = GapLoopState::new(alarm);
    let all: Vec<_> = tasks.iter().map(|(point, _, writer)| (writer.slots().clone(), *point)).collect();
    std::thread::scope(|scope| {
        // No thread watches while others are being started, or if one does not start.
        let mut started = shared.started.write().expect("no thread panics while it holds this");
        let threads: Vec<_> = tasks
            .into_iter()
            .map(|(point, cpu, writer)| {
                let shared = &shared;
                let thread = std::thread::Builder::new().name(format!("noise/{cpu}"));
                let body = move || super::gap_loop::watch_cpu(order, cpu, writer, shared);
                Ok((point, cpu, thread.spawn_scoped(scope, body)?))
            })
            .collect::<std::io::Result<_>>()
            .context("no thread can be created")?;
        let before = CpuKernelCounters::read_current();
        let begin = monotonic_ns();
        shared.begin_watching(begin);
        for (slots, point) in &all {
            slots.set_due(*point, begin);
            slots.set_end(*point, begin.saturating_add(order.stop.limit_ns));
        }
        *started = true;
        drop(started);
        let joined = threads.into_iter().map(|(point, cpu, thread)| {
            (point, cpu, thread.join().expect("a measuring thread does not panic"))
        });
        let outcomes = joined.collect();
        Ok((outcomes, before, CpuKernelCounters::read_current()))
    })
}

fn report_gaps(
    bench: &mut Bench,
    point: usize,
    order: &GapLoopOrder,
    outcome: GapsSeen,
    seen: &CpuCounterDelta,
) {
    let GapsSeen { turns, watched_ns, rested_ns, gaps, longest_ns, classes, .. } = outcome;
    let GapsSeen { loop_ns, gap_ns, switches, faults, shortfalls, writer, .. } = outcome;
    let lost: f64 = classes.iter().map(|class| class.lost_ns).sum();
    // A gap may begin before the first reading of the loop.
    let under_watch = watched_ns.max(lost).max(1.0);
    let mut value =
        |name: &str, value: f64, unit: &str, better| bench.add_value(point, name, value, unit, better);
    value("watched", under_watch / 1e9, "s", Better::Neither);
    if order.duty.is_some() {
        value("rested", rested_ns / 1e6, "ms", Better::Neither);
    }
    value("loop", loop_ns, "ns", Better::Neither);
    value("gap", gap_ns, "ns", Better::Neither);
    value("lost", 100.0 * lost / under_watch, "%", Better::Less);
    value("turns", turns as f64, "count", Better::Neither);
    value("gaps", gaps as f64 * 1e9 / under_watch, "1/s", Better::Less);
    for class in GapCauseKind::ALL {
        let share = &classes[*class as usize];
        let name = class.word();
        value(&format!("lost-{name}"), 100.0 * share.lost_ns / under_watch, "%", Better::Less);
        value(&format!("gaps-{name}"), share.gaps as f64, "count", Better::Less);
    }
    value("preemptions", switches as f64, "count", Better::Less);
    value("faults", faults as f64, "count", Better::Less);
    value("steal", seen.stolen_ms as f64, "ms", Better::Less);
    value("interrupts", seen.interrupt_count() as f64, "count", Better::Less);
    value("softirqs", seen.softirq_count() as f64, "count", Better::Less);
    for (kind, named) in [("irq", &seen.interrupts), ("softirq", &seen.softirqs)] {
        for (name, count) in named.iter().take(NAMED) {
            value(&format!("{kind}:{name}"), *count as f64, "count", Better::Less);
        }
    }
    if gaps == 0 {
        let (least, longest) = (format_time(gap_ns), format_time(longest_ns));
        bench.uneventful(point, format!("no gap of {least} or more: the longest was {longest}"));
    }
    if gap_ns > order.gap_ns as f64 {
        let reason = format!(
            "gaps below {} were not looked for: the loop itself takes {}",
            format_time(gap_ns),
            format_time(loop_ns)
        );
        let remedy = "use a faster clock source (see latscope doctor), or a longer --gap";
        bench.degrade(point, "coarse-clock", reason, remedy);
    }
    for shortfall in &shortfalls {
        bench.fell_short(point, shortfall);
    }
    bench.finish_writer(point, writer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SurveyProfile;
    use latscope_core::plan::ParamValue;
    use latscope_engine::harness;

    fn asked(values: &[(&str, ParamValue)]) -> Vec<MeasurementPoint> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), vec![value.clone()])).collect();
        let input = PlanInput { profile: SurveyProfile::Normal, survey: false, values, directories: vec![] };
        let machine = Machine { allowed: "0,3".parse().unwrap(), ..Machine::default() };
        BUSY.plan(&input, &machine)
    }

    #[test]
    fn a_point_for_each_cpu_and_a_priority_means_fifo() {
        let points = asked(&[]);
        let cpus: Vec<u64> = points.iter().map(|point| point.numeric_param("cpu")).collect();
        assert_eq!(cpus, [0, 3]);
        assert_eq!((points[0].numeric_param("gap"), points[0].text_param("policy")), (SHORTEST, "other"));
        assert!(!points[0].params.contains_key("priority"));
        let real_time = &asked(&[("priority", 7.into()), ("gap", 9_000.into())])[1];
        assert_eq!((real_time.text_param("policy"), real_time.numeric_param("priority")), ("fifo", 7));
        assert_eq!(real_time.numeric_param("gap"), 9_000);
    }

    #[test]
    fn every_cpu_is_watched_and_its_time_adds_up() {
        for m in harness::measure(&EXPERIMENT, harness::points(&BUSY)) {
            let value = |name: &str| m.values[name].value;
            // Others may run while the kernel's counts are read for the last time: one gap more.
            assert!(!m.incomplete && m.histogram.count() <= harness::STOP.events + 1, "{m:?}");
            assert!(value("watched") > 0.0 && value("loop") > 0.0, "{m:?}");
            let classes: f64 =
                GapCauseKind::ALL.iter().map(|class| value(&format!("gaps-{}", class.word()))).sum();
            assert_eq!(classes, m.histogram.count() as f64);
            let shares: f64 =
                GapCauseKind::ALL.iter().map(|class| value(&format!("lost-{}", class.word()))).sum();
            assert!((shares - value("lost")).abs() < 1e-6 && shares <= 100.0, "{m:?}");
        }
    }

    #[test]
    fn a_gap_that_is_not_found_is_a_result() {
        let mut points = harness::points(&BUSY);
        for point in &mut points {
            point.params.insert("gap".to_owned(), 3_600_000_000_000.into());
        }
        for m in harness::measure(&EXPERIMENT, points) {
            assert_eq!(
                (m.quality.level, m.summary.count),
                (latscope_core::quality::QualityLevel::Ok, 0),
                "{m:?}"
            );
            assert!(m.joined_reasons().as_ref().unwrap().contains("no gap"), "{m:?}");
            assert_eq!(m.values["lost"].value, 0.0);
            all_of_the_time(&m);
        }
    }

    /// Busy, lost or resting: nothing of the time asked for is left out.
    fn all_of_the_time(m: &latscope_core::report::Measurement) {
        let value = |name: &str| m.values.get(name).map_or(0.0, |value| value.value);
        let (watched, rested) = (value("watched") * 1e9, value("rested") * 1e6);
        let asked = harness::STOP.limit_ns as f64;
        // To the digits of a clock that ticks in fractions of a nanosecond.
        assert!(
            m.quality.level == latscope_core::quality::QualityLevel::Unsupported
                || watched + rested >= 0.999 * asked,
            "{m:?}"
        );
    }

    #[test]
    fn a_real_time_loop_rests() {
        let mut points = harness::points(&BUSY);
        for point in &mut points {
            point.params.insert("gap".to_owned(), 3_600_000_000_000.into());
            point.params.insert("policy".to_owned(), "fifo".into());
            point.params.insert("priority".to_owned(), 1.into());
        }
        for m in harness::measure(&EXPERIMENT, points) {
            let refused = m.joined_reasons().as_ref().is_some_and(|reason| reason.contains("SCHED_OTHER"));
            assert!(
                !m.incomplete
                    && (refused || m.quality.level != latscope_core::quality::QualityLevel::Unsupported)
            );
            all_of_the_time(&m);
        }
    }
}
