//! Reads a tracer of the kernel for as long as a step lasts.

use crate::prelude::*;
use latscope_trace::kernel_tracer::{LatencyTracer, LatencyTracerLine, LatencyTracerRequest};
use std::cell::RefCell;

/// Time between two readings of the lines.
const PERIOD: Duration = Duration::from_millis(100);

/// Point of one CPU, and the records of it.
pub(crate) struct TracerCpuPoint<T> {
    pub point: usize,
    /// Writer of the CPU's histogram.
    pub writer: HistogramSlotWriter,
    /// Further facts about the CPU.
    pub notes: T,
}

/// Follows the tracer until each of the CPUs, a point each, has enough events or the step ends. Returns the
/// records of the CPUs, and the duration.
///
/// # Errors
/// The kernel refuses the tracer.
pub(crate) fn record_cpus<T: Default>(
    bench: &mut Bench,
    tracer: &mut LatencyTracer,
    cpus: Vec<u32>,
    note: fn(&mut TracerCpuPoint<T>, LatencyTracerLine, u64),
    enough: impl Fn(&TracerCpuPoint<T>) -> bool,
) -> Result<(BTreeMap<u32, TracerCpuPoint<T>>, Duration)> {
    let (limit, epoch_ns) = (Duration::from_nanos(bench.stop().limit_ns), bench.epoch_ns());
    let cpu =
        |(point, cpu)| (cpu, TracerCpuPoint { point, writer: bench.writer(point), notes: T::default() });
    let traced: RefCell<BTreeMap<u32, TracerCpuPoint<T>>> =
        RefCell::new(cpus.into_iter().enumerate().map(cpu).collect());
    let line = |line: LatencyTracerLine| {
        if let Some(cpu) = traced.borrow_mut().get_mut(&line.cpu) {
            note(cpu, line, epoch_ns);
        }
    };
    let over = || {
        let traced = traced.borrow();
        traced.values().all(&enough) || traced.values().any(|cpu| cpu.writer.should_stop())
    };
    let lasted = follow_tracer(tracer, limit, line, over, || ())?;
    check_lost(bench, tracer, &Vec::from_iter(0..bench.points().len()));
    Ok((traced.into_inner(), lasted))
}

/// Sets the tracer up. If that fails, closes all points with the reason.
pub fn prepare_tracer(bench: &mut Bench, wanted: &LatencyTracerRequest) -> Option<LatencyTracer> {
    stay_off(bench, wanted.cpus);
    match LatencyTracer::set_up_tracer(wanted) {
        Ok(tracer) => Some(tracer),
        Err(refusal) => {
            let all = 0..bench.points().len();
            all.for_each(|point| bench.unsupported(point, refusal.reason.as_str(), refusal.remedy));
            None
        }
    }
}

/// Moves the calling thread, which only reads, off the watched CPUs if it can.
pub fn stay_off(bench: &Bench, watched: &[u32]) {
    let free: Vec<u32> = bench.allowed().iter().copied().filter(|cpu| !watched.contains(cpu)).collect();
    let home = if free.is_empty() { bench.allowed() } else { &free };
    let _ = sched::pin(home);
}

/// Lets the tracer run and passes its lines on, for at most `limit` and until `over` is true. Returns the
/// duration. `ending` is called before the tracer stops.
///
/// # Errors
/// The kernel refuses the tracer.
pub fn follow_tracer(
    tracer: &mut LatencyTracer,
    limit: Duration,
    mut line: impl FnMut(LatencyTracerLine),
    mut over: impl FnMut() -> bool,
    ending: impl FnOnce(),
) -> Result<Duration> {
    tracer.start_recording()?;
    let began = Instant::now();
    while began.elapsed() < limit {
        std::thread::sleep(PERIOD.min(limit.saturating_sub(began.elapsed())));
        tracer.read_lines(&mut line)?;
        if over() {
            break;
        }
    }
    let lasted = began.elapsed();
    ending();
    tracer.stop_recording()?;
    tracer.read_lines(&mut line)?;
    Ok(lasted)
}

/// Marks points of which lines were lost.
pub(crate) fn check_lost(bench: &mut Bench, tracer: &LatencyTracer, points: &[usize]) {
    let lost = tracer.count_lost_lines();
    if lost > 0 {
        let reason =
            format!("lost {} of the tracer: the CPU had no time to read them", count_with_noun(lost, "line"));
        let remedy = "leave a CPU free of measuring (--cpus), or measure less";
        points.iter().for_each(|point| bench.degrade(*point, "trace-lost-events", reason.as_str(), remedy));
    }
}
