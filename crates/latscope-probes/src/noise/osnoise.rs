//! The kernel's own busy loop on each CPU, which sees every interrupt and thread that interrupts it.

use super::kernel::{self, TracerCpuPoint};
use crate::prelude::*;
use latscope_core::units::CpuList;
use latscope_trace::kernel_tracer::{self, LatencyTracerLine, LatencyTracerRequest};

probes! {
    EXPERIMENT, OsnoiseThreadSettings, plan_osnoise, ..ProbeFacts::DELAYS;
    OSNOISE "noise.osnoise", "gap in the kernel's busy loop",
        "the osnoise tracer, Documentation/trace/osnoise-tracer.rst (Linux 5.14)",
        "Between two readings of the clock in the kernel's osnoise thread; only what is longer than its threshold."
        { by_name_only: true, };
}

settings! {
    /// A thread of the kernel.
    struct OsnoiseThreadSettings {
        /// CPU of the kernel's thread; `all` is their sum.
        cpu: u32 as Stated, axis;
    }
}

static EXPERIMENT: Experiment =
    Experiment::new("noise.osnoise", Cpus::All, run_osnoise).adapted_by(super::adapt);

fn plan_osnoise(probe: &Probe, _: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let point = |cpu| probe.make_point(OsnoiseThreadSettings { cpu }, format!("osnoise on CPU {cpu}"), false);
    machine.allowed.0.iter().copied().map(point).collect()
}

/// Time for which the kernel's thread runs in each period, µs.
const RUNTIME_US: u64 = 190_000;
const PERIOD_US: u64 = 200_000;

const EVENTS: [&str; 5] = [
    "osnoise/sample_threshold",
    "osnoise/nmi_noise",
    "osnoise/irq_noise",
    "osnoise/softirq_noise",
    "osnoise/thread_noise",
];

fn run_osnoise(bench: &mut Bench) -> Result<()> {
    let watched = bench.settings::<OsnoiseThreadSettings>()?.into_iter().map(|of| of.cpu).collect();
    let mut cpus = bench.cpus().to_vec();
    cpus.sort_unstable();
    let setting = |file: &str, value: String| (format!("osnoise/{file}"), value);
    // The shorter one first: the runtime must fit into the period at any moment.
    let mut settings = vec![
        setting("cpus", CpuList(cpus.clone()).to_string()),
        setting("runtime_us", RUNTIME_US.to_string()),
        setting("period_us", PERIOD_US.to_string()),
        setting("stop_tracing_us", "0".to_owned()),
        setting("stop_tracing_total_us", "0".to_owned()),
    ];
    // Linux before 6.2 has no options, and always runs its own loop.
    let has_options = |tracefs: PathBuf| tracefs.join("osnoise/options").exists();
    if kernel_tracer::tracefs_with("osnoise").is_ok_and(has_options) {
        settings.push(setting("options", "OSNOISE_WORKLOAD".to_owned()));
    }
    let wanted = LatencyTracerRequest { tracer: "osnoise", settings, events: &EVENTS, cpus: &cpus };
    let Some(mut tracer) = kernel::prepare_tracer(bench, &wanted) else { return Ok(()) };
    let events = bench.stop().events;
    let enough = |cpu: &TracerCpuPoint<Notes>| cpu.notes.gaps >= events && cpu.notes.periods > 0;
    let (traced, _) = kernel::record_cpus(bench, &mut tracer, watched, record_line, enough)?;
    let lost = tracer.count_lost_lines();
    for cpu in traced.into_values() {
        report_cpu(bench, cpu, lost);
    }
    Ok(())
}

/// Figures of one CPU, from the kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// Number of gaps that had a line.
    pub gaps: u64,
    /// Number of periods that ended.
    pub periods: u64,
    /// Time for which the loop ran in these periods, µs.
    pub runtime_us: u64,
    /// Time that the loop lost, µs.
    pub noise_us: u64,
    /// Gaps in which the kernel did nothing.
    pub hardware: u64,
    /// Number of times and time (ns) taken, for each source of each kind.
    pub taken: BTreeMap<(OsnoiseSource, String), (u64, u64)>,
}

/// Kinds of sources that the kernel distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names say it
pub enum OsnoiseSource {
    Nmi,
    Irq,
    Softirq,
    Thread,
}

