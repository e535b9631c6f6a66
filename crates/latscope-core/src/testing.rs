//! Reports made by hand, for the tests of what reads reports.

use crate::histogram::Histogram;
use crate::machine::{CpuCache, Machine};
use crate::plan::{MeasurementPoint, Params, Plan, params};
use crate::report::{
    Better, MeasuredQuantity, Measurement, OperationWork, Report, Sampling, Semantics, Summary, ToolVersion,
};
use crate::rounds::RoundSummary;
use crate::units::CpuList;

/// A report of these points from a machine of two CPUs, 32 KiB, 1 MiB and
/// 32 MiB of cache.
pub fn report(measurements: Vec<Measurement>) -> Report {
    let cache = |(level, size)| CpuCache { level, size, kind: "Unified".to_owned(), ..CpuCache::default() };
    let cpus = CpuList(vec![0, 1]);
    let machine = Machine {
        allowed: cpus.clone(),
        caches: [(1, 32 << 10), (2, 1 << 20), (3, 32 << 20)].map(cache).to_vec(),
        ..Machine::default()
    };
    let plan = Plan::new("survey", Vec::new(), cpus);
    let report = Report::new(ToolVersion::default(), "2026-01-01T00:00:00Z".to_owned(), plan, machine);
    Report { measurements, ..report }
}

/// Scatter of the rounds of a steady point: factors of its median.
const STEADY: [f64; 8] = [1.0, 0.99, 1.005, 1.0, 1.01, 0.995, 1.0, 1.0];

/// Returns the point with `medians` as the medians of its rounds.
pub fn in_rounds(mut m: Measurement, medians: &[f64]) -> Measurement {
    let cycles = m.summary.cycles.zip(m.summary.p50).map(|(cycles, ns)| cycles / ns);
    let of_round = |ns: &f64| {
        let mut round = RoundSummary { p50: Some(*ns), ..m.as_round() };
        round.cycles = cycles.map(|cycles| cycles * ns);
        round
    };
    m.rounds = medians.iter().map(of_round).collect();
    m.derive_results();
    m
}

/// Returns the point as if it had been measured once.
pub fn once(mut m: Measurement) -> Measurement {
    (m.rounds, m.interval) = (Vec::new(), None);
    m
}

/// A point whose samples spread by 1 % around `ns`, and so do its rounds.
pub fn point(probe: &str, parameters: Params, times: Semantics, ns: f64) -> Measurement {
    let mut histogram = Histogram::new(1);
    for sample in 0..200u32 {
        let spread = 0.99 + 0.0001 * f64::from(sample);
        histogram.record((ns * spread * 1000.0).round() as u64);
    }
    let mut summary = Summary::from_histogram(&histogram, &Summary::default());
    summary.p50 = Some(ns); // not the middle of its bucket: tests quote it
    let point = MeasurementPoint {
        title: format!("{probe} of a test"),
        probe: probe.to_owned(),
        revision: 1,
        params: parameters,
        row: true,
    };
    let m = Measurement {
        summary,
        ..Measurement::from_samples(point, Sampling::Batch { ops: 100 }, times, histogram)
    };
    in_rounds(m, &STEADY.map(|factor| ns * factor))
}

/// Returns the point with a named value, which scatters as little as the medians.
pub fn with_value(mut m: Measurement, name: &str, value: f64) -> Measurement {
    for (round, factor) in m.rounds.iter_mut().zip(STEADY) {
        round.values.insert(name.to_owned(), value * factor);
    }
    m.values
        .insert(name.to_owned(), MeasuredQuantity { value, unit: "count".to_owned(), better: Better::Less });
    m
}

/// Returns the point with `bytes` bytes touched by an operation.
pub fn with_bytes(mut m: Measurement, bytes: u64) -> Measurement {
    m.work = Some(OperationWork { ops: 1, bytes_touched: bytes, bytes_moved: bytes });
    m
}

/// A load at random in so many bytes, ns, on a machine with caches of these capacities.
pub fn load(size: u64, capacities: [u64; 3]) -> f64 {
    let (mut left, mut ns) = (1.0, 0.0);
    for (capacity, hit) in capacities.into_iter().zip([1.0, 4.0, 13.0]) {
        let hits = (1.0 - (size as f64 / capacity as f64).log2() / 0.6).clamp(0.0, 1.0);
        ns += left * hits * hit;
        left *= 1.0 - hits;
    }
    ns + left * 100.0
}

/// A chase over sizes of 2 KiB to 512 MiB through caches of 32 KiB, 1 MiB and
/// `last` bytes; `walk` ns are added beyond 2 MiB. Cycles are those of 4 GHz.
pub fn chase(order: &str, pages: &str, per_octave: u32, last: u64, walk: f64) -> Vec<Measurement> {
    let latency = |size| load(size, [32 << 10, 1 << 20, last]) + if size > 2 << 20 { walk } else { 0.0 };
    (0..=18 * per_octave)
        .map(|step| {
            let size = (2048.0 * (f64::from(step) / f64::from(per_octave)).exp2()).round() as u64;
            let parameters =
                params([("size", size.into()), ("order", order.into()), ("pages", pages.into())]);
            let mut m = point("memory.latency", parameters, Semantics::Operation, latency(size));
            m.row = false;
            m.summary.cycles = m.summary.p50.map(|ns| ns * 4.0);
            let medians: Vec<f64> = m.rounds.iter().filter_map(|round| round.p50).collect();
            in_rounds(m, &medians)
        })
        .collect()
}
