//! Time taken from the kernel itself: by firmware, hypervisor, NMIs.

use super::kernel::{self, TracerCpuPoint};
use crate::prelude::*;
use latscope_trace::kernel_tracer::{LatencyTracerLine, LatencyTracerRequest};

probes! {
    EXPERIMENT, HwlatCpuSettings, plan_hwlat, ..ProbeFacts::DELAYS;
    HWLAT "noise.hwlat", "gap with interrupts off",
        "the hwlat tracer, Documentation/trace/hwlat_detector.rst (Linux 4.9)",
        "The longest distance of two readings of the clock by a kernel thread with interrupts off, in each of \
        its turns; only above the tracer's threshold."
        { by_name_only: true, };
}

settings! {
    /// A CPU that is watched.
    struct HwlatCpuSettings {
        /// CPU the gap was seen on; `all` is their sum.
        cpu: u32 as Stated, axis;
    }
}

static EXPERIMENT: Experiment = Experiment::new("noise.hwlat", Cpus::All, run_hwlat).adapted_by(super::adapt);

fn plan_hwlat(probe: &Probe, _: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let point = |cpu| probe.make_point(HwlatCpuSettings { cpu }, format!("hwlat on CPU {cpu}"), false);
    machine.allowed.0.iter().copied().map(point).collect()
}

/// Time with interrupts off in each window, on one CPU after another, µs. It is short, since nothing else
/// happens on the CPU meanwhile.
const WIDTH_US: u64 = 50_000;
const WINDOW_US: u64 = 200_000;

fn run_hwlat(bench: &mut Bench) -> Result<()> {
    let watched = bench.settings::<HwlatCpuSettings>()?.into_iter().map(|of| of.cpu).collect();
    let mut cpus = bench.cpus().to_vec();
    cpus.sort_unstable();
    let setting = |file: &str, value: String| (format!("hwlat_detector/{file}"), value);
    // The shorter one first: the width must fit into the window at any moment.
    let settings = vec![
        setting("mode", "round-robin".to_owned()),
        setting("width", WIDTH_US.to_string()),
        setting("window", WINDOW_US.to_string()),
    ];
    let wanted = LatencyTracerRequest { tracer: "hwlat", settings, events: &[], cpus: &cpus };
    let Some(mut tracer) = kernel::prepare_tracer(bench, &wanted) else { return Ok(()) };
    let events = bench.stop().events;
    let enough = |cpu: &TracerCpuPoint<Notes>| cpu.notes.turns >= events;
    let (traced, lasted) = kernel::record_cpus(bench, &mut tracer, watched, record_line, enough)?;
    // The kernel goes over all CPUs of the instance in turn.
    let each = lasted.as_secs_f64() * WIDTH_US as f64 / WINDOW_US as f64 / online() as f64;
    for TracerCpuPoint { point, writer, notes } in traced.into_values() {
        bench.add_value(point, "watched", each, "s", Better::Neither);
        bench.add_value(point, "gaps", notes.gaps as f64, "count", Better::Less);
        if notes.turns == 0 {
            bench.uneventful(
                point,
                "nothing took the CPU from the kernel for longer than the tracer's threshold",
            );
        }
        bench.finish_writer(point, writer);
    }
    Ok(())
}

fn online() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Counts of one CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Notes {
    /// Turns in which there was a gap.
    turns: u64,
    /// Gaps in these turns.
    gaps: u64,
}

/// A turn in which there was a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HwlatGapSample {
    /// The longest gap, ns.
    pub longest: u64,
    /// Number of gaps in the turn.
    pub gaps: u64,
}

impl HwlatGapSample {
    /// Parses a line such as `#1     inner/outer(us): 8050/8377  ts:1795245609.810217840 count:121`.
    pub fn parse(text: &str) -> Option<HwlatGapSample> {
        let (_, rest) = text.strip_prefix('#')?.split_once("inner/outer(us): ")?;
        let mut words = rest.split_whitespace();
        // A pair may be padded behind the stroke.
        let mut pair = words.next()?.to_owned();
        if pair.ends_with('/') {
            pair += words.next()?;
        }
        let (inner, outer) = pair.split_once('/')?;
        let longest = inner.parse::<u64>().ok()?.max(outer.parse().ok()?).checked_mul(1000)?;
        let count = |word: &str| word.strip_prefix("count:")?.parse().ok();
        Some(HwlatGapSample { longest, gaps: words.find_map(count).unwrap_or(1) })
    }
}

fn record_line(cpu: &mut TracerCpuPoint<Notes>, line: LatencyTracerLine, epoch_ns: u64) {
    if let Some(turn) = HwlatGapSample::parse(line.text) {
        let sample = Exceedance { turn: cpu.notes.turns, at: line.at, value: turn.longest };
        cpu.writer.record_event(sample, epoch_ns, 0, 1);
        cpu.notes.turns += 1;
        cpu.notes.gaps += turn.gaps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_trace_is_understood() {
        let trace = include_str!("../../tests/traces/hwlat-6.1.txt");
        let turns: Vec<(u32, HwlatGapSample)> = trace
            .lines()
            .filter_map(LatencyTracerLine::parse)
            .map(|l| (l.cpu, HwlatGapSample::parse(l.text).unwrap()))
            .collect();
        assert_eq!(turns.len(), 4);
        assert_eq!(turns[0], (1, HwlatGapSample { longest: 8_377_000, gaps: 121 }));
        assert_eq!(turns[1], (0, HwlatGapSample { longest: 16_025_000, gaps: 230 }));
    }

    #[test]
    fn short_figures_and_other_lines() {
        let padded = "#12    inner/outer(us):   12/9     ts:1.2 count:3 nmi-total:4 nmi-count:1";
        assert_eq!(HwlatGapSample::parse(padded), Some(HwlatGapSample { longest: 12_000, gaps: 3 }));
        let old = "#1     inner/outer(us): 7/  15    ts:1.2";
        assert_eq!(HwlatGapSample::parse(old), Some(HwlatGapSample { longest: 15_000, gaps: 1 }));
        for none in ["", "#1", "#1 inner/outer(us): x/y", "1 2 3"] {
            assert_eq!(HwlatGapSample::parse(none), None, "{none}");
        }
    }
}