impl OsnoiseSource {
    const ALL: [(OsnoiseSource, &'static str); 4] = [
        (OsnoiseSource::Nmi, "nmi"),
        (OsnoiseSource::Irq, "irq"),
        (OsnoiseSource::Softirq, "softirq"),
        (OsnoiseSource::Thread, "thread"),
    ];

    /// The source of an event, by its name.
    fn from_event(event: &str) -> Option<OsnoiseSource> {
        let kind = event.strip_suffix("_noise")?;
        OsnoiseSource::ALL.iter().find(|(_, word)| *word == kind).map(|(source, _)| *source)
    }
}

/// Content of a line of the tracer or its events.
#[derive(Debug, Clone, PartialEq)]
pub enum OsnoiseTraceRecord {
    /// Length of a gap, ns.
    Gap(u64),
    /// Time that a source took, ns, without the time of what interrupted it.
    Taken(OsnoiseSource, String, u64),
    /// A period is over.
    Period {
        /// Time the loop ran, µs.
        runtime_us: u64,
        /// Time it lost, µs.
        noise_us: u64,
        /// Gaps in which the kernel did nothing.
        hardware: u64,
    },
}

impl OsnoiseTraceRecord {
    /// Parses the part of a line after the time.
    pub fn parse(text: &str) -> Option<OsnoiseTraceRecord> {
        match text.split_once(": ") {
            Some(("sample_threshold", rest)) => parse_duration(rest).map(OsnoiseTraceRecord::Gap),
            Some((event, rest)) => {
                let source = OsnoiseSource::from_event(event)?;
                // A name and a number, except for an NMI: `local_timer:236 start …`.
                let (name, _) = rest.split_once("start ")?;
                let name = name.trim().rsplit_once(':').map_or("", |(name, _)| name);
                Some(OsnoiseTraceRecord::Taken(source, name.to_owned(), parse_duration(rest)?))
            }
            None => period(text),
        }
    }
}

/// Parses the duration of a line `… duration 14247 ns …`.
fn parse_duration(text: &str) -> Option<u64> {
    text.split_once("duration ")?.1.split(' ').next()?.parse().ok()
}

/// Parses a line of nine numbers: runtime, noise, share available, longest, then the counts of hardware, NMIs,
/// interrupts, softirqs and threads.
fn period(text: &str) -> Option<OsnoiseTraceRecord> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |index: usize| words.get(index)?.parse().ok();
    let (runtime_us, noise_us, hardware) = (number(0)?, number(1)?, number(4)?);
    (words.len() == 9).then_some(OsnoiseTraceRecord::Period { runtime_us, noise_us, hardware })
}

fn record_line(cpu: &mut TracerCpuPoint<Notes>, line: LatencyTracerLine, epoch_ns: u64) {
    let notes = &mut cpu.notes;
    match OsnoiseTraceRecord::parse(line.text) {
        Some(OsnoiseTraceRecord::Gap(value)) => {
            let sample = Exceedance { turn: notes.gaps, at: line.at, value };
            cpu.writer.record_event(sample, epoch_ns, 0, 1);
            notes.gaps += 1;
        }
        Some(OsnoiseTraceRecord::Taken(source, name, ns)) => {
            let (times, sum) = notes.taken.entry((source, name)).or_default();
            *times += 1;
            *sum += ns;
        }
        Some(OsnoiseTraceRecord::Period { runtime_us, noise_us, hardware }) => {
            notes.periods += 1;
            notes.runtime_us += runtime_us;
            notes.noise_us += noise_us;
            notes.hardware += hardware;
        }
        None => {}
    }
}

/// Sources that are named.
const NAMED: usize = 8;

fn report_cpu(bench: &mut Bench, cpu: TracerCpuPoint<Notes>, lost: u64) {
    let TracerCpuPoint { point, writer, notes } = cpu;
    if notes.periods == 0 {
        let period = format!("no period of {} ms was over", PERIOD_US / 1000);
        if lost == 0 {
            return bench.unsupported(point, period, "measure for longer (--duration 1s)");
        }
        let reason = format!("{period}, or its line is among the {lost} that were lost");
        return bench.unsupported(point, reason, "raise the kernel's threshold, tracing_thresh in tracefs");
    }
    let mut value =
        |name: &str, value: f64, unit: &str| bench.add_value(point, name, value, unit, Better::Less);
    value("lost", 100.0 * notes.noise_us as f64 / notes.runtime_us.max(1) as f64, "%");
    value("gaps-hardware", notes.hardware as f64, "count");
    for (kind, word) in OsnoiseSource::ALL {
        let of_kind = notes.taken.iter().filter(|((source, _), _)| *source == kind);
        let (times, ns) = of_kind.fold((0, 0), |(times, ns), (_, (n, sum))| (times + n, ns + sum));
        value(&format!("lost-{word}"), ns as f64 / 10.0 / notes.runtime_us.max(1) as f64, "%");
        value(&format!("{word}s"), times as f64, "count");
    }
    let mut sources: Vec<_> = notes.taken.iter().filter(|((_, name), _)| !name.is_empty()).collect();
    sources.sort_by_key(|(_, (_, ns))| std::cmp::Reverse(*ns));
    for ((kind, name), (_, ns)) in sources.into_iter().take(NAMED) {
        let word = OsnoiseSource::ALL.iter().find(|(source, _)| source == kind).map_or("", |(_, word)| word);
        value(&format!("{word}:{name}"), *ns as f64 / 1e6, "ms");
    }
    bench.add_value(point, "watched", notes.runtime_us as f64 / 1e6, "s", Better::Neither);
    if notes.gaps == 0 {
        bench.uneventful(point, "the kernel's loop saw no gap above its threshold");
    }
    bench.finish_writer(point, writer);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = include_str!("../../tests/traces/osnoise-6.1.txt");

    #[test]
    fn a_recorded_trace_is_understood_line_by_line() {
        let lines: Vec<LatencyTracerLine> = TRACE.lines().filter_map(LatencyTracerLine::parse).collect();
        let told: Vec<OsnoiseTraceRecord> =
            lines.iter().filter_map(|line| OsnoiseTraceRecord::parse(line.text)).collect();
        assert_eq!(
            (lines.len(), told.len()),
            (TRACE.lines().filter(|l| !l.starts_with('#')).count(), lines.len())
        );
        assert_eq!(told[0], OsnoiseTraceRecord::Gap(17_500));
        let irq = OsnoiseTraceRecord::Taken(OsnoiseSource::Irq, "local_timer".to_owned(), 663_081);
        assert!(told.contains(&irq), "{told:?}");
        assert!(told.contains(&OsnoiseTraceRecord::Taken(
            OsnoiseSource::Thread,
            "rcuc/1".to_owned(),
            1_904_579
        )));
        let periods: Vec<&OsnoiseTraceRecord> =
            told.iter().filter(|told| matches!(told, OsnoiseTraceRecord::Period { .. })).collect();
        assert_eq!(periods.len(), 2);
        assert_eq!(
            *periods[0],
            OsnoiseTraceRecord::Period { runtime_us: 190_460, noise_us: 172_623, hardware: 71 }
        );
        for period in periods {
            let OsnoiseTraceRecord::Period { runtime_us, noise_us, .. } = period else { unreachable!() };
            assert!(*runtime_us > 0 && noise_us <= runtime_us, "{period:?}");
        }
    }

    #[test]
    fn other_lines_tell_nothing() {
        for text in ["", "1 2 3", "sched_switch: a ==> b", "irq_noise: nonsense", "1 2 3 4 x 6 7 8 9"] {
            assert_eq!(OsnoiseTraceRecord::parse(text), None, "{text}");
        }
        // The thread's own name has a colon in it.
        let worker = "thread_noise: kworker/0:1:22 start 9.299330202 duration 288831 ns";
        assert_eq!(
            OsnoiseTraceRecord::parse(worker),
            Some(OsnoiseTraceRecord::Taken(OsnoiseSource::Thread, "kworker/0:1".to_owned(), 288_831))
        );
        let nmi = "nmi_noise: start 5.000000001 duration 70 ns";
        assert_eq!(
            OsnoiseTraceRecord::parse(nmi),
            Some(OsnoiseTraceRecord::Taken(OsnoiseSource::Nmi, String::new(), 70))
        );
        let period = "1000000        190  99.98100       9     18      0   1007     18      1";
        let expected = OsnoiseTraceRecord::Period { runtime_us: 1_000_000, noise_us: 190, hardware: 18 };
        assert_eq!(OsnoiseTraceRecord::parse(period), Some(expected));
    }
}
